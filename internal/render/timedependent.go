package render

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"text/template/parse"

	helmchart "helm.sh/helm/v3/pkg/chart"

	"zaentrum.io/zae/internal/chart"
)

// clockFunctions are the template functions that read the clock. What they give may well be the same for two
// renders that follow each other at once.
var clockFunctions = []string{"ago", "now"}

// TimeDependent says where the templates of a chart and of the charts it bundles read the clock, as
// "file:line: …" in the order of the files' names. Code that a template has in a string, for tpl, is looked
// at too. A template that does not parse is left out: rendering says that.
func TimeDependent(c *chart.Chart) []string {
	var found []reading
	h := c.Helm()
	clockReadings(h, h.Name()+"/", &found)
	slices.SortFunc(found, func(a, b reading) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line), cmp.Compare(a.function, b.function))
	})
	var out []string
	for _, r := range slices.Compact(found) {
		if len(out) == maxDifferences {
			return append(out, "more templates read the clock")
		}
		out = append(out, fmt.Sprintf("%s:%d: the template calls %s, so what it renders changes with time", printable(r.file), r.line, r.function))
	}
	return out
}

// reading is one place where the clock is read.
type reading struct {
	file     string
	line     int
	function string
}

func clockReadings(h *helmchart.Chart, prefix string, found *[]reading) {
	for _, t := range h.Templates {
		name := strings.TrimPrefix(path.Join(h.ChartFullPath(), t.Name), prefix)
		if strings.HasSuffix(name, notesSuffix) {
			continue
		}
		scan(string(t.Data), 0, func(function string, line int) {
			*found = append(*found, reading{name, line, function})
		})
	}
	for _, sub := range h.Dependencies() {
		clockReadings(sub, prefix, found)
	}
}

// maxInside is how deep strings with code in strings with code are looked at.
const maxInside = 3

// scan reports each call of a clock function in the text of a template.
func scan(text string, inside int, report func(function string, line int)) {
	set := map[string]*parse.Tree{}
	tree := parse.New("template")
	tree.Mode = parse.SkipFuncCheck
	if _, err := tree.Parse(text, "", "", set); err != nil {
		return
	}
	line := func(n parse.Node) int {
		at := min(max(int(n.Position()), 0), len(text))
		return 1 + strings.Count(text[:at], "\n")
	}
	for _, t := range set {
		if t.Root == nil {
			continue
		}
		walk(t.Root, func(n parse.Node) {
			switch n := n.(type) {
			case *parse.IdentifierNode:
				if slices.Contains(clockFunctions, n.Ident) {
					report(n.Ident, line(n))
				}
			case *parse.StringNode:
				if inside < maxInside && strings.Contains(n.Text, "{{") {
					scan(n.Text, inside+1, func(function string, _ int) { report(function, line(n)) })
				}
			}
		})
	}
}

// walk visits a node and all nodes in it.
func walk(n parse.Node, visit func(parse.Node)) {
	visit(n)
	switch n := n.(type) {
	case *parse.ListNode:
		for _, item := range n.Nodes {
			walk(item, visit)
		}
	case *parse.ActionNode:
		walkPipe(n.Pipe, visit)
	case *parse.TemplateNode:
		walkPipe(n.Pipe, visit)
	case *parse.IfNode:
		walkBranch(&n.BranchNode, visit)
	case *parse.RangeNode:
		walkBranch(&n.BranchNode, visit)
	case *parse.WithNode:
		walkBranch(&n.BranchNode, visit)
	case *parse.CommandNode:
		for _, arg := range n.Args {
			walk(arg, visit)
		}
	case *parse.PipeNode:
		walkPipe(n, visit)
	case *parse.ChainNode:
		walk(n.Node, visit)
	}
}

func walkPipe(p *parse.PipeNode, visit func(parse.Node)) {
	if p == nil {
		return
	}
	for _, c := range p.Cmds {
		walk(c, visit)
	}
}

func walkBranch(b *parse.BranchNode, visit func(parse.Node)) {
	walkPipe(b.Pipe, visit)
	for _, list := range []*parse.ListNode{b.List, b.ElseList} {
		if list != nil {
			walk(list, visit)
		}
	}
}
