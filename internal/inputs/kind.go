package inputs

import (
	"encoding/json"
	"slices"
)

// kind is the type of an input. Of schemas in several alternatives any may be the one that applies: then it is
// the type that they agree on.
func (d *describer) kind(v view, at place, text bool) string {
	if !at.conditional {
		return v.kind(text)
	}
	kind := ""
	for _, s := range at.schemas {
		switch one := d.view(s).kind(text); kind {
		case "", one:
			kind = one
		default:
			return TypeJSON
		}
	}
	return kind
}

// kind is the one type that every schema of the view allows, null aside: a type of draft-07, or TypeJSON
// when there is none or more than one. text tells that a schema without any type means a string.
func (v view) kind(text bool) string {
	var allowed []string
	typed := false
	for _, s := range v {
		types := s.types()
		switch {
		case types == nil:
		case !typed:
			allowed, typed = types, true
		default:
			allowed = common(allowed, types)
		}
	}
	if !typed {
		return v.untyped(text)
	}
	if slices.Contains(allowed, "number") { // an integer is a number
		allowed = slices.DeleteFunc(slices.Clone(allowed), func(t string) bool { return t == "integer" })
	}
	if len(allowed) == 1 {
		return allowed[0]
	}
	return TypeJSON
}

// composed tells whether something is said about keys or items, so that no text is meant.
func (v view) composed() bool {
	return slices.ContainsFunc(v, func(s *subschema) bool {
		return len(s.kids["properties"])+len(s.kids["patternProperties"])+len(s.kids["additionalProperties"])+len(s.kids["items"]) > 0 ||
			s.src.field("required") != nil
	})
}

func (v view) untyped(text bool) string {
	for _, s := range v {
		if len(s.kids["properties"]) > 0 {
			return "object"
		}
	}
	if enum := v.enum(); len(enum) > 0 {
		kind := kindOf(enum[0])
		for _, item := range enum {
			if kindOf(item) != kind {
				return TypeJSON
			}
		}
		return kind
	}
	if text {
		return TypeString
	}
	return TypeJSON
}

func kindOf(v any) string {
	switch v.(type) {
	case string:
		return TypeString
	case bool:
		return TypeBoolean
	case int64:
		return TypeInteger
	case float64:
		return TypeNumber
	default:
		return TypeJSON
	}
}

// types are the types a schema names, null left out; nil when it names none.
func (s *subschema) types() []string {
	n := s.src.field("type")
	if n == nil {
		return nil
	}
	if n.kind == kindString {
		return []string{n.text}
	}
	out := []string{}
	for _, item := range n.items {
		if item.kind == kindString && item.text != "null" {
			out = append(out, item.text)
		}
	}
	return out
}

// common are the types in both lists.
func common(a, b []string) []string {
	out := []string{}
	for _, t := range a {
		switch {
		case slices.Contains(b, t), t == "integer" && slices.Contains(b, "number"):
			out = append(out, t)
		case t == "number" && slices.Contains(b, "integer"):
			out = append(out, "integer")
		}
	}
	return out
}

// enum are the values that every schema which lists values lists; nil when none does.
func (v view) enum() []any {
	var out []any
	listed := false
	keep := func(values []any) {
		if !listed {
			out, listed = values, true
			return
		}
		known := make(map[string]bool, len(values))
		for _, value := range values {
			known[nameOf(value)] = true
		}
		out = slices.DeleteFunc(out, func(have any) bool { return !known[nameOf(have)] })
	}
	for _, s := range v {
		if n := s.src.field("const"); n != nil {
			keep([]any{n.value()})
		}
		if n := s.src.field("enum"); n != nil && n.kind == kindArray {
			keep(n.value().([]any))
		}
	}
	return out
}

// nameOf is a text that equal values share.
func nameOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return string(text)
}

func same(a, b any) bool { return nameOf(a) == nameOf(b) }
