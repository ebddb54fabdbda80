package render

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart/loader"

	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/manifest"
	"zaentrum.io/zae/internal/values"
)

var platform = map[string]any{
	"namespace": "zaentrum", "issuer": "https://media.example.org/auth", "imagePullSecrets": []any{"pull"},
}

// input loads a chart of testdata, with values given for it.
func input(t testing.TB, name string, given map[string]any) Input {
	t.Helper()
	c, err := chart.LoadDir(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return inputOf(c, given)
}

func inputOf(c *chart.Chart, given map[string]any) Input {
	return Input{
		Chart: c, Name: "example", Namespace: "zaentrum",
		Values: values.Layers{Defaults: c.Defaults, Spec: given, Platform: platform, Subcharts: c.Subcharts}.Merged(),
	}
}

func mustRender(t testing.TB, in Input) manifest.Set {
	t.Helper()
	set, errs := Render(t.Context(), in)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return set
}

// bareHelm renders with nothing but Helm's own functions, as helm install does, and lists the objects as
// JSON, apart from test hooks.
func bareHelm(t testing.TB, dir string, given map[string]any) []string {
	t.Helper()
	h, err := loader.LoadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	given = values.CloneTree(given)
	given["zaentrum"] = platform
	trees, err := helmTrees(h, given, true)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, tree := range trees {
		out = append(out, flatten(t, tree)...)
	}
	return out
}

// flatten lists an object, or those in a list, as JSON.
func flatten(t testing.TB, tree map[string]any) []string {
	if tree == nil {
		return nil
	}
	text, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	for _, hook := range []string{`"helm.sh/hook":"test"`, `"helm.sh/hook":"test-success"`, `"helm.sh/hook":"post-install, Test"`} {
		if tree["kind"] != "List" && strings.Contains(string(text), hook) {
			return nil
		}
	}
	if tree["kind"] != "List" {
		return []string{string(text)}
	}
	var out []string
	for _, item := range tree["items"].([]any) {
		out = append(out, flatten(t, item.(map[string]any))...)
	}
	return out
}

func TestObjectsAreThoseOfHelm(t *testing.T) {
	for _, tc := range []struct {
		name, chart string
		given       map[string]any
	}{
		{"a plain chart", "simple", nil},
		{"a plain chart with values", "simple", map[string]any{"replicas": int64(3), "nodePort": int64(30080), "env": map[string]any{"LOG_LEVEL": nil, "X": "y"}}},
		{"a deleted default", "simple", map[string]any{"resources": map[string]any{"limits": nil}}},
		{"hooks", "hooks", nil},
		{"hooks and a condition", "hooks", map[string]any{"migrate": false}},
		{"lists", "lists", nil},
		{"lists of nothing", "lists", map[string]any{"names": []any{}}},
		{"bundled charts", "subcharts", nil},
		{"bundled charts by condition", "subcharts", map[string]any{"queue": map[string]any{"enabled": true}, "db": map[string]any{"enabled": false}}},
		{"bundled charts by tag", "subcharts", map[string]any{"tags": map[string]any{"fast": true}}},
		{"a bundled chart's bundled chart by condition", "subcharts", map[string]any{"tags": map[string]any{"fast": true}, "cache": map[string]any{"deep": map[string]any{"enabled": false}, "bottom": map[string]any{"x": int64(2)}}}},
		{"values and globals for bundled charts", "subcharts", map[string]any{"global": map[string]any{"own": "y", "tier": map[string]any{"level": int64(4)}}, "replica": map[string]any{"note": "mine"}}},
		{"a bundled chart's default deleted", "subcharts", map[string]any{"db": map[string]any{"note": nil, "exports": map[string]any{"connection": nil}}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			silenceHelm(t)
			var got []string
			for _, o := range mustRender(t, input(t, tc.chart, tc.given)) {
				text, err := json.Marshal(o.Tree)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, string(text))
			}
			want := bareHelm(t, filepath.Join("testdata", tc.chart), tc.given)
			if len(want) == 0 && tc.name != "lists of nothing" {
				t.Fatal("nothing to compare")
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("objects (- Helm, + ours):\n%s", d)
			}
		})
	}
}

func TestIntegersSurvive(t *testing.T) {
	set := mustRender(t, input(t, "numbers", map[string]any{"given": int64(10737418241)}))
	if len(set) != 2 {
		t.Fatal(set.IDs())
	}
	part, root := set[0].Tree["data"].(map[string]any), set[1].Tree["data"].(map[string]any)
	for key, want := range map[string]string{
		"big": "10737418240", "big-raw": "10737418240", "big-json": "10737418240",
		"negative": "-9007199254740993", "float": "1.5", "exponent": "1000", "octal": "15", "zero": "0", "text": "007", "text-json": `"007"`,
		"given": "10737418241", "shared": "10737418240", "list": "[10737418240,2]", "yaml": "- 10737418240\n- 2\n", "sum": "10737418241",
		"tpl": "example has 10737418240 and 21474836480",
	} {
		if got := root[key]; got != want {
			t.Errorf("%s: got %v, want %s", key, got, want)
		}
	}
	for key, want := range map[string]string{"own": "10737418240", "own-raw": "10737418240", "fromParent-json": "10737418240", "shared": "10737418240"} {
		if got := part[key]; got != want {
			t.Errorf("part %s: got %v, want %s", key, got, want)
		}
	}
	if got := set[1].Tree["raw"]; got != int64(10737418240) {
		t.Errorf("raw: got %v (%T)", got, got)
	}
	if d := cmp.Diff([]any{"int64", "float64"}, set[1].Tree["kinds"]); d != "" {
		t.Error(d)
	}
}

