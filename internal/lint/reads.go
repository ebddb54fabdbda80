package lint

import (
	"maps"
	"slices"
	"strings"
	"text/template/parse"

	"zaentrum.io/zae/internal/render"
)

// What templates read is found by walking them with places instead of values: a dot, a variable or a result is
// a set of paths it may stand for. Where that cannot be followed, everything counts as read, so that nothing is
// said that is not so.

// place is a path from what a template is called with: nothing for all of it, Values, Chart and so on below.
type place struct {
	values []string // where the chart whose template it is gets its values
	path   []string
}

func (p place) same(other place) bool {
	return slices.Equal(p.path, other.path) && slices.Equal(p.values, other.values)
}

// thing is what an expression may stand for.
type thing struct {
	places []place
	fields map[string]thing // of a dict that the template made
	text   *string          // a constant
}

func (t thing) field(name string) thing {
	var out thing
	for _, p := range t.places {
		if len(p.path) < maxReadDepth {
			out.places = append(out.places, place{p.values, append(p.path[:len(p.path):len(p.path)], name)})
		}
	}
	if sub, ok := t.fields[name]; ok {
		out = union(out, sub)
	}
	return out
}

func union(all ...thing) thing {
	var out thing
	for _, t := range all {
		for _, p := range t.places {
			if !slices.ContainsFunc(out.places, p.same) {
				out.places = append(out.places, p)
			}
		}
		for name, sub := range t.fields {
			if out.fields == nil {
				out.fields = map[string]thing{}
			}
			out.fields[name] = union(out.fields[name], sub)
		}
	}
	return out
}

// size is how many places a thing has, of its fields too.
func (t thing) size() int {
	n := 1 + len(t.places)
	for _, sub := range t.fields {
		n += sub.size()
	}
	return n
}

// id tells things apart, for templates that are called again.
func (t thing) id() string {
	var b strings.Builder
	for _, p := range t.places {
		b.WriteString(strings.Join(p.values, ".") + "|" + strings.Join(p.path, ".") + ";")
	}
	for _, name := range slices.Sorted(maps.Keys(t.fields)) {
		b.WriteString(name + "{" + t.fields[name].id() + "}")
	}
	return b.String()
}

const (
	maxReadDepth = 40
	maxCalls     = 20_000
	maxSteps     = 2_000_000 // nodes looked at, in all templates as often as they are called
	maxThing     = 400       // places that one expression may stand for
	maxActions   = 20_000    // in one text: what is nested in each other is among them
)

// read is one path of values that a template reads.
type read struct {
	path  []string // in the outermost chart's values
	whole bool     // with everything below it
	file  string
	at    position
	inner bool // by a bundled chart
}

// reads are what all templates of a chart read.
type reads struct {
	list []read
	// all tells that some template may read anything.
	all bool

	seen    map[string]bool
	defines map[string][]define
	called  map[string]bool // named templates that some template calls
	visited map[string]bool
	calls   int
	steps   int
}

// define is a named template.
type define struct {
	tree *parse.Tree
	src  render.Source
}

// readsOf walks the templates.
func readsOf(sources []render.Source) *reads {
	r := &reads{seen: map[string]bool{}, defines: map[string][]define{}, called: map[string]bool{}, visited: map[string]bool{}}
	type body struct {
		tree *parse.Tree
		src  render.Source
	}
	var bodies []body
	for _, s := range sources {
		trees := parseText(s.Text)
		if trees == nil {
			r.all = true
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(trees)) {
			if name != mainTree {
				r.defines[name] = append(r.defines[name], define{trees[name], s})
			}
		}
		if main := trees[mainTree]; main != nil && !s.Partial {
			bodies = append(bodies, body{main, s})
		}
	}
	for _, b := range bodies {
		w := &walker{reads: r, src: b.src, text: b.src.Text}
		root := thing{places: []place{{values: b.src.Values}}}
		w.list(b.tree.Root, root, map[string]thing{"$": root})
	}
	return r
}

const mainTree = "zae:main"

// parseText are the trees of a template and of those it defines; nil when it does not parse, or is too much.
func parseText(text string) map[string]*parse.Tree {
	if strings.Count(text, "{{") > maxActions {
		return nil
	}
	set := map[string]*parse.Tree{}
	tree := parse.New(mainTree)
	tree.Mode = parse.SkipFuncCheck
	if _, err := tree.Parse(text, "", "", set); err != nil {
		return nil
	}
	if set[mainTree] == nil {
		set[mainTree] = tree
	}
	return set
}

// reads tells whether a path is read: itself, with one around it, or in part.
func (r *reads) reads(path []string) bool {
	if r.all {
		return true
	}
	return slices.ContainsFunc(r.list, func(one read) bool {
		switch {
		case len(one.path) > len(path):
			return slices.Equal(one.path[:len(path)], path)
		case len(one.path) == len(path):
			return slices.Equal(one.path, path)
		default:
			return one.whole && slices.Equal(one.path, path[:len(one.path)])
		}
	})
}

// walker is at one template.
type walker struct {
	*reads
	src   render.Source
	text  string
	depth int
}

