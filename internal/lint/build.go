package lint

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"zaentrum.io/zae/internal/inputs"
)

// builder makes up values from the schema's own text, for what no single field holds: lists, maps, values of several
// types, objects of alternatives. What it makes is likely to be accepted; the validator decides.
type builder struct {
	doc  *schemaDoc
	made maker
	// full puts in what need not be there, too.
	full bool
	// branch is which of the alternatives of an anyOf or oneOf is taken, as far as there are so many; below 0 none.
	branch int
	// item is the number of the item of a list that is made: what tells it apart has to differ from the first one's.
	item int
	work int
	// listed gathers what else may be made inside of lists and maps; nil for nobody.
	listed *[]variant
	// variant is made instead; once only in the first item.
	variant *variant
	once    bool
}

// variant is another value of what a list or map holds, or that an optional part of it is left out.
type variant struct {
	path  string // with [] for any item and * for any key
	value any
	out   bool
}

func (v variant) label() string {
	if !v.out {
		return v.path + "=" + label(v.value)
	}
	i := strings.LastIndexByte(v.path, '.')
	return v.path[:i] + " without " + v.path[i+1:]
}

// anyItem is a path for any item of lists, and any key that was made up.
func anyItem(at string) string {
	return madeKey.ReplaceAllString(itemNumber.ReplaceAllString(at, "[]"), ".*")
}

var (
	itemNumber = regexp.MustCompile(`\[[0-9]+\]`)
	madeKey    = regexp.MustCompile(`\.zae[0-9]+\b`)
)

// maxVariants bounds what is tried of one input.
const maxVariants = 16

// notes takes down other values than the one that is made.
func (b *builder) notes(at string, all ...variant) {
	if b.listed == nil {
		return
	}
	for _, v := range all {
		v.path = anyItem(at)
		if len(*b.listed) < maxVariants && !slices.ContainsFunc(*b.listed, func(have variant) bool {
			return have.path == v.path && have.out == v.out && sameValue(have.value, v.value)
		}) {
			*b.listed = append(*b.listed, v)
		}
	}
}

// varies tells whether another value is made here.
func (b *builder) varies(at string, out bool) bool {
	return b.variant != nil && b.variant.out == out && b.variant.path == anyItem(at) && (!b.once || b.item == 0)
}

const (
	maxBuildDepth = 8
	maxBuildWork  = 4000 // values made in one go
	fullDepth     = 4    // what is deeper is only made if it is required
)

// alternatives are the keywords of which a value meets one schema of several.
var alternatives = []string{"anyOf", "oneOf"}

// apply are all schemas that a value of one of these has to meet: references, allOf, and one of each alternatives.
func (b *builder) apply(nodes ...*jsonNode) []*jsonNode {
	var out []*jsonNode
	seen := map[*jsonNode]bool{}
	var visit func(n *jsonNode)
	visit = func(n *jsonNode) {
		if n == nil || n.fields == nil || seen[n] {
			return
		}
		seen[n] = true
		out = append(out, n)
		if to, ok := n.fields["$ref"].text(); ok {
			visit(b.doc.pointer(to))
		}
		if all := n.fields["allOf"]; all != nil {
			for _, sub := range all.items {
				visit(sub)
			}
		}
		for _, name := range alternatives {
			if list := n.fields[name]; list != nil && len(list.items) > 0 && b.branch >= 0 {
				visit(list.items[min(b.branch, len(list.items)-1)])
			}
		}
	}
	for _, n := range nodes {
		visit(n)
	}
	return out
}

// text is the string that a node is.
func (n *jsonNode) text() (string, bool) {
	if n == nil {
		return "", false
	}
	s, ok := n.scalar.(string)
	return s, ok
}

// value is what a node says, as values have it.
func (n *jsonNode) value() any {
	switch {
	case n == nil:
		return nil
	case n.fields != nil:
		out := map[string]any{}
		for key, sub := range n.fields {
			out[key] = sub.value()
		}
		return out
	case n.list:
		out := make([]any, len(n.items))
		for i, sub := range n.items {
			out[i] = sub.value()
		}
		return out
	}
	if num, ok := n.scalar.(json.Number); ok {
		v, _ := number(num.String(), inputs.TypeNumber)
		return v
	}
	return n.scalar
}

// keyword is the first value of a keyword.
func keyword(nodes []*jsonNode, name string) *jsonNode {
	for _, n := range nodes {
		if k := n.fields[name]; k != nil {
			return k
		}
	}
	return nil
}

// numberOf is the first value of a keyword that is a number.
func numberOf(nodes []*jsonNode, name string) json.Number {
	if k := keyword(nodes, name); k != nil {
		if n, ok := k.scalar.(json.Number); ok {
			return n
		}
	}
	return ""
}

func countOf(nodes []*jsonNode, name string, assumed int) int {
	if n, err := strconv.Atoi(numberOf(nodes, name).String()); err == nil && n >= 0 {
		return n
	}
	return assumed
}

