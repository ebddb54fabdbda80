package operator_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/api/v1alpha1"
)

// told are the events about an addon's content that changed, one line each, as often as they were told.
func (h *house) told(name string) []string {
	h.Helper()
	var list eventsv1.EventList
	h.must(h.List(h.Context(), &list, client.InNamespace(h.namespace)))
	var notes []string
	for i := range list.Items {
		e := &list.Items[i]
		if e.Reason != "ContentChanged" || e.Regarding.Name != name {
			continue
		}
		times := int32(1)
		if e.Series != nil {
			times = e.Series.Count
		}
		for range times {
			notes = append(notes, e.Note)
		}
	}
	return notes
}

// tells waits until so many events were told, and wants these texts in the last.
func (h *house) tells(name string, n int, parts ...string) {
	h.Helper()
	h.eventually(func() string {
		notes := h.told(name)
		if len(notes) != n {
			return fmt.Sprintf("%d events instead of %d: %q", len(notes), n, notes)
		}
		for _, p := range parts {
			if !strings.Contains(strings.Join(notes, "\n"), p) {
				return fmt.Sprintf("no event says %q: %q", p, notes)
			}
		}
		return ""
	})
}

// look has the addon reconciled, and waits until it was.
func (h *house) look(name string, times int) {
	h.Helper()
	for i := range times {
		h.change(name, func(a *v1alpha1.ZaentrumAddon) {
			metav1.SetMetaDataAnnotation(&a.ObjectMeta, "look", fmt.Sprintf("%s-%d", h.clock.now(), i))
		})
	}
}

func (h *house) addonNow(name string) *v1alpha1.ZaentrumAddon {
	h.Helper()
	a := &v1alpha1.ZaentrumAddon{}
	h.must(h.Get(h.Context(), h.key(name), a))
	return a
}

func TestATagThatMovesIsReportedAndNotRolledOut(t *testing.T) {
	h := newHouse(t)
	h.chart("moving", "1.0.0", configMap("moving-a"))
	a := h.addon("moving", "moving", "1.0.0")
	a.Spec.Suspend = true
	got := h.create(a, v1alpha1.PhasePlanned)
	first := got.Status.Plan.Chart.Digest
	if got.Status.Reviewed == nil {
		t.Error("planned while suspended, and not noted as reviewed")
	}

	// Between plan and install: what was planned is installed.
	h.chart("moving", "1.0.0", configMap("moving-b"))
	h.change("moving", func(a *v1alpha1.ZaentrumAddon) { a.Spec.Suspend = false })
	got = h.phase("moving", v1alpha1.PhaseReady)
	if got.Status.LastAppliedChart.Digest != first || !h.exists(&corev1.ConfigMap{}, "moving-a") || h.exists(&corev1.ConfigMap{}, "moving-b") {
		t.Error("content was installed that nobody planned")
	}
	h.says("moving", v1alpha1.PhaseReady, "published again")
	if got = h.addonNow("moving"); !strings.Contains(strings.Join(got.Status.Plan.Warnings, "\n"), first) || !strings.Contains(got.Status.Conditions[0].Message, first) {
		t.Errorf("plan and condition do not name the content: %q, %q", got.Status.Plan.Warnings, got.Status.Conditions[0].Message)
	}
	h.tells("moving", 1, first, "published again", "kept at what was planned", "zae addon upgrade moving --version 1.0.0, or suspend: true")

	// It is told once: not with each look, and not again after a restart.
	h.look("moving", 5)
	h.stop()
	h.start()
	h.look("moving", 5)
	h.chart("witness", "1.0.0", configMap("witness")) // by the time this one is done, those looks are too
	h.create(h.addon("witness", "witness", "1.0.0"), v1alpha1.PhaseReady)
	h.tells("moving", 1)

	// Suspended, the new content is planned; installed, it is applied.
	h.change("moving", func(a *v1alpha1.ZaentrumAddon) { a.Spec.Suspend = true })
	again := h.phase("moving", v1alpha1.PhasePlanned)
	second := again.Status.Plan.Chart.Digest
	if second == first || len(again.Status.Plan.Changes.Added) != 1 {
		t.Errorf("the new content is not planned: %+v", again.Status.Plan)
	}
	if w := strings.Join(again.Status.Plan.Warnings, "\n"); !strings.Contains(w, first) || !strings.Contains(w, second) {
		t.Errorf("the plan does not name the content: %q", w)
	}
	h.change("moving", func(a *v1alpha1.ZaentrumAddon) { a.Spec.Suspend = false })
	h.eventually(func() string {
		if h.exists(&corev1.ConfigMap{}, "moving-a") || !h.exists(&corev1.ConfigMap{}, "moving-b") {
			return "the planned content is not applied"
		}
		return ""
	})

	// It stays reviewed, whatever follows.
	if got = h.phase("moving", v1alpha1.PhaseReady); got.Status.Reviewed == nil || strings.Contains(got.Status.Message, "published again") {
		t.Errorf("reviewed: %v, message: %s", got.Status.Reviewed, got.Status.Message)
	}
	h.chart("moving", "1.0.0", configMap("moving-c"))
	h.look("moving", 1)
	h.says("moving", v1alpha1.PhaseReady, "kept at what was planned")
	if h.exists(&corev1.ConfigMap{}, "moving-c") {
		t.Error("content was rolled out that nobody planned")
	}
	h.tells("moving", 2, second)
}

