package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apply"
	"zaentrum.io/zae/internal/manifest"
)

// settledFor is for how many resyncs an addon of which nothing changes is only looked at. Then it is planned and
// applied anew, so that nothing that was overlooked stays so.
const settledFor = 12

// settled remembers what an addon was made from whose last reconcile found nothing to do. As long as all of that
// is as it was, rendering and comparing again would come to the same, and is left out: only what runs is looked
// at, and whether the registry still has the same content. The zero value remembers nothing.
type settled struct {
	mu   sync.Mutex
	last map[types.NamespacedName]*settledAt
}

type settledAt struct {
	made  madeFrom
	chart string
	at    time.Time
	print apply.Print
	// exact: a plan of what would change lists what runs down to the last field.
	exact bool
	// health is how the addon did when its status was written last.
	health apply.Health
	// tail is what the message says besides how the addon runs.
	tail string
}

// madeFrom is everything that a reconcile reads besides the chart and the objects, by versions.
type madeFrom struct {
	addon    string
	platform string
	values   string
}

func (s *settled) get(key types.NamespacedName) *settledAt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last[key]
}

func (s *settled) put(key types.NamespacedName, at *settledAt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = map[types.NamespacedName]*settledAt{}
	}
	s.last[key] = at
}

func (s *settled) forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.last, key)
}

// look finds, in the caches, what a reconcile of the addon would read. Ok is false where it would have to ask the
// cluster.
func (r *reconciler) look(ctx context.Context, a *v1alpha1.ZaentrumAddon) (made madeFrom, ok bool, err error) {
	made.addon = versionOf(a)
	var platforms v1alpha1.ZaentrumList
	if err := r.client.List(ctx, &platforms, client.InNamespace(a.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return made, false, err
	}
	var parts []string
	for i := range platforms.Items {
		p := &platforms.Items[i]
		parts = append(parts, fmt.Sprintf("%s/%d", p.UID, p.Generation))
	}
	slices.Sort(parts)
	made.platform = strings.Join(parts, " ")

	secrets, err := valuesSecrets(ctx, r.client, client.ObjectKeyFromObject(a), client.UnsafeDisableDeepCopy)
	if err != nil {
		return made, false, err
	}
	parts = nil
	for i := range secrets {
		parts = append(parts, secrets[i].GetName()+"="+versionOf(&secrets[i]))
	}
	for _, src := range a.Spec.ValuesFrom {
		if src.Kind == v1alpha1.ValuesFromSecret {
			if !slices.ContainsFunc(secrets, func(s unstructured.Unstructured) bool { return s.GetName() == src.Name }) {
				return made, false, nil
			}
			continue
		}
		u := object(schema.GroupVersionKind{Version: "v1", Kind: string(src.Kind)})
		err := r.client.Get(ctx, client.ObjectKey{Namespace: a.Namespace, Name: src.Name}, u, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) {
			return made, false, nil
		}
		if err != nil {
			return made, false, err
		}
		parts = append(parts, string(src.Kind)+"/"+src.Name+"="+versionOf(u))
	}
	slices.Sort(parts)
	made.values = strings.Join(slices.Compact(parts), " ")
	return made, true, nil
}

// valuesSecrets are the addon's values Secrets in the cache, the generated one and former ones included.
func valuesSecrets(ctx context.Context, c client.Reader, addon types.NamespacedName, opts ...client.ListOption) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	opts = append(opts, client.InNamespace(addon.Namespace), client.MatchingFields{indexAddon: addon.Name})
	if err := c.List(ctx, list, opts...); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(u unstructured.Unstructured) bool { return !isValuesSecret(&u, addon.Name) }), nil
}

func versionOf(o client.Object) string { return string(o.GetUID()) + "/" + o.GetResourceVersion() }

// stillSettled tells whether the addon is as it was when nothing was to be done, apart from how it runs. It is
// remembered how it runs now.
func (r *reconciler) stillSettled(ctx context.Context, a *v1alpha1.ZaentrumAddon, made madeFrom) (*settledAt, apply.Health, bool, error) {
	var now apply.Health
	last := r.settled.get(client.ObjectKeyFromObject(a))
	if last == nil || last.made != made || r.now().Sub(last.at) > settledFor*r.resync {
		return nil, now, false, nil
	}
	owned, ok, err := r.engine.Cluster.Glance(ctx, owner(a))
	if err != nil || !ok || !last.print.Holds(r.engine.Cluster, owned, last.exact) {
		return nil, now, false, err
	}
	archive, err := r.engine.Fetch.Fetch(ctx, a.Spec.Chart)
	if err != nil || fetched(archive.Digest, archive.Stale) != last.chart {
		return nil, now, false, nil //nolint:nilerr // the work that follows fetches too, and knows what to do
	}
	return last, r.engine.Cluster.Health(owner(a), owned, apply.Remembered(a.Status.Jobs, nil)), true, nil
}

func fetched(digest, stale string) string { return digest + " " + stale }

// refresh brings the status of an addon that is settled up to date with how it runs, and answers when to look again.
func (r *reconciler) refresh(ctx context.Context, a *v1alpha1.ZaentrumAddon, last *settledAt, now apply.Health) (time.Duration, error) {
	r.telemetry.Settled(len(last.print))
	if equality.Semantic.DeepEqual(last.health, now) {
		return r.soon(), nil
	}
	known, err := r.secretsOf(ctx, a)
	if err != nil {
		return 0, err
	}
	o := &outcome{plan: a.Status.Plan.DeepCopy(), known: known}
	o.planned = standing(a, v1alpha1.ConditionPlanned)
	if last.exact {
		o.suspended(a, now)
		o.phase, o.message = a.Status.Phase, a.Status.Message
	} else {
		o.running(now)
		o.message += last.tail
	}
	if later, err := r.writeStatus(ctx, a, o); later > 0 || err != nil {
		return later, err
	}
	last.made.addon = versionOf(a)
	last.health = now
	return r.soon(), nil
}

// standing is a condition as the resource has it.
func standing(a *v1alpha1.ZaentrumAddon, kind string) condition {
	c := meta.FindStatusCondition(a.Status.Conditions, kind)
	if c == nil {
		return condition{}
	}
	return condition{c.Status, c.Reason, c.Message}
}

// settle remembers an addon for which nothing was to be done, or forgets that there was one.
func (r *reconciler) settle(a *v1alpha1.ZaentrumAddon, o *outcome, made madeFrom) {
	key := client.ObjectKeyFromObject(a)
	if o.idle == nil || o.cutShort || !strings.HasPrefix(o.message, o.ready.message) && !o.idle.exact {
		r.settled.forget(key)
		return
	}
	made.addon = versionOf(a)
	r.settled.put(key, &settledAt{
		made: made, chart: o.idle.chart, at: r.now(),
		print: r.engine.Cluster.NewPrint(o.idle.owned), exact: o.idle.exact, health: o.idle.health,
		tail: strings.TrimPrefix(o.message, o.ready.message),
	})
}

// atRest is what an outcome that left nothing to do was made from.
type atRest struct {
	chart  string
	owned  manifest.Set
	health apply.Health
	exact  bool
}
