package inputs

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"slices"
	"strconv"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"zaentrum.io/zae/internal/fault"
)

// document is the address of the schema in the compiler. Nothing is ever read from it.
const document = "zae:///values.schema.json"

// refuse is a loader that loads nothing.
func refuse(string) (io.ReadCloser, error) { return nil, errors.New("nothing is fetched for a schema") }

// compiled is a schema ready to validate.
type compiled struct {
	schema *jsonschema.Schema
	index  index
}

// compile prepares validation. The compiler sees the schema in a form of its own: every schema at a place
// that draft-07 knows, every reference resolved to one of them, no $id, no $schema and no keyword of another
// draft. So there is no other dialect and no address that it could be led to.
func compile(g *graph, m *meter) (*compiled, error) {
	e := newEmitter(g, m)
	definitions := make(map[string]any, len(e.tops))
	for i, s := range e.tops {
		definitions[topName(i)] = e.emit(s)
	}
	if len(e.refused) > 0 {
		return nil, invalid(slices.Min(e.refused), "not a draft-07 schema")
	}
	doc := map[string]any{"definitions": definitions}
	text, err := json.Marshal(doc)
	if err != nil {
		return nil, invalid("", "cannot be compiled").Because(err)
	}
	c := jsonschema.NewCompiler()
	c.Draft = jsonschema.Draft7
	c.LoadURL = refuse
	c.AssertFormat = true
	c.Formats = make(map[string]func(any) bool, len(e.visits))
	for name, v := range e.visits {
		c.Formats[name] = v.enter
	}
	c.RegisterExtension("zae", nil, leaving(e.visits))
	if err := c.AddResource(document, bytes.NewReader(text)); err != nil {
		return nil, invalid("", "cannot be compiled").Because(err)
	}
	schema, err := c.Compile(e.ref(g.root.target))
	if err != nil {
		return nil, e.explain(doc, err)
	}
	out := &compiled{schema, index{}}
	out.index.add(schema, false)
	return out, nil
}

// emitter writes the form of a schema that the compiler sees: one definition for each schema that holds
// others or that is referred to, the small ones in place. So no location in it is long, however deep and
// however often the schema nests: the validator writes locations out for each problem.
type emitter struct {
	meter   *meter
	tops    []*subschema
	number  map[*subschema]int // position in tops
	visits  map[string]*visit  // by the format that stands for it
	refused []string           // what the compiler must not see, with place
}

func newEmitter(g *graph, m *meter) *emitter {
	e := &emitter{meter: m, number: map[*subschema]int{}, visits: map[string]*visit{}}
	top := map[*subschema]bool{g.root.target: true}
	for _, s := range g.all {
		if s.target != s {
			top[s.target] = true
			continue
		}
		if len(s.kids) > 0 || s.idle {
			top[s] = true
		}
		for _, k := range s.kids["propertyNames"] {
			top[k.sub.target] = true // a problem with a name is then known by the reference around it
		}
	}
	for _, s := range g.all {
		if top[s] {
			e.number[s] = len(e.tops)
			e.tops = append(e.tops, s)
		}
	}
	return e
}

func topName(i int) string { return "s" + strconv.Itoa(i) }

// ref is absolute: the compiler rewrites others.
func (e *emitter) ref(s *subschema) string {
	return document + "#/definitions/" + topName(e.number[s])
}

// emit writes s for the compiler.
func (e *emitter) emit(s *subschema) any {
	if s.src.kind != kindObject || len(s.src.keys) == 0 {
		return s.src.raw()
	}
	out := make(map[string]any, len(s.src.keys)+1)
	for _, key := range s.src.keys {
		if !draft07Keywords[key] {
			continue
		}
		field := s.src.fields[key]
		switch key {
		case "contentEncoding", "contentMediaType":
			if field.kind == kindString {
				continue // Helm asserts neither, this validator both
			}
		case "pattern":
			if field.kind == kindString {
				e.checkPattern(s, "/pattern", field.text)
			}
		case "patternProperties":
			for _, k := range s.kids[key] {
				e.checkPattern(s, "/patternProperties/"+escape(k.key), k.key)
			}
		}
		out[key] = e.emitField(s, key)
	}
	e.emitVisit(s, out)
	return out
}

