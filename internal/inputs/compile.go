package inputs

import (
	"errors"
	"net/url"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	kinds "github.com/santhosh-tekuri/jsonschema/v6/kind"

	"zaentrum.io/zae/internal/fault"
)

// document is the address of the schema in the compiler. Nothing is ever read from it.
const document = "zae:///values.schema.json"

// refuse is a loader that loads nothing.
type refuse struct{}

func (refuse) Load(string) (any, error) { return nil, errors.New("nothing is fetched for a schema") }

// compile prepares validation. The compiler sees the schema in a form of its own: every schema at a place
// that draft-07 knows, every reference resolved to one of them, no $id and no $schema. So there is no other
// dialect and no address that it could be led to.
func compile(g *graph, m *meter) (*jsonschema.Schema, error) {
	e := &emitter{meter: m, weights: map[string]*jsonschema.Format{}}
	e.top("root", g.root)
	for i, s := range g.extra {
		if !g.inside[s] {
			e.top("extra"+strconv.Itoa(i), s)
		}
	}
	definitions := make(map[string]any, len(e.tops))
	for i, s := range e.tops {
		definitions[e.names[i]] = e.emit(s)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft7)
	c.UseLoader(refuse{})
	c.UseRegexpEngine(m.regexp)
	c.RegisterVocabulary(&jsonschema.Vocabulary{URL: propertyNames, Compile: compileNames})
	for _, f := range e.weights {
		c.RegisterFormat(f)
	}
	if err := c.AddResource(document, map[string]any{"definitions": definitions}); err != nil {
		return nil, invalid("", "cannot be compiled").Because(err)
	}
	compiled, err := c.Compile(document + "#/definitions/root")
	if err != nil {
		return nil, e.explain(err)
	}
	return compiled, nil
}

// emitter writes the form of a schema that the compiler sees.
type emitter struct {
	meter   *meter
	weights map[string]*jsonschema.Format
	tops    []*subschema // schemas right under definitions
	names   []string     // their names there
}

func (e *emitter) top(name string, s *subschema) {
	e.tops = append(e.tops, s)
	e.names = append(e.names, name)
	e.locate(s, "/definitions/"+name)
}

// locate says where s and what is inside it will be.
func (e *emitter) locate(s *subschema, pointer string) {
	s.pointer = pointer
	for _, keyword := range s.src.keys {
		for _, k := range s.kids[keyword] {
			if keyword == "propertyNames" {
				e.top("names"+strconv.Itoa(len(e.tops)), k.sub)
				continue
			}
			at := pointer + "/" + keyword
			if k.key != "" || keywords[keyword] == dict {
				at += "/" + escape(k.key)
			}
			e.locate(k.sub, at)
		}
	}
}

// emit writes s for the compiler.
func (e *emitter) emit(s *subschema) any {
	if s.src.kind != kindObject {
		return s.src.raw()
	}
	if s.target != s {
		return map[string]any{"$ref": "#" + encode(s.target.pointer)}
	}
	out := make(map[string]any, len(s.src.keys))
	for _, key := range s.src.keys {
		switch key {
		case "$schema", "$id", propertyNames:
		case "propertyNames":
			if kids := s.kids[key]; len(kids) > 0 {
				out[propertyNames] = "#" + encode(kids[0].sub.pointer)
				continue
			}
			fallthrough
		default:
			out[key] = e.emitField(s, key)
		}
	}
	if len(s.kids) > 0 {
		e.emitWeight(s, out)
	}
	return out
}

func (e *emitter) emitField(s *subschema, key string) any {
	field := s.src.fields[key]
	kids := s.kids[key]
	if len(kids) == 0 {
		return field.raw()
	}
	emitted := make(map[string]any, len(kids))
	for _, k := range kids {
		emitted[k.key] = e.emit(k.sub)
	}
	switch field.kind {
	case kindObject:
		if keywords[key] != dict {
			return emitted[""]
		}
		for _, name := range field.keys { // a dependency on property names, or something that is no schema
			if _, ok := emitted[name]; !ok {
				emitted[name] = field.fields[name].raw()
			}
		}
		return emitted
	case kindArray:
		items := make([]any, len(field.items))
		for i, item := range field.items {
			if sub, ok := emitted[strconv.Itoa(i)]; ok {
				items[i] = sub
			} else {
				items[i] = item.raw()
			}
		}
		return items
	default:
		return emitted[""]
	}
}

