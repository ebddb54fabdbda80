// Package lint is what an author is told about a chart before anybody installs it: the guardrails, in whatever
// way the schema lets the chart be rendered, and advice of its own, as one table of rules.
//
// Charts are rendered by a worker; what is walked here are the texts of templates, once a worker has read the
// chart. No finding quotes a template, and values are made up, but for those that the schema itself lists.
package lint

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/manifest"
	"zaentrum.io/zae/internal/render"
	"zaentrum.io/zae/internal/values"
	"zaentrum.io/zae/internal/worker"
)

// Worker reads and renders charts. *worker.Pool is one.
type Worker interface {
	Inspect(ctx context.Context, a *chart.Archive) (*worker.Chart, error)
	Render(ctx context.Context, a *chart.Archive, j worker.Job) (*worker.Result, error)
	// HelmLint runs Helm's own lint on the chart as it lies unpacked at root.
	HelmLint(ctx context.Context, a *chart.Archive, j worker.Job, root string) ([]render.HelmFinding, error)
}

// Source is a chart to look at.
type Source struct {
	// Label is how the person named it; Dir is its directory, empty for an archive.
	Label, Dir string
	// Tracked is where the directory or archive lies in the repository that reports are for, with slashes; empty where
	// that is not known. Then reports for repositories go by Dir and Label.
	Tracked string
	Archive *chart.Archive
	// Extra are files of the directory that are not packed: ci/*values.yaml and .zaelint.yaml. They come
	// before those of the archive.
	Extra map[string][]byte
}

// Options say how to look.
type Options struct {
	Worker Worker
	// Against is the version before; nil for none.
	Against *chart.Archive
	// MaxRenders bounds how often each chart is rendered; 0 is DefaultMaxRenders. With 1, the chart is only
	// rendered with what must be given.
	MaxRenders int
	// Progress is told how many of the renders are done; nil for nobody.
	Progress func(done, all int)
}

// DefaultMaxRenders is how often a chart is rendered at most.
const DefaultMaxRenders = 200

// Report is what was found in one chart.
type Report struct {
	Source   string    `json:"source"`
	Name     string    `json:"name,omitempty"`
	Version  string    `json:"version,omitempty"`
	Findings []Finding `json:"findings"`
	// Ignored counts what .zaelint.yaml silences.
	Ignored int `json:"ignored"`
	// Renders and Space say how much was looked at.
	Renders int    `json:"renders"`
	Space   string `json:"space"`

	// Dir and Tracked are the source's.
	Dir     string `json:"-"`
	Tracked string `json:"-"`
}

// Count is how many findings there are of a severity.
func (r *Report) Count(s Severity) int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// Check looks at one chart. What is wrong with the chart is in the report; an error is a fault of this program
// or its surroundings, or the end of the context.
func Check(ctx context.Context, src Source, o Options) (*Report, error) {
	if o.MaxRenders <= 0 {
		o.MaxRenders = DefaultMaxRenders
	}
	out := &Report{Source: src.Label, Dir: src.Dir, Tracked: src.Tracked, Findings: []Finding{}}
	l := &linter{o: o, src: src, out: out, f: newFound(), located: map[string]position{}, shown: map[uint64]bool{}, fields: map[uint64]bool{}, probed: map[string]bool{}}
	if err := l.run(ctx); err != nil {
		return nil, err
	}
	if l.space != nil {
		if err := l.originate(ctx); err != nil {
			return nil, err
		}
	}
	l.realFiles()
	l.finish()
	return out, nil
}

// Unreadable is the report of something that cannot even be taken for a chart.
func Unreadable(src Source, why *fault.Fault) *Report {
	out := &Report{Source: src.Label, Dir: src.Dir, Tracked: src.Tracked, Findings: []Finding{}}
	l := &linter{out: out, f: newFound()}
	l.f.add(Finding{Rule: "chart-unreadable", Message: why.Message, Fix: why.Hint}, static)
	l.finish()
	return out
}

