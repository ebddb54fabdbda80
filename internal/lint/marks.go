package lint

import (
	"regexp"
	"slices"
	"strings"
	"text/template/parse"

	"go.yaml.in/yaml/v3"

	"zaentrum.io/zae/internal/chart"
)

// Where in a template a rendered line comes from is found by rendering once more with marks in the templates: a
// character for each line that is a key or an item, which is told to nobody and taken out again. Whatever conditions,
// loops and named templates do, the marks go along.

// origin is a place in a template.
type origin struct {
	file string
	at   position
	// field tells that it is of the field that was looked for, or of one around it, and not just of the object.
	field bool
}

// marks are the places that were marked, by number.
type marks struct{ places []origin }

// The characters that marks are: those for private use that no font and no chart has.
const (
	firstMark, lastMark   = 0xF0000, 0xFFFFD
	secondMark, finalMark = 0x100000, 0x10FFFD
	maxMarks              = lastMark - firstMark + 1 + finalMark - secondMark + 1
)

func markRune(n int) rune {
	if n > lastMark-firstMark {
		return rune(secondMark + n - (lastMark - firstMark + 1))
	}
	return rune(firstMark + n)
}

// of is the place that a character marks.
func (m *marks) of(r rune) (origin, bool) {
	n := -1
	switch {
	case r >= firstMark && r <= lastMark:
		n = int(r - firstMark)
	case r >= secondMark && r <= finalMark:
		n = int(r-secondMark) + lastMark - firstMark + 1
	}
	if n < 0 || n >= len(m.places) {
		return origin{}, false
	}
	return m.places[n], true
}

// markFiles is a chart's files with marked templates; nil when there is nothing to mark. Named templates are only
// marked if their texts are: a template that reads what another one renders as data may not find it then.
func markFiles(files []chart.File, named bool) ([]chart.File, *marks) {
	m := &marks{}
	out := slices.Clone(files)
	for i, f := range out {
		if !isTemplate(f.Name) {
			continue
		}
		text := string(f.Data)
		if strings.ContainsFunc(text, func(r rune) bool { return r >= firstMark }) {
			continue
		}
		out[i].Data = []byte(m.mark(f.Name, text, named))
	}
	if len(m.places) == 0 {
		return nil, nil
	}
	return out, m
}

func isTemplate(file string) bool { return strings.Contains("/"+file, "/templates/") }

// What is marked: where a line begins with a key, an item or a mapping in braces, and where its key is put together.
var (
	lineStart = regexp.MustCompile(`^(?:-(?:[ \t]|\r?$)|["']?[A-Za-z0-9_./$-]+["']?[ \t]*:(?:[ \t]|\r?$)|\{)`)
	lineMid   = regexp.MustCompile(`^[A-Za-z0-9_./-]*["']?[ \t]*:(?:[ \t]|\r?$)`)
)

// mark is a template's text with marks in it.
func (m *marks) mark(file, text string, named bool) string {
	var at []int
	for name, tree := range parseText(text) {
		if name != mainTree && !named {
			continue
		}
		eachText(tree.Root, func(n *parse.TextNode) {
			at = append(at, markable(text, int(n.Pos), len(n.Text), name == mainTree)...)
		})
	}
	slices.Sort(at)
	at = slices.Compact(at)
	var b strings.Builder
	last := 0
	for _, i := range at {
		if len(m.places) == maxMarks {
			break
		}
		b.WriteString(text[last:i])
		b.WriteRune(markRune(len(m.places)))
		m.places = append(m.places, origin{file: file, at: positionAt(text, i)})
		last = i
	}
	b.WriteString(text[last:])
	return b.String()
}

// markable are the places to mark in the part of a template that is text, and not action: each line that is not read
// by another template, else those that look like YAML.
func markable(text string, start, length int, all bool) []int {
	end := min(start+length, len(text))
	var out []int
	for at := start; at < end; {
		next := end
		if i := strings.IndexByte(text[at:end], '\n'); i >= 0 {
			next = at + i + 1
		}
		line := strings.TrimSuffix(text[at:next], "\n")
		begins := at == 0 || text[at-1] == '\n' || strings.HasSuffix(strings.TrimRight(text[:at], " \t\r\n"), "-}}")
		word := at + len(line) - len(strings.TrimLeft(line, " \t"))
		switch {
		case begins && word < next-1 && all, begins && lineStart.MatchString(strings.TrimLeft(line, " \t")):
			out = append(out, word)
		case !begins && lineMid.MatchString(line):
			out = append(out, at)
		}
		at = next
	}
	return out
}

// eachText visits the texts between the actions of a template.
func eachText(n parse.Node, visit func(*parse.TextNode)) {
	branch := func(b *parse.BranchNode) {
		eachText(b.List, visit)
		if b.ElseList != nil {
			eachText(b.ElseList, visit)
		}
	}
	switch n := n.(type) {
	case *parse.ListNode:
		if n == nil {
			return
		}
		for _, item := range n.Nodes {
			eachText(item, visit)
		}
	case *parse.TextNode:
		visit(n)
	case *parse.IfNode:
		branch(&n.BranchNode)
	case *parse.RangeNode:
		branch(&n.BranchNode)
	case *parse.WithNode:
		branch(&n.BranchNode)
	}
}

// markedText is what a template renders, without the marks, and what they mark.
type markedText struct {
	text  string
	lines [][]placedMark // by line, from 0
	docs  []*yaml.Node   // once they were asked for
}

// placedMark is a mark in a rendered line, in front of the column, from 1.
type placedMark struct {
	column int
	origin
}

func (m *marks) read(text string) *markedText {
	out := &markedText{}
	var b strings.Builder
	for line := range strings.Lines(text) {
		var found []placedMark
		column := 1
		for _, r := range line {
			if o, marked := m.of(r); marked {
				found = append(found, placedMark{column, o})
				continue
			}
			b.WriteRune(r)
			column++
		}
		out.lines = append(out.lines, found)
	}
	out.text = b.String()
	return out
}

// at is where a place of the rendered text comes from, if its line says so.
func (t *markedText) at(line, column int) (origin, bool) {
	if line < 1 || line > len(t.lines) || len(t.lines[line-1]) == 0 {
		return origin{}, false
	}
	found := t.lines[line-1][0]
	for _, m := range t.lines[line-1] {
		if m.column <= column {
			found = m
		}
	}
	return found.origin, true
}

// above is where a rendered line comes from, or the nearest one above it that says so.
func (t *markedText) above(line int) (origin, bool) {
	for ; line > 0; line-- {
		if o, ok := t.at(line, 0); ok {
			return o, true
		}
	}
	return origin{}, false
}
