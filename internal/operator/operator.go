// Package operator is door 1: the controller that keeps every ZaentrumAddon's promise. It resolves what
// a resource refers to, hands the work to the engine, and writes the outcome into the status, once, and
// only when it differs.
//
// It never writes an addon's objects itself (package apply does), never waits inside a reconcile, and
// never puts a value of an input or of a Secret into a status, an event or a log line.
package operator

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apply"
	"zaentrum.io/zae/internal/engine"
	"zaentrum.io/zae/internal/telemetry"
)

// Kinds are the kinds an addon's objects may have, which are the kinds that are watched (contract §3).
var Kinds = []schema.GroupVersionKind{
	corev1.SchemeGroupVersion.WithKind("ServiceAccount"),
	corev1.SchemeGroupVersion.WithKind("Secret"),
	corev1.SchemeGroupVersion.WithKind("ConfigMap"),
	corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
	corev1.SchemeGroupVersion.WithKind("Service"),
	appsv1.SchemeGroupVersion.WithKind("Deployment"),
	batchv1.SchemeGroupVersion.WithKind("Job"),
}

// Options configure an operator.
type Options struct {
	Config *rest.Config
	// Namespaces are those to work in, each apart from the others and under a Lease of its own; none for all,
	// under one.
	Namespaces []string
	Fetcher    engine.Fetcher
	Worker     engine.Worker

	// LeaderElection lets several replicas run, one of them working in a namespace.
	LeaderElection bool
	// LeaderElectionNamespace is where the Lease is when all namespaces are watched; otherwise it is in the
	// watched one.
	LeaderElectionNamespace string

	MetricsAddr string // "0" serves none
	ProbeAddr   string // "0" serves none

	// Resync is how long an addon may go without a reconcile, at most; five minutes by default.
	Resync  time.Duration
	Workers int // addons worked on at the same time in each of Namespaces; 8 by default

	// AnyName allows a second operator in this process, as tests have; the metrics of controllers are told apart by
	// nothing.
	AnyName bool

	// Telemetry is told what happens; by default it is there, and nobody sees it.
	Telemetry *telemetry.Operator

	Log *slog.Logger
	// Now and Random are the clock and the source of generated values; the real ones by default.
	Now    func() time.Time
	Random io.Reader
}

func (o *Options) defaults() (err error) {
	if o.Resync == 0 {
		o.Resync = 5 * time.Minute
	}
	if o.Workers == 0 {
		o.Workers = 8
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if len(o.Namespaces) == 0 {
		o.Namespaces = []string{metav1.NamespaceAll}
	}
	if o.Telemetry == nil {
		o.Telemetry, err = telemetry.NewOperator(telemetry.OperatorOptions{})
	}
	return err
}

// LeaderElectionID is the name of the operator's Lease.
const LeaderElectionID = "zae-operator"

// Scheme knows the types that the operator reads and writes.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(v1alpha1.AddToScheme(s))
	return s
}

// Run runs the operator until ctx ends. It returns an error when it cannot start or loses its leadership.
func Run(ctx context.Context, o Options) error {
	if err := o.defaults(); err != nil {
		return fmt.Errorf("operator: %w", err)
	}
	shards := make([]*shard, 0, len(o.Namespaces))
	for i, namespace := range o.Namespaces {
		own := o
		if i > 0 {
			own.MetricsAddr = "0" // the metrics of a process are served once
		}
		s, err := newShard(own, namespace)
		if err != nil {
			return fmt.Errorf("operator: %w", err)
		}
		shards = append(shards, s)
	}
	running, ctx := errgroup.WithContext(ctx)
	running.Go(func() error { return serveProbes(ctx, o.ProbeAddr, shards) })
	for _, s := range shards {
		running.Go(func() error { return s.run(ctx) })
	}
	if err := running.Wait(); err != nil {
		return fmt.Errorf("operator: %w", err)
	}
	return nil
}

