package lint

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"zaentrum.io/zae/internal/values"
)

// slot is a text that was made up and given.
type slot struct {
	path   string // as findings name it
	text   string
	secret bool
	input  string // the path of the input it is in
}

// class is a kind of awkward text: what it is to break, texts of the kind, of which the first is taken that the schema
// accepts, and how it is told that they break it.
type class struct {
	texts  []string
	breaks string
}

// anyStart has everything in it but a second line.
const anyStart = "Zs'\"x: #{\\y}"

// The classes of awkward texts. Those of the first are of all kinds at once; it is found out which one it is with the
// others, in their order.
var classes = []class{
	{[]string{anyStart + "\n!Qx", anyStart + "!Qx"}, "with quotes, a colon, a backslash and a second line in it, it is not what comes out"},
	{[]string{"yes", "0123", "1e3", "null", "true", "1.10", "0x1F", "12345678", "~"}, "written without quotes: a text such as %q becomes something else"},
	{[]string{"one: two #three", "one: two", "one #two", "*one", "&one", "!one", "%one", "@one", "{one"}, "written without quotes: a text such as %q is cut short, or breaks the YAML around it"},
	{[]string{"one'two\"three\\d", "one'two\"three", "one\\d", "one\"two", "one'two"}, "a text with quotes or a backslash in it breaks the quotes around it"},
	{[]string{"first\nsecond: line", "first\nsecond"}, "a text of several lines breaks the YAML around it"},
}

// The classes by what they are about.
const (
	anyClass = iota
	typeClass
	plainClass
	quoteClass
	lineClass
)

const (
	minSlot  = 8 // letters of a text that is found again
	maxSlots = 60
)

// slots are the texts of a set of values that were made up and are found again.
func (l *linter) slots(g given) []slot {
	var out []slot
	add := func(input, path, text string, secret bool) {
		if len(text) >= minSlot && len(out) < maxSlots && !strings.ContainsAny(text, " \n") && !l.knows(text) &&
			!slices.ContainsFunc(out, func(s slot) bool { return strings.Contains(s.text, text) || strings.Contains(text, s.text) }) {
			out = append(out, slot{path, text, secret, input})
		}
	}
	each := func(tree map[string]any) {
		for _, in := range l.space.schema.Inputs() {
			if in.Unaddressable || in.Enum != nil {
				continue
			}
			if v, ok := values.Get(tree, strings.Split(in.Path, ".")); ok {
				givenTexts(v, in.Path, func(path, text string) {
					_, secret := g.secrets[path]
					add(in.Path, path, text, secret)
				})
			}
		}
	}
	each(g.spec)
	for _, from := range g.from {
		if from.TargetPath != "" {
			add(from.TargetPath, from.TargetPath, from.Text, true)
		} else {
			each(from.Document)
		}
	}
	return out
}

// givenTexts visits the texts in a value, with their paths.
func givenTexts(v any, path string, visit func(path, text string)) {
	switch v := v.(type) {
	case string:
		visit(path, v)
	case []any:
		for i, item := range v {
			givenTexts(item, fmt.Sprintf("%s[%d]", path, i), visit)
		}
	case map[string]any:
		for _, a := range flat(nil, v) {
			at := path + "." + strings.Join(a.path, ".")
			if text, ok := a.value.(string); ok {
				visit(at, text)
			} else if list, ok := a.value.([]any); ok {
				givenTexts(list, at, visit)
			}
		}
	}
}

// knows tells whether a text stands in the chart itself.
func (l *linter) knows(text string) bool {
	for _, file := range l.text {
		if strings.Contains(file, text) {
			return true
		}
	}
	return false
}

// with are the values with other texts in the place of some.
func (g given) with(others map[string]string) given {
	other := func(text string) string {
		if o, ok := others[text]; ok {
			return o
		}
		return text
	}
	out := g
	out.spec, _ = swapped(g.spec, other).(map[string]any)
	out.from = nil
	for _, from := range g.from {
		from.Text = other(from.Text)
		from.Document, _ = swapped(from.Document, other).(map[string]any)
		out.from = append(out.from, from)
	}
	return out
}

