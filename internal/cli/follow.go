package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/fault"
)

// follow waits until what was installed is Ready and registered, and gives up as soon as it is clear that
// it will not be. The operator goes on in any case.
func (ch *change) follow(ctx context.Context) error {
	f := &follower{ch: ch, start: ch.a.p.Now(), view: &progress{p: ch.a.err, now: ch.a.p.Now, name: ch.name}}
	err := ch.a.poll(ctx, ch.flags.timeout, f.look)
	f.view.end()
	switch {
	case err == nil:
		f.view.line("result", fmt.Sprintf("Ready and registered after %s", f.elapsed()))
		if ch.flags.output == "" {
			ch.a.out.printf("%s is %s and registered\n", strings.Join(nonEmpty(ch.name, f.version), " "), style(good, "Ready"))
			ch.tellUndo()
		}
		return nil
	case errors.Is(err, errTooLate):
		return ch.notReady("%s is not Ready after %s: %s", ch.name, ch.flags.timeout, f.state())
	default:
		return ch.goesOn(ctx, err)
	}
}

func (ch *change) notReady(format string, args ...any) error {
	return fault.New(fault.NotReady, format, args...).
		WithHint("the operator goes on trying; look again: zae addon status %s", ch.name)
}

// follower remembers how long a bad state has lasted: one look is not enough to give up on.
type follower struct {
	ch      *change
	view    *progress
	start   time.Time
	version string
	last    *apitype.AddonChart

	badSince time.Time
	bad      string
}

func (f *follower) elapsed() time.Duration {
	return f.ch.a.p.Now().Sub(f.start).Round(time.Second)
}

func (f *follower) look(ctx context.Context) (bool, error) {
	got, err := f.ch.c.Get(ctx, f.ch.name)
	if err != nil {
		return false, err
	}
	doc := &got.Doc
	f.last = doc
	if doc.Generation > f.ch.own {
		return false, elsewhere(f.ch.name, doc.Generation, f.ch.own)
	}
	f.view.update(doc, f.ch.own)
	if doc.ObservedGeneration < f.ch.own {
		return false, nil // the status is still of the time before the install
	}
	if doc.LastAppliedChart != nil {
		f.version = doc.LastAppliedChart.Version
	}
	pace := f.ch.a.pace
	switch {
	case doc.Phase == v1alpha1.PhaseReady && doc.Registered:
		return true, nil
	case doc.Phase == v1alpha1.PhaseReady && doc.RegistrationError != "":
		if f.lasts("registration: "+doc.RegistrationError, pace.registration) {
			return false, f.ch.notReady("%s runs, but is not registered: %s", f.ch.name, doc.RegistrationError)
		}
	case doc.Phase == v1alpha1.PhaseFailed || doc.Phase == v1alpha1.PhasePlanFailed:
		return false, f.ch.notReady("%s is %s: %s", f.ch.name, doc.Phase, f.state())
	case doc.Phase == v1alpha1.PhaseDegraded:
		if f.lasts("degraded", pace.stall) {
			return false, f.ch.notReady("%s is Degraded after %s: %s", f.ch.name, f.elapsed(), f.state())
		}
	default:
		f.bad = ""
	}
	return false, nil
}

// lasts tells whether the same bad state has been seen for long enough.
func (f *follower) lasts(what string, long time.Duration) bool {
	now := f.ch.a.p.Now()
	if f.bad != what {
		f.bad, f.badSince = what, now
	}
	return now.Sub(f.badSince) >= long
}

// state is what the addon was last seen doing, in words.
func (f *follower) state() string {
	if f.last == nil {
		return "its status could not be read"
	}
	var parts []string
	for _, c := range f.last.Components {
		if c.Ready < c.Desired || c.Reason != "" {
			parts = append(parts, c.Name+" "+componentText(c))
		}
	}
	for _, j := range f.last.Jobs {
		if j.State == v1alpha1.JobFailed || j.State == v1alpha1.JobRunning && j.Reason != "" {
			parts = append(parts, "job "+j.Name+" "+jobText(j))
		}
	}
	if len(parts) == 0 {
		if f.last.Phase == v1alpha1.PhaseReady {
			return "it runs, but is not registered"
		}
		return strings.Join(nonEmpty(f.last.Message), "")
	}
	return strings.Join(parts, "; ")
}

func componentText(c v1alpha1.Component) string {
	text := fmt.Sprintf("%d/%d", c.Ready, c.Desired)
	if c.Reason != "" {
		return text + " " + c.Reason
	}
	if c.Ready >= c.Desired {
		return text + " ready"
	}
	return text
}

// progress shows how far an addon is: one live block on a terminal, elsewhere a line per change.
type progress struct {
	p     *printer
	now   func() time.Time
	name  string
	shown map[string]string
	block int // lines of the live block that stand above the cursor
	start time.Time
}

func (g *progress) update(doc *apitype.AddonChart, generation int64) {
	if g.start.IsZero() {
		g.start = g.now()
		g.shown = map[string]string{}
	}
	type row struct{ who, what string }
	rows := []row{{g.name, addonText(doc, generation)}}
	if doc.ObservedGeneration >= generation {
		for _, c := range doc.Components {
			if c.Name == g.name { // a line of its own would read as the addon's
				rows = append(rows, row{"component " + c.Name, componentText(c)})
				continue
			}
			rows = append(rows, row{c.Name, componentText(c)})
		}
		for _, j := range doc.Jobs {
			rows = append(rows, row{"job " + j.Name, jobText(j)})
		}
	}
	if g.p.live {
		g.clear()
		elapsed := g.now().Sub(g.start).Round(time.Second)
		for i, r := range rows {
			what := r.what
			if i == 0 {
				what += fmt.Sprintf("  %s", elapsed)
			}
			var t table
			t.row(fmt.Sprintf("%-24s", r.who), what)
			t.print(g.p)
		}
		g.block = len(rows)
		return
	}
	for _, r := range rows {
		if g.shown[r.who] != r.what {
			g.shown[r.who] = r.what
			g.line(r.who, r.what)
		}
	}
}

// line is one line with the time of day.
func (g *progress) line(who, what string) {
	g.p.printf("%s %-24s %s\n", g.now().Format(time.TimeOnly), who, what)
}

// clear takes the live block away.
func (g *progress) clear() {
	if g.block > 0 {
		g.p.raw(fmt.Sprintf("\x1b[%dA\x1b[J", g.block))
		g.block = 0
	}
}

// end leaves the last block standing.
func (g *progress) end() { g.block = 0 }

func addonText(doc *apitype.AddonChart, generation int64) string {
	if doc.ObservedGeneration < generation {
		return "accepted, waiting for the operator"
	}
	waiting := 0
	for _, c := range doc.Components {
		if c.Ready < c.Desired || c.Reason != "" {
			waiting++
		}
	}
	switch {
	case doc.Phase == v1alpha1.PhaseInstalling && waiting > 0:
		return "applied, waiting for " + count(waiting, "component")
	case doc.Phase == v1alpha1.PhaseReady && doc.Registered:
		return "Ready and registered"
	case doc.Phase == v1alpha1.PhaseReady && doc.RegistrationError != "":
		return "Ready, not registered: " + doc.RegistrationError
	case doc.Phase == v1alpha1.PhaseReady:
		return "Ready, waiting for the registration"
	case doc.Phase == "":
		return "waiting for the operator"
	default:
		return string(doc.Phase)
	}
}
