package lint

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/engine"
	"zaentrum.io/zae/internal/guard"
	"zaentrum.io/zae/internal/manifest"
	"zaentrum.io/zae/internal/values"
)

// guard runs the guardrails on what a render came to.
func (l *linter) guard(set manifest.Set, notRendered bool, number int, platform map[string]any) {
	facts := l.facts(set, notRendered, platform)
	all := guard.Check(facts)
	for _, g := range guard.Notices(facts) {
		if authorNotices[g.Rule] && g.Path != "spec.selector" { // which is told as service-without-pods
			all = append(all, g)
		}
	}
	for _, g := range all {
		switch {
		case l.quantity(g, set, number):
			continue // told of the input
		case g.Rule == "service-selects-own-pods" && g.Name == l.primary():
			continue // worse: told as service-without-pods
		case g.Rule == "valid-object" && strings.HasPrefix(g.What, "no volume"):
			continue // told as missing-volume, with the name
		}
		l.guardrail(g, number)
	}
}

// guardrail tells of one finding of the guardrails'.
func (l *linter) guardrail(g guard.Finding, number int) {
	one := Finding{Rule: g.Rule, Severity: severityOf(g.Level), File: g.Source, Path: g.Path, Message: g.What}
	at := l.locate(g.Source, g.Path)
	switch {
	case g.Kind != guard.ChartKind:
		one.Object = g.Kind + "/" + g.Name
	case l.text[g.Path] != "": // a file that may not be there
		one.File = g.Path
	default:
		at = l.inYAML(chartFile, chartRules[g.Rule]...)
	}
	one.Line, one.Column = at.line, at.column
	l.f.add(one, number)
}

// authorNotices are the notices about what only the author of a chart can put right.
var authorNotices = map[string]bool{"resource-requests": true, "primary-readiness": true, "primary-reachable": true}

const quantityFix = `Add "pattern": "^[0-9]+(\\.[0-9]+)?(m|[kMGTPE]|[KMGTPE]i)?$" to the input.`

// quantity tells of a made-up text where a quantity belongs: the schema takes any.
func (l *linter) quantity(g guard.Finding, set manifest.Set, number int) bool {
	if g.Rule != "wrong-type" || !strings.HasSuffix(g.What, "a quantity") || number < 0 && number != elsewhere {
		return false
	}
	for _, o := range set {
		if id := o.ID(); id.Kind != g.Kind || id.Name != g.Name || o.Source != g.Source {
			continue
		}
		for _, leaf := range leaves(o) {
			if leaf.path != g.Path || madeUp.FindString(leaf.text) != leaf.text || leaf.text == "" {
				continue
			}
			if number == elsewhere {
				return true // told of the platform with every default
			}
			for _, s := range l.slots(l.space.give(l.rows[number])) {
				if s.text == leaf.text && !s.secret {
					l.probed["text-not-narrowed\x00"+s.path] = true
					one := Finding{Rule: "text-not-narrowed", File: g.Source, Object: o.ID().String(), Path: g.Path, Fix: quantityFix, render: number + 1}
					one.Message = s.path + ": the schema takes any text, and with one, the field is refused: " + g.What
					at := l.locate(g.Source, g.Path)
					one.Line, one.Column = at.line, at.column
					l.f.add(one, static)
					return true
				}
			}
		}
	}
	return false
}

// facts are what the guardrails look at.
func (l *linter) facts(set manifest.Set, notRendered bool, platform map[string]any) guard.Facts {
	f := engine.Facts(l.name(), text(platform, "namespace"), l.chart, set, platform, !notRendered)
	f.MadeUp = madeUp.MatchString
	return f
}

// primary is the name of the Service that serves the addon's manifest.
func (l *linter) primary() string { return l.chart.Facts.Annotations[v1alpha1.ChartAnnotationPrimary] }

func text(tree map[string]any, path ...string) string {
	v, _ := values.Get(tree, path)
	s, _ := v.(string)
	return s
}

var lastKey = regexp.MustCompile(`([A-Za-z][A-Za-z0-9]*)(?:\[[0-9]+\])*$`)

// locate is where a template writes a field: its last name is there exactly once as a key.
func (l *linter) locate(file, path string) position {
	m := lastKey.FindStringSubmatch(path)
	source := l.text[file]
	if m == nil || source == "" {
		return position{}
	}
	spot := file + "\x00" + m[1]
	at, known := l.located[spot]
	if !known {
		key := regexp.MustCompile(`(?m)^[ \t]*(?:- +)?(` + regexp.QuoteMeta(m[1]) + `)[ \t]*:`)
		if found := key.FindAllStringSubmatchIndex(source, 2); len(found) == 1 {
			at = positionAt(source, found[0][2])
		}
		l.located[spot] = at
	}
	return at
}

// finding is one of an object, at a field.
func (l *linter) finding(rule string, o manifest.Object, path, message string, number int) {
	one := Finding{Rule: rule, File: o.Source, Object: o.ID().String(), Path: path, Message: message}
	at := l.locate(o.Source, path)
	one.Line, one.Column = at.line, at.column
	l.f.add(one, number)
}

