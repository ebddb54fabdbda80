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
			out.Plan.Changes.Modified = append(out.Plan.Changes.Modified, v1alpha1.ModifiedObject{Kind: id.Kind, Name: id.Name})
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
