package engine

import (
	"context"
	"fmt"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apply"
	"zaentrum.io/zae/internal/guard"
	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/manifest"
	"zaentrum.io/zae/internal/plan"
)

// Previewed is the outcome of Preview.
type Previewed struct {
	*Checked
	// Wanted are the objects as they would be applied, in apply order; none when the plan is blocked.
	Wanted manifest.Set
	// Observed is what the cluster holds of this addon.
	Observed *apply.Observation
	// Rehearsal is what the cluster says about applying Wanted. It is nil when the plan is blocked before the
	// cluster is asked.
	Rehearsal *apply.Rehearsal
	Plan      *v1alpha1.Plan
	// Resting are Jobs that have run, are no longer there because somebody deleted them, and have not changed since:
	// they are not wanted.
	Resting []manifest.ID
	// Health is how what the cluster holds of the addon does.
	Health apply.Health
	// Calm tells that the objects are left as they are for now, as the request asked for.
	Calm bool
}

// Blocked tells whether something forbids applying: the chart, the values, a guardrail or the cluster.
func (p *Previewed) Blocked() bool { return p.Checked.Blocked() || p.Refused() }

// Refused tells whether the cluster does not accept an object.
func (p *Previewed) Refused() bool { return p.Rehearsal != nil && len(p.Rehearsal.Refused) > 0 }

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
		LabelPrefix:        v1alpha1.GroupVersion.Group + "/",
		PodLabel:           v1alpha1.LabelAddon,
		ChecksumAnnotation: v1alpha1.AnnotationValuesChecksum,
		Checksum:           checksum,
	}
}

// Preview checks, looks at the cluster and computes the plan. It writes nothing: what would change, and whether
// the cluster accepts it, is found out in dry runs, which are not repeated while nothing changes.
func (e *Engine) Preview(ctx context.Context, r Request, owner apply.Owner) (*Previewed, error) {
	out, err := e.preview(ctx, r, owner, true)
	if err != nil {
		return nil, err
	}
	out.Health = e.Cluster.Health(owner, out.Observed.Owned, apply.Remembered(r.Jobs, nil))
	return out, nil
}

// preview asks the cluster anew without recall.
func (e *Engine) preview(ctx context.Context, r Request, owner apply.Owner, recall bool) (*Previewed, error) {
	checked, err := e.Check(ctx, r)
	if err != nil {
		return nil, err
	}
	out := &Previewed{Checked: checked}
	marks := Marks(owner, checked.PartOf, checked.Checksum)
	// Jobs that have run are not looked for: they are in the cache, or gone and not missed.
	ids := without(checked.Objects, apply.Resting(checked.Objects, marks, r.Jobs, nil)).IDs()
	end := e.step(ctx, StepObserve)
	out.Observed, err = e.Cluster.Observe(ctx, owner, ids)
	end(err)
	if err != nil {
		return nil, err
	}
	out.Resting = apply.Resting(checked.Objects, marks, r.Jobs, out.Observed.Owned)
	if taken := len(out.Observed.Taken); taken > 0 && taken == len(out.Observed.Leaving) && !checked.Blocked() {
		// What stands in the way is what an addon of this name left, and will be gone in a moment.
		return nil, &Waiting{What: fmt.Sprintf("waiting for the former %s to be gone", out.Observed.Leaving[0]), After: afterLeaving}
	}
	checked.Findings = append(checked.Findings, guard.CheckOwnership(out.Observed.Taken)...)
	out.Plan = checked.Plan(out.Observed.Owned)
	out.Plan.Changes.Added = notResting(out.Plan.Changes.Added, out.Resting)
	if checked.Blocked() {
		return out, nil
	}
	out.Wanted = apply.Decorate(without(checked.Objects, out.Resting), marks)
	if out.Calm = r.Calm != nil && r.Calm(checked); out.Calm {
		return out, nil
	}
	astray, err := e.traffic(ctx, owner, out.Wanted, out.Observed.Owned, recall)
	if err != nil {
		return nil, err
	}
	if len(astray) > 0 {
		checked.Findings = append(checked.Findings, astray...)
		judged(out.Plan, checked)
		out.Wanted = nil
		return out, nil
	}
	end = e.step(ctx, StepRehearse)
	out.Rehearsal, err = e.Cluster.Rehearse(ctx, owner, out.Wanted, out.Observed, recall)
	end(err)
	if err != nil {
		return nil, err
	}
	for _, refusal := range out.Rehearsal.Refused {
		out.Plan.Violations = append(out.Plan.Violations, refusal.String())
	}
	plan.Detail(out.Plan, changes(out.Rehearsal))
	runsAgain(out.Plan, r.Jobs)
	return out, nil
}

// Plan is the plan as far as it can be made without asking a cluster: owned is what runs of the addon, nothing for
// one that is new.
func (c *Checked) Plan(owned manifest.Set) *v1alpha1.Plan {
	p := plan.Compute(plan.Input{
		Chart: c.Chart.Facts, Schema: string(inputs.WithoutSecretDefaults(c.Chart.Schema)), ValuesErrors: c.ValuesErrors, Wanted: c.Objects, Owned: owned,
	})
	p.Inputs = c.Inputs
	judged(p, c)
	return p
}

func changes(r *apply.Rehearsal) []plan.Change {
	var out []plan.Change
	for _, ch := range r.Changes {
		out = append(out, plan.Change{
			Ref:    v1alpha1.ObjectRef{Kind: ch.ID.Kind, Name: ch.ID.Name},
			Fields: ch.Fields, Rerun: ch.Rerun, Leaving: ch.Leaving, Unknown: ch.Unknown, Refused: ch.Refused,
		})
	}
	return out
}
