package render

import (
	"strings"
	"testing"
)

const plainMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  a: "

// What Helm's functions say instead of failing is an error here, and is not repeated.
func TestErrorsThatAreRenderedAreErrors(t *testing.T) {
	const canary = "hunter2!*c4n4ry"
	for name, tc := range map[string]struct{ template, want string }{
		"b64dec":        {plainMap + "{{ .Values.s | b64dec | quote }}\n", "b64dec"},
		"b32dec":        {plainMap + "{{ .Values.s | b32dec | quote }}\n", "b32dec"},
		"into a Secret": {"apiVersion: v1\nkind: Secret\nmetadata: {name: x}\ndata:\n  a: {{ printf \"%s:%s\" \"user\" (.Values.s | b64dec) | b64enc }}\n", "b64dec"},
		"fromYaml":      {plainMap + "{{ .Values.s | fromYaml | toJson | quote }}\n", "fromYaml"},
		"fromJson":      {plainMap + "{{ .Values.s | fromJson | toJson | quote }}\n", "fromJson"},
		"fromJsonArray": {plainMap + "{{ .Values.s | fromJsonArray | toJson | quote }}\n", "fromJson"},
	} {
		t.Run(name, func(t *testing.T) {
			c := chartOf(t, map[string]string{"Chart.yaml": "apiVersion: v2\nname: chart\nversion: 1.0.0\n", "templates/x.yaml": tc.template})
			set, errs := Render(t.Context(), inputOf(c, map[string]any{"s": canary}))
			all := strings.Join(errs, "\n")
			if len(set) > 0 || len(errs) != 1 || !strings.HasPrefix(all, "templates/x.yaml: an error of ") || !strings.Contains(all, tc.want) {
				t.Errorf("%d objects, %q", len(set), errs)
			}
			if strings.Contains(all, "c4n4ry") {
				t.Error(all)
			}
		})
	}
}

// A chart may have those words itself, and so may a value.
func TestWordsOfErrorsMayBeRendered(t *testing.T) {
	const words = "illegal base64 data at input byte"
	own := chartOf(t, map[string]string{"Chart.yaml": "apiVersion: v2\nname: chart\nversion: 1.0.0\n", "templates/x.yaml": plainMap + "\"" + words + "\"\n"})
	if _, errs := Render(t.Context(), inputOf(own, nil)); len(errs) > 0 {
		t.Error(errs)
	}
	given := chartOf(t, map[string]string{"Chart.yaml": "apiVersion: v2\nname: chart\nversion: 1.0.0\n", "templates/x.yaml": plainMap + "{{ .Values.s | quote }}\n"})
	if _, errs := Render(t.Context(), inputOf(given, map[string]any{"s": "it says " + words + " 7"})); len(errs) > 0 {
		t.Error(errs)
	}
}

func TestNotesAreNotRendered(t *testing.T) {
	c := chartOf(t, map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: chart\nversion: 1.0.0\n", "templates/x.yaml": plainMap + "b\n",
		"templates/NOTES.txt": "{{ .Values.nope.deep }} {{ fail \"x\" }}",
	})
	if set, errs := Render(t.Context(), inputOf(c, nil)); len(errs) > 0 || len(set) != 1 {
		t.Errorf("%d objects, %q", len(set), errs)
	}
}
