package apply

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/internal/manifest"
)

// Rehearsal is what the cluster says, in dry runs, about making it hold a set. Every list is in the set's
// order. It is good for one Apply.
type Rehearsal struct {
	// Changes are the wanted objects that exist and that an apply would change, or would have to wait for.
	Changes []Change
	// Refused are objects that the cluster does not accept.
	Refused []Refusal
	// Taken are objects that exist and that the owner does not control. When there are any, and when an object
	// is not for the owner to have, nothing is rehearsed.
	Taken []manifest.ID

	wanted    manifest.Set
	live      map[manifest.ID]*unstructured.Unstructured
	steps     []step
	unchanged []manifest.ID
	waiting   []manifest.ID
}

// Accepted tells whether nothing is known that stands in the way of an apply.
func (r *Rehearsal) Accepted() bool { return len(r.Refused) == 0 && len(r.Taken) == 0 }

// Change is an object that exists and that an apply would change.
type Change struct {
	ID manifest.ID
	// Fields are the paths of what would change, sorted, without values.
	Fields []string
	// Rerun tells that the object is a Job that is deleted and created anew, and so runs again.
	Rerun bool
	// Leaving tells that the object is being deleted already, and is created anew once it is gone.
	Leaving bool
	// Unknown tells that the cluster could not say beforehand what would change.
	Unknown bool
	// Refused tells that the cluster does not accept the change, which therefore is not known.
	Refused bool
}

// step is one object that differs from what is wanted.
type step struct {
	want manifest.Object
	live *unstructured.Unstructured // nil: to be created
	told
	refusal *Refusal // what the cluster has against it
}

// told is what a dry run told about a step that the cluster accepts.
type told struct {
	fields []string
	// rerun: the Job cannot become what is wanted, and is deleted.
	rerun bool
	// unknown: the cluster has no dry run for it.
	unknown bool
}

// Rehearse asks the cluster in dry runs whether it accepts each object of the decorated set that differs from
// what was observed, and what it would change. It makes no request for an object that is as wanted. With
// recall, it makes none either for one that the cluster accepted when it was rehearsed last, if the wanted and
// the live object are still the same; a refusal is never recalled.
//
// An error means that the cluster failed or that an object moved meanwhile (fault.Conflict).
func (c *Cluster) Rehearse(ctx context.Context, o Owner, wanted manifest.Set, obs *Observation, recall bool) (*Rehearsal, error) {
	r := &Rehearsal{wanted: wanted, live: map[manifest.ID]*unstructured.Unstructured{}}
	for _, want := range wanted {
		if reason := c.unfit(o, want); reason != "" {
			r.Refused = append(r.Refused, Refusal{ID: want.ID(), Reason: reason})
		}
		if slices.Contains(obs.Taken, want.ID()) {
			r.Taken = append(r.Taken, want.ID())
		}
	}
	if !r.Accepted() {
		return r, nil
	}
	pods := c.pods(o)
	for _, want := range wanted {
		id := want.ID()
		u, exists := obs.live(id)
		switch {
		case exists && u.GetDeletionTimestamp() != nil:
			r.waiting = append(r.waiting, id)
			r.Changes = append(r.Changes, Change{ID: id, Leaving: true, Rerun: isJob(want)})
		case !exists && isJob(want) && slices.ContainsFunc(podsOfJob(pods, id.Name), atWork):
			// The Job of before is gone, and what it started is still at work: never two at once.
			r.waiting = append(r.waiting, id)
		case exists && c.same(want, u):
			r.live[id] = u
			r.unchanged = append(r.unchanged, id)
		default:
			if exists {
				r.live[id] = u
			}
			r.steps = append(r.steps, step{want: want, live: u})
		}
	}
	if err := c.rehearseAll(ctx, o, r.steps, recall); err != nil {
		return nil, err
	}
	changes := map[manifest.ID]Change{}
	for _, leaving := range r.Changes {
		changes[leaving.ID] = leaving
	}
	for i := range r.steps {
		s := &r.steps[i]
		if s.refusal != nil {
			r.Refused = append(r.Refused, *s.refusal)
		}
		if change := s.change(); s.live != nil && change.visible() {
			changes[change.ID] = change
		}
	}
	r.Changes = nil
	for _, want := range wanted {
		if change, ok := changes[want.ID()]; ok {
			r.Changes = append(r.Changes, change)
		}
	}
	c.rehearsed.keep(o.UID, r.steps)
	return r, nil
}

// atOnce is how many dry runs of one rehearsal are under way at a time: a chart of hundreds of objects is
// planned in a moment, and the API server's own fairness has the last word.
const atOnce = 4

