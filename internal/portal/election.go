package portal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/internal/fault"
)

// LeaseName is the Lease of the replica that registers addons, in the platform's namespace.
const LeaseName = "zae-api"

// Election says how one of several replicas is found that registers addons. The others serve, and wait.
type Election struct {
	// Identity is this replica's, and no other's.
	Identity string
	// Lease is how long the others wait after the last renewal they saw; 0 means 15 seconds. A replica that could not
	// renew for Renew (10 seconds) stops; it tries every Retry (2 seconds).
	Lease, Renew, Retry time.Duration
}

func (e Election) withDefaults() Election {
	if e.Lease <= 0 {
		e.Lease = 15 * time.Second
	}
	if e.Renew <= 0 {
		e.Renew = 10 * time.Second
	}
	if e.Retry <= 0 {
		e.Retry = 2 * time.Second
	}
	return e
}

// errNotElected ends what a replica that does not surely hold the lease any more was about to write.
var errNotElected = errors.New("this replica does not register addons any more")

// register registers addons until ctx ends: always, or whenever this replica is the elected one.
func (s *Server) register(ctx context.Context, watched *addonWatch) error {
	if s.o.Election == nil {
		s.metrics.Registering(true)
		return newRegistrar(s, watched, func() bool { return true }).run(ctx)
	}
	lease := &lease{s: s, election: *s.o.Election}
	for ctx.Err() == nil {
		if err := s.term(ctx, watched, lease); err != nil {
			return err
		}
	}
	return nil
}

// term waits until this replica is elected, and registers until it is not any more, or ctx ends. The lease is given back
// only when nothing is registered here any more.
func (s *Server) term(ctx context.Context, watched *addonWatch, lease *lease) error {
	elected := make(chan context.Context, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: LeaseName, Lock: lease, LeaseDuration: lease.election.Lease, RenewDeadline: lease.election.Renew, RetryPeriod: lease.election.Retry,
		// Not ReleaseOnCancel, which gives the lease back before what is under way here has ended.
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) { elected <- leading },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("portal: election: %w", err)
	}
	// The library's own lines have the API server's words, once for each attempt.
	quiet := klog.NewContext(context.WithoutCancel(ctx), logr.Discard())
	candidate, resign := context.WithCancel(quiet)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		elector.Run(candidate)
	}()
	defer func() {
		resign()
		<-ended
		lease.giveBack(quiet)
	}()
	select {
	case <-ctx.Done():
		return nil
	case leading := <-elected:
		s.log.Info("registering addons", "lease", LeaseName, "identity", lease.election.Identity)
		s.metrics.Registering(true)
		defer func() {
			s.metrics.Registering(false)
			s.log.Info("not registering addons any more", "lease", LeaseName, "identity", lease.election.Identity)
		}()
		both, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(leading, cancel)()
		return newRegistrar(s, watched, lease.sure).run(both)
	}
}

// lease is the Lease as the election reads and writes it, through the client that portal-api has.
type lease struct {
	s        *Server
	election Election

	mu      sync.Mutex
	object  *coordinationv1.Lease
	renewed time.Time // when the last renewal was sent; zero when this replica does not hold the lease
	failing bool      // and that has been said
}

// sure tells whether this replica surely holds the lease: it may have been frozen for longer than that, and go on with
// what it was at while another one registers.
func (l *lease) sure() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.renewed.IsZero() && l.s.now().Sub(l.renewed) < l.election.Renew
}

func (l *lease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	object := &coordinationv1.Lease{}
	if err := l.s.o.Client.Get(ctx, client.ObjectKey{Namespace: l.s.o.Namespace, Name: LeaseName}, object); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil, err // the election makes it
		}
		return nil, nil, l.failed(err)
	}
	l.keep(object)
	record := resourcelock.LeaseSpecToLeaderElectionRecord(&object.Spec)
	raw, err := json.Marshal(record)
	return record, raw, err
}

func (l *lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	sent := l.s.now()
	object := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.s.o.Namespace, Name: LeaseName}, Spec: resourcelock.LeaderElectionRecordToLeaseSpec(&record),
	}
	if err := l.s.o.Client.Create(ctx, object, fieldManager); err != nil {
		return l.failed(err)
	}
	l.keep(object)
	l.renew(record, sent)
	return nil
}

func (l *lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	sent := l.s.now()
	l.mu.Lock()
	object := l.object
	l.mu.Unlock()
	if object == nil {
		return errors.New("the lease was not read before it is written")
	}
	object = object.DeepCopy()
	object.Spec = resourcelock.LeaderElectionRecordToLeaseSpec(&record)
	// Only the version that was read: of two that take it at the same time, one does.
	if err := l.s.o.Client.Update(ctx, object, fieldManager); err != nil {
		return l.failed(err)
	}
	l.keep(object)
	l.renew(record, sent)
	return nil
}

// giveBack lets the others go on at once, if the lease is this replica's.
func (l *lease) giveBack(ctx context.Context) {
	l.mu.Lock()
	held := !l.renewed.IsZero()
	l.renewed = time.Time{}
	l.mu.Unlock()
	if !held {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, l.election.Renew)
	defer cancel()
	record, _, err := l.Get(ctx)
	if err != nil || record.HolderIdentity != l.election.Identity {
		return // it ends by itself, or is another's
	}
	now := metav1.NewTime(l.s.now())
	_ = l.Update(ctx, resourcelock.LeaderElectionRecord{ // or else it ends by itself
		LeaderTransitions: record.LeaderTransitions, LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now,
	})
}

func (l *lease) keep(object *coordinationv1.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.object = object
	if l.failing {
		l.failing = false
		l.s.log.Info("the lease can be read and written again", "lease", LeaseName)
	}
}

func (l *lease) renew(record resourcelock.LeaderElectionRecord, sent time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.renewed = sent; record.HolderIdentity != l.election.Identity {
		l.renewed = time.Time{}
	}
}

// failed says once that the lease cannot be had; that somebody else was faster is no failure.
func (l *lease) failed(err error) error {
	said := clusterFault(err, "hold the lease "+LeaseName)
	if fault.CodeOf(said) == fault.Conflict || errors.Is(err, context.Canceled) {
		return said
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.failing {
		l.failing = true
		l.s.log.Warn("addons may not be registered: the lease cannot be read or written", "lease", LeaseName, "reason", said.Error())
	}
	return said
}

func (l *lease) RecordEvent(string) {}

func (l *lease) Identity() string { return l.election.Identity }

func (l *lease) Describe() string { return l.s.o.Namespace + "/" + LeaseName }