func (w *walker) position(n parse.Node) position {
	at := int(n.Position())
	if f, ok := n.(*parse.FieldNode); ok && len(f.Ident) > 1 {
		// The parser keeps the place of the second name.
		if first := "." + f.Ident[0]; at >= len(first) && at <= len(w.text) && w.text[at-len(first):at] == first {
			at -= len(first)
		}
	}
	return positionAt(w.text, at)
}

// use notes that a thing is read at a node.
func (w *walker) use(t thing, whole bool, n parse.Node) {
	for _, p := range t.places {
		switch {
		case len(p.path) == 0:
			w.all = w.all || whole
		case p.path[0] != "Values":
		default:
			path := append(slices.Clone(p.values), p.path[1:]...)
			if len(p.path) > 1 && p.path[1] == "global" {
				path = p.path[1:]
			}
			key := strings.Join(path, "\x00") + w.src.File
			if whole {
				key += "\x01"
			}
			if !w.seen[key] {
				w.seen[key] = true
				w.reads.list = append(w.reads.list, read{path, whole, w.src.File, w.position(n), len(p.values) > 0})
			}
		}
	}
	if whole {
		for _, name := range slices.Sorted(maps.Keys(t.fields)) {
			w.use(t.fields[name], true, n)
		}
	}
}

func (w *walker) list(n *parse.ListNode, dot thing, vars map[string]thing) {
	if n == nil {
		return
	}
	for _, item := range n.Nodes {
		w.node(item, dot, vars)
	}
}

func (w *walker) node(n parse.Node, dot thing, vars map[string]thing) {
	if w.steps++; w.steps > maxSteps {
		w.all = true
		return
	}
	switch n := n.(type) {
	case *parse.ActionNode:
		v := w.pipe(n.Pipe, dot, vars)
		if len(n.Pipe.Decl) == 0 {
			w.use(v, true, w.last(n.Pipe))
		}
	case *parse.IfNode:
		inner := maps.Clone(vars)
		w.use(w.pipe(n.Pipe, dot, inner), false, w.last(n.Pipe))
		w.list(n.List, dot, inner)
		w.list(n.ElseList, dot, inner)
		w.assigned(vars, inner)
	case *parse.WithNode:
		inner := maps.Clone(vars)
		v := w.pipe(n.Pipe, dot, inner)
		w.use(v, false, w.last(n.Pipe))
		w.list(n.List, v, inner)
		w.list(n.ElseList, dot, inner)
		w.assigned(vars, inner)
	case *parse.RangeNode:
		inner := maps.Clone(vars)
		w.use(w.pipe(n.Pipe, dot, inner), true, w.last(n.Pipe))
		for _, d := range n.Pipe.Decl {
			inner[d.Ident[0]] = thing{}
		}
		w.list(n.List, thing{}, inner)
		w.list(n.ElseList, dot, inner)
		w.assigned(vars, inner)
	case *parse.TemplateNode:
		arg := thing{}
		if n.Pipe != nil {
			arg = w.pipe(n.Pipe, dot, vars)
		}
		w.call(n.Name, arg)
	}
}

// assigned keeps what branches assigned to variables from outside.
func (w *walker) assigned(outer, inner map[string]thing) {
	for name := range outer {
		if outer[name].id() != inner[name].id() {
			outer[name] = union(outer[name], inner[name])
		}
	}
}

// last is the node that a pipe's value is told by.
func (w *walker) last(p *parse.PipeNode) parse.Node {
	if len(p.Cmds) == 0 {
		return p
	}
	return first(p.Cmds[0].Args)
}

// first is the first argument that is a path, else the first one.
func first(args []parse.Node) parse.Node {
	if i := slices.IndexFunc(args, told); i >= 0 {
		return args[i]
	}
	return args[0]
}

// told tells whether a node is a path, which people find again.
func told(n parse.Node) bool {
	switch n.(type) {
	case *parse.FieldNode, *parse.VariableNode, *parse.ChainNode:
		return true
	}
	return false
}

func (w *walker) pipe(p *parse.PipeNode, dot thing, vars map[string]thing) thing {
	var v thing
	var from parse.Node // what the value is told by
	for i, cmd := range p.Cmds {
		var piped *argument
		if i > 0 {
			piped = &argument{v, from}
		}
		v = w.command(cmd, dot, vars, piped)
		if i == 0 || !told(from) {
			from = first(cmd.Args)
		}
	}
	if v.size() > maxThing {
		w.all, v = true, thing{}
	}
	for _, d := range p.Decl {
		vars[d.Ident[0]] = v
	}
	return v
}

func (w *walker) command(c *parse.CommandNode, dot thing, vars map[string]thing, piped *argument) thing {
	if name, ok := c.Args[0].(*parse.IdentifierNode); ok {
		args := make([]argument, 0, len(c.Args))
		for _, arg := range c.Args[1:] {
			args = append(args, argument{w.operand(arg, dot, vars), arg})
		}
		if piped != nil {
			args = append(args, *piped)
		}
		return w.function(name.Ident, args)
	}
	v := w.operand(c.Args[0], dot, vars)
	for _, arg := range c.Args[1:] { // a method, such as .Files.Get
		w.use(w.operand(arg, dot, vars), true, arg)
	}
	if piped != nil {
		w.use(piped.thing, true, piped.node)
	}
	return v
}

