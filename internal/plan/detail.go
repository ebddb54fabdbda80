package plan

import (
	"fmt"
	"slices"
	"strings"

	"zaentrum.io/zae/api/v1alpha1"
)

// Change is an object that exists and that installing would change.
type Change struct {
	Ref v1alpha1.ObjectRef
	// Fields are the paths of what would change, sorted.
	Fields []string
	// Rerun tells that the object is a Job that runs again.
	Rerun bool
	// Leaving tells that the object is being deleted, and is created anew once it is gone.
	Leaving bool
	// Unknown tells that what would change cannot be known beforehand.
	Unknown bool
	// Refused tells that the cluster does not accept the change.
	Refused bool
}

// MaxFields is the most fields of one object that a plan names; of the others it says how many there are.
const MaxFields = 40

// maxEffectFields is the most fields that one effect names.
const maxEffectFields = 5

// Detail adds to a plan what the changes would write, and what installing would set off: first for each changed
// object in the changes' order, then for claims that go.
func Detail(p *v1alpha1.Plan, changes []Change) {
	for _, ch := range changes {
		p.Changes.Modified = append(p.Changes.Modified, v1alpha1.ModifiedObject{
			Kind: ch.Ref.Kind, Name: ch.Ref.Name, Fields: Cut(ch.Fields, MaxFields),
		})
		if effect := effectOf(ch); effect != "" {
			p.Effects = append(p.Effects, ch.Ref.String()+" "+effect)
		}
	}
	for _, r := range p.Changes.Removed {
		if r.Kind == "PersistentVolumeClaim" {
			p.Effects = append(p.Effects, r.String()+" is deleted, and with it, depending on the storage class, its data")
		}
	}
}

// Generates is the effect of a generated input that got its value for this plan.
func Generates(path string) string { return "generates " + path }

// effectOf is what a change sets off beyond itself; empty for nothing.
func effectOf(ch Change) string {
	template, others := split(ch.Fields)
	switch {
	case ch.Refused:
		return ""
	case ch.Leaving && ch.Rerun:
		return "runs again: the one there is being deleted"
	case ch.Leaving:
		return "is being deleted, and is created anew once it is gone"
	case ch.Rerun && len(template) > 0:
		return "runs again: its pod template changes (" + list(template) + ")"
	case ch.Rerun && len(others) > 0:
		return "runs again: what cannot be changed on a Job changes (" + list(others) + ")"
	case ch.Rerun:
		return "runs again"
	case ch.Unknown && ch.Ref.Kind == "Job":
		return "may run again: the cluster does not tell beforehand"
	case ch.Unknown && ch.Ref.Kind == "Deployment":
		return "may roll its pods: the cluster does not tell beforehand"
	case ch.Ref.Kind == "Deployment" && len(template) > 0:
		return "rolls its pods: " + list(template)
	}
	return ""
}

// split tells the fields of a pod template, which it shortens, from the others.
func split(fields []string) (template, others []string) {
	for _, f := range fields {
		switch below, ok := strings.CutPrefix(f, "spec.template."); {
		case ok:
			template = append(template, short(below))
		case f == "spec.template":
			template = append(template, f)
		default:
			others = append(others, f)
		}
	}
	return template, others
}

// short is a path below a pod template without what goes without saying.
func short(path string) string {
	if path == "metadata.annotations["+v1alpha1.AnnotationValuesChecksum+"]" {
		return "values checksum"
	}
	return strings.TrimPrefix(path, "spec.")
}

func list(paths []string) string {
	return strings.Join(Cut(paths, maxEffectFields), ", ")
}

// Cut is the list with at most limit entries, the last of which then says how many are left out.
func Cut(list []string, limit int) []string {
	if len(list) <= limit {
		return list
	}
	return append(slices.Clone(list[:limit-1]), fmt.Sprintf("… and %d more", len(list)-limit+1))
}
