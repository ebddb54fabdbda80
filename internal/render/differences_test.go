package render

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"zaentrum.io/zae/internal/manifest"
)

// rendersTwice renders a chart twice and says where the renders differ.
func rendersTwice(t *testing.T, files map[string]string) []string {
	t.Helper()
	in := inputOf(chartOf(t, files), map[string]any{"secret": canary})
	return Differences(mustRender(t, in), mustRender(t, in))
}

func TestDifferencesNameObjectFieldAndTemplate(t *testing.T) {
	const secret = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: env\n"
	const config = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n"
	for rule, tc := range map[string]struct {
		text string
		want []string
	}{
		"nothing differs":           {secret + "data:\n  key: {{ .Values.secret | b64enc }}", nil},
		"a key of a Secret":         {secret + "data:\n  key: {{ randAlphaNum 32 | b64enc }}\n  other: eA==", []string{"Secret/env data.key differs each time it is rendered (templates/a.yaml)"}},
		"an odd key":                {secret + "stringData:\n  a.b/c: {{ uuidv4 }}", []string{"Secret/env stringData[a.b/c] differs each time it is rendered (templates/a.yaml)"}},
		"an item of a list":         {config + "list: [{a: 1}, {a: {{ uuidv4 | quote }}}]", []string{"ConfigMap/c list[1].a differs each time it is rendered (templates/a.yaml)"}},
		"a key that is random":      {config + "data:\n  {{ randAlpha 32 }}: x\n  a: y", []string{"ConfigMap/c data.* differs each time it is rendered (templates/a.yaml)"}},
		"a key at the top":          {config + "{{ randAlpha 32 }}: x", []string{"ConfigMap/c * differs each time it is rendered (templates/a.yaml)"}},
		"a name that is random":     {"kind: Secret\nmetadata: {name: {{ uuidv4 | quote }}}", []string{"Secret: the name of an object differs each time it is rendered (templates/a.yaml)"}},
		"two fields":                {config + "data: {b: {{ uuidv4 | quote }}, a: {{ uuidv4 | quote }}}", []string{"ConfigMap/c data.a differs each time it is rendered (templates/a.yaml)", "ConfigMap/c data.b differs each time it is rendered (templates/a.yaml)"}},
		"the second of a name":      {config + "---\n" + config + "data: {a: {{ uuidv4 | quote }}}", []string{"ConfigMap/c data.a differs each time it is rendered (templates/a.yaml)"}},
		"a long path":               {config + "data: {" + strings.Repeat("x", 1000) + ": {{ uuidv4 | quote }}}", []string{"ConfigMap/c data." + strings.Repeat("x", 245) + "… differs each time it is rendered (templates/a.yaml)"}},
		"a name that is the secret": {"kind: Secret\nmetadata: {name: {{ printf \"%s-%s\" .Values.secret uuidv4 | quote }}}", []string{"Secret: the name of an object differs each time it is rendered (templates/a.yaml)"}},
	} {
		t.Run(rule, func(t *testing.T) {
			got := rendersTwice(t, exampleChart("templates/a.yaml", tc.text))
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
			if again := rendersTwice(t, exampleChart("templates/a.yaml", tc.text)); !cmp.Equal(got, again) {
				t.Errorf("the next time it is %q", again)
			}
			if strings.Contains(strings.Join(got, ""), canary) {
				t.Errorf("quotes a value: %q", got)
			}
		})
	}
}

