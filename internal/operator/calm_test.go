package operator_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"zaentrum.io/zae/api/v1alpha1"
)

const randomMap = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: random\ndata:\n  x: {{ randAlphaNum 12 }}\n"

// A chart that renders otherwise each time is not applied again each time that it was applied.
func TestAChartThatVariesIsAppliedOncePerResync(t *testing.T) {
	h := newHouse(t)
	h.chart("random", "1.0.0", randomMap)
	a := h.create(h.addon("random", "random", "1.0.0"), v1alpha1.PhaseReady)
	if w := strings.Join(a.Status.Plan.Warnings, "\n"); !strings.Contains(w, "ConfigMap/random data.x") {
		t.Errorf("no warning: %s", w)
	}
	value := func() string {
		var c corev1.ConfigMap
		h.must(h.Get(h.Context(), h.key("random"), &c))
		return c.Data["x"]
	}
	first := value()
	h.look("random", 20)
	time.Sleep(time.Second)
	if now := value(); now != first {
		t.Error("it was applied again at once")
	}
	// After a resync, and with each change, it is rendered anew.
	h.clock.step(5 * time.Minute)
	h.look("random", 1)
	h.eventually(func() string {
		if value() == first {
			return "it was not applied again after a resync"
		}
		return ""
	})
	second := value()
	h.change("random", func(a *v1alpha1.ZaentrumAddon) { a.Spec.Values = rawValues(`{"other":1}`) })
	h.eventually(func() string {
		if value() == second {
			return "it was not applied again with other values"
		}
		return ""
	})
}
