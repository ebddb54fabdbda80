package portal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/registry"
	"zaentrum.io/zae/internal/registry/capability"
	"zaentrum.io/zae/internal/telemetry"
	"zaentrum.io/zae/internal/trace"
)

const (
	// workers register addons at the same time, so that a slow one does not hold up the others.
	workers = 4
	// maxRetryInterval is the longest pause between two attempts to register an addon.
	maxRetryInterval = 5 * time.Minute
)

// Run registers the addons that are Ready, again when they change, and unregisters those whose resource is
// gone, until ctx ends; event streams are served meanwhile. It returns when everything it started has ended. Without a
// cluster it only waits.
func (s *Server) Run(ctx context.Context) error {
	defer s.Close()
	if s.o.Client == nil {
		<-ctx.Done()
		return nil
	}
	watched, err := newAddonWatch(s)
	if err != nil {
		return err
	}
	if err := s.streams.follow(watched); err != nil {
		return err
	}
	var group sync.WaitGroup
	defer group.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // nothing goes on when registration has ended for another reason
	s.watched.Store(watched)
	defer s.watched.Store(nil)
	group.Go(func() { s.streams.run(ctx, watched) })
	group.Go(func() { watched.RunWithContext(ctx) })
	return s.register(ctx, watched)
}

// registrar keeps the registry in step with the ZaentrumAddons of the namespace.
type registrar struct {
	s       *Server
	watched *addonWatch
	queue   workqueue.TypedRateLimitingInterface[string]
	// may tells whether this replica is still the one that registers.
	may func() bool

	mu   sync.Mutex
	seen map[string]sighting
	down bool // the registry's database fails, and that has been said
}

// sighting is the state of an addon that was registered, and when.
type sighting struct {
	state [sha256.Size]byte
	at    time.Time
}

func newRegistrar(s *Server, watched *addonWatch, may func() bool) *registrar {
	r := &registrar{s: s, watched: watched, may: may, seen: map[string]sighting{}}
	r.queue = workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](s.o.RetryInterval, maxRetryInterval))
	return r
}

func (r *registrar) run(ctx context.Context) error {
	enqueue := func(object any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			if _, name, err := cache.SplitMetaNamespaceKey(key); err == nil {
				r.queue.Add(name)
			}
		}
	}
	handler, err := r.watched.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, DeleteFunc: enqueue, UpdateFunc: func(_, now any) { enqueue(now) },
	})
	if err != nil {
		return fmt.Errorf("watch addons: %w", err)
	}
	defer func() { _ = r.watched.RemoveEventHandler(handler) }() // of a watch that goes on, or has ended
	var group sync.WaitGroup
	defer group.Wait()
	defer r.queue.ShutDown()
	// Before the first list is complete, an addon that is not there may only not have been seen.
	if !cache.WaitForCacheSync(ctx.Done(), r.watched.HasSynced) {
		return nil
	}
	r.watched.watching()
	r.enqueueKnown(ctx)
	for range workers {
		group.Go(func() {
			for r.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	return nil
}

// enqueueKnown looks at every addon the registry knows: its resource may have gone while nobody watched.
func (r *registrar) enqueueKnown(ctx context.Context) {
	addons, failures, err := r.s.registered(ctx)
	if err != nil {
		r.s.log.Error("registry cannot be read", telemetry.KeyError, err)
		return
	}
	for key := range addons {
		r.queue.Add(key)
	}
	for key := range failures {
		r.queue.Add(key)
	}
}

// next handles one addon of the queue; false when there will be no more.
func (r *registrar) next(ctx context.Context) bool {
	name, end := r.queue.Get()
	if end {
		return false
	}
	defer r.queue.Done(name)
	again, err := r.reconcile(ctx, name)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		r.queue.AddRateLimited(name)
	default:
		r.queue.Forget(name)
		if again > 0 {
			r.queue.AddAfter(name, again)
		}
	}
	return true
}

// reconcile makes the registry say about one addon what its resource says now. It answers when to look again;
// zero means when something changes.
func (r *registrar) reconcile(ctx context.Context, name string) (time.Duration, error) {
	addon, err := r.watched.get(name)
	switch {
	case err != nil:
		return 0, err
	case addon == nil:
		return 0, r.unregister(ctx, name)
	case addon.DeletionTimestamp != nil, addon.Status.Phase != v1alpha1.PhaseReady, !planRuns(addon):
		// What is registered stays: the addon may be on its way to another chart, or not well for a moment.
		return 0, nil
	}
	state, err := stateOf(addon)
	if err != nil {
		return 0, err
	}
	if wait := r.rest(name, state); wait > 0 {
		return wait, nil
	}
	if err := r.register(ctx, addon); err != nil {
		if ctx.Err() != nil {
			return 0, err
		}
		return 0, r.fail(ctx, name, err)
	}
	r.databaseWorks()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[name] = sighting{state: state, at: r.s.now()}
	return r.s.o.RefreshInterval, nil
}

// planRuns tells whether the plan is of the chart that runs: only then do its annotations name the primary.
func planRuns(a *v1alpha1.ZaentrumAddon) bool {
	applied, plan := a.Status.LastAppliedChart, a.Status.Plan
	return applied != nil && plan != nil && applied.Digest != "" && applied.Digest == plan.Chart.Digest
}

// stateOf identifies what a registration depends on, and everything that may change the manifest.
func stateOf(a *v1alpha1.ZaentrumAddon) ([sha256.Size]byte, error) {
	raw, err := json.Marshal([]any{a.UID, a.Generation, a.Status})
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("addon %s: %w", a.Name, err)
	}
	return sha256.Sum256(raw), nil
}

