package values

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"zaentrum.io/zae/internal/fault"
)

func TestParsePath(t *testing.T) {
	for dotted, want := range map[string][]string{
		"a":               {"a"},
		"database.url":    {"database", "url"},
		"a-b.c_d.0":       {"a-b", "c_d", "0"},
		"list[0]":         {"list[0]"}, // there are no indices: a key like any other
		" spaced .key":    {" spaced ", "key"},
		"größe.straße":    {"größe", "straße"},
		"zaentrum.issuer": {"zaentrum", "issuer"},
	} {
		got, err := ParsePath(dotted)
		if err != nil {
			t.Errorf("%q: %v", dotted, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q: %s", dotted, d)
		}
	}
	for name, dotted := range map[string]string{
		"empty":                   "",
		"an empty segment":        "a..b",
		"a dot in front":          ".a",
		"a dot behind":            "a.",
		"only a dot":              ".",
		"a control character":     "a\x1b[31m.b",
		"a line end":              "a\nb",
		"no UTF-8":                "a\xff",
		"longer than is possible": strings.Repeat("a.", 600) + "a",
	} {
		_, err := ParsePath(dotted)
		if fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		} else if strings.ContainsAny(err.Error(), "\x1b\n") || !utf8.ValidString(err.Error()) {
			t.Errorf("%s: the message is not fit for a terminal: %q", name, err)
		}
	}
}

func TestSetGetDelete(t *testing.T) {
	tree := map[string]any{"s": "text", "o": map[string]any{"k": "v"}, "n": nil}
	Set(tree, []string{"s", "a", "b"}, 1)
	Set(tree, []string{"n", "a"}, 2)
	Set(tree, []string{"o", "l"}, 3)
	Set(tree, nil, 4)
	want := map[string]any{
		"s": map[string]any{"a": map[string]any{"b": 1}},
		"n": map[string]any{"a": 2},
		"o": map[string]any{"k": "v", "l": 3},
	}
	if d := cmp.Diff(want, tree); d != "" {
		t.Fatal(d)
	}
	for _, path := range [][]string{{"s", "x"}, {"s", "a", "b", "c"}, {"x"}, {"o", "k", "v"}} {
		if _, ok := Get(tree, path); ok {
			t.Errorf("%v is there", path)
		}
		if Delete(tree, path) {
			t.Errorf("%v is deleted", path)
		}
	}
	if v, ok := Get(map[string]any{"a": nil}, []string{"a"}); !ok || v != nil {
		t.Error("a null is there")
	}
	if !Delete(tree, []string{"s", "a", "b"}) || !Delete(tree, []string{"o", "k"}) {
		t.Error("nothing is deleted")
	}
	want = map[string]any{"n": map[string]any{"a": 2}, "o": map[string]any{"l": 3}}
	if d := cmp.Diff(want, tree); d != "" {
		t.Errorf("deleting leaves empty groups or takes too much: %s", d)
	}
	if Delete(tree, nil) {
		t.Error("an empty path deletes")
	}
}

func FuzzPath(f *testing.F) {
	for _, s := range []string{"a.b", "", "..", "a\x00b", "zaentrum.x", "0.0"} {
		f.Add(s, `{"a":{"b":1},"x":[1]}`)
	}
	f.Fuzz(func(t *testing.T, dotted, text string) {
		path, err := ParsePath(dotted)
		if err != nil {
			return
		}
		if JoinPath(path) != dotted {
			t.Fatalf("%q comes back as %q", dotted, JoinPath(path))
		}
		tree := map[string]any{}
		if json.Unmarshal([]byte(text), &tree) != nil || tree == nil {
			tree = map[string]any{}
		}
		Set(tree, path, "set")
		if v, ok := Get(tree, path); !ok || v != "set" {
			t.Fatalf("%q: set, and then %v", dotted, v)
		}
		if !Delete(tree, path) {
			t.Fatalf("%q: set, and not deleted", dotted)
		}
		if _, ok := Get(tree, path); ok {
			t.Fatalf("%q: deleted, and there", dotted)
		}
	})
}
