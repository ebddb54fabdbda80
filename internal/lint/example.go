package lint

import (
	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/render"
)

// Defaults are the values that a chart has where nobody gives any, those of bundled charts too. Of a chart that was not
// read in a worker before, nobody knows how long that takes.
func Defaults(a *chart.Archive) (map[string]any, error) {
	loaded, err := chart.Load(a)
	if err != nil {
		return nil, err
	}
	return render.Defaults(loaded), nil
}

// Example is a value that the schema takes for an input, fit to be shown to a person: its default, the first that is
// listed, or a plain one of its type. It is false where none is found. The schema has to be one that validates.
func Example(schema *inputs.Schema, in inputs.Input) (any, bool) {
	m := maker{schema: schema, word: "example"}
	if in.Default != nil && m.accepts(in, in.Default) {
		return in.Default, true
	}
	return m.value(in)
}

// Other makes up a text for a secret or generated input, which the schema takes and nobody has given. Another salt makes
// another one. It is false where none is found.
func Other(schema *inputs.Schema, in inputs.Input, salt string) (string, bool) {
	m := maker{schema: schema, salt: salt}
	if in.Generate != "" {
		return m.generated(in), true
	}
	v, _ := m.value(in)
	text, ok := v.(string)
	return text, ok
}
