// Package engine is the order of work, written once: what the operator, the command line and, through
// the resource's status, the API say about an addon comes from here, in the same words.
//
//   - Check: fetch, layer values, validate, render, guard. Needs no cluster.
//   - Preview: Check, then observe the cluster, rehearse what would change, and compute the plan. Writes nothing.
//   - Converge: Preview, then apply, prune, read health. Writes.
//
// Each is the one before plus a step outward. A refusal is a value in the outcome; an error means that
// there is no outcome. The engine never waits for the cluster: watches wake its caller.
package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apply"
	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/guard"
	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/manifest"
	"zaentrum.io/zae/internal/values"
	"zaentrum.io/zae/internal/worker"
)

// Fetcher gets chart archives. *chart.Fetcher is one.
type Fetcher interface {
	Fetch(ctx context.Context, src v1alpha1.ChartSource) (*chart.Archive, error)
}

// Generator answers with a value for every generated input it is asked for, by dotted path: the one that
// is kept, or a new one that it keeps before it answers.
type Generator func(ctx context.Context, wanted []inputs.Input) (map[string]string, error)

// Request is what to work on.
type Request struct {
	Name      string // the addon's, which is the release's
	Namespace string
	Chart     v1alpha1.ChartSource
	Platform  *v1alpha1.Zaentrum

	Spec map[string]any // spec.values
	From []values.From  // spec.valuesFrom, resolved, in order
	// FromErrors are the values errors met while resolving spec.valuesFrom.
	FromErrors []string
	// Generated is asked for generated inputs that nobody gave a value for.
	Generated Generator
	// Verbatim has template errors end with the chart's own words, which may quote any value. The operator never
	// asks for it.
	Verbatim bool
	// Jobs are the runs of the addon's Jobs as its status remembers them.
	Jobs []v1alpha1.JobRun
	// Calm tells of what was found whether to leave the objects as they are for now, and only look at them.
	// May be nil.
	Calm func(*Checked) bool
	// Depends is told what of the objects depends on secrets, before anything else is told of them; nil where nothing
	// can. May be nil.
	Depends func(*worker.Dependence)
	// Did is told what was applied, also when an error ended it half way. May be nil.
	Did func(apply.Report)
}

// Checked is the outcome of Check.
type Checked struct {
	Chart *worker.Chart
	// Stale, when not empty, says that the registry did not answer and the archive at hand was used.
	Stale string
	// Checksum is of the merged values.
	Checksum string
	// Inputs tell where the value of each of the chart's inputs comes from.
	Inputs []v1alpha1.PlanInput
	// ValuesErrors are sorted; none of them carries a value.
	ValuesErrors []string
	// Warnings forbid nothing.
	Warnings []string
	// Dependence is what of the objects depends on secrets; nil where nothing does.
	Dependence *worker.Dependence
	// Varies tells that the chart does not render the same each time.
	Varies bool
	// PartOf is the value of the label app.kubernetes.io/part-of.
	PartOf string
	// Objects are the rendered objects as the chart wrote them; none when there are values errors.
	Objects manifest.Set
	// Findings are what the guardrails found, and Notices what an admin should know besides; none of these forbids
	// anything.
	Findings []guard.Finding
	Notices  []guard.Finding
}

// Blocked tells whether something forbids applying.
func (c *Checked) Blocked() bool {
	return len(c.ValuesErrors) > 0 || slices.ContainsFunc(c.Findings, refusal)
}

func refusal(f guard.Finding) bool { return f.Level == guard.Refuse }

// Waiting is an error that says that the work cannot go on yet: nothing is wrong, and something will wake the
// caller, at the latest after the time given.
type Waiting struct {
	What  string
	After time.Duration
}

// Error is what is waited for.
func (w *Waiting) Error() string { return w.What }

// afterLeaving is how soon to look again for an object that is on its way out, and that no watch may tell of.
const afterLeaving = time.Second

// Worker reads and renders charts. *worker.Pool is one, where no chart can hurt its caller.
type Worker interface {
	Inspect(ctx context.Context, a *chart.Archive) (*worker.Chart, error)
	Render(ctx context.Context, a *chart.Archive, j worker.Job) (*worker.Result, error)
}

// Engine does the work, for several addons at the same time if need be. Cluster may be nil when only Check is
// called.
type Engine struct {
	Fetch   Fetcher
	Worker  Worker
	Cluster *apply.Cluster
	// Watch is told of each step when it begins; what it answers is called when the step ends. May be nil.
	Watch func(context.Context, Step) (end func(error))
}

// Step is a part of the work, by the name under which its time is measured. Fetching is not among them: it may be
// shared, and go on when the engine does not wait for it any more, so that a Fetcher measures it.
type Step string

// The steps.
const (
	StepInspect  Step = "inspect"  // load the chart and read its schema, in a worker
	StepRender   Step = "render"   // merge and validate values, and render, in a worker
	StepObserve  Step = "observe"  // read what the cluster has
	StepRehearse Step = "rehearse" // ask in dry runs
	StepApply    Step = "apply"
	StepPrune    Step = "prune"
)

