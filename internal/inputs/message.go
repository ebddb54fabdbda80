package inputs

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/santhosh-tekuri/jsonschema/v6"
	kinds "github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// explainValues turns what the validator found into messages.
func explainValues(values map[string]any, err error) []string {
	var verr *jsonschema.ValidationError
	if !errors.As(err, &verr) {
		return []string{wholePath + ": cannot be validated against the schema"}
	}
	m := &messages{pathOf: func(location []string) string { return dotted(values, location) }}
	m.collect(verr)
	if len(m.list) == 0 {
		m.list = append(m.list, wholePath+": does not match the schema")
	}
	return m.sorted()
}

// messages collects one line per problem, made from keyword and place alone.
type messages struct {
	pathOf func(location []string) string
	list   []string
}

func (m *messages) sorted() []string {
	slices.Sort(m.list)
	return slices.Compact(m.list)
}

func (m *messages) add(location []string, what string) {
	m.list = append(m.list, m.pathOf(location)+": "+what)
}

// below is the location of a key inside a location.
func below(location []string, key string) []string {
	return append(slices.Clone(location), key)
}

// collect walks down to the problems themselves.
func (m *messages) collect(e *jsonschema.ValidationError) {
	at := e.InstanceLocation
	switch k := e.ErrorKind.(type) {
	case *kinds.Schema, *kinds.Group, *kinds.AllOf, *kinds.Reference:
		for _, cause := range e.Causes {
			m.collect(cause)
		}
	case *kinds.AnyOf:
		m.alternatives(e, "anyOf")
	case *kinds.OneOf:
		if len(k.Subschemas) > 0 {
			m.add(at, "matches more than one of the forms the schema allows (oneOf)")
			return
		}
		m.alternatives(e, "oneOf")
	case *kinds.Required:
		for _, name := range k.Missing {
			m.add(below(at, name), "is required")
		}
	case *kinds.Dependency:
		for _, name := range k.Missing {
			m.add(below(at, name), "is required because "+showKey(k.Prop)+" is given")
		}
	case *kinds.AdditionalProperties:
		for _, name := range k.Properties {
			m.add(below(at, name), "is not known to the schema (additionalProperties)")
		}
	case *kinds.PropertyNames:
		m.add(below(at, k.Property), "has a name that the schema does not allow (propertyNames)")
	default:
		m.add(at, simple(e.ErrorKind))
	}
}

// alternatives explains why none of several forms fits. When all but one are ruled out by type or by a
// fixed value, the person meant that one, and its problems are the answer.
func (m *messages) alternatives(e *jsonschema.ValidationError, keyword string) {
	var meant []*jsonschema.ValidationError
	var types, missing []string
	onlyTypes, onlyMissing := true, true
	for _, cause := range e.Causes {
		problems := flatten(cause)
		ruledOut := false
		for _, p := range problems {
			here := slices.Equal(p.InstanceLocation, e.InstanceLocation)
			t, isType := p.ErrorKind.(*kinds.Type)
			r, isMissing := p.ErrorKind.(*kinds.Required)
			if isType && here {
				types = append(types, t.Want...)
				ruledOut = true
			} else {
				onlyTypes = false
			}
			if isMissing && here && len(r.Missing) == 1 && len(problems) == 1 {
				missing = append(missing, r.Missing[0])
			} else {
				onlyMissing = false
			}
			if discriminates(p, e.InstanceLocation) {
				ruledOut = true
			}
		}
		if !ruledOut {
			meant = append(meant, cause)
		}
	}
	switch {
	case onlyTypes && len(types) > 0:
		m.add(e.InstanceLocation, "must be "+orList(types, article))
	case len(meant) == 1:
		m.collect(meant[0])
	case onlyMissing && len(missing) > 0:
		m.add(e.InstanceLocation, "one of "+strings.Join(sortedUnique(missing, showKey), ", ")+" is required ("+keyword+")")
	default:
		m.add(e.InstanceLocation, "matches none of the forms the schema allows ("+keyword+")")
	}
}

// discriminates tells whether p is about a fixed value, here or directly below, by which forms are told
// apart.
func discriminates(p *jsonschema.ValidationError, here []string) bool {
	switch p.ErrorKind.(type) {
	case *kinds.Const, *kinds.Enum:
		return len(p.InstanceLocation) <= len(here)+1
	case *kinds.FalseSchema:
		return len(p.InstanceLocation) <= len(here)+1
	default:
		return false
	}
}

