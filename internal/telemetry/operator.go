package telemetry

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"zaentrum.io/zae/internal/apply"
	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/engine"
	"zaentrum.io/zae/internal/manifest"
	"zaentrum.io/zae/internal/worker"
)

// stepFetch is the time of one fetch of a chart, which the engine may not wait for.
const stepFetch engine.Step = "fetch"

// seconds are the buckets of times: from a look at a cache to the longest a fetch may take.
var seconds = []float64{.001, .005, .02, .1, .5, 2, 10, 30}

// OperatorOptions say what an Operator tells of, and to whom. All may be left out.
type OperatorOptions struct {
	// Registerer takes the metrics.
	Registerer prometheus.Registerer
	// Tracing takes the spans.
	Tracing *Tracing
	// Chart and Worker tell what fetching and rendering came to, whenever metrics are asked for.
	Chart  func() chart.Stats
	Worker func() worker.Stats
}

// Operator is what an operator tells of itself. It is safe for use by several goroutines.
type Operator struct {
	tracing *Tracing
	addons  *addons

	steps                           *prometheus.HistogramVec
	applied, pruned, reruns, drifts *prometheus.CounterVec
	saved, looks, statusWrites      prometheus.Counter
}

// NewOperator registers the metrics. It fails when the registerer has them already: there is one Operator for each.
func NewOperator(o OperatorOptions) (*Operator, error) {
	if o.Registerer == nil {
		o.Registerer = prometheus.NewRegistry()
	}
	byKind := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"kind"})
	}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	t := &Operator{
		tracing: o.Tracing, addons: &addons{},
		steps: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "zae_step_duration_seconds", Help: "Time of the parts of a reconcile, by part and result.", Buckets: seconds,
		}, []string{"step", "result"}),
		applied:      byKind("zae_objects_applied_total", "Objects created or changed, by kind."),
		pruned:       byKind("zae_objects_pruned_total", "Objects deleted because the chart does not render them any more, by kind."),
		reruns:       byKind("zae_objects_rerun_total", "Jobs deleted to run again, because they changed."),
		drifts:       byKind("zae_drift_corrections_total", "Objects that somebody had changed or deleted, and that were put back, by kind."),
		saved:        counter("zae_apply_requests_saved_total", "Objects for which no request was made, because they were as wanted."),
		looks:        counter("zae_settled_looks_total", "Reconciles that needed no rendering, because nothing had changed since the last one."),
		statusWrites: counter("zae_status_writes_total", "Writes of an addon's status."),
	}
	for _, step := range append([]engine.Step{stepFetch}, engine.Steps...) {
		for _, result := range []string{resultOK, resultFailed} {
			t.steps.WithLabelValues(string(step), result)
		}
	}
	collectors := []prometheus.Collector{t.steps, t.applied, t.pruned, t.reruns, t.drifts, t.saved, t.looks, t.statusWrites, t.addons}
	if o.Chart != nil {
		collectors = append(collectors, chartStats{o.Chart})
	}
	if o.Worker != nil {
		collectors = append(collectors, workerStats{o.Worker})
	}
	for _, c := range collectors {
		if err := o.Registerer.Register(c); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// Kinds are the kinds that there can be objects of. Their counters start at 0 instead of appearing one by one.
func (t *Operator) Kinds(kinds ...string) {
	for _, kind := range kinds {
		for _, v := range []*prometheus.CounterVec{t.applied, t.pruned, t.drifts} {
			v.WithLabelValues(kind)
		}
	}
	t.reruns.WithLabelValues("Job")
}

const (
	resultOK     = "ok"
	resultFailed = "failed"
)

// Step notes the time of a part of a reconcile. It is an engine's Watch.
func (t *Operator) Step(ctx context.Context, step engine.Step) (end func(error)) {
	start := time.Now()
	return func(err error) {
		now := time.Now()
		if errors.Is(err, context.Canceled) {
			return // the operator ends
		}
		result := resultOK
		if err != nil {
			result = resultFailed
		}
		t.steps.WithLabelValues(string(step), result).Observe(now.Sub(start).Seconds())
		passOf(ctx).step(string(step), start, now, err)
	}
}

// Fetch notes the time of a fetch, which may end after the reconcile that started it.
func (t *Operator) Fetch(ctx context.Context) (end func(error)) { return t.Step(ctx, stepFetch) }

// Applied notes what an apply did.
func (t *Operator) Applied(ctx context.Context, r apply.Report) {
	count(t.applied, r.Applied)
	count(t.reruns, r.Rerun)
	for _, d := range r.Drifted {
		t.drifts.WithLabelValues(d.ID.Kind).Inc()
	}
	t.saved.Add(float64(len(r.Unchanged)))
	if len(r.Applied)+len(r.Rerun) > 0 {
		passOf(ctx).did()
	}
}

// Recreated notes objects that somebody had deleted.
func (t *Operator) Recreated(ids []manifest.ID) { count(t.drifts, ids) }

// Pruned notes what was deleted because it is not wanted any more.
func (t *Operator) Pruned(ctx context.Context, ids []manifest.ID) {
	count(t.pruned, ids)
	if len(ids) > 0 {
		passOf(ctx).did()
	}
}

// Settled notes a reconcile that needed no rendering, of an addon with that many objects.
func (t *Operator) Settled(objects int) {
	t.looks.Inc()
	t.saved.Add(float64(objects))
}

// StatusWritten notes a write of a status.
func (t *Operator) StatusWritten(ctx context.Context) {
	t.statusWrites.Inc()
	passOf(ctx).did()
}

func count(v *prometheus.CounterVec, ids []manifest.ID) {
	for _, id := range ids {
		v.WithLabelValues(id.Kind).Inc()
	}
}
