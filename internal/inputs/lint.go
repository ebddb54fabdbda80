package inputs

import (
	"strings"

	"zaentrum.io/zae/api/v1alpha1"
)

// Warning is something in a schema that is allowed and hardly meant.
type Warning struct {
	Place string `json:"place"` // in the schema, as #/properties/…, or the path of an input
	What  string `json:"what"`
	Fix   string `json:"fix"`
}

// String is "place: what".
func (w Warning) String() string { return w.Place + ": " + w.What }

// maxSecretPath is the longest path of a secret input, in characters (contract §1).
const maxSecretPath = 250

const draft07 = "json-schema.org/draft-07/schema"

// Warnings are for the chart's author: what the operator reads otherwise than the author may think. The
// slice is the caller's.
func (s *Schema) Warnings() []Warning {
	if s == nil {
		return nil
	}
	return append([]Warning(nil), s.warnings...)
}

// warn looks at the schema as written, in document order, and then at the inputs it came to.
func warn(g *graph, root view, inputs []Input) []Warning {
	var out []Warning
	add := func(place, what, fix string) { out = append(out, Warning{show(place), what, fix}) }
	if dialect, ok := g.root.src.str("$schema"); ok {
		name := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(dialect, "https://"), "http://"), "#")
		if name != draft07 {
			add("#/$schema", "the schema is read as draft-07, whatever it says here", `write "http://json-schema.org/draft-07/schema#"`)
		}
	}
	if root.closed() && !root.declares(v1alpha1.PlatformKey) {
		add("#/additionalProperties", "plain Helm refuses the platform's block, which the operator leaves out",
			"declare the property "+v1alpha1.PlatformKey+", or allow additional properties")
	}
	for _, s := range g.all {
		if s.doc.field("$ref") != nil {
			for _, keyword := range []string{"writeOnly", GenerateKeyword} {
				if s.doc.field(keyword) != nil {
					add(s.place()+"/"+keyword, "is ignored beside $ref, as draft-07 says", "move it to where the $ref leads, or wrap the $ref: \"allOf\": [{\"$ref\": …}]")
				}
			}
		}
	}
	for _, in := range inputs {
		switch {
		case in.Unaddressable:
			add(in.Path, "no dotted path leads there", "keep property names to letters, digits, _ and -")
		case in.Secret && in.Type != TypeString:
			add(in.Path, "is secret and no string: a secret input is given as text", `make it "type": "string"`)
		case in.HoldsSecrets:
			add(in.Path, "holds secrets that are no inputs of their own: nobody can give them, for among plain values they are refused", "make each secret a string property of an object")
		case in.Secret && len(in.Path) > maxSecretPath:
			add(in.Path, "the path is too long for a secret input", "keep it to 250 characters")
		}
	}
	return out
}

// closed tells whether the object's schemas refuse properties they do not name.
func (v view) closed() bool {
	for _, s := range v {
		if n := s.src.field("additionalProperties"); n != nil && n.kind == kindBool && !n.truth {
			return true
		}
	}
	return false
}