// types are those that the schemas allow, of which a value may be made; null is none of them.
func types(nodes []*jsonNode) []string {
	var out []string
	if t := keyword(nodes, "type"); t != nil {
		if one, ok := t.text(); ok && one != "null" {
			out = append(out, one)
		}
		for _, item := range t.items {
			if one, ok := item.text(); ok && one != "null" {
				out = append(out, one)
			}
		}
		return out
	}
	for _, hint := range []struct {
		kind     string
		keywords []string
	}{
		{"object", []string{"properties", "required", "additionalProperties", "patternProperties"}},
		{"array", []string{"items", "minItems", "maxItems", "contains"}},
		{"string", []string{"pattern", "format", "minLength", "maxLength"}},
		{"number", []string{"minimum", "maximum", "multipleOf"}},
	} {
		if slices.ContainsFunc(hint.keywords, func(k string) bool { return keyword(nodes, k) != nil }) {
			return []string{hint.kind}
		}
	}
	return nil
}

// value makes up a value of one type that the schemas at a path may take; of any type if none is named.
func (b *builder) value(nodes []*jsonNode, kind, at string, depth int) (any, bool) {
	if b.work++; b.work > maxBuildWork || depth > maxBuildDepth {
		return nil, false
	}
	if b.varies(at, false) {
		return b.variant.value, true
	}
	if n := keyword(nodes, "const"); n != nil {
		return n.value(), true
	}
	if n := keyword(nodes, "enum"); n != nil && len(n.items) > 0 {
		return b.member(n, at), true
	}
	if kind == "" {
		if all := types(nodes); len(all) > 0 {
			kind = all[0]
		}
	}
	switch kind {
	case "object":
		return b.object(nodes, at, depth)
	case "array":
		return b.array(nodes, at, depth)
	case "boolean":
		b.notes(at, variant{value: false})
		return true, true
	case "integer", "number":
		return b.number(nodes, kind, at)
	default:
		return b.string(nodes, at)
	}
}

// member is the first of an enum that is not null.
func (b *builder) member(enum *jsonNode, at string) any {
	var out any
	for _, item := range enum.items {
		v := item.value()
		switch {
		case v == nil:
		case out == nil:
			out = v
		default:
			b.notes(at, variant{value: v})
		}
	}
	return out
}

func (b *builder) string(nodes []*jsonNode, at string) (any, bool) {
	in := inputs.Input{Path: at, Type: inputs.TypeString, MinLength: numberOf(nodes, "minLength"), MaxLength: numberOf(nodes, "maxLength")}
	in.Format, _ = keyword(nodes, "format").text()
	in.Pattern, _ = keyword(nodes, "pattern").text()
	pattern, err := regexp.Compile(in.Pattern)
	if err != nil {
		return nil, false
	}
	for _, v := range b.made.candidates(in) {
		if text, ok := v.(string); ok && pattern.MatchString(text) && (b.item == 0 || madeUp.MatchString(text)) {
			return v, true
		}
	}
	text, ok := matching(in.Pattern, b.item)
	return text, ok && b.item > 0 && pattern.MatchString(text)
}

func (b *builder) number(nodes []*jsonNode, kind, at string) (any, bool) {
	in := inputs.Input{
		Path: at, Type: kind, Minimum: numberOf(nodes, "minimum"), Maximum: numberOf(nodes, "maximum"), MultipleOf: numberOf(nodes, "multipleOf"),
		ExclusiveMinimum: numberOf(nodes, "exclusiveMinimum"), ExclusiveMaximum: numberOf(nodes, "exclusiveMaximum"),
	}
	for _, v := range b.made.candidates(in) {
		if n, whole := v.(int64); whole && in.MultipleOf == "" {
			v = n + int64(b.item)
		}
		if within64(v, in) {
			return v, true
		}
	}
	return nil, false
}

// within64 tells whether a number keeps the bounds of an input, as far as they are ordinary numbers.
func within64(v any, in inputs.Input) bool {
	f, err := strconv.ParseFloat(label(v), 64)
	holds := func(bound json.Number, is func(b float64) bool) bool {
		b, err := bound.Float64()
		return err != nil || is(b)
	}
	return err == nil && holds(in.Minimum, func(b float64) bool { return f >= b }) && holds(in.Maximum, func(b float64) bool { return f <= b }) &&
		holds(in.ExclusiveMinimum, func(b float64) bool { return f > b }) && holds(in.ExclusiveMaximum, func(b float64) bool { return f < b })
}

// described tells whether the schemas say what is in a value: made up without that, it would be anything, and a template
// that takes it for a part of an object could do nothing with it.
func (b *builder) described(nodes []*jsonNode, depth int) bool {
	kinds := types(nodes)
	switch {
	case keyword(nodes, "enum") != nil || keyword(nodes, "const") != nil:
		return true
	case depth > maxBuildDepth || len(kinds) == 0:
		return false
	case kinds[0] == "array":
		items := keyword(nodes, "items")
		return items != nil && (items.list || b.described(b.apply(items), depth+1))
	case kinds[0] == "object":
		extra := keyword(nodes, "additionalProperties")
		return keyword(nodes, "properties") != nil || keyword(nodes, "patternProperties") != nil || extra != nil && b.described(b.apply(extra), depth+1)
	}
	return true
}

