package lint

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/worker"
)

// maxOrigins bounds the renders that only look for where findings come from.
const maxOrigins = 8

// originate gives findings about rendered objects, and about text that is no object, their places in the templates.
func (l *linter) originate(ctx context.Context) error {
	left := maxOrigins
	for _, named := range []bool{true, false} {
		marked, m := l.marked(named)
		if marked == nil {
			return nil
		}
		tried := map[int]bool{}
		for {
			open := l.unplaced(tried)
			if len(open) == 0 || left == 0 {
				break
			}
			row := mostWanted(open)
			tried[row] = true
			left--
			texts, err := l.texts(ctx, marked, m, row)
			if err != nil {
				return err
			}
			for _, one := range open {
				if one.row == row {
					l.place(one.index, texts)
				}
			}
		}
	}
	return nil
}

// marked is the chart with marks in its templates; nil when there is nothing to mark, or no room for marks.
func (l *linter) marked(named bool) (*chart.Archive, *marks) {
	files, m := markFiles(l.files, named)
	if m == nil {
		return nil, nil
	}
	marked, err := chart.Repack(l.name(), files)
	if err != nil { // over a limit
		return nil, nil
	}
	return marked, m
}

// mostWanted is the render that shows most of the findings, of several the first.
func mostWanted(open []wanted) int {
	count := map[int]int{}
	best := open[0].row
	for _, one := range open {
		count[one.row]++
	}
	for _, one := range open {
		if count[one.row] > count[best] {
			best = one.row
		}
	}
	return best
}

// wanted is a finding that has no place yet, and a render that shows it.
type wanted struct{ index, row int }

// unplaced are the findings without a place of which a render that was not tried shows one.
func (l *linter) unplaced(tried map[int]bool) []wanted {
	var out []wanted
	for i, f := range l.f.list {
		if f.placed || f.Object == "" && !ofOutput(f.Message) {
			continue
		}
		for _, row := range l.f.rows[f.key()] {
			switch {
			case f.given != nil:
				row = ownRow - i
			case row == static || row == 0:
				row = l.base
			}
			if f.render > 0 {
				row = f.render - 1
			}
			if !tried[row] {
				out = append(out, wanted{i, row})
				break
			}
		}
	}
	return out
}

// ownRow less its index stands for the row of a finding that has values of its own.
const ownRow = -1000

// texts are what the marked templates render, by file. There are none when they do not render.
func (l *linter) texts(ctx context.Context, marked *chart.Archive, m *marks, row int) (map[string]*markedText, error) {
	platform := platformKeys()
	if row == elsewhere {
		row, platform = l.base, otherPlatform()
	}
	var g given
	switch {
	case row <= ownRow:
		g = *l.f.list[ownRow-row].given
	case row < 0 || row >= len(l.rows):
		return nil, nil
	default:
		g = l.space.give(l.rows[row])
	}
	job := g.job(l.name(), platform)
	job.Texts = true
	result, err := l.o.Worker.Render(ctx, marked, job)
	var over *worker.Overrun
	if errors.As(err, &over) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := map[string]*markedText{}
	for _, t := range result.Texts {
		out[t.File] = m.read(t.Text)
	}
	return out, nil
}

// noObject is how the renderer tells of a document that is none.
const noObject = ": a document that is not an object"

// noYAML is how it tells of a text that is no YAML.
const noYAML = ": not valid YAML"

// ofOutput tells whether a message is about text that a template renders.
func ofOutput(message string) bool {
	return outputLine.MatchString(message) || strings.HasSuffix(message, noObject) || strings.HasSuffix(message, noYAML)
}

// brokenLine is the line from which on a text is no YAML: with the lines before it, it is. It is 0 for what is YAML.
func brokenLine(text string) int {
	lines := strings.SplitAfter(text, "\n")
	broken := func(n int) bool {
		d := yaml.NewDecoder(strings.NewReader(strings.Join(lines[:n], "")))
		for {
			var doc yaml.Node
			if err := d.Decode(&doc); err != nil {
				return !errors.Is(err, io.EOF)
			}
		}
	}
	if !broken(len(lines)) {
		return 0
	}
	n := sort.Search(len(lines), broken)
	// What goes over several lines is broken until it ends.
	for ahead := n; ahead < min(n+maxAhead, len(lines)); ahead++ {
		if !broken(ahead) {
			n = ahead + 1
		}
	}
	return n
}

// maxAhead is how many lines a text or a list in brackets may go over without being taken for what is broken.
const maxAhead = 100

// firstNoObject is the line of the first document that is not an object.
func firstNoObject(text string) int {
	for _, doc := range documents(text) {
		if doc.Kind != yaml.MappingNode && doc.Tag != "!!null" {
			return doc.Line
		}
	}
	return 0
}

var (
	outputLine = regexp.MustCompile(`: line ([0-9]+) of its output: `)
	firstSet   = regexp.MustCompile(`, first set on line ([0-9]+)`)
)

// earlier says of a key that is there twice where it came first, if that is in the same file.
func (t *markedText) earlier(text, file string) string {
	n, _ := strconv.Atoi(firstSet.FindStringSubmatch(text)[1])
	if o, ok := t.above(n); ok && o.file == file {
		return ", first set on line " + strconv.Itoa(o.at.line)
	}
	return ", first set above"
}

