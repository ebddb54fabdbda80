package apply

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/internal/manifest"
)

// Report is what an apply did. Every list is in apply order.
type Report struct {
	// Applied were created or changed.
	Applied []manifest.ID
	// Unchanged were as wanted: no request was made for them.
	Unchanged []manifest.ID
	// Rerun are Jobs that were deleted because they changed; they are created once they are gone.
	Rerun []manifest.ID
	// Waiting are objects on their way out, Rerun included, that are created once they are gone. The watch on
	// them tells when.
	Waiting []manifest.ID
	// Taken are objects that exist and that the owner does not control. When there are any, nothing was written.
	Taken []manifest.ID
	// Refused are objects that the cluster does not accept. When there are any and Applied and Rerun are empty,
	// nothing was written; otherwise the cluster refused to write what it had accepted in a dry run.
	Refused []Refusal
	// Live are the wanted objects as the cluster has them now; what Waiting names is missing.
	Live manifest.Set
}

// Complete tells whether the cluster holds everything that is wanted, so that the rest may be pruned.
func (r Report) Complete() bool {
	return len(r.Waiting) == 0 && len(r.Taken) == 0 && len(r.Refused) == 0
}

// Changed are the wanted objects that exist and that an apply would write to, in the set's order. It asks
// nobody: it compares what is to be applied with what was observed.
func (c *Cluster) Changed(wanted manifest.Set, obs *Observation) []manifest.ID {
	var changed []manifest.ID
	for _, want := range wanted {
		if u, exists := obs.live(want.ID()); exists && !c.same(want, u) {
			changed = append(changed, want.ID())
		}
	}
	return changed
}

// step is one object that differs from what is wanted.
type step struct {
	want manifest.Object
	live *unstructured.Unstructured // nil: to be created
	// rerun: the Job cannot become what is wanted, and is deleted.
	rerun bool
}

// Apply makes the cluster hold the decorated set, in the set's order, and makes no request for an object that
// is as wanted. Before the first write, the cluster is asked in dry runs whether it accepts all of them: when
// it refuses one, nothing is written. No write touches an object that is not the one observed.
//
// An error means that the cluster failed or that an object moved meanwhile (fault.Conflict); the report then
// says how far it came. Taken and refused objects are no errors.
func (c *Cluster) Apply(ctx context.Context, o Owner, wanted manifest.Set, obs *Observation) (Report, error) {
	var r Report
	for _, want := range wanted {
		if reason := c.unfit(o, want); reason != "" {
			r.Refused = append(r.Refused, Refusal{ID: want.ID(), Reason: reason})
		}
		if slices.Contains(obs.Taken, want.ID()) {
			r.Taken = append(r.Taken, want.ID())
		}
	}
	if len(r.Taken) > 0 || len(r.Refused) > 0 {
		return r, nil
	}

	live := map[manifest.ID]*unstructured.Unstructured{}
	var steps []step
	for _, want := range wanted {
		id := want.ID()
		u, exists := obs.live(id)
		switch {
		case exists && u.GetDeletionTimestamp() != nil:
			r.Waiting = append(r.Waiting, id)
		case exists && c.same(want, u):
			live[id] = u
			r.Unchanged = append(r.Unchanged, id)
		case exists:
			live[id] = u
			steps = append(steps, step{want: want, live: u})
		default:
			steps = append(steps, step{want: want})
		}
	}

	err := c.rehearse(ctx, o, steps, &r)
	if err == nil && len(r.Refused) == 0 {
		err = c.perform(ctx, o, steps, &r, live)
	}
	slices.SortFunc(r.Waiting, manifest.CompareIDs)
	for _, want := range wanted {
		if u := live[want.ID()]; u != nil {
			r.Live = append(r.Live, manifest.Object{Source: want.Source, Tree: u.Object})
		}
	}
	return r, err
}

// unfit is why an object must never be written for the owner, whatever the guardrails said.
func (c *Cluster) unfit(o Owner, want manifest.Object) string {
	switch id := want.ID(); {
	case !c.serves(id.GVK()):
		return "KindNotAllowed"
	case c.reserved(id.Name):
		return "NameReserved"
	case !controlledBy(want.Unstructured(), o.UID):
		return "NotOwned"
	}
	return ""
}

