package apply

import (
	"bufio"
	"bytes"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"zaentrum.io/zae/api/v1alpha1"
)

// liveObjects are the objects of the example addon as a cluster had them once everything ran.
func liveObjects(tb testing.TB) []*unstructured.Unstructured {
	tb.Helper()
	text, err := os.ReadFile("testdata/live.jsonl")
	if err != nil {
		tb.Fatal(err)
	}
	var out []*unstructured.Unstructured
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(lines.Bytes()); err != nil {
			tb.Fatal(err)
		}
		out = append(out, u)
	}
	if err := lines.Err(); err != nil || len(out) == 0 {
		tb.Fatal(len(out), err)
	}
	return out
}

func compacted(tb testing.TB, u *unstructured.Unstructured) *unstructured.Unstructured {
	tb.Helper()
	o, err := Compact(v1alpha1.ReservedPrefix)(u)
	if err != nil {
		tb.Fatal(err)
	}
	return o.(*unstructured.Unstructured) //nolint:forcetypeassert // it is what went in
}

// TestCompactLosesNothingThatIsRead holds what a Cluster reads of an object against what it reads of it compacted.
func TestCompactLosesNothingThatIsRead(t *testing.T) {
	c := &Cluster{FieldManager: v1alpha1.FieldManager, OwnerLabel: v1alpha1.LabelAddon, PruneLabels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy}}
	managers, secrets := 0, 0
	for _, u := range liveObjects(t) {
		u.SetAnnotations(map[string]string{lastApplied: "c4n4ry", v1alpha1.AnnotationApplied: "digest"})
		small := compacted(t, u.DeepCopy())
		if isSecret(u.Object) {
			secrets++
			reserved := strings.HasPrefix(u.GetName(), v1alpha1.ReservedPrefix)
			if whole := cmp.Equal(u.Object["data"], small.Object["data"]); whole != reserved {
				t.Errorf("Secret %s: has its data: %t", u.GetName(), whole)
			}
			if !sameData(u.Object, small.Object) || !sameData(small.Object, u.Object) {
				t.Errorf("Secret %s: has other data", u.GetName())
			}
		}
		if diff := cmp.Diff(entries(u), entries(small), cmp.AllowUnexported(entry{})); diff != "" {
			t.Errorf("%s %s: %s", u.GetKind(), u.GetName(), diff)
		}
		for _, e := range entries(u) {
			managers++
			if set, ok := e.set(); !ok || set.Empty() {
				t.Errorf("%s %s: %s holds nothing", u.GetKind(), u.GetName(), e.manager)
			}
		}
		if c.sum(u) != c.sum(small) {
			t.Errorf("%s %s: another sum", u.GetKind(), u.GetName())
		}
		if changed := changedFields(small.Object, u.Object); len(changed) > 0 {
			t.Errorf("%s %s: differs in %s", u.GetKind(), u.GetName(), changed)
		}
		if diff := cmp.Diff(map[string]string{v1alpha1.AnnotationApplied: "digest"}, small.GetAnnotations()); diff != "" {
			t.Errorf("%s %s: %s", u.GetKind(), u.GetName(), diff)
		}
		again := compacted(t, small.DeepCopy())
		if diff := cmp.Diff(small, again); diff != "" {
			t.Errorf("%s %s: compacted twice: %s", u.GetKind(), u.GetName(), diff)
		}
		small.DeepCopy() // panics for what cannot be in a tree
	}
	if managers < 12 || secrets != 3 {
		t.Errorf("only %d entries and %d Secrets were looked at", managers, secrets)
	}
	for _, odd := range []any{nil, "x", &unstructured.Unstructured{}, &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
		"managedFields": []any{"x", map[string]any{}, map[string]any{"fieldsV1": int64(1)}, nil}, "annotations": "x",
	}}}} {
		if _, err := Compact("")(odd); err != nil {
			t.Errorf("%v: %v", odd, err)
		}
		if u, ok := odd.(*unstructured.Unstructured); ok {
			for _, e := range entries(u) {
				if _, ok := e.set(); ok {
					t.Errorf("%v: has a set", e)
				}
			}
		}
	}
}

// TestDigestsTellWhatDiffers compares a Secret as it is with one whose data are digests.
func TestDigestsTellWhatDiffers(t *testing.T) {
	secret := func(data map[string]any) map[string]any {
		tree := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "env"}}
		if data != nil {
			tree["data"] = data
		}
		return tree
	}
	live := compacted(t, &unstructured.Unstructured{Object: secret(map[string]any{"same": "YQ==", "changed": "YQ==", "removed": "", "theirs": "eA=="})})
	next := secret(map[string]any{"same": "YQ==", "changed": "Yg==", "added": "YQ==", "theirs": "eA=="})
	if diff := cmp.Diff([]string{"data.added", "data.changed", "data.removed"}, changedFields(live.Object, next)); diff != "" {
		t.Error(diff)
	}
	for _, tc := range []struct {
		want map[string]any
		same bool
	}{
		{nil, true},
		{map[string]any{"same": "YQ=="}, true},
		{map[string]any{"same": "YQ==", "removed": ""}, true},
		{map[string]any{"same": "Yg=="}, false},
		{map[string]any{"missing": "YQ=="}, false},
		{map[string]any{"same": "no base64"}, false},
		{map[string]any{"same": int64(1)}, false},
		{map[string]any{"same": nil}, false},
	} {
		if got := sameData(secret(tc.want), live.Object); got != tc.same {
			t.Errorf("%v: the same: %t", tc.want, got)
		}
	}
	for _, value := range asMap(live.Object["data"]) {
		if text, ok := value.(string); !ok || !strings.HasPrefix(text, digestMark) {
			t.Errorf("%v: is kept", value)
		}
	}
}

// BenchmarkCachedAddon measures the memory that the objects of one addon take in a cache.
func BenchmarkCachedAddon(b *testing.B) {
	for name, keep := range map[string]func(*unstructured.Unstructured){
		"as-they-are": func(*unstructured.Unstructured) {},
		"compacted":   func(u *unstructured.Unstructured) { compacted(b, u) },
		"without-managed-fields": func(u *unstructured.Unstructured) {
			u.SetManagedFields(nil)
		},
	} {
		b.Run(name, func(b *testing.B) {
			var addons [][]*unstructured.Unstructured
			before := heapInUse()
			for b.Loop() {
				objects := liveObjects(b)
				for _, u := range objects {
					keep(u)
				}
				addons = append(addons, objects)
			}
			b.ReportMetric(float64(heapInUse()-before)/float64(len(addons))/1024, "KiB/addon")
			runtime.KeepAlive(addons)
		})
	}
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