// flatten lists the problems under e, alternatives as one.
func flatten(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	switch e.ErrorKind.(type) {
	case *kinds.Schema, *kinds.Group, *kinds.AllOf, *kinds.Reference:
		var out []*jsonschema.ValidationError
		for _, cause := range e.Causes {
			out = append(out, flatten(cause)...)
		}
		return out
	default:
		return []*jsonschema.ValidationError{e}
	}
}

// simple is the message of a problem that has nothing inside it.
func simple(kind jsonschema.ErrorKind) string {
	switch k := kind.(type) {
	case *kinds.Type:
		return "must be " + orList(k.Want, article) + ", not " + article(k.Got)
	case *kinds.Enum:
		return "is none of the values the schema lists (enum)"
	case *kinds.Const:
		return "is not the value the schema fixes (const)"
	case *kinds.Format:
		return "does not have the format the schema asks for (format)"
	case *kinds.Pattern:
		return "does not match the pattern the schema asks for (pattern)"
	case *kinds.Minimum:
		return "must be at least " + limit(k.Want)
	case *kinds.Maximum:
		return "must be at most " + limit(k.Want)
	case *kinds.ExclusiveMinimum:
		return "must be more than " + limit(k.Want)
	case *kinds.ExclusiveMaximum:
		return "must be less than " + limit(k.Want)
	case *kinds.MultipleOf:
		return "must be a multiple of " + limit(k.Want)
	case *kinds.MinLength:
		if k.Want == 1 {
			return "must not be empty"
		}
		return fmt.Sprintf("must be at least %d characters long", k.Want)
	case *kinds.MaxLength:
		return "must be at most " + count(k.Want, "character") + " long"
	case *kinds.MinItems:
		return "must have at least " + count(k.Want, "item")
	case *kinds.MaxItems:
		return "must have at most " + count(k.Want, "item")
	case *kinds.AdditionalItems:
		return "has more items than the schema allows (additionalItems)"
	case *kinds.MinProperties:
		return "must have at least " + count(k.Want, "key")
	case *kinds.MaxProperties:
		return "must have at most " + count(k.Want, "key")
	case *kinds.UniqueItems:
		return "has an item twice (uniqueItems)"
	case *kinds.Contains:
		return "lacks an item that the schema asks for (contains)"
	case *kinds.Not:
		return "is what the schema rules out (not)"
	case *kinds.FalseSchema:
		return "is not allowed"
	default:
		return "does not match the schema"
	}
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// limit writes a number from the schema.
func limit(r *big.Rat) string {
	if r.IsInt() {
		if text := r.Num().String(); len(text) <= 24 {
			return text
		}
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

func article(kind string) string {
	switch kind {
	case "null":
		return kind
	case "array", "integer", "object":
		return "an " + kind
	default:
		return "a " + kind
	}
}

func orList(items []string, each func(string) string) string {
	return strings.Join(sortedUnique(items, each), " or ")
}

func sortedUnique(items []string, each func(string) string) []string {
	out := make([]string, len(items))
	for i, item := range items {
		out[i] = each(item)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// dotted writes a location inside values as a dotted path, with indices as [0].
func dotted(values map[string]any, location []string) string {
	if len(location) == 0 {
		return wholePath
	}
	var b strings.Builder
	var at any = values
	for i, token := range location {
		if list, ok := at.([]any); ok {
			at = nil
			if n, err := strconv.Atoi(token); err == nil && n >= 0 && n < len(list) {
				at = list[n]
			}
			b.WriteString("[" + showKey(token) + "]")
			continue
		}
		m, _ := at.(map[string]any)
		at = m[token]
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(showKey(token))
	}
	return show(b.String())
}

const (
	maxShownKey   = 80
	maxShownPlace = 400
)

// showKey makes a key fit for a line of text: no control characters, no endless keys.
func showKey(key string) string { return clip(key, maxShownKey) }

// show does the same for a whole path.
func show(place string) string { return clip(place, maxShownPlace) }

func clip(text string, limit int) string {
	text = strings.ToValidUTF8(text, "�")
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029' {
			return -1
		}
		return r
	}, text)
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return text
}
