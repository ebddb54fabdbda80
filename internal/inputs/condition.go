package inputs

import (
	"encoding/json"
	"slices"
	"strings"
)

// condition is what makes an input required, when it is simple enough to say: values of one other property, or
// that it is given at all.
type condition struct {
	path   []string
	values []any // any of them; none: that it is given
	not    bool  // anything else instead
	absent bool  // or nothing there
}

// Bounds of what is said about an input.
const (
	maxConditions = 3
	maxOptions    = 5
	maxHints      = 20_000 // schemas looked at for conditions in a whole schema; with more the rest is not said
)

// say writes conditions for people. Those that are too many to read are left out altogether.
func say(conditions []condition) string {
	var out []string
	for _, c := range conditions {
		if text := c.say(); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	if len(out) == 0 || len(out) > maxConditions {
		return ""
	}
	return "when " + strings.Join(out, " or when ")
}

func (c condition) say() string {
	path := show(strings.Join(c.path, "."))
	if len(c.values) == 0 {
		return path + " is given"
	}
	options := make([]string, len(c.values))
	for i, v := range c.values {
		options[i] = option(v)
	}
	text := path + " is "
	if c.not {
		text += "not "
	}
	text += strings.Join(options, " or ")
	if c.absent {
		text += " or not given"
	}
	return text
}

func option(v any) string {
	if s, ok := v.(string); ok && s != "" {
		return showKey(s)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return showKey(string(text))
}

// holds tells whether the condition is met by values of which get says what is at a path.
func (c condition) holds(get func(path []string) (any, bool)) bool {
	v, there := get(c.path)
	if len(c.values) == 0 {
		return there
	}
	if !there {
		return c.absent
	}
	return c.not != slices.ContainsFunc(c.values, func(other any) bool { return same(v, other) })
}

func ruleKey(path []string) string { return strings.Join(path, "\x00") }

// conditions notes what the schemas of an object at a path require on a condition that can be said.
func (d *describer) conditions(v view, at []string) {
	for _, s := range v {
		if d.look(0); d.hints > maxHints {
			return
		}
		for _, k := range s.kids["if"] {
			c, ok := d.simple(k.sub, at)
			if !ok {
				continue
			}
			for _, then := range s.kids["then"] {
				d.require(d.view(then.sub), at, c)
			}
			for _, otherwise := range s.kids["else"] {
				c := c
				c.not, c.absent = !c.not, !c.absent
				if len(c.values) > 0 {
					d.require(d.view(otherwise.sub), at, c)
				}
			}
		}
		list := s.src.field("dependencies")
		if list == nil {
			continue
		}
		for _, name := range list.keys {
			if !d.hint(0) {
				return
			}
			given := condition{path: append(slices.Clone(at), name)}
			for _, item := range list.fields[name].items {
				if item.kind == kindString {
					d.rule(append(slices.Clone(at), item.text), given)
				}
			}
		}
		for _, k := range s.kids["dependencies"] {
			d.require(d.view(k.sub), at, condition{path: append(slices.Clone(at), k.key)})
		}
	}
}

// hint counts the work of looking for conditions, and tells whether to go on.
func (d *describer) hint(n int) bool {
	d.hints += 1 + n
	return d.hints <= maxHints
}

func (d *describer) rule(path []string, c condition) {
	if !d.hint(0) {
		return
	}
	if d.rules == nil {
		d.rules = map[string][]condition{}
	}
	if key := ruleKey(path); len(d.rules[key]) <= maxConditions {
		d.rules[key] = append(d.rules[key], c)
	}
}

// require notes what the schemas require of an object at a path, and of the objects inside it.
func (d *describer) require(v view, at []string, c condition) {
	if len(at) > maxGroupDepth || !d.hint(len(v)) {
		return
	}
	for _, s := range v {
		if list := s.src.field("required"); list != nil {
			for _, item := range list.items {
				if item.kind == kindString {
					d.rule(append(slices.Clone(at), item.text), c)
				}
			}
		}
		for _, k := range s.kids["properties"] {
			if !d.hint(0) {
				return
			}
			d.require(d.view(k.sub), append(slices.Clone(at), k.key), c)
		}
	}
}

// simple reads the schema of an "if" on an object at a path: that one property is there, or that it has one of
// a few plain values.
func (d *describer) simple(s *subschema, at []string) (condition, bool) {
	s = s.target
	if len(at) > maxGroupDepth || !d.hint(len(s.src.keys)) || s.src.kind != kindObject {
		return condition{}, false
	}
	for _, key := range s.src.keys {
		switch key {
		case "properties", "required", "title", "description", "$comment":
		case "type":
			if text, _ := s.src.str(key); text != "object" {
				return condition{}, false
			}
		default:
			return condition{}, false
		}
	}
	var names []string
	if list := s.src.field("required"); list != nil {
		if len(list.items) > 1 {
			return condition{}, false
		}
		for _, item := range list.items {
			names = append(names, item.text)
		}
	}
	properties := s.kids["properties"]
	switch {
	case len(properties) == 0 && len(names) == 1:
		return condition{path: append(slices.Clone(at), names[0])}, true
	case len(properties) != 1 || (len(names) == 1 && names[0] != properties[0].key):
		return condition{}, false
	}
	path := append(slices.Clone(at), properties[0].key)
	inside := properties[0].sub.target
	// Without "required" the schema is met as well when there is nothing to look at.
	absent := len(names) == 0
	if c, ok := d.values(inside, path); ok {
		c.absent = absent
		return c, true
	}
	c, ok := d.simple(inside, path)
	return c, ok && c.absent == absent
}

// values reads a schema that lists a few plain values.
func (d *describer) values(s *subschema, path []string) (condition, bool) {
	c := condition{path: path}
	for _, key := range s.src.keys {
		field := s.src.fields[key]
		switch key {
		case "const":
			c.values = append(c.values, field.value())
		case "enum":
			if len(field.items) > maxOptions {
				return c, false
			}
			for _, item := range field.items {
				c.values = append(c.values, item.value())
			}
		case "type", "title", "description", "$comment":
		default:
			return c, false
		}
	}
	plain := !slices.ContainsFunc(c.values, func(v any) bool { return kindOf(v) == TypeJSON && v != nil })
	both := s.src.field("const") != nil && s.src.field("enum") != nil
	return c, plain && !both && len(c.values) > 0
}
