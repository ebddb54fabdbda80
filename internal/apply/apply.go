// Package apply makes the cluster hold what was rendered: it observes what an owner has, rehearses in dry runs,
// applies with server-side apply, prunes, runs Jobs again when they change, and reads the health of what runs.
//
// It is the only writer of such objects. It never overwrites an object that its owner does not control,
// never waits (a watch on the owned objects wakes the caller), and never repeats a text of the API server,
// which quotes values. It knows objects, not addons: labels, kinds, owner and field manager are parameters.
package apply

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/internal/manifest"
)

// Owner is the resource that controls the objects, and whose deletion deletes them.
type Owner struct {
	APIVersion string
	Kind       string
	Namespace  string // of the owner and of everything it owns
	Name       string
	UID        types.UID
}

// Cluster reads and writes the objects of owners. It may be used by several goroutines, but one owner's
// calls must not overlap. It must not be copied.
type Cluster struct {
	// Cache answers lists of unstructured objects by OwnerLabel, as they are or compacted (Compact). It
	// must hold every object of Kinds that has the OwnerLabel; it may lag behind.
	Cache client.Reader
	// Live reads from the API server.
	Live client.Reader
	// Client writes.
	Client client.Client
	// FieldManager is the server-side apply field manager.
	FieldManager string
	// Kinds are the namespaced kinds that owners may have. Objects of other kinds are never read or written.
	Kinds []schema.GroupVersionKind
	// OwnerLabel is the key of the label that names the owner on each object.
	OwnerLabel string
	// OwnerIndex is the field under which Cache finds objects by the value of their OwnerLabel;
	// empty has it look through all labels.
	OwnerIndex string
	// PruneLabels are what an object must carry, besides the OwnerLabel, to be pruned.
	PruneLabels map[string]string
	// ReservedPrefix starts the names of objects that carry the OwnerLabel but are managed by others: they are
	// not observed and not pruned. Empty for none.
	ReservedPrefix string
	// Alive asks the API server whether an owner is still there and not being deleted. It is asked before a Job is
	// created: one that was collected with its owner would run again, for one that is gone. Nil: every owner is.
	Alive func(context.Context, Owner) (bool, error)
	// OwnPods are the pods of an owner as SlimPod leaves them, from a cache; none when they may not be seen. May be nil.
	OwnPods func(namespace, owner string) []*corev1.Pod
	// Types knows the fields of kinds; nil knows Kubernetes' own. A kind it does not know is applied every time.
	Types managedfields.TypeConverter

	recent    recent
	rehearsed rehearsals
	beside    settled
}

// serves tells whether the cluster deals with objects of this kind.
func (c *Cluster) serves(gvk schema.GroupVersionKind) bool {
	for _, k := range c.Kinds {
		if k == gvk {
			return true
		}
	}
	return false
}

// Forget drops what is remembered about an owner. Call it when the owner is gone.
func (c *Cluster) Forget(uid types.UID) {
	c.recent.drop(uid)
	c.rehearsed.drop(uid)
	c.beside.drop(uid)
}

// recent remembers what was written until the cache has seen it, so that a lagging cache makes no second
// write. The zero value is empty.
type recent struct {
	mu     sync.Mutex
	writes map[types.UID]map[manifest.ID]write // by owner
}

// write is an object as it was after a write, or the UID of one that was deleted.
type write struct {
	object *unstructured.Unstructured
	gone   types.UID
}

func (r *recent) put(owner types.UID, id manifest.ID, w write) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.writes == nil {
		r.writes = map[types.UID]map[manifest.ID]write{}
	}
	if r.writes[owner] == nil {
		r.writes[owner] = map[manifest.ID]write{}
	}
	r.writes[owner][id] = w
}

func (r *recent) get(owner types.UID, id manifest.ID) (write, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, ok := r.writes[owner][id]
	return w, ok
}

func (r *recent) forget(owner types.UID, id manifest.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.writes[owner], id)
	if len(r.writes[owner]) == 0 {
		delete(r.writes, owner)
	}
}

// pending tells whether the cache may not have seen everything that was written for the owner.
func (r *recent) pending(owner types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.writes[owner]) > 0
}

// settle forgets deleted objects that the cache does not list any more.
func (r *recent) settle(owner types.UID, listed map[manifest.ID]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, w := range r.writes[owner] {
		if w.object == nil && !listed[id] {
			delete(r.writes[owner], id)
		}
	}
	if len(r.writes[owner]) == 0 {
		delete(r.writes, owner)
	}
}

func (r *recent) drop(owner types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.writes, owner)
}
