package inputs

import (
	"encoding/json"
	"slices"
	"strings"

	"zaentrum.io/zae/api/v1alpha1"
)

const (
	maxGroupDepth = 16        // groups inside groups; what is deeper is one JSON input
	maxGroupPath  = 500       // bytes of a group's path, which all its inputs repeat; with more it is one JSON input
	maxInputs     = 1000      // inputs after which groups are no longer opened
	maxText       = 1 << 20   // bytes of all inputs together, after which groups are no longer opened and texts are left out
	maxLooks      = 2_000_000 // schemas looked at, altogether; with more the schema is refused
)

// describer lists inputs. It never leaves one out: what it cannot open is one JSON input.
type describer struct {
	inputs  []Input
	details []detail
	groups  []Group
	rules   map[string][]condition // by path, of what is required on a condition
	loose   map[string]bool        // by path, the objects that may have more than is declared
	views   map[*subschema]view    // of one schema
	looks   int
	hints   int
	text    int
	secrets []view // what applies to secret inputs, and to those that hold secrets
}

// detail is what a schema keeps of an input besides.
type detail struct {
	path []string
	when []condition
}

// look counts the work of reading a view.
func (d *describer) look(n int) {
	if d.looks += 1 + n; d.looks > maxLooks {
		panic(tooInvolved{})
	}
}

// tooInvolved is what look panics with; describe recovers it.
type tooInvolved struct{}

// view is all schemas that apply to one value: a schema, where its $ref leads, and what its allOf holds.
type view []*subschema

// view is never empty and holds each schema once, in document order.
func (d *describer) view(list ...*subschema) view {
	if len(list) != 1 {
		return d.gather(list)
	}
	v, known := d.views[list[0].target]
	if !known {
		v = d.gather(list)
		d.views[list[0].target] = v
	}
	d.look(len(v))
	return v
}

func (d *describer) gather(list []*subschema) view {
	var out view
	seen := map[*subschema]bool{}
	var visit func(s *subschema)
	visit = func(s *subschema) {
		if s = s.target; seen[s] {
			return
		}
		seen[s] = true
		out = append(out, s)
		d.look(len(s.kids["allOf"]))
		for _, k := range s.kids["allOf"] {
			visit(k.sub)
		}
	}
	for _, s := range list {
		visit(s)
	}
	return out
}

// alternatives are the schemas that may apply to the same value besides v.
func (d *describer) alternatives(v view) view {
	var list []*subschema
	seen := map[*subschema]bool{}
	var visit func(v view)
	visit = func(v view) {
		for _, s := range v {
			d.look(0)
			for _, keyword := range []string{"anyOf", "oneOf", "then", "else", "dependencies", "if"} {
				for _, k := range s.kids[keyword] {
					if sub := k.sub.target; !seen[sub] {
						seen[sub] = true
						list = append(list, sub)
						visit(d.view(sub))
					}
				}
			}
		}
	}
	visit(v)
	if len(list) == 0 {
		return nil
	}
	return d.view(list...)
}

// property is one name inside an object and all schemas that may apply to its value.
type property struct {
	name        string
	declared    []*subschema // outside of alternatives
	alternative []*subschema // only there
}

// properties are the names that the object's schemas know: declared ones first, in document order.
func (d *describer) properties(v, alternatives view) []property {
	var out []property
	index := map[string]int{}
	gather := func(v view, put func(p *property, s *subschema)) {
		for _, s := range v {
			d.look(len(s.kids["properties"]))
			for _, k := range s.kids["properties"] {
				i, ok := index[k.key]
				if !ok {
					i = len(out)
					index[k.key] = i
					out = append(out, property{name: k.key})
				}
				put(&out[i], k.sub)
			}
		}
	}
	gather(v, func(p *property, s *subschema) { p.declared = append(p.declared, s) })
	gather(alternatives, func(p *property, s *subschema) { p.alternative = append(p.alternative, s) })
	return out
}

// place is where in the values the describer is.
type place struct {
	path          []string
	required      bool // everything around requires it
	inGroup       bool // the object around requires it
	conditional   bool
	secret        bool // something around is writeOnly
	unaddressable bool
	around        []view
	when          []condition // under which something around is required
	schemas       []*subschema
}

func (d *describer) describe(root view) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case tooInvolved:
			err = invalid("", "takes too long to read")
		default:
			panic(r)
		}
	}()
	return d.object(root, d.properties(root, d.alternatives(root)), place{required: true})
}