// cacheOptions keep only what belongs to an addon in memory, and of it only what somebody reads.
func cacheOptions(namespace string) cache.Options {
	belongs, err := labels.NewRequirement(v1alpha1.LabelAddon, "exists", nil)
	utilruntime.Must(err)
	selector := labels.NewSelector().Add(*belongs)
	o := cache.Options{ByObject: map[client.Object]cache.ByObject{}, DefaultTransform: lean}
	for _, gvk := range Kinds {
		o.ByObject[object(gvk)] = cache.ByObject{Label: selector, Transform: apply.Compact(v1alpha1.ReservedPrefix)}
	}
	if namespace != "" {
		// By this selector the requests are for the namespace alone.
		o.DefaultFieldSelector = fields.OneTermEqualSelector("metadata.namespace", namespace)
	}
	return o
}

// lean leaves out of a resource what nobody reads: who holds which field, and kubectl's copy of it. What is in a
// cache already comes by again, and must not be written to.
func lean(o any) (any, error) {
	m, err := meta.Accessor(o)
	if err != nil {
		return o, nil //nolint:nilerr // no object, such as the note of one that is gone
	}
	if m.GetManagedFields() != nil {
		m.SetManagedFields(nil)
	}
	if m.GetAnnotations()[corev1.LastAppliedConfigAnnotation] != "" {
		delete(m.GetAnnotations(), corev1.LastAppliedConfigAnnotation)
	}
	return o, nil
}

// indexAddon is the field under which the caches find the objects of an addon.
const indexAddon = v1alpha1.LabelAddon

func labelledAddon(o client.Object) []string {
	if name := o.GetLabels()[v1alpha1.LabelAddon]; name != "" {
		return []string{name}
	}
	return nil
}

func object(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u
}

// setup has the manager work in a namespace, or in all, from what its caches hold, with the rights that there are. It
// answers with what waits for all that runs beside the manager.
func setup(ctx context.Context, mgr ctrl.Manager, o Options, namespace string) (wait func(), err error) {
	sight, ok := mgr.GetCache().(*sight)
	if !ok {
		return nil, errors.New("the manager has other caches")
	}
	pods, err := newPodWatch(mgr.GetConfig(), mgr.GetHTTPClient(), sight.access)
	if err != nil {
		return nil, err
	}
	cluster := &apply.Cluster{
		Cache:        mgr.GetCache(),
		Live:         mgr.GetAPIReader(),
		Client:       mgr.GetClient(),
		FieldManager: v1alpha1.FieldManager,
		Kinds:        Kinds,
		OwnerLabel:   v1alpha1.LabelAddon,
		OwnerIndex:   indexAddon,
		PruneLabels:  map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy},
		Alive:        alive(mgr.GetAPIReader()),
		// Values objects carry the label too; this package looks after them.
		ReservedPrefix: v1alpha1.ReservedPrefix,
		OwnPods:        pods.of,
	}
	for _, gvk := range Kinds {
		if err := mgr.GetFieldIndexer().IndexField(ctx, object(gvk), indexAddon, labelledAddon); err != nil {
			return nil, err
		}
	}
	if err := sight.follow(ctx); err != nil {
		return nil, err
	}
	fetcher := newPatientFetcher(ctx, o.Fetcher, o.Now, o.Telemetry.Fetch)
	r := &reconciler{
		sight:  sight,
		client: mgr.GetClient(),
		live:   mgr.GetAPIReader(),
		engine: &engine.Engine{Fetch: fetcher, Worker: o.Worker, Cluster: cluster, Watch: o.Telemetry.Step},
		events: mgr.GetEventRecorder("zae-operator"),
		now:    o.Now,
		random: o.Random,
		resync: o.Resync,
		writes: newWrites(),

		telemetry: o.Telemetry, log: o.Log,
	}
	if r.ending, err = newEnding(mgr, namespace); err != nil {
		return nil, err
	}
	addons := ctrl.NewControllerManagedBy(mgr).
		Named("addon").
		For(&v1alpha1.ZaentrumAddon{}, builder.WithPredicates(specOrMetadataChanged())).
		Watches(&v1alpha1.Zaentrum{}, handler.EnqueueRequestsFromMapFunc(r.addonsOfPlatform),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(pods).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Workers, LogConstructor: logged(mgr.GetLogger(), "addon")})
	for _, gvk := range Kinds {
		addons = addons.Watches(object(gvk), handler.EnqueueRequestsFromMapFunc(addonByLabel))
	}
	if r.ending != nil {
		addons = addons.WatchesRawSource(r.ending.source())
	}
	if err := addons.Complete(r); err != nil {
		return nil, err
	}

	j := &janitor{client: mgr.GetClient(), live: mgr.GetAPIReader(), sight: sight, now: o.Now, log: o.Log}
	err = ctrl.NewControllerManagedBy(mgr).
		Named("values-secrets").
		WithLogConstructor(logged(mgr.GetLogger(), "values-secrets")).
		Watches(object(corev1.SchemeGroupVersion.WithKind("Secret")), handler.EnqueueRequestsFromMapFunc(addonByLabel)).
		Watches(&v1alpha1.ZaentrumAddon{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(specOrMetadataChanged())).
		Complete(j)
	if err != nil {
		return nil, err
	}

	return func() {
		fetcher.wait()
		pods.wait()
	}, nil
}

