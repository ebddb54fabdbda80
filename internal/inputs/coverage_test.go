package inputs

import (
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// coverDice makes random schemas of objects, put together in every way that draft-07 has.
type coverDice struct{ *rand.Rand }

func (d coverDice) name() string { return []string{"a", "b", "c", "d"}[d.IntN(4)] }

func (d coverDice) schema(depth int) any {
	if depth == 0 {
		return []any{true, map[string]any{"type": "string"}, map[string]any{"type": "integer"}, map[string]any{"type": "array"}, map[string]any{"type": "object"}, map[string]any{"writeOnly": true}}[d.IntN(6)]
	}
	out := map[string]any{}
	if d.IntN(2) == 0 {
		out["type"] = "object"
	}
	for range 1 + d.IntN(3) {
		switch d.IntN(10) {
		case 0:
			out["allOf"] = []any{d.schema(depth - 1), d.schema(depth - 1)}
		case 1:
			out[[]string{"anyOf", "oneOf"}[d.IntN(2)]] = []any{d.schema(depth - 1), d.schema(depth - 1)}
		case 2:
			out["if"], out["then"], out["else"] = d.schema(depth-1), d.schema(depth-1), d.schema(depth-1)
		case 3:
			out["dependencies"] = map[string]any{d.name(): d.schema(depth - 1), d.name(): []any{d.name()}}
		case 4:
			out["$ref"] = "#/definitions/" + strconv.Itoa(d.IntN(3))
		case 5:
			out["additionalProperties"] = d.schema(0)
		case 6:
			out["required"] = []any{d.name()}
		default:
			m := map[string]any{}
			for range 1 + d.IntN(3) {
				m[d.name()] = d.schema(depth - 1)
			}
			out["properties"] = m
		}
	}
	return out
}

func (d coverDice) value(depth int) any {
	if depth == 0 || d.IntN(4) == 0 {
		return []any{"x", int64(1), []any{}, map[string]any{}, nil}[d.IntN(5)]
	}
	out := map[string]any{}
	for range d.IntN(4) {
		out[d.name()] = d.value(depth - 1)
	}
	return out
}

// knows are the schemas of a document that may apply to what is at a path, read from the JSON itself.
func knows(doc map[string]any, path []string) []map[string]any {
	at := around(doc, doc)
	for _, key := range path {
		var next []map[string]any
		for _, s := range at {
			properties, _ := s["properties"].(map[string]any)
			sub, there := properties[key]
			if object, ok := sub.(map[string]any); ok {
				next = append(next, around(doc, object)...)
			} else if there {
				next = append(next, map[string]any{})
			}
		}
		at = next
	}
	return at
}

// around are a schema and those it applies to the same value.
func around(doc, s map[string]any) []map[string]any {
	if ref, ok := s["$ref"].(string); ok {
		definitions, _ := doc["definitions"].(map[string]any)
		to, _ := definitions[strings.TrimPrefix(ref, "#/definitions/")].(map[string]any)
		return around(doc, to)
	}
	out := []map[string]any{s}
	add := func(v any) {
		if sub, ok := v.(map[string]any); ok {
			out = append(out, around(doc, sub)...)
		}
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := s[keyword].([]any)
		for _, item := range list {
			add(item)
		}
	}
	for _, keyword := range []string{"if", "then", "else"} {
		add(s[keyword])
	}
	dependencies, _ := s["dependencies"].(map[string]any)
	for _, sub := range dependencies {
		add(sub)
	}
	return out
}

// leaves are the paths of a value's leaves.
func leaves(v any, at []string) [][]string {
	m, ok := v.(map[string]any)
	if !ok || len(m) == 0 {
		return [][]string{at}
	}
	var out [][]string
	for key, item := range m {
		out = append(out, leaves(item, append(at[:len(at):len(at)], key))...)
	}
	return out
}

// TestEveryPathIsAnInput: wherever values that the schema allows have something at a path that the schema knows,
// there is an input for it: one with the path, a JSON input around it, or a group that the value would replace.
func TestEveryPathIsAnInput(t *testing.T) {
	checked, schemas := 0, 0
	for seed := range uint64(800) {
		d := coverDice{rand.New(rand.NewPCG(seed, 3))}
		doc, _ := d.schema(4).(map[string]any)
		definitions := map[string]any{}
		for i := range 3 {
			sub, _ := d.schema(1).(map[string]any)
			delete(sub, "$ref")
			definitions[strconv.Itoa(i)] = sub
		}
		doc["definitions"] = definitions
		text, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Parse(text)
		if err != nil {
			continue // schemas that contain themselves
		}
		schemas++
		covered := map[string]string{}
		for _, g := range s.Groups() {
			covered[g.Path] = "group"
		}
		for _, in := range s.Inputs() {
			if covered[in.Path] != "" {
				t.Fatalf("seed %d: %s is there twice\n%s", seed, in.Path, text)
			}
			covered[in.Path] = in.Type
		}
		for range 20 {
			values, ok := d.value(5).(map[string]any)
			if !ok || len(s.Validate(values)) > 0 {
				continue
			}
			for _, path := range leaves(values, nil) {
				if len(path) == 0 || len(knows(doc, path)) == 0 {
					continue
				}
				checked++
				found := covered[strings.Join(path, ".")] != ""
				for i := range path {
					found = found || covered[strings.Join(path[:i], ".")] == TypeJSON
				}
				if !found {
					t.Fatalf("seed %d: nothing covers %v\n%s\n%v", seed, path, text, covered)
				}
			}
		}
	}
	t.Logf("%d paths in values of %d schemas", checked, schemas)
	if checked < 700 {
		t.Error("the dice are loaded")
	}
}
