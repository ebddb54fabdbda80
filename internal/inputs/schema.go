package inputs

import (
	"bytes"
	"sync"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/fault"
)

// Schema is a values.schema.json that was read. It is safe for use by several goroutines; nil is a schema
// that asks for nothing and allows everything.
type Schema struct {
	compiled         *compiled  // nil: everything is allowed
	root             *subschema // nil when nothing in it is secret
	inputs           []Input
	numbers          map[string]int // of the inputs, by path; of several the first
	details          []detail       // of each input
	groups           []Group
	loose            map[string]bool // by path, the objects that may have more than is declared
	warnings         []Warning
	declaresPlatform bool

	mu    sync.Mutex // held while validating: the meter belongs to one validation at a time
	meter *meter
}

// Parse reads a values.schema.json as draft-07, whatever its $schema says. Empty text is a schema without
// inputs. A fault names the place in the schema, never its text.
func Parse(schema []byte) (*Schema, error) {
	return load(schema, true)
}

// Describe reads a values.schema.json for its inputs, groups and warnings alone: it compiles nothing, so
// Validate of what it returns allows everything, and a fault of Parse's may go unseen. It takes time and memory
// in proportion to MaxSchemaBytes at most, whatever the schema is.
func Describe(schema []byte) (*Schema, error) {
	return load(schema, false)
}

func load(schema []byte, validate bool) (s *Schema, err error) {
	if len(schema) > MaxSchemaBytes {
		return nil, invalid("", "%d bytes are more than the %d KiB that are allowed", len(schema), MaxSchemaBytes>>10)
	}
	if len(bytes.TrimSpace(schema)) == 0 {
		return &Schema{}, nil
	}
	defer func() {
		if recover() != nil { // the compiler met something it does not expect
			s, err = nil, invalid("", "cannot be compiled")
		}
	}()
	doc, err := read(schema)
	if err != nil {
		return nil, err
	}
	g, err := resolve(doc)
	if err != nil {
		return nil, err
	}
	m := &meter{budget: maxWork, left: maxWork}
	var compiled *compiled
	if validate {
		if compiled, err = compile(g, m); err != nil {
			return nil, err
		}
	}
	d := &describer{views: map[*subschema]view{}, loose: map[string]bool{}}
	root := d.view(g.root)
	if err := d.describe(root); err != nil {
		return nil, err
	}
	var secrets *subschema
	if g.root.target.secrets {
		secrets = g.root.target
	}
	return &Schema{
		compiled:         compiled,
		root:             secrets,
		inputs:           d.inputs,
		numbers:          numbered(d.inputs),
		details:          d.details,
		groups:           d.groups,
		loose:            d.loose,
		warnings:         warn(g, root, d.inputs),
		declaresPlatform: root.declares(v1alpha1.PlatformKey),
		meter:            m,
	}, nil
}

// DeclaresPlatform tells whether the schema itself has the reserved key zaentrum at its root, which makes
// the platform's block subject to it.
func (s *Schema) DeclaresPlatform() bool { return s != nil && s.declaresPlatform }

// Inputs are what the chart asks for, in document order, depth first. The slice is the caller's; what its
// elements point to is shared.
func (s *Schema) Inputs() []Input {
	if s == nil {
		return nil
	}
	return append([]Input(nil), s.inputs...)
}

// Groups are the objects that inputs are in, in document order, each before the groups inside it. The slice
// is the caller's.
func (s *Schema) Groups() []Group {
	if s == nil {
		return nil
	}
	return append([]Group(nil), s.groups...)
}

// Input finds the input at a dotted path.
func (s *Schema) Input(path string) (Input, bool) {
	if s != nil {
		if i, ok := s.numbers[path]; ok {
			return s.inputs[i], true
		}
	}
	return Input{}, false
}

// numbered are the places of inputs in a list, by path.
func numbered(list []Input) map[string]int {
	out := make(map[string]int, len(list))
	for i, in := range list {
		if _, there := out[in.Path]; !there {
			out[in.Path] = i
		}
	}
	return out
}

// badGenerator is the fault of a generator that nobody knows.
func badGenerator(place, what string) *fault.Fault {
	return invalid(show(place), "%s", what).
		WithHint("use %s or %s on a string", GenerateBase64, GenerateHex)
}
