package lint

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/values"
)

// maker makes up values. Those of another salt are others, as far as the schema lets them.
type maker struct {
	schema *inputs.Schema
	doc    *schemaDoc // the schema's text, nil for none
	salt   string
	word   string // what texts are made of, where it is not a sentinel
	long   bool   // makes longer sentinels
	// variant is which of the texts is made that a pattern takes.
	variant int
	// forms are the functions that templates hand texts to, by path.
	forms map[string]string
}

// sentinel is a text that is found again wherever it goes: letters and digits, of either case.
func (m maker) sentinel(path string) string {
	if m.word != "" {
		return m.word
	}
	sum := sha256.Sum256([]byte("zae lint\x00" + m.salt + "\x00" + path))
	n := 16
	if m.long {
		n = 23
	}
	return "Zs" + hex.EncodeToString(sum[:])[:n] + "Qx"
}

// letters is a sentinel for patterns that take nothing but letters, and digits one for those of digits.
func (m maker) letters(path string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return 'a' + (r-'0')%6
		}
		return r
	}, m.sentinel(path)))
}

func (m maker) digits(path string) string {
	sum := sha256.Sum256([]byte("zae lint\x00" + m.salt + "\x00" + path))
	return "7" + strconv.Itoa(100_000_000+int(binary.BigEndian.Uint32(sum[:]))%900_000_000)
}

// holdsMadeUp tells whether a sentinel is in a value.
func holdsMadeUp(v any) bool {
	switch v := v.(type) {
	case string:
		return madeUp.MatchString(v)
	case []any:
		return slices.ContainsFunc(v, holdsMadeUp)
	case map[string]any:
		for key, item := range v {
			if madeUp.MatchString(key) || holdsMadeUp(item) {
				return true
			}
		}
	}
	return false
}

// generated stands for what the operator would generate.
func (m maker) generated(in inputs.Input) string {
	sum := sha256.Sum256([]byte("zae lint\x00" + m.salt + "\x00" + in.Path))
	text, err := values.Generate(in.Generate, strings.NewReader(string(sum[:])))
	if err != nil {
		return base64.StdEncoding.EncodeToString(sum[:])
	}
	return text
}

// value makes up a value that the schema takes at the input's path.
func (m maker) value(in inputs.Input) (any, bool) {
	for _, v := range m.candidates(in) {
		if m.accepts(in, v) {
			return v, true
		}
	}
	return nil, false
}

// accepts tells whether the schema has nothing against a value where it stands.
func (m maker) accepts(in inputs.Input, v any) bool {
	tree := map[string]any{}
	values.Set(tree, strings.Split(in.Path, "."), v)
	for _, problem := range m.schema.Validate(tree) {
		if after, ok := strings.CutPrefix(problem, in.Path); ok && strings.ContainsAny(after[:1], ":.[") {
			return false
		}
	}
	return true
}

func (m maker) candidates(in inputs.Input) []any {
	out := append([]any(nil), in.Enum...)
	switch in.Type {
	case inputs.TypeBoolean:
		return append(out, true, false)
	case inputs.TypeInteger, inputs.TypeNumber:
		for _, n := range []string{in.Minimum.String(), in.Maximum.String(), in.MultipleOf.String(), "1", "0", "8080", "100"} {
			if v, ok := number(n, in.Type); ok {
				out = append(out, v)
			}
		}
		for _, beside := range []struct {
			bound string
			by    float64
		}{{in.ExclusiveMinimum.String(), 1}, {in.ExclusiveMaximum.String(), -1}} {
			if f, err := strconv.ParseFloat(beside.bound, 64); err == nil {
				v, ok := number(strconv.FormatFloat(f+beside.by, 'f', -1, 64), in.Type)
				if ok {
					out = append(out, v)
				}
			}
		}
		return out
	case inputs.TypeString:
		for _, text := range m.texts(in) {
			out = append(out, fit(text, in))
		}
		return out
	default:
		s := m.sentinel(in.Path)
		out = append(out, m.described(in)...)
		if in.Default != nil {
			out = append(out, in.Default)
		}
		return append(out, []any{}, map[string]any{}, []any{s}, map[string]any{"zae": s}, s, int64(1), true)
	}
}