// linter is at work on one chart.
type linter struct {
	o   Options
	src Source
	out *Report
	f   *found

	files []chart.File
	text  map[string]string
	chart *worker.Chart
	// located are the places of keys in files.
	located map[string]position
	space   *space
	rows    []row
	words   map[string]bool // names that were looked for in the templates
	base    int             // the first row that renders
	// rendered tells that there is one.
	rendered bool
	// unmade is told when nothing renders, not even a file in ci/: no values could be made up.
	unmade  []Finding
	against []string // what the schema has against the first set
	all     int
	skip    int // rows that the schema refuses
	more    int
	over    int // renders that were stopped

	coming      int             // sets of values that are still to be rendered
	shown       map[uint64]bool // of what was rendered so far
	derivations int             // renders that only look for what changes with a secret
	fields      map[uint64]bool // that were rendered so far
	views       []view          // sets of values that together render them
	viewed      int             // fields of all views
	narrows     string          // the rule of the finding that is narrowed down, while one is
	narrowed    int             // renders for that
	probed      map[string]bool // inputs of which it was told that templates do not take them
	probedAll   bool            // each field was in a set of values that was probed

	// chance tells that it is chance whether two renders differ, and the templates say why.
	chance bool

	before *space // of the version before; nil for none
}

func (l *linter) run(ctx context.Context) error {
	unreadable := func(err error) error {
		var over *worker.Overrun
		var f *fault.Fault
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &over):
			l.f.add(Finding{Rule: "chart-unreadable", Message: "reading the chart was stopped: " + over.What}, static)
		case errors.As(err, &f) && f.Code == fault.Chart:
			one := Finding{Rule: "chart-unreadable", Message: f.Message}
			if f.Hint != "" {
				one.Fix = f.Hint
			}
			l.f.add(l.unreadableAt(one), static)
		default:
			return err
		}
		return nil
	}
	var err error
	if l.chart, err = l.o.Worker.Inspect(ctx, l.src.Archive); err != nil {
		return unreadable(err)
	}
	l.out.Name, l.out.Version = clean(l.chart.Facts.Name), clean(l.chart.Facts.Version)
	if l.files, err = chart.Files(l.src.Archive); err != nil {
		return unreadable(err)
	}
	loaded, err := chart.Load(l.src.Archive)
	if err != nil {
		return unreadable(err)
	}
	l.text = map[string]string{}
	for _, f := range l.files {
		l.text[f.Name] = string(f.Data)
	}
	sources := render.Sources(loaded)
	s := &subject{
		facts: l.chart, files: l.text, chart: loaded, document: newSchemaDoc(l.chart.Schema),
		yaml: newYAMLDoc([]byte(l.text[valuesFile])), defaults: render.Defaults(loaded), reads: readsOf(sources), f: l.f,
	}
	for _, path := range render.Switches(loaded) {
		s.reads.list = append(s.reads.list, read{path: path, file: chartFile, inner: true})
	}
	if l.chart.SchemaError == "" {
		if s.schema, err = inputs.Parse(l.chart.Schema); err != nil {
			return err // the worker has parsed it
		}
		s.inputs, s.groups = s.schema.Inputs(), s.schema.Groups()
	}
	s.judge()
	calls(sources, s.reads, l.f)
	l.chance = shuffled(sources, s.reads, l.f)
	if l.chart.SchemaError != "" || s.impossible() {
		l.guard(nil, true, static, platformKeys())
		return nil
	}
	l.space = newSpace(s.schema, loaded, s.defaults, s.reads.forms(), func() bool { return ctx.Err() != nil })
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if l.o.Against != nil {
		if l.before, err = l.versionBefore(ctx); err != nil {
			return err
		}
		l.inputsAgainst(s)
	}
	return l.render(ctx)
}

// The platforms that charts are rendered for: one with every default, and one that has nothing in common with it.
func otherPlatform() map[string]any {
	return map[string]any{
		"namespace": "zs-other", "hostname": "zs-other.example.net", "issuer": "https://id.zs-other.example.net/oidc",
		"issuerHostAliasIP": "192.0.2.77", "imagePullSecrets": []any{"zs-other-pull"}, "partOf": "zs-other-addons",
		"events": map[string]any{"brokers": "zs-broker.example.net:19093", "topicPrefix": "zs-other.", "tlsSecret": "zs-other-tls"},
		"media":  map[string]any{"claimName": "zs-other-media"},
	}
}

