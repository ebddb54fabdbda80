package inputs

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"zaentrum.io/zae/api/v1alpha1"
)

// maxPlain is how many secrets in lists and maps are named; more would say no more.
const maxPlain = 100

// PlainSecrets are the paths of everything in the values, such as spec.values, that the schema makes secret, sorted:
// secret inputs, and whatever else a writeOnly applies to, in lists and maps too, as users[0].password. Of
// alternatives each counts that the values do not plainly refuse, by type, const, enum or required. A null is
// nothing.
//
// The work is bounded: of values and a schema that take more than that, what was found by then is told. The values
// are not changed, and no path holds one.
func (s *Schema) PlainSecrets(values map[string]any) []string {
	return slices.Sorted(maps.Keys(s.PlainSecretValues(values)))
}

// PlainSecretValues are what PlainSecrets names, by path.
func (s *Schema) PlainSecretValues(values map[string]any) map[string]any {
	found := map[string]any{}
	if s == nil || s.root == nil {
		return found
	}
	w := &plainWalk{found: found, left: maxWork, patterns: map[string]namePattern{}, known: map[*subschema]map[string]*subschema{}}
	told := &told{}
	for i, in := range s.inputs {
		if !in.Secret || in.Unaddressable {
			continue
		}
		var at any = values
		for _, key := range s.details[i].path {
			m, _ := at.(map[string]any)
			at = m[key]
		}
		if at != nil {
			found[in.Path] = at
			told.add(s.details[i].path)
		}
	}
	w.value(values, []*subschema{s.root}, spot{told: told})
	return found
}

// told are the inputs that were found, by their keys: what is in one of them is not told again.
type told struct {
	whole bool
	keys  map[string]*told
}

func (t *told) add(path []string) {
	for _, key := range path {
		next := t.keys[key]
		if next == nil {
			if next = new(told); t.keys == nil {
				t.keys = map[string]*told{}
			}
			t.keys[key] = next
		}
		t = next
	}
	t.whole = true
}

func (t *told) key(key string) *told {
	if t == nil {
		return nil
	}
	return t.keys[key]
}

// spot is where in the values a walk is.
type spot struct {
	outer  *spot // nil at the root
	step   string
	depth  int
	told   *told
	secret bool // something around is writeOnly
}

// String is the path, cut where it is too long to be shown.
func (at *spot) String() string {
	var steps []string
	for ; at.outer != nil; at = at.outer {
		steps = append(steps, at.step)
	}
	slices.Reverse(steps)
	return show(strings.TrimPrefix(strings.Join(steps, ""), "."))
}

func (at *spot) key(key string) spot {
	return spot{outer: at, step: "." + key, depth: at.depth + 1, told: at.told.key(key), secret: at.secret}
}

func (at *spot) item(i int) spot {
	return spot{outer: at, step: "[" + strconv.Itoa(i) + "]", depth: at.depth + 1, secret: at.secret}
}

// plainWalk goes through values and schema together. It looks at each value once, with all schemas that apply.
type plainWalk struct {
	found    map[string]any
	more     int // those found that are no inputs
	left     int
	patterns map[string]namePattern
	known    map[*subschema]map[string]*subschema // properties by name
}

// namePattern is a pattern of property names; without re it is none, or too large.
type namePattern struct {
	re   *regexp.Regexp
	size int
}

// spend counts work, and tells whether there is some left.
func (w *plainWalk) spend(n int) bool {
	w.left -= n
	return w.left >= 0 && w.more < maxPlain
}

func (w *plainWalk) value(v any, schemas []*subschema, at spot) {
	if v == nil || at.depth > maxDepth || !w.spend(1) || at.told != nil && at.told.whole {
		return
	}
	all := w.apply(v, schemas)
	at.secret = at.secret || all.isTrue("writeOnly")
	if len(all) == 0 && !at.secret {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if at.depth > 0 || key != v1alpha1.PlatformKey {
				w.value(v[key], w.property(all, key), at.key(key))
			}
		}
	case []any:
		for i, item := range v {
			w.value(item, w.item(all, i), at.item(i))
		}
	default:
		if at.secret {
			w.found[at.String()] = v
			w.more++
		}
	}
}

// apply is every schema with a secret in it that applies to the value or may: those given, where their $ref leads,
// and what they hold for the same value.
func (w *plainWalk) apply(v any, schemas []*subschema) view {
	var out view
	seen := map[*subschema]bool{}
	var visit func(s *subschema)
	visit = func(s *subschema) {
		if s = s.target; seen[s] || !s.secrets || !w.spend(1) {
			return
		}
		seen[s] = true
		out = append(out, s)
		for _, k := range s.kids["allOf"] {
			visit(k.sub)
		}
		for _, keyword := range []string{"anyOf", "oneOf", "if", "else"} {
			for _, k := range s.kids[keyword] {
				if !w.refuses(k.sub, v, 0) {
					visit(k.sub)
				}
			}
		}
		for _, k := range s.kids["then"] {
			if condition := s.kids["if"]; len(condition) == 0 || !w.refuses(condition[0].sub, v, 0) {
				visit(k.sub)
			}
		}
		object, _ := v.(map[string]any)
		for _, k := range s.kids["dependencies"] {
			if _, there := object[k.key]; there {
				visit(k.sub)
			}
		}
	}
	for _, s := range schemas {
		visit(s)
	}
	return out
}

