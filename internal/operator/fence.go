package operator

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/leaderelection"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// How the lease is kept: others wait for leaseDuration after the last renewal that they saw, and one that could not
// renew it for renewDeadline gives up.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	renewPeriod   = 2 * time.Second
)

// fence lets no write through unless this operator renewed its lease a moment ago. The election alone does not see to
// that: an operator that was frozen for longer than its lease goes on with what it was at, while another one leads, until
// it has failed to renew for renewDeadline. It closes before the lease ends for others, whatever their clocks say, since
// it counts from when the renewal was sent.
type fence struct {
	now func() time.Time

	mu      sync.Mutex
	renewed time.Time // zero: not leading
}

var errNotLeading = errors.New("this operator does not lead any more, and writes nothing")

// open tells whether this operator surely leads.
func (f *fence) open() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.renewed.IsZero() {
		return false
	}
	now := f.now()
	// The monotonic clock stands still while a machine sleeps, the other one may be set back.
	return max(now.Sub(f.renewed), now.Round(0).Sub(f.renewed.Round(0))) < renewDeadline
}

func (f *fence) renew(sent time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renewed = sent
}

// wrap is for the transport of everything but the election itself.
func (f *fence) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead && !f.open() {
			if r.Body != nil {
				_ = r.Body.Close() // a round tripper closes it, also when it fails
			}
			return nil, errNotLeading
		}
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip is what makes it an http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// fencedLock tells the fence of each renewal.
type fencedLock struct {
	resourcelock.Interface
	fence *fence
}

// lead is an operator's part in the election of a namespace.
type lead struct {
	fence *fence
	lock  resourcelock.Interface
	// Who leads is told in events, by a client that the fence does not hold up.
	events record.EventBroadcaster
	sink   record.EventSink
}

func newLead(cluster *rest.Config, namespace string) (*lead, error) {
	cluster = rest.CopyConfig(cluster)
	c, err := corev1client.NewForConfig(cluster)
	if err != nil {
		return nil, err
	}
	l := &lead{
		fence: &fence{now: time.Now}, events: record.NewBroadcaster(), sink: &corev1client.EventSinkImpl{Interface: c.Events("")},
	}
	lock, err := leaderelection.NewResourceLock(cluster, teller{events: l.events}, leaderelection.Options{
		LeaderElection: true, LeaderElectionID: LeaderElectionID, LeaderElectionNamespace: namespace, RenewDeadline: renewDeadline,
	})
	l.lock = &fencedLock{lock, l.fence}
	return l, err
}

// tell writes events until what it answers with is called.
func (l *lead) tell() (stop func()) {
	l.events.StartRecordingToSink(l.sink)
	return l.events.Shutdown
}

// teller gives the lock its recorder.
type teller struct {
	recorder.Provider
	events record.EventBroadcaster
}

// GetEventRecorderFor is the only one that the lock asks for.
func (t teller) GetEventRecorderFor(name string) record.EventRecorder {
	return t.events.NewRecorder(Scheme(), corev1.EventSource{Component: name})
}

// Create takes the lease for the first time.
func (l *fencedLock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, r, l.Interface.Create)
}

// Update takes, renews or releases the lease.
func (l *fencedLock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, r, l.Interface.Update)
}

func (l *fencedLock) write(ctx context.Context, r resourcelock.LeaderElectionRecord, do func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	mine := r.HolderIdentity == l.Identity()
	sent := l.fence.now()
	if !mine { // before it is given away
		l.fence.renew(time.Time{})
	}
	err := do(ctx, r)
	if err == nil && mine {
		l.fence.renew(sent)
	}
	return err
}
