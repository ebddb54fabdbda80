package apply

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/manifest"
)

// Glance is what the owner has as the cache holds it, in apply order: a look that costs next to nothing and asks
// the cluster nothing. The objects are shared with the cache and must not be changed. It is not current, and ok is
// false, while the cache has not seen all that was written for the owner.
func (c *Cluster) Glance(ctx context.Context, o Owner) (owned manifest.Set, ok bool, err error) {
	if c.recent.pending(o.UID) {
		return nil, false, nil
	}
	for _, gvk := range c.Kinds {
		items, err := c.list(ctx, o, gvk, client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, false, err
		}
		for i := range items {
			u := &items[i]
			if u.GetKind() == "" { // which is not for us to set in what is shared
				u = &unstructured.Unstructured{Object: withKind(u.Object, gvk)}
			}
			if !c.reserved(u.GetName()) && controlledBy(u, o.UID) {
				owned = append(owned, manifest.Object{Tree: u.Object})
			}
		}
	}
	return owned.InApplyOrder(), true, nil
}

// list are the objects of a kind that carry the owner's label; none where the cluster does not serve the kind.
func (c *Cluster) list(ctx context.Context, o Owner, gvk schema.GroupVersionKind, opts ...client.ListOption) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	opts = append(opts, client.InNamespace(o.Namespace))
	if c.OwnerIndex != "" {
		opts = append(opts, client.MatchingFields{c.OwnerIndex: o.Name})
	} else {
		opts = append(opts, client.MatchingLabels{c.OwnerLabel: o.Name})
	}
	err := c.Cache.List(ctx, list, opts...)
	switch {
	case meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, failed(err, "list %s objects", gvk.Kind)
	}
	return list.Items, nil
}

// withKind is the top of a tree with its kind, over the same parts.
func withKind(tree map[string]any, gvk schema.GroupVersionKind) map[string]any {
	out := make(map[string]any, len(tree)+2)
	for k, v := range tree {
		out[k] = v
	}
	out["apiVersion"], out["kind"] = gvk.ToAPIVersionAndKind()
	return out
}

// Print is a record of an owner's objects, by which a later look tells whether an apply would find them as they
// were. It holds hashes and versions, no object.
type Print map[manifest.ID]mark

type mark struct {
	version string // uid/resourceVersion
	sum     [sha256.Size]byte
}

// NewPrint records objects.
func (c *Cluster) NewPrint(owned manifest.Set) Print {
	p := make(Print, len(owned))
	for _, o := range owned {
		u := o.Unstructured()
		p[o.ID()] = mark{versionOf(u), c.sum(u)}
	}
	return p
}

// Holds tells whether the objects are those recorded, and an apply would find in each what it found then: another
// status, and fields that others added, change nothing. With exact, nothing at all may have changed.
func (p Print) Holds(c *Cluster, owned manifest.Set, exact bool) bool {
	if len(owned) != len(p) {
		return false
	}
	for _, o := range owned {
		id, u := o.ID(), o.Unstructured()
		was, known := p[id]
		if !known {
			return false
		}
		version := versionOf(u)
		if was.version == version {
			continue
		}
		if exact || c.sum(u) != was.sum {
			return false
		}
		p[id] = mark{version, was.sum} // the next look is as cheap as this one was not
	}
	return true
}

func versionOf(u *unstructured.Unstructured) string {
	return string(u.GetUID()) + "/" + u.GetResourceVersion()
}

// sum is a hash of all that decides what an apply does to a live object: who it is and whom it belongs to, what
// was applied last, the fields that are still held, and a Secret's data (see same).
func (c *Cluster) sum(u *unstructured.Unstructured) [sha256.Size]byte {
	said := struct {
		UID, Label, Mark string
		Prune            []string
		Leaving          bool
		Owners           []metav1.OwnerReference
		Held             [][]string
		Data             any
	}{
		UID: string(u.GetUID()), Label: u.GetLabels()[c.OwnerLabel], Mark: u.GetAnnotations()[v1alpha1.AnnotationApplied],
		Leaving: u.GetDeletionTimestamp() != nil, Owners: u.GetOwnerReferences(),
	}
	labels := u.GetLabels()
	for _, key := range slices.Sorted(maps.Keys(c.PruneLabels)) {
		said.Prune = append(said.Prune, labels[key])
	}
	for _, e := range entries(u) {
		if e.manager == c.FieldManager {
			said.Held = append(said.Held, []string{e.operation, e.apiVersion, e.subresource, e.fields})
		}
	}
	if isSecret(u.Object) {
		said.Data = digests(u.Object)
	}
	text, err := json.Marshal(said) // maps are written in key order
	if err != nil {
		return sha256.Sum256([]byte(versionOf(u)))
	}
	return sha256.Sum256(text)
}
