package cli

import (
	"context"
	"errors"
	"time"

	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/client"
	"zaentrum.io/zae/internal/fault"
)

// errTooLate is the end of a wait by its own time limit.
var errTooLate = errors.New("not in time")

// patience is how many looks in a row may fail for a passing reason before a wait is given up.
const patience = 5

// poll looks, at first often, until a look says that it is done, fails for good, or time is up.
func (a *app) poll(ctx context.Context, timeout time.Duration, look func(context.Context) (bool, error)) error {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	delay := a.pace.pollFirst
	failed := 0
	for {
		done, err := look(limited)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case limited.Err() != nil && !done:
			return errTooLate
		case err == nil && done:
			return nil
		case err == nil:
			failed = 0
		case !passing(err) || failed+1 >= patience:
			return err
		default:
			failed++
		}
		select {
		case <-limited.Done():
		case <-time.After(delay):
		}
		delay = min(delay*3/2, a.pace.pollMost)
	}
}

// passing tells whether a look that failed may succeed the next time: an instance that restarts.
func passing(err error) bool {
	switch fault.CodeOf(err) {
	case fault.Unreachable, fault.Cluster, fault.RateLimited:
		return true
	default:
		return false
	}
}

// steady is a context for a write: an interruption lets it finish, for a moment, because a write of
// which nobody knows whether it happened cannot be put back.
func (a *app) steady(ctx context.Context) (context.Context, func()) {
	out, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		t := time.NewTimer(a.pace.grace)
		defer t.Stop()
		select {
		case <-t.C:
			cancel(context.Cause(ctx))
		case <-out.Done():
		}
	})
	return out, func() {
		stop()
		cancel(nil)
	}
}

// elsewhere is what happened when the addon is no longer as this command left it.
func elsewhere(name string, theirs, ours int64) error {
	return fault.New(fault.Conflict, "addon %s was changed by somebody else meanwhile (generation %d, ours was %d)", name, theirs, ours).
		WithHint("see: zae addon status %s", name)
}

// waitPlanned waits until the status is of the generation that this command wrote.
func (a *app) waitPlanned(ctx context.Context, c *client.Client, name string, generation int64, timeout time.Duration) (*client.Answer[apitype.AddonChart], error) {
	var got *client.Answer[apitype.AddonChart]
	told := time.Now().Add(2 * time.Second)
	err := a.poll(ctx, timeout, func(ctx context.Context) (bool, error) {
		one, err := c.Get(ctx, name)
		if err != nil {
			return false, err
		}
		got = one
		if one.Doc.Generation > generation {
			return false, elsewhere(name, one.Doc.Generation, generation)
		}
		if one.Doc.ObservedGeneration >= generation {
			return true, nil
		}
		if !told.IsZero() && time.Now().After(told) {
			a.err.printf("waiting for the plan of generation %d …\n", generation)
			told = time.Time{}
		}
		return false, nil
	})
	if errors.Is(err, errTooLate) {
		return nil, fault.New(fault.NotReady, "addon %s has no plan for generation %d after %s", name, generation, timeout).
			WithHint("is the operator running? look again: zae addon status %s", name)
	}
	if err != nil {
		return nil, err
	}
	return got, nil
}
