package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apply"
	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/engine"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/telemetry"
	"zaentrum.io/zae/internal/values"
	"zaentrum.io/zae/internal/worker"
)

// reconciler brings one addon at a time to what its resource says.
type reconciler struct {
	client  client.Client // reads from the caches
	live    client.Reader // reads from the cluster
	sight   *sight
	engine  *engine.Engine
	events  recorder.EventRecorder
	now     func() time.Time
	random  io.Reader
	resync  time.Duration
	writes  *writes
	told    told
	toldOf  told // which rights are lacking, in events
	calm    calm
	settled settled
	// dependents is what of the objects depends on secrets.
	dependents dependents
	fresh      fresh // generated values that nothing runs with yet
	ending     *ending

	telemetry *telemetry.Operator
	log       *slog.Logger
	corrected corrected
}

// How soon to look again when nothing would wake the reconcile by itself.
const (
	afterRegistryFault = 20 * time.Second
	afterClusterFault  = 5 * time.Second
	afterStaleCache    = 25 * time.Millisecond
)

// reconcile takes one addon through its steps. The status is written once, at the end.
func (r *reconciler) reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	a := &v1alpha1.ZaentrumAddon{}
	if err := r.client.Get(ctx, req.NamespacedName, a); err != nil {
		if apierrors.IsNotFound(err) {
			uid := r.writes.forget(req.NamespacedName)
			if uid != "" {
				r.log.Info("addon is gone", telemetry.KeyNamespace, req.Namespace, telemetry.KeyAddon, req.Name)
			}
			r.engine.Cluster.Forget(uid)
			r.fresh.drop(uid)
			r.told.forget(req.NamespacedName)
			r.toldOf.forget(req.NamespacedName)
			r.calm.forget(req.NamespacedName)
			r.settled.forget(req.NamespacedName)
			r.dependents.forget(req.NamespacedName)
			r.corrected.forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	ctx, pass := r.telemetry.Begin(ctx, a)
	result, err := r.safely(ctx, a)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil // the operator ends, which is no fault of the addon's
	}
	return result, pass.End(a.Status.Phase, err)
}

