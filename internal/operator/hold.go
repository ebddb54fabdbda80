package operator

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/engine"
	"zaentrum.io/zae/internal/fault"
)

// engage has the engine do the work.
func (r *reconciler) engage(ctx context.Context, a *v1alpha1.ZaentrumAddon, request *engine.Request) (*outcome, time.Duration, error) {
	if a.Spec.Suspend {
		previewed, err := r.engine.Preview(ctx, *request, owner(a))
		if err != nil {
			return r.troubled(ctx, a, v1alpha1.PhasePlanFailed, err)
		}
		o := planned(a, previewed)
		o.reviewed = &v1alpha1.AppliedChart{Ref: a.Spec.Chart.Ref, Version: a.Spec.Chart.Version, Digest: o.plan.Chart.Digest}
		if was := reviewedDigest(a); was != "" && was != o.plan.Chart.Digest && a.Spec.Chart.Digest == "" {
			o.moved = &moved{was: was, is: o.plan.Chart.Digest, so: "this plan is of the new content"}
		}
		o.note(movedNote(a, o))
		return o, 0, nil
	}
	h, err := r.hold(ctx, a, request)
	if err != nil {
		return r.troubled(ctx, a, v1alpha1.PhaseFailed, err)
	}
	request.Calm = func(c *engine.Checked) bool { return r.calm.keep(a, c, r.now(), r.resync) }
	done, err := r.engine.Converge(ctx, *request, owner(a))
	if err != nil {
		if h.moved != nil && h.moved.held && fault.CodeOf(err) == fault.Digest {
			err = h.moved.lost(a, err)
		}
		return r.troubled(ctx, a, v1alpha1.PhaseFailed, err)
	}
	r.telemetry.Pruned(ctx, done.Pruned)
	r.calm.wrote(a, done, r.now())
	o, next := converged(a, done)
	o.moved = h.moved
	if o.idle != nil && h.fetched != "" {
		o.idle.chart = h.fetched
	}
	if h.moved != nil && h.moved.held {
		o.note(h.moved.text(a))
	} else if h.stale != "" {
		o.say(h.stale)
	}
	return o, next, nil
}

// moved is content that was published in place of other content, under the same reference and version.
type moved struct {
	was, is string // digests of archives
	held    bool   // the new content is not applied
	so      string // what became of it
}

const publishedAgain = "the chart was published again"

// text says it for the status and for an event. The reference, which may be long, comes last.
func (m *moved) text(a *v1alpha1.ZaentrumAddon) string {
	return fmt.Sprintf("%s, %s in place of %s: %s (%s)", publishedAgain, m.is, m.was, m.so, shown(a.Spec.Chart))
}

// lost is the fault of content that was planned and can be had nowhere any more: not from the cache, and not from
// the registry, which has other content in its place.
func (m *moved) lost(a *v1alpha1.ZaentrumAddon, cause error) error {
	return fault.New(fault.Digest, "%s, %s in place of %s, which was planned and is not at hand any more (%s)", publishedAgain, m.is, m.was, shown(a.Spec.Chart)).
		WithHint("to plan the new content: %s; what runs stays until then", planAgain(a)).Because(cause)
}

// planAgain is how to have the content planned that there is now.
func planAgain(a *v1alpha1.ZaentrumAddon) string {
	flag := "--version " + a.Spec.Chart.Version
	if ref, err := chart.ParseReference(a.Spec.Chart.Ref); err == nil && ref.Scheme == chart.SchemeHTTPS {
		flag = "--chart with the same link"
	}
	return "zae addon upgrade " + a.Name + " " + flag + ", or suspend: true in the resource"
}

// shown is a chart source for people. The query of a link may be a credential.
func shown(src v1alpha1.ChartSource) string {
	ref, err := chart.ParseReference(src.Ref)
	if err != nil {
		return "the chart"
	}
	if ref.Scheme == chart.SchemeHTTPS {
		return ref.String()
	}
	return ref.String() + " " + src.Version
}

// movedNote is what the plan of a suspended addon says about content that moved: now, or when it was planned
// first, until something else is planned.
func movedNote(a *v1alpha1.ZaentrumAddon, o *outcome) string {
	if o.moved != nil {
		return o.moved.text(a)
	}
	if p := a.Status.Plan; p != nil && p.Chart.Digest == o.plan.Chart.Digest && reviewedDigest(a) == p.Chart.Digest {
		return movedWarning(p, p.Chart.Digest)
	}
	return ""
}

