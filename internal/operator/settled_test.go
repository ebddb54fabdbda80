package operator_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/engine"
	"zaentrum.io/zae/internal/worker"
)

// counting is a worker and a fetcher that count what they are asked for.
type counting struct {
	engine.Worker
	engine.Fetcher
	renders, fetches atomic.Int64
	// failing is the name of an addon at which rendering panics, with the canary; nil for none.
	failing atomic.Pointer[string]
}

func (c *counting) Render(ctx context.Context, a *chart.Archive, j worker.Job) (*worker.Result, error) {
	c.renders.Add(1)
	if name := c.failing.Load(); name != nil && *name == j.Name {
		panic("cannot render " + canary)
	}
	return c.Worker.Render(ctx, a, j)
}

func (c *counting) Fetch(ctx context.Context, src v1alpha1.ChartSource) (*chart.Archive, error) {
	c.fetches.Add(1)
	return c.Fetcher.Fetch(ctx, src)
}

// quiet waits until the addon, which has this Deployment, is reconciled without being rendered: until it is settled.
// It answers with how often it was rendered until then.
func (h *house) quiet(deployment string) int64 {
	h.Helper()
	renders, fetches := h.counting.renders.Load(), h.counting.fetches.Load()
	h.eventually(func() string {
		// A reconcile that renders fetches three times at most before it does.
		if h.counting.fetches.Load() > fetches+3 && h.counting.renders.Load() == renders {
			return ""
		}
		if n := h.counting.renders.Load(); n != renders {
			renders, fetches = n, h.counting.fetches.Load()
		}
		h.touch(deployment)
		return "is rendered again and again"
	})
	return renders
}

// touch changes what nobody renders or plans, and has the addon looked at.
func (h *house) touch(deployment string) {
	h.Helper()
	d := &appsv1.Deployment{}
	h.must(h.Get(h.Context(), h.key(deployment), d))
	before := d.DeepCopy()
	if d.Annotations == nil {
		d.Annotations = map[string]string{}
	}
	d.Annotations["example.org/theirs"] = fmt.Sprint(time.Now().UnixNano())
	h.must(h.Patch(h.Context(), d, client.MergeFrom(before)))
}

// TestAStatusOfADeploymentIsToldWithoutARender has an addon run, and counts what is rendered while only that
// changes which is not rendered.
func TestAStatusOfADeploymentIsToldWithoutARender(t *testing.T) {
	h := newHouse(t)
	h.create(h.example(), v1alpha1.PhaseInstalling)
	before := h.quiet("example")

	h.rollout("example", 1, 1)
	h.rollout("example-worker", 2, 2)
	h.phase("example", v1alpha1.PhaseReady)
	h.rollout("example-worker", 2, 1)
	a := h.phase("example", v1alpha1.PhaseDegraded)
	if len(a.Status.Components) != 2 || a.Status.Components[1].Ready != 1 || a.Status.Plan == nil || len(a.Status.Plan.Objects) == 0 {
		t.Errorf("status: %+v", a.Status)
	}
	h.rollout("example-worker", 2, 2)
	h.phase("example", v1alpha1.PhaseReady)
	if n := h.counting.renders.Load() - before; n > 0 {
		t.Errorf("rendered %d times, though nothing changed that is rendered", n)
	}
}

// TestWhatIsSettledIsRenderedWhenAnythingItIsMadeFromChanges changes one thing after the other.
func TestWhatIsSettledIsRenderedWhenAnythingItIsMadeFromChanges(t *testing.T) {
	h := newHouse(t)
	h.create(h.example(), v1alpha1.PhaseInstalling)
	for _, tc := range []struct {
		what   string
		change func()
	}{
		{"the resource", func() {
			h.change("example", func(a *v1alpha1.ZaentrumAddon) { a.Spec.Values.Raw = []byte(`{"worker":{"replicas":3}}`) })
		}},
		{"the platform", func() {
			p := &v1alpha1.Zaentrum{}
			h.must(h.Get(t.Context(), h.key("platform"), p))
			before := p.DeepCopy()
			p.Spec.Hostname = "other.example.org"
			h.must(h.Patch(t.Context(), p, client.MergeFrom(before)))
		}},
		{"a values Secret", func() {
			s := &corev1.Secret{}
			h.must(h.Get(t.Context(), h.key("zaentrum-addon-example-values-a"), s))
			before := s.DeepCopy()
			s.Data["database.url"] = []byte(canary + "-2")
			h.must(h.Patch(t.Context(), s, client.MergeFrom(before)))
		}},
		{"a hand edit", func() {
			d := &appsv1.Deployment{}
			h.must(h.Get(t.Context(), h.key("example-worker"), d))
			before := d.DeepCopy()
			d.Spec.Template.Spec.Containers[0].Image = "example.org/other"
			h.must(h.Patch(t.Context(), d, client.MergeFrom(before)))
		}},
		{"a lost object", func() {
			h.must(h.Delete(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "example"}}))
		}},
	} {
		before := h.quiet("example")
		tc.change()
		h.eventually(func() string {
			if h.counting.renders.Load() == before {
				return tc.what + " changed, and nothing is rendered"
			}
			return ""
		})
	}
	h.quiet("example")
	if !h.exists(&corev1.Service{}, "example") {
		t.Error("the lost object is not there")
	}
	d := &appsv1.Deployment{}
	h.must(h.Get(t.Context(), h.key("example-worker"), d))
	if got := d.Spec.Template.Spec.Containers[0].Image; got == "example.org/other" || *d.Spec.Replicas != 3 {
		t.Errorf("image %s, replicas %d", got, *d.Spec.Replicas)
	}
}