// bring brings one addon, which may be changed, to what its resource says.
func (r *reconciler) bring(ctx context.Context, a *v1alpha1.ZaentrumAddon) (ctrl.Result, error) {
	if r.writes.behind(a) {
		return ctrl.Result{RequeueAfter: afterStaleCache}, nil
	}
	if a.DeletionTimestamp != nil {
		return ctrl.Result{}, r.finalize(ctx, a)
	}
	if wrote, err := r.holdFinalizer(ctx, a); err != nil || wrote {
		return requeueOnConflict(ctrl.Result{RequeueAfter: afterStaleCache}, err)
	}
	made, seen, err := r.look(ctx, a)
	if err != nil {
		return ctrl.Result{}, err
	}
	if seen {
		last, now, still, err := r.stillSettled(ctx, a, made)
		if err != nil {
			return ctrl.Result{}, err
		}
		if still {
			next, err := r.refresh(ctx, a, last, now)
			return requeueOnConflict(ctrl.Result{RequeueAfter: next}, err)
		}
	}
	if wait := r.corrected.wait(a, r.now()); wait > 0 && a.Status.ObservedGeneration == a.Generation {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	o, next, err := r.work(ctx, a)
	if err != nil {
		return requeueOnConflict(ctrl.Result{}, err)
	}
	if o.components == nil && o.waiting == "" {
		if err := r.lookAtComponents(ctx, a, o); err != nil {
			return requeueOnConflict(ctrl.Result{}, err)
		}
	}
	later, err := r.writeStatus(ctx, a, o)
	if err != nil {
		return requeueOnConflict(ctrl.Result{}, err)
	}
	if later > 0 && (next == 0 || later < next) {
		return ctrl.Result{RequeueAfter: later}, nil
	}
	if next == 0 {
		next = r.soon()
		if seen {
			r.settle(a, o, made)
		}
	}
	return ctrl.Result{RequeueAfter: next}, nil
}

// soon is when an addon is looked at again though nothing happened: jittered, so that many do not come due
// together, and never later than the resync.
func (r *reconciler) soon() time.Duration {
	return r.resync - time.Duration(rand.Int64N(int64(r.resync)/5+1))
}

// lookAtComponents reads, from the caches, how what runs does: also where nothing could be planned.
func (r *reconciler) lookAtComponents(ctx context.Context, a *v1alpha1.ZaentrumAddon, o *outcome) error {
	observed, err := r.engine.Cluster.Observe(ctx, owner(a), nil)
	if err != nil {
		return err
	}
	o.found(r.engine.Cluster.Health(owner(a), observed.Owned, apply.Remembered(a.Status.Jobs, nil)))
	return nil
}

// requeueOnConflict looks again soon, and quietly, when something changed between reading and writing.
func requeueOnConflict(result ctrl.Result, err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) || fault.CodeOf(err) == fault.Conflict {
		return ctrl.Result{RequeueAfter: afterStaleCache}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return result, nil
}

// work does what the resource asks for, and says what came of it and when to look again (0: at the next
// resync). An error is one that trying again may heal and that leaves nothing worth telling.
func (r *reconciler) work(ctx context.Context, a *v1alpha1.ZaentrumAddon) (*outcome, time.Duration, error) {
	known, err := r.secretsOf(ctx, a)
	if err != nil {
		return nil, 0, err
	}
	o, next, err := r.workWith(ctx, a, known)
	if o != nil {
		o.known = known
	}
	return o, next, err
}

// workWith adds to the secret values that are known those that it comes across.
func (r *reconciler) workWith(ctx context.Context, a *v1alpha1.ZaentrumAddon, known *secrets) (*outcome, time.Duration, error) {
	if err := chart.CheckName(a.Name); err != nil {
		return failed(reasonName, err.Error()), 0, nil
	}
	platform, problem, err := r.platform(ctx, a.Namespace)
	if err != nil {
		return nil, 0, err
	}
	if problem != "" {
		return failed(reasonPlatform, problem), 0, nil
	}
	if _, err := values.Platform(platform); err != nil {
		return failed(reasonPlatform, err.Error()), 0, nil
	}
	request, err := r.request(ctx, a, platform, known)
	if err != nil {
		return nil, 0, err
	}
	o, next, err := r.engage(ctx, a, request)
	if o != nil {
		r.announce(a, o, known.generated)
		next = max(next, o.again)
	}
	return o, next, err
}

// platform is the one platform of a namespace, or says why there is none.
func (r *reconciler) platform(ctx context.Context, namespace string) (*v1alpha1.Zaentrum, string, error) {
	var list v1alpha1.ZaentrumList
	if err := r.client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, "", err
	}
	switch len(list.Items) {
	case 1:
		return &list.Items[0], "", nil
	case 0:
		return nil, fmt.Sprintf("namespace %s holds no Zaentrum platform: addons live in the platform's namespace", namespace), nil
	default:
		names := make([]string, len(list.Items))
		for i := range list.Items {
			names[i] = list.Items[i].Name
		}
		slices.Sort(names)
		return nil, fmt.Sprintf("namespace %s holds %d Zaentrum platforms (%s): there must be exactly one", namespace, len(names), strings.Join(names, ", ")), nil
	}
}

// request collects what the engine works on, and takes ownership of the values Secrets that are read.
func (r *reconciler) request(ctx context.Context, a *v1alpha1.ZaentrumAddon, platform *v1alpha1.Zaentrum, known *secrets) (*engine.Request, error) {
	from, err := r.resolve(ctx, a, known)
	if err != nil {
		return nil, err
	}
	if err := r.own(ctx, a, from.secrets); err != nil {
		return nil, err
	}
	request := &engine.Request{
		Name: a.Name, Namespace: a.Namespace, Chart: a.Spec.Chart, Platform: platform,
		From: from.from, FromErrors: from.problems, Generated: r.generator(a, known), Jobs: a.Status.Jobs,
	}
	spec, problem := plainValues(a)
	if problem != "" {
		request.FromErrors = append(request.FromErrors, "values: "+problem)
	}
	request.Spec = spec
	request.Depends = func(found *worker.Dependence) {
		r.dependents.note(client.ObjectKeyFromObject(a), found)
		r.dependents.tell(client.ObjectKeyFromObject(a), known)
	}
	request.Did = func(report apply.Report) { r.did(ctx, a, known, report) }
	return request, nil
}

