package operator

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/engine"
	"zaentrum.io/zae/internal/fault"
)

// gated is a registry that answers when it is let.
type gated struct {
	gate  chan struct{}
	mu    sync.Mutex
	asked int
}

func (g *gated) Fetch(ctx context.Context, _ v1alpha1.ChartSource) (*chart.Archive, error) {
	g.mu.Lock()
	g.asked++
	g.mu.Unlock()
	select {
	case <-g.gate:
		return &chart.Archive{Digest: "x"}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestAFetchThatIsNotWaitedForIsDroppedInTheEnd(t *testing.T) {
	t.Parallel()
	g := &gated{gate: make(chan struct{})}
	var mu sync.Mutex
	at := time.Unix(0, 0)
	ctx, cancel := context.WithCancel(t.Context())
	f := newPatientFetcher(ctx, g, func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return at
	}, unwatched)
	defer f.wait()
	defer cancel()
	src := v1alpha1.ChartSource{Ref: "oci://registry.example.org/example", Version: "1"}
	_, err := f.Fetch(t.Context(), src)
	var waiting *engine.Waiting
	if !errors.As(err, &waiting) || waiting.What != "waiting for the registry of oci://registry.example.org/example 1" {
		t.Fatalf("got %v", err)
	}
	// It goes on by itself, and whoever asks again joins it.
	close(g.gate)
	if a, err := f.Fetch(t.Context(), src); err != nil || a.Digest != "x" || g.asked != 1 {
		t.Errorf("%v, %v, asked %d times", a, err, g.asked)
	}
	if len(f.pending) != 0 {
		t.Errorf("%d are kept that were come for", len(f.pending))
	}
	// What nobody comes for is dropped after a while.
	<-f.join(t.Context(), src).done
	mu.Lock()
	at = at.Add(2 * time.Minute)
	mu.Unlock()
	<-f.join(t.Context(), v1alpha1.ChartSource{Ref: "oci://registry.example.org/other", Version: "1"}).done
	if _, kept := f.pending[src]; kept || len(f.pending) != 1 {
		t.Errorf("%d are kept", len(f.pending))
	}
}

// brokenFetcher is a fetcher with a fault of its own.
type brokenFetcher struct{}

func (brokenFetcher) Fetch(context.Context, v1alpha1.ChartSource) (*chart.Archive, error) {
	panic("hunter2")
}

func TestAPanicInAFetchIsAFaultOfThatFetch(t *testing.T) {
	t.Parallel()
	f := newPatientFetcher(t.Context(), brokenFetcher{}, time.Now, unwatched)
	defer f.wait()
	src := v1alpha1.ChartSource{Ref: "oci://registry.example.org/example", Version: "1"}
	_, err := f.Fetch(t.Context(), src)
	p, ok := errors.AsType[*fault.Panic](err)
	if !ok || fault.CodeOf(err) != fault.Internal || !strings.Contains(p.Stack, "brokenFetcher.Fetch") {
		t.Fatalf("got %v", err)
	}
	if all := err.Error() + p.Error() + p.Stack; strings.Contains(all, "hunter2") {
		t.Errorf("the panic's words show: %s", all)
	}
}

func unwatched(context.Context) func(error) { return func(error) {} }
