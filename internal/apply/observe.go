package apply

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/internal/manifest"
)

// Observation is what an owner has, and what stands in the way of what it wants. It is a snapshot: the writes
// made from it carry preconditions.
type Observation struct {
	// Owned are the live objects that the owner controls, with its label or wanted, in apply order.
	Owned manifest.Set
	// Taken are wanted objects that exist and that the owner does not control.
	Taken []manifest.ID
	// Leaving are those of Taken that are on their way out: being deleted, or controlled by an owner of the
	// same name that is no more, and so about to be collected.
	Leaving []manifest.ID
	// Terminating are those of Owned that are being deleted.
	Terminating []manifest.ID
	// Asked tells that the cache did not hold everything that is wanted, and the cluster was asked.
	Asked bool
}

// live is the owned object with this identity.
func (o *Observation) live(id manifest.ID) (*unstructured.Unstructured, bool) {
	obj, ok := o.Owned.Find(id)
	if !ok {
		return nil, false
	}
	return obj.Unstructured(), true
}

// Observe reads what the owner has from the cache, and asks the API server only about wanted objects that are
// not there. Of an object that the owner does not control it reads the metadata only. Wanted objects of other
// kinds than Kinds, of kinds that the cluster does not serve, and with names that no object can have, do not
// exist.
func (c *Cluster) Observe(ctx context.Context, o Owner, wanted []manifest.ID) (*Observation, error) {
	obs := &Observation{}
	seen, listed := map[manifest.ID]bool{}, map[manifest.ID]bool{}
	for _, gvk := range c.Kinds {
		items, err := c.list(ctx, o, gvk)
		if err != nil {
			return nil, err
		}
		for i := range items {
			items[i].SetGroupVersionKind(gvk) // lists may leave it out of their items
			id := manifest.Object{Tree: items[i].Object}.ID()
			listed[id] = true
			u := c.newest(o, id, &items[i])
			if u == nil || c.reserved(id.Name) {
				continue
			}
			if controlledBy(u, o.UID) {
				seen[id] = true
				obs.own(u)
			} else if slices.Contains(wanted, id) {
				seen[id] = true
				obs.take(id, u, o)
			}
		}
	}
	c.recent.settle(o.UID, listed)
	for _, id := range wanted {
		if seen[id] {
			continue
		}
		seen[id] = true
		obs.Asked = true
		if err := c.ask(ctx, o, id, obs); err != nil {
			return nil, err
		}
	}
	obs.sort()
	return obs, nil
}

// newest is the object from the cache, or as we wrote it when the cache has not seen that yet; nil when we
// deleted it.
func (c *Cluster) newest(o Owner, id manifest.ID, cached *unstructured.Unstructured) *unstructured.Unstructured {
	w, ok := c.recent.get(o.UID, id)
	switch {
	case !ok:
		return cached
	case w.object == nil && w.gone == cached.GetUID() && cached.GetDeletionTimestamp() == nil:
		return nil // the cache has not seen it go; one that something holds on to is seen going
	case w.object != nil && older(cached, w.object):
		return w.object.DeepCopy()
	}
	c.recent.forget(o.UID, id)
	return cached
}

func older(a, b metav1.Object) bool {
	n, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && n < 0
}

func (c *Cluster) reserved(name string) bool {
	return c.ReservedPrefix != "" && strings.HasPrefix(name, c.ReservedPrefix)
}

// ask looks for a wanted object that the cache does not have: it does not exist, it belongs to somebody else,
// its label was taken off, or the cache has not seen it yet.
func (c *Cluster) ask(ctx context.Context, o Owner, id manifest.ID, obs *Observation) error {
	gvk := id.GVK()
	if !c.serves(gvk) || id.Name == "" || len(content.IsPathSegmentName(id.Name)) > 0 {
		return nil
	}
	key := client.ObjectKey{Namespace: o.Namespace, Name: id.Name}
	head := &metav1.PartialObjectMetadata{}
	head.SetGroupVersionKind(gvk)
	err := c.Live.Get(ctx, key, head)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		c.recent.forget(o.UID, id)
		return nil
	}
	if err != nil {
		return failed(err, "look for %s", id)
	}
	if !controlledBy(head, o.UID) {
		obs.take(id, head, o)
		return nil
	}
	if w, ok := c.recent.get(o.UID, id); ok && w.object != nil && w.object.GetResourceVersion() == head.ResourceVersion {
		obs.own(w.object.DeepCopy())
		return nil
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	err = c.Live.Get(ctx, key, u)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return failed(err, "read %s", id)
	}
	if controlledBy(u, o.UID) {
		obs.own(u)
	} else {
		obs.take(id, u, o)
	}
	return nil
}

func (o *Observation) own(u *unstructured.Unstructured) {
	obj := manifest.Object{Tree: u.Object}
	o.Owned = append(o.Owned, obj)
	if u.GetDeletionTimestamp() != nil {
		o.Terminating = append(o.Terminating, obj.ID())
	}
}

func (o *Observation) take(id manifest.ID, m metav1.Object, owner Owner) {
	o.Taken = append(o.Taken, id)
	ref := metav1.GetControllerOf(m)
	former := ref != nil && ref.APIVersion == owner.APIVersion && ref.Kind == owner.Kind && ref.Name == owner.Name
	if m.GetDeletionTimestamp() != nil || former {
		o.Leaving = append(o.Leaving, id)
	}
}

func (o *Observation) sort() {
	o.Owned = o.Owned.InApplyOrder()
	for _, ids := range [][]manifest.ID{o.Taken, o.Leaving, o.Terminating} {
		slices.SortFunc(ids, manifest.CompareIDs)
	}
}

func controlledBy(m metav1.Object, uid types.UID) bool {
	ref := metav1.GetControllerOf(m)
	return ref != nil && ref.UID == uid && uid != ""
}