// plainValues are spec.values with their integers kept, or what is wrong with them.
func plainValues(a *v1alpha1.ZaentrumAddon) (map[string]any, string) {
	if a.Spec.Values == nil || len(a.Spec.Values.Raw) == 0 {
		return nil, ""
	}
	decoder := json.NewDecoder(bytes.NewReader(a.Spec.Values.Raw))
	decoder.UseNumber()
	var raw map[string]any
	if decoder.Decode(&raw) != nil {
		return nil, "not a JSON object"
	}
	normal, err := values.Normalize(raw)
	if err != nil {
		return nil, err.Error()
	}
	tree, _ := normal.(map[string]any)
	return tree, ""
}

func failed(reason, message string) *outcome {
	return &outcome{
		phase: v1alpha1.PhaseFailed, message: message,
		planned: condition{metav1.ConditionFalse, reason, message},
		ready:   condition{metav1.ConditionFalse, reasonNotPlanned, message},
	}
}

// troubled is for a plan that could not be made or applied.
func (r *reconciler) troubled(ctx context.Context, a *v1alpha1.ZaentrumAddon, phase v1alpha1.Phase, err error) (*outcome, time.Duration, error) {
	r.sayPanic(ctx, a, err)
	var wait *engine.Waiting
	if errors.As(err, &wait) {
		return &outcome{waiting: wait.What}, wait.After, nil
	}
	if right, ok := apply.Denied(err); ok {
		o := r.lacking(right)
		o.phase = phase
		return o, askAgainMost, nil
	}
	f := new(fault.Fault)
	if !errors.As(err, &f) || f.Code == fault.Conflict { // an object moved meanwhile: look again, and say nothing
		return nil, 0, err
	}
	reason, again := reasonChart, time.Duration(0)
	switch {
	case f.Code == fault.Cluster:
		reason, again = reasonCluster, afterClusterFault
	case f.Code.Means().Retry:
		again = afterRegistryFault
	}
	o := failed(reason, text(err, f))
	o.phase = phase
	return o, again, nil
}

func text(err error, f *fault.Fault) string {
	if f.Hint == "" {
		return err.Error()
	}
	return err.Error() + ": " + f.Hint
}

// planned is the outcome of a suspended addon.
func planned(a *v1alpha1.ZaentrumAddon, p *engine.Previewed) *outcome {
	o := &outcome{plan: p.Plan}
	requested(a, o.plan)
	if p.Blocked() {
		o.phase = v1alpha1.PhasePlanFailed
		o.planned, o.message = blocked(p)
		o.again = retry(p)
	} else {
		o.phase = v1alpha1.PhasePlanned
		o.message = fmt.Sprintf("%s %s is planned: %s", p.Plan.Chart.Name, p.Plan.Chart.Version, counts(p.Plan)) + staleNote(p.Stale)
		o.planned = condition{metav1.ConditionTrue, reasonClean, o.message}
		if !p.Varies && !p.Observed.Asked {
			o.idle = &atRest{chart: fetched(p.Chart.Facts.Digest, p.Stale), owned: p.Observed.Owned, health: p.Health, exact: true}
		}
	}
	o.suspended(a, p.Health)
	return o
}

// retry is when to look again at a plan that is blocked: what the cluster refuses today it may accept when,
// say, a quota was raised, which nothing tells of.
func retry(p *engine.Previewed) time.Duration {
	if p.Refused() {
		return afterRegistryFault
	}
	return 0
}

// requested notes in the plan what the resource asked for when it was made.
func requested(a *v1alpha1.ZaentrumAddon, p *v1alpha1.Plan) {
	p.Chart.Requested = &v1alpha1.AppliedChart{Ref: a.Spec.Chart.Ref, Version: a.Spec.Chart.Version, Digest: a.Spec.Chart.Digest}
}

func staleNote(stale string) string {
	if stale == "" {
		return ""
	}
	return " (" + stale + ")"
}

