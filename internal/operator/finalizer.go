package operator

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"zaentrum.io/zae/api/v1alpha1"
)

func keepsValues(a *v1alpha1.ZaentrumAddon) bool {
	return a.Annotations[v1alpha1.AnnotationKeepValues] == "true"
}

// holdFinalizer has the finalizer on the resource exactly while there are values to keep: without it, a
// stopped operator would hold up the deletion of every addon. It tells whether it wrote.
func (r *reconciler) holdFinalizer(ctx context.Context, a *v1alpha1.ZaentrumAddon) (bool, error) {
	keeps := keepsValues(a) && !r.ending.has()
	if keeps == controllerutil.ContainsFinalizer(a, v1alpha1.FinalizerValues) {
		return false, nil
	}
	if keeps {
		// A namespace on its way out gets no finalizer: who starts to work there may not have been told yet.
		if leaving, err := r.leaving(ctx, a.Namespace); err != nil || leaving {
			return false, err
		}
		// First, so that who sees the finalizer may delete the resource in any way: a deletion in the foreground
		// takes what the addon owns at once.
		if err := r.release(ctx, a, false); err != nil {
			return false, err
		}
	}
	before := client.MergeFromWithOptions(a.DeepCopy(), client.MergeFromWithOptimisticLock{})
	if keeps {
		controllerutil.AddFinalizer(a, v1alpha1.FinalizerValues)
	} else {
		controllerutil.RemoveFinalizer(a, v1alpha1.FinalizerValues)
	}
	if err := r.client.Patch(ctx, a, before); err != nil {
		return false, fmt.Errorf("finalizer: %w", err)
	}
	r.writes.wrote(a, r.now())
	return true, nil
}

// finalize lets go of a resource that is being deleted: with its values kept, when it says so and there is
// somebody to keep them for.
func (r *reconciler) finalize(ctx context.Context, a *v1alpha1.ZaentrumAddon) error {
	if !controllerutil.ContainsFinalizer(a, v1alpha1.FinalizerValues) {
		return nil
	}
	keep := keepsValues(a)
	if keep {
		var err error
		if keep, err = r.worthKeeping(ctx, a.Namespace); err != nil {
			return err
		}
	}
	if keep {
		if err := r.release(ctx, a, true); err != nil {
			return err
		}
		r.say(ctx, a, slog.LevelInfo, "values kept")
	}
	before := client.MergeFromWithOptions(a.DeepCopy(), client.MergeFromWithOptimisticLock{})
	controllerutil.RemoveFinalizer(a, v1alpha1.FinalizerValues)
	if err := r.client.Patch(ctx, a, before); err != nil && !gone(err) {
		return fmt.Errorf("finalizer: %w", err)
	}
	return nil
}

// worthKeeping is false when the namespace is terminating or no platform is left: then nobody could use
// the values again, and holding on would only hold up the deletion.
func (r *reconciler) worthKeeping(ctx context.Context, namespace string) (bool, error) {
	if leaving, err := r.leaving(ctx, namespace); err != nil || leaving {
		return false, err
	}
	var platforms v1alpha1.ZaentrumList
	if err := r.live.List(ctx, &platforms, client.InNamespace(namespace)); err != nil {
		return false, err
	}
	return slices.ContainsFunc(platforms.Items, func(z v1alpha1.Zaentrum) bool { return z.DeletionTimestamp == nil }), nil
}

// leaving tells whether a namespace is being deleted, or gone.
func (r *reconciler) leaving(ctx context.Context, namespace string) (bool, error) {
	var ns corev1.Namespace
	if err := r.live.Get(ctx, client.ObjectKey{Name: namespace}, &ns); err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	return ns.DeletionTimestamp != nil, nil
}

// release takes the addon off the owners of the values Secrets to keep, the generated one included, and labels them
// as kept when the addon goes. It asks the cluster, not the cache: this is the last chance. Those that nothing refers to
// are left of changes that were not installed, and go; while a change waits to be installed, they may be of what runs, and
// stay.
func (r *reconciler) release(ctx context.Context, a *v1alpha1.ZaentrumAddon, keep bool) error {
	var secrets metav1.PartialObjectMetadataList
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	err := r.live.List(ctx, &secrets, client.InNamespace(a.Namespace), client.MatchingLabels{v1alpha1.LabelAddon: a.Name})
	if err != nil {
		return fmt.Errorf("keep values: %w", err)
	}
	waits := a.Spec.Suspend && a.Status.LastAppliedChart != nil
	for i := range secrets.Items {
		s := &secrets.Items[i]
		if !isValuesSecret(s, a.Name) || !ownedBy(s, a) && (kept(s) || !keep) || !waits && !references(a, s.Name) {
			continue
		}
		s.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		before := client.MergeFromWithOptions(s.DeepCopy(), client.MergeFromWithOptimisticLock{})
		s.OwnerReferences = without(s.OwnerReferences, a)
		if keep {
			if s.Labels == nil {
				s.Labels = map[string]string{}
			}
			s.Labels[v1alpha1.LabelKeep] = "true"
			delete(s.Annotations, v1alpha1.AnnotationUnreferencedSince)
		}
		if err := r.client.Patch(ctx, s, before); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("keep Secret %s: %w", s.Name, err)
		}
	}
	return nil
}

// isValuesSecret tells an addon's values Secrets, the generated one included, from what its chart rendered:
// charts cannot render names under the reserved prefix.
func isValuesSecret(o client.Object, addon string) bool {
	return o.GetLabels()[v1alpha1.LabelAddon] == addon && strings.HasPrefix(o.GetName(), v1alpha1.ValuesObjectPrefix(addon))
}
