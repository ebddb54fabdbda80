package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apply"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/manifest"
	"zaentrum.io/zae/internal/telemetry"
)

// maxNote is the longest text of an event (events.k8s.io/v1).
const maxNote = 1024

// say writes a log line about an addon, within its trace.
func (r *reconciler) say(ctx context.Context, a *v1alpha1.ZaentrumAddon, level slog.Level, message string, attrs ...slog.Attr) {
	about := []slog.Attr{
		slog.String(telemetry.KeyNamespace, a.Namespace), slog.String(telemetry.KeyAddon, a.Name),
		slog.Int64(telemetry.KeyGeneration, a.Generation),
	}
	if id := telemetry.TraceOf(ctx); id != "" {
		about = append(about, slog.String(telemetry.KeyTrace, id))
	}
	r.log.LogAttrs(ctx, level, message, append(about, attrs...)...)
}

// safely turns a panic, whose words may hold anything, into a fault that says nothing but where.
func (r *reconciler) safely(ctx context.Context, a *v1alpha1.ZaentrumAddon) (result ctrl.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			result, err = ctrl.Result{}, fault.Recovered(p, "the operator failed at this addon; the line before this one says where")
			r.sayPanic(ctx, a, err)
		}
	}()
	return r.bring(ctx, a)
}

// sayPanic tells where a panic was that err comes from, if it does.
func (r *reconciler) sayPanic(ctx context.Context, a *v1alpha1.ZaentrumAddon, err error) {
	if p, ok := errors.AsType[*fault.Panic](err); ok {
		r.say(ctx, a, slog.LevelError, "panic", slog.String("type", p.Type), slog.String("stack", p.Stack))
	}
}

// wrong are the phases that somebody should look at.
func wrong(p v1alpha1.Phase) bool {
	return slices.Contains([]v1alpha1.Phase{v1alpha1.PhasePlanFailed, v1alpha1.PhaseDegraded, v1alpha1.PhaseFailed}, p)
}

// transition tells a change of phase as an event and a log line. A restart tells nothing again: what is compared is what the
// resource says.
func (r *reconciler) transition(ctx context.Context, a *v1alpha1.ZaentrumAddon, before *v1alpha1.ZaentrumAddonStatus) {
	if a.Status.Phase == before.Phase {
		return
	}
	kind, level := corev1.EventTypeNormal, slog.LevelInfo
	if wrong(a.Status.Phase) {
		kind, level = corev1.EventTypeWarning, slog.LevelWarn
	}
	r.say(ctx, a, level, "phase changed", slog.String("from", string(before.Phase)), slog.String("phase", string(a.Status.Phase)),
		slog.String("reason", a.Status.Message))
	r.events.Eventf(a, nil, kind, string(a.Status.Phase), "Reconcile", "%s", cut(a.Status.Message, maxNote))
}

// did tells what an apply did: as metrics, and, of what others had changed, as an event and a log line.
func (r *reconciler) did(ctx context.Context, a *v1alpha1.ZaentrumAddon, known *secrets, report apply.Report) {
	r.telemetry.Applied(ctx, report)
	deleted := deletedByOthers(a, report.Created)
	r.telemetry.Recreated(deleted)
	if len(report.Applied)+len(report.Rerun) > 0 {
		r.say(ctx, a, slog.LevelInfo, "applied", slog.Int("objects", len(report.Applied)), slog.Int("unchanged", len(report.Unchanged)),
			slog.Int("rerun", len(report.Rerun)))
	}
	drifts := report.Drifted
	for _, id := range deleted {
		drifts = append(drifts, apply.Drift{ID: id})
	}
	tell := r.corrected.worthTelling(a, drifts, r.now())
	if len(tell) == 0 {
		return
	}
	redactor := known.redactor()
	text := cut(redactor.clean(putBack(tell)), maxNote)
	var related runtime.Object // an interface that is nil, where there is not one object to point at
	if len(tell) == 1 && redactor.clean(tell[0].ID.Name) == tell[0].ID.Name {
		related = pointer(a, tell[0].ID)
	}
	r.say(ctx, a, slog.LevelWarn, "drift corrected", slog.Int("objects", len(tell)), slog.String("reason", text))
	r.events.Eventf(a, related, corev1.EventTypeWarning, reasonDrift, "Reconcile", "%s", text)
}

const reasonDrift = "DriftCorrected" // of an event

// deletedByOthers are those of the created objects that the plan before says were there. Jobs, which are deleted to run
// again, are not among them.
func deletedByOthers(a *v1alpha1.ZaentrumAddon, created []manifest.ID) []manifest.ID {
	p := a.Status.Plan
	if p == nil || a.Status.LastAppliedChart == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(created), func(id manifest.ID) bool {
		ref := v1alpha1.ObjectRef{Kind: id.Kind, Name: id.Name}
		return id.Kind == "Job" || !slices.Contains(p.Objects, ref) || slices.Contains(p.Changes.Added, ref)
	})
}

