package portal_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/portal"
	"zaentrum.io/zae/internal/postgrestest"
	"zaentrum.io/zae/internal/registry"
)

// replica is one of several portal-api of a namespace, each with a connection of its own to the cluster and the database.
type replica struct {
	wire    *wire
	primary *primary
	store   registry.Store
	portal  *portal.Server
	log     *syncBuffer
	stop    func()

	mu    sync.Mutex
	reads []time.Time
}

func (r *replica) read() []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]time.Time{}, r.reads...)
}

// newReplica starts one in the bench's namespace, under the shipped Role. It reaches primaries of its own, so that what it
// registers is known to be its doing: the manifest's version is its name.
func (b *bench) newReplica(name, database string, adjust ...func(*portal.Options)) *replica {
	b.t.Helper()
	r := &replica{wire: &wire{}, log: &syncBuffer{}}
	r.primary = newPrimary(b.t, "")
	r.primary.serveWith(func(w http.ResponseWriter, _ *http.Request) {
		r.mu.Lock()
		r.reads = append(r.reads, time.Now())
		r.mu.Unlock()
		_, _ = fmt.Fprintf(w, `{"service":"example","version":%q}`, name)
	})
	var err error
	r.store, err = registry.Open(b.t.Context(), database)
	b.must(err)
	o := portal.Options{
		Client: b.clientOver(r.wire), Namespace: b.namespace, Registry: r.store, PublicOrigin: "https://media.example.org",
		Resolve: map[string]string{"example": r.primary.address()}, RefreshInterval: 20 * time.Millisecond, RetryInterval: 20 * time.Millisecond,
		Log:      slog.New(slog.NewTextHandler(r.log, nil)),
		Election: &portal.Election{Identity: name, Lease: 6 * time.Second, Renew: 4 * time.Second, Retry: 100 * time.Millisecond},
	}
	for _, f := range adjust {
		f(&o)
	}
	r.portal, err = portal.New(o)
	b.must(err)
	end := b.runs(r.portal)
	r.stop = sync.OnceFunc(func() {
		end()
		b.must(r.store.Close())
	})
	b.t.Cleanup(r.stop)
	return r
}

// holder is who the Lease names.
func (b *bench) holder() string {
	b.t.Helper()
	lease := &coordinationv1.Lease{}
	if err := b.cluster.Get(b.t.Context(), client.ObjectKey{Namespace: b.namespace, Name: portal.LeaseName}, lease); err != nil {
		return "nobody: " + err.Error()
	}
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// registeredBy waits until a replica has registered the addon, as the others see it.
func (b *bench) registeredBy(name string, seenBy *replica) {
	b.t.Helper()
	b.eventually("registered by "+name, func() error {
		addon, err := seenBy.store.Addon(b.t.Context(), "example")
		if err != nil || addon == nil || addon.Version != name {
			return fmt.Errorf("%+v, %w", addon, err)
		}
		return nil
	})
}

func TestOneOfTwoReplicasRegistersAndTheOtherTakesOver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	database := postgrestest.URL(t)
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
	b.operate("example", running)
	long := func(o *portal.Options) { o.Election.Lease, o.Election.Renew = time.Minute, 30*time.Second }
	one := b.newReplica("one", database, long)
	b.registeredBy("one", one)
	two := b.newReplica("two", database, long)
	// Both serve, and one registers, again and again.
	before := len(one.read())
	b.eventually("one goes on", func() error {
		if n := len(one.read()); n < before+20 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	if n := len(two.read()); n != 0 || b.holder() != "one" {
		t.Errorf("two has read %d times, %s holds the lease", n, b.holder())
	}
	for _, r := range []*replica{one, two} {
		recorder := answerOf(r.portal, http.MethodGet, "/metrics")
		if want := fmt.Sprintf("zae_portal_registering %d", map[bool]int{true: 1}[r == one]); !strings.Contains(recorder, want) {
			t.Errorf("no %q in the metrics", want)
		}
	}
	// Asked to end, it gives the lease back when it registers nothing any more, and the other one goes on at once.
	one.stop()
	b.registeredBy("two", two) // and not when the lease would have run out
	last, first := one.read(), two.read()
	if !last[len(last)-1].Before(first[0]) {
		t.Error("both registered at the same time")
	}
	// What goes is unregistered by the one that is there.
	b.must(b.cluster.Delete(t.Context(), b.addon("example")))
	b.eventually("it is unregistered", func() error {
		if addon, err := two.store.Addon(t.Context(), "example"); addon != nil || err != nil {
			return fmt.Errorf("%+v, %w", addon, err)
		}
		return nil
	})
}

func TestAReplicaThatLosesTheLeaseStopsBeforeAnotherStarts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	database := postgrestest.URL(t)
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
	b.operate("example", running)
	one := b.newReplica("one", database)
	b.registeredBy("one", one)
	two := b.newReplica("two", database)
	// The API server answers one's renewals no more; all else it does.
	one.wire.intercept(func(r *http.Request) *http.Response {
		if strings.Contains(r.URL.Path, "/leases") {
			return failure(http.StatusInternalServerError, metav1.StatusReasonInternalError)
		}
		return nil
	})
	b.registeredBy("two", two)
	stopped, started := one.read(), two.read()
	if last := stopped[len(stopped)-1]; !last.Before(started[0]) {
		t.Errorf("one registered until %s, and two from %s on", last, started[0])
	}
	time.Sleep(300 * time.Millisecond)
	if n := len(one.read()); n != len(stopped) {
		t.Errorf("one has gone on, %d times", n-len(stopped))
	}
	if log := one.log.String(); strings.Count(log, "addons may not be registered") != 1 || strings.Contains(log, canary) || !strings.Contains(log, "not registering addons any more") {
		t.Errorf("log:\n%s", log)
	}
	// It can be had again, and the one that has it goes.
	one.wire.intercept(nil)
	two.stop()
	b.registeredBy("one", one)
}

func TestAReplicaThatWasFrozenWritesNothingWhenItComesBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	database := postgrestest.URL(t)
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
	b.operate("example", running)
	var mu sync.Mutex
	var ahead time.Duration
	one := b.newReplica("one", database, func(o *portal.Options) {
		o.Now = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Add(ahead)
		}
	})
	b.registeredBy("one", one)
	// In the middle of a registration everything stands still for longer than the lease, and somebody else removes the rows.
	inside, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	one.wire.intercept(func(r *http.Request) *http.Response {
		if strings.Contains(r.URL.Path, "/leases") {
			return failure(http.StatusInternalServerError, metav1.StatusReasonInternalError)
		}
		return nil
	})
	one.primary.serveWith(func(w http.ResponseWriter, r *http.Request) {
		once.Do(func() { close(inside) })
		select {
		case <-goOn:
		case <-r.Context().Done():
		}
		_, _ = w.Write([]byte(`{"service":"example","version":"frozen"}`))
	})
	<-inside
	mu.Lock()
	ahead = time.Hour
	mu.Unlock()
	_, err := one.store.Remove(t.Context(), "example", registry.SourceChart)
	b.must(err)
	close(goOn)
	b.eventually("it notices", func() error {
		if !strings.Contains(one.log.String(), "not registering addons any more") {
			return errors.New("not yet")
		}
		return nil
	})
	if addon, err := one.store.Addon(t.Context(), "example"); addon != nil || err != nil {
		t.Errorf("%+v, %v", addon, err)
	}
}

