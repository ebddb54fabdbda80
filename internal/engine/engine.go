// Package engine is the order of work, written once: what the operator, the command line and, through
// the resource's status, the API say about an addon comes from here, in the same words.
//
//   - Check: fetch, layer values, validate, render, guard. Needs no cluster.
//   - Preview: Check, then observe the cluster and compute the plan. Only reads.
//   - Converge: Preview, then apply, prune, read health. Writes.
//
// Each is the one before plus a step outward. A refusal is a value in the outcome; an error means that
// there is no outcome. The engine never waits for the cluster: watches wake its caller.
package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apply"
	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/guard"
	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/manifest"
	"zaentrum.io/zae/internal/plan"
	"zaentrum.io/zae/internal/render"
	"zaentrum.io/zae/internal/values"
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
}

// Checked is the outcome of Check.
type Checked struct {
	Chart *chart.Chart
	// Stale, when not empty, says that the registry did not answer and the archive at hand was used.
	Stale string
	// Checksum is of the merged values.
	Checksum string
	Inputs   []inputs.Input
	// ValuesErrors are sorted; none of them carries a value.
	ValuesErrors []string
	// PartOf is the value of the label app.kubernetes.io/part-of.
	PartOf string
	// Objects are the rendered objects as the chart wrote them; none when there are values errors.
	Objects  manifest.Set
	Findings []guard.Finding
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

// Engine does the work, for several addons at the same time if need be. Cluster may be nil when only Check is
// called. It must not be copied.
type Engine struct {
	Fetch   Fetcher
	Cluster *apply.Cluster

	schemas schemas
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
	c, err := chart.Load(archive)
	if err != nil {
		return nil, err
	}
	out := &Checked{
		Chart: c, Stale: archive.Stale, ValuesErrors: slices.Clone(r.FromErrors), PartOf: text(platform, "partOf"),
	}

	schema, err := e.schemas.of(c)
	if err != nil {
		out.ValuesErrors = append(out.ValuesErrors, err.Error())
	} else {
		out.Inputs = schema.Inputs()
	}
	for _, in := range out.Inputs {
		if in.Secret {
			if _, given := values.Get(r.Spec, strings.Split(in.Path, ".")); given && !in.Unaddressable {
				out.ValuesErrors = append(out.ValuesErrors, in.Path+": is a secret input and stands in the plain values: take it out of values and give it as a secret")
			}
		}
	}
	merged, err := e.merge(ctx, r, c, out.Inputs, platform)
	if err != nil {
		return nil, err
	}
	out.Checksum = values.Checksum(merged)
	if schema != nil {
		out.ValuesErrors = append(out.ValuesErrors, schema.Validate(merged)...)
	}
	if len(out.ValuesErrors) == 0 {
		out.Objects, out.ValuesErrors = render.Render(ctx, render.Input{
			Chart: c, Name: r.Name, Namespace: r.Namespace, Values: merged,
		})
	}
	if err := ctx.Err(); err != nil { // what was rendered under an ended context says nothing about the chart
		return nil, err
	}
	slices.Sort(out.ValuesErrors)
	out.ValuesErrors = slices.Compact(out.ValuesErrors)
	out.Findings = guard.Check(facts(r, c, out.Objects, platform, len(out.ValuesErrors) == 0))
	return out, nil
}

// merge layers the values, with generated ones for the inputs that nobody gave.
func (e *Engine) merge(ctx context.Context, r Request, c *chart.Chart, in []inputs.Input, platform map[string]any) (map[string]any, error) {
	layers := values.Layers{Defaults: c.Defaults, Subcharts: c.Subcharts, Spec: r.Spec, From: r.From, Platform: platform}
	var wanted []inputs.Input
	for _, input := range in {
		if input.Generate != "" && !layers.Given(input.Path) {
			wanted = append(wanted, input)
		}
	}
	if len(wanted) > 0 && r.Generated != nil {
		generated, err := r.Generated(ctx, wanted)
		if err != nil {
			return nil, fmt.Errorf("generated values: %w", err)
		}
		layers.Generated = generated
	}
	return layers.Merged(), nil
}

// facts are what the guardrails look at. When nothing could be rendered, only the chart is judged.
func facts(r Request, c *chart.Chart, objects manifest.Set, platform map[string]any, rendered bool) guard.Facts {
	f := guard.Facts{
		Addon: r.Name, Namespace: r.Namespace,
		Chart: guard.ChartFacts{
			APIVersion: c.APIVersion, Type: c.Type, Annotations: c.Annotations, CRDs: c.CRDs,
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

// Previewed is the outcome of Preview.
type Previewed struct {
	*Checked
	// Wanted are the objects as they would be applied, in apply order; none when the plan is blocked.
	Wanted manifest.Set
	// Observed is what the cluster holds of this addon.
	Observed *apply.Observation
	Plan     *v1alpha1.Plan
}

// Marks says how to mark what is applied as belonging to an addon (contract §3).
func Marks(owner apply.Owner, partOf, checksum string) apply.Marks {
	return apply.Marks{
		Owner: owner,
		Labels: map[string]string{
			v1alpha1.LabelAddon:     owner.Name,
			v1alpha1.LabelManagedBy: v1alpha1.ManagedBy,
			v1alpha1.LabelInstance:  owner.Name,
			v1alpha1.LabelPartOf:    partOf,
		},
		ComponentLabel:     v1alpha1.LabelComponent,
		ChecksumAnnotation: v1alpha1.AnnotationValuesChecksum,
		Checksum:           checksum,
	}
}

// Preview checks, looks at the cluster and computes the plan. It only reads.
func (e *Engine) Preview(ctx context.Context, r Request, owner apply.Owner) (*Previewed, error) {
	checked, err := e.Check(ctx, r)
	if err != nil {
		return nil, err
	}
	out := &Previewed{Checked: checked}
	ids := checked.Objects.IDs()
	if out.Observed, err = e.Cluster.Observe(ctx, owner, ids); err != nil {
		return nil, err
	}
	if taken := len(out.Observed.Taken); taken > 0 && taken == len(out.Observed.Leaving) && !checked.Blocked() {
		// What stands in the way is what an addon of this name left, and will be gone in a moment.
		return nil, &Waiting{What: fmt.Sprintf("waiting for the former %s to be gone", out.Observed.Leaving[0]), After: afterLeaving}
	}
	checked.Findings = append(checked.Findings, guard.CheckOwnership(out.Observed.Taken)...)
	out.Plan = plan.Compute(plan.Input{
		Chart:        checked.Chart.Facts(),
		Schema:       schemaText(checked.Chart.Schema),
		ValuesErrors: checked.ValuesErrors,
		Violations:   violations(checked.Findings),
		Wanted:       checked.Objects,
		Owned:        out.Observed.Owned,
	})
	if !out.Blocked() {
		out.Wanted = apply.Decorate(checked.Objects, Marks(owner, checked.PartOf, checked.Checksum))
		for _, id := range e.Cluster.Changed(out.Wanted, out.Observed) {
			out.Plan.Changes.Modified = append(out.Plan.Changes.Modified, v1alpha1.ObjectRef{Kind: id.Kind, Name: id.Name})
		}
	}
	return out, nil
}

func schemaText(schema []byte) string {
	if len(schema) > inputs.MaxSchemaBytes {
		return ""
	}
	return string(schema)
}

func violations(findings []guard.Finding) []string {
	var out []string
	for _, f := range findings {
		if refusal(f) {
			out = append(out, f.String())
		}
	}
	return out
}

// Converged is the outcome of Converge.
type Converged struct {
	*Previewed
	// Applied tells whether the whole set is applied and the rest pruned. It is false when the plan is
	// blocked, when the cluster refused something, and while an object waits for its predecessor to go.
	Applied bool
	Report  apply.Report
	// Pruned is what the chart no longer renders and was deleted.
	Pruned []manifest.ID
	// Live is what the cluster holds of the addon now, and Health how it does.
	Live   manifest.Set
	Health apply.Health
}

// Converge makes the cluster hold what the chart says, unless the plan is blocked.
func (e *Engine) Converge(ctx context.Context, r Request, owner apply.Owner) (*Converged, error) {
	previewed, err := e.Preview(ctx, r, owner)
	if err != nil {
		return nil, err
	}
	out := &Converged{Previewed: previewed, Live: previewed.Observed.Owned}
	if !previewed.Blocked() {
		if err := e.converge(ctx, owner, out); err != nil {
			return nil, err
		}
	}
	out.Health = apply.Assess(out.Live)
	return out, nil
}

func (e *Engine) converge(ctx context.Context, owner apply.Owner, out *Converged) error {
	var err error
	if out.Report, err = e.Cluster.Apply(ctx, owner, out.Wanted, out.Observed); err != nil {
		return err
	}
	if len(out.Report.Taken) > 0 { // somebody made it between the look and the write
		taken := guard.CheckOwnership(out.Report.Taken)
		out.Findings = append(out.Findings, taken...)
		out.Plan.Violations = append(out.Plan.Violations, violations(taken)...)
		return nil
	}
	if len(out.Report.Refused) > 0 {
		return nil
	}
	out.Live = out.Report.Live
	if !out.Report.Complete() {
		return nil
	}
	if out.Pruned, err = e.Cluster.Prune(ctx, owner, out.Wanted.IDs(), out.Observed); err != nil {
		return err
	}
	out.Applied = true
	return nil
}
