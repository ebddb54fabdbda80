package lint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/values"
	"zaentrum.io/zae/internal/worker"
)

// subject is the chart that is looked at, with what is known of it before it is rendered.
type subject struct {
	facts    *worker.Chart
	files    map[string]string
	chart    *chart.Chart
	schema   *inputs.Schema // nil when there is none or it cannot be used
	document *schemaDoc
	yaml     *yamlDoc
	defaults map[string]any // as templates see them, those of bundled charts too
	inputs   []inputs.Input
	groups   []inputs.Group
	reads    *reads
	f        *found
}

// schemaLine is the line that a fault of a schema names.
var schemaLine = regexp.MustCompile(`^values\.schema\.json line ([0-9]+): `)

// maxInputPath is the longest path of an input (contract §1).
const maxInputPath = 250

// judge finds what needs no rendering.
func (s *subject) judge() {
	if chart.CheckName(strings.ToLower(s.chart.Name)) != nil {
		at := newYAMLDoc([]byte(s.files[chartFile])).place([]string{"name"})
		s.add(Finding{Rule: "addon-name", File: chartFile, Message: "the chart's name is no name of an addon"}, at)
	}
	if name := strings.ToLower(s.chart.Name); name != s.chart.Name && chart.CheckName(name) == nil {
		at := newYAMLDoc([]byte(s.files[chartFile])).place([]string{"name"})
		s.add(Finding{Rule: "addon-name", Severity: Warning, File: chartFile, Message: "the chart's name has capitals: the addon is called " + name}, at)
	}
	if _, there := s.chart.Helm().Values[v1alpha1.PlatformKey]; there || child(s.yaml.root, v1alpha1.PlatformKey) != nil {
		s.add(Finding{
			Rule: "undeclared-default", Severity: Warning, File: valuesFile, Path: v1alpha1.PlatformKey,
			Message: v1alpha1.PlatformKey + ": the platform's own block, of which a chart has none", Fix: "Take it out: the platform hands its values over.",
		}, s.yaml.place([]string{v1alpha1.PlatformKey}))
	}
	s.yaml11()
	if s.facts.SchemaError != "" {
		at := position{}
		if m := schemaLine.FindStringSubmatch(s.facts.SchemaError); m != nil {
			at.line, _ = strconv.Atoi(m[1])
			at.column = 1
		}
		for _, word := range strings.Fields(s.facts.SchemaError) {
			if word := strings.Trim(word, ":,"); strings.HasPrefix(word, "#") {
				at = s.document.place(s.document.pointer(word))
				break
			}
		}
		s.add(Finding{Rule: "schema-invalid", File: schemaFile, Message: s.facts.SchemaError}, at)
		return
	}
	if s.impossible() {
		return
	}
	s.schemaWarnings()
	s.lostKeywords()
	s.conditions()
	for _, in := range s.inputs {
		s.input(in)
	}
	s.declared()
	s.read()
	s.unnarrowed()
}

func (s *subject) add(one Finding, at position) {
	one.Line, one.Column = at.line, at.column
	s.f.add(one, static)
}

func (s *subject) placeOf(in inputs.Input) position {
	if in.Unaddressable {
		return s.document.place(s.document.named(s.document.root, in.Path))
	}
	return s.document.place(s.document.property(strings.Split(in.Path, ".")))
}

// schemaWarnings are what package inputs tells of the schema, each under a rule.
func (s *subject) schemaWarnings() {
	for _, w := range s.facts.SchemaWarnings {
		rule := "secret-lost"
		switch {
		case w.Place == "#/$schema":
			rule = "schema-dialect"
		case w.Place == "#/additionalProperties":
			rule = "closed-root"
		case strings.HasPrefix(w.What, "no dotted path"):
			rule = "input-name"
		case strings.HasPrefix(w.What, "the path is too long"):
			continue // told of every input
		}
		at := s.document.place(s.document.pointer(w.Place))
		if !strings.HasPrefix(w.Place, "#") {
			at = s.document.place(s.document.named(s.document.root, w.Place))
		}
		s.add(Finding{Rule: rule, File: schemaFile, Path: w.Place, Message: w.What, Fix: sentence(w.Fix)}, at)
	}
}

// sentence is a fix of package inputs as rules have theirs.
func sentence(fix string) string {
	if fix == "" {
		return ""
	}
	return strings.ToUpper(fix[:1]) + strings.TrimSuffix(fix[1:], ".") + "."
}

