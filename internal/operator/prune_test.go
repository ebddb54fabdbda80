package operator_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/api/v1alpha1"
)

// maps are ConfigMaps with these names and this in them.
func maps(value string, names ...string) string {
	var out []string
	for _, name := range names {
		out = append(out, configMap(name)+"data: {a: "+value+"}\n")
	}
	return strings.Join(out, "---\n")
}

// What the chart renders no longer stays until all that it renders is there.
func TestNothingIsPrunedBeforeAllIsApplied(t *testing.T) {
	h := newHouse(t)
	h.chart("pr", "1.0.0", maps("one", "pr-a", "pr-b"))
	h.chart("pr", "2.0.0", maps("two", "pr-b", "pr-c"))
	h.create(h.addon("pr", "pr", "1.0.0"), v1alpha1.PhaseReady)
	h.wire.hook(func(r *http.Request) *http.Response {
		if writes(r) && below(r) == "configmaps/pr-c" {
			return status(http.StatusInternalServerError, "InternalError")
		}
		return nil
	})
	h.change("pr", func(a *v1alpha1.ZaentrumAddon) { a.Spec.Chart.Version = "2.0.0" })
	h.says("pr", v1alpha1.PhaseFailed, "ConfigMap/pr-c")
	if !h.exists(&corev1.ConfigMap{}, "pr-a") {
		t.Error("pruned while an object was not applied")
	}
	if got := h.addonNow("pr").Status.LastAppliedChart; got.Version != "1.0.0" {
		t.Errorf("lastAppliedChart is %s", got.Version)
	}
	h.wire.hook(nil)
	h.phase("pr", v1alpha1.PhaseReady)
	if h.exists(&corev1.ConfigMap{}, "pr-a") || !h.exists(&corev1.ConfigMap{}, "pr-c") {
		t.Error("the upgrade was not finished")
	}
}

// What cannot be deleted, because something holds on to it or the cluster forbids it, is reported until it is gone.
func TestWhatCannotBePrunedIsReportedUntilItIsGone(t *testing.T) {
	for name, tc := range map[string]struct {
		hold, release func(h *house)
	}{
		"a finalizer": {
			func(h *house) {
				h.must(h.Patch(h.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "pr-a"}},
					client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.org/hold"]}}`))))
			},
			func(h *house) {
				h.must(h.Patch(h.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "pr-a"}},
					client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
			},
		},
		"a refusal": {
			func(h *house) {
				h.wire.hook(func(r *http.Request) *http.Response {
					if r.Method == http.MethodDelete && below(r) == "configmaps/pr-a" {
						return status(http.StatusForbidden, "Forbidden")
					}
					return nil
				})
			},
			func(h *house) { h.wire.hook(nil) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.chart("pr", "1.0.0", maps("one", "pr-a", "pr-b"))
			h.chart("pr", "2.0.0", maps("two", "pr-b"))
			h.create(h.addon("pr", "pr", "1.0.0"), v1alpha1.PhaseReady)
			tc.hold(h)
			h.change("pr", func(a *v1alpha1.ZaentrumAddon) { a.Spec.Chart.Version = "2.0.0" })
			says := func() string {
				a := h.addonNow("pr")
				if a.Status.ObservedGeneration != a.Generation || !strings.Contains(a.Status.Message, "ConfigMap/pr-a") {
					return fmt.Sprintf("%s at generation %d of %d: %s", a.Status.Phase, a.Status.ObservedGeneration, a.Generation, a.Status.Message)
				}
				return ""
			}
			h.eventually(says)
			h.look("pr", 3)
			h.chart("witness", "1.0.0", configMap("witness"))
			h.create(h.addon("witness", "witness", "1.0.0"), v1alpha1.PhaseReady)
			if problem := says(); problem != "" {
				t.Errorf("not said any more: %s", problem)
			}
			tc.release(h)
			h.eventually(func() string {
				a := h.addonNow("pr")
				if h.exists(&corev1.ConfigMap{}, "pr-a") || a.Status.Phase != v1alpha1.PhaseReady || strings.Contains(a.Status.Message, "pr-a") {
					return fmt.Sprintf("%s: %s", a.Status.Phase, a.Status.Message)
				}
				return ""
			})
		})
	}
}

// Somebody creates an object between the look, which finds nothing, and the write: theirs stays, and that is said.
func TestAnObjectThatAppearsBeforeTheWriteEndsAsAViolation(t *testing.T) {
	h := newHouse(t)
	h.chart("pr", "1.0.0", maps("ours", "pr-a", "pr-b", "pr-c"))
	var appeared atomic.Bool
	h.wire.hook(func(r *http.Request) *http.Response {
		if writes(r) && below(r) == "configmaps/pr-b" && appeared.CompareAndSwap(false, true) {
			theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "pr-b"}, Data: map[string]string{"a": "theirs"}}
			if err := h.Create(r.Context(), theirs); err != nil {
				t.Error(err)
			}
		}
		return nil
	})
	a := h.create(h.addon("pr", "pr", "1.0.0"), v1alpha1.PhaseFailed)
	if v := strings.Join(a.Status.Plan.Violations, "\n"); !strings.Contains(v, "ConfigMap/pr-b") || !appeared.Load() {
		t.Errorf("violations: %q", v)
	}
	now := &corev1.ConfigMap{}
	h.must(h.Get(t.Context(), h.key("pr-b"), now))
	if now.Data["a"] != "theirs" || len(now.ManagedFields) != 1 || len(now.OwnerReferences) > 0 {
		t.Errorf("it was written to: %v", now)
	}
	h.must(h.Delete(t.Context(), now))
	h.look("pr", 1)
	h.phase("pr", v1alpha1.PhaseReady)
}
