package inputs

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// explainValues turns what the validator found into messages.
func explainValues(r *reader, at string, values map[string]any, err error) []string {
	var verr *jsonschema.ValidationError
	if !errors.As(err, &verr) {
		return []string{whole(at) + ": cannot be validated against the schema"}
	}
	m := &messages{pathOf: func(location []string) string { return dotted(at, values, location) }}
	m.collect(r.read(verr))
	if len(m.list) == 0 {
		m.list = append(m.list, whole(at)+": does not match the schema")
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
func (m *messages) collect(p *problem) {
	switch {
	case p.wraps():
		for _, cause := range p.causes {
			m.collect(cause)
		}
		return
	case p.keyword == "anyOf":
		m.alternatives(p)
		return
	case p.keyword == "oneOf":
		if len(p.causes) == 0 {
			m.add(p.at, "matches more than one of the forms the schema allows (oneOf)")
			return
		}
		m.alternatives(p)
		return
	}
	switch p.keyword {
	case "required":
		for _, name := range p.names {
			m.add(below(p.at, name), "is required")
		}
	case "dependencies":
		for _, name := range p.names {
			m.add(below(p.at, name), "is required because "+showKey(p.because)+" is given")
		}
	case "additionalProperties":
		for _, name := range p.names {
			m.add(below(p.at, name), "is not known to the schema (additionalProperties)")
		}
	default:
		m.add(p.at, p.simple())
	}
}

// wraps tells that a problem is nothing but its causes.
func (p *problem) wraps() bool {
	switch p.keyword {
	case several, "$ref", "allOf", "then", "else":
		return true
	default:
		return false
	}
}

// alternatives explains why none of several forms fits. When all but one are ruled out by type or by a
// fixed value, the person meant that one, and its problems are the answer.
func (m *messages) alternatives(e *problem) {
	var meant []*problem
	var types, missing []string
	onlyTypes, onlyMissing := true, true
	for _, cause := range e.causes {
		problems := flatten(cause)
		ruledOut := false
		for _, p := range problems {
			here := slices.Equal(p.at, e.at)
			if p.keyword == "type" && here {
				types = append(types, p.schema.Types...)
				ruledOut = true
			} else {
				onlyTypes = false
			}
			if p.keyword == "required" && here && len(p.names) == 1 && len(problems) == 1 {
				missing = append(missing, p.names[0])
			} else {
				onlyMissing = false
			}
			if discriminates(p, e.at) {
				ruledOut = true
			}
		}
		if !ruledOut {
			meant = append(meant, cause)
		}
	}
	switch {
	case onlyTypes && len(types) > 0:
		m.add(e.at, "must be "+orList(types, article))
	case len(meant) == 1:
		m.collect(meant[0])
	case onlyMissing && len(missing) > 0:
		m.add(e.at, "one of "+strings.Join(sortedUnique(missing, showKey), ", ")+" is required ("+e.keyword+")")
	default:
		m.add(e.at, "matches none of the forms the schema allows ("+e.keyword+")")
	}
}

// discriminates tells whether p is about a fixed value, here or directly below, by which forms are told
// apart.
func discriminates(p *problem, here []string) bool {
	switch p.keyword {
	case "const", "enum", forbidden:
		return len(p.at) <= len(here)+1
	default:
		return false
	}
}

// flatten lists the problems under p, alternatives as one.
func flatten(p *problem) []*problem {
	if !p.wraps() {
		return []*problem{p}
	}
	var out []*problem
	for _, cause := range p.causes {
		out = append(out, flatten(cause)...)
	}
	return out
}

// simple is the message of a problem that has nothing inside it. Limits are the schema's.
func (p *problem) simple() string {
	s := p.schema
	switch p.keyword {
	case "type":
		return "must be " + orList(s.Types, article) + ", not " + article(p.got)
	case "enum":
		return "is none of the values the schema lists (enum)"
	case "const":
		return "is not the value the schema fixes (const)"
	case "format":
		return "does not have the format the schema asks for (format)"
	case "pattern":
		return "does not match the pattern the schema asks for (pattern)"
	case "minimum":
		return "must be at least " + limit(s.Minimum)
	case "maximum":
		return "must be at most " + limit(s.Maximum)
	case "exclusiveMinimum":
		return "must be more than " + limit(s.ExclusiveMinimum)
	case "exclusiveMaximum":
		return "must be less than " + limit(s.ExclusiveMaximum)
	case "multipleOf":
		return "must be a multiple of " + limit(s.MultipleOf)
	case "minLength":
		if s.MinLength == 1 {
			return "must not be empty"
		}
		return fmt.Sprintf("must be at least %d characters long", s.MinLength)
	case "maxLength":
		return "must be at most " + count(s.MaxLength, "character") + " long"
	case "minItems":
		return "must have at least " + count(s.MinItems, "item")
	case "maxItems":
		return "must have at most " + count(s.MaxItems, "item")
	case "additionalItems":
		return "has more items than the schema allows (additionalItems)"
	case "minProperties":
		return "must have at least " + count(s.MinProperties, "key")
	case "maxProperties":
		return "must have at most " + count(s.MaxProperties, "key")
	case "propertyNames":
		return "has a name that the schema does not allow (propertyNames)"
	case "uniqueItems":
		return "has an item twice (uniqueItems)"
	case "minContains":
		return "lacks an item that the schema asks for (contains)"
	case "not":
		return "is what the schema rules out (not)"
	case forbidden:
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

// dotted writes a location inside values as a dotted path, with indices as [0]; the values stand at before.
func dotted(before string, values map[string]any, location []string) string {
	if len(location) == 0 {
		return whole(before)
	}
	var b strings.Builder
	if before != "" {
		b.WriteString(before + ".")
	}
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
	text = text[:min(len(text), 64*limit)] // far more than is shown
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