func TestATagThatMovesIsRolledOutWhereNobodyReadsPlans(t *testing.T) {
	h := newHouse(t)
	h.chart("moving", "1.0.0", configMap("moving-a"))
	got := h.create(h.addon("moving", "moving", "1.0.0"), v1alpha1.PhaseReady)
	first := got.Status.LastAppliedChart.Digest
	if got.Status.Reviewed != nil {
		t.Error("never suspended, and noted as reviewed")
	}
	h.chart("moving", "1.0.0", configMap("moving-b"))
	h.look("moving", 1)
	h.eventually(func() string {
		if h.exists(&corev1.ConfigMap{}, "moving-a") || !h.exists(&corev1.ConfigMap{}, "moving-b") {
			return "the new content is not applied"
		}
		return ""
	})
	h.eventually(func() string {
		if got = h.addonNow("moving"); got.Status.LastAppliedChart.Digest == first {
			return "the status does not name the new content"
		}
		return ""
	})
	h.tells("moving", 1, first, got.Status.LastAppliedChart.Digest, "rolled out")
	h.look("moving", 5)
	h.tells("moving", 1)

	// Planned once while suspended, its content waits from then on.
	h.change("moving", func(a *v1alpha1.ZaentrumAddon) { a.Spec.Suspend = true })
	h.phase("moving", v1alpha1.PhasePlanned)
	h.change("moving", func(a *v1alpha1.ZaentrumAddon) { a.Spec.Suspend = false })
	h.phase("moving", v1alpha1.PhaseReady)
	h.chart("moving", "1.0.0", configMap("moving-c"))
	h.look("moving", 1)
	h.says("moving", v1alpha1.PhaseReady, "kept at what was planned")
	if h.exists(&corev1.ConfigMap{}, "moving-c") {
		t.Error("content was rolled out that nobody planned")
	}
	h.tells("moving", 2)

	// Deleted and created again, it starts anew.
	h.must(h.Delete(t.Context(), h.addonNow("moving")))
	h.eventually(func() string {
		if err := h.Get(t.Context(), h.key("moving"), &v1alpha1.ZaentrumAddon{}); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("still there: %v", err)
		}
		return ""
	})
	h.collect(got.UID, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "moving-b"}}, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "moving"}})
	got = h.create(h.addon("moving", "moving", "1.0.0"), v1alpha1.PhaseReady)
	if got.Status.Reviewed != nil || !h.exists(&corev1.ConfigMap{}, "moving-c") {
		t.Errorf("reviewed: %v", got.Status.Reviewed)
	}
	h.tells("moving", 2)
}

func TestWhatWasPlannedAndIsLostIsNotReplaced(t *testing.T) {
	h := newHouse(t)
	h.chart("moving", "1.0.0", configMap("moving-a"))
	a := h.addon("moving", "moving", "1.0.0")
	a.Spec.Suspend = true
	h.create(a, v1alpha1.PhasePlanned)
	h.change("moving", func(a *v1alpha1.ZaentrumAddon) { a.Spec.Suspend = false })
	h.phase("moving", v1alpha1.PhaseReady)
	h.stop()
	h.chart("moving", "1.0.0", configMap("moving-b"))
	h.cacheDir = t.TempDir() // as with a new pod
	h.start()
	h.says("moving", v1alpha1.PhaseFailed, "not at hand any more")
	if !h.exists(&corev1.ConfigMap{}, "moving-a") || h.exists(&corev1.ConfigMap{}, "moving-b") {
		t.Error("content was rolled out that nobody planned")
	}
	h.change("moving", func(a *v1alpha1.ZaentrumAddon) { a.Spec.Suspend = true })
	if w := strings.Join(h.phase("moving", v1alpha1.PhasePlanned).Status.Plan.Warnings, "\n"); !strings.Contains(w, "this plan is of the new content") {
		t.Errorf("warnings: %q", w)
	}
}

func TestAPlanSaysThatTheContentMovedBeforeItWasInstalled(t *testing.T) {
	h := newHouse(t)
	h.chart("moving", "1.0.0", configMap("moving-a"))
	a := h.addon("moving", "moving", "1.0.0")
	a.Spec.Suspend = true
	first := h.create(a, v1alpha1.PhasePlanned).Status.Plan.Chart.Digest
	h.chart("moving", "1.0.0", configMap("moving-b"))
	h.look("moving", 1)
	says := func() string {
		got := h.addonNow("moving")
		w := strings.Join(got.Status.Plan.Warnings, "\n")
		if got.Status.Plan.Chart.Digest == first || !strings.Contains(w, first) || !strings.Contains(w, got.Status.Plan.Chart.Digest) || !strings.Contains(got.Status.Message, "published again") {
			return fmt.Sprintf("planned is %s, warnings %q, message %s", got.Status.Plan.Chart.Digest, got.Status.Plan.Warnings, got.Status.Message)
		}
		return ""
	}
	h.eventually(says)
	h.tells("moving", 1, first, "this plan is of the new content")
	// The next looks do not drop it.
	h.look("moving", 3)
	h.chart("witness", "1.0.0", configMap("witness"))
	h.create(h.addon("witness", "witness", "1.0.0"), v1alpha1.PhaseReady)
	if problem := says(); problem != "" {
		t.Error(problem)
	}
	h.tells("moving", 1)
}

func TestALinksQueryDoesNotShow(t *testing.T) {
	h := newHouse(t)
	a := h.addon("linked", "", "")
	a.Spec.Chart = v1alpha1.ChartSource{Ref: "https://" + h.slow + "/linked.tgz?token=hunter2"}
	h.must(h.Create(t.Context(), a))
	h.says("linked", "", "waiting for the registry of https://"+h.slow+"/linked.tgz")
	if got := h.addonNow("linked"); strings.Contains(fmt.Sprintf("%+v", got.Status), "hunter2") {
		t.Errorf("the query shows: %+v", got.Status)
	}
}
