package lint

import (
	"testing"

	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/render"
)

// FuzzTexts: whatever a chart's files hold, they are walked to an end.
func FuzzTexts(f *testing.F) {
	f.Add(`{{ define "t" }}{{ .a.b }}{{ end }}{{ include "t" (dict "a" .Values) | default (list .) }}{{ (index .Values "x").y }}`)
	f.Add(`{{ with $x := .Values.a }}{{ range $i, $e := . }}{{ $e }}{{ else }}{{ tpl "{{ now }}" $ }}{{ end }}{{ end }}{{ lookup }}{{ dig }}{{ get . }}`)
	f.Add(`{"properties": {"a": {"$ref": "#/definitions/a", "writeOnly": true}}, "definitions": {"a": {"allOf": [{"$ref": "#"}]}}}`)
	f.Add("ignore:\n- {rule: hook, reason: x}\n- {rule: [], file: 1}\non: {y: &a [*a]}\n")
	f.Fuzz(func(t *testing.T, text string) {
		sources := []render.Source{{File: "templates/x.yaml", Text: text}}
		r := readsOf(sources)
		calls(sources, r, newFound())
		for _, one := range r.list {
			if one.at.line < 1 || one.at.column < 1 {
				t.Errorf("%+v", one)
			}
		}
		doc := newSchemaDoc([]byte(text))
		doc.property([]string{"a", "b"})
		doc.pointer("#/properties/a/0")
		newYAMLDoc([]byte(text)).place([]string{"a", "b"})
		parseExceptions([]byte(text))
		matching(text, 1)
	})
}

// FuzzSpaces: whatever the schema, there are rows of values within the bound, and what is made up for the first one is
// the same each time.
func FuzzSpaces(f *testing.F) {
	f.Add(`{"required": ["a"], "properties": {"a": {"type": ["string", "null"]}, "b": {"type": "array", "items": {"$ref": "#/properties/b"}, "minItems": 2}}}`)
	f.Add(`{"oneOf": [{"required": ["a"]}, {"required": ["b"], "properties": {"b": {"oneOf": [{"const": 1}, {"$ref": "#"}]}}}], "properties": {"a": {"type": "object", "additionalProperties": {"$ref": "#"}}}}`)
	f.Add(`{"if": {"properties": {"m": {"const": "x"}}}, "then": {"required": ["n"]}, "else": {"properties": {"n": false}}, "properties": {"m": {"type": "string"}, "n": {"type": "object", "minProperties": 3, "propertyNames": {"pattern": "^[a-z]{2}$"}}}}`)
	f.Add(`{"anyOf": [{"allOf": [{"$ref": "#/anyOf/0"}]}], "properties": {"s": {"type": "array", "contains": {"type": "object", "required": ["w"], "properties": {"w": {"type": "string", "writeOnly": true}}}}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		schema, err := inputs.Parse([]byte(text))
		if err != nil {
			return
		}
		defaults := map[string]any{"a": int64(1)}
		s := newSpace(schema, &chart.Chart{Schema: []byte(text), Defaults: defaults}, defaults, nil, nil)
		rows, more := s.rows(30)
		if len(rows) == 0 || len(rows) > 30 || more < 0 {
			t.Fatalf("%d rows, %d more", len(rows), more)
		}
		for i, r := range rows {
			one, again := s.give(r), s.give(r)
			if !sameValue(one.spec, again.spec) || !sameValue(one.secrets, again.secrets) {
				t.Errorf("row %d is another one the second time", i)
			}
		}
	})
}

// FuzzOutlets: whatever is rendered, texts are looked for to an end.
func FuzzOutlets(f *testing.F) {
	f.Add("a: Zs0123456789abcdefQx\n---\nb: [Zs0123456789abcdefQx]\n", "a: yes\n---\nb: [yes]\n")
	f.Add("kind: List\nitems:\n- a: |\n    Zs0123456789abcdefQx\n", "kind: List\nitems:\n- a: |\n    x\ny: &z [*z]\n")
	f.Fuzz(func(_ *testing.T, before, after string) {
		one := slot{path: "a", text: "Zs0123456789abcdefQx"}
		differ(render.Text{Text: before}, after, []slot{one}, map[string]string{one.text: "yes"})
	})
}