// place gives a finding its place, if the texts tell it.
func (l *linter) place(i int, texts map[string]*markedText) {
	f := l.f.list[i]
	source := f.File
	if f.source != "" {
		source = f.source
	}
	t := texts[source]
	if t == nil {
		return
	}
	var o origin
	var found bool
	if line := outputLine.FindStringSubmatch(f.Message); line != nil || strings.HasSuffix(f.Message, noYAML) {
		if line == nil { // the parser cannot say where
			line = []string{": ", ""}
		}
		n, _ := strconv.Atoi(line[1])
		if strings.HasSuffix(f.Message, noYAML) { // the parser says where what it is in began
			n = cmp.Or(brokenLine(t.text), n)
		}
		if o, found = t.above(n); found {
			f.Message = strings.Replace(f.Message, line[0], ": what it renders here: ", 1)
			f.Message = firstSet.ReplaceAllStringFunc(f.Message, func(text string) string { return t.earlier(text, o.file) })
		}
	} else if strings.HasSuffix(f.Message, noObject) {
		o, found = t.above(firstNoObject(t.text))
	} else {
		o, found = l.fieldOrigin(t, f.Object, cmp.Or(f.field, f.Path))
		found = found && (o.field || f.Line == 0)
	}
	if !found {
		return
	}
	f.placed, f.source = true, source
	f.File, f.Line, f.Column = o.file, o.at.line, o.at.column
	l.f.replace(i, f)
}

// fieldOrigin is where a field of an object comes from, or the nearest one around it.
func (l *linter) fieldOrigin(t *markedText, object, path string) (origin, bool) {
	if t.docs == nil {
		t.docs = documents(t.text)
	}
	for _, doc := range t.docs {
		kind, name := child(doc, "kind"), child(child(doc, "metadata"), "name")
		if kind == nil || clean(kind.Value+"/"+valueOf(name)) != object {
			continue
		}
		trail, key := descend(doc, path)
		trail = append([]*yaml.Node{keyOf(doc, "kind")}, trail...)
		for i, n := range slices.Backward(trail) {
			if o, ok := t.at(n.Line, n.Column); ok {
				if i == len(trail)-1 {
					o.at = l.columnOf(o, key)
				}
				o.field = i > 0 || path == ""
				return o, true
			}
		}
	}
	return origin{}, false
}

// columnOf is where in its line a key stands, if it stands there once.
func (l *linter) columnOf(o origin, key string) position {
	lines := strings.Split(l.text[o.file], "\n")
	if key == "" || o.at.line > len(lines) {
		return o.at
	}
	written := regexp.MustCompile(`(?:^|[\s{,-])(["']?` + regexp.QuoteMeta(key) + `["']?)[ \t]*:`)
	if found := written.FindAllStringSubmatchIndex(lines[o.at.line-1], 2); len(found) == 1 {
		return position{o.at.line, 1 + len([]rune(lines[o.at.line-1][:found[0][2]]))}
	}
	return o.at
}

// maxDocuments bounds the objects that are looked at in one text, lists included.
const maxDocuments = 2000

// documents are the objects in a rendered text, those of lists too, as far as it is YAML.
func documents(text string) []*yaml.Node {
	var out []*yaml.Node
	left := maxDocuments
	d := yaml.NewDecoder(strings.NewReader(text))
	for left > 0 {
		var n yaml.Node
		if d.Decode(&n) != nil { // the end, or what is no YAML
			break
		}
		if len(n.Content) > 0 {
			out = expanded(out, n.Content[0], &left)
		}
	}
	return out
}

// expanded appends an object, or those of the list that it is. A list may hold itself.
func expanded(out []*yaml.Node, n *yaml.Node, left *int) []*yaml.Node {
	if *left--; *left < 0 {
		return out
	}
	items := child(n, "items")
	if valueOf(child(n, "kind")) != "List" || items == nil {
		return append(out, n)
	}
	for _, item := range items.Content {
		out = expanded(out, item, left)
	}
	return out
}

// entries are the keys of a mapping and their values; of anything else there are none.
func entries(n *yaml.Node) map[*yaml.Node]*yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	out := map[*yaml.Node]*yaml.Node{}
	if n == nil || n.Kind != yaml.MappingNode {
		return out
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		out[n.Content[i]] = n.Content[i+1]
	}
	return out
}

func keyOf(n *yaml.Node, name string) *yaml.Node {
	for key := range entries(n) {
		if key.Value == name {
			return key
		}
	}
	return nil
}

func child(n *yaml.Node, name string) *yaml.Node { return entries(n)[keyOf(n, name)] }

func valueOf(n *yaml.Node) string {
	if n == nil {
		return ""
	}
	return n.Value
}

// descend follows a path as findings write it, as far as it leads: the nodes of keys and items on the way, and the
// last key's name if the path ends there.
func descend(n *yaml.Node, path string) (trail []*yaml.Node, key string) {
	for path != "" {
		var at, next *yaml.Node
		var rest string
		if n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		if n.Kind == yaml.SequenceNode {
			inside, after, ok := strings.Cut(strings.TrimPrefix(path, "["), "]")
			i, err := strconv.Atoi(inside)
			if !ok || err != nil || i < 0 || i >= len(n.Content) {
				return trail, key
			}
			at, next, rest, key = n.Content[i], n.Content[i], after, ""
		} else {
			// Of keys that fit, the longest is meant: one may be the other's beginning.
			all := entries(n)
			for _, k := range slices.SortedFunc(maps.Keys(all), func(a, b *yaml.Node) int { return len(b.Value) - len(a.Value) }) {
				if after, ok := stepped(path, k.Value); ok {
					at, next, rest, key = k, all[k], after, k.Value
					break
				}
			}
		}
		if at == nil {
			return trail, key
		}
		trail, n, path = append(trail, at), next, rest
	}
	return trail, key
}

// stepped is a path without its first key, if it begins with it.
func stepped(path, key string) (rest string, ok bool) {
	if rest, ok = strings.CutPrefix(path, "["+key+"]"); ok {
		return rest, true
	}
	rest, ok = strings.CutPrefix(strings.TrimPrefix(path, "."), key)
	return rest, ok && key != "" && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
