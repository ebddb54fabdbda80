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
	// made tells that it may also be something that the template has of its own, and maybe that the template goes on
	// without it.
	made, maybe bool
}

func (t thing) field(name string) thing {
	out := thing{maybe: t.maybe}
	for _, p := range t.places {
		if name == "AsMap" && len(p.path) == 1 && p.path[0] == "Values" { // a method: the same values
			out.places = append(out.places, p)
			continue
		}
		if len(p.path) < maxReadDepth {
			out.places = append(out.places, place{p.values, append(p.path[:len(p.path):len(p.path)], name)})
		}
	}
	if sub, ok := t.fields[name]; ok {
		out = union(out, sub)
		out.made = true
	}
	return out
}

func union(all ...thing) thing {
	var out thing
	for _, t := range all {
		out.made = out.made || t.made || t.text != nil
		out.maybe = out.maybe || t.maybe
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
	// tested tells that the template asks whether it is there, or has something else for it; or are the paths that it
	// may come from as well, and made that it may come from the template.
	tested bool
	or     [][]string
	made   bool
}

// reads are what all templates of a chart read.
type reads struct {
	list []read
	// all tells that some template may read anything.
	all bool

	// parsed are the texts that templates take for something.
	parsed []parsed

	// set are the paths that templates write to, with what is below them.
	set [][]string

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
