package lint

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/template/parse"

	"zaentrum.io/zae/internal/render"
)

// Sprig's keys and values are in another order each time. Whether that shows in the few renders that there are is
// chance, so the templates are looked at.

// ordered are the functions whose result is the same in whatever order they get a list.
var ordered = map[string]bool{
	"sortAlpha": true, "len": true, "has": true, "empty": true, "not": true, "kindOf": true, "typeOf": true, "kindIs": true, "typeIs": true,
	"and": true, "or": true, "ternary": true, "eq": true, "ne": true, "max": true, "min": true, "maxf": true, "minf": true, "add": true, "fail": true,
}

// shuffled finds calls of keys and values whose order goes on into what is rendered, in what may be rendered. It tells
// whether there are such, and nothing else that makes renders differ.
func shuffled(sources []render.Source, r *reads, f *found) bool {
	random := slices.ContainsFunc(f.list, func(one Finding) bool { return one.Rule == "random-function" || one.Rule == "reads-clock" })
	some := false
	for _, s := range sources {
		if strings.HasSuffix(s.File, "NOTES.txt") {
			continue
		}
		trees := parseText(s.Text)
		for _, name := range slices.Sorted(maps.Keys(trees)) {
			if name == mainTree && s.Partial || name != mainTree && !r.all && !r.called[name] {
				continue
			}
			o := &order{unsorted: map[string]parse.Node{}}
			o.list(trees[name].Root)
			for _, one := range o.seen {
				some = true
				p := positionAt(s.Text, int(one.node.Position()))
				f.add(Finding{
					Rule: "not-deterministic", Severity: one.severity, File: s.File, Line: p.line, Column: p.column,
					Message: fmt.Sprintf("%s gives another order each time (line %d)", one.node.Ident, p.line),
					Fix:     "Pipe it through sortAlpha, or range over the map itself, which goes by its keys in order.",
				}, static)
			}
		}
	}
	return some && !random
}

// order is at one template.
type order struct {
	// unsorted are the variables that hold what is in no order, with the call that made it.
	unsorted map[string]parse.Node
	seen     []disorder
}

// disorder is a call whose order is seen.
type disorder struct {
	node     *parse.IdentifierNode
	severity Severity
}

func (o *order) tell(call parse.Node, severity Severity) {
	id, ok := call.(*parse.IdentifierNode)
	if !ok {
		return
	}
	for i, one := range o.seen {
		if one.node == id {
			if severity.rank() < one.severity.rank() {
				o.seen[i].severity = severity
			}
			return
		}
	}
	o.seen = append(o.seen, disorder{id, severity})
}

func (o *order) list(l *parse.ListNode) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		o.node(n)
	}
}

// anItem is an item of a YAML list.
var anItem = regexp.MustCompile(`(?m)^[ \t]*- `)

func (o *order) node(n parse.Node) {
	switch n := n.(type) {
	case *parse.ActionNode:
		call := o.pipe(n.Pipe)
		if len(n.Pipe.Decl) == 1 {
			name := n.Pipe.Decl[0].Ident[0]
			if call != nil {
				o.unsorted[name] = call
			} else {
				delete(o.unsorted, name)
			}
			return
		}
		if call != nil {
			o.tell(call, Error)
		}
	case *parse.IfNode:
		o.pipe(n.Pipe)
		o.list(n.List)
		o.list(n.ElseList)
	case *parse.WithNode:
		if call := o.pipe(n.Pipe); call != nil {
			o.tell(call, Warning) // what becomes of the dot is not followed
		}
		o.list(n.List)
		o.list(n.ElseList)
	case *parse.RangeNode:
		if call := o.pipe(n.Pipe); call != nil {
			severity := Warning // members of a map may come in any order
			if anItem.MatchString(n.List.String()) {
				severity = Error
			}
			o.tell(call, severity)
		}
		o.list(n.List)
		o.list(n.ElseList)
	case *parse.TemplateNode:
		if n.Pipe != nil {
			if call := o.pipe(n.Pipe); call != nil {
				o.tell(call, Warning)
			}
		}
	}
}

// pipe is the call whose order the result of a pipe still has; nil for none.
func (o *order) pipe(p *parse.PipeNode) parse.Node {
	var last parse.Node
	for _, c := range p.Cmds {
		last = o.command(c, last)
	}
	return last
}

// command is the same for a command that gets the result of another one.
func (o *order) command(c *parse.CommandNode, piped parse.Node) parse.Node {
	call := piped
	for _, arg := range c.Args {
		switch arg := arg.(type) {
		case *parse.PipeNode:
			if inner := o.pipe(arg); inner != nil {
				call = inner
			}
		case *parse.VariableNode:
			if made := o.unsorted[arg.Ident[0]]; made != nil {
				call = made
			}
		}
	}
	id, ok := c.Args[0].(*parse.IdentifierNode)
	switch {
	case !ok:
		return call
	case ordered[id.Ident]:
		return nil
	case id.Ident == "keys" || id.Ident == "values":
		return id
	case id.Ident == "include" || id.Ident == "tpl":
		if call != nil {
			o.tell(call, Warning) // what becomes of it there is not followed
		}
		return nil
	default:
		return call
	}
}
