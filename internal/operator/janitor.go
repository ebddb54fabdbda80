package operator

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apply"
	"zaentrum.io/zae/internal/telemetry"
)

// How long a values Secret may stay that nothing references (contract §2): a client creates a Secret
// before it points the addon at it, and must not lose that race.
const (
	unreferencedFor = 10 * time.Minute
	ownerlessFor    = time.Hour // its addon does not exist

	// notedAfter is how long the moment is only remembered. A client creates a Secret just before it points the
	// addon at it: a note on the Secret would be two writes for nothing, at each change of a secret input.
	notedAfter = 5 * time.Second

	// clockSkew is how far the clocks of two operators may be apart. A moment that is later still is none: it is
	// counted anew from now, so that a clock that was set right deletes nothing early and keeps nothing for years.
	clockSkew = time.Minute
)

// janitor deletes the values Secrets of one addon that nothing references any more. The moment from which
// nothing did is kept on the Secret, so that a restart does not forget it.
type janitor struct {
	client client.Client
	live   client.Reader
	sight  *sight
	now    func() time.Time
	log    *slog.Logger

	mu sync.Mutex
	// since is, by addon and values Secret, from when nothing referenced it, until that is noted on the Secret.
	since map[types.NamespacedName]map[types.UID]time.Time
}

// Reconcile looks at the values Secrets of an addon, if the operator may.
func (j *janitor) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if clear, _ := j.sight.clear(); !clear {
		return ctrl.Result{RequeueAfter: afterEmptyCache}, nil
	}
	result, err := j.reconcile(ctx, req)
	if _, denied := apply.Denied(err); denied { // which access has told
		return ctrl.Result{RequeueAfter: askAgainMost}, nil
	}
	return result, err
}

// reconcile looks at all values Secrets of the addon that req names, whether the addon exists or not.
func (j *janitor) reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	list, err := valuesSecrets(ctx, j.client, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	j.forget(req.NamespacedName, list)
	var a *v1alpha1.ZaentrumAddon
	found := &v1alpha1.ZaentrumAddon{}
	switch err := j.client.Get(ctx, req.NamespacedName, found); {
	case err == nil:
		a = found
	case !apierrors.IsNotFound(err):
		return ctrl.Result{}, err
	}
	var next time.Duration
	for i := range list {
		s := &list[i]
		if kept(s) || s.GetDeletionTimestamp() != nil {
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
		j.settled(req.NamespacedName, s.GetUID())
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
		since := j.noticed(req.NamespacedName, s.GetUID())
		if left := since.Add(notedAfter).Sub(j.now()); left > 0 {
			return left, nil
		}
		return limit, j.stamp(ctx, s, ptr.To(since.UTC().Format(time.RFC3339)))
	}
	if now := j.now(); since.After(now.Add(clockSkew)) { // a clock was wrong then, or is now
		return limit, j.stamp(ctx, s, ptr.To(now.UTC().Format(time.RFC3339)))
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
	j.log.Info("values Secret deleted", telemetry.KeyNamespace, req.Namespace, telemetry.KeyAddon, req.Name, "secret", s.GetName(), "since", stamp)
	return 0, nil
}

// noticed is when the Secret was first seen without a reference.
func (j *janitor) noticed(addon types.NamespacedName, secret types.UID) time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := j.now()
	if since, ok := j.since[addon][secret]; ok && !since.After(now) {
		return since
	}
	if j.since == nil {
		j.since = map[types.NamespacedName]map[types.UID]time.Time{}
	}
	if j.since[addon] == nil {
		j.since[addon] = map[types.UID]time.Time{}
	}
	j.since[addon][secret] = now
	return now
}

// settled forgets that a Secret was seen without a reference.
func (j *janitor) settled(addon types.NamespacedName, secret types.UID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.since[addon], secret)
}

// forget drops what is remembered of Secrets that are no more, or on which it is noted.
func (j *janitor) forget(addon types.NamespacedName, secrets []unstructured.Unstructured) {
	j.mu.Lock()
	defer j.mu.Unlock()
	maps.DeleteFunc(j.since[addon], func(uid types.UID, _ time.Time) bool {
		return !slices.ContainsFunc(secrets, func(s unstructured.Unstructured) bool {
			return s.GetUID() == uid && s.GetAnnotations()[v1alpha1.AnnotationUnreferencedSince] == ""
		})
	})
	if len(j.since[addon]) == 0 {
		delete(j.since, addon)
	}
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
