package apply

import (
	"context"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"zaentrum.io/zae/internal/manifest"
)

// leftover tells whether an entry is of updates: of whoever created the object, or changed it otherwise than by an
// apply. Such a manager holds what it wrote for ever, and has no way to let go of it. One that applies says itself
// what it holds.
func (e entry) leftover() bool {
	return e.operation == string(metav1.ManagedFieldsOperationUpdate) && e.subresource == ""
}

// shared tells whether fields of ours are held by leftovers too.
func shared(live *unstructured.Unstructured, mine *fieldpath.Set) bool {
	return slices.ContainsFunc(entries(live), func(e entry) bool {
		set, ok := e.set()
		return ok && e.leftover() && !set.Intersection(mine).Empty()
	})
}

// takeOver takes the fields that our applies hold off the leftovers of other managers: what the chart renders no
// longer would stay where somebody who created the object by hand, or restored it, holds it as well. Fields that are
// theirs alone stay theirs. It makes no request when there are none to take.
func (c *Cluster) takeOver(ctx context.Context, u *unstructured.Unstructured) error {
	mine, ok := ownedFields(u, c.FieldManager, u.GetAPIVersion())
	if !ok || !shared(u, mine) {
		return nil
	}
	list, _ := asMap(u.Object["metadata"])["managedFields"].([]any)
	var rest []any
	for i, e := range entries(u) {
		set, ok := e.set()
		if !ok || !e.leftover() {
			rest = append(rest, list[i])
			continue
		}
		if set = set.Difference(mine); set.Empty() {
			continue
		}
		text, err := set.ToJSON()
		if err != nil {
			rest = append(rest, list[i])
			continue
		}
		entry := withFields(asMap(list[i]), text)
		rest = append(rest, entry)
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": rest},
		// Which refuses it when the object is not the one that was read.
		{"op": "replace", "path": "/metadata/resourceVersion", "value": u.GetResourceVersion()},
	})
	if err != nil {
		return err
	}
	id := manifest.Object{Tree: u.Object}.ID()
	err = c.Client.Patch(ctx, u, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(c.FieldManager))
	switch classify(err) {
	case accepted:
		return nil
	case conflict:
		return moved(id)
	default:
		return failed(err, "take over %s", id)
	}
}

// withFields is an entry with other fields.
func withFields(entry map[string]any, fields []byte) map[string]any {
	out := make(map[string]any, len(entry))
	for k, v := range entry {
		out[k] = v
	}
	out["fieldsV1"] = json.RawMessage(fields)
	return out
}
