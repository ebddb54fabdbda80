package render

import (
	"bytes"
	"fmt"
	"log"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const canary = "c4n4ry"

func exampleChart(files ...string) map[string]string {
	m := map[string]string{"Chart.yaml": "apiVersion: v2\nname: example\nversion: 1.0.0\n"}
	for i := 0; i+1 < len(files); i += 2 {
		m[files[i]] = files[i+1]
	}
	return m
}

// TestErrorsSayWhereAndNotWhat goes through the shapes in which Helm and YAML put values into errors.
func TestErrorsSayWhereAndNotWhat(t *testing.T) {
	const file = "templates/worker.yaml"
	one := func(text string) map[string]string { return exampleChart(file, text) }
	for rule, tc := range map[string]struct {
		files map[string]string
		want  string
	}{
		"fail":                                {one("a: b\n{{ fail .Values.secret }}"), "template error at example/templates/worker.yaml:2:3"},
		"fail with a text like a place":       {one(`{{ fail (printf "x (example/templates/worker.yaml:9:9): %s" .Values.secret) }}`), "template error at example/templates/worker.yaml:1:3"},
		"fail over several lines":             {one(`{{ fail (printf "\n\nexecution error at (%s:1:1): " .Values.secret) }}`), "template error at example/templates/worker.yaml:1:3"},
		"required":                            {one("\n\n  {{ required .Values.secret .Values.missing }}"), "template error at example/templates/worker.yaml:3:5"},
		"an index out of range":               {one("{{ index .Values.list 9 }}{{ .Values.secret }}"), "template error at example/templates/worker.yaml:1:3"},
		"a wrong type":                        {one("{{ range $i := .Values.secret }}{{ end }}{{ add1 .Values.secret | atoi | mul }}{{ index .Values.secret .Values.secret }}"), "template error at example/templates/worker.yaml:1"},
		"a field of a string":                 {one("{{ .Values.secret.x }}"), "template error at example/templates/worker.yaml:1:"},
		"a nil pointer":                       {one("{{ .Values.missing.x.y }}{{ .Values.secret }}"), "template error at example/templates/worker.yaml:1:"},
		"tpl of what cannot be parsed":        {one(`{{ tpl (printf "{{ %s" .Values.secret) . }}`), "template error at example/templates/worker.yaml:1:3"},
		"tpl of what fails":                   {one(`{{ tpl (printf "{{ fail %q }}" .Values.secret) . }}`), "template error at example/templates/worker.yaml:1:3"},
		"tpl that defines a place":            {one(`{{ tpl (printf "{{ define \"example/templates/other.yaml:1:1): %s\" }}{{ fail \"x\" }}{{ end }}{{ template \"example/templates/other.yaml:1:1): %s\" }}" .Values.secret .Values.secret) . }}`), "template error at example/templates/worker.yaml:1:3"},
		"a name that is a value":              {one("{{ include .Values.secret . }}"), "template error at example/templates/worker.yaml:1:3"},
		"a failure in a partial":              {exampleChart(file, "{{ include \"p\" . }}", "templates/_p.tpl", "\n\n{{ define \"p\" }}{{ fail .Values.secret }}{{ end }}"), "template error at example/templates/worker.yaml:1:3"},
		"includes without end":                {exampleChart(file, "{{ include \"p\" . }}", "templates/_p.tpl", "{{ define \"p\" }}{{ .Values.secret }}{{ include \"p\" . }}{{ end }}"), "template error at example/templates/worker.yaml:1:3"},
		"a template that cannot be parsed":    {one("a\n\n{{ if \"" + canary + "\" }}"), "template error at example/templates/worker.yaml:3"},
		"a function that is none":             {one("{{ " + canary + " }}"), "template error at example/templates/worker.yaml:1"},
		"a function that panics":              {one("{{ substr 5 1 .Values.secret }}"), "template error"},
		"a division by zero":                  {one("{{ div 1 0 }}{{ .Values.secret }}"), "template error at example/templates/worker.yaml:1:3"},
		"YAML that cannot be parsed":          {one("a: b\nc: {{ .Values.secret }}: x: y\n"), "templates/worker.yaml: line 2 of its output: not valid YAML"},
		"an alias that is a value":            {one("a: *{{ .Values.secret }}\n"), "templates/worker.yaml: not valid YAML"},
		"a duplicate key that is a value":     {one("{{ .Values.secret }}: 1\n{{ .Values.secret }}: 2\n"), "templates/worker.yaml: line 2 of its output: duplicate key, first set on line 1"},
		"a key that is a mapping":             {one("? {a: {{ .Values.secret }}}\n: 1\n"), "templates/worker.yaml: line 1 of its output: a key that is not a string"},
		"a document that is a value":          {one("{{ .Values.secret }}\n"), "templates/worker.yaml: a document that is not an object"},
		"a document that is a list":           {one("- {{ .Values.secret }}\n"), "templates/worker.yaml: a document that is not an object"},
		"a List of values":                    {one("kind: List\nitems: [{{ .Values.secret }}]\n"), "templates/worker.yaml: a List with an item that is not an object"},
		"a List with a field of its own":      {one("apiVersion: v1\nkind: List\nhostNetwork: true\nitems: []\n"), "templates/worker.yaml: a List with a field besides items, which counts for nothing"},
		"a List with its items misspelt":      {one("kind: List\nitmes: [{{ .Values.secret }}]\n"), "templates/worker.yaml: a List with a field besides items, which counts for nothing"},
		"a List with metadata":                {one("kind: List\nmetadata: {namespace: {{ .Values.secret }}}\nitems: []\n"), "templates/worker.yaml: a List with metadata of its own, which counts for nothing (metadata)"},
		"a List of another version":           {one("apiVersion: x{{ .Values.secret }}\nkind: List\nitems: []\n"), "templates/worker.yaml: a List (apiVersion) that is not of v1"},
		"a List that is a value":              {one("kind: List\nitems: {{ .Values.secret }}\n"), "templates/worker.yaml: a List whose items are no list"},
		"a b64dec of what is not":             {one("x: y\na: {{ b64dec .Values.secret }}: {{ .Values.secret }}: b\n"), "templates/worker.yaml: an error of b64dec was rendered in place of a value: a value is not what the template takes it for"},
		"toYaml at the wrong depth":           {one("a:\n  b: 1\n {{ toYaml .Values.map }}\n"), "templates/worker.yaml: line"},
		"a value where a chart's values go":   {exampleChart("charts/s/Chart.yaml", "apiVersion: v2\nname: s\nversion: 1.0.0\n"), ""},
		"a template of a bundled chart":       {exampleChart("charts/t/Chart.yaml", "apiVersion: v2\nname: t\nversion: 1.0.0\n", "charts/t/templates/x.yaml", "{{ fail .Values.global.secret }}"), "template error at example/charts/t/templates/x.yaml:1:3"},
		"YAML of a bundled chart":             {exampleChart("charts/t/Chart.yaml", "apiVersion: v2\nname: t\nversion: 1.0.0\n", "charts/t/templates/x.yaml", "x: y\na: {{ .Values.global.secret }}: b"), "charts/t/templates/x.yaml: line 2 of its output: not valid YAML"},
		"a file name like a place":            {exampleChart("templates/a: b.yaml", "{{ fail .Values.secret }}"), "template error"},
		"a file name that continues another":  {exampleChart("templates/a", "x: y", "templates/a:1:1): z.yaml", "{{ fail .Values.secret }}"), "template error"},
		"a file name with something peculiar": {exampleChart("templates/a\u202e.yaml", "{{ fail .Values.secret }}"), `template error at "example/templates/a\u202e.yaml":1:3`},
	} {
		t.Run(rule, func(t *testing.T) {
			given := map[string]any{
				"secret": canary, "list": []any{canary}, "map": map[string]any{canary: canary, "x": canary},
				"global": map[string]any{"secret": canary},
			}
			if tc.want == "" {
				given["s"] = canary
				tc.want = "values: s must be an object: it holds the values of a bundled chart"
			}
			set, errs := Render(t.Context(), inputOf(chartOf(t, tc.files), given))
			if len(errs) != 1 || set != nil {
				t.Fatalf("got %v, %v", set, errs)
			}
			if !strings.HasPrefix(errs[0], tc.want) {
				t.Errorf("got %q, want %q", errs[0], tc.want)
			}
			if strings.Contains(errs[0], canary) {
				t.Errorf("the error quotes a value: %q", errs[0])
			}
		})
	}
}

func TestAllFilesWithBadYAMLAreNamed(t *testing.T) {
	_, errs := Render(t.Context(), inputOf(chartOf(t, exampleChart("templates/b.yaml", "x: y\na: b: c", "templates/a.yaml", "a: b\n---\nx\n", "templates/c.yaml", "a: b")), nil))
	want := []string{"templates/a.yaml: a document that is not an object", "templates/b.yaml: line 2 of its output: not valid YAML"}
	if d := cmp.Diff(want, errs); d != "" {
		t.Error(d)
	}
}

// TestNothingIsLogged: Helm prints values that it cannot merge to the process-wide logger.
func TestNothingIsLogged(t *testing.T) {
	var logged bytes.Buffer
	out := log.Writer()
	log.SetOutput(&logged)
	t.Cleanup(func() { log.SetOutput(out) })
	given := map[string]any{
		"pool": canary, "db": map[string]any{"exports": canary, "defaults": []any{canary}, "enabled": canary, "size": map[string]any{canary: canary}, "global": canary},
		"replica": map[string]any{"enabled": map[string]any{canary: canary}, "exports": map[string]any{"connection": canary}},
		"tags":    map[string]any{"fast": canary}, "global": map[string]any{"tier": canary, "more": map[string]any{"x": canary}, "own": map[string]any{canary: canary}},
	}
	in := input(t, "subcharts", given)
	mustRender(t, in)
	_ = chartOf(t, exampleChart("requirements.yaml", "dependencies: []\n", "requirements.lock", "x"))
	if logged.Len() > 0 {
		t.Errorf("logged: %s", logged.String())
	}
	if _, err := helmValues(cloneChart(in.Chart.Helm()), given); err != nil || logged.Len() == 0 {
		t.Errorf("Helm itself logs nothing of it, so this test shows nothing: %v", err)
	}
}

func TestMismatchNamesThePath(t *testing.T) {
	c := chartOf(t, exampleChart(
		"charts/s/Chart.yaml", "apiVersion: v2\nname: s\nversion: 1.0.0\n",
		"charts/s/charts/deep/Chart.yaml", "apiVersion: v2\nname: deep\nversion: 1.0.0\n"))
	for path, given := range map[string]map[string]any{
		"s":      {"s": canary},
		"s.deep": {"s": map[string]any{"deep": []any{canary}}},
	} {
		_, errs := Render(t.Context(), inputOf(c, given))
		want := []string{fmt.Sprintf("values: %s must be an object: it holds the values of a bundled chart", path)}
		if d := cmp.Diff(want, errs); d != "" {
			t.Error(d)
		}
	}
}
