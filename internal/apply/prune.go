package apply

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/manifest"
)

// Prune deletes what the owner has and does not want any more, in reverse apply order, and returns what it
// deleted. It deletes only objects of Kinds that carry the OwnerLabel and the PruneLabels and that this very
// owner controls, as they were when that was checked. Call it after an Apply that is Complete.
func (c *Cluster) Prune(ctx context.Context, o Owner, wanted []manifest.ID, obs *Observation) ([]manifest.ID, error) {
	var pruned []manifest.ID
	for _, obj := range slices.Backward(obs.Owned) {
		id := obj.ID()
		if slices.Contains(wanted, id) {
			continue
		}
		deleted, err := c.pruneOne(ctx, o, id, obj.Unstructured())
		if err != nil {
			return pruned, err
		}
		if deleted {
			pruned = append(pruned, id)
		}
	}
	return pruned, nil
}

// pruneTries bounds how often an object that keeps changing is looked at anew.
const pruneTries = 5

func (c *Cluster) pruneOne(ctx context.Context, o Owner, id manifest.ID, u *unstructured.Unstructured) (bool, error) {
	for try := 1; ; try++ {
		if !c.prunable(o, id, u) {
			return false, nil
		}
		err := c.remove(ctx, o, id, u, true)
		if err == nil {
			return true, nil
		}
		if fault.CodeOf(err) != fault.Conflict || try == pruneTries {
			return false, err
		}
		// Its status moved, or its marks did: look again.
		head := &metav1.PartialObjectMetadata{}
		head.SetGroupVersionKind(id.GVK())
		err = c.Live.Get(ctx, client.ObjectKeyFromObject(u), head)
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if err != nil {
			return false, failed(err, "look for %s", id)
		}
		next := &unstructured.Unstructured{}
		next.SetGroupVersionKind(id.GVK())
		next.SetNamespace(head.Namespace)
		next.SetName(head.Name)
		next.SetUID(head.UID)
		next.SetResourceVersion(head.ResourceVersion)
		next.SetLabels(head.Labels)
		next.SetOwnerReferences(head.OwnerReferences)
		next.SetDeletionTimestamp(head.DeletionTimestamp)
		u = next
	}
}

func (c *Cluster) prunable(o Owner, id manifest.ID, u *unstructured.Unstructured) bool {
	labels := u.GetLabels()
	for k, v := range c.PruneLabels {
		if labels[k] != v {
			return false
		}
	}
	return labels[c.OwnerLabel] == o.Name &&
		controlledBy(u, o.UID) &&
		c.serves(id.GVK()) &&
		!c.reserved(id.Name) &&
		u.GetDeletionTimestamp() == nil
}
