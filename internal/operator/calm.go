package operator

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/engine"
)

// calm keeps charts that render otherwise each time from being applied again and again: each apply wakes the
// next reconcile, which would render something new. What such a chart rendered stays for a resync, unless the
// resource, the chart or a value changes. The zero value has seen nothing yet.
type calm struct {
	mu   sync.Mutex
	last map[types.NamespacedName]applied
}

// applied is what was applied, and when.
type applied struct {
	of appliedOf
	at time.Time
}

type appliedOf struct {
	uid        types.UID
	generation int64
	digest     string
	checksum   string
}

func appliedNow(a *v1alpha1.ZaentrumAddon, c *engine.Checked) appliedOf {
	return appliedOf{a.UID, a.Generation, c.Chart.Facts.Digest, c.Checksum}
}

// wrote notes what a chart that varies had written.
func (k *calm) wrote(a *v1alpha1.ZaentrumAddon, c *engine.Converged, now time.Time) {
	if !c.Varies || !c.Applied || len(c.Report.Applied)+len(c.Pruned) == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.last == nil {
		k.last = map[types.NamespacedName]applied{}
	}
	k.last[client.ObjectKeyFromObject(a)] = applied{appliedNow(a, c.Checked), now}
}

// keep tells whether what a chart that varies rendered last is to stay.
func (k *calm) keep(a *v1alpha1.ZaentrumAddon, c *engine.Checked, now time.Time, resync time.Duration) bool {
	if !c.Varies {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	last, ok := k.last[client.ObjectKeyFromObject(a)]
	// A resync comes a fifth early, at most.
	return ok && last.of == appliedNow(a, c) && now.Sub(last.at) < resync*3/4
}

func (k *calm) forget(key types.NamespacedName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.last, key)
}
