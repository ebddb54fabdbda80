package lint

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"zaentrum.io/zae/internal/manifest"
	"zaentrum.io/zae/internal/render"
)

// outlet is a field that a given text comes out in.
type outlet struct {
	slot   slot
	text   string // what was given instead
	file   string // the template that renders the object
	line   int    // of what it renders, from 0
	object string
	path   string
	// whole tells that the field is the text and nothing else; encoded that it should be base64.
	whole, encoded bool
}

func (o outlet) same(other outlet) bool {
	return o.slot == other.slot && o.file == other.file && o.line == other.line
}

// textProbe compares what a set of values renders with what it renders when other texts are given.
type textProbe struct {
	*linter
	platform map[string]any
	given    given
	number   int
	before   []render.Text
}

// class gives texts of a class, and answers with the fields that they do not come out in as they are.
func (p *textProbe) class(ctx context.Context, slots []slot, number int) ([]outlet, error) {
	others := p.awkward(p.given, slots, number)
	if len(others) == 0 {
		return nil, nil
	}
	result, problems, err := p.try(ctx, p.given.with(others), p.platform, true)
	if err != nil {
		return nil, err
	}
	if len(problems) > 0 {
		return nil, p.refused(ctx, slots, others, number, problems)
	}
	var out []outlet
	for _, before := range p.before {
		i := slices.IndexFunc(result.Texts, func(t render.Text) bool { return t.File == before.File })
		if i >= 0 {
			out = append(out, differ(before, result.Texts[i].Text, slots, others)...)
		}
	}
	return out, nil
}

// refused tells of the inputs whose awkward texts the templates do not take, each tried by itself.
func (p *textProbe) refused(ctx context.Context, slots []slot, others map[string]string, number int, problems []string) error {
	if p.refusesValues(problems) {
		return nil
	}
	tried := 0
	for _, s := range slots {
		text, ok := others[s.text]
		narrowed := number == anyClass && !strings.HasPrefix(text, anyStart) // the schema says something of it
		if !ok || narrowed || p.probed[s.path] || tried == maxSuspicions || p.spare() < 1 {
			continue
		}
		alone := p.given.with(map[string]string{s.text: text})
		if len(others) > 1 {
			tried++
			var err error
			if _, problems, err = p.try(ctx, alone, p.platform, true); err != nil {
				return err
			}
		}
		if len(problems) > 0 && !p.refusesValues(problems) {
			p.probed[s.path] = true
			p.tellRefused("text-not-narrowed", s.path, "with quotes, a colon and a backslash in it", problems[0], alone)
		}
	}
	return nil
}

// tellRefused tells that templates do not take a value that the schema takes, unless something is told already that says
// it: of the input, or of the same fault in any set of values. g are values that show it.
func (l *linter) tellRefused(rule, path, how, problem string, g given) {
	one := l.problem(problem)
	if slices.ContainsFunc(l.f.list, func(f Finding) bool {
		return f.Rule == rule && f.Path == path || f.Rule == one.Rule && f.File == one.File && f.Message == one.Message
	}) {
		return
	}
	one.Rule, one.Path, one.given = rule, path, &g
	one.Message = path + ": " + how + ", the chart says: " + problem
	if one.File == "" {
		at := l.inSchema(path)
		one.File, one.Line, one.Column = schemaFile, at.line, at.column
	}
	l.f.add(one, static)
}

// maxOutlets bounds the places of one rendered text that are looked at.
const maxOutlets = 200

// differ are the fields of one template's objects in which a text is not what was given: another one, no text, or YAML
// that is none.
func differ(before render.Text, after string, slots []slot, others map[string]string) []outlet {
	lines, now := strings.Split(before.Text, "\n"), strings.Split(after, "\n")
	holds := func(line string) []slot {
		return slices.DeleteFunc(slices.Clone(slots), func(s slot) bool { return others[s.text] == "" || !strings.Contains(line, s.text) })
	}
	pairs := align(lines, now, func(line string) int {
		at := -1
		for _, s := range holds(line) {
			if i := strings.Index(line, s.text); at < 0 || i < at {
				at = i
			}
		}
		return at
	})
	var out []outlet
	for i, line := range lines {
		in := holds(line)
		if len(in) == 0 || pairs[i] == nil || len(out) == maxOutlets {
			continue
		}
		start, end := document(lines, i)
		m := newMarked(lines[start:end], i-start, pairs[i], in, others)
		for n, s := range in {
			o := outlet{slot: s, text: others[s.text], file: before.File, line: i}
			if o.breaks(m, n) {
				out = append(out, o)
			}
		}
	}
	return out
}

// document is the YAML document that a line is in: its first line, and the one behind its last.
func document(lines []string, i int) (start, end int) {
	for start = i; start > 0 && !strings.HasPrefix(lines[start-1], "---"); start-- {
	}
	for end = i + 1; end < len(lines) && !strings.HasPrefix(lines[end], "---"); end++ {
	}
	return start, end
}

// maxResync is how far is looked for a line after one that has changed into others.
const maxResync = 30

