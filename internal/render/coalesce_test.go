package render

import (
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"

	"zaentrum.io/zae/internal/values"
)

// dice makes random charts and values of few names, so that they collide.
type dice struct{ *rand.Rand }

func (d dice) one(in int) bool { return d.IntN(in) == 0 }

var diceKeys = []string{"a", "b", "c", "s", "t", "u", "global", "tags", "exports", "enabled"}

func (d dice) key() string { return diceKeys[d.IntN(len(diceKeys))] }

func (d dice) value(depth int) any {
	switch n := d.IntN(10); {
	case n < 5 && depth > 0:
		return d.tree(depth - 1)
	case n == 5:
		return nil
	case n == 6:
		return d.one(2)
	case n == 7:
		return []any{"x", d.tree(0)}
	default:
		return fmt.Sprint("v", d.IntN(1000))
	}
}

func (d dice) tree(depth int) map[string]any {
	out := map[string]any{}
	for range d.IntN(5) {
		key := d.key()
		v := d.value(depth)
		if _, isTable := v.(map[string]any); !isTable && depth == 3 && (key == "s" || key == "t" || key == "u") {
			continue // mostly an error, which would hide everything else
		}
		out[key] = v
	}
	return out
}

func (d dice) path() string {
	p := d.key()
	for d.one(2) {
		p += "." + d.key()
	}
	return p
}

func (d dice) chart(name string, depth int) *helmchart.Chart {
	h := &helmchart.Chart{
		Metadata: &helmchart.Metadata{APIVersion: "v2", Name: name, Version: "1.2.0"},
		Values:   d.tree(3),
	}
	if depth == 0 {
		return h
	}
	for _, sub := range []string{"s", "t", "u"} {
		if d.one(2) {
			continue
		}
		h.AddDependency(d.chart(sub, depth-1))
		for n := range d.IntN(3) {
			dep := &helmchart.Dependency{Name: sub, Version: []string{"1.x", "", "2.x", ">0"}[d.IntN(4)]}
			if n > 0 || d.one(3) {
				dep.Alias = fmt.Sprint(sub, n)
			}
			if d.one(2) {
				dep.Condition = sub + ".enabled," + d.path()
			}
			if d.one(2) {
				dep.Tags = []string{d.key(), d.key()}
			}
			for d.one(2) {
				if d.one(2) {
					dep.ImportValues = append(dep.ImportValues, d.key())
				} else {
					dep.ImportValues = append(dep.ImportValues, map[string]any{"child": d.path(), "parent": []string{".", d.path()}[d.IntN(2)]})
				}
			}
			h.Metadata.Dependencies = append(h.Metadata.Dependencies, dep)
		}
	}
	return h
}

// shape is what resolving left of the tree of charts. Helm's own paths are not used: it forgets to tell the
// children of a renamed chart.
func shape(h *helmchart.Chart) []string {
	out := []string{h.Name()}
	for _, sub := range h.Dependencies() {
		for _, s := range shape(sub) {
			out = append(out, h.Name()+"/"+s)
		}
	}
	return out
}

// TestValuesAreThoseOfHelm holds conditions, tags, aliases, import-values, globals and nulls against Helm's
// own functions, for random charts and values.
func TestValuesAreThoseOfHelm(t *testing.T) {
	silenceHelm(t)
	var failed, compared int
	for seed := range uint64(1000) {
		d := dice{rand.New(rand.NewPCG(seed, 1))}
		h := d.chart("root", 2)
		given := d.tree(3)
		if aliasesShareChildren(h) {
			continue
		}

		want, wantErr := helmValues(cloneChart(h), values.CloneTree(given))

		// The same through the layers, as the operator does it.
		merged := values.Layers{Defaults: h.Values, Spec: given, Subcharts: subchartKeys(h)}.Merged()
		ours := cloneChart(h)
		nullDeleted(merged, ours.Values, true)
		err := resolve(ours, merged)
		if err == nil {
			err = coalesce(ours, merged, false, "")
		}
		if (err != nil) != (wantErr != nil) {
			t.Fatalf("seed %d: error %v, Helm's %v", seed, err, wantErr)
		}
		if err != nil {
			failed++
			continue
		}
		compared++
		if _, ok := given["zaentrum"]; ok {
			t.Fatal("the dice know the reserved key")
		}
		if d := cmp.Diff(map[string]any(want.values), merged); d != "" {
			t.Fatalf("seed %d: values (- Helm, + ours):\n%s", seed, d)
		}
		if d := cmp.Diff(want.shape, shape(ours)); d != "" {
			t.Fatalf("seed %d: charts (- Helm, + ours):\n%s", seed, d)
		}
	}
	t.Logf("%d compared, %d refused by both", compared, failed)
	if compared < 300 || failed < 3 {
		t.Errorf("%d compared, %d refused by both: the dice are loaded", compared, failed)
	}
}

type helmResult struct {
	values chartutil.Values
	shape  []string
}

func helmValues(h *helmchart.Chart, given map[string]any) (helmResult, error) {
	if err := chartutil.ProcessDependenciesWithMerge(h, given); err != nil {
		return helmResult{}, err
	}
	v, err := chartutil.CoalesceValues(h, given)
	return helmResult{v, shape(h)}, err
}

func subchartKeys(h *helmchart.Chart) []string {
	var keys []string
	for _, sub := range h.Dependencies() {
		keys = append(keys, sub.Name())
	}
	for _, d := range h.Metadata.Dependencies {
		if d.Alias != "" {
			keys = append(keys, d.Alias)
		}
	}
	return keys
}

// aliasesShareChildren tells whether Helm would make two charts of one that itself bundles charts: its two
// copies then share those, and settle their conditions together. Ours are apart.
func aliasesShareChildren(h *helmchart.Chart) bool {
	count := map[string]int{}
	for _, d := range h.Metadata.Dependencies {
		count[d.Name]++
	}
	for _, sub := range h.Dependencies() {
		if len(sub.Dependencies()) > 0 && (count[sub.Name()] > 1 || aliasesShareChildren(sub)) {
			return true
		}
	}
	return false
}

// silenceHelm keeps Helm's own warnings, which are the reason for our own rules, out of the test's output.
func silenceHelm(t testing.TB) {
	out := log.Writer()
	log.SetOutput(io.Discard)
	t.Cleanup(func() { log.SetOutput(out) })
}