func (d *describer) object(v view, properties []property, at place) error {
	d.conditions(v, at.path)
	if v.loose() {
		d.loose[ruleKey(at.path)] = true
	}
	required := d.required(v)
	for _, p := range properties {
		if len(at.path) == 0 && p.name == v1alpha1.PlatformKey {
			continue // the operator's, nobody gives it
		}
		inside := at
		inside.path = append(slices.Clone(at.path), p.name)
		inside.around = append(slices.Clone(at.around), v)
		inside.inGroup = required[p.name]
		inside.unaddressable = at.unaddressable || p.name == "" || strings.Contains(p.name, ".")
		list := p.declared
		if len(list) == 0 {
			list = p.alternative
			inside.conditional = true
		}
		inside.required = at.required && inside.inGroup && !inside.conditional
		inside.when = d.rules[ruleKey(inside.path)]
		if inside.inGroup && !inside.conditional {
			inside.when = append(slices.Clone(inside.when), at.when...)
		}
		inside.schemas = list
		if err := d.value(d.view(list...), d.view(p.alternative...), inside); err != nil {
			return err
		}
	}
	return nil
}

// value lists the input or inputs that one property is. more are schemas that may apply to it besides v.
func (d *describer) value(v, more view, at place) error {
	d.look(fieldsPerView * (len(v) + len(more)))
	for _, s := range v {
		if list := s.src.field("enum"); list != nil {
			d.look(fieldsPerView * len(list.items))
		}
	}
	if v.forbidden() {
		return nil
	}
	at.secret = at.secret || v.isTrue("writeOnly") || more.isTrue("writeOnly")
	generate, err := v.generate(at)
	if err != nil {
		return err
	}
	path := strings.Join(at.path, ".")
	// All that may apply besides, alternatives inside alternatives included.
	more = d.view(slices.Concat(d.alternatives(v), more, d.alternatives(more))...)
	kind := d.kind(v, at, (at.secret || generate != "") && !v.composed() && !more.composed())
	if kind == "object" && len(at.path) <= maxGroupDepth && len(path) <= maxGroupPath && len(d.inputs) < maxInputs && d.text < maxText && !d.repeats(v, at.around) {
		properties := d.properties(v, more)
		declared := slices.ContainsFunc(properties, func(p property) bool { return len(p.declared) > 0 })
		if declared {
			before := len(d.inputs)
			d.groups = append(d.groups, Group{
				Path:        path,
				Title:       d.told(v.text("title")),
				Description: d.told(v.text("description")),
				Required:    at.required,
				Open:        v.open(),
			})
			if err := d.object(v, properties, at); err != nil {
				return err
			}
			if len(d.inputs) > before {
				return nil
			}
			d.groups = d.groups[:len(d.groups)-1] // every property is forbidden
		}
	}
	d.inputs = append(d.inputs, d.input(v, more, at, path, kind, generate))
	d.details = append(d.details, detail{at.path, at.when})
	return nil
}

// fieldsPerView is about how often each schema of a view is asked for something when an input is described.
const fieldsPerView = 4

// told is a text of the schema as long as there is room for it: texts that references repeat without end are
// left out.
func (d *describer) told(text string) string {
	if d.text += len(text); d.text > maxText {
		return ""
	}
	return text
}

// room tells whether a value of the schema may be repeated in an input.
func (d *describer) room(n *node) bool {
	values, bytes := n.bulk()
	d.text += 8*values + bytes
	return d.text <= maxText
}

func (d *describer) input(v, more view, at place, path, kind, generate string) Input {
	d.text += len(path)
	in := Input{
		Path:             path,
		Group:            strings.Join(at.path[:len(at.path)-1], "."),
		Type:             kind,
		Title:            d.told(v.text("title")),
		Description:      d.told(v.text("description")),
		Required:         at.required,
		RequiredInGroup:  at.inGroup,
		Conditional:      at.conditional,
		Secret:           at.secret,
		Generate:         generate,
		Unaddressable:    at.unaddressable,
		Format:           d.told(v.text("format")),
		Pattern:          d.told(v.text("pattern")),
		MinLength:        v.number("minLength"),
		MaxLength:        v.number("maxLength"),
		Minimum:          v.number("minimum"),
		Maximum:          v.number("maximum"),
		ExclusiveMinimum: v.number("exclusiveMinimum"),
		ExclusiveMaximum: v.number("exclusiveMaximum"),
		MultipleOf:       v.number("multipleOf"),
	}
	if !in.Required {
		in.RequiredWhen = d.told(say(at.when))
	}
	if d.roomForEnum(v) {
		in.Enum = v.enum()
	}
	switch kind {
	case TypeString, TypeInteger, TypeNumber, TypeBoolean:
	default:
		in.Type = TypeJSON
		in.HoldsSecrets = slices.ContainsFunc(append(slices.Clone(v), more...), func(s *subschema) bool { return s.secrets })
	}
	if in.Secret || in.HoldsSecrets {
		d.secrets = append(d.secrets, v, more)
	}
	if n := v.first("default"); n != nil && !in.Secret && !in.HoldsSecrets && d.room(n) {
		in.Default = n.value()
	}
	return in
}

