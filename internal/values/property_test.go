package values

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// randomTree makes small trees over few keys, so that layers meet often.
func randomTree(r *rand.Rand, depth int) map[string]any {
	m := map[string]any{}
	for range r.IntN(5) {
		key := string(rune('a' + r.IntN(5)))
		if r.IntN(12) == 0 {
			key = "zaentrum"
		}
		switch n := r.IntN(7); {
		case n == 0:
			m[key] = nil
		case n == 1:
			m[key] = ""
		case n <= 3 && depth > 0:
			m[key] = randomTree(r, depth-1)
		case n == 4:
			m[key] = []any{randomTree(r, 0)}
		default:
			m[key] = int64(r.IntN(3))
		}
	}
	return m
}

func randomPath(r *rand.Rand) string {
	path := string(rune('a' + r.IntN(5)))
	for range r.IntN(3) {
		path += "." + string(rune('a'+r.IntN(5)))
	}
	return path
}

func randomLayers(r *rand.Rand) Layers {
	l := Layers{
		Defaults:  randomTree(r, 3),
		Generated: map[string]string{},
		Spec:      randomTree(r, 3),
		Platform:  map[string]any{"namespace": "p", "media": map[string]any{"claimName": "media"}},
	}
	for range r.IntN(3) {
		l.Generated[randomPath(r)] = "generated"
	}
	for range r.IntN(4) {
		if r.IntN(2) == 0 {
			l.From = append(l.From, From{Document: randomTree(r, 3)})
		} else {
			l.From = append(l.From, From{TargetPath: randomPath(r), Text: []string{"", "text"}[r.IntN(2)]})
		}
	}
	return l
}

// scramble changes everything a tree holds.
func scramble(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			scramble(item)
			v[key] = "scrambled"
		}
		v["more"] = true
	case []any:
		for i, item := range v {
			scramble(item)
			v[i] = "scrambled"
		}
	}
}

func TestLayeringHoldsForAnyLayers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 4_000 {
		l := randomLayers(r)
		before := snapshot(t, l)
		merged := l.Merged()
		if d := cmp.Diff(merged, l.Merged()); d != "" {
			t.Fatalf("%s\nmerges differently: %s", before, d)
		}
		if d := cmp.Diff(l.Platform, merged["zaentrum"]); d != "" {
			t.Fatalf("%s\nthe platform does not win: %s", before, d)
		}
		for dotted := range l.Generated {
			if _, nested := l.Generated[dotted+".a"]; nested || l.Given(dotted) || len(l.Generated) > 1 {
				continue
			}
			path, _ := ParsePath(dotted)
			if v, _ := Get(merged, path); v != "generated" && !blocked(l, path) {
				t.Fatalf("%s\n%s is not given, and the generated value is hidden by %v", before, dotted, v)
			}
		}
		if len(l.From) > 0 {
			if last := l.From[len(l.From)-1]; last.TargetPath != "" && last.Text != "" && len(l.Generated) == 0 {
				path, _ := ParsePath(last.TargetPath)
				if v, _ := Get(merged, path); v != last.Text {
					t.Fatalf("%s\nthe last entry does not win over what is below it: %v", before, v)
				}
			}
		}
		sum := Checksum(merged)
		scramble(merged)
		if d := cmp.Diff(before, snapshot(t, l)); d != "" {
			t.Fatalf("the layers share with the result: %s", d)
		}
		if got := Checksum(l.Merged()); got != sum || len(sum) != 64 {
			t.Fatalf("checksum %s, then %s", sum, got)
		}
	}
}

// blocked tells whether something given and not empty stands above the path and is no object.
func blocked(l Layers, path []string) bool {
	for i := 1; i < len(path); i++ {
		v, ok := Get(l.given(), path[:i])
		if _, object := v.(map[string]any); ok && !object && !empty(v) {
			return true
		}
	}
	return false
}

func TestMergeNeverLeavesWhatNullDeleted(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var check func(dst, src, got map[string]any)
	check = func(dst, src, got map[string]any) {
		for key, v := range src {
			below := dst[key]
			switch v := v.(type) {
			case nil:
				if _, there := got[key]; there && below != nil {
					t.Fatalf("%q is still there", key)
				}
			case map[string]any:
				lower, _ := below.(map[string]any)
				check(lower, v, got[key].(map[string]any))
			default:
				if d := cmp.Diff(v, got[key]); d != "" {
					t.Fatal(d)
				}
			}
		}
		for key, v := range dst {
			if _, over := src[key]; over {
				continue
			}
			if d := cmp.Diff(v, got[key]); d != "" {
				t.Fatal(d)
			}
		}
	}
	for range 4_000 {
		dst, src := randomTree(r, 3), randomTree(r, 3)
		check(dst, src, Merge(dst, src))
	}
}
