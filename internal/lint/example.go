package lint

import "zaentrum.io/zae/internal/inputs"

// Example is a value that the schema takes for an input, fit to be shown to a person: its default, the first that is
// listed, or a plain one of its type. It is false where none is found. The schema has to be one that validates.
func Example(schema *inputs.Schema, in inputs.Input) (any, bool) {
	m := maker{schema: schema, word: "example"}
	if in.Default != nil && m.accepts(in, in.Default) {
		return in.Default, true
	}
	return m.value(in)
}