// lostKeywords finds generators, and secrets, in places where they make no input.
func (s *subject) lostKeywords() {
	known := map[*jsonNode]bool{}
	for _, in := range s.inputs {
		if in.Unaddressable || (in.Generate == "" && !in.Secret && !in.HoldsSecrets) {
			continue
		}
		path := strings.Split(in.Path, ".")
		for i := range path { // writeOnly on an object around it counts, too
			for _, n := range s.document.around(s.document.property(path[:i+1])) {
				known[n] = true
			}
		}
		if in.HoldsSecrets { // told already
			s.document.property(path).each(nil, func(_ []string, n *jsonNode) { known[n] = true })
		}
	}
	s.document.root.each(nil, func(path []string, n *jsonNode) {
		if known[n] || n.fields == nil || n.fields["$ref"] != nil || len(path) > 0 && notSchemas[path[len(path)-1]] ||
			slices.Contains(path, "definitions") || slices.Contains(path, "default") || slices.Contains(path, "examples") {
			return
		}
		for _, keyword := range []string{inputs.GenerateKeyword, "writeOnly"} {
			if k := n.fields[keyword]; k != nil && k.fields == nil && k.items == nil && k.scalar != false {
				place := "#/" + strings.Join(append(slices.Clone(path), keyword), "/")
				s.add(Finding{Rule: "secret-lost", File: schemaFile, Path: place, Message: keyword + " makes no input here"}, s.document.place(k))
			}
		}
	})
}

// notSchemas are the keywords below which names stand, and not keywords.
var notSchemas = map[string]bool{"properties": true, "patternProperties": true, "dependencies": true}

// input judges one input.
func (s *subject) input(in inputs.Input) {
	at := s.placeOf(in)
	finding := func(rule, message string) {
		s.add(Finding{Rule: rule, File: schemaFile, Path: in.Path, Message: in.Path + ": " + message}, at)
	}
	if len(in.Path) > maxInputPath {
		finding("input-path", fmt.Sprintf("a path of %d characters", len(in.Path)))
	}
	for _, name := range strings.Split(in.Path, ".") {
		if !in.Unaddressable && strings.ContainsFunc(name, func(r rune) bool {
			return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && r != '_' && r != '-'
		}) {
			finding("input-name", "a name with other characters than letters, digits, _ and -")
			break
		}
	}
	if in.Unaddressable {
		return
	}
	if in.Generate != "" {
		s.generator(in, finding)
	}
	path := strings.Split(in.Path, ".")
	chartValue, there := values.Get(s.chart.Defaults, path)
	there = there && chartValue != nil
	if in.Secret || in.Generate != "" {
		s.secretDefault(in, path)
	}
	if in.Secret || in.HoldsSecrets {
		s.schemaDefault(in, path)
	}
	if !there || chartValue == "" {
		free := in.Type == inputs.TypeString && in.Enum == nil && in.Pattern == "" && in.Format == "" && in.Generate == "" &&
			(in.MinLength == "" || in.MinLength == "0")
		if (in.Required || in.RequiredInGroup && !in.Conditional) && free {
			one := Finding{Rule: "required-may-be-empty", File: schemaFile, Path: in.Path, Message: in.Path + ": is required, and an empty string will do"}
			if in.Secret {
				one.Fix = `Add "minLength": 1 or a pattern.`
			}
			s.add(one, at)
		}
	}
	if in.Default != nil && !in.Secret && in.Generate == "" {
		if !there { // a bundled chart may have one
			chartValue, there = values.Get(s.defaults, path)
			there = there && chartValue != nil
		}
		switch {
		case !there && s.reads.reads(path):
			finding("default-differs", "the schema has a default, values.yaml has none")
		case there && !sameValue(in.Default, chartValue):
			s.differs(in, path)
		}
	}
	if !s.reads.reads(path) {
		finding("input-unused", "no template reads it")
	}
}

