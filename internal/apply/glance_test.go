package apply_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"zaentrum.io/zae/internal/apply"
	"zaentrum.io/zae/internal/manifest"
)

// glance is what the owner has; there must be nothing that the reader has not seen.
func (b *bench) glance() manifest.Set {
	b.t.Helper()
	b.observe(b.decorate(example)) // which notes that the reader has seen all writes
	owned, ok, err := b.cluster.Glance(b.ctx, b.owner)
	if err != nil || !ok {
		b.t.Fatalf("ok %v, error %v", ok, err)
	}
	return owned
}

// holds tells what a print made before says now, and checks that it does not keep an apply from anything.
func (b *bench) holds(p apply.Print) (same, exact bool) {
	b.t.Helper()
	owned := b.glance()
	exact = maps.Clone(p).Holds(b.cluster, owned, true)
	same = maps.Clone(p).Holds(b.cluster, owned, false)
	if !same && exact {
		b.t.Error("exactly the same, and yet not the same")
	}
	return same, exact
}

func TestAGlanceIsWhatIsOwned(t *testing.T) {
	b := newBench(t)
	b.mustApply(example)
	if _, ok, err := b.cluster.Glance(b.ctx, b.owner); ok || err != nil {
		t.Errorf("ok before the reader is known to have seen the writes: %v, %v", ok, err)
	}
	b.create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, labels: {zaentrum.io/addon: example}}}`)
	b.create(`{apiVersion: v1, kind: Secret, metadata: {name: zaentrum-addon-example-values, labels: {zaentrum.io/addon: example}}}`)
	if d := cmp.Diff(everything, names(b.glance().IDs())); d != "" {
		t.Error(d)
	}
}

func TestAPrintHoldsUntilAnApplyHasSomethingToDo(t *testing.T) {
	b := newBench(t)
	b.mustApply(example)
	p := b.cluster.NewPrint(b.glance())
	if same, exact := b.holds(p); !same || !exact {
		t.Fatalf("same %v, exact %v of what was not touched", same, exact)
	}

	b.patch(b.get("apps/v1", "Deployment", "example"), `{"metadata":{"annotations":{"theirs":"1"}},"spec":{"revisionHistoryLimit":3}}`)
	b.patch(b.get("v1", "ConfigMap", "config"), `{"data":{"theirs":"1"}}`)
	d := b.get("apps/v1", "Deployment", "example")
	d.Object["status"] = map[string]any{"observedGeneration": int64(1), "replicas": int64(2)}
	if err := b.other.Status().Update(b.ctx, d); err != nil {
		t.Fatal(err)
	}
	if same, exact := b.holds(p); !same || exact {
		t.Errorf("same %v, exact %v after others wrote what is theirs", same, exact)
	}

	// An object more, or one less.
	owned := b.glance()
	if p.Holds(b.cluster, owned[1:], false) || b.cluster.NewPrint(owned[1:]).Holds(b.cluster, owned, false) {
		t.Error("a missing object goes unnoticed")
	}
}

func TestAPrintNoticesEveryHandEdit(t *testing.T) {
	edits := maps.Clone(handEdits)
	for name, patch := range map[string]string{
		"the owner":   `{"metadata":{"ownerReferences":null}}`,
		"a prune key": `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"Helm"}}}`,
		"on its way":  `{"metadata":{"finalizers":["example.org/stays"]}}`,
	} {
		e := edits["a changed value"]
		e.patch = patch
		edits[name] = e
	}
	for _, name := range slices.Sorted(maps.Keys(edits)) {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.mustApply(example)
			p := b.cluster.NewPrint(b.glance())
			tc := edits[name]
			u := b.get(tc.apiVersion, tc.kind, tc.name)
			b.patch(u, tc.patch)
			if name == "on its way" {
				if err := b.other.Delete(b.ctx, u); err != nil {
					t.Fatal(err)
				}
			}
			if same, _ := b.holds(p); same {
				t.Error("goes unnoticed")
			}
		})
	}
}