// render renders the chart in all the ways there are room for, and judges what comes out.
func (l *linter) render(ctx context.Context) error {
	platform := platformKeys()
	room := max(l.o.MaxRenders-min(max(extraRenders, l.o.MaxRenders/3), maxReserve), 1)
	files := l.valueFiles()
	l.rows, l.more = l.space.rows(max(room-len(files), 1))
	l.rows = append(l.rows, files...)
	l.all = len(l.rows)
	if l.o.MaxRenders > extraRenders {
		l.all += extraRenders
	}
	var base *worker.Result
	var baseGiven given
	for i := 0; i < len(l.rows); i++ {
		r := l.rows[i]
		if l.over >= maxOverruns {
			l.more += len(l.rows) - i
			l.rows = l.rows[:i]
			break
		}
		l.coming = len(l.rows) - i - 1
		g := l.space.give(r)
		result, err := l.look(ctx, i, platform)
		if err != nil {
			return err
		}
		if result == nil {
			if i == 0 && len(l.against) > 0 && l.o.MaxRenders > 1 && len(l.space.repairs) < maxRepairs && l.repaired(l.against) {
				l.against, l.unmade = nil, nil
				l.rows, l.more = l.space.rows(max(room-len(files), 1))
				l.rows = append(l.rows, files...)
				l.skip--
				i--
				continue
			}
			if i == 0 && len(g.missing) > 0 {
				at := l.inSchema(g.missing[0])
				l.unmade = append(l.unmade, Finding{
					Rule: "not-rendered", File: schemaFile, Line: at.line, Column: at.column, Path: g.missing[0],
					Message: "no value could be made up for " + strings.Join(g.missing, ", "),
				})
			}
			continue
		}
		if base == nil {
			base, baseGiven, l.base, l.rendered = result, g, i, true
		}
	}
	if base == nil {
		for _, one := range l.unmade {
			l.f.add(one, static)
		}
		l.guard(nil, true, static, platform)
		return nil
	}
	if l.over >= maxOverruns {
		return nil
	}
	if err := l.helm(ctx, baseGiven, platform); err != nil {
		return err
	}
	if l.o.MaxRenders > extraRenders {
		if err := l.extra(ctx, base, baseGiven, platform); err != nil {
			return err
		}
		if err := l.calledOtherwise(ctx, base, baseGiven, platform); err != nil {
			return err
		}
	}
	if l.before != nil {
		if err := l.objectsBefore(ctx, base, platform); err != nil {
			return err
		}
	}
	if l.o.MaxRenders > extraRenders {
		if err := l.narrow(ctx, platform, l.spare()/2); err != nil {
			return err
		}
		if err := l.probes(ctx, platform); err != nil {
			return err
		}
		if err := l.narrow(ctx, platform, 0); err != nil {
			return err
		}
	}
	return nil
}

// maxRepairs bounds the values that are given in the place of such as the schema refuses.
const maxRepairs = 20

// maxOverruns is after how many stopped renders a chart is not rendered again: each takes seconds.
const maxOverruns = 2

// extraRenders are those that there always are besides the sets of values: for another platform and as another version.
// maxReserve is how many are kept back at most for those that look further into what was rendered.
const (
	extraRenders = 2
	maxReserve   = 50
)

// one renders one set of values. There is no result when the values, or what comes of them, are refused.
func (l *linter) one(ctx context.Context, a *chart.Archive, g given, platform map[string]any, number int) (*worker.Result, error) {
	job := g.job(l.name(), platform)
	result, err := l.o.Worker.Render(ctx, a, job)
	l.out.Renders++
	if l.o.Progress != nil {
		l.o.Progress(l.out.Renders, max(l.all, l.out.Renders))
	}
	var over *worker.Overrun
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &over):
		l.over++
		l.f.add(Finding{Rule: "render-fails", Message: "rendering the chart was stopped: " + over.What}, number)
		return nil, nil
	case err != nil:
		return nil, err
	case len(result.ValuesErrors) == 0:
		return result, nil
	}
	job.ValidateOnly = true
	valid, err := l.o.Worker.Render(ctx, a, job)
	if err != nil {
		return nil, err
	}
	if len(valid.ValuesErrors) > 0 { // not what an admin may give
		if l.narrows != "" {
			return nil, nil
		}
		l.skip++
		if number == 0 {
			l.against = valid.ValuesErrors
			if len(g.missing) == 0 {
				l.refused(valid.ValuesErrors)
			}
		}
		if number >= 0 && number < len(l.rows) && l.rows[number].file != "" {
			l.fileRefused(l.rows[number].file, valid.ValuesErrors)
		}
		return nil, nil
	}
	for _, problem := range result.ValuesErrors {
		l.f.add(l.problem(problem), number)
	}
	return nil, nil
}