func blocked(p *engine.Previewed) (condition, string) {
	var parts []string
	reason := reasonViolations
	if n := len(p.Plan.ValuesErrors); n > 0 {
		reason = reasonValues
		parts = append(parts, counted(n, "values error", p.Plan.ValuesErrors[0]))
	}
	if n := len(p.Plan.Violations); n > 0 {
		parts = append(parts, counted(n, "violation", p.Plan.Violations[0]))
	}
	if p.Refused() {
		reason = reasonRefused
	}
	message := "the plan is refused: " + strings.Join(parts, "; ")
	return condition{metav1.ConditionFalse, reason, message}, message
}

// counted is "1 violation: first" or "3 violations, the first: first".
func counted(n int, what, first string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s: %s", what, first)
	}
	return fmt.Sprintf("%d %ss, the first: %s", n, what, first)
}

func counts(p *v1alpha1.Plan) string {
	return fmt.Sprintf("%d objects, %d added, %d changed, %d removed, %d images replaced",
		len(p.Objects), len(p.Changes.Added), len(p.Changes.Modified), len(p.Changes.Removed), len(p.Changes.Images))
}

// converged is the outcome of an addon that is not suspended.
func converged(a *v1alpha1.ZaentrumAddon, c *engine.Converged) (*outcome, time.Duration) {
	o := &outcome{plan: c.Plan}
	o.found(c.Health)
	requested(a, o.plan)
	if c.Blocked() {
		o.phase = v1alpha1.PhaseFailed
		o.planned, o.message = blocked(c.Previewed)
		o.ready = condition{metav1.ConditionFalse, reasonNotPlanned, o.message}
		o.again = retry(c.Previewed)
		return o, 0
	}
	o.planned = condition{metav1.ConditionTrue, reasonClean, counts(c.Plan)}
	if len(c.Report.Refused) > 0 {
		o.phase = v1alpha1.PhaseFailed
		o.message = "the cluster refused " + counted(len(c.Report.Refused), "object", c.Report.Refused[0].String())
		o.ready = condition{metav1.ConditionFalse, reasonRefused, o.message}
		return o, afterRegistryFault
	}
	if c.Applied {
		// What was to change has changed: the next look would say so, and be one more write of the status.
		o.plan.Changes, o.plan.Effects = v1alpha1.Changes{}, nil
		o.planned.message = counts(o.plan)
		o.applied = &v1alpha1.AppliedChart{Ref: a.Spec.Chart.Ref, Version: a.Spec.Chart.Version, Digest: c.Chart.Facts.Digest}
	}
	health := c.Health
	if len(c.Report.Waiting) > 0 {
		health.State, health.Reason = apply.Installing, fmt.Sprintf("waiting for the old %s to be gone", c.Report.Waiting[0])
	}
	o.running(health)
	o.message += staleNote(c.Stale) + leavingNote(c)
	if c.Applied && len(c.Report.Applied)+len(c.Pruned) == 0 && !c.Varies && !c.Observed.Asked {
		o.idle = &atRest{chart: fetched(c.Chart.Facts.Digest, c.Stale), owned: c.Observed.Owned, health: health}
	}
	return o, 0
}

// leavingNote names what the chart does not render any more and what is deleted but not gone: something holds on to it.
func leavingNote(c *engine.Converged) string {
	wanted := c.Wanted.IDs()
	var leaving []string
	for _, id := range c.Observed.Terminating {
		if slices.Contains(wanted, id) {
			continue
		}
		note := id.String()
		if o, ok := c.Observed.Owned.Find(id); ok {
			if holds := o.Unstructured().GetFinalizers(); len(holds) > 0 {
				note += " (held by " + strings.Join(holds, ", ") + ")"
			}
		}
		leaving = append(leaving, note)
	}
	if len(leaving) == 0 {
		return ""
	}
	return cut("; no longer rendered, and still being deleted: "+strings.Join(leaving, ", "), maxMessage/2)
}

// readiness is the condition Ready for a health.
func readiness(h apply.Health) condition {
	switch h.State {
	case apply.Ready:
		return condition{metav1.ConditionTrue, reasonReady, fmt.Sprintf("%d of %d components are ready", len(h.Components), len(h.Components))}
	case apply.Installing:
		return condition{metav1.ConditionFalse, reasonProgressing, h.Reason}
	default:
		return condition{metav1.ConditionFalse, reasonDegraded, h.Reason}
	}
}
