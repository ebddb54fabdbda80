package cli

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"zaentrum.io/zae/internal/values"
)

// flagDice makes random trees of few keys, with texts that look like something else.
type flagDice struct{ *rand.Rand }

func (d flagDice) tree(depth int) map[string]any {
	out := map[string]any{}
	for range d.IntN(4) {
		out[string(rune('a'+d.IntN(3)))] = d.value(depth)
	}
	return out
}

func (d flagDice) value(depth int) any {
	texts := []string{"", "1", "null", "true", " a", "it's", "a=b", "\"q\"", "ä\n\u202e", "[1", "x", "<&>"}
	switch n := d.IntN(8); {
	case n < 3 && depth > 0:
		if below := d.tree(depth - 1); len(below) > 0 {
			return below
		}
		return nil
	case n == 3:
		return int64(d.IntN(3))
	case n == 4:
		return []any{texts[d.IntN(len(texts))], d.tree(0)}
	case n == 5:
		return nil
	default:
		return texts[d.IntN(len(texts))]
	}
}

// What --set and --unset are told to undo a change with, undoes it.
func TestTheFlagsThatLeadBackDo(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		d := flagDice{rand.New(rand.NewPCG(seed, 7))}
		from, to := d.tree(2), d.tree(2)
		flags, ok := valueFlags(from, to, nil)
		if !ok {
			t.Fatalf("seed %d: no flags", seed)
		}
		var typed givenFlags
		for i := 0; i < len(flags); i += 2 {
			switch flags[i] {
			case "--set":
				typed.set = append(typed.set, flags[i+1])
			case "--unset":
				typed.unset = append(typed.unset, flags[i+1])
			default:
				t.Fatal(flags[i])
			}
		}
		asked, err := typed.understand()
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		g := &given{unset: asked.unset}
		g.layer(asked.set)
		was, err := g.without(from, "it")
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if d := cmp.Diff(to, overlay(was, g.values)); d != "" {
			t.Fatalf("seed %d: %v leads from %v elsewhere: %s", seed, flags, from, d)
		}
	}
	for _, key := range []string{"a.b", ""} {
		if flags, ok := valueFlags(nil, map[string]any{"x": map[string]any{key: 1}}, nil); ok {
			t.Errorf("%q: got %v", key, flags)
		}
	}
}

func TestAPathIsNearWhenASlipOrItsLastKeyLeadsThere(t *testing.T) {
	t.Parallel()
	known := []string{"database.url", "worker.replicas", "cache.replicas", "a.size", "mode"}
	for path, want := range map[string]string{
		"databse.url": "database.url", "url": "database.url", "db.url": "database.url", "database": "", "replicas": "",
		"worker.replica": "worker.replicas", "x.y.mode": "mode", "x.mod": "", "b.sizes": "a.size", "sizee": "a.size", "zzz": "", "": "",
	} {
		if got := nearPath(path, known); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}

func TestValuesAreWrittenAsSetReadsThem(t *testing.T) {
	t.Parallel()
	for want, v := range map[string]any{
		"info": "info", `"1"`: "1", `""`: "", "2": int64(2), "null": nil, "a b": "a b", `"a\nb"`: "a\nb", `{"k":[1]}`: map[string]any{"k": []any{1}},
	} {
		if v == "" {
			want = "" // as --set path= reads it
		}
		got := valueText(v)
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		back, err := jsonOrText(got)
		if normal, _ := values.Normalize(v); err != nil || fmt.Sprint(back) != fmt.Sprint(normal) {
			t.Errorf("%s is read as %v", got, back)
		}
	}
}