// listed are the values that the schema lists for a path, wherever it does: in alternatives and conditions, too.
func (m maker) listed(path []string) []any {
	if m.doc == nil {
		return nil
	}
	var out []any
	for _, declared := range m.doc.properties(path) {
		for _, n := range m.doc.around(declared) {
			if c := n.fields["const"]; c != nil {
				out = append(out, c.value())
			}
			if e := n.fields["enum"]; e != nil {
				for _, item := range e.items {
					out = append(out, item.value())
				}
			}
		}
	}
	return slices.DeleteFunc(out, func(v any) bool { return v == nil })
}

// described are values of each shape that the schema itself describes, and empty ones.
func (m maker) described(in inputs.Input) []any {
	if m.doc == nil {
		return nil
	}
	nodes := m.doc.properties(strings.Split(in.Path, "."))
	b := &builder{doc: m.doc, made: m}
	out := b.candidates(nodes, in.Path)
	for i := range nodes {
		if len(nodes) > 1 && i < maxBranches { // those of alternatives
			out = append(out, b.candidates(nodes[i:i+1], in.Path)...)
		}
	}
	return out
}

// variants are values of a list or map that differ from the one that is made in full in one thing: another member of an
// enum, a boolean the other way round, an optional part left out.
func (m maker) variants(in inputs.Input) []choice {
	if m.doc == nil {
		return nil
	}
	path := strings.Split(in.Path, ".")
	nodes := m.doc.properties(path)
	var out []choice
	for branch := range maxBranches {
		full := &builder{doc: m.doc, made: m, full: true, branch: branch, listed: &[]variant{}}
		applied := full.apply(nodes...)
		kinds := slices.DeleteFunc(types(applied), func(kind string) bool { return kind != "array" && kind != "object" })
		if len(kinds) == 0 {
			break
		}
		_, _ = full.value(applied, kinds[0], in.Path, 0)
		for _, v := range *full.listed {
			for _, once := range []bool{false, true} { // no two items may be the same
				one := &builder{doc: m.doc, made: m, full: true, branch: branch, variant: &v, once: once}
				if value, ok := one.value(applied, kinds[0], in.Path, 0); ok && m.accepts(in, value) {
					out = append(out, choice{v.label(), []assign{{path, value}}})
					break
				}
			}
		}
		if !slices.ContainsFunc(applied, func(n *jsonNode) bool { return n.fields["oneOf"] != nil || n.fields["anyOf"] != nil }) {
			break
		}
	}
	return out[:min(len(out), maxVariants)]
}

// takesNull tells whether the schema says that an input may be null.
func (m maker) takesNull(in inputs.Input) bool {
	if in.Secret || m.doc == nil || !m.accepts(in, nil) {
		return false
	}
	b := &builder{doc: m.doc, made: m}
	nodes := b.apply(m.doc.properties(strings.Split(in.Path, "."))...)
	for _, name := range []string{"type", "enum"} {
		if list := keyword(nodes, name); list != nil && slices.ContainsFunc(list.items, func(n *jsonNode) bool {
			return n.value() == nil || n.scalar == "null" && name == "type"
		}) {
			return true
		}
	}
	return false
}

func number(text, kind string) (any, bool) {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i, true
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil && kind == inputs.TypeNumber
}