func TestWithoutTheRightToTheLeaseNothingIsRegisteredAndThatIsSaid(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	rules := shippedRole(t)
	b.allow(rules[:2])
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
	b.operate("example", running)
	one := b.newReplica("one", postgrestest.URL(t))
	b.eventually("it is said", func() error {
		if !strings.Contains(one.log.String(), "the lease cannot be read or written") {
			return errors.New("not yet")
		}
		return nil
	})
	if len(one.read()) != 0 {
		t.Error("it registers")
	}
	b.allow(rules)
	b.registeredBy("one", one)
	if log := one.log.String(); strings.Count(log, "the lease cannot be read or written") != 1 || !strings.Contains(log, "can be read and written again") {
		t.Errorf("log:\n%s", log)
	}
}

func TestTheShippedRoleHasTheLeaseAndNoMoreOfLeases(t *testing.T) {
	t.Parallel()
	verbs := map[string][]string{}
	for _, rule := range shippedRole(t) {
		for _, resource := range rule.Resources {
			if resource == "leases" {
				verbs[strings.Join(rule.ResourceNames, ",")] = rule.Verbs
			}
		}
	}
	if len(verbs) != 2 || strings.Join(verbs[""], ",") != "create" || strings.Join(verbs[portal.LeaseName], ",") != "get,update" {
		t.Errorf("%v", verbs)
	}
}

func TestADatabaseThatIsAwayIsNoFaultOfTheAddon(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	db := postgrestest.Start(t)
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
	b.operate("example", running)
	one := b.newReplica("one", db.URL(t))
	b.registeredBy("one", one)
	db.Stop(t)
	b.eventually("it is said", func() error {
		if !strings.Contains(one.log.String(), "registry failed: addons are registered when it is back") {
			return errors.New("not yet")
		}
		return nil
	})
	one.primary.serve(`{"service":"example","version":"after"}`)
	db.Resume(t)
	b.registeredBy("after", one)
	if failures, err := one.store.Failures(t.Context()); err != nil || len(failures) != 0 {
		t.Errorf("%v, %v", failures, err)
	}
	if log := one.log.String(); strings.Contains(log, postgrestest.Password) || !strings.Contains(log, "registry works again") || strings.Count(log, "registry failed") != 1 {
		t.Errorf("log:\n%s", log)
	}
}

// answerOf is the body of an answer of a server that no network is in front of.
func answerOf(s *portal.Server, method, path string) string {
	recorder := httptest.NewRecorder()
	s.Handler().ServeHTTP(recorder, httptest.NewRequest(method, path, nil))
	return recorder.Body.String()
}