func TestDifferencesOfSets(t *testing.T) {
	object := func(source, name string, more ...any) manifest.Object {
		tree := map[string]any{"apiVersion": "v1", "kind": "Job", "metadata": map[string]any{"name": name}}
		for i := 0; i+1 < len(more); i += 2 {
			tree[more[i].(string)] = more[i+1]
		}
		return manifest.Object{Source: source, Tree: tree}
	}
	many := func(n int, v string) map[string]any {
		m := map[string]any{}
		for i := range n {
			m[fmt.Sprintf("k%03d", i)] = v
		}
		return m
	}
	const differs = " differs each time it is rendered (t.yaml)"
	for rule, tc := range map[string]struct {
		a, b manifest.Set
		want []string
	}{
		"in the first only":   {manifest.Set{object("t.yaml", "x")}, nil, []string{"Job/x is not there each time the chart is rendered (t.yaml)"}},
		"in the second only":  {nil, manifest.Set{object("t.yaml", "x")}, []string{"Job/x is not there each time the chart is rendered (t.yaml)"}},
		"of two files":        {manifest.Set{object("a.yaml", "x")}, manifest.Set{object("b.yaml", "y")}, []string{"Job/x is not there each time the chart is rendered (a.yaml)", "Job/y is not there each time the chart is rendered (b.yaml)"}},
		"another order":       {manifest.Set{object("t.yaml", "x"), object("t.yaml", "y")}, manifest.Set{object("t.yaml", "y"), object("t.yaml", "x")}, nil},
		"a list of lengths":   {manifest.Set{object("t.yaml", "x", "l", []any{"a"})}, manifest.Set{object("t.yaml", "x", "l", []any{"a", "b"})}, []string{"Job/x l" + differs}},
		"of other types":      {manifest.Set{object("t.yaml", "x", "a", map[string]any{}, "b", int64(1), "c", []any{}, "d", nil)}, manifest.Set{object("t.yaml", "x", "a", "", "b", 1.5, "c", map[string]any{}, "d", false)}, []string{"Job/x a" + differs, "Job/x b" + differs, "Job/x c" + differs, "Job/x d" + differs}},
		"a key in one only":   {manifest.Set{object("t.yaml", "x", "a", nil)}, manifest.Set{object("t.yaml", "x")}, []string{"Job/x a" + differs}},
		"a name for terminal": {manifest.Set{object("t.yaml", "x\x1b")}, nil, []string{`"Job/x\x1b" is not there each time the chart is rendered (t.yaml)`}},
	} {
		t.Run(rule, func(t *testing.T) {
			if d := cmp.Diff(tc.want, Differences(tc.a, tc.b)); d != "" {
				t.Error(d)
			}
		})
	}
	got := Differences(manifest.Set{object("t.yaml", "x", "m", many(500, "a"))}, manifest.Set{object("t.yaml", "x", "m", many(500, "b"))})
	if len(got) != maxFields+1 || got[maxFields] != "Job/x: more fields differ each time it is rendered (t.yaml)" {
		t.Errorf("%d sentences, the last %q", len(got), got[len(got)-1])
	}
	var a manifest.Set
	for i := range 500 {
		a = append(a, object("t.yaml", fmt.Sprint("x", i)))
	}
	if got := Differences(a, nil); len(got) != maxDifferences+1 {
		t.Errorf("%d sentences", len(got))
	}
}

func TestTimeDependent(t *testing.T) {
	c := chartOf(t, exampleChart(
		"templates/a.yaml", "a: b\nx: {{ now | date \"2006\" }}\ny: {{ printf \"%s\" (now) | quote }} {{ now }}\n",
		"templates/b.yaml", `{{ if true }}{{ else }}
{{ range .Values.x }}
{{ with $now := ago .x }}{{ end }}{{ end }}{{ end }}`,
		"templates/_p.tpl", "{{/* now */}}now\n{{ define \"now\" }}\n{{ template \"now\" (now) }}{{ end }}{{ define \"other\" }}\n{{ unknown (now).Year }}{{ end }}",
		"templates/good.yaml", `{{ $now := .now }}{{ $now }}{{ "now" }}{{ .Values.now }}{{ include "now" . }}{{ index . "ago" }}`,
		"templates/bad.yaml", "{{ now ",
		"templates/tpl.yaml", "\n{{ tpl \"{{ now }}\" . }}{{ tpl `{{ tpl \"{{ ago . }}\" . }}` . }}",
		"templates/NOTES.txt", "{{ now }}",
		"charts/s/Chart.yaml", "apiVersion: v2\nname: s\nversion: 1.0.0\n",
		"charts/s/templates/s.yaml", "{{ block \"x\" . }}\n\n{{ now }}{{ end }}",
	))
	const what = "so what it renders changes with time"
	want := []string{
		"charts/s/templates/s.yaml:3: the template calls now, " + what,
		"templates/_p.tpl:3: the template calls now, " + what,
		"templates/_p.tpl:4: the template calls now, " + what,
		"templates/a.yaml:2: the template calls now, " + what,
		"templates/a.yaml:3: the template calls now, " + what,
		"templates/b.yaml:3: the template calls ago, " + what,
		"templates/tpl.yaml:2: the template calls ago, " + what,
		"templates/tpl.yaml:2: the template calls now, " + what,
	}
	if d := cmp.Diff(want, TimeDependent(c)); d != "" {
		t.Error(d)
	}
	if got := TimeDependent(chartOf(t, exampleChart("templates/a.yaml", strings.Repeat("{{ now }}\n", 300)))); len(got) != maxDifferences+1 {
		t.Errorf("%d sentences", len(got))
	}
}
