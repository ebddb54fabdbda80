package lint

import (
	"maps"
	"slices"
	"strings"

	"zaentrum.io/zae/internal/inputs"
)

// Alternatives of objects (oneOf, anyOf, if) ask for inputs that no input's own text tells of: each is a value to try,
// like a member of an enum.

// assign is a value at a path.
type assign struct {
	path  []string
	value any // nil is null
}

const (
	maxForks     = 12
	maxForkDepth = 6
)

// forks are the alternatives that the schema offers to its objects, each as a param whose choices give what one of
// them asks for.
func (s *space) forks() []param {
	if s.made.doc == nil {
		return nil
	}
	f := &forker{space: s, plain: &builder{doc: s.made.doc, made: s.made, branch: -1}, build: &builder{doc: s.made.doc, made: s.made}}
	f.object(nil, []*jsonNode{s.made.doc.root}, 0)
	return f.out
}

type forker struct {
	space *space
	plain *builder // takes no alternatives
	build *builder
	out   []param
}

// object looks at the schemas of the object at a path, and of those inside.
func (f *forker) object(path []string, nodes []*jsonNode, depth int) {
	if depth > maxForkDepth {
		return
	}
	applied := f.plain.apply(nodes...)
	for _, n := range applied {
		for _, name := range alternatives {
			if list := n.fields[name]; list != nil {
				f.oneOf(path, applied, list.items)
			}
		}
		f.condition(path, applied, n)
	}
	for _, name := range f.plain.names(applied, nil) {
		if sub := propertyNodes(applied, name); keyword(f.plain.apply(sub...), "properties") != nil {
			f.object(append(path[:len(path):len(path)], name), sub, depth+1)
		}
	}
}

// oneOf is a param of alternatives.
func (f *forker) oneOf(path []string, around, list []*jsonNode) {
	p := param{choices: []choice{{}}}
	for i, n := range list {
		if i < maxBranches {
			p.choices = f.choice(p.choices, path, f.asked(f.build.apply(n), around, path, 0))
		}
	}
	f.add(p)
}

// condition is a param of what "then" asks for, with what meets the "if", and of what "else" asks for. Where a param of
// its own meets it, that is enough.
func (f *forker) condition(path []string, around []*jsonNode, n *jsonNode) {
	if n.fields["if"] == nil {
		return
	}
	when := f.asked(f.build.apply(n.fields["if"]), around, path, 0)
	if !slices.ContainsFunc(flat(path, when), func(a assign) bool {
		in, known := f.space.schema.Input(strings.Join(a.path, "."))
		return !known || in.Enum == nil && in.Type != inputs.TypeBoolean
	}) {
		return
	}
	p := param{choices: []choice{{}}}
	both := f.asked(f.build.apply(n.fields["then"]), around, path, 0)
	maps.Copy(both, when)
	p.choices = f.choice(p.choices, path, both)
	f.add(param{choices: f.choice(p.choices, path, f.asked(f.build.apply(n.fields["else"]), around, path, 0))})
}

func (f *forker) add(p param) {
	if len(p.choices) > 1 && len(f.out) < maxForks {
		f.out = append(f.out, p)
	}
}

// choice adds what an alternative asks for, if it is something that no other one does.
func (f *forker) choice(list []choice, path []string, tree map[string]any) []choice {
	var says []string
	set := flat(path, tree)
	for _, a := range set {
		dotted := strings.Join(a.path, ".")
		says = append(says, dotted+" given")
		if n := f.build.apply(f.space.made.doc.properties(a.path)...); (keyword(n, "enum") != nil || keyword(n, "const") != nil) && !holdsMadeUp(a.value) {
			says[len(says)-1] = dotted + "=" + label(a.value)
		}
	}
	text := strings.Join(says, ", ")
	if len(set) == 0 || slices.ContainsFunc(list, func(c choice) bool { return c.label == text }) {
		return list
	}
	return append(list, choice{label: text, set: set})
}

// asked is what schemas ask for inside an object that others, around, describe: what they require, and what has to have
// a fixed value.
func (f *forker) asked(nodes, around []*jsonNode, path []string, depth int) map[string]any {
	out := map[string]any{}
	required := requiredNames(nodes)
	for _, name := range f.build.names(nodes, required) {
		at := slices.Concat(path, []string{name})
		own := f.build.apply(propertyNodes(nodes, name)...)
		all := f.build.apply(append(propertyNodes(nodes, name), propertyNodes(around, name)...)...)
		if keyword(all, inputs.GenerateKeyword) != nil { // the operator gives it
			continue
		}
		inner := map[string]any{}
		if depth < maxForkDepth {
			inner = f.asked(own, f.build.apply(propertyNodes(around, name)...), at, depth+1)
		}
		fixed := keyword(own, "const") != nil || keyword(own, "enum") != nil
		switch {
		case len(inner) > 0:
			out[name] = inner
		case fixed || slices.Contains(required, name):
			f.build.work = 0
			if v, ok := f.build.value(all, "", strings.Join(at, "."), 0); ok {
				out[name] = v
			}
		}
	}
	return out
}

// flat are the values in a tree, by path; those of a map without any are itself.
func flat(path []string, tree map[string]any) []assign {
	var out []assign
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		at := slices.Concat(path, []string{name})
		if sub, ok := tree[name].(map[string]any); ok && len(sub) > 0 {
			out = append(out, flat(at, sub)...)
			continue
		}
		out = append(out, assign{at, tree[name]})
	}
	return out
}
