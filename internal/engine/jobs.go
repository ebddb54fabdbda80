package engine

import (
	"slices"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apply"
	"zaentrum.io/zae/internal/manifest"
)

// without is the set without some of its objects.
func without(set manifest.Set, ids []manifest.ID) manifest.Set {
	if len(ids) == 0 {
		return set
	}
	return slices.DeleteFunc(slices.Clone(set), func(o manifest.Object) bool { return slices.Contains(ids, o.ID()) })
}

// notResting are the objects of a plan but for Jobs that rest: they are not there, and do not come.
func notResting(refs []v1alpha1.ObjectRef, resting []manifest.ID) []v1alpha1.ObjectRef {
	if len(resting) == 0 {
		return refs
	}
	return slices.DeleteFunc(refs, func(r v1alpha1.ObjectRef) bool {
		return slices.ContainsFunc(resting, func(id manifest.ID) bool { return id.Kind == r.Kind && id.Name == r.Name })
	})
}

// runsAgain adds to a plan's effects the Jobs that come back changed, after they had run and somebody deleted them.
func runsAgain(p *v1alpha1.Plan, before []v1alpha1.JobRun) {
	for _, r := range p.Changes.Added {
		if r.Kind == "Job" && slices.ContainsFunc(before, func(j v1alpha1.JobRun) bool { return j.Deleted && j.Name == r.Name }) {
			p.Effects = append(p.Effects, r.String()+" runs again: it changes, and the one that ran was deleted")
		}
	}
}

// remembered are the runs that are over and still count. Once the chart's objects are applied, those are the
// runs of what it renders now: a Job that it renders no more, or in another way, starts anew when it is back.
func (c *Converged) remembered(r Request, owner apply.Owner) []v1alpha1.JobRun {
	if c.Blocked() || c.Calm || len(r.Jobs) == 0 {
		return apply.Remembered(r.Jobs, nil)
	}
	marks := Marks(owner, c.PartOf, c.Checksum)
	wanted := map[string]bool{}
	for _, o := range c.Objects {
		if o.ID().Kind == "Job" {
			wanted[apply.Run(o, marks)] = true
		}
	}
	return apply.Remembered(r.Jobs, func(run string) bool { return wanted[run] })
}