// refused tells why the schema refuses the first set of values: the chart's own are not right, or what was made up.
func (l *linter) refused(problems []string) {
	var made []string
	for _, problem := range problems {
		path, what, _ := strings.Cut(problem, ": ")
		keys := strings.Split(path, ".")
		v, there := values.Get(l.space.defaults, keys)
		if !there || strings.HasPrefix(what, "is required") {
			made = append(made, problem)
			continue
		}
		file, at := l.defaultAt(keys)
		one := Finding{Rule: "default-refused", File: file, Line: at.line, Column: at.column, Path: path, Message: path + ": " + what}
		if v == nil {
			one.Fix = "A key without a value is null: take it out of values.yaml, give it a value, or let the schema take null."
		}
		l.f.add(one, static)
	}
	if len(made) > 0 {
		path, _, _ := strings.Cut(made[0], ": ")
		file, at := l.declaredAt(path)
		l.unmade = append(l.unmade, Finding{
			Rule: "not-rendered", File: file, Line: at.line, Column: at.column,
			Message: "the schema refuses the values that were made up: " + strings.Join(made[:min(len(made), 3)], "; "),
		})
	}
}

// repaired gives other values in the place of those that the schema refuses, so that what is behind is seen. It tells
// whether there are any.
func (l *linter) repaired(problems []string) bool {
	n := len(l.space.repairs)
	for _, problem := range problems {
		path, _, _ := strings.Cut(problem, ": ")
		keys := strings.Split(path, ".")
		if slices.ContainsFunc(l.space.repairs, func(a assign) bool { return slices.Equal(a.path, keys) }) {
			continue
		}
		if in, known := l.space.schema.Input(path); known {
			if v, ok := l.space.made.value(in); ok && !in.Unaddressable {
				l.space.repairs = append(l.space.repairs, assign{keys, v})
			}
			continue
		}
		if _, doc, declared := l.declared(path); declared != nil {
			b := &builder{doc: doc, made: l.space.made}
			if v, ok := b.value(b.apply(declared), "", path, 0); ok {
				l.space.repairs = append(l.space.repairs, assign{keys, v})
			}
		}
	}
	clear(l.space.accepted)
	return len(l.space.repairs) > n
}

// fileRefused tells what in a file of ci/ the schema refuses, each value at its place.
func (l *linter) fileRefused(file string, problems []string) {
	text, ok := l.src.Extra[file]
	if !ok {
		text = []byte(l.text[file])
	}
	doc := newYAMLDoc(text)
	for _, problem := range problems {
		path, _, _ := strings.Cut(problem, ": ")
		at := doc.place(strings.Split(path, "."))
		l.f.add(Finding{Rule: "ci-refused", File: file, Line: at.line, Column: at.column, Path: path, Message: problem}, static)
	}
}

// name is the addon's.
func (l *linter) name() string {
	name := strings.ToLower(l.chart.Facts.Name)
	if chart.CheckName(name) != nil {
		return "addon"
	}
	return name
}

// valueFiles are the rows of ci/*values.yaml, in name order.
func (l *linter) valueFiles() []row {
	texts := map[string]string{}
	for name, text := range l.text {
		texts[name] = text
	}
	for name, text := range l.src.Extra {
		texts[name] = string(text)
	}
	var out []row
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if dir, file, ok := strings.Cut(name, "/"); !ok || dir != "ci" || !strings.HasSuffix(file, "values.yaml") || strings.Contains(file, "/") {
			continue
		}
		tree, err := values.Decode([]byte(texts[name]))
		if err != nil {
			l.f.add(Finding{Rule: "ci-refused", File: name, Line: brokenLine(texts[name]), Column: 1, Message: "the file cannot be read as values: " + err.Error(), Fix: "Correct the file: it is a mapping of values."}, static)
			continue
		}
		l.fileAlone(name, tree)
		out = append(out, row{picks: make([]int, len(l.space.params)), file: name, tree: tree})
	}
	return out
}