// observe has the metrics of a namespace's addons read from the caches. An operator that does not lead has none to read.
func observe(mgr ctrl.Manager, namespace string, access *access, t *telemetry.Operator) {
	for _, gvk := range Kinds {
		t.Kinds(gvk.Kind)
	}
	t.Watch(telemetry.Addons{
		Namespace: namespace,
		Lacking:   func() int { return len(access.problems()) },
		Leading: func() bool {
			select {
			case <-mgr.Elected():
				return true
			default:
				return false
			}
		},
		List: func(ctx context.Context) ([]v1alpha1.ZaentrumAddon, error) {
			var list v1alpha1.ZaentrumAddonList
			err := mgr.GetCache().List(ctx, &list, client.UnsafeDisableDeepCopy)
			return list.Items, err
		},
	})
}

// logged names a controller's addon in the lines of controller-runtime as in ours.
func logged(logger logr.Logger, controller string) func(*reconcile.Request) logr.Logger {
	return func(req *reconcile.Request) logr.Logger {
		l := logger.WithValues("controller", controller)
		if req != nil {
			l = l.WithValues(telemetry.KeyNamespace, req.Namespace, telemetry.KeyAddon, req.Name)
		}
		return l
	}
}

// specOrMetadataChanged lets through what a person or a client changed, and drops what only the status,
// which is written here, changed.
func specOrMetadataChanged() predicate.Predicate {
	return predicate.Or(
		predicate.GenerationChangedPredicate{},
		predicate.AnnotationChangedPredicate{},
		beingDeleted(),
	)
}

// beingDeleted lets everything through that happens to a resource on its way out: its finalizer is due.
func beingDeleted() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool { return !o.GetDeletionTimestamp().IsZero() })
}

// addonByLabel finds the addon an object says it belongs to.
func addonByLabel(_ context.Context, o client.Object) []reconcile.Request {
	name := o.GetLabels()[v1alpha1.LabelAddon]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}}
}

// addonsOfPlatform finds the addons that learn about a platform.
func (r *reconciler) addonsOfPlatform(ctx context.Context, o client.Object) []reconcile.Request {
	var list v1alpha1.ZaentrumAddonList
	if err := r.client.List(ctx, &list, client.InNamespace(o.GetNamespace())); err != nil {
		return nil // the next resync finds them
	}
	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

// ownerReference makes an addon an owner, not the controller, of its values Secrets.
func ownerReference(a *v1alpha1.ZaentrumAddon) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.KindZaentrumAddon, Name: a.Name, UID: a.UID,
	}
}

// alive asks the cluster, not the cache, whether an addon is still there.
func alive(live client.Reader) func(context.Context, apply.Owner) (bool, error) {
	return func(ctx context.Context, o apply.Owner) (bool, error) {
		meta := &metav1.PartialObjectMetadata{}
		meta.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.KindZaentrumAddon))
		if err := live.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, meta); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		return meta.UID == o.UID && meta.DeletionTimestamp == nil, nil
	}
}

func owner(a *v1alpha1.ZaentrumAddon) apply.Owner {
	return apply.Owner{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.KindZaentrumAddon,
		Namespace: a.Namespace, Name: a.Name, UID: a.UID,
	}
}