// rest is how long an addon need not be looked at: nothing changed since it was registered, not long ago.
func (r *registrar) rest(name string, state [sha256.Size]byte) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, ok := r.seen[name]
	if !ok || last.state != state {
		return 0
	}
	return r.s.o.RefreshInterval - r.s.now().Sub(last.at)
}

// register reads the addon's manifest and writes its rows, if they are others than those there are.
func (r *registrar) register(ctx context.Context, addon *v1alpha1.ZaentrumAddon) error {
	primary := addon.Status.Plan.Chart.Annotations[v1alpha1.ChartAnnotationPrimary]
	if !capability.IsServiceName(primary) {
		return fault.New(fault.Invalid, "the chart's annotation %s names no Service", v1alpha1.ChartAnnotationPrimary)
	}
	if err := r.free(addon.Name, primary); err != nil {
		return err
	}
	if asked, ok := trace.Parse(addon.Traceparent()); ok {
		ctx = trace.With(ctx, asked)
	}
	address := "http://" + primary
	manifest, err := r.s.fetch.manifest(ctx, address)
	if err != nil {
		return err
	}
	if manifest.Service != addon.Name {
		return fault.New(fault.Invalid, "the manifest's service is %s, and the addon's name is %s: they must be the same", manifest.Service, addon.Name)
	}
	if err := r.s.manifestFree(manifest, primary); err != nil {
		return err
	}
	for _, part := range manifest.Parts(primary) {
		if err := r.free(addon.Name, part.Workload); err != nil {
			return err
		}
	}
	applied := addon.Status.LastAppliedChart
	registration := registry.Registration{
		Source:   registry.SourceChart,
		Chart:    registry.Chart{Ref: applied.Ref, Version: applied.Version, Digest: applied.Digest},
		Place:    capability.Place{ProxyURL: address, Workload: primary, PublicOrigin: r.s.o.PublicOrigin},
		Manifest: manifest, At: r.s.now(),
	}
	same, err := r.same(ctx, registration)
	if err != nil {
		return err
	}
	if same {
		r.s.metrics.Registration(telemetry.RegistrationUnchanged)
		return r.s.o.Registry.Clear(ctx, addon.Name)
	}
	if !r.may() {
		return errNotElected
	}
	if err := r.s.o.Registry.Register(ctx, registration); err != nil {
		return err
	}
	r.s.metrics.Registration(telemetry.RegistrationNew)
	r.s.log.Info("addon registered", append(tracedBy(addon), telemetry.KeyAddon, addon.Name, "chart", shownRef(applied.Ref), "version", applied.Version)...)
	return nil
}