// rehearse asks the cluster in dry runs whether it accepts every step, and finds the Jobs that have to run
// again. One step alone needs no rehearsal: it happens or it does not.
func (c *Cluster) rehearse(ctx context.Context, o Owner, steps []step, r *Report) error {
	if len(steps) == 1 && !steps[0].changesJob() {
		return nil
	}
	for i := range steps {
		s := &steps[i]
		_, err := c.write(ctx, o, *s, client.DryRunAll)
		if noDryRun(err) {
			continue
		}
		if s.changesJob() && apierrors.IsInvalid(err) && classify(err) == refused {
			// A finished Job cannot become another one. If the wanted one is fine by itself, it replaces it.
			if err = c.rehearseJob(ctx, o, s.want); err == nil || noDryRun(err) {
				s.rerun = true
				continue
			}
		}
		if err := c.judge(err, *s, r); err != nil {
			return err
		}
	}
	return nil
}

func (s step) changesJob() bool {
	id := s.want.ID()
	return s.live != nil && id.Kind == "Job" && id.GVK().Group == "batch"
}

// rehearseJob asks whether the Job could be created, under another name since its own is taken.
func (c *Cluster) rehearseJob(ctx context.Context, o Owner, want manifest.Object) error {
	u := want.Clone().Unstructured()
	u.SetGenerateName(u.GetName() + "-")
	u.SetName("")
	u.SetNamespace(o.Namespace)
	return c.Client.Create(ctx, u, client.DryRunAll, client.FieldOwner(c.FieldManager))
}

// perform does the steps in order and stops at the first that fails.
func (c *Cluster) perform(ctx context.Context, o Owner, steps []step, r *Report, live map[manifest.ID]*unstructured.Unstructured) error {
	for _, s := range steps {
		id := s.want.ID()
		var written *unstructured.Unstructured
		var err error
		if !s.rerun {
			written, err = c.write(ctx, o, s)
			// Where dry runs are not to be had, the write itself tells that the Job has to run again.
			s.rerun = s.changesJob() && classify(err) == refused && c.refusal(s.want, true, err).Immutable
		}
		if s.rerun {
			if err := c.remove(ctx, o, id, s.live, false); err != nil {
				return err
			}
			delete(live, id)
			r.Rerun = append(r.Rerun, id)
			r.Waiting = append(r.Waiting, id)
			continue
		}
		if err := c.judge(err, s, r); err != nil {
			return err
		}
		if len(r.Refused) > 0 {
			return nil
		}
		c.recent.put(o.UID, id, write{object: written})
		live[id] = written.DeepCopy()
		r.Applied = append(r.Applied, id)
	}
	return nil
}

// absentVersion is a resource version that no object has: the stores that API servers use count from 1 and
// have counted further before the first object is there. Server-side apply checks it against an object that
// exists, and ignores it when it creates one, so that it turns an apply into a create.
const absentVersion = "1"

// write applies one object with force. It creates the object only if there is none, and changes it only if it
// is the one observed; otherwise the answer is a conflict.
func (c *Cluster) write(ctx context.Context, o Owner, s step, opts ...client.ApplyOption) (*unstructured.Unstructured, error) {
	u := s.want.Clone().Unstructured()
	u.SetNamespace(o.Namespace)
	if s.live == nil {
		u.SetResourceVersion(absentVersion)
	} else {
		u.SetUID(s.live.GetUID())
	}
	opts = append(opts, client.FieldOwner(c.FieldManager), client.ForceOwnership)
	err := c.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), opts...)
	return u, err
}

// judge puts a refusal into the report, and returns what is an error.
func (c *Cluster) judge(err error, s step, r *Report) error {
	switch classify(err) {
	case accepted:
		return nil
	case refused:
		r.Refused = append(r.Refused, c.refusal(s.want, s.live != nil, err))
		return nil
	case conflict:
		return moved(s.want.ID())
	default:
		return failed(err, "apply %s", s.want.ID())
	}
}

// remove deletes exactly this object in the background, and, with version, only in this version. An object
// that is gone already is fine.
func (c *Cluster) remove(ctx context.Context, o Owner, id manifest.ID, u *unstructured.Unstructured, version bool) error {
	uid := u.GetUID()
	only := client.Preconditions{UID: &uid}
	if version {
		rv := u.GetResourceVersion()
		only.ResourceVersion = &rv
	}
	err := c.Client.Delete(ctx, u.DeepCopy(), only, client.PropagationPolicy(metav1.DeletePropagationBackground))
	switch {
	case err == nil, apierrors.IsNotFound(err):
		c.recent.put(o.UID, id, write{gone: uid})
		return nil
	case apierrors.IsConflict(err):
		return moved(id)
	default:
		return failed(err, "delete %s", id)
	}
}
