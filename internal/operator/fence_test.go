package operator

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lease is a lock whose answers a test decides on.
type lease struct {
	resourcelock.Interface
	err    error
	during func()
}

func (*lease) Identity() string { return "me" }

func (l *lease) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, r)
}

func (l *lease) Update(context.Context, resourcelock.LeaderElectionRecord) error {
	if l.during != nil {
		l.during()
	}
	return l.err
}

func TestOnlyALeaderWrites(t *testing.T) {
	t.Parallel()
	at := time.Now()
	f := &fence{now: func() time.Time { return at }}
	l := &lease{}
	lock := &fencedLock{l, f}
	mine, released := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}, resourcelock.LeaderElectionRecord{}
	sent := 0
	transport := f.wrap(roundTripper(func(*http.Request) (*http.Response, error) {
		sent++
		return nil, errors.New("sent")
	}))
	writes := func(want bool, when string) {
		t.Helper()
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			before := sent
			r, err := http.NewRequestWithContext(t.Context(), method, "https://example.org/", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			_, err = transport.RoundTrip(r) //nolint:bodyclose // there is none
			if (sent > before) != want || errors.Is(err, errNotLeading) == want {
				t.Errorf("%s: %s was sent: %t, %v", when, method, sent > before, err)
			}
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://example.org/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		before := sent
		_, _ = transport.RoundTrip(r) //nolint:bodyclose // there is none
		if sent == before {
			t.Errorf("%s: nothing can be read", when)
		}
	}
	writes(false, "before it leads")
	l.err = errors.New("refused")
	_ = lock.Create(t.Context(), mine)
	writes(false, "when it was refused the lease")
	l.err = nil
	_ = lock.Create(t.Context(), mine)
	writes(true, "leading")
	at = at.Add(renewDeadline - time.Millisecond)
	writes(true, "just before the deadline")
	at = at.Add(time.Millisecond)
	writes(false, "frozen until the deadline")
	_ = lock.Update(t.Context(), mine)
	writes(true, "leading again")

	// What counts is when the renewal was sent: others may have seen it then.
	l.during = func() { at = at.Add(renewDeadline) }
	_ = lock.Update(t.Context(), mine)
	writes(false, "frozen while it renewed")
	l.during = nil
	_ = lock.Update(t.Context(), mine)
	writes(true, "leading again")

	// A machine that slept: its monotonic clock has not moved, the other one has.
	awake := at
	at = awake.Round(0).Add(renewDeadline)
	writes(false, "after a sleep")
	at = awake
	_ = lock.Update(t.Context(), mine)
	at = awake.Add(-time.Hour)
	writes(true, "with the clock set back")

	l.during = func() { writes(false, "giving the lease away") }
	_ = lock.Update(t.Context(), released)
	writes(false, "given away")
}
