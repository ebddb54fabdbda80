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
	"net/http"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apply"
	"zaentrum.io/zae/internal/engine"
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
	// Namespace is the one to watch; empty for all.
	Namespace string
	Fetcher   engine.Fetcher
	Worker    engine.Worker

	// LeaderElection lets several replicas run, one of them working.
	LeaderElection          bool
	LeaderElectionNamespace string // needed when Namespace is empty

	MetricsAddr string // "0" serves none
	ProbeAddr   string // "0" serves none

	// Resync is how long an addon may go without a reconcile, at most; five minutes by default.
	Resync  time.Duration
	Workers int // addons worked on at the same time; 8 by default

	// AnyName allows a second operator in this process, as tests have; its metrics are told apart by nothing.
	AnyName bool

	Log *slog.Logger
	// Now and Random are the clock and the source of generated values; the real ones by default.
	Now    func() time.Time
	Random io.Reader
}

func (o *Options) defaults() {
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
	if o.LeaderElectionNamespace == "" {
		o.LeaderElectionNamespace = o.Namespace
	}
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
	o.defaults()
	logger := logr.FromSlogHandler(o.Log.Handler())
	if !o.AnyName { // the one operator of a process: what logs without being asked, logs here
		ctrl.SetLogger(logger)
		klog.SetLogger(logger)
	}
	cluster := rest.CopyConfig(o.Config)
	cluster.WarningHandler = rest.NoWarnings{} // a warning may quote what a chart rendered
	cluster.QPS = -1                           // the API server's own fairness decides, not a limit here that delays plans

	mgr, err := ctrl.NewManager(cluster, ctrl.Options{
		Scheme:                        Scheme(),
		Logger:                        logger,
		Cache:                         cacheOptions(o.Namespace),
		Client:                        client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		LeaderElection:                o.LeaderElection,
		LeaderElectionID:              LeaderElectionID,
		LeaderElectionNamespace:       o.LeaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true, // Run's caller exits when Run returns
		Metrics:                       server.Options{BindAddress: o.MetricsAddr},
		HealthProbeBindAddress:        o.ProbeAddr,
		Controller:                    config.Controller{SkipNameValidation: &o.AnyName},
	})
	if err != nil {
		return fmt.Errorf("operator: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	fetcher, err := setup(ctx, mgr, o)
	if err != nil {
		return fmt.Errorf("operator: %w", err)
	}
	defer func() {
		stop()
		fetcher.wait()
	}()
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("operator: %w", err)
	}
	return nil
}

// cacheOptions keep only what belongs to an addon in memory.
func cacheOptions(namespace string) cache.Options {
	belongs, err := labels.NewRequirement(v1alpha1.LabelAddon, "exists", nil)
	utilruntime.Must(err)
	selector := labels.NewSelector().Add(*belongs)
	o := cache.Options{ByObject: map[client.Object]cache.ByObject{}}
	for _, gvk := range Kinds {
		o.ByObject[object(gvk)] = cache.ByObject{Label: selector}
	}
	if namespace != "" {
		o.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	}
	return o
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

func setup(ctx context.Context, mgr ctrl.Manager, o Options) (*patientFetcher, error) {
	cluster := &apply.Cluster{
		Cache:        mgr.GetCache(),
		Live:         mgr.GetAPIReader(),
		Client:       mgr.GetClient(),
		FieldManager: v1alpha1.FieldManager,
		Kinds:        Kinds,
		OwnerLabel:   v1alpha1.LabelAddon,
		OwnerIndex:   indexAddon,
		PruneLabels:  map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy},
		// Values objects carry the label too; this package looks after them.
		ReservedPrefix: v1alpha1.ReservedPrefix,
	}
	for _, gvk := range Kinds {
		if err := mgr.GetFieldIndexer().IndexField(ctx, object(gvk), indexAddon, labelledAddon); err != nil {
			return nil, err
		}
	}
	fetcher := newPatientFetcher(ctx, o.Fetcher, o.Now)
	r := &reconciler{
		client: mgr.GetClient(),
		live:   mgr.GetAPIReader(),
		engine: &engine.Engine{Fetch: fetcher, Worker: o.Worker, Cluster: cluster},
		events: mgr.GetEventRecorder("zae-operator"),
		now:    o.Now,
		random: o.Random,
		resync: o.Resync,
		writes: newWrites(),
	}
	addons := ctrl.NewControllerManagedBy(mgr).
		Named("addon").
		For(&v1alpha1.ZaentrumAddon{}, builder.WithPredicates(specOrMetadataChanged())).
		Watches(&v1alpha1.Zaentrum{}, handler.EnqueueRequestsFromMapFunc(r.addonsOfPlatform),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Workers})
	for _, gvk := range Kinds {
		addons = addons.Watches(object(gvk), handler.EnqueueRequestsFromMapFunc(addonByLabel))
	}
	if err := addons.Complete(r); err != nil {
		return nil, err
	}

	j := &janitor{client: mgr.GetClient(), live: mgr.GetAPIReader(), now: o.Now}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("values-secrets").
		Watches(object(corev1.SchemeGroupVersion.WithKind("Secret")), handler.EnqueueRequestsFromMapFunc(addonByLabel)).
		Watches(&v1alpha1.ZaentrumAddon{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(specOrMetadataChanged())).
		Complete(j)
	if err != nil {
		return nil, err
	}

	if err := mgr.AddHealthzCheck("alive", healthz.Ping); err != nil {
		return nil, err
	}
	return fetcher, mgr.AddReadyzCheck("caches", func(req *http.Request) error {
		ctx, cancel := context.WithTimeout(req.Context(), time.Second)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return errors.New("caches are not filled yet")
		}
		return nil
	})
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

func owner(a *v1alpha1.ZaentrumAddon) apply.Owner {
	return apply.Owner{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.KindZaentrumAddon,
		Namespace: a.Namespace, Name: a.Name, UID: a.UID,
	}
}