// texts are the strings to try, the most telling first.
func (m maker) texts(in inputs.Input) []string {
	s := m.sentinel(in.Path)
	host := strings.ToLower(s) + ".example.org"
	if !in.Secret {
		s = strings.ToLower(s) // fit for a name
	}
	var out []string
	switch in.Format {
	case "uri", "iri", "uri-reference", "iri-reference":
		out = append(out, "https://"+host+"/"+s)
	case "email", "idn-email":
		out = append(out, s+"@example.org")
	case "hostname", "idn-hostname":
		out = append(out, host)
	case "ipv4":
		out = append(out, "192.0.2.17")
	case "ipv6":
		out = append(out, "2001:db8::17")
	case "date-time":
		out = append(out, "2021-01-02T03:04:05Z")
	case "date":
		out = append(out, "2021-01-02")
	case "time":
		out = append(out, "03:04:05Z")
	case "uuid":
		out = append(out, "5b3ce2a1-0d4f-4c57-9a51-"+strings.Repeat("0", 12))
	}
	if function := m.forms[in.Path]; function != "" {
		out = append(out, m.parsedText(function, in.Path))
	}
	if text := quantityFor(in.Path); text != "" && !in.Secret {
		out = append(out, text)
	}
	if in.Pattern != "" {
		out = append(out, s, strings.ToLower(s), m.letters(in.Path), m.digits(in.Path), "https://"+host, "postgres://"+s+"@"+host+"/zae", host, host+":8080", "1Gi", "100m", "30s", "1")
		if text, ok := matching(in.Pattern, m.variant); ok {
			out = append(out, text)
		}
	}
	out = append(out, s)
	if text, ok := in.Default.(string); ok {
		out = append(out, text)
	}
	return out
}

// quantityFor is a quantity where the name of an input says that one is meant.
func quantityFor(path string) string {
	name := strings.ToLower(path[strings.LastIndexByte(path, '.')+1:])
	for _, one := range []struct{ end, text string }{{"cpu", "100m"}, {"memory", "64Mi"}, {"size", "1Gi"}, {"storage", "1Gi"}, {"capacity", "1Gi"}} {
		if strings.HasSuffix(name, one.end) {
			return one.text
		}
	}
	return ""
}

// fit makes a text as long as the schema wants it.
func fit(text string, in inputs.Input) string {
	if least, err := strconv.Atoi(in.MinLength.String()); err == nil && least > len(text) && least < 1<<16 {
		text += strings.Repeat("x", least-len(text))
	}
	if most, err := strconv.Atoi(in.MaxLength.String()); err == nil && most >= 0 && most < len(text) {
		text = text[:most]
	}
	return text
}

// matching makes a text that a pattern takes, for the patterns that are plain enough. Those of another variant are
// others, as far as the pattern lets them.
func matching(pattern string, variant int) (string, bool) {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "", false
	}
	m := &matcher{variant: variant}
	ok := m.match(re.Simplify())
	return m.text.String(), ok
}

const maxMatch = 4096

type matcher struct {
	text    strings.Builder
	variant int
}

func (m *matcher) match(re *syntax.Regexp) bool {
	if m.text.Len() > maxMatch {
		return false
	}
	switch re.Op {
	case syntax.OpLiteral:
		m.text.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		m.text.WriteRune(m.pick(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		m.text.WriteByte('x')
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range re.Sub {
			if !m.match(sub) {
				return false
			}
		}
	case syntax.OpPlus:
		return m.match(re.Sub[0])
	case syntax.OpRepeat:
		for range re.Min {
			if !m.match(re.Sub[0]) {
				return false
			}
		}
	case syntax.OpAlternate:
		return m.match(re.Sub[m.variant%len(re.Sub)])
	case syntax.OpNoMatch:
		return false
	}
	return true
}

// variants are the characters to pick from, for each variant.
var variants = []string{"a0A1-_.", "b2B3-_.", "c4C5-_."}

// pick is a letter or digit of a class, if it has one.
func (m *matcher) pick(ranges []rune) rune {
	for _, r := range variants[m.variant%len(variants)] {
		for i := 0; i+1 < len(ranges); i += 2 {
			if ranges[i] <= r && r <= ranges[i+1] {
				return r
			}
		}
	}
	if len(ranges) > 0 {
		return ranges[0]
	}
	return 'x'
}
