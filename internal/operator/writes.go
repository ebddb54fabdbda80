package operator

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writes remembers the resource version of the last write to each resource. A cache that is behind it
// would have the status computed against one that is no longer there: nothing would differ that does, and
// no event would come to set it right.
type writes struct {
	mu   sync.Mutex
	last map[types.UID]string
}

func newWrites() *writes { return &writes{last: map[types.UID]string{}} }

func (w *writes) wrote(o client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last[o.GetUID()] = o.GetResourceVersion()
}

// behind tells whether o was read from before the last write to it.
func (w *writes) behind(o client.Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	last, ok := w.last[o.GetUID()]
	if !ok {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(o.GetResourceVersion(), last)
	return err == nil && order < 0
}

func (w *writes) forget(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.last, uid)
}