// emitWeight makes the validator report each visit of s to the meter, before it goes deeper. A format is
// the one thing it calls back for at that moment; the schema's own format moves into an allOf.
func (e *emitter) emitWeight(s *subschema, out map[string]any) {
	fixed, each := 1, 1
	for _, keyword := range inPlace {
		fixed += len(s.kids[keyword])
	}
	each += len(s.kids["patternProperties"]) + len(s.kids["contains"]) + len(s.kids["propertyNames"])
	name := "zae-" + strconv.Itoa(fixed) + "-" + strconv.Itoa(each)
	if m := e.meter; e.weights[name] == nil {
		e.weights[name] = &jsonschema.Format{Name: name, Validate: func(v any) error {
			m.spend(fixed + each*size(v))
			return nil
		}}
	}
	if own, there := out["format"]; there {
		_, isText := own.(string)
		all, isList := out["allOf"].([]any)
		if out["allOf"] == nil {
			isList = true
		}
		if !isText || !isList {
			return // the meta-schema refuses it
		}
		out["allOf"] = append(all, map[string]any{"format": own})
	}
	out["format"] = name
}

func size(v any) int {
	switch v := v.(type) {
	case map[string]any:
		return len(v)
	case []any:
		return len(v)
	default:
		return 0
	}
}

// encode writes a JSON pointer as a fragment.
func encode(pointer string) string {
	tokens := strings.Split(pointer, "/")
	for i, token := range tokens {
		tokens[i] = url.PathEscape(token)
	}
	return strings.Join(tokens, "/")
}

// explain says where in the file the schema is not one, in our own words.
func (e *emitter) explain(err error) *fault.Fault {
	var verr *jsonschema.ValidationError
	var serr *jsonschema.SchemaValidationError
	if !errors.As(err, &serr) || !errors.As(serr.Err, &verr) {
		return invalid("", "cannot be compiled").Because(err)
	}
	m := &messages{pathOf: e.placeOf}
	m.collect(verr)
	list := m.sorted()
	if len(list) == 0 {
		return invalid("", "not a draft-07 schema").Because(err)
	}
	return invalid(list[0], "not a draft-07 schema")
}

// placeOf turns a location in the compiled form into a place in the file.
func (e *emitter) placeOf(location []string) string {
	if len(location) < 2 {
		return "#"
	}
	i := slices.Index(e.names, location[1])
	if i < 0 {
		return "#"
	}
	place := e.tops[i].place
	for _, token := range location[2:] {
		place += "/" + escape(token)
	}
	return show(place)
}

// propertyNames is the keyword that stands for propertyNames in the compiled form. The validator's own
// reports a place that it overwrites later.
const propertyNames = "zae-propertyNames"

type namesSchema struct{ schema *jsonschema.Schema }

func compileNames(ctx *jsonschema.CompilerContext, obj map[string]any) (jsonschema.SchemaExt, error) {
	ref, ok := obj[propertyNames].(string)
	if !ok {
		return nil, nil
	}
	schema, err := ctx.EnqueueRef(ref)
	if err != nil {
		return nil, err
	}
	return namesSchema{schema}, nil
}

// Validate validates every key of an object.
func (n namesSchema) Validate(ctx *jsonschema.ValidatorContext, v any) {
	object, _ := v.(map[string]any)
	for key := range object {
		if ctx.Validate(n.schema, key, []string{key}) != nil {
			ctx.AddError(&kinds.PropertyNames{Property: key})
		}
	}
}

// meter bounds the work of one validation.
type meter struct {
	budget   int // units each validation may spend
	left     int
	programs int // size of all patterns together
}

const (
	maxWork     = 1_000_000 // schemas tried on values
	maxPattern  = 20_000    // instructions of one pattern
	maxPatterns = 400_000   // instructions of all patterns of a schema together
	perUnit     = 256       // steps of a pattern that count as one schema tried
)

// exhausted is what spend panics with; Validate recovers it.
type exhausted struct{}

func (m *meter) spend(units int) {
	if m.left -= units; m.left < 0 {
		panic(exhausted{})
	}
}

// meteredRegexp counts the work of matching.
type meteredRegexp struct {
	*regexp.Regexp
	size int
	m    *meter
}

// MatchString is regexp's, paid for.
func (r meteredRegexp) MatchString(s string) bool {
	r.m.spend(r.size * len(s) / perUnit)
	return r.Regexp.MatchString(s)
}

var errPatternSize = errors.New("the pattern is too large")

// regexp compiles a pattern, in the dialect that Helm has: Go's.
func (m *meter) regexp(pattern string) (jsonschema.Regexp, error) {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, err
	}
	size := programSize(tree)
	if m.programs += size; size > maxPattern || m.programs > maxPatterns {
		return nil, errPatternSize
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	return meteredRegexp{re, size, m}, nil
}

// programSize estimates how many instructions a pattern compiles to, repetitions multiplied out.
func programSize(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		n = min(n+programSize(sub), 1<<30)
	}
	if re.Op == syntax.OpRepeat {
		n = min(n*max(re.Min, re.Max, 1), 1<<30)
	}
	return n
}
