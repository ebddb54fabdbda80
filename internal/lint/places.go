package lint

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/chart"
)

// Where in a chart's files findings are that no rendered object shows.

// inYAML is where a key of a YAML file stands, or the nearest one around it.
func (l *linter) inYAML(file string, keys ...string) position {
	return newYAMLDoc([]byte(l.text[file])).place(keys)
}

// chartRules are the keys of Chart.yaml that guardrails about the chart look at.
var chartRules = map[string][]string{
	"chart-api-version": {"apiVersion"},
	"chart-type":        {"type"},
	"chart-addon":       {"annotations", v1alpha1.ChartAnnotationAddon},
	"chart-primary":     {"annotations", v1alpha1.ChartAnnotationPrimary},
	"primary-service":   {"annotations", v1alpha1.ChartAnnotationPrimary},
}

// helmKeys are the keys of Chart.yaml, or of an object, that findings of Helm's lint are about, by how these begin.
var helmKeys = []struct{ begins, key string }{
	{"the chart", "name"},
	{"apiVersion", "apiVersion"},
	{"version", "version"},
	{"appVersion", "appVersion"},
	{"an entry of maintainers", "maintainers"},
	{"a maintainer", "maintainers"},
	{"an entry of sources", "sources"},
	{"icon", "icon"},
	{"type", "type"},
	{"dependencies", "dependencies"},
	{"two dependencies", "dependencies"},
	{"charts/", "dependencies"},
	{"an object's name", "name"},
	{"an object is of an API version", "apiVersion"},
	{"a workload has no selector", "spec"},
}

// helmWords are what findings of Helm's lint find in a template in so many words.
var helmWords = []struct{ begins, word string }{
	{".Release.Time", ".Release.Time"},
	{"crd-install", "crd-install"},
	{"helm.sh/resource-policy", "helm.sh/resource-policy"},
}

// helmPlace is where a finding of Helm's lint is, which names files only.
func (l *linter) helmPlace(file, what string) position {
	text := l.text[file]
	for _, w := range helmWords {
		if i := strings.Index(text, w.word); strings.HasPrefix(what, w.begins) && i >= 0 {
			return positionAt(text, i)
		}
	}
	for _, k := range helmKeys {
		switch {
		case !strings.HasPrefix(what, k.begins):
		case file == chartFile:
			return l.inYAML(file, k.key)
		default:
			return l.locate(file, k.key)
		}
	}
	if strings.Contains(what, "starts with an indent") {
		if indent := firstIndent.FindStringIndex(text); indent != nil {
			return positionAt(text, indent[0])
		}
	}
	return position{}
}

var firstIndent = regexp.MustCompile(`(?m)^[ \t]+\S`)

// templateError is how the renderer tells where a template failed: columns are bytes there, from 0.
var templateError = regexp.MustCompile(`^template error (?:at|in) (.+?)(?::([0-9]+)(?::([0-9]+))?)?$`)

// problem is a finding of a sentence of the renderer's, with its place.
func (l *linter) problem(text string) Finding {
	one := Finding{Rule: "render-fails", Message: text}
	m := templateError.FindStringSubmatch(text)
	if m == nil {
		if file, _, ok := strings.Cut(text, ": "); ok && l.text[l.realFile(file)] != "" {
			one.File = file
			at := l.calledAt(file, text)
			one.Line, one.Column = at.line, at.column
		}
		return one
	}
	one.File = strings.TrimPrefix(m[1], l.chart.Facts.Name+"/")
	one.Message = "template error in " + one.File
	if one.Line, _ = strconv.Atoi(m[2]); one.Line == 0 {
		return one
	}
	one.Message = fmt.Sprintf("template error at %s:%d", one.File, one.Line)
	if at, err := strconv.Atoi(m[3]); err == nil {
		one.Column = l.runeColumn(one.File, one.Line, at)
		one.Message += fmt.Sprintf(":%d", one.Column)
	}
	return one
}

// swallowedBy are the functions that answer with an error's text, as the renderer names them.
var swallowedBy = regexp.MustCompile(`: an error of ([A-Za-z0-9]+)(?:(?:, | or )([A-Za-z0-9]+))?(?: or ([A-Za-z0-9]+))? was rendered`)

// calledAt is where a template calls the one function that an error was rendered by, if it does so once.
func (l *linter) calledAt(file, text string) position {
	m := swallowedBy.FindStringSubmatch(text)
	if m == nil {
		return position{}
	}
	body := l.text[l.realFile(file)]
	call := regexp.MustCompile(`\b(?:` + strings.Join(slices.DeleteFunc(m[1:], func(s string) bool { return s == "" }), "|") + `)\b`)
	if found := call.FindAllStringIndex(body, 2); len(found) == 1 {
		return positionAt(body, found[0][0])
	}
	return position{}
}