// roomForEnum tells whether the allowed values may be repeated in an input.
func (d *describer) roomForEnum(v view) bool {
	for _, s := range v {
		for _, keyword := range []string{"const", "enum"} {
			if n := s.src.field(keyword); n != nil && !d.room(n) {
				return false
			}
		}
	}
	return true
}

// first is the first value of a keyword, as the document has it.
func (v view) first(keyword string) *node {
	for _, s := range v {
		if n := s.src.field(keyword); n != nil {
			return n
		}
	}
	return nil
}

func (v view) text(keyword string) string {
	for _, s := range v {
		if text, ok := s.src.str(keyword); ok {
			return text
		}
	}
	return ""
}

func (v view) number(keyword string) json.Number {
	if n := v.first(keyword); n != nil && n.kind == kindNumber {
		return json.Number(n.text)
	}
	return ""
}

func (v view) isTrue(keyword string) bool {
	return slices.ContainsFunc(v, func(s *subschema) bool { return s.src.isTrue(keyword) })
}

// forbidden tells that no value at all is allowed.
func (v view) forbidden() bool {
	return slices.ContainsFunc(v, func(s *subschema) bool { return s.src.kind == kindBool && !s.src.truth })
}

// required are the names that the object's schemas require.
func (d *describer) required(v view) map[string]bool {
	out := map[string]bool{}
	for _, s := range v {
		list := s.src.field("required")
		if list == nil {
			continue
		}
		d.look(len(list.items))
		for _, item := range list.items {
			if item.kind == kindString {
				out[item.text] = true
			}
		}
	}
	return out
}

func (v view) requires(name string) bool {
	return slices.ContainsFunc(v, func(s *subschema) bool {
		list := s.src.field("required")
		return list != nil && slices.ContainsFunc(list.items, func(n *node) bool {
			return n.kind == kindString && n.text == name
		})
	})
}

// declares tells whether the object's schemas name a property, as one they describe or one they require.
func (v view) declares(name string) bool {
	for _, s := range v {
		for _, k := range s.kids["properties"] {
			if k.key == name {
				return true
			}
		}
	}
	return v.requires(name)
}

// open tells whether keys beyond the properties are described.
func (v view) open() bool {
	return slices.ContainsFunc(v, func(s *subschema) bool {
		extra := s.src.field("additionalProperties")
		return (extra != nil && extra.kind == kindObject) || len(s.kids["patternProperties"]) > 0
	})
}

// repeats tells whether a schema with properties is one of those around: a schema that contains itself.
func (d *describer) repeats(v view, around []view) bool {
	for _, s := range v {
		if len(s.kids["properties"]) == 0 {
			continue
		}
		for _, outer := range around {
			d.look(len(outer) / 8)
			if slices.Contains(outer, s) {
				return true
			}
		}
	}
	return false
}

// keyOfSecret tells whether a value can be kept under the path in a Secret (contract §1).
func keyOfSecret(path string) bool {
	return len(path) <= maxSecretPath && !strings.ContainsFunc(path, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && r != '-' && r != '_' && r != '.'
	})
}

// generate is the generator of an input. One that nobody knows is a fault, since the value it promises
// would be missing.
func (v view) generate(at place) (string, error) {
	for _, s := range v {
		n := s.src.field(GenerateKeyword)
		if n == nil {
			continue
		}
		where := s.place() + "/" + GenerateKeyword
		switch {
		case n.kind != kindString || (n.text != GenerateBase64 && n.text != GenerateHex):
			return "", badGenerator(where, "names no generator that is known")
		case at.unaddressable:
			return "", badGenerator(where, "needs a property that a dotted path leads to")
		case v.kind(true) != TypeString:
			return "", badGenerator(where, "makes a string, which the property does not take")
		case !keyOfSecret(strings.Join(at.path, ".")):
			// Without the hint too it must say what to do: a plan carries the message alone.
			return "", invalid(show(where), "the generated value is kept in a Secret, and %s is no key of one: keep property names to letters, digits, _ and -, and the path to %d characters",
				show(strings.Join(at.path, ".")), maxSecretPath)
		}
		return n.text, nil
	}
	return "", nil
}
