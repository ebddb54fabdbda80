package operator_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/operator"
)

// TestWhatDoesNotChangeIsNotWrittenOrToldAgain has addons in every kind of state reconciled again and again, and wants
// no write, not of a status either, and no event.
func TestWhatDoesNotChangeIsNotWrittenOrToldAgain(t *testing.T) {
	c := newCrew(t, apiServer(t))
	c.registry.Push(filepath.Join("..", "..", "examples", "refused", "violation"))
	h := c.house(t)
	l := c.operate(h, rest.CopyConfig(c.config), false, operator.Options{Namespaces: []string{h.namespace}})

	states := map[string]v1alpha1.Phase{}
	add := func(a *v1alpha1.ZaentrumAddon, suspend bool, phase v1alpha1.Phase) {
		t.Helper()
		a.Spec.Suspend = suspend
		h.must(h.Create(t.Context(), a))
		states[a.Name] = phase
		h.phase(a.Name, phase)
	}
	add(h.addon("planned", "tiny", "0.1.0"), true, v1alpha1.PhasePlanned)
	add(h.addon("refused", "violation", "1.0.0"), true, v1alpha1.PhasePlanFailed)
	add(h.addon("refused-too", "violation", "1.0.0"), false, v1alpha1.PhaseFailed)
	add(h.addon("without-values", "example", "1.2.0"), false, v1alpha1.PhaseFailed)
	add(h.addon("nowhere", "tiny", "9.9.9"), false, v1alpha1.PhaseFailed)
	add(h.addon("a-name-that-is-longer-than-the-forty-characters", "tiny", "0.1.0"), true, v1alpha1.PhaseFailed)
	add(h.example(), false, v1alpha1.PhaseInstalling)
	h.rollout("example", 1, 1)
	h.stall("example-worker")
	states["example"] = v1alpha1.PhaseDegraded
	h.phase("example", v1alpha1.PhaseDegraded)
	l.quiet(states)

	h.must(h.Delete(t.Context(), h.platform("platform")))
	for name := range states {
		states[name] = v1alpha1.PhaseFailed
		h.says(name, v1alpha1.PhaseFailed, "")
	}
	l.quiet(states)
}

// quiet has every addon reconciled again and again, and wants nothing of it to show.
func (l *limited) quiet(states map[string]v1alpha1.Phase) {
	l.Helper()
	l.lookAll(states, 3) // until nothing is left to be done
	before, told := l.writes(), l.events()
	l.lookAll(states, 5)
	if after := l.writes(); len(after) > len(before) {
		l.Errorf("reconciles in which nothing changed wrote: %q", after[len(before):])
	}
	if now := l.events(); !slices.Equal(now, told) {
		l.Errorf("events before: %q\nand after: %q", told, now)
	}
}

// stall plays a rollout that does not come to an end.
func (h *house) stall(name string) {
	h.Helper()
	d := &appsv1.Deployment{}
	h.must(h.Get(h.Context(), h.key(name), d))
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: *d.Spec.Replicas, UpdatedReplicas: *d.Spec.Replicas, UnavailableReplicas: *d.Spec.Replicas,
		Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded"}},
	}
	h.must(h.Status().Update(h.Context(), d))
}

// lookAll has every addon reconciled so many times, and wants each in its state then.
func (h *house) lookAll(states map[string]v1alpha1.Phase, times int) {
	h.Helper()
	for i := range times {
		done := reconciled(h.T)
		for name := range states {
			h.change(name, func(a *v1alpha1.ZaentrumAddon) {
				metav1.SetMetaDataAnnotation(&a.ObjectMeta, "example.org/look", fmt.Sprint(h.clock.now().UnixNano(), i))
			})
		}
		h.eventually(func() string {
			if n := reconciled(h.T) - done; n < len(states) {
				return fmt.Sprintf("%d reconciles of %d", n, len(states))
			}
			return ""
		})
	}
	for name, phase := range states {
		h.phase(name, phase)
	}
}

// reconciled is how often addons were reconciled in this process.
func reconciled(t *testing.T) int {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	total := 0.0
	for _, f := range families {
		if f.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "controller" && label.GetValue() == "addon" {
					total += m.GetCounter().GetValue()
				}
			}
		}
	}
	return int(total)
}

// writes are the requests so far that were to change something.
func (l *limited) writes() []string {
	requests, _ := l.requests.all()
	return slices.DeleteFunc(requests, func(asked string) bool {
		return strings.HasPrefix(asked, "GET ") || strings.Contains(asked, "dryRun=") || strings.Contains(asked, "/leases")
	})
}

// events are the namespace's events on addons, with how often each was told.
func (h *house) events() []string {
	h.Helper()
	var list eventsv1.EventList
	h.must(h.List(h.Context(), &list, client.InNamespace(h.namespace)))
	var out []string
	for i := range list.Items {
		e := &list.Items[i]
		n := int32(1)
		if e.Series != nil {
			n = e.Series.Count
		}
		out = append(out, fmt.Sprintf("%s: %s (%d)", e.Regarding.Name, e.Reason, n))
	}
	slices.Sort(out)
	return out
}