// tracedBy is the trace that asked for what runs, as keys and values of a log line; none when that is not known.
func tracedBy(addon *v1alpha1.ZaentrumAddon) []any {
	if c, ok := trace.Parse(addon.Traceparent()); ok {
		return []any{telemetry.KeyTrace, c.ID()}
	}
	return nil
}

// shownRef is a chart's reference for a log line. The query of a link may be a credential.
func shownRef(ref string) string {
	if r, err := chart.ParseReference(ref); err == nil {
		return r.String()
	}
	return "(not shown)"
}

// free refuses a workload that is the platform's or another addon's.
func (r *registrar) free(addon, workload string) error {
	if err := r.s.notThePlatforms("workload", workload); err != nil {
		return err
	}
	for _, object := range r.watched.GetStore().List() {
		other, ok := object.(*v1alpha1.ZaentrumAddon)
		if ok && other.Name != addon && runs(other, workload) {
			return workloadTaken(workload, other.Name)
		}
	}
	return nil
}

// same tells whether the registry holds this registration already. A primary or public origin that moved is
// in the app's and slots' rows.
func (r *registrar) same(ctx context.Context, now registry.Registration) (bool, error) {
	addon, err := r.s.o.Registry.Addon(ctx, now.Manifest.Service)
	if err != nil || addon == nil || addon.Source != now.Source || addon.Chart != now.Chart {
		return false, err
	}
	doc, err := now.Manifest.JSON()
	if err != nil || !bytes.Equal(doc, addon.Manifest) {
		return false, err
	}
	rows := now.Manifest.Rows(now.Place)
	apps, err := r.s.o.Registry.Apps(ctx)
	if err != nil || !slices.Contains(apps, registry.App{App: rows.App, Addon: addon.Key}) {
		return false, err
	}
	slots, err := r.s.o.Registry.Slots(ctx)
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(rows.Slots, func(row capability.SlotRow) bool { return !slices.Contains(slots, row) }), nil
}

// fail keeps why an addon could not be registered. It answers the error, so that it is tried again.
func (r *registrar) fail(ctx context.Context, name string, err error) error {
	if errors.Is(err, errNotElected) || !r.may() {
		return err
	}
	if fault.CodeOf(err) == fault.Database { // which is no fault of the addon's, and cannot be kept
		r.databaseFails(err)
		return err
	}
	r.s.metrics.Registration(telemetry.RegistrationFailed)
	message := err.Error()
	if fault.CodeOf(err) == fault.Internal {
		r.s.log.Error("addon cannot be registered", telemetry.KeyAddon, name, telemetry.KeyError, err)
		message = "something went wrong inside portal-api; its log says what"
	}
	before, failed := r.s.o.Registry.Failure(ctx, name)
	if failed == nil && (before == nil || before.Message != message) {
		r.s.log.Warn("addon not registered", slog.String(telemetry.KeyAddon, name), slog.String("reason", message))
		failed = r.s.o.Registry.Fail(ctx, name, message, r.s.now())
	}
	return errors.Join(err, failed)
}

// databaseFails says once that nothing can be registered, whichever addon met it first.
func (r *registrar) databaseFails(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.down {
		r.down = true
		r.s.log.Error("registry failed: addons are registered when it is back", telemetry.KeyError, registry.Cause(err))
	}
}

// databaseWorks says that it is over.
func (r *registrar) databaseWorks() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.down {
		r.down = false
		r.s.log.Info("registry works again")
	}
}

// unregister removes the rows of an addon whose resource is gone. Others may have waited for its names.
func (r *registrar) unregister(ctx context.Context, name string) error {
	r.mu.Lock()
	delete(r.seen, name)
	r.mu.Unlock()
	if !r.may() {
		return errNotElected
	}
	removed, err := r.s.o.Registry.Remove(ctx, name, registry.SourceChart)
	if err != nil {
		if fault.CodeOf(err) == fault.Database && ctx.Err() == nil {
			r.databaseFails(err)
		}
		return err
	}
	if len(removed) > 0 {
		r.s.log.Info("addon unregistered", telemetry.KeyAddon, name, "rows", len(removed))
	}
	failures, err := r.s.o.Registry.Failures(ctx)
	for waiting := range failures {
		if waiting != name {
			r.queue.Add(waiting)
		}
	}
	return err
}
