package values

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func tree(t testing.TB, text string) map[string]any {
	t.Helper()
	m, err := Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMergedFollowsThePrecedence(t *testing.T) {
	for name, tc := range map[string]struct {
		layers Layers
		want   string
	}{
		"each layer wins over those below": {
			Layers{
				Defaults:  tree(t, "{a: d, b: d, c: d, e: d, f: d, zaentrum: {hostname: d}}"),
				Generated: map[string]string{"b": "g", "c": "g", "e": "g", "f": "g"},
				Spec:      tree(t, "{c: s, e: s, f: s, zaentrum: {hostname: s, extra: s}}"),
				From: []From{
					{Document: tree(t, "{e: v1, f: v1}")},
					{TargetPath: "f", Text: "v2"},
				},
				Platform: tree(t, "{hostname: p}"),
			},
			"{a: d, b: g, c: s, e: v1, f: v2, zaentrum: {hostname: p}}",
		},
		"objects merge and arrays replace": {
			Layers{
				Defaults: tree(t, "{o: {x: 1, l: [1, 2]}, l: [1]}"),
				Spec:     tree(t, "{o: {y: 2, l: [3]}, l: []}"),
			},
			"{o: {x: 1, y: 2, l: [3]}, l: []}",
		},
		"null deletes a chart default at any depth": {
			Layers{
				Defaults: tree(t, "{a: 1, o: {x: 1, y: {z: 1, w: 2}}, m: {k: 1}}"),
				Spec:     tree(t, "{a: null, o: {x: null, y: {z: null}}, m: null}"),
			},
			"{o: {y: {w: 2}}}",
		},
		"a later entry takes a null back": {
			Layers{
				Defaults: tree(t, "{o: {x: 1}}"),
				Spec:     tree(t, "{o: null}"),
				From:     []From{{Document: tree(t, "{o: {y: 2}}")}},
			},
			"{o: {x: 1, y: 2}}",
		},
		"null over nothing stays, as in Helm": {
			Layers{Defaults: tree(t, "{o: {}}"), Spec: tree(t, "{a: null, o: {b: null}}")},
			"{a: null, o: {b: null}}",
		},
		"null below a subchart's key stays for the subchart": {
			Layers{Defaults: tree(t, "{sub: {x: 1}}"), Spec: tree(t, "{sub: {x: null}}"), Subcharts: []string{"sub"}},
			"{sub: {x: null}}",
		},
		"a target path sets the raw string": {
			Layers{Spec: tree(t, "{a: 1}"), From: []From{{TargetPath: "o.n", Text: "007"}, {TargetPath: "o.t", Text: "{x: 1}\n"}}},
			"{a: 1, o: {n: '007', t: \"{x: 1}\\n\"}}",
		},
		"a target path replaces a scalar in the way": {
			Layers{Defaults: tree(t, "{o: 1}"), Spec: tree(t, "{o: text}"), From: []From{{TargetPath: "o.n", Text: "x"}}},
			"{o: {n: x}}",
		},
		"a generated value gives way to a given one": {
			Layers{Generated: map[string]string{"c.key": "g"}, Spec: tree(t, "{c: {key: s}}")},
			"{c: {key: s}}",
		},
		"null does not hide a generated value": {
			Layers{Generated: map[string]string{"c.key": "g"}, Spec: tree(t, "{c: {key: null}}")},
			"{c: {key: g}}",
		},
		"an empty string does not hide a generated value": {
			Layers{Generated: map[string]string{"c.key": "g"}, Spec: tree(t, "{c: {key: s}}"), From: []From{{TargetPath: "c.key", Text: ""}}},
			"{c: {key: g}}",
		},
		"a null group does not hide a generated value": {
			Layers{Generated: map[string]string{"c.key": "g"}, Spec: tree(t, "{c: null}")},
			"{c: {key: g}}",
		},
		"a scalar above a generated value replaces it": {
			Layers{Generated: map[string]string{"c.key": "g"}, Spec: tree(t, "{c: text}")},
			"{c: text}",
		},
		"a generated value wins over a chart default": {
			Layers{Defaults: tree(t, "{c: {key: d, x: 1}}"), Generated: map[string]string{"c.key": "g"}},
			"{c: {key: g, x: 1}}",
		},
		"the platform cannot be reached by a target path": {
			Layers{From: []From{{TargetPath: "zaentrum.hostname", Text: "evil"}}, Platform: tree(t, "{hostname: p}")},
			"{zaentrum: {hostname: p}}",
		},
		"without a platform the key is gone": {
			Layers{Defaults: tree(t, "{zaentrum: {a: 1}}")},
			"{}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := snapshot(t, tc.layers)
			if d := cmp.Diff(tree(t, tc.want), tc.layers.Merged()); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(before, snapshot(t, tc.layers)); d != "" {
				t.Errorf("the layers changed: %s", d)
			}
		})
	}
}

func TestGiven(t *testing.T) {
	l := Layers{
		Defaults:  tree(t, "{d: x}"),
		Generated: map[string]string{"g": "x"},
		Spec:      tree(t, "{s: x, n: null, e: '', o: {k: 1}, taken: x, z: 0, f: false}"),
		From:      []From{{TargetPath: "v", Text: "x"}, {TargetPath: "taken", Text: ""}, {Document: map[string]any{"w": "x"}}},
	}
	for path, want := range map[string]bool{
		"s": true, "v": true, "w": true, "o.k": true, "o": true, "z": true, "f": true,
		"d": false, "g": false, "n": false, "e": false, "taken": false, "missing": false, "s.below": true, "": false, "a..b": false,
	} {
		if got := l.Given(path); got != want {
			t.Errorf("Given(%q) = %t", path, got)
		}
	}
}

func snapshot(t testing.TB, l Layers) string {
	t.Helper()
	b, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestLookupIsOfWhatPeopleGave(t *testing.T) {
	get := Layers{
		Defaults:  map[string]any{"a": "chart", "d": "chart"},
		Generated: map[string]string{"g": "made"},
		Spec:      map[string]any{"a": "spec", "n": nil, "o": map[string]any{"x": "spec"}},
		From:      []From{{TargetPath: "o.y", Text: "from"}, {Document: map[string]any{"a": "document"}}},
	}.Lookup()
	for path, want := range map[string]any{"a": "document", "n": nil, "o.x": "spec", "o.y": "from", "d": "none", "g": "none", "o.z": "none"} {
		got, there := get(strings.Split(path, "."))
		if !there {
			got = "none"
		}
		if got != want {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
}
