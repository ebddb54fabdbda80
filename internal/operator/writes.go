package operator

import (
	"math"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writes remembers the last write to each resource. A cache that is behind it would have the status computed
// against one that is no longer there: nothing would differ that does, and no event would come to set it right.
type writes struct {
	mu   sync.Mutex
	last map[types.NamespacedName]version
}

// version is a resource as it was after a write.
type version struct {
	uid             types.UID
	resourceVersion string
	at              time.Time
}

func newWrites() *writes { return &writes{last: map[types.NamespacedName]version{}} }

func (w *writes) wrote(o client.Object, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last[client.ObjectKeyFromObject(o)] = version{o.GetUID(), o.GetResourceVersion(), now}
}

// since is how long ago the last write to o was; long ago when none is known.
func (w *writes) since(o client.Object, now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	last, ok := w.last[client.ObjectKeyFromObject(o)]
	if !ok || last.uid != o.GetUID() || now.Before(last.at) {
		return math.MaxInt64
	}
	return now.Sub(last.at)
}

// behind tells whether o was read from before the last write to it.
func (w *writes) behind(o client.Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	last, ok := w.last[client.ObjectKeyFromObject(o)]
	if !ok || last.uid != o.GetUID() {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(o.GetResourceVersion(), last.resourceVersion)
	return err == nil && order < 0
}

// forget drops what is known of a resource that is gone, and answers with the UID it had; empty when nothing
// is known.
func (w *writes) forget(key types.NamespacedName) types.UID {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.last[key]
	delete(w.last, key)
	return last.uid
}
