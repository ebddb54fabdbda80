package operator

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/api/v1alpha1"
)

// How long a values Secret may stay that nothing references (contract §2): a client creates a Secret
// before it points the addon at it, and must not lose that race.
const (
	unreferencedFor = 10 * time.Minute
	ownerlessFor    = time.Hour // its addon does not exist
)

// janitor deletes the values Secrets of one addon that nothing references any more. The moment from which
// nothing did is kept on the Secret, so that a restart does not forget it.
type janitor struct {
	client client.Client
	live   client.Reader
	now    func() time.Time
}

// Reconcile looks at all values Secrets of the addon that req names, whether the addon exists or not.
func (j *janitor) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := j.client.List(ctx, list, client.InNamespace(req.Namespace), client.MatchingLabels{v1alpha1.LabelAddon: req.Name}); err != nil {
		return ctrl.Result{}, err
	}
	var a *v1alpha1.ZaentrumAddon
	found := &v1alpha1.ZaentrumAddon{}
	switch err := j.client.Get(ctx, req.NamespacedName, found); {
	case err == nil:
		a = found
	case !apierrors.IsNotFound(err):
		return ctrl.Result{}, err
	}
	var next time.Duration
	for i := range list.Items {
		s := &list.Items[i]
		if !isValuesSecret(s, req.Name) || kept(s) || s.GetDeletionTimestamp() != nil {
			continue
		}
		after, err := j.look(ctx, a, req, s)
		if err != nil {
			return ctrl.Result{}, fmt.Errorf("values Secret %s: %w", s.GetName(), err)
		}
		if after > 0 && (next == 0 || after < next) {
			next = after
		}
	}
	return ctrl.Result{RequeueAfter: next}, nil
}

// look decides on one Secret, and answers when to look again.
func (j *janitor) look(ctx context.Context, a *v1alpha1.ZaentrumAddon, req ctrl.Request, s *unstructured.Unstructured) (time.Duration, error) {
	stamp := s.GetAnnotations()[v1alpha1.AnnotationUnreferencedSince]
	if a != nil && references(a, s.GetName()) {
		if stamp == "" {
			return 0, nil
		}
		return 0, j.stamp(ctx, s, nil)
	}
	limit := unreferencedFor
	if a == nil {
		limit = ownerlessFor
	}
	since, err := time.Parse(time.RFC3339, stamp)
	if err != nil { // none, or not ours to understand
		return limit, j.stamp(ctx, s, ptr.To(j.now().UTC().Format(time.RFC3339)))
	}
	if left := since.Add(limit).Sub(j.now()); left > 0 {
		return left, nil
	}
	// Before anything is lost, ask the cluster itself.
	live := &v1alpha1.ZaentrumAddon{}
	switch err := j.live.Get(ctx, req.NamespacedName, live); {
	case err == nil && references(live, s.GetName()):
		return time.Minute, nil
	case err == nil && a == nil:
		return unreferencedFor, nil // the addon exists again
	case err != nil && !apierrors.IsNotFound(err):
		return 0, err
	}
	err = j.client.Delete(ctx, metadataOf(s), client.Preconditions{UID: ptr.To(s.GetUID()), ResourceVersion: ptr.To(s.GetResourceVersion())})
	if err != nil && !gone(err) {
		return 0, err
	}
	return 0, nil
}

// stamp sets or, with nil, removes the moment from which nothing referenced the Secret.
func (j *janitor) stamp(ctx context.Context, s *unstructured.Unstructured, moment *string) error {
	meta := metadataOf(s)
	before := client.MergeFromWithOptions(meta.DeepCopy(), client.MergeFromWithOptimisticLock{})
	annotations := meta.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	if moment == nil {
		delete(annotations, v1alpha1.AnnotationUnreferencedSince)
	} else {
		annotations[v1alpha1.AnnotationUnreferencedSince] = *moment
	}
	meta.SetAnnotations(annotations)
	if err := j.client.Patch(ctx, meta, before); err != nil && !gone(err) {
		return err
	}
	return nil
}

// references tells whether an addon reads a values Secret, its generated one included.
func references(a *v1alpha1.ZaentrumAddon, name string) bool {
	if name == v1alpha1.GeneratedSecretName(a.Name) {
		return true
	}
	for _, src := range a.Spec.ValuesFrom {
		if src.Kind == v1alpha1.ValuesFromSecret && src.Name == name {
			return true
		}
	}
	return false
}
