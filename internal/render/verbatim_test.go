package render

import (
	"strings"
	"testing"
)

// Where whoever rendered gave no secret, they are told what the chart says, behind the place that everybody is told.
func TestVerbatimErrorsEndWithTheChartsWords(t *testing.T) {
	const file = "templates/worker.yaml"
	for rule, tc := range map[string]struct{ text, want string }{
		"fail":                       {`{{ fail (printf "no\n  more of %s" .Values.word) }}`, "template error at example/templates/worker.yaml:1:3: no more of this"},
		"required":                   {`{{ required "give a.b" .Values.missing }}`, "template error at example/templates/worker.yaml:1:3: give a.b"},
		"a field of a string":        {`{{ .Values.word.x }}`, "template error at example/templates/worker.yaml:1:10: executing "},
		"what cannot be parsed":      {`{{ nothing }}`, `template error at example/templates/worker.yaml:1: function "nothing" not defined`},
		"a text that is without end": {`{{ fail (repeat 5000 "a") }}`, "template error at example/templates/worker.yaml:1:3: " + strings.Repeat("a", maxWords) + "…"},
		"no words":                   {`{{ fail "" }}`, "template error at example/templates/worker.yaml:1:3"},
	} {
		t.Run(rule, func(t *testing.T) {
			in := inputOf(chartOf(t, exampleChart(file, tc.text)), map[string]any{"word": "this"})
			_, errs := Render(t.Context(), in)
			if len(errs) != 1 || strings.Contains(errs[0], "this") || !strings.HasPrefix(tc.want, errs[0]) {
				t.Errorf("not verbatim: got %q", errs)
			}
			in.Verbatim = true
			if _, errs = Render(t.Context(), in); len(errs) != 1 || !strings.HasPrefix(errs[0], tc.want) {
				t.Errorf("got %q, want %q", errs, tc.want)
			}
		})
	}
}