func (w *walker) operand(n parse.Node, dot thing, vars map[string]thing) thing {
	switch n := n.(type) {
	case *parse.DotNode:
		return dot
	case *parse.FieldNode:
		return chain(dot, n.Ident)
	case *parse.VariableNode:
		return chain(vars[n.Ident[0]], n.Ident[1:])
	case *parse.ChainNode:
		return chain(w.operand(n.Node, dot, vars), n.Field)
	case *parse.PipeNode:
		return w.pipe(n, dot, vars)
	case *parse.StringNode:
		return thing{text: &n.Text}
	case *parse.IdentifierNode:
		return w.function(n.Ident, nil)
	default:
		return thing{}
	}
}

func chain(t thing, fields []string) thing {
	for _, f := range fields {
		t = t.field(f)
	}
	return t
}

// argument is what a function is called with.
type argument struct {
	thing
	node parse.Node
}

func (w *walker) function(name string, args []argument) thing {
	for i := range args {
		if args[i].size() > maxThing {
			w.all, args[i].thing = true, thing{}
		}
	}
	switch name {
	case "include":
		if len(args) == 2 && args[0].text != nil {
			w.call(*args[0].text, args[1].thing)
			return thing{}
		}
	case "tpl":
		return w.tpl(args)
	case "dict":
		return w.dict(args)
	case "index", "get":
		return w.index(args)
	case "dig":
		return w.dig(args)
	case "hasKey":
		if len(args) == 2 && args[1].text != nil {
			w.use(args[0].field(*args[1].text), false, args[0].node)
			return thing{}
		}
	case "empty", "not":
		for _, a := range args {
			w.use(a.thing, false, a.node)
		}
		return thing{}
	case "required", "default", "coalesce", "or", "and", "ternary", "merge", "mustMerge", "mergeOverwrite", "mustMergeOverwrite",
		"deepCopy", "mustDeepCopy", "first", "last", "list", "concat", "append", "prepend":
		all := make([]thing, len(args))
		for i, a := range args {
			all[i] = a.thing
			if len(a.fields) == 0 {
				w.use(a.thing, false, a.node)
			}
		}
		return union(all...)
	}
	for _, a := range args {
		w.use(a.thing, true, a.node)
	}
	return thing{}
}

func (w *walker) dict(args []argument) thing {
	out := thing{fields: map[string]thing{}}
	for i := 0; i+1 < len(args); i += 2 {
		if args[i].text == nil {
			w.use(args[i].thing, true, args[i].node)
			w.use(args[i+1].thing, true, args[i+1].node)
			continue
		}
		out.fields[*args[i].text] = args[i+1].thing
	}
	return out
}

func (w *walker) index(args []argument) thing {
	if len(args) == 0 {
		return thing{}
	}
	t := args[0].thing
	for _, key := range args[1:] {
		if key.text == nil {
			w.use(key.thing, true, key.node)
			w.use(t, true, args[0].node)
			return thing{}
		}
		t = t.field(*key.text)
	}
	return t
}

func (w *walker) dig(args []argument) thing {
	if len(args) < 3 {
		return thing{}
	}
	last := len(args) - 1
	t := args[last].thing
	for _, key := range args[:last-1] {
		if key.text == nil {
			w.use(args[last].thing, true, args[last].node)
			return args[last-1].thing
		}
		t = t.field(*key.text)
	}
	w.use(t, false, args[last].node)
	return union(t, args[last-1].thing)
}

// tpl runs a text as a template: one that is written in the template is walked, another may read anything.
func (w *walker) tpl(args []argument) thing {
	if len(args) != 2 {
		return thing{}
	}
	if args[0].text == nil {
		w.use(args[0].thing, true, args[0].node)
		w.use(args[1].thing, true, args[1].node)
		return thing{}
	}
	trees := parseText(*args[0].text)
	if trees == nil || w.depth > maxReadDepth {
		w.all = true
		return thing{}
	}
	inner := &walker{reads: w.reads, src: w.src, text: *args[0].text, depth: w.depth + 1}
	inner.list(trees[mainTree].Root, args[1].thing, map[string]thing{"$": args[1].thing})
	return thing{}
}

// call walks a named template with what it is called with.
func (w *walker) call(name string, arg thing) {
	w.called[name] = true
	key := name + "\x00" + arg.id()
	if w.visited[key] {
		return
	}
	w.visited[key] = true
	if w.calls++; w.calls > maxCalls || w.depth > maxReadDepth {
		w.all = true
		return
	}
	for _, d := range w.defines[name] {
		inner := &walker{reads: w.reads, src: d.src, text: d.src.Text, depth: w.depth + 1}
		inner.list(d.tree.Root, arg, map[string]thing{"$": arg})
	}
}