// awkward are the texts of a class for slots, by the slots' own, as far as the schema accepts some.
func (l *linter) awkward(g given, slots []slot, number int) map[string]string {
	out := map[string]string{}
	for _, s := range slots {
		if text, ok := l.takesText(g, s, classes[number].texts); ok {
			out[s.text] = text
		} else if number == anyClass {
			for _, c := range classes[plainClass:] {
				if text, ok := l.takesText(g, s, c.texts); ok {
					out[s.text] = text
					break
				}
			}
			if text, ok := l.takesText(g, s, classes[typeClass].texts); ok && out[s.text] == "" {
				out[s.text] = text
			}
		}
	}
	return out
}

// takesText is the first of some texts that the schema takes for a slot.
func (l *linter) takesText(g given, s slot, texts []string) (string, bool) {
	in, known := l.space.schema.Input(s.input)
	if !known {
		return "", false
	}
	whole := s.path == s.input
	for _, text := range texts {
		if whole {
			text = fit(text, in)
		}
		v := any(text)
		if !whole { // the input is a list or map that has the text in it
			now, _ := g.get(s.input)
			v = swapped(now, func(one string) string {
				if one == s.text {
					return text
				}
				return one
			})
		}
		if l.space.made.accepts(in, v) {
			return text, true
		}
	}
	return "", false
}

// get is what is given for an input that is no secret of its own.
func (g given) get(path string) (any, bool) {
	keys := strings.Split(path, ".")
	if v, ok := values.Get(g.spec, keys); ok {
		return v, true
	}
	for _, from := range g.from {
		if v, ok := values.Get(from.Document, keys); ok && from.TargetPath == "" {
			return v, true
		}
	}
	return nil, false
}

// probeTexts looks for texts that do not come out as they are given.
func (l *linter) probeTexts(ctx context.Context, g given, number int, platform map[string]any) error {
	slots := l.slots(g)
	if len(slots) == 0 || l.space.tired {
		return nil
	}
	base, problems, err := l.try(ctx, g, platform, true)
	if err != nil || len(problems) > 0 {
		return err
	}
	texts := &textProbe{linter: l, platform: platform, given: g, number: number, before: base.Texts}
	broken, err := texts.class(ctx, slots, anyClass)
	if err != nil || len(broken) == 0 {
		return err
	}
	encoded := func(o outlet) bool { return o.encoded }
	for _, o := range broken {
		if encoded(o) {
			l.tellText(o, anyClass, number)
		}
	}
	broken = slices.DeleteFunc(broken, encoded)
	for n := typeClass; n <= lineClass && len(broken) > 0; n++ {
		var suspects []slot
		for _, s := range slots {
			if slices.ContainsFunc(broken, func(b outlet) bool { return b.slot == s }) {
				suspects = append(suspects, s)
			}
		}
		found, err := texts.class(ctx, suspects, n)
		if err != nil {
			return err
		}
		for _, o := range found {
			l.tellText(o, n, number)
		}
		broken = slices.DeleteFunc(broken, func(b outlet) bool {
			return slices.ContainsFunc(found, func(o outlet) bool { return o.same(b) })
		})
	}
	for _, o := range broken {
		l.tellText(o, anyClass, number)
	}
	return nil
}

// tellText tells of a text that does not come out as it is given, at the field that it is in.
func (l *linter) tellText(o outlet, number int, row int) {
	one := Finding{Rule: "text-unquoted", Object: o.object, File: o.file, Path: o.path, Message: o.slot.path + ": " + classes[number].breaks}
	if strings.Contains(one.Message, "%q") {
		one.Message = fmt.Sprintf(one.Message, o.text)
	}
	switch {
	case o.slot.secret:
		one.Rule = "secret-text"
	case number == lineClass || number != typeClass && !o.whole:
		one.Severity = Info // what is meant for it is hardly ever such a text
	}
	if o.encoded {
		one.Message = o.slot.path + ": written into data as it is, and a text is seldom base64"
	}
	at := l.locate(o.file, o.path)
	one.Line, one.Column, one.render = at.line, at.column, row+1
	l.f.add(one, static)
}
