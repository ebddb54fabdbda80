package inputs

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// maxSubschemas bounds the work of compiling a schema, which is quadratic in places.
const maxSubschemas = 5_000

// maxInPlace bounds how many schemas may apply to one value one inside the other, through $ref, allOf and
// their like. With maxDepth it bounds the stack of a validation.
const maxInPlace = 100

// subschema is one schema inside the document: an object or a boolean.
type subschema struct {
	doc    *node      // as written
	src    *node      // what of it counts; the same unless something counts beside a $ref
	outer  *subschema // what place starts with: the schema around, or the base of the reference that found it
	tail   string     // what place ends with
	base   *subschema // what # in a $ref means here: the nearest schema around with an $id of its own
	target *subschema // what applies here: itself, or where a $ref leads in the end
	kids   map[string][]kid
	named  map[string]*subschema // of a base: its schemas with an $id like #name

	idle    bool // stands beside a $ref and counts for nothing, but must be a schema all the same
	secrets bool // writeOnly is somewhere in it or below
}

// place is where in the document s is, as #/properties/…. It is not kept: many schemas below long names would
// take more memory than the document by far.
func (s *subschema) place() string {
	var tails []string
	for ; s != nil; s = s.outer {
		tails = append(tails, s.tail)
	}
	slices.Reverse(tails)
	return strings.Join(tails, "")
}

// kid is a schema directly inside another, under a keyword; key is the property or index, or empty.
type kid struct {
	key string
	sub *subschema
}

// shape says how the schemas under a keyword are arranged.
type shape int

const (
	one shape = iota
	list
	dict
	oneOrList
)

// keywords are all draft-07 keywords that hold schemas.
var keywords = map[string]shape{
	"additionalItems":      one,
	"additionalProperties": one,
	"contains":             one,
	"else":                 one,
	"if":                   one,
	"not":                  one,
	"propertyNames":        one,
	"then":                 one,
	"allOf":                list,
	"anyOf":                list,
	"oneOf":                list,
	"definitions":          dict,
	"dependencies":         dict,
	"patternProperties":    dict,
	"properties":           dict,
	"items":                oneOrList,
}

// inPlace are the keywords whose schemas apply to the same value as the schema they are in.
var inPlace = []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependencies"}

// graph is every schema of the document that applies to something, with references resolved.
type graph struct {
	root  *subschema
	all   []*subschema
	bySrc map[*node]*subschema
}

// resolve finds the schemas of a document and where its references lead. A reference to another document is
// a fault; it is never followed.
func resolve(doc *node) (*graph, error) {
	g := &graph{bySrc: map[*node]*subschema{}}
	root, err := g.add(doc, nil, nil, "#")
	if err != nil {
		return nil, err
	}
	g.root = root
	for i := 0; i < len(g.all); i++ { //nolint:intrange // following a reference may add schemas
		if err := g.follow(g.all[i]); err != nil {
			return nil, err
		}
	}
	for _, s := range g.all {
		if err := s.settle(); err != nil {
			return nil, err
		}
	}
	if err := g.checkInPlace(); err != nil {
		return nil, err
	}
	g.markSecrets()
	return g, nil
}

// add makes the subschema of a node and of all schemas inside it.
func (g *graph) add(n *node, base, outer *subschema, tail string) (*subschema, error) {
	if s, ok := g.bySrc[n]; ok {
		return s, nil
	}
	if len(g.all) >= maxSubschemas {
		return nil, tooMany()
	}
	s := &subschema{doc: n, src: n, outer: outer, tail: tail, base: base, kids: map[string][]kid{}}
	g.all = append(g.all, s)
	g.bySrc[n] = s
	if n.field("$ref") != nil {
		if base == nil {
			s.base = s
		}
		if err := g.addIdle(s); err != nil {
			return nil, err
		}
		if s.src = besideRef(n); s.src == n {
			return s, nil
		}
		return s, g.addAllKids(s)
	}
	id, _ := n.str("$id")
	name, isName := strings.CutPrefix(id, "#")
	if base == nil || (id != "" && !isName) {
		s.base, s.named = s, map[string]*subschema{}
	}
	if isName {
		s.base.named[name] = s
	}
	return s, g.addAllKids(s)
}

// addIdle adds what stands beside a $ref: as Helm's validator does, the compiler looks at it. References in it
// lead nowhere and are not followed.
func (g *graph) addIdle(s *subschema) error {
	rest := &node{kind: kindObject, fields: map[string]*node{}}
	for _, key := range s.doc.keys {
		if key != "$ref" {
			rest.keys = append(rest.keys, key)
			rest.fields[key] = s.doc.fields[key]
		}
	}
	if len(rest.keys) == 0 {
		return nil
	}
	_, err := g.addIdleNode(rest, s, "")
	return err
}

func (g *graph) addIdleNode(n *node, outer *subschema, tail string) (*subschema, error) {
	if len(g.all) >= maxSubschemas {
		return nil, tooMany()
	}
	if ref := n.field("$ref"); ref != nil && ref.kind == kindString {
		n = &node{kind: kindBool, truth: true}
	}
	s := &subschema{doc: n, src: n, outer: outer, tail: tail, base: outer.base, kids: map[string][]kid{}, idle: true}
	g.all = append(g.all, s)
	return s, g.addAllKids(s)
}

func tooMany() error { return invalid("", "more than %d schemas in it", maxSubschemas) }

func (g *graph) addAllKids(s *subschema) error {
	for _, key := range s.src.keys {
		shape, ok := keywords[key]
		if !ok {
			continue
		}
		if err := g.addKids(s, key, shape, s.src.fields[key]); err != nil {
			return err
		}
	}
	return nil
}