// secretDefault tells of a value in values.yaml, or in that of a bundled chart, where none should be.
func (s *subject) secretDefault(in inputs.Input, path []string) {
	v, there := values.Get(s.defaults, path)
	own, _ := values.Get(s.chart.Defaults, path)
	if !there || v == nil || own == nil && v == "" { // a bundled chart's empty text is a placeholder
		return
	}
	one := Finding{Rule: "secret-default", Path: in.Path, Message: in.Path + ": a secret input has a value here"}
	if in.Generate != "" {
		one.Message = in.Path + ": a generated input has a value here"
	}
	at := s.yaml.place(path)
	if one.File = valuesFile; own == nil {
		one.File, at = defaultAt(s.files, path)
		one.Fix = "Take it out of the bundled chart's values.yaml, or write null for it into that of the chart."
	}
	s.add(one, at)
}

// schemaDefault tells of a default of a secret in the schema, its own or that of an object around it.
func (s *subject) schemaDefault(in inputs.Input, path []string) {
	for i := range len(path) + 1 {
		for _, declared := range s.document.properties(path[:i]) {
			for _, n := range s.document.around(declared) {
				at := n.fields["default"]
				v := at
				for _, key := range path[i:] {
					if v != nil {
						v = v.fields[key]
					}
				}
				if v == nil || v.fields == nil && !v.list && (v.scalar == nil || v.scalar == "") {
					continue
				}
				s.add(Finding{
					Rule: "secret-default", File: schemaFile, Path: in.Path, Message: in.Path + ": a secret input has a default here",
					Fix: "Take it out of values.schema.json: whoever may read the chart reads it.",
				}, s.document.place(at))
				return
			}
		}
	}
}

// samples is how many values are generated to see whether the schema takes them.
const samples = 8

// generator tells of generated values that the schema refuses.
func (s *subject) generator(in inputs.Input, finding func(rule, message string)) {
	refused := 0
	for i := range samples {
		m := maker{schema: s.schema, salt: strconv.Itoa(i)}
		if !m.accepts(in, m.generated(in)) {
			refused++
		}
	}
	switch refused {
	case 0:
	case samples:
		finding("generator-refused", "the schema refuses whatever "+in.Generate+" makes")
	default:
		finding("generator-refused", "the schema refuses some of what "+in.Generate+" makes")
	}
}

// impossible tells of a schema that refuses any values: they are always a mapping.
func (s *subject) impossible() bool {
	root := s.document.root
	if root == nil {
		return false
	}
	b := &builder{doc: s.document, branch: -1}
	nodes := b.apply(root)
	kinds := types(nodes)
	if root.scalar == false || keyword(nodes, "type") != nil && !slices.Contains(kinds, "object") {
		s.add(Finding{
			Rule: "schema-invalid", File: schemaFile, Message: "the schema refuses any values: they are always an object",
			Fix: `Write "type": "object" at the root, and the inputs under "properties".`,
		}, s.document.place(root))
		return true
	}
	return false
}

// differs tells of another default in values.yaml, or in that of a bundled chart.
func (s *subject) differs(in inputs.Input, path []string) {
	if _, own := values.Get(s.chart.Defaults, path); own {
		s.add(Finding{Rule: "default-differs", File: valuesFile, Path: in.Path, Message: in.Path + ": the schema has another default"}, s.yaml.place(path))
		return
	}
	s.add(Finding{
		Rule: "default-differs", File: schemaFile, Path: in.Path, Message: in.Path + ": a bundled chart has another default",
		Fix: "Write the schema's default into values.yaml, or the bundled chart's into the schema.",
	}, s.placeOf(in))
}

func sameValue(a, b any) bool {
	left, err1 := json.Marshal(a)
	right, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && bytes.Equal(left, right)
}

// elsewhere tells whether a path belongs to the platform or to bundled charts.
func (s *subject) elsewhere(path []string) bool {
	return len(path) > 0 && (path[0] == v1alpha1.PlatformKey || path[0] == "global" || slices.Contains(s.chart.Subcharts, path[0]))
}

// declares tells whether the schema knows a path, or takes whatever is there.
func (s *subject) declares(path []string) bool {
	dotted := strings.Join(path, ".")
	for _, in := range s.inputs {
		if in.Path == dotted || strings.HasPrefix(in.Path, dotted+".") || in.Type == inputs.TypeJSON && strings.HasPrefix(dotted, in.Path+".") {
			return true
		}
	}
	for _, g := range s.groups {
		if g.Path == dotted || g.Open && strings.HasPrefix(dotted, g.Path+".") {
			return true
		}
	}
	return false
}

