package apply

import (
	"context"
	"crypto/sha256"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/internal/manifest"
)

// othersPerPage is how many objects of others one request reads.
const othersPerPage = 250

// Others reads the objects of these kinds in the owner's namespace that the owner does not control and that are
// not on their way out. Those of other owners, which may be many, come from the cache and must not be changed; the API
// server is asked, each time, for those without the OwnerLabel.
func (c *Cluster) Others(ctx context.Context, o Owner, kinds ...schema.GroupVersionKind) (manifest.Set, error) {
	var out manifest.Set
	take := func(gvk schema.GroupVersionKind, items []unstructured.Unstructured) {
		for i := range items {
			u := &items[i]
			if controlledBy(u, o.UID) || u.GetDeletionTimestamp() != nil {
				continue
			}
			if u.GetKind() == "" { // lists may leave it out of their items
				u.SetGroupVersionKind(gvk)
			}
			out = append(out, manifest.Object{Tree: u.Object})
		}
	}
	for _, gvk := range kinds {
		listed := gvk.GroupVersion().WithKind(gvk.Kind + "List")
		asked := []client.ListOption{client.InNamespace(o.Namespace), client.Limit(othersPerPage)}
		if c.serves(gvk) {
			labelled, err := labels.NewRequirement(c.OwnerLabel, selection.Exists, nil)
			if err != nil {
				return nil, err
			}
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(listed)
			err = c.Cache.List(ctx, list, client.InNamespace(o.Namespace), client.UnsafeDisableDeepCopy,
				client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*labelled)})
			if err != nil {
				return nil, failed(err, "list %s objects", gvk.Kind)
			}
			take(gvk, list.Items)
			asked = append(asked, c.unowned())
		}
		for next := ""; ; {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(listed)
			err := c.Live.List(ctx, list, append(asked, client.Continue(next))...)
			if meta.IsNoMatchError(err) {
				break
			}
			if err != nil {
				return nil, failed(err, "list %s objects", gvk.Kind)
			}
			take(gvk, list.Items)
			if next = list.GetContinue(); next == "" {
				break
			}
		}
	}
	return out.InApplyOrder(), nil
}

// unowned selects what lacks the OwnerLabel.
func (c *Cluster) unowned() client.ListOption {
	lacking, err := labels.NewRequirement(c.OwnerLabel, selection.DoesNotExist, nil)
	if err != nil { // only for a label that could name no owner either
		return client.MatchingLabelsSelector{Selector: labels.Everything()}
	}
	return client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*lacking)}
}

// Pod is what is known of a pod.
type Pod struct {
	Name   string
	Labels map[string]string
	// Owner is whose the pod is: its controller, and of a Deployment's pod the Deployment. Nothing for one that
	// nobody controls.
	Owner manifest.ID
}

// Pods reads the metadata of the pods in the owner's namespace that have not ended and are not on their way out, but for
// those with the OwnerLabel, whose Deployments and Jobs stand for them; in the order of their names. It asks the API
// server, each time.
func (c *Cluster) Pods(ctx context.Context, o Owner) ([]Pod, error) {
	var out []Pod
	for next := ""; ; {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "PodList"})
		err := c.Live.List(ctx, list, client.InNamespace(o.Namespace), c.unowned(), unended, client.Limit(othersPerPage), client.Continue(next))
		if err != nil {
			return nil, failed(err, "list pods")
		}
		for i := range list.Items {
			if pod := &list.Items[i]; pod.DeletionTimestamp == nil {
				out = append(out, Pod{Name: pod.Name, Labels: pod.Labels, Owner: ownerOfPod(pod)})
			}
		}
		if next = list.GetContinue(); next == "" {
			return out, nil
		}
	}
}

// unended leaves out what keeps no labels busy any more.
var unended = client.MatchingFieldsSelector{Selector: fields.AndSelectors(
	fields.OneTermNotEqualSelector("status.phase", "Succeeded"), fields.OneTermNotEqualSelector("status.phase", "Failed"),
)}

// ownerOfPod tells a Deployment by the name of its ReplicaSet, which ends in the hash that the pod has as a label. So
// nothing needs to be known of ReplicaSets.
func ownerOfPod(pod metav1.Object) manifest.ID {
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil {
		return manifest.ID{}
	}
	id := manifest.ID{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name}
	if hash := pod.GetLabels()["pod-template-hash"]; id.Kind == "ReplicaSet" && hash != "" {
		if name, ok := strings.CutSuffix(id.Name, "-"+hash); ok {
			id.Kind, id.Name = "Deployment", name
		}
	}
	return id
}

// settled remembers, for each owner, what was found to be fine beside the objects of others: a hash, no object.
// The zero value remembers nothing.
type settled struct {
	mu   sync.Mutex
	kept map[types.UID][sha256.Size]byte
}

// Settle remembers that this is fine beside the objects of others, in place of what was before.
func (c *Cluster) Settle(owner types.UID, what []byte) {
	c.beside.mu.Lock()
	defer c.beside.mu.Unlock()
	if c.beside.kept == nil {
		c.beside.kept = map[types.UID][sha256.Size]byte{}
	}
	c.beside.kept[owner] = sha256.Sum256(what)
}

// Settled tells whether this was settled last.
func (c *Cluster) Settled(owner types.UID, what []byte) bool {
	c.beside.mu.Lock()
	defer c.beside.mu.Unlock()
	sum, ok := c.beside.kept[owner]
	return ok && sum == sha256.Sum256(what)
}

func (s *settled) drop(owner types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kept, owner)
}