// draft07Keywords are what is shown to the compiler: all that draft-07 knows but $id, $schema and $ref. The
// validator knows keywords of its own and of later drafts that it heeds whatever the draft is.
var draft07Keywords = func() map[string]bool {
	known := map[string]bool{}
	for key := range keywords {
		known[key] = true
	}
	for _, key := range []string{"$comment", "const", "contentEncoding", "contentMediaType", "default", "description", "enum",
		"examples", "exclusiveMaximum", "exclusiveMinimum", "format", "maxItems", "maxLength", "maxProperties", "maximum", "minItems",
		"minLength", "minProperties", "minimum", "multipleOf", "pattern", "readOnly", "required", "title", "type", "uniqueItems", "writeOnly"} {
		known[key] = true
	}
	return known
}()

// checkPattern keeps patterns from the compiler that it would panic at or not come back from.
func (e *emitter) checkPattern(s *subschema, tail, pattern string) {
	if err := e.meter.accept(pattern); err != nil {
		e.refused = append(e.refused, show(s.place()+tail)+": does not have the format the schema asks for (format)")
	}
}

func (e *emitter) emitField(s *subschema, key string) any {
	field := s.src.fields[key]
	kids := s.kids[key]
	if len(kids) == 0 {
		if counts[key] {
			return clamp(field)
		}
		return field.raw()
	}
	emitted := make(map[string]any, len(kids))
	for _, k := range kids {
		if _, top := e.number[k.sub.target]; top {
			emitted[k.key] = map[string]any{"$ref": e.ref(k.sub.target)}
		} else {
			emitted[k.key] = e.emit(k.sub)
		}
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

// counts are the keywords whose value the validator keeps as an int.
var counts = map[string]bool{"minItems": true, "maxItems": true, "minLength": true, "maxLength": true, "minProperties": true, "maxProperties": true}

// clamp keeps a count inside an int: nothing has as many items or characters.
func clamp(n *node) any {
	const most = 1 << 62
	if n.kind == kindNumber {
		if r, ok := new(big.Rat).SetString(n.text); ok && r.IsInt() && r.Cmp(new(big.Rat).SetInt64(most)) > 0 {
			return json.Number(strconv.Itoa(most))
		}
	}
	return n.raw()
}

// emitVisit makes the validator report each visit of s to the meter. A format is the one thing that it calls
// back for before it goes deeper, so every schema has one of ours, which does what the schema's own asks for
// besides. That also means that no format of the validator's table is ever consulted.
func (e *emitter) emitVisit(s *subschema, out map[string]any) {
	own, there := out["format"]
	text, isText := own.(string)
	if there && !isText {
		return // the meta-schema refuses it
	}
	name := "zae-" + strconv.Itoa(len(e.visits))
	e.visits[name] = e.meter.visit(s, text)
	out["format"] = name
}

// leaving is the extension through which the validator reports that it is done with a schema.
type leaving map[string]*visit

// Compile is the validator's question whether a schema has the extension.
func (l leaving) Compile(_ jsonschema.CompilerContext, schema map[string]any) (jsonschema.ExtSchema, error) {
	name, _ := schema["format"].(string)
	if v := l[name]; v != nil {
		return v, nil
	}
	return nil, nil
}

// explain says where in the file the schema is not one, in our own words.
func (e *emitter) explain(doc map[string]any, err error) *fault.Fault {
	var verr *jsonschema.ValidationError
	if !errors.As(err, &verr) {
		return invalid("", "cannot be compiled").Because(err)
	}
	return notDraft07(doc, verr, e.placeOf)
}

// metaSchema is draft-07's own. It is built into the validator: nothing is fetched.
var metaSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	return jsonschema.NewCompiler().Compile(jsonschema.Draft7.URL())
})

// notDraft07 says where a document is no schema; placeOf writes a location in it.
func notDraft07(doc any, verr *jsonschema.ValidationError, placeOf func([]string) string) *fault.Fault {
	meta, err := metaSchema()
	if err != nil {
		return invalid("", "not a draft-07 schema").Because(err)
	}
	_, empty := longest(doc)
	r := reader{index{}, doc, empty}
	r.index.add(meta, false)
	m := &messages{pathOf: placeOf}
	m.collect(r.read(verr))
	list := m.sorted()
	if len(list) == 0 {
		return invalid("", "not a draft-07 schema").Because(verr)
	}
	return invalid(list[0], "not a draft-07 schema")
}

// placeOf turns a location in the compiled form into a place in the file.
func (e *emitter) placeOf(location []string) string {
	if len(location) < 2 {
		return "#"
	}
	for i, s := range e.tops {
		if topName(i) == location[1] {
			place := s.place()
			for _, token := range location[2:] {
				place += "/" + escape(token)
			}
			return show(place)
		}
	}
	return "#"
}
