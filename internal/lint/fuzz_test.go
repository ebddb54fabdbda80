package lint

import (
	"testing"

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
		matching(text)
	})
}