// leaf is a text of an object, or a key, with the field's path.
type leaf struct {
	path string
	text string
	// key tells that it is one of the names at the path.
	key bool
	// data tells that it is a value of a Secret's data.
	data bool
	// checksum tells that it is an annotation that is there to change.
	checksum bool
	// other tells that it is no text, but a number or boolean that is written as one.
	other bool
}

// leaves are all texts of an object, keys included, in a fixed order.
func leaves(o manifest.Object) []leaf {
	var out []leaf
	secret := o.ID().Kind == "Secret"
	var walk func(path string, v any, data, checksum bool)
	walk = func(path string, v any, data, checksum bool) {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				at := strings.TrimPrefix(path+"."+key, ".")
				if strings.ContainsAny(key, "./ ") {
					at = path + "[" + key + "]"
				}
				if len(key) >= shortestSecret {
					out = append(out, leaf{path: path, text: key, key: true})
				}
				annotation := strings.HasSuffix(path, "annotations") && (strings.Contains(key, "checksum") || strings.Contains(key, "hash"))
				walk(at, v[key], data || secret && path == "" && (key == "data" || key == "stringData"), checksum || annotation)
			}
		case []any:
			for i, item := range v {
				walk(path+"["+strconv.Itoa(i)+"]", item, data, checksum)
			}
		case string:
			out = append(out, leaf{path: path, text: v, data: data, checksum: checksum})
		case nil:
		default:
			out = append(out, leaf{path: path, text: fmt.Sprint(v), data: data, checksum: checksum, other: true})
		}
	}
	walk("", o.Tree, false, false)
	return out
}

// judgeObjects looks at what one set of values renders.
func (l *linter) judgeObjects(set manifest.Set, g given, platform map[string]any, number int) {
	l.leaks(set, g, number)
	l.references(set, platform, number)
	l.images(set, number)
	for _, o := range set {
		l.annotations(o, number)
		if o.ID().Kind == "Job" {
			l.job(o, number)
		}
	}
}

// annotations tells of Helm's.
func (l *linter) annotations(o manifest.Object, number int) {
	v, _ := values.Get(o.Tree, []string{"metadata", "annotations"})
	all, _ := v.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		name, ok := strings.CutPrefix(key, "helm.sh/")
		if !ok {
			continue
		}
		path := "metadata.annotations[" + key + "]"
		at := position{}
		written := regexp.MustCompile(`(?m)^[ \t]*["']?(` + regexp.QuoteMeta(key) + `)["']?[ \t]*:`)
		if found := written.FindAllStringSubmatchIndex(l.text[o.Source], 2); len(found) == 1 {
			at = positionAt(l.text[o.Source], found[0][2])
		}
		one := Finding{Rule: "helm-annotation", File: o.Source, Line: at.line, Column: at.column, Object: o.ID().String(), Path: path, Message: "the annotation " + key + " does nothing here"}
		switch name {
		case "hook":
			one.Rule, one.Message = "hook", "the hook is applied as an ordinary object, on every reconcile"
		case "hook-weight", "hook-delete-policy":
			if _, hook := all["helm.sh/hook"]; hook {
				continue // told with the hook
			}
		}
		l.f.add(one, number)
	}
}

// job tells of what keeps a Job from running twice.
func (l *linter) job(o manifest.Object, number int) {
	spec, _ := o.Tree["spec"].(map[string]any)
	if _, ok := spec["ttlSecondsAfterFinished"]; ok {
		l.finding("job-runs-again", o, "spec.ttlSecondsAfterFinished", "is taken out, so that a finished Job stays", number)
	}
	if spec["backoffLimit"] == int64(0) {
		l.finding("job-runs-again", o, "spec.backoffLimit", "is 0: one failure and the addon stays degraded until the Job changes", number)
	}
}

// images tells of images that may change unseen.
func (l *linter) images(set manifest.Set, number int) {
	for _, o := range set {
		if kind := o.ID().Kind; kind != "Deployment" && kind != "Job" {
			continue
		}
		for _, leaf := range leaves(o) {
			if !imagePath.MatchString(leaf.path) {
				continue
			}
			if leaf.text != "" && !imageName.MatchString(leaf.text) && !madeUp.MatchString(leaf.text) {
				l.refers("image-not-pinned", Error, o, spot{path: leaf.path}, number, "no image has such a name: it is [HOST/]PATH in lower case, with :TAG, or @sha256: and 64 digits")
				continue
			}
			if strings.Contains(leaf.text, "@") {
				continue
			}
			_, tag, tagged := strings.Cut(leaf.text[strings.LastIndexByte(leaf.text, '/')+1:], ":")
			switch {
			case !tagged || tag == "":
				l.finding("image-not-pinned", o, leaf.path, "the image has no tag", number)
			case tag == "latest":
				l.finding("image-not-pinned", o, leaf.path, "the image's tag is latest", number)
			}
		}
	}
}

// imageName is what a container runtime takes for the name of an image.
var imageName = regexp.MustCompile(`^(?:(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])(?:\.(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))*(?::[0-9]+)?/|\[[a-fA-F0-9:]+\](?::[0-9]+)?/)?` +
	`[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*(?::[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127})?` +
	`(?:@(?:sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128}))?$`)

var imagePath = regexp.MustCompile(`^spec\.template\.spec\.(?:initContainers|containers)\[[0-9]+\]\.image$`)
