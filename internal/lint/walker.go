package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template/parse"

	"zaentrum.io/zae/internal/render"
)

// walker is at one template.
type walker struct {
	*reads
	src   render.Source
	text  string
	depth int
	// tested are the places that the conditions around ask for, and asked are those that the one at hand does.
	tested []place
	asked  *[]place
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

// paths are where in the outermost chart's values a place is: values of a bundled chart that are global may be given
// there, or to any chart around it.
func (p place) paths() [][]string {
	if len(p.path) == 0 || p.path[0] != "Values" {
		return nil
	}
	own := append(slices.Clone(p.values), p.path[1:]...)
	if len(p.path) == 1 || p.path[1] != globalKey {
		return [][]string{own}
	}
	var out [][]string
	for n := range len(p.values) {
		out = append(out, append(slices.Clone(p.values[:n]), p.path[1:]...))
	}
	return append(out, own)
}

// globalKey is the key of values that bundled charts see, too.
const globalKey = "global"

// use notes that a thing is read at a node.
func (w *walker) use(t thing, whole bool, n parse.Node) {
	for i, p := range t.places {
		if len(p.path) == 0 {
			w.all = w.all || whole
			continue
		}
		if w.asked != nil {
			*w.asked = append(*w.asked, p)
		}
		one := read{whole: whole, file: w.src.File, inner: len(p.values) > 0, made: t.made, tested: !whole || t.maybe || w.isTested(p)}
		for j, other := range t.places {
			if j != i {
				one.or = append(one.or, other.paths()...)
			}
		}
		for _, path := range p.paths() {
			one.path = path
			w.note(one, n)
		}
		if whole && len(p.path) == 1 && p.path[0] == "Values" { // what is global comes with it
			for _, path := range (place{p.values, []string{"Values", globalKey}}).paths() {
				one.path = path
				w.note(one, n)
			}
		}
	}
	if whole {
		for _, name := range slices.Sorted(maps.Keys(t.fields)) {
			w.use(t.fields[name], true, n)
		}
	}
}

func (w *walker) note(one read, n parse.Node) {
	key := fmt.Sprintf("%s\x00%s\x00%v%v%v%d", strings.Join(one.path, "\x00"), one.file, one.whole, one.tested, one.made, len(one.or))
	if !w.seen[key] {
		w.seen[key] = true
		one.at = w.position(n)
		w.reads.list = append(w.reads.list, one)
	}
}

// isTested tells whether a condition around asks for a place, or for one that it is in.
func (w *walker) isTested(p place) bool {
	return slices.ContainsFunc(w.tested, func(t place) bool {
		return slices.Equal(t.values, p.values) && len(t.path) <= len(p.path) && slices.Equal(t.path, p.path[:len(t.path)])
	})
}

// asking runs a condition, and then a branch that knows what was asked for.
func (w *walker) asking(condition func(), branch func()) {
	outer, before := w.asked, w.tested
	var asked []place
	w.asked = &asked
	condition()
	w.asked = outer
	if outer != nil {
		*outer = append(*outer, asked...)
	}
	w.tested = append(slices.Clone(before), asked...)
	branch()
	w.tested = before
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
		w.asking(func() { w.use(w.pipe(n.Pipe, dot, inner), false, w.last(n.Pipe)) }, func() { w.list(n.List, dot, inner) })
		w.list(n.ElseList, dot, inner)
		w.assigned(vars, inner)
	case *parse.WithNode:
		inner := maps.Clone(vars)
		var v thing
		w.asking(func() {
			v = w.pipe(n.Pipe, dot, inner)
			w.use(v, false, w.last(n.Pipe))
		}, func() { w.list(n.List, v, inner) })
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
		before := w.tested
		for _, arg := range c.Args[1:] {
			v := w.operand(arg, dot, vars)
			args = append(args, argument{v, arg})
			if name.Ident == "and" { // what comes behind is only looked at when this is there
				w.tested = append(slices.Clip(w.tested), v.places...)
			}
		}
		w.tested = before
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
	w.parses(name, args)
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
	case "merge", "mustMerge", "mergeOverwrite", "mustMergeOverwrite", "set":
		w.writes(name, args)
		if name != "set" {
			return w.oneOf(args, false)
		}
	case "default", "coalesce", "or", "and", "ternary":
		return w.oneOf(args, true)
	case "required", "deepCopy", "mustDeepCopy", "first", "last", "list", "concat", "append", "prepend":
		return w.oneOf(args, false)
	}
	for _, a := range args {
		w.use(a.thing, true, a.node)
	}
	if passing[name] && len(args) > 0 {
		return args[len(args)-1].thing
	}
	return thing{}
}

// oneOf is one of the arguments; maybe tells that the template can do without some of them.
func (w *walker) oneOf(args []argument, maybe bool) thing {
	all := make([]thing, len(args))
	for i, a := range args {
		all[i] = a.thing
		if len(a.fields) == 0 {
			w.use(a.thing, false, a.node)
		}
	}
	out := union(all...)
	out.maybe = out.maybe || maybe
	return out
}

// writes notes what a function that changes its first argument writes to.
func (w *walker) writes(name string, args []argument) {
	if len(args) == 0 {
		return
	}
	to := args[0].thing
	if name == "set" && len(args) > 1 && args[1].text != nil {
		to = to.field(*args[1].text)
	}
	for _, p := range to.places {
		w.set = append(w.set, p.paths()...)
	}
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
	out := union(t, args[last-1].thing)
	out.maybe = true
	return out
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