// pointer refers to an object of an addon.
func pointer(a *v1alpha1.ZaentrumAddon, id manifest.ID) runtime.Object {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(id.GVK())
	o.SetNamespace(a.Namespace)
	o.SetName(id.Name)
	return o
}

// maxFields is how many fields of one object an event names, and maxObjects how many objects.
const (
	maxFields  = 8
	maxObjects = 8
)

// putBack says what others had changed.
func putBack(list []telling) string {
	var objects []string
	for _, t := range list[:min(len(list), maxObjects)] {
		objects = append(objects, t.String())
	}
	if more := len(list) - maxObjects; more > 0 {
		objects = append(objects, fmt.Sprintf("and %d more objects", more))
	}
	return "put back what others changed: " + strings.Join(objects, "; ")
}

// telling is a drift, and how often the same object was put back without a word.
type telling struct {
	apply.Drift
	before int
	since  time.Time
}

func (t telling) String() string {
	var fields []string
	for _, f := range t.Fields[:min(len(t.Fields), maxFields)] {
		if f.Manager == "" {
			fields = append(fields, f.Path+" (removed)")
			continue
		}
		fields = append(fields, fmt.Sprintf("%s (by %s)", f.Path, f.Manager))
	}
	if more := len(t.Fields) - maxFields; more > 0 {
		fields = append(fields, fmt.Sprintf("and %d more fields", more))
	}
	s := t.ID.String() + " " + strings.Join(fields, ", ")
	if len(fields) == 0 {
		s = t.ID.String() + " (deleted)"
	}
	if t.before > 0 {
		s += fmt.Sprintf(", %d more times since %s", t.before, t.since.UTC().Format(time.RFC3339))
	}
	return s
}

// quietFor is how long after an event about an object the next ones are only counted: somebody who fights for a field
// makes one each time.
const quietFor = 10 * time.Minute

// A hand edit is put right at once; whoever sets a field again and again, such as a controller that takes it for its own,
// would make a loop of that as fast as both can write. So an addon may be put right fightBurst times, and from then on
// once in fightPause.
const (
	fightBurst = 20
	fightPause = 2 * time.Second
)

// corrected remembers which objects were put back not long ago. The zero value remembers nothing.
type corrected struct {
	mu     sync.Mutex
	last   map[types.NamespacedName]map[manifest.ID]*correction // by addon
	fights map[types.NamespacedName]*rate.Limiter
}

type correction struct {
	told   time.Time
	untold int
}

// worthTelling are the drifts that are to be told now; the others are counted, and told with the next one.
func (c *corrected) worthTelling(a *v1alpha1.ZaentrumAddon, drifts []apply.Drift, now time.Time) []telling {
	if len(drifts) == 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := client.ObjectKeyFromObject(a)
	if c.fights == nil {
		c.fights = map[types.NamespacedName]*rate.Limiter{}
	}
	if c.fights[key] == nil {
		c.fights[key] = rate.NewLimiter(rate.Every(fightPause), fightBurst)
	}
	c.fights[key].AllowN(now, 1)
	if c.last == nil {
		c.last = map[types.NamespacedName]map[manifest.ID]*correction{}
	}
	if c.last[key] == nil {
		c.last[key] = map[manifest.ID]*correction{}
	}
	of := c.last[key]
	for id, one := range of { // those of which nothing was left to tell
		if one.untold == 0 && now.Sub(one.told) >= quietFor {
			delete(of, id)
		}
	}
	var tell []telling
	for _, d := range drifts {
		one := of[d.ID]
		if one != nil && now.Sub(one.told) < quietFor && !now.Before(one.told) {
			one.untold++
			continue
		}
		t := telling{Drift: d}
		if one != nil {
			t.before, t.since = one.untold, one.told
		}
		of[d.ID] = &correction{told: now}
		tell = append(tell, t)
	}
	return tell
}

// wait is how long an addon that others fight over is left as it is; 0 for any other.
func (c *corrected) wait(a *v1alpha1.ZaentrumAddon, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	limit := c.fights[client.ObjectKeyFromObject(a)]
	if limit == nil {
		return 0
	}
	tokens := limit.TokensAt(now)
	if tokens >= 1 {
		return 0
	}
	return max(time.Duration((1-tokens)*float64(fightPause)), time.Millisecond)
}

func (c *corrected) forget(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.last, key)
	delete(c.fights, key)
}
