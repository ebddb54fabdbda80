package values

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzLayers lays any documents over each other: it never panics, the platform's key always wins, null deletes what
// the chart has, an entry with a path sets it, a generated value is there unless something given is, and what goes
// in is left as it is.
func FuzzLayers(f *testing.F) {
	f.Add("a: {b: 1}", "a: {b: null}", "zaentrum: {hostname: mine}", "a.c", "text", "g")
	f.Add("zaentrum: {x: y}", "zaentrum: null", "a: 1", "zaentrum.hostname", "mine", "zaentrum.key")
	f.Add("a: 1", "a: {b: {c: {}}}", "a: []", "a.b.c", "", "a.b")
	f.Add("s: {a: null, b: 1}", "s: {b: null}", "{}", "a..b", "x", "s.b")
	f.Add("on: 1\ny: 2", "{\"on\": null}", "y: null", "on", "1", "no")
	f.Fuzz(func(t *testing.T, defaults, spec, from, target, text, generated string) {
		l := Layers{Subcharts: []string{"s"}, Generated: map[string]string{generated: "made"}, Platform: map[string]any{"hostname": "h"}}
		for _, layer := range []struct {
			text string
			into *map[string]any
		}{{defaults, &l.Defaults}, {spec, &l.Spec}} {
			tree, err := Decode([]byte(layer.text))
			if err != nil {
				return
			}
			*layer.into = tree
		}
		if tree, err := Decode([]byte(from)); err == nil {
			l.From = append(l.From, From{Document: tree})
		}
		if target != "" {
			l.From = append(l.From, From{TargetPath: target, Text: text})
		}
		before := snapshot(t, l)
		merged := l.Merged()
		if d := cmp.Diff(map[string]any{"hostname": "h"}, merged["zaentrum"]); d != "" {
			t.Errorf("the platform does not win: %s", d)
		}
		path, err := ParsePath(target)
		if v, _ := Get(merged, path); err == nil && path[0] != "zaentrum" && len(l.From) > 0 && v != text && !overlaps(target, generated) {
			t.Errorf("%q is not what the last entry says: %v", target, v)
		}
		given := l.Lookup()
		for key := range l.Defaults {
			if v, there := given([]string{key}); there && v == nil && l.Defaults[key] != nil && key != "zaentrum" && !overlaps(key, generated) {
				if _, still := merged[key]; still {
					t.Errorf("null leaves %q", key)
				}
			}
		}
		if keys, err := ParsePath(generated); err == nil && keys[0] != "zaentrum" && !l.Given(generated) && !blocked(l, keys) {
			if v, _ := Get(merged, keys); v != "made" {
				if below, ok := v.(map[string]any); !ok || len(below) == 0 { // an object that is given stays
					t.Errorf("%q is not generated: %v", generated, v)
				}
			}
		}
		scramble(merged)
		if d := cmp.Diff(before, snapshot(t, l)); d != "" {
			t.Errorf("the layers changed: %s", d)
		}
	})
}

// overlaps tells whether one path may lead through the other.
func overlaps(a, b string) bool {
	return a == b || len(a) == 0 || len(b) == 0 || a[0] == b[0]
}
