package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecodeKeepsTypes(t *testing.T) {
	docs, err := Decode([]byte("a: 10737418240\nb: 1.5\nc: on\nd: \"on\"\non: x\ne: ~\nf: [1, no, '2']\ng: 2026-10-02\nh: 0o17\n---\n---\nk: &a {x: 1}\nl: {<<: *a, y: 2}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []any{
		map[string]any{
			"a": int64(10737418240), "b": 1.5, "c": true, "d": "on", "on": "x", "e": nil,
			"f": []any{int64(1), false, "2"}, "g": "2026-10-02", "h": int64(15),
		},
		map[string]any{"k": map[string]any{"x": int64(1)}, "l": map[string]any{"x": int64(1), "y": int64(2)}},
	}
	if d := cmp.Diff(want, docs); d != "" {
		t.Error(d)
	}
}

func TestDecodeRefuses(t *testing.T) {
	const canary = "c4n4ry"
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 'b'; i < 'j'; i++ {
		p := string(i - 1)
		bomb += string(i) + ": &" + string(i) + " [" + strings.TrimSuffix(strings.Repeat("*"+p+",", 10), ",") + "]\n"
	}
	for name, tc := range map[string]struct {
		text string
		line int
	}{
		"duplicate keys":              {"a: 1\nb:\n  " + canary + ": 1\n  " + canary + ": 2\n", 4},
		"two merges":                  {"a: &a {x: " + canary + "}\nb:\n  <<: *a\n  <<: *a\n", 4},
		"a key that is a mapping":     {"? {a: " + canary + "}\n: 1\n", 1},
		"bad syntax":                  {"a: b\n\tc: " + canary + "\n", 2},
		"aliases without bound":       {bomb, 0},
		"a number beyond JSON":        {"a: .inf\n", 1},
		"too deep":                    {strings.Repeat("[", 200) + strings.Repeat("]", 200), 1},
		"a recursive alias":           {"a: &a [*a]\n", 0},
		"merge of a scalar":           {"a: &a " + canary + "\nb: {<<: *a}\n", 2},
		"a binary value":              {"a: !!binary " + canary + "\n", 1},
		"a boolean that is none":      {"a: !!bool " + canary + "\n", 1},
		"an undefined alias":          {"a: *" + canary + "\n", 0},
		"an integer that is no value": {"a: !!int " + canary + "\n", 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Decode([]byte(tc.text))
			var de *DecodeError
			if !errors.As(err, &de) {
				t.Fatalf("got %v, want a DecodeError", err)
			}
			if tc.line != 0 && de.Line != tc.line {
				t.Errorf("line %d, want %d (%v)", de.Line, tc.line, err)
			}
			if strings.Contains(err.Error(), canary) {
				t.Errorf("the error quotes a value: %v", err)
			}
		})
	}
}

// TestBooleansAreThoseOfYAML11: unquoted as values, and never as keys.
func TestBooleansAreThoseOfYAML11(t *testing.T) {
	for want, words := range map[bool]string{true: "y Y yes Yes YES on On ON true True TRUE", false: "n N no No NO off Off OFF false False FALSE"} {
		for word := range strings.FieldsSeq(words) {
			got, err := Decode([]byte(word + ": [" + word + ", '" + word + "', \"" + word + "\"]"))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff([]any{map[string]any{word: []any{want, word, word}}}, got); d != "" {
				t.Errorf("%s: %s", word, d)
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		"a: b", "- 1\n- {x: y}", "a: &a [*a]", "? [a]\n: b", "---\n...\n---\n", "a: !!int x", "<<: 1", "on: y\nyes: [no, off, ~]", "a: 0x10\nb: 0o17\nc: 017\nd: 1_000",
		"a: 1e21\nb: 1.0\nc: -0.0\nd: 18446744073709551616", "a: 2001-01-01\nb: !x y", "a: \"\\x7f\\u2028\\U0001F600\"", "x: &x {a: 1}\ny: {<<: *x, b: 2}", "\"<<\": {a: b}", "a: |\n  b\n   c\n", "{\"a\": \"b\"}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		docs, err := Decode(text)
		if err != nil {
			return
		}
		for _, doc := range docs {
			encoded, err := json.Marshal(doc)
			if err != nil {
				t.Fatalf("what was accepted cannot be encoded: %v", err)
			}
			again, err := Decode(ascii(encoded))
			if err != nil {
				t.Fatalf("%s: what was encoded is not accepted: %v", encoded, err)
			}
			if len(again) != 1 || !cmp.Equal(numbers(doc), numbers(again[0])) {
				t.Errorf("%s: another document: %s", encoded, cmp.Diff(numbers(doc), numbers(again[0])))
			}
		}
	})
}

// ascii writes what YAML does not take as it stands in JSON with escapes that both have.
func ascii(text []byte) []byte {
	var out strings.Builder
	for _, r := range string(text) {
		if r >= ' ' && r < 0x7f {
			out.WriteRune(r)
		} else {
			fmt.Fprintf(&out, "\\U%08X", r)
		}
	}
	return []byte(out.String())
}

// numbers writes whole numbers alike: JSON does not tell 1 from 1.0.
func numbers(v any) any {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = numbers(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[key] = numbers(item)
		}
		return out
	default:
		return v
	}
}

func TestApplyOrder(t *testing.T) {
	obj := func(kind, name string) Object {
		return Object{Tree: map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name}}}
	}
	set := Set{obj("Job", "a"), obj("Widget", "w"), obj("Deployment", "b"), obj("Deployment", "a"), obj("Service", "s"), obj("PersistentVolumeClaim", "p"), obj("ConfigMap", "c"), obj("Secret", "s"), obj("ServiceAccount", "z")}
	var got []string
	for _, id := range set.InApplyOrder().IDs() {
		got = append(got, id.String())
	}
	want := []string{"ServiceAccount/z", "Secret/s", "ConfigMap/c", "PersistentVolumeClaim/p", "Service/s", "Deployment/a", "Deployment/b", "Job/a", "Widget/w"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
