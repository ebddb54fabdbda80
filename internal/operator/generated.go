package operator

import (
	"context"
	"encoding/base64"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/engine"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/plan"
	"zaentrum.io/zae/internal/values"
)

// generator answers with the addon's generated values, from the Secret that keeps them, and adds those
// that are missing. A value that is kept is never made again: the Secret is created with a create, and
// extended under the resource version that was read, so that of two who try one loses and reads again.
//
// It tells known which paths have a value that nothing runs with yet: those that it makes, and those that it
// made since the addon was suspended.
func (r *reconciler) generator(a *v1alpha1.ZaentrumAddon, known *secrets) engine.Generator {
	return func(ctx context.Context, wanted []inputs.Input) (map[string]string, error) {
		secret, err := r.generatedSecret(ctx, a)
		if err != nil {
			return nil, err
		}
		out := make(map[string]string, len(wanted))
		missing := map[string][]byte{}
		for _, in := range wanted {
			if secret != nil {
				if v, ok := data(secret, in.Path); ok && v != "" {
					known.add(v)
					out[in.Path] = v
					if r.fresh.has(a.UID, in.Path) || announced(a, in.Path) {
						known.generated = append(known.generated, in.Path)
					}
					continue
				}
			}
			v, err := values.Generate(in.Generate, r.random)
			if err != nil {
				return nil, err
			}
			known.add(v)
			out[in.Path] = v
			missing[in.Path] = []byte(v)
			known.generated = append(known.generated, in.Path)
		}
		if len(missing) == 0 {
			return out, nil
		}
		if secret == nil {
			err = r.createGenerated(ctx, a, missing)
		} else {
			err = r.extendGenerated(ctx, secret, missing)
		}
		if err == nil {
			r.fresh.add(a.UID, maps.Keys(missing))
		}
		return out, err
	}
}

// announced tells whether the plan that the resource has says that the value is generated for it. It keeps
// that in the plan when the operator was restarted meanwhile.
func announced(a *v1alpha1.ZaentrumAddon, path string) bool {
	return a.Spec.Suspend && a.Status.Plan != nil && slices.Contains(a.Status.Plan.Effects, plan.Generates(path))
}

// announce adds to the plan which values are generated for it, until they are applied.
func (r *reconciler) announce(a *v1alpha1.ZaentrumAddon, o *outcome, paths []string) {
	if o.applied != nil {
		r.fresh.drop(a.UID)
		return
	}
	if o.plan == nil {
		return
	}
	for _, path := range paths {
		o.plan.Effects = append(o.plan.Effects, plan.Generates(path))
	}
}

// fresh remembers, by addon, the paths of generated values that nothing runs with yet. The plan is made again
// and again until it is installed, and has to say each time what it generated the first time. The zero value
// is empty.
type fresh struct {
	mu    sync.Mutex
	paths map[types.UID]map[string]bool
}

func (f *fresh) add(uid types.UID, paths iter.Seq[string]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.paths == nil {
		f.paths = map[types.UID]map[string]bool{}
	}
	if f.paths[uid] == nil {
		f.paths[uid] = map[string]bool{}
	}
	for path := range paths {
		f.paths[uid][path] = true
	}
}

func (f *fresh) has(uid types.UID, path string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.paths[uid][path]
}

func (f *fresh) drop(uid types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.paths, uid)
}

// generatedSecret reads the Secret with the generated values: from the cache when it is there, else, since
// the cache may be behind and a value must not be made twice, from the cluster. Nil when there is none.
func (r *reconciler) generatedSecret(ctx context.Context, a *v1alpha1.ZaentrumAddon) (*unstructured.Unstructured, error) {
	key := client.ObjectKey{Namespace: a.Namespace, Name: v1alpha1.GeneratedSecretName(a.Name)}
	s := object(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := r.client.Get(ctx, key, s)
	if apierrors.IsNotFound(err) {
		meta := &metav1.PartialObjectMetadata{}
		meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		if err := r.live.Get(ctx, key, meta); err != nil {
			return nil, client.IgnoreNotFound(err)
		}
		if meta.GetLabels()[v1alpha1.LabelAddon] == a.Name {
			err = r.live.Get(ctx, key, s)
		} else {
			s, err = nil, nil
		}
	}
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if s == nil || s.GetLabels()[v1alpha1.LabelAddon] != a.Name {
		return nil, fault.New(fault.NameTaken, "Secret %s exists and is not labelled %s=%s", key.Name, v1alpha1.LabelAddon, a.Name).
			WithHint("label it, or delete it")
	}
	if s.GetDeletionTimestamp() == nil && (kept(s) || ownedBy(s, a) || len(s.GetOwnerReferences()) == 0) {
		return s, nil
	}
	// It belonged to an addon of this name that was removed, and is on its way out. A new value now could
	// meet the old one again.
	return nil, &engine.Waiting{What: fmt.Sprintf("waiting for Secret %s of the removed addon to be deleted", key.Name), After: time.Second}
}

func (r *reconciler) createGenerated(ctx context.Context, a *v1alpha1.ZaentrumAddon, data map[string][]byte) error {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: a.Namespace, Name: v1alpha1.GeneratedSecretName(a.Name),
			Labels:          map[string]string{v1alpha1.LabelAddon: a.Name},
			OwnerReferences: []metav1.OwnerReference{ownerReference(a)},
		},
		Type: corev1.SecretTypeOpaque,
		Data: data,
	}
	// The Secret may be missing because it was collected with the addon, which the cache has not seen go.
	switch there, err := r.engine.Cluster.Alive(ctx, owner(a)); {
	case err != nil:
		return notKept(s.Name, err)
	case !there:
		return &engine.Waiting{What: "waiting for the addon to be gone", After: 100 * time.Millisecond}
	}
	err := r.client.Create(ctx, s)
	if apierrors.IsAlreadyExists(err) { // somebody was faster, and theirs counts
		return &engine.Waiting{What: "reading the generated values again", After: 100 * time.Millisecond}
	}
	return notKept(s.Name, err)
}

// notKept is the fault of generated values that the cluster does not take: without its text, and told in the
// status, since nothing can be planned with values that would be others the next time.
func notKept(name string, err error) error {
	if err == nil {
		return nil
	}
	reason := "the cluster failed"
	if r := apierrors.ReasonForError(err); r != metav1.StatusReasonUnknown {
		reason = string(r)
	}
	return fault.New(fault.Cluster, "cannot be kept in Secret %s: %s", name, reason).Because(err)
}

func (r *reconciler) extendGenerated(ctx context.Context, s *unstructured.Unstructured, data map[string][]byte) error {
	before := client.MergeFromWithOptions(s.DeepCopy(), client.MergeFromWithOptimisticLock{})
	s = s.DeepCopy()
	for k, v := range data {
		if err := unstructured.SetNestedField(s.Object, base64.StdEncoding.EncodeToString(v), "data", k); err != nil {
			return err
		}
	}
	err := r.client.Patch(ctx, s, before)
	if err != nil && gone(err) {
		return &engine.Waiting{What: "reading the generated values again", After: 100 * time.Millisecond}
	}
	return notKept(s.GetName(), err)
}