// align finds for each line that something may have changed in what it has become, as far as it is clear. changes is where
// in a line that is; below 0 for nowhere.
func align(before, after []string, changes func(string) int) map[int][]string {
	holds := func(line string) bool { return changes(line) >= 0 }
	sameStart := func(a, b string) bool {
		start := lineKey.FindString(a)
		return strings.HasPrefix(b, start[:min(len(start), changes(a))])
	}
	out := map[int][]string{}
	j := 0
	for i := 0; i < len(before) && j < len(after); i++ {
		if !holds(before[i]) {
			switch {
			case before[i] == after[j]:
				j++
			case i+1 < len(before) && j+1 < len(after) && !holds(before[i+1]) && before[i+1] == after[j+1]:
				j++ // one that depends on the text, such as a checksum
			default:
				k := slices.Index(after[j:min(j+maxResync, len(after))], before[i])
				if k >= 0 && strings.TrimSpace(before[i]) != "" {
					j += k + 1
				}
			}
			continue
		}
		next := len(after)
		for k := j + 1; k < min(j+maxResync, len(after)); k++ {
			if i+1 < len(before) && (before[i+1] == after[k] || holds(before[i+1]) && sameStart(before[i+1], after[k])) {
				next = k
				break
			}
		}
		if next == len(after) && i+1 < len(before) && len(after)-j > 2 { // the end is not near
			continue
		}
		if sameStart(before[i], after[j]) {
			out[i] = after[j:next]
		}
		j = next
	}
	return out
}

// lineKey is the key or item that a line begins with.
var lineKey = regexp.MustCompile(`^[ \t]*(?:- +)*(?:["']?[A-Za-z0-9_./$-]+["']?:)?`)

// markedLine is a line of a document in which some texts come out, and what it has become with others.
type markedLine struct {
	was, is *strings.Replacer // the marks' texts before, and now
	marks   []string
	fields  []part // of the document with marks in the place of the texts
	now     []part // of the document with what the line has become
	valid   bool   // that is a document
	line    string // what the line has become
}

func newMarked(lines []string, at int, now []string, in []slot, others map[string]string) *markedLine {
	m := &markedLine{line: strings.Join(now, "\n")}
	var was, is, mark []string
	for n, s := range in {
		one := fmt.Sprintf("Zq%02dd9c8b7a6f5e4d3c2b1aYw", n)
		m.marks = append(m.marks, one)
		was, is, mark = append(was, one, s.text), append(is, one, others[s.text]), append(mark, s.text, one)
	}
	m.was, m.is = strings.NewReplacer(was...), strings.NewReplacer(is...)
	m.fields, _ = parts(slices.Concat(lines[:at], []string{strings.NewReplacer(mark...).Replace(lines[at])}, lines[at+1:]))
	m.now, m.valid = parts(slices.Concat(lines[:at], now, lines[at+1:]))
	return m
}

// breaks tells whether the text of a mark breaks what is around it, or is another one when it is read. It finds out which
// field that is.
func (o *outlet) breaks(m *markedLine, n int) bool {
	mark := m.marks[n]
	i := slices.IndexFunc(m.fields, func(f part) bool { return strings.Contains(f.text, mark) })
	if i < 0 {
		return false // in a comment, or where it is no text
	}
	was := m.fields[i]
	o.object, o.path, o.whole = m.was.Replace(was.object), m.was.Replace(was.path), was.text == mark
	if o.encoded = was.data && strings.HasPrefix(was.path, "data") && strings.Trim(o.text, base64Letters) != ""; o.encoded {
		return true
	}
	if slices.ContainsFunc(strings.Split(o.text, "\n"), func(line string) bool { return !strings.Contains(m.line, line) }) {
		return false // the template makes something else of it, or escapes it
	}
	want := m.is.Replace(was.text)
	if !m.valid || m.is.Replace(was.path) != was.path || was.key && len(want) < shortestSecret { // short keys are not among the leaves
		return !m.valid
	}
	return !slices.ContainsFunc(m.now, func(f part) bool {
		return f.index == was.index && f.path == was.path && f.key == was.key && !f.other && f.text == want
	})
}

const base64Letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="

// part is a leaf with its object.
type part struct {
	leaf
	index  int // of the object in the document
	object string
}

// parts are all fields of a rendered document; false if it is none.
func parts(lines []string) ([]part, bool) {
	docs, err := manifest.Decode([]byte(strings.Join(lines, "\n")))
	if err != nil {
		return nil, false
	}
	var out []part
	index := 0
	var add func(v any, depth int)
	add = func(v any, depth int) {
		tree, ok := v.(map[string]any)
		if !ok {
			return
		}
		if items, isList := tree["items"].([]any); isList && tree["kind"] == "List" && depth < 10 {
			for _, item := range items {
				add(item, depth+1)
			}
			return
		}
		o := manifest.Object{Tree: tree}
		for _, leaf := range leaves(o) {
			out = append(out, part{leaf, index, o.ID().String()})
		}
		index++
	}
	for _, doc := range docs {
		add(doc, 0)
	}
	return out, true
}