// fileAlone holds a file in ci/ against the schema as it is, but for secrets and generated values that are not in it.
func (l *linter) fileAlone(file string, tree map[string]any) {
	spec := values.CloneTree(tree)
	delete(spec, v1alpha1.PlatformKey)
	generated := map[string]string{}
	for _, in := range l.space.schema.Inputs() {
		if v, there := values.Get(spec, strings.Split(in.Path, ".")); in.Generate != "" && !in.Unaddressable && (!there || v == nil || v == "") {
			generated[in.Path] = l.space.made.generated(in)
		}
	}
	layers := values.Layers{Defaults: l.space.defaults, Subcharts: l.space.subcharts, Generated: generated, Spec: spec}
	l.fileRefused(file, slices.DeleteFunc(l.space.schema.Validate(layers.Merged()), func(problem string) bool {
		path, what, _ := strings.Cut(problem, ": ")
		if !strings.HasPrefix(what, "is required") {
			return false
		}
		if _, there := values.Get(spec, strings.Split(path, ".")); there { // a null
			return false
		}
		in, known := l.space.schema.Input(path)
		return known && in.Secret || !known && l.onlySecrets(path)
	}))
}

// onlySecrets tells whether all that a group asks for is secret or generated.
func (l *linter) onlySecrets(group string) bool {
	return !slices.ContainsFunc(l.space.schema.Inputs(), func(in inputs.Input) bool {
		return strings.HasPrefix(in.Path, group+".") && in.RequiredInGroup && !in.Secret && in.Generate == ""
	})
}

// warnings are what a render says that changes each time.
func (l *linter) warnings(all []string, number int) {
	for _, text := range all {
		if strings.Contains(text, ": the template calls ") { // told with its column
			continue
		}
		if l.chance && strings.Contains(text, "differs each time it is rendered") {
			continue
		}
		one := Finding{Rule: "not-deterministic", Message: text}
		if i := strings.LastIndex(text, " ("); i >= 0 && strings.HasSuffix(text, ")") {
			one.File, one.Message = text[i+2:len(text)-1], text[:i]
		}
		if object, rest, ok := strings.Cut(one.Message, " "); ok && strings.Contains(object, "/") {
			one.Object = strings.TrimSuffix(object, ":")
			if path, ok := strings.CutSuffix(rest, " differs each time it is rendered"); ok && object == one.Object {
				one.Path = path
			}
		}
		l.f.add(one, number)
	}
}

// helm runs Helm's own lint on values that were accepted.
func (l *linter) helm(ctx context.Context, g given, platform map[string]any) error {
	root, remove, err := render.UnpackForHelm(l.name(), l.files)
	if err != nil {
		return err
	}
	defer remove()
	all, err := l.o.Worker.HelmLint(ctx, l.src.Archive, g.job(l.name(), platform), root)
	var over *worker.Overrun
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &over):
		l.f.add(Finding{Rule: "helm-lint", Message: "helm lint was stopped: " + over.What}, static)
		return nil
	case err != nil:
		return err
	}
	for _, h := range all {
		at := l.helmPlace(h.File, h.What)
		l.f.add(Finding{Rule: "helm-lint", Severity: Severity(h.Severity), File: h.File, Line: at.line, Column: at.column, Message: h.What}, static)
	}
	return nil
}

// finish puts the report together.
func (l *linter) finish() {
	if l.space != nil {
		l.out.Space = spaceText(l.out.Renders, len(l.rows)-l.narrowed, l.skip, l.more)
	}
	for _, one := range l.exceptions() {
		l.f.add(one, static)
	}
	for _, one := range l.f.sorted(l.space, l.rows) {
		if l.f.ignored[one.key()] {
			l.out.Ignored++
			continue
		}
		one.Object, one.Path, one.Message = unmade(one.Object), unmade(one.Path), unmade(one.Message)
		l.out.Findings = append(l.out.Findings, one)
	}
}

// setOf finds objects of one kind.
func setOf(set manifest.Set, kind string) []manifest.Object {
	var out []manifest.Object
	for _, o := range set {
		if o.ID().Kind == kind {
			out = append(out, o)
		}
	}
	return out
}