// runeColumn is the column, in characters from 1, of a byte of a line.
func (l *linter) runeColumn(file string, line, at int) int {
	lines := strings.Split(l.text[l.realFile(file)], "\n")
	if line > len(lines) || at > len(lines[line-1]) {
		return at + 1
	}
	return 1 + utf8.RuneCountInString(lines[line-1][:at])
}

// inSchema is where an input is declared, if it is.
func (l *linter) inSchema(path string) position {
	doc := newSchemaDoc(l.chart.Schema)
	return doc.place(doc.named(doc.root, path))
}

// declaredAt is the schema that declares an input, and where: a bundled chart may have one of its own.
func (l *linter) declaredAt(path string) (file string, at position) {
	file, doc, n := l.declared(path)
	if n == nil {
		return l.schemaOrChart(), position{}
	}
	return file, doc.place(n)
}

// declared is the schema that declares an input, and the declaration; nil for none.
func (l *linter) declared(path string) (file string, doc *schemaDoc, n *jsonNode) {
	doc = newSchemaDoc(l.chart.Schema)
	if n := doc.named(doc.root, path); n != nil {
		return schemaFile, doc, n
	}
	key, below, _ := strings.Cut(path, ".")
	for _, b := range bundles(l.text, "", "") {
		file := b.file + "/" + schemaFile
		if b.helm != "charts/"+key || l.text[file] == "" {
			continue
		}
		doc := newSchemaDoc([]byte(l.text[file]))
		if n := doc.named(doc.root, below); n != nil {
			return file, doc, n
		}
	}
	return "", nil, nil
}

// defaultAt is where a chart's own value stands: in values.yaml, or in that of a bundled chart.
func (l *linter) defaultAt(path []string) (file string, at position) {
	return defaultAt(l.text, path)
}

func defaultAt(text map[string]string, path []string) (file string, at position) {
	type found struct {
		file string
		at   position
		deep int
	}
	best := found{file: valuesFile}
	look := func(file string, keys []string) {
		doc := newYAMLDoc([]byte(text[file]))
		deep := 0
		for deep < len(keys) && doc.has(keys[:deep+1]) {
			deep++
		}
		if deep = deep + len(path) - len(keys); deep > best.deep {
			best = found{file, doc.place(keys), deep}
		}
	}
	look(valuesFile, path)
	for _, b := range bundles(text, "", "") {
		var prefix []string
		for _, name := range strings.Split(b.helm, "/") {
			if name != "charts" {
				prefix = append(prefix, name)
			}
		}
		if n := len(prefix); n < len(path) && slices.Equal(prefix, path[:n]) && text[b.file+"/"+valuesFile] != "" {
			look(b.file+"/"+valuesFile, path[n:])
		}
	}
	return best.file, best.at
}

// named finds a property by its dotted path, also where names have dots in them.
func (s *schemaDoc) named(n *jsonNode, path string) *jsonNode {
	for _, at := range s.around(n) {
		properties := at.fields["properties"]
		if properties == nil {
			continue
		}
		for _, name := range properties.keys {
			rest, begins := strings.CutPrefix(path, name)
			if !begins {
				continue
			}
			if rest == "" {
				return properties.fields[name]
			}
			if below, ok := strings.CutPrefix(rest, "."); ok {
				if found := s.named(properties.fields[name], below); found != nil {
					return found
				}
			}
		}
	}
	return nil
}

// How faults of loading name a place: the directories of bundled charts, a file, and a line or a key.
var (
	loadFile = regexp.MustCompile(`^chart: (?:([^: ]+): )?([A-Za-z0-9_.-]+\.(?:yaml|json|tgz)): (?:line ([0-9]+): )?`)
	loadKey  = regexp.MustCompile(`chart\.metadata\.([A-Za-z]+)|: ([A-Za-z]+): `)
)

// unreadableAt gives a finding of a chart that cannot be loaded its place, as far as the fault names one.
func (l *linter) unreadableAt(one Finding) Finding {
	m := loadFile.FindStringSubmatch(one.Message)
	if m == nil {
		return one
	}
	one.File = path.Join(m[1], m[2])
	one.Line, _ = strconv.Atoi(m[3])
	files, err := chart.Files(l.src.Archive)
	i := slices.IndexFunc(files, func(f chart.File) bool { return f.Name == one.File })
	if err != nil || i < 0 || one.Line > 0 {
		return one
	}
	for _, key := range loadKey.FindAllStringSubmatch(one.Message, -1) {
		at := newYAMLDoc(files[i].Data).place([]string{key[1] + key[2]})
		if at.line > 0 {
			one.Line, one.Column = at.line, at.column
		}
	}
	return one
}