// declared looks for values that the schema does not know.
func (s *subject) declared() {
	if s.facts.Schema == nil {
		return
	}
	told := map[string]bool{}
	s.yaml.keys(func(key *yaml.Node, path []string) {
		if s.elsewhere(path) || slices.Contains(path, "[]") || told[strings.Join(path[:len(path)-1], ".")] {
			told[strings.Join(path, ".")] = true
			return
		}
		if !s.declares(path) {
			told[strings.Join(path, ".")] = true
			s.add(Finding{
				Rule: "undeclared-default", File: valuesFile, Path: strings.Join(path, "."),
				Message: strings.Join(path, ".") + ": the schema does not declare it",
			}, position{key.Line, key.Column})
		}
	})
}

// platformKeys are what the platform hands over.
func platformKeys() map[string]any {
	tree, err := values.Platform(values.DefaultPlatform())
	if err != nil {
		return nil
	}
	return tree
}

// read looks for values that are read and are nowhere.
func (s *subject) read() {
	platform := platformKeys()
	var first *read // of a value that somebody could be asked for
	for _, r := range s.reads.list {
		if len(r.path) == 0 || r.inner || strings.HasSuffix(r.file, "NOTES.txt") { // which is not rendered here
			continue
		}
		dotted := strings.Join(r.path, ".")
		finding := Finding{File: r.file, Path: dotted}
		if r.path[0] == v1alpha1.PlatformKey {
			if !within(platform, r.path[1:]) {
				finding.Rule, finding.Message = "unknown-platform-value", dotted+": the platform has no such value"
				s.add(finding, r.at)
			}
			continue
		}
		if s.elsewhere(r.path) {
			continue
		}
		if first == nil {
			first = &r
		}
		if !s.excused(r) && !s.known(r.path) {
			finding.Rule, finding.Message = "undeclared-value", dotted+": neither the schema nor values.yaml has it"
			s.add(finding, r.at)
		}
	}
	if first != nil && s.facts.Schema == nil {
		s.add(Finding{Rule: "no-schema", File: first.file, Message: "templates read values and there is no values.schema.json"}, first.at)
	}
}

// known tells whether somebody says that there is such a value.
func (s *subject) known(path []string) bool { return s.declares(path) || within(s.defaults, path) }

// excused tells whether a value need not be known where it is read: the template has made it, or it may come from
// elsewhere; or the template does without it, and either there is no schema, so that nobody expects more of
// values.yaml than examples, or the template is a bundled chart's, which has others to serve.
func (s *subject) excused(r read) bool {
	if r.made || r.tested && (s.facts.Schema == nil || strings.HasPrefix(r.file, "charts/")) {
		return true
	}
	return slices.ContainsFunc(r.or, func(path []string) bool { return len(path) > 0 && (s.elsewhere(path) || s.known(path)) }) ||
		slices.ContainsFunc(s.reads.set, func(path []string) bool {
			return len(path) <= len(r.path) && slices.Equal(path, r.path[:len(path)])
		})
}

// within tells whether a tree has something at a path, or takes whatever is there: an empty map, a list.
func within(tree map[string]any, path []string) bool {
	at := tree
	for i, key := range path {
		v, there := at[key]
		if !there {
			return i > 0 && len(at) == 0
		}
		next, isMap := v.(map[string]any)
		if !isMap {
			_, isText := v.(string)
			return i == len(path)-1 || !isText // lists and nulls say nothing about what is inside
		}
		at = next
	}
	return true
}

// yaml11 looks for keys that YAML 1.1 takes for booleans.
func (s *subject) yaml11() {
	s.yaml.keys(func(key *yaml.Node, path []string) {
		if key.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) == 0 && yaml11(key.Value) {
			s.add(Finding{Rule: "yaml11-key", File: valuesFile, Path: strings.Join(path, "."), Message: "the key " + key.Value + " is a boolean in YAML 1.1"},
				position{key.Line, key.Column})
		}
	})
	for _, in := range s.inputs {
		for _, name := range strings.Split(in.Path, ".") {
			if yaml11(name) {
				s.add(Finding{Rule: "yaml11-key", File: schemaFile, Path: in.Path, Message: in.Path + ": the name " + name + " is a boolean in YAML 1.1", Fix: "Rename the property."}, s.placeOf(in))
			}
		}
	}
}

func yaml11(word string) bool {
	switch strings.ToLower(word) {
	case "on", "off", "yes", "no", "y", "n":
		return true
	}
	return false
}