// besideRef is what of a schema with a $ref counts. Draft-07 says that it is the $ref alone. Helm's validator
// heeds a const all the same, and a chart must not be judged otherwise here: so the $ref is one schema of all
// then.
func besideRef(n *node) *node {
	fixed := n.field("const")
	if fixed == nil {
		return n
	}
	ref := &node{kind: kindObject, keys: []string{"$ref"}, fields: map[string]*node{"$ref": n.fields["$ref"]}}
	all := &node{kind: kindArray, items: []*node{ref}}
	return &node{kind: kindObject, keys: []string{"const", "allOf"}, fields: map[string]*node{"const": fixed, "allOf": all}}
}

func (g *graph) addKids(s *subschema, keyword string, shape shape, n *node) error {
	put := func(key string, n *node, tail string) error {
		if n.kind != kindObject && n.kind != kindBool {
			return nil // the meta-schema refuses it later
		}
		add := func(tail string) (*subschema, error) { return g.add(n, s.base, s, tail) }
		if s.idle {
			add = func(tail string) (*subschema, error) { return g.addIdleNode(n, s, tail) }
		}
		sub, err := add("/" + keyword + tail)
		if err != nil {
			return err
		}
		s.kids[keyword] = append(s.kids[keyword], kid{key, sub})
		return nil
	}
	switch {
	case shape == dict && n.kind == kindObject:
		for _, key := range n.keys {
			if err := put(key, n.fields[key], "/"+escape(key)); err != nil {
				return err
			}
		}
	case (shape == list || shape == oneOrList) && n.kind == kindArray:
		for i, item := range n.items {
			if err := put(strconv.Itoa(i), item, "/"+strconv.Itoa(i)); err != nil {
				return err
			}
		}
	case shape == one || shape == oneOrList:
		return put("", n, "")
	}
	return nil
}

// follow resolves one step of a $ref.
func (g *graph) follow(s *subschema) error {
	s.target = s
	field := s.src.field("$ref")
	if field == nil {
		return nil
	}
	if field.kind != kindString {
		return invalid(show(s.place()), "$ref is not a string")
	}
	fragment, local := strings.CutPrefix(field.text, "#")
	if !local {
		return invalid(show(s.place()), "$ref leads to another document, which is never fetched").
			WithHint("move the schema into this file and refer to it as #/definitions/NAME")
	}
	fragment, err := url.PathUnescape(fragment)
	if err != nil {
		return invalid(show(s.place()), "$ref is no reference")
	}
	to, ok := s.base.doc, true
	switch {
	case fragment == "":
	case strings.HasPrefix(fragment, "/"):
		to, ok = walk(to, fragment)
	default:
		named, found := s.base.named[fragment]
		if found {
			to = named.doc
		}
		ok = found
	}
	if !ok {
		return invalid(show(s.place()), "$ref leads nowhere in this file")
	}
	if to.kind != kindObject && to.kind != kindBool {
		return invalid(show(s.place()), "$ref leads to something that is no schema")
	}
	target, known := g.bySrc[to]
	if !known {
		if target, err = g.add(to, s.base, s.base, fragment); err != nil {
			return err
		}
	}
	if target == s {
		return invalid(show(s.place()), "$ref leads back to itself")
	}
	s.target = target
	return nil
}

// walk follows a JSON pointer.
func walk(n *node, pointer string) (*node, bool) {
	for _, token := range strings.Split(pointer, "/")[1:] {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		switch n.kind {
		case kindObject:
			next, ok := n.fields[token]
			if !ok {
				return nil, false
			}
			n = next
		case kindArray:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(n.items) {
				return nil, false
			}
			n = n.items[i]
		default:
			return nil, false
		}
	}
	return n, true
}

// settle follows a chain of references to its end.
func (s *subschema) settle() error {
	var chain []*subschema
	seen := map[*subschema]bool{}
	at := s
	for at.target != at {
		if seen[at] {
			return invalid(show(s.place()), "$ref leads back to itself")
		}
		seen[at] = true
		chain = append(chain, at)
		at = at.target
	}
	for _, link := range chain {
		link.target = at
	}
	return nil
}

// checkInPlace refuses schemas that apply to one value without end, and those that do so too deep.
func (g *graph) checkInPlace() error {
	const open = -1
	height := map[*subschema]int{}
	var visit func(s *subschema) (int, error)
	visit = func(s *subschema) (int, error) {
		switch h := height[s]; {
		case h == open:
			return 0, invalid(show(s.place()), "the schema contains itself for the same value, without end")
		case h > 0:
			return h, nil
		}
		height[s] = open
		top := 0
		for _, keyword := range inPlace {
			for _, k := range s.kids[keyword] {
				h, err := visit(k.sub.target)
				if err != nil {
					return 0, err
				}
				top = max(top, h)
			}
		}
		if top++; top > maxInPlace {
			return 0, invalid(show(s.place()), "more than %d schemas apply to one value, one inside the other", maxInPlace)
		}
		height[s] = top
		return top, nil
	}
	for _, s := range g.all {
		if _, err := visit(s.target); err != nil {
			return err
		}
	}
	return nil
}

// markSecrets finds the schemas that hold a writeOnly anywhere.
func (g *graph) markSecrets() {
	around := map[*subschema][]*subschema{}
	var queue []*subschema
	for _, s := range g.all {
		if s.target != s {
			around[s.target] = append(around[s.target], s)
		} else if s.src.isTrue("writeOnly") {
			queue = append(queue, s)
		}
		for keyword, kids := range s.kids {
			if keyword == "definitions" {
				continue
			}
			for _, k := range kids {
				around[k.sub] = append(around[k.sub], s)
			}
		}
	}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		if !s.secrets {
			s.secrets = true
			queue = append(queue, around[s]...)
		}
	}
}

// escape writes a key as a token of a JSON pointer.
func escape(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}