// array has two items, so that what is written between them is seen.
func (b *builder) array(nodes []*jsonNode, at string, depth int) (any, bool) {
	out := []any{}
	items, contains := keyword(nodes, "items"), keyword(nodes, "contains")
	n := countOf(nodes, "minItems", 0)
	if depth < fullDepth && b.full && b.described(nodes, depth) {
		n = max(n, 2)
	}
	if contains != nil {
		n = max(n, 1)
	}
	n = min(n, countOf(nodes, "maxItems", n))
	for i := range n {
		var sub []*jsonNode
		switch {
		case i == 0 && contains != nil:
			sub = b.apply(contains)
		case items != nil && items.list && i < len(items.items):
			sub = b.apply(items.items[i])
		case items != nil && !items.list:
			sub = b.apply(items)
		}
		outer := b.item
		b.item += i
		v, ok := b.value(sub, "", at+"["+strconv.Itoa(i)+"]", depth+1)
		b.item = outer
		if !ok {
			return out, i >= countOf(nodes, "minItems", 0)
		}
		out = append(out, v)
	}
	return out, true
}

func (b *builder) object(nodes []*jsonNode, at string, depth int) (any, bool) {
	out := map[string]any{}
	required := requiredNames(nodes)
	for _, name := range b.names(nodes, required) {
		sub := b.apply(propertyNodes(nodes, name)...)
		must := slices.Contains(required, name)
		if !must && (!b.full || depth >= fullDepth || b.varies(at+"."+name, true)) {
			continue
		}
		if !must {
			b.notes(at+"."+name, variant{out: true})
		}
		v, ok := b.value(sub, "", at+"."+name, depth+1)
		if !ok && must {
			return nil, false
		}
		if ok {
			out[name] = v
		}
	}
	open := keyword(nodes, "properties") == nil && b.full && depth < fullDepth && b.described(nodes, depth) && !strings.HasSuffix(at, ".limits") && !strings.HasSuffix(at, ".requests")
	for i := 0; open && i < 2 || len(out) < countOf(nodes, "minProperties", 0); i++ {
		key := "zae" + strconv.Itoa(i)
		if names := keyword(nodes, "propertyNames"); names != nil {
			made, ok := b.string(b.apply(names), at+"."+key)
			text, _ := made.(string)
			if !ok || out[text] != nil {
				break
			}
			key = text
		}
		v, ok := b.value(b.apply(propertyNodes(nodes, key)...), "", at+"."+key, depth+1)
		if !ok || i > 100 {
			break
		}
		out[key] = v
	}
	return out, true
}

func requiredNames(nodes []*jsonNode) []string {
	var out []string
	for _, n := range nodes {
		if list := n.fields["required"]; list != nil {
			for _, item := range list.items {
				if name, ok := item.text(); ok && !slices.Contains(out, name) {
					out = append(out, name)
				}
			}
		}
	}
	return out
}

// names are the properties that the schemas know, in the document's order, and what they require besides.
func (b *builder) names(nodes []*jsonNode, required []string) []string {
	var out []string
	for _, n := range nodes {
		if p := n.fields["properties"]; p != nil {
			for _, name := range p.keys {
				if !slices.Contains(out, name) {
					out = append(out, name)
				}
			}
		}
	}
	for _, name := range required {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// propertyNodes are the schemas of one property.
func propertyNodes(nodes []*jsonNode, name string) []*jsonNode {
	var out []*jsonNode
	for _, n := range nodes {
		if p := n.fields["properties"]; p != nil && p.fields[name] != nil {
			out = append(out, p.fields[name])
			continue
		}
		matched := false
		if p := n.fields["patternProperties"]; p != nil {
			for _, pattern := range p.keys {
				if re, err := regexp.Compile(pattern); err == nil && re.MatchString(name) {
					out, matched = append(out, p.fields[pattern]), true
				}
			}
		}
		if extra := n.fields["additionalProperties"]; !matched && extra != nil && extra.fields != nil {
			out = append(out, extra)
		}
	}
	return out
}

// candidates are values for an input of any kind, the most telling first: of each of its types, and alternatives.
func (b *builder) candidates(nodes []*jsonNode, path string) []any {
	var out []any
	add := func(v any, ok bool) {
		if ok && !slices.ContainsFunc(out, func(have any) bool { return sameValue(have, v) }) {
			out = append(out, v)
		}
	}
	branches := 1
	for _, n := range b.apply(nodes...) {
		for _, name := range alternatives {
			if list := n.fields[name]; list != nil {
				branches = max(branches, min(len(list.items), maxBranches))
			}
		}
	}
	for _, full := range []bool{true, false} { // a list or map without anything is made of what need not be full
		for branch := range branches {
			one := &builder{doc: b.doc, made: b.made, full: full, branch: branch}
			applied := one.apply(nodes...)
			for _, kind := range types(applied) {
				one.work = 0
				add(one.value(applied, kind, path, 0))
			}
		}
	}
	return out
}

// maxBranches bounds the alternatives that are tried of one choice.
const maxBranches = 8