// rehearseAll finds out about all steps. After an error it starts no other, and answers with the first in
// order.
func (c *Cluster) rehearseAll(ctx context.Context, o Owner, steps []step, recall bool) error {
	var failed atomic.Bool
	errs := make([]error, len(steps))
	group := new(errgroup.Group)
	group.SetLimit(atOnce)
	for i := range steps {
		if failed.Load() {
			break
		}
		group.Go(func() error {
			if errs[i] = c.rehearse(ctx, o, &steps[i], recall); errs[i] != nil {
				failed.Store(true)
			}
			return nil
		})
	}
	_ = group.Wait() // the errors are in their places
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (s step) change() Change {
	return Change{ID: s.want.ID(), Fields: s.fields, Rerun: s.rerun, Unknown: s.unknown, Refused: s.refusal != nil}
}

// visible tells whether anything changes besides who holds which field.
func (ch Change) visible() bool { return len(ch.Fields) > 0 || ch.Rerun || ch.Unknown || ch.Refused }

// rehearse finds out about one step.
func (c *Cluster) rehearse(ctx context.Context, o Owner, s *step, recall bool) error {
	if known, ok := c.rehearsed.get(o.UID, s); ok && recall {
		s.told = known
		return nil
	}
	answer, err := c.write(ctx, o, *s, client.DryRunAll)
	switch {
	case err == nil && s.live != nil:
		s.fields = changedFields(s.live.Object, answer.Object)
		return nil
	case noDryRun(err):
		s.unknown = true
		return nil
	case s.changesJob() && apierrors.IsInvalid(err) && classify(err) == refused:
		// A finished Job cannot become another one. If the wanted one is fine by itself, it replaces it.
		var anew *unstructured.Unstructured
		anew, err = c.rehearseJob(ctx, o, s.want)
		switch {
		case err == nil:
			s.rerun, s.fields = true, changedFields(asCreated(s.live.Object), asCreated(anew.Object))
			return nil
		case noDryRun(err), overQuota(err): // the one that goes makes room for one
			s.rerun = true
			return nil
		}
	}
	s.refusal, err = c.judge(err, *s, "dry-run")
	return err
}

func (s step) changesJob() bool { return s.live != nil && isJob(s.want) }

// rehearseJob asks whether the Job could be created, under another name since its own is taken.
func (c *Cluster) rehearseJob(ctx context.Context, o Owner, want manifest.Object) (*unstructured.Unstructured, error) {
	u := want.Clone().Unstructured()
	u.SetGenerateName(u.GetName() + "-")
	u.SetName("")
	u.SetNamespace(o.Namespace)
	return u, c.Client.Create(ctx, u, client.DryRunAll, client.FieldOwner(c.FieldManager))
}

// rehearsals remember what the cluster accepted, so that a plan that does not change is not rehearsed again
// and again. They hold no object and no value: a hash of what was wanted, and the names of fields. An owner
// has as many as its last rehearsal had steps, and at most maxRehearsed. The zero value is empty.
type rehearsals struct {
	mu   sync.Mutex
	kept map[types.UID]map[rehearsalKey]told // by owner
}

// rehearsalKey is a wanted object, and the live one it was compared with.
type rehearsalKey struct {
	want [sha256.Size]byte
	live string // uid/resourceVersion; empty for none
}

const (
	maxRehearsed       = 2048
	maxRehearsedFields = 256 // of one object; one with more is rehearsed again
)

func (r *rehearsals) get(owner types.UID, s *step) (told, bool) {
	r.mu.Lock()
	kept := r.kept[owner]
	r.mu.Unlock()
	if len(kept) == 0 {
		return told{}, false
	}
	key, ok := s.key()
	if !ok {
		return told{}, false
	}
	known, ok := kept[key] // a map that is never written to again
	return known, ok
}

// keep replaces what is remembered about an owner.
func (r *rehearsals) keep(owner types.UID, steps []step) {
	kept := map[rehearsalKey]told{}
	for i := range steps {
		s := &steps[i]
		if s.refusal != nil || len(s.fields) > maxRehearsedFields || len(kept) == maxRehearsed {
			continue
		}
		if key, ok := s.key(); ok {
			kept[key] = s.told
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(kept) == 0 {
		delete(r.kept, owner)
		return
	}
	if r.kept == nil {
		r.kept = map[types.UID]map[rehearsalKey]told{}
	}
	r.kept[owner] = kept
}

func (r *rehearsals) drop(owner types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.kept, owner)
}

func (s *step) key() (rehearsalKey, bool) {
	text, err := json.Marshal(s.want.Tree) // maps are written in key order
	if err != nil {
		return rehearsalKey{}, false
	}
	key := rehearsalKey{want: sha256.Sum256(text)}
	if s.live != nil {
		key.live = string(s.live.GetUID()) + "/" + s.live.GetResourceVersion()
	}
	return key, true
}