// movedWarning is what a plan says about content that was published in place of other content; empty for
// nothing.
func movedWarning(p *v1alpha1.Plan, digest string) string {
	if p != nil {
		for _, w := range p.Warnings {
			if strings.HasPrefix(w, publishedAgain+", "+digest) {
				return w
			}
		}
	}
	return ""
}

// note puts a text into the plan, the message and the condition.
func (o *outcome) note(text string) {
	if text == "" {
		return
	}
	text = cut(text, maxMessage)
	o.plan.Warnings = append(o.plan.Warnings, text)
	o.say(text)
}

// say adds a text to the message and the condition.
func (o *outcome) say(text string) {
	text = "; " + cut(text, maxMessage/2)
	o.message = cut(o.message, maxMessage-len(text)) + text
	o.planned.message = cut(o.planned.message, maxMessage-len(text)) + text
}

// held is what hold found out.
type held struct {
	stale   string // not empty: the registry did not answer
	fetched string // what the reference stands for; empty when that was not asked
	moved   *moved // nil: the content is the one that was planned
}

// hold decides about a tag that moved since its content was planned. Where somebody reads plans, because there
// was one while the addon was suspended, what was read is what is applied: the new content is reported, and
// waits for a plan of its own to be installed. Where nobody does, it is rolled out, and told.
func (r *reconciler) hold(ctx context.Context, a *v1alpha1.ZaentrumAddon, request *engine.Request) (held, error) {
	was := reviewedDigest(a)
	if a.Spec.Chart.Digest != "" || was == "" {
		return held{}, nil
	}
	archive, err := r.engine.Fetch.Fetch(ctx, a.Spec.Chart)
	if err != nil {
		return held{}, err
	}
	// What is decided on is what is applied, whatever happens meanwhile. It is at hand: the engine's own fetch
	// makes no request.
	request.Chart.Digest = archive.Digest
	now := fetched(archive.Digest, archive.Stale)
	switch {
	case archive.Digest == was:
		return held{stale: archive.Stale, fetched: now}, nil
	case a.Status.Reviewed != nil:
		request.Chart.Digest = was
		return held{fetched: now, moved: &moved{was: was, is: archive.Digest, held: true, so: "the addon is kept at what was planned; to plan the new content: " + planAgain(a)}}, nil
	default:
		return held{stale: archive.Stale, fetched: now, moved: &moved{was: was, is: archive.Digest, so: "the new content is rolled out"}}, nil
	}
}

// reviewedDigest is the digest of the archive that was last planned or applied for what the resource asks for
// now; empty when that is something new.
func reviewedDigest(a *v1alpha1.ZaentrumAddon) string {
	want := a.Spec.Chart
	if r := a.Status.Reviewed; r != nil && r.Ref == want.Ref && r.Version == want.Version {
		return r.Digest
	}
	if p := a.Status.Plan; p != nil && p.Chart.Requested != nil && p.Chart.Requested.Ref == want.Ref && p.Chart.Requested.Version == want.Version {
		return p.Chart.Digest
	}
	if l := a.Status.LastAppliedChart; l != nil && l.Ref == want.Ref && l.Version == want.Version {
		return l.Digest
	}
	return ""
}

const reasonContentChanged = "ContentChanged" // of an event

// tellMoved tells of content that moved, as one event, when its status has been written; before is the status
// that was there.
func (r *reconciler) tellMoved(ctx context.Context, a *v1alpha1.ZaentrumAddon, before *v1alpha1.ZaentrumAddonStatus, m *moved) {
	if m == nil || !r.told.first(a, m.is) {
		return
	}
	if movedWarning(before.Plan, m.is) != "" {
		return // it was told before a restart
	}
	text := cut(m.text(a), maxNote)
	r.events.Eventf(a, nil, corev1.EventTypeWarning, reasonContentChanged, "Reconcile", "%s", text)
	r.say(ctx, a, slog.LevelWarn, "content changed", slog.String("reason", text))
}

// told remembers of which content an event told last. The zero value remembers nothing yet.
type told struct {
	mu   sync.Mutex
	last map[types.NamespacedName]toldOf
}

type toldOf struct {
	uid    types.UID
	digest string
}

// first tells whether it was not told of this content just before.
func (t *told) first(a *v1alpha1.ZaentrumAddon, digest string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	key, of := client.ObjectKeyFromObject(a), toldOf{a.UID, digest}
	if t.last[key] == of {
		return false
	}
	if t.last == nil {
		t.last = map[types.NamespacedName]toldOf{}
	}
	t.last[key] = of
	return true
}

func (t *told) forget(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.last, key)
}