// property are the schemas of what is under a key.
func (w *plainWalk) property(all view, key string) []*subschema {
	var out []*subschema
	for _, s := range all {
		named := w.named(s)[key]
		if named != nil {
			out = append(out, named)
		}
		matched := named != nil
		for _, k := range s.kids["patternProperties"] {
			if w.matches(k.key, key) {
				matched = true
				out = append(out, k.sub)
			}
		}
		if !matched {
			for _, k := range s.kids["additionalProperties"] {
				out = append(out, k.sub)
			}
		}
	}
	return out
}

// item are the schemas of an item of a list.
func (w *plainWalk) item(all view, i int) []*subschema {
	var out []*subschema
	for _, s := range all {
		items := s.kids["items"]
		switch list := s.src.field("items"); {
		case list == nil:
		case list.kind != kindArray:
			for _, k := range items {
				out = append(out, k.sub)
			}
		case i < len(items):
			out = append(out, items[i].sub)
		default:
			for _, k := range s.kids["additionalItems"] {
				out = append(out, k.sub)
			}
		}
	}
	return out
}

func (w *plainWalk) named(s *subschema) map[string]*subschema {
	named, known := w.known[s]
	if !known {
		named = make(map[string]*subschema, len(s.kids["properties"]))
		for _, k := range s.kids["properties"] {
			named[k.key] = k.sub
		}
		w.known[s] = named
	}
	return named
}

// matches tells whether a name may match a pattern. One that is none, or too large, matches: Validate refuses it.
func (w *plainWalk) matches(pattern, name string) bool {
	p, known := w.patterns[pattern]
	if !known {
		if p.size = measure(pattern); p.size > 0 && p.size <= maxPattern && w.spend(p.size) {
			p.re, _ = regexp.Compile(pattern) // nil when it is none
		}
		w.patterns[pattern] = p
	}
	return p.re == nil || !w.spend(1+p.size*len(name)/perProgram) || p.re.MatchString(name)
}

// refuses tells whether a schema plainly refuses a value. False says nothing.
func (w *plainWalk) refuses(s *subschema, v any, depth int) bool {
	s = s.target
	if depth > maxGroupDepth || !w.spend(1) {
		return false
	}
	if s.src.kind == kindBool {
		return !s.src.truth
	}
	if !mayBe(s.src.field("type"), v) {
		return true
	}
	if n := s.src.field("const"); n != nil && differs(n, v) {
		return true
	}
	if n := s.src.field("enum"); n != nil && n.kind == kindArray && w.spend(len(n.items)) &&
		!slices.ContainsFunc(n.items, func(n *node) bool { return !differs(n, v) }) {
		return true
	}
	if object, ok := v.(map[string]any); ok && w.refusesObject(s, object, depth) {
		return true
	}
	return slices.ContainsFunc(s.kids["allOf"], func(k kid) bool { return w.refuses(k.sub, v, depth+1) })
}

func (w *plainWalk) refusesObject(s *subschema, object map[string]any, depth int) bool {
	if n := s.src.field("required"); n != nil && w.spend(len(n.items)) {
		for _, name := range n.items {
			if _, there := object[name.text]; !there && name.kind == kindString {
				return true
			}
		}
	}
	return slices.ContainsFunc(s.kids["properties"], func(k kid) bool {
		v, there := object[k.key]
		return there && w.refuses(k.sub, v, depth+1)
	})
}

// mayBe tells whether a value may be of a type, or of one of several.
func mayBe(n *node, v any) bool {
	switch {
	case n == nil:
		return true
	case n.kind == kindArray:
		return slices.ContainsFunc(n.items, func(n *node) bool { return mayBe(n, v) })
	case n.kind != kindString: // the schema is none
		return true
	}
	switch v.(type) {
	case nil:
		return n.text == "null"
	case bool:
		return n.text == "boolean"
	case string:
		return n.text == "string"
	case map[string]any:
		return n.text == "object"
	case []any:
		return n.text == "array"
	default:
		return n.text == "number" || n.text == "integer"
	}
}

// differs tells whether a value is plainly another one than that of the schema. Numbers, lists and objects may
// always be the same.
func differs(n *node, v any) bool {
	switch v := v.(type) {
	case nil:
		return n.kind != kindNull
	case bool:
		return n.kind != kindBool || n.truth != v
	case string:
		return n.kind != kindString || n.text != v
	case map[string]any:
		return n.kind != kindObject
	case []any:
		return n.kind != kindArray
	case int64, float64, json.Number:
		return n.kind != kindNumber
	default:
		return false
	}
}
