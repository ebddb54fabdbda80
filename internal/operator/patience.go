package operator

import (
	"context"
	"sync"
	"time"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/engine"
	"zaentrum.io/zae/internal/fault"
)

// How long a reconcile waits for a registry before it makes room for other addons, and how soon it looks
// again.
const (
	patience      = 500 * time.Millisecond
	afterPatience = time.Second
)

// patientFetcher lets a slow registry hold up nobody but its own addons: a fetch that takes long goes on by
// itself, and the reconcile that asked for it ends as waiting and asks again.
type patientFetcher struct {
	fetcher engine.Fetcher
	base    context.Context //nolint:containedctx // of the operator: a fetch outlives the reconcile that started it
	now     func() time.Time
	watch   func(context.Context) (end func(error)) // of each fetch
	running sync.WaitGroup

	mu      sync.Mutex
	pending map[v1alpha1.ChartSource]*pendingFetch
}

type pendingFetch struct {
	done    chan struct{}
	archive *chart.Archive
	err     error
	at      time.Time // when it was done
}

func newPatientFetcher(base context.Context, fetcher engine.Fetcher, now func() time.Time, watch func(context.Context) func(error)) *patientFetcher {
	return &patientFetcher{fetcher: fetcher, base: base, now: now, watch: watch, pending: map[v1alpha1.ChartSource]*pendingFetch{}}
}

// Fetch answers with the archive, the fault, or an engine.Waiting.
func (f *patientFetcher) Fetch(ctx context.Context, src v1alpha1.ChartSource) (*chart.Archive, error) {
	p := f.join(ctx, src)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.done:
		// Whoever comes next starts anew.
		f.mu.Lock()
		if f.pending[src] == p {
			delete(f.pending, src)
		}
		f.mu.Unlock()
		return p.archive, p.err
	case <-timer.C:
		return nil, &engine.Waiting{What: "waiting for the registry of " + shown(src), After: afterPatience}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (f *patientFetcher) join(ctx context.Context, src v1alpha1.ChartSource) *pendingFetch {
	f.mu.Lock()
	defer f.mu.Unlock()
	for other, p := range f.pending {
		if p.old(f.now()) { // or what nobody comes for would be kept for ever
			delete(f.pending, other)
		}
	}
	if p, ok := f.pending[src]; ok {
		return p
	}
	p := &pendingFetch{done: make(chan struct{})}
	f.pending[src] = p
	f.running.Go(func() {
		defer close(p.done)
		defer func() {
			if v := recover(); v != nil {
				p.archive, p.err, p.at = nil, fault.Recovered(v, "the chart of %s: fetching it failed inside zae", shown(src)), f.now()
			}
		}()
		end := f.watch(ctx) // which is only asked whose fetch it is
		p.archive, p.err = f.fetcher.Fetch(f.base, src)
		end(p.err)
		p.at = f.now()
	})
	return p
}

// old tells that a fetch was done long ago, and nobody came for it.
func (p *pendingFetch) old(now time.Time) bool {
	select {
	case <-p.done:
		return now.Sub(p.at) > time.Minute
	default:
		return false
	}
}

// wait returns when no fetch is under way any more; the base context must have ended.
func (f *patientFetcher) wait() { f.running.Wait() }
