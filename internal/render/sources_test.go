package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDefaultsAreWhatTemplatesSee: with nothing given, and whatever takes part.
func TestDefaultsAreWhatTemplatesSee(t *testing.T) {
	c := chartOf(t, map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: outer\nversion: 1.0.0\ndependencies:\n- {name: inner, version: 1.0.0, alias: first, condition: \"first.on, x.y\", tags: [front]}\n" +
			"- {name: inner, version: 1.0.0, condition: inner.on, import-values: [data]}\n",
		"values.yaml":                          "a: 1\nfirst: {size: 2}\ninner: {on: false}\n",
		"charts/inner/Chart.yaml":              "apiVersion: v2\nname: inner\nversion: 1.0.0\ndependencies:\n- {name: leaf, version: 1.0.0, condition: leaf.on}\n",
		"charts/inner/values.yaml":             "size: 1\nexports: {data: {b: 1}}\n",
		"charts/inner/charts/leaf/Chart.yaml":  "apiVersion: v2\nname: leaf\nversion: 1.0.0\n",
		"charts/inner/charts/leaf/values.yaml": "c: 1\n",
	})
	exports := map[string]any{"data": map[string]any{"b": int64(1)}}
	inner := func(size int64) map[string]any {
		return map[string]any{
			"size": size, "exports": exports, "global": map[string]any{},
			"leaf": map[string]any{"c": int64(1), "global": map[string]any{}},
		}
	}
	second := inner(1)
	second["on"] = false
	if d := cmp.Diff(map[string]any{"a": int64(1), "b": int64(1), "first": inner(2), "inner": second}, Defaults(c)); d != "" {
		t.Error(d)
	}
	want := [][]string{{"first", "on"}, {" x", "y"}, {"tags", "front"}, {"inner", "on"}, {"first", "leaf", "on"}, {"inner", "leaf", "on"}}
	if d := cmp.Diff(want, Switches(c)); d != "" {
		t.Error(d)
	}
}
