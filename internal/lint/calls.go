package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template/parse"

	"zaentrum.io/zae/internal/render"
)

// telling are the functions whose calls are told of, and by which rule.
var telling = map[string]string{
	"lookup": "lookup",
	"now":    "reads-clock", "ago": "reads-clock",
	"randAlpha": "random-function", "randAlphaNum": "random-function", "randAscii": "random-function", "randNumeric": "random-function",
	"randBytes": "random-function", "randInt": "random-function", "shuffle": "random-function", "uuidv4": "random-function",
	"genPrivateKey": "random-function", "genCA": "random-function", "genCAWithKey": "random-function", "genSelfSignedCert": "random-function",
	"genSelfSignedCertWithKey": "random-function", "genSignedCert": "random-function", "genSignedCertWithKey": "random-function",
	"htpasswd": "random-function", "bcrypt": "random-function", "encryptAES": "random-function",
}

// calls finds the calls of functions that are told of, in what may be rendered.
func calls(sources []render.Source, r *reads, f *found) {
	for _, s := range sources {
		if strings.HasSuffix(s.File, "NOTES.txt") {
			continue
		}
		runs := func(name string) bool {
			if name == mainTree {
				return !s.Partial
			}
			return r.all || r.called[name]
		}
		callsIn(s.Text, 0, runs, func(function string, at int) {
			p := positionAt(s.Text, at)
			f.add(Finding{
				Rule: telling[function], File: s.File, Line: p.line, Column: p.column,
				Message: fmt.Sprintf("the template calls %s (line %d)", function, p.line),
			}, static)
		})
	}
}

const maxInside = 3

func callsIn(text string, inside int, runs func(name string) bool, report func(function string, at int)) {
	trees := parseText(text)
	for _, name := range slices.Sorted(maps.Keys(trees)) {
		tree := trees[name]
		if inside == 0 && !runs(name) {
			continue
		}
		eachNode(tree.Root, func(n parse.Node) {
			switch n := n.(type) {
			case *parse.IdentifierNode:
				if telling[n.Ident] != "" {
					report(n.Ident, int(n.Pos))
				}
			case *parse.StringNode:
				if inside < maxInside && strings.Contains(n.Text, "{{") {
					callsIn(n.Text, inside+1, runs, func(function string, _ int) { report(function, int(n.Pos)) })
				}
			}
		})
	}
}

// eachNode visits a node and all nodes in it.
func eachNode(n parse.Node, visit func(parse.Node)) {
	pipe := func(p *parse.PipeNode) {
		if p != nil {
			for _, c := range p.Cmds {
				eachNode(c, visit)
			}
		}
	}
	list := func(l *parse.ListNode) {
		if l != nil {
			for _, item := range l.Nodes {
				eachNode(item, visit)
			}
		}
	}
	branch := func(b *parse.BranchNode) {
		pipe(b.Pipe)
		list(b.List)
		list(b.ElseList)
	}
	switch n := n.(type) {
	case *parse.ListNode:
		list(n)
		return
	case *parse.PipeNode:
		pipe(n)
		return
	case *parse.ActionNode:
		pipe(n.Pipe)
	case *parse.TemplateNode:
		pipe(n.Pipe)
	case *parse.IfNode:
		branch(&n.BranchNode)
	case *parse.RangeNode:
		branch(&n.BranchNode)
	case *parse.WithNode:
		branch(&n.BranchNode)
	case *parse.CommandNode:
		for _, arg := range n.Args {
			eachNode(arg, visit)
		}
	case *parse.ChainNode:
		eachNode(n.Node, visit)
	}
	visit(n)
}
