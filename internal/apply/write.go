package apply

import (
	"context"
	"maps"
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
	// Created are those of Applied that there were none of.
	Created []manifest.ID
	// Drifted are those of Applied that somebody had changed.
	Drifted []Drift
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

// Apply makes the cluster hold the rehearsed set, in the set's order, and makes no request for an object that is
// as wanted. When the rehearsal found an object taken or refused, nothing is written. No write touches an object
// that is not the one observed.
//
// An error means that the cluster failed or that an object moved meanwhile (fault.Conflict); the report then
// says how far it came. Taken and refused objects are no errors.
func (c *Cluster) Apply(ctx context.Context, o Owner, rehearsed *Rehearsal) (Report, error) {
	r := Report{
		Taken: rehearsed.Taken, Refused: slices.Clone(rehearsed.Refused),
		Unchanged: rehearsed.unchanged, Waiting: slices.Clone(rehearsed.waiting),
	}
	live := maps.Clone(rehearsed.live)
	var err error
	if rehearsed.Accepted() {
		c.rehearsed.drop(o.UID) // what is written now is not what was compared with
		err = c.perform(ctx, o, rehearsed.steps, &r, live)
	}
	slices.SortFunc(r.Waiting, manifest.CompareIDs)
	for _, want := range rehearsed.wanted {
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

// perform does the steps in order and stops at the first that fails.
func (c *Cluster) perform(ctx context.Context, o Owner, steps []step, r *Report, live map[manifest.ID]*unstructured.Unstructured) error {
	for _, s := range steps {
		id := s.want.ID()
		var drifted *Drift
		if s.live != nil {
			drifted = c.drift(s.want, s.live)
		}
		if s.live == nil && isJob(s.want) {
			if err := c.mustLive(ctx, o, id); err != nil {
				return err
			}
		}
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
		refusal, err := c.judge(err, s, "apply")
		if err != nil {
			return err
		}
		if refusal != nil {
			r.Refused = append(r.Refused, *refusal)
			return nil
		}
		if s.live != nil {
			if err := c.takeOver(ctx, written); err != nil {
				return err
			}
		}
		c.recent.put(o.UID, id, write{object: written})
		live[id] = written.DeepCopy()
		r.wrote(id, drifted, s.live == nil)
	}
	return nil
}

// mustLive is a conflict about an object whose owner is gone or going, which the cache has not seen yet.
func (c *Cluster) mustLive(ctx context.Context, o Owner, id manifest.ID) error {
	if c.Alive == nil {
		return nil
	}
	alive, err := c.Alive(ctx, o)
	switch {
	case err != nil:
		return failed(err, "look for the owner of %s", id)
	case !alive:
		return moved(id)
	}
	return nil
}

func (r *Report) wrote(id manifest.ID, drifted *Drift, created bool) {
	r.Applied = append(r.Applied, id)
	if created {
		r.Created = append(r.Created, id)
	}
	if drifted != nil {
		r.Drifted = append(r.Drifted, *drifted)
	}
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

// judge tells a refusal from what is an error. verb is what was tried.
func (c *Cluster) judge(err error, s step, verb string) (*Refusal, error) {
	switch classify(err) {
	case accepted:
		return nil, nil
	case refused:
		r := c.refusal(s.want, s.live != nil, err)
		return &r, nil
	case conflict:
		return nil, moved(s.want.ID())
	default:
		return nil, failed(err, "%s %s", verb, s.want.ID())
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