func TestWhatTemplatesSee(t *testing.T) {
	set := mustRender(t, input(t, "simple", nil))
	config, ok := set.Find(manifest.ID{APIVersion: "v1", Kind: "ConfigMap", Name: "example-config"})
	if !ok {
		t.Fatal(set.IDs())
	}
	data := config.Tree["data"].(map[string]any)
	for key, want := range map[string]string{
		"kube": "v1.37.0", "helm": "v3.22.0", "apps": "true", "install": "true", "upgrade": "false", "revision": "1", "service": "Helm",
		"lookup": "{}", "dns": "", "file": "hello\n",
	} {
		if got := data[key]; got != want {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
	if !strings.Contains(data["settings"].(string), "nodePort: null") {
		t.Error("a default of null is lost, unlike with Helm")
	}
}

func TestObjectsKnowTheirFiles(t *testing.T) {
	var got []string
	for _, o := range mustRender(t, input(t, "subcharts", map[string]any{"tags": map[string]any{"fast": true}})) {
		got = append(got, o.Source+" "+o.ID().Name)
	}
	want := []string{
		"charts/cache/charts/bottom/templates/all.yaml example-bottom",
		"charts/cache/templates/all.yaml example-cache",
		"charts/db/templates/all.yaml example-db",
		"charts/replica/templates/all.yaml example-replica",
		"templates/all.yaml example",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestThePlatformBlockIsNotMixedWithAnything(t *testing.T) {
	c := chartOf(t, map[string]string{
		"Chart.yaml":           "apiVersion: v2\nname: example\nversion: 1.0.0\ndependencies:\n- name: s\n  version: 1.x\n  import-values: [{child: data, parent: zaentrum}]\n",
		"values.yaml":          "zaentrum: {a: 1, nested: {b: 2}}\n",
		"templates/a.yaml":     "got: {{ .Values.zaentrum | toJson }}\n",
		"charts/s/Chart.yaml":  "apiVersion: v2\nname: s\nversion: 1.0.0\n",
		"charts/s/values.yaml": "data: {issuer: evil, more: evil}\n",
	})
	set := mustRender(t, inputOf(c, map[string]any{"zaentrum": map[string]any{"issuer": "evil"}}))
	if d := cmp.Diff(platform, set[0].Tree["got"]); d != "" {
		t.Error(d)
	}
}

func TestRenderingChangesNeitherChartNorValues(t *testing.T) {
	for _, name := range []string{"simple", "hooks", "lists", "numbers", "subcharts"} {
		in := input(t, name, map[string]any{"tags": map[string]any{"fast": true}, "db": map[string]any{"note": nil}})
		before, err := json.Marshal(in.Values)
		if err != nil {
			t.Fatal(err)
		}
		first := mustRender(t, in)
		second := mustRender(t, in)
		after, err := json.Marshal(in.Values)
		if err != nil {
			t.Fatal(err)
		}
		if string(before) != string(after) {
			t.Errorf("%s: the values changed from %s to %s", name, before, after)
		}
		if d := cmp.Diff(first, second); d != "" {
			t.Errorf("%s: rendering again differs:\n%s", name, d)
		}
		fresh, err := chart.LoadDir(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(fresh.Helm(), in.Chart.Helm(), cmp.Exporter(unexportedOfHelm)); d != "" {
			t.Errorf("%s: the chart changed:\n%s", name, d)
		}
	}
}

func TestRenderStopsWaiting(t *testing.T) {
	c := chartOf(t, map[string]string{
		"Chart.yaml":       "apiVersion: v2\nname: example\nversion: 1.0.0\n",
		"templates/a.yaml": "{{ range until 3000 }}{{ range until 3000 }}{{ end }}{{ end }}a: b\n",
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	start := time.Now()
	set, errs := Render(ctx, inputOf(c, nil))
	if d := cmp.Diff([]string{"rendering did not finish in time"}, errs); d != "" || set != nil {
		t.Error(d, set)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
	cancel()
	if _, errs := Render(ctx, inputOf(c, nil)); len(errs) != 1 {
		t.Error(errs)
	}
}

func TestOutputIsBounded(t *testing.T) {
	c := chartOf(t, map[string]string{
		"Chart.yaml":       "apiVersion: v2\nname: example\nversion: 1.0.0\n",
		"templates/a.yaml": "a: {{ repeat 9000000 \"x\" }}\n",
		"templates/b.yaml": "a: {{ repeat 9000000 \"x\" }}\n",
	})
	_, errs := Render(t.Context(), inputOf(c, nil))
	if d := cmp.Diff([]string{"the templates render 18000008 bytes, the limit is 4194304"}, errs); d != "" {
		t.Error(d)
	}
}
