package inputs

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// problem is something that the validator found: which keyword failed and where. The validator's own
// messages quote values and are never looked at; what they would say beyond that is found out again, from
// the schema and the values.
type problem struct {
	keyword string             // one of draft-07's; several or forbidden
	schema  *jsonschema.Schema // that has the keyword
	at      []string           // in the values
	names   []string           // properties that are missing or too many
	because string             // the property that another depends on
	got     string             // a type
	causes  []*problem
}

const (
	several   = ""      // nothing but what its causes say
	forbidden = "false" // a schema that allows nothing
)

// index finds schemas by their location.
type index map[string]indexed

type indexed struct {
	schema *jsonschema.Schema
	names  bool // judges the names of properties
}

// add enters a schema and all that it leads to.
func (x index) add(s *jsonschema.Schema, names bool) {
	if s == nil {
		return
	}
	if _, known := x[s.Location]; known {
		return
	}
	x[s.Location] = indexed{s, names}
	addAny := func(v any) {
		switch v := v.(type) {
		case *jsonschema.Schema:
			x.add(v, false)
		case []*jsonschema.Schema:
			for _, sub := range v {
				x.add(sub, false)
			}
		}
	}
	for _, sub := range s.Properties {
		x.add(sub, false)
	}
	for _, sub := range s.PatternProperties {
		x.add(sub, false)
	}
	for _, sub := range s.Dependencies {
		addAny(sub)
	}
	for _, v := range []any{s.Ref, s.AllOf, s.AnyOf, s.OneOf, s.If, s.Then, s.Else, s.Contains, s.AdditionalProperties, s.Items, s.AdditionalItems} {
		addAny(v)
	}
	x.add(s.PropertyNames, true)
	if s.Not != nil {
		x.add(s.Not, false)
		delete(x, s.Not.Location) // where "not" itself fails; what fails inside it is no problem
	}
}

// find takes a keyword's absolute location apart: a schema's, and the keyword in it.
func (x index) find(location string) (at indexed, keyword []string, ok bool) {
	end := len(location)
	for range 4 { // dependencies/NAME/0 is the longest
		if at, ok = x[location[:end]]; ok {
			return at, tokens(location[end:]), true
		}
		if end = strings.LastIndexByte(location[:end], '/'); end < 0 {
			break
		}
	}
	return indexed{}, nil, false
}

// tokens takes a location apart.
func tokens(location string) []string {
	if location == "" {
		return nil
	}
	out := strings.Split(location[1:], "/")
	for i, t := range out {
		if plain, err := url.PathUnescape(t); err == nil {
			t = plain
		}
		out[i] = strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
	}
	return out
}

// reader makes problems of what the validator returns.
type reader struct {
	index    index
	instance any  // what was validated
	empty    bool // a key in it is empty
}

func (r *reader) read(e *jsonschema.ValidationError) *problem {
	found, keyword, ok := r.index.find(e.AbsoluteKeywordLocation)
	p := &problem{keyword: "?", at: tokens(e.InstanceLocation)}
	if r.empty {
		p.at = r.align(tokens(e.KeywordLocation), len(keyword), p.at)
	}
	if !ok {
		return p
	}
	p.schema = found.schema
	switch {
	case found.names:
		p.keyword = "propertyNames"
		return p
	case len(keyword) > 0:
		p.keyword = keyword[0]
	case len(e.Causes) > 0:
		p.keyword = several
	default:
		p.keyword = forbidden
	}
	switch p.keyword {
	case "type":
		p.got = typeOf(r.value(p.at))
	case "required":
		object, _ := r.value(p.at).(map[string]any)
		p.names = lacking(object, found.schema.Required)
	case "additionalProperties":
		object, _ := r.value(p.at).(map[string]any)
		p.names = unknown(object, found.schema)
	case "dependencies":
		p.dependency(keyword)
	case "minContains":
		return p
	}
	for _, cause := range e.Causes {
		p.causes = append(p.causes, r.read(cause))
	}
	return p
}

// dependency reads dependencies/NAME/INDEX.
func (p *problem) dependency(keyword []string) {
	if len(keyword) != 3 {
		return
	}
	names, _ := p.schema.Dependencies[keyword[1]].([]string)
	if i, err := strconv.Atoi(keyword[2]); err == nil && i >= 0 && i < len(names) {
		p.because, p.names = keyword[1], names[i:i+1]
	}
}

// value is what is at a location.
func (r *reader) value(at []string) any {
	v := r.instance
	for _, t := range at {
		v = inside(v, t)
	}
	return v
}

func inside(v any, token string) any {
	switch v := v.(type) {
	case map[string]any:
		return v[token]
	case []any:
		if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(v) {
			return v[i]
		}
	}
	return nil
}

func lacking(object map[string]any, required []string) []string {
	return slices.DeleteFunc(slices.Clone(required), func(name string) bool {
		_, there := object[name]
		return there
	})
}

func unknown(object map[string]any, s *jsonschema.Schema) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(object)), func(name string) bool {
		if _, known := s.Properties[name]; known {
			return true
		}
		for pattern := range s.PatternProperties {
			if pattern.MatchString(name) {
				return true
			}
		}
		return false
	})
}

func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	case json.Number, float32, float64, int, int32, int64, uint32, uint64:
		return "number"
	default:
		return ""
	}
}

// align puts the empty keys back into a location in the values, which the validator leaves out. The keyword
// location tells how many steps there were; its last parts, as many as failing says, are the keyword that
// failed.
func (r *reader) align(keywords []string, failing int, at []string) []string {
	steps := stepsOf(keywords[:max(0, len(keywords)-failing)])
	if len(steps) == len(at) {
		return at
	}
	tries := 1000 // several ways to put them back are rare, and which is taken decides about a place only
	if out, ok := fit(steps, at, r.instance, &tries); ok {
		return out
	}
	return at
}

// step is one step down into the values.
type step struct {
	name  string
	known bool // the name
}

func stepsOf(keywords []string) []step {
	var out []step
	for i := 0; i < len(keywords); i++ {
		switch keywords[i] {
		case "properties":
			if i++; i < len(keywords) {
				out = append(out, step{keywords[i], true})
			}
		case "patternProperties":
			i++
			out = append(out, step{})
		case "items":
			if i+1 < len(keywords) {
				if _, err := strconv.Atoi(keywords[i+1]); err == nil {
					i++
				}
			}
			out = append(out, step{})
		case "additionalProperties", "additionalItems", "contains", "propertyNames":
			out = append(out, step{})
		case "dependencies", "allOf", "anyOf", "oneOf":
			i++
		}
	}
	return out
}

// fit finds a way from v that has as many steps as there are and leaves out nothing but empty keys.
func fit(steps []step, at []string, v any, tries *int) ([]string, bool) {
	if len(steps) == 0 {
		return nil, len(at) == 0
	}
	if *tries--; *tries < 0 || len(steps) < len(at) {
		return nil, false
	}
	try := func(token string, rest []string) ([]string, bool) {
		object, isObject := v.(map[string]any)
		if _, there := object[token]; isObject && !there {
			return nil, false
		}
		if steps[0].known && steps[0].name != token {
			return nil, false
		}
		out, ok := fit(steps[1:], rest, inside(v, token), tries)
		return append([]string{token}, out...), ok
	}
	if len(at) > 0 {
		if out, ok := try(at[0], at[1:]); ok {
			return out, true
		}
	}
	return try("", at)
}