// Steps are all steps, in order.
var Steps = []Step{StepInspect, StepRender, StepObserve, StepRehearse, StepApply, StepPrune}

func (e *Engine) step(ctx context.Context, s Step) (end func(error)) {
	if e.Watch == nil {
		return func(error) {}
	}
	return e.Watch(ctx, s)
}

// Check fetches the chart and finds everything that is wrong with it and with its values. It needs no
// cluster. The error is a fault: the chart cannot be fetched or loaded, or the platform's values cannot
// be derived.
func (e *Engine) Check(ctx context.Context, r Request) (*Checked, error) {
	platform, err := values.Platform(r.Platform)
	if err != nil {
		return nil, err
	}
	archive, err := e.Fetch.Fetch(ctx, r.Chart)
	if err != nil {
		return nil, err
	}
	end := e.step(ctx, StepInspect)
	c, err := e.Worker.Inspect(ctx, archive)
	end(err)
	if err != nil {
		return nil, unreadable(r.Chart, err)
	}
	out := &Checked{
		Chart: c, Stale: archive.Stale, ValuesErrors: slices.Clone(r.FromErrors), PartOf: text(platform, "partOf"),
	}
	generated, err := e.generated(ctx, r, c.Inputs)
	if err != nil {
		return nil, err
	}
	end = e.step(ctx, StepRender)
	result, err := e.Worker.Render(ctx, archive, worker.Job{
		Name: r.Name, Namespace: r.Namespace, Spec: r.Spec, From: r.From, Generated: generated, Platform: platform,
		ValidateOnly: len(r.FromErrors) > 0, // what is missing then would be told twice
		Verbatim:     r.Verbatim,
		Dependence:   true,
	})
	end(err)
	var over *worker.Overrun
	switch {
	case errors.As(err, &over):
		result = &worker.Result{ValuesErrors: []string{"rendering the chart was stopped: " + over.What}}
	case err != nil:
		return nil, err
	}
	out.Checksum, out.Inputs, out.Warnings = result.Checksum, result.Inputs, result.Warnings
	if out.Dependence = result.Dependence; r.Depends != nil {
		r.Depends(out.Dependence)
	}
	out.Varies = len(result.Warnings) > 0
	out.Warnings = append(slices.Clone(result.Warnings), result.Leaks...)
	out.ValuesErrors = append(out.ValuesErrors, result.ValuesErrors...)
	if len(out.ValuesErrors) == 0 {
		out.Objects = result.Objects
	}
	slices.Sort(out.ValuesErrors)
	out.ValuesErrors = slices.Compact(out.ValuesErrors)
	judge := Facts(r.Name, r.Namespace, c, out.Objects, platform, len(out.ValuesErrors) == 0)
	out.Findings, out.Notices = guard.Check(judge), guard.Notices(judge)
	return out, nil
}

// unreadable is the fault of a chart that needs too much to be read.
func unreadable(src v1alpha1.ChartSource, err error) error {
	var over *worker.Overrun
	if !errors.As(err, &over) {
		return err
	}
	return fault.New(fault.Overrun, "chart %s: reading it was stopped: %s", src.Ref, over.What).Because(err)
}

// generated are the values of the generated inputs that nobody gave.
func (e *Engine) generated(ctx context.Context, r Request, in []inputs.Input) (map[string]string, error) {
	layers := values.Layers{Spec: r.Spec, From: r.From}
	var wanted []inputs.Input
	for _, input := range in {
		if input.Generate != "" && !layers.Given(input.Path) {
			wanted = append(wanted, input)
		}
	}
	if len(wanted) == 0 || r.Generated == nil {
		return nil, nil
	}
	generated, err := r.Generated(ctx, wanted)
	if err != nil {
		return nil, fmt.Errorf("generated values: %w", err)
	}
	return generated, nil
}

// Facts are what the guardrails look at: an addon's chart, what was rendered of it, and what the platform hands
// out. When nothing could be rendered, only the chart is judged.
func Facts(addon, namespace string, c *worker.Chart, objects manifest.Set, platform map[string]any, rendered bool) guard.Facts {
	f := guard.Facts{
		Addon: addon, Namespace: namespace,
		Chart: guard.ChartFacts{
			APIVersion: c.APIVersion, Type: c.Type, Annotations: c.Facts.Annotations, CRDs: c.CRDs,
		},
		Objects: objects, NotRendered: !rendered,
	}
	f.MediaClaim = text(platform, "media", "claimName")
	f.EventsTLSSecret = text(platform, "events", "tlsSecret")
	if list, ok := values.Get(platform, []string{"imagePullSecrets"}); ok {
		names, _ := list.([]any)
		for _, n := range names {
			if s, ok := n.(string); ok {
				f.ImagePullSecrets = append(f.ImagePullSecrets, s)
			}
		}
	}
	return f
}

func text(tree map[string]any, path ...string) string {
	v, _ := values.Get(tree, path)
	s, _ := v.(string)
	return s
}
