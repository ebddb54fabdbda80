package inputs

import (
	"errors"
	"net/url"
	"regexp"
	"regexp/syntax"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// meter bounds the work of one validation.
type meter struct {
	budget   int // units each validation may spend
	left     int
	programs int // size of all patterns together

	// How long the locations are that the validator writes for a problem.
	parts   int // of the keyword location where it is
	length  int // of the same, in bytes, at most
	longest int // of any location in the values, in bytes
}

const (
	maxWork     = 1_000_000 // schemas tried on values
	maxPattern  = 20_000    // instructions of one pattern
	maxPatterns = 400_000   // instructions of all patterns of a schema together

	// What counts as one schema tried.
	perProgram = 256  // steps of a pattern
	perItem    = 8    // items or keys that the validator takes note of
	perByte    = 64   // bytes that are looked at or quoted
	perKept    = 256  // bytes of a location
	perCopied  = 2048 // bytes that are only copied
	perPart    = 16   // parts of a location
)

// exhausted is what spend panics with; Validate recovers it.
type exhausted struct{}

func (m *meter) spend(units int) {
	if m.left -= units; m.left < 0 {
		panic(exhausted{})
	}
}

// start begins a validation.
func (m *meter) start(longest int) {
	m.left, m.programs, m.parts, m.length, m.longest = m.budget, 0, 0, 0, longest
}

// problem is what reporting a problem here costs beyond the visit: the validator puts the keyword location
// together part by part and copies it each time.
func (m *meter) problem() int {
	return m.parts/perPart + m.parts*m.length/2/perCopied + (m.length+m.longest)/perKept
}

// visit is what a schema costs each time it is tried on a value. All that it leads to is paid for on
// entering: the validator has no other hook than its formats, none of which it asks when the type is wrong.
type visit struct {
	meter *meter
	own   func(any) bool // the schema's own format; nil: any

	fixed    int  // for what is compared and for the messages about it
	keywords int  // of which each may be a problem
	inPlace  int  // schemas tried on the value itself
	each     int  // schemas tried on each item or key
	names    int  // size of the patterns tried on each key
	pattern  int  // size of the pattern tried on a text
	unique   bool // compares all items
	onwards  int  // the longest part of a keyword location from here to a schema inside
}

// visit weighs a schema.
func (m *meter) visit(s *subschema, format string) *visit {
	v := &visit{
		meter:    m,
		own:      m.format(format),
		keywords: len(s.src.keys),
		each:     len(s.kids["patternProperties"]) + len(s.kids["contains"]) + len(s.kids["propertyNames"]),
		unique:   s.src.isTrue("uniqueItems"),
	}
	for _, keyword := range inPlace {
		v.inPlace += len(s.kids[keyword])
	}
	if len(s.kids["properties"])+len(s.kids["additionalProperties"])+len(s.kids["items"])+len(s.kids["additionalItems"]) > 0 {
		v.each++
	}
	for _, keyword := range []string{"const", "enum", "required", "dependencies", "pattern"} {
		nodes, bytes := s.src.field(keyword).bulk()
		v.fixed += nodes + bytes/perByte
	}
	v.fixed += len(s.kids["properties"]) / perItem
	for _, keyword := range []string{"multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"} {
		if n := s.src.field(keyword); n != nil {
			v.fixed += magnitude(n.text) / 10
		}
	}
	if text, ok := s.src.str("pattern"); ok {
		v.pattern = measure(text)
	}
	for _, k := range s.kids["patternProperties"] {
		v.names += measure(k.key)
	}
	for keyword, kids := range s.kids {
		for _, k := range kids {
			v.onwards = max(v.onwards, len("//$ref/")+len(keyword)+len(token(k.key)))
		}
	}
	return v
}

// enter is the format that stands for the schema.
func (v *visit) enter(value any) bool {
	m := v.meter
	m.parts += 2
	m.length += v.onwards
	units, problems := v.fixed, v.keywords+v.inPlace
	switch value := value.(type) {
	case string:
		units += v.pattern * len(value) / perProgram
		if v.own != nil {
			units += len(value) / perByte
		}
	case map[string]any:
		names, children := 0, 0
		for key, child := range value {
			names += 1 + len(key)
			children += 1 + size(child)/perItem
		}
		units += v.each*children + v.names*names/perProgram + names/perByte
		problems += v.each * len(value)
	case []any:
		children := 0
		for _, child := range value {
			children += 1 + size(child)/perItem
		}
		units += v.each * children
		problems += v.each * len(value)
		if v.unique {
			// Up to 20 items are compared with each other, more by hash.
			units += bulk(value) * min(len(value), 20) / perItem
		}
	}
	units += v.inPlace * (1 + size(value)/perItem)
	m.spend(units + problems*m.problem())
	return v.own == nil || v.own(value)
}

// Validate is called when the validator is done with the schema.
func (v *visit) Validate(jsonschema.ValidationContext, any) error {
	v.meter.parts -= 2
	v.meter.length -= v.onwards
	return nil
}

func size(v any) int {
	switch v := v.(type) {
	case map[string]any:
		return len(v)
	case []any:
		return len(v)
	default:
		return 0
	}
}

// bulk is how much there is to compare in a value.
func bulk(v any) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			n += len(key)/perByte + bulk(item)
		}
	case []any:
		for _, item := range v {
			n += bulk(item)
		}
	case string:
		n += len(v) / perByte
	}
	return n
}

// longest is the length of the longest location in a value, and whether a key in it is empty.
func longest(v any) (length int, empty bool) {
	inside := func(tokenLength int, item any) {
		l, e := longest(item)
		length = max(length, 1+tokenLength+l)
		empty = empty || e
	}
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			empty = empty || key == ""
			inside(len(token(key)), item)
		}
	case []any:
		for i, item := range v {
			inside(len(strconv.Itoa(i)), item)
		}
	}
	return length, empty
}

// token is a key as the validator writes it in a location.
func token(key string) string { return url.PathEscape(escape(key)) }

var errPatternSize = errors.New("the pattern is too large")

// accept tells whether a pattern is one, in the dialect that Helm has: Go's, and not too large.
func (m *meter) accept(pattern string) error {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return err
	}
	size := programSize(tree)
	if m.programs += size; size > maxPattern || m.programs > maxPatterns {
		return errPatternSize
	}
	_, err = regexp.Compile(pattern)
	return err
}

// measure is the size of a pattern that was accepted. Matching takes time in proportion to it and to the
// length of the text.
func measure(pattern string) int {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0
	}
	return programSize(tree)
}

// programSize estimates how many instructions a pattern compiles to, repetitions multiplied out.
func programSize(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		n = min(n+programSize(sub), 1<<30)
	}
	if re.Op == syntax.OpRepeat {
		n = min(n*max(re.Min, re.Max, 1), 1<<30)
	}
	return n
}
