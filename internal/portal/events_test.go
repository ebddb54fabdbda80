package portal_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/portal"
)

func eventsPath(name string) string { return chartPath(name) + "/events" }

// sse is one event, or the comment line that stands for a heartbeat.
type sse struct {
	kind, id, data string
	comment        bool
}

// stream is an open event stream; its events end with it.
type stream struct {
	b      *bench
	header http.Header
	events chan sse
	cancel context.CancelFunc
}

// open opens a stream, which must be there, and closes it with the test.
func (b *bench) open(name string, edit ...func(*http.Request)) *stream {
	b.t.Helper()
	s, r := b.tryOpen(name, edit...)
	if s == nil {
		b.t.Fatalf("no stream of %s: %s", name, r)
	}
	return s
}

func (b *bench) tryOpen(name string, edit ...func(*http.Request)) (*stream, reply) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+eventsPath(name), nil)
	b.must(err)
	r.Header.Set("Authorization", "Bearer "+b.token)
	for _, f := range edit {
		f(r)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport}).Do(r)
	b.must(err)
	if response.StatusCode != http.StatusOK {
		defer cancel()
		defer func() { _ = response.Body.Close() }()
		raw, err := io.ReadAll(response.Body)
		b.must(err)
		return nil, reply{response.StatusCode, response.Header, raw}
	}
	s := &stream{b: b, header: response.Header, events: make(chan sse, 1000), cancel: cancel}
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(s.events)
		defer func() { _ = response.Body.Close() }()
		s.read(response.Body)
	})
	b.t.Cleanup(func() { cancel(); reading.Wait() })
	return s, reply{}
}

func (s *stream) read(body io.Reader) {
	var e sse
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case lines.Text() == "" && e != (sse{}):
			s.events <- e
			e = sse{}
		case field == "":
			e.comment = e.comment || value != ""
		case field == "event":
			e.kind = value
		case field == "id":
			e.id = value
		case field == "data":
			e.data += value
		}
	}
}

// next is the next event, heartbeats left out; ok is false when the stream has ended.
func (s *stream) next() (_ sse, ok bool) {
	s.b.t.Helper()
	late := time.After(20 * time.Second)
	for {
		select {
		case e, ok := <-s.events:
			if !ok || !e.comment {
				if strings.Contains(e.data, canary) {
					s.b.t.Errorf("a secret value is in an event: %s", e.data)
				}
				return e, ok
			}
		case <-late:
			s.b.t.Fatalf("no event in time\n%s", s.b.log)
		}
	}
}

// addon is the next event, which must show the addon.
func (s *stream) addon() (string, apitype.AddonChart) {
	s.b.t.Helper()
	e, ok := s.next()
	if !ok || e.kind != apitype.EventAddon || e.id == "" {
		s.b.t.Fatalf("got %+v, %t", e, ok)
	}
	var doc apitype.AddonChart
	decoder := json.NewDecoder(strings.NewReader(e.data))
	decoder.DisallowUnknownFields()
	s.b.must(decoder.Decode(&doc))
	return e.id, doc
}

// until reads on until an event shows what is wanted.
func (s *stream) until(what string, is func(apitype.AddonChart) bool) string {
	s.b.t.Helper()
	for range 100 {
		if id, doc := s.addon(); is(doc) {
			return id
		}
	}
	s.b.t.Fatalf("never saw %s", what)
	return ""
}

// ends checks that the next event is the last one.
func (s *stream) ends(kind, data string) {
	s.b.t.Helper()
	e, ok := s.next()
	if !ok || e.kind != kind || e.data != data {
		s.b.t.Fatalf("got %+v, %t, want %s %s", e, ok, kind, data)
	}
	if e, ok := s.next(); ok {
		s.b.t.Fatalf("the stream goes on: %+v", e)
	}
}

// silent checks that no event comes until the next heartbeat but one.
func (s *stream) silent() {
	s.b.t.Helper()
	for range 2 {
		select {
		case e, ok := <-s.events:
			if !ok || !e.comment {
				s.b.t.Fatalf("got %+v, %t", e, ok)
			}
		case <-time.After(20 * time.Second):
			s.b.t.Fatal("no heartbeat")
		}
	}
}

func beating(o *portal.Options) { o.Heartbeat = 50 * time.Millisecond }

func resuming(id string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Last-Event-ID", id) }
}

func TestEventsShowAnAddonAsGetDoes(t *testing.T) {
	t.Parallel()
	b := newBench(t, beating)
	b.run()
	b.answer(http.MethodPost, apitype.PathAddonCharts, apitype.CreateRequest{
		Chart: exampleRef, Version: "1.2.0", Values: map[string]any{"worker": map[string]any{"replicas": 2}},
		SecretValues: map[string]string{"database.url": "postgres://" + canary},
	}, http.StatusAccepted, &apitype.WriteAnswer{})
	s := b.open("example")
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no", "X-Content-Type-Options": "nosniff",
	} {
		if got := s.header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	first, doc := s.addon()
	b.showsGet(doc)
	if doc.Generation != 1 || len(doc.SecretKeys) != 1 {
		t.Errorf("got %+v", doc)
	}
	b.operate("example", planned)
	second, doc := s.addon()
	b.showsGet(doc)
	if doc.Phase != v1alpha1.PhasePlanned || second == first {
		t.Errorf("got %s after %s: %+v", second, first, doc)
	}
	// A write that changes nothing that is shown is no event.
	a := b.addon("example")
	a.Annotations = map[string]string{"note": "none"}
	b.must(b.cluster.Update(t.Context(), a))
	s.silent()
	// What another replica writes to the registry, which nothing tells this one.
	b.must(b.registry.Fail(t.Context(), "example", "no answer", time.Now()))
	id := s.until("the failure", func(d apitype.AddonChart) bool { return d.RegistrationError == "no answer" })
	resumed := b.open("example", resuming(id))
	resumed.silent()
	stale := b.open("example", resuming(first))
	if again, _ := stale.addon(); again != id {
		t.Errorf("a stream that goes on from %s began with %s, want %s", first, again, id)
	}
	var gone apitype.DeleteAnswer
	b.answer(http.MethodDelete, chartPath("example"), nil, http.StatusOK, &gone)
	for _, s := range []*stream{s, resumed, stale} {
		for { // with the resource goes the failure, before or after the last event
			e, ok := s.next()
			if !ok {
				t.Fatal("ended without an event")
			}
			if e.kind == apitype.EventDeleted {
				if _, ok := s.next(); ok || e.data != `{"name":"example"}` {
					t.Errorf("got %s, and more: %t", e.data, ok)
				}
				break
			}
		}
	}
	b.problem(b.do(http.MethodGet, eventsPath("example"), nil), http.StatusNotFound, "not-found")
}

// showsGet checks that GET answers the same.
func (b *bench) showsGet(doc apitype.AddonChart) {
	b.t.Helper()
	var got apitype.AddonChart
	b.answer(http.MethodGet, chartPath(doc.Name), nil, http.StatusOK, &got)
	want, err := json.Marshal(got)
	b.must(err)
	have, err := json.Marshal(doc)
	b.must(err)
	if string(want) != string(have) {
		b.t.Errorf("the event shows\n%s\nand GET\n%s", have, want)
	}
}

func TestEventsTellOfRegistration(t *testing.T) {
	t.Parallel()
	p := newPrimary(t, "")
	p.serveWith(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	b := newBench(t, resolving(map[string]*primary{"example": p}))
	b.run()
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
	s := b.open("example")
	b.operate("example", running)
	s.until("why it is not registered", func(d apitype.AddonChart) bool { return strings.Contains(d.RegistrationError, "502") && !d.Registered })
	p.serve(`{"service":"example"}`)
	s.until("the registration", func(d apitype.AddonChart) bool { return d.Registered && d.RegistrationError == "" })
}

func TestEventsOfAnAddonBeingRemoved(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.run()
	a := b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
	a.Finalizers = []string{"example.org/hold"}
	b.must(b.cluster.Update(t.Context(), a))
	s := b.open("example")
	s.until("the addon", func(d apitype.AddonChart) bool { return !d.Deleting })
	b.must(b.cluster.Delete(t.Context(), b.addon("example")))
	s.until("the deletion", func(d apitype.AddonChart) bool { return d.Deleting })
	a = b.addon("example")
	a.Finalizers = nil
	b.must(b.cluster.Update(t.Context(), a))
	s.ends(apitype.EventDeleted, `{"name":"example"}`)
}

func TestEventsEndWhenTheBearerExpires(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.run()
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
	token := b.issuer.token(map[string]any{"exp": time.Now().Add(3 * time.Second).Unix()})
	s := b.open("example", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) })
	s.addon()
	s.ends(apitype.EventEnd, `{"reason":"expired"}`)
}

func TestEventsEndAtShutdown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	stop := b.run()
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
	s := b.open("example")
	id, _ := s.addon()
	stop()
	s.ends(apitype.EventEnd, `{"reason":"shutdown"}`)
	r := b.do(http.MethodGet, eventsPath("example"), nil)
	b.problem(r, http.StatusServiceUnavailable, "busy")
	if r.header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After is %q", r.header.Get("Retry-After"))
	}
	b.run()
	if again, _ := b.open("example").addon(); again != id {
		t.Errorf("the same addon is %s and then %s", id, again)
	}
}

func TestEventStreamsAreBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *portal.Options) { o.Streams, o.StreamsPerCaller = 3, 2 })
	b.run()
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
	first, second := b.open("example"), b.open("example")
	_, r := b.tryOpen("example")
	b.problem(r, http.StatusTooManyRequests, "rate-limited")
	if r.header.Get("Retry-After") == "" {
		t.Error("429 without Retry-After")
	}
	other := func(subject string) func(*http.Request) {
		token := b.issuer.token(map[string]any{"sub": subject})
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	}
	third := b.open("example", other("somebody"))
	_, r = b.tryOpen("example", other("somebody else"))
	b.problem(r, http.StatusServiceUnavailable, "busy")
	if r.header.Get("Retry-After") != "30" {
		t.Errorf("503 with Retry-After %q", r.header.Get("Retry-After"))
	}
	for _, s := range []*stream{first, second, third} {
		s.addon()
	}
	// One that is closed makes room.
	first.cancel()
	b.eventually("there is room again", func() error {
		s, r := b.tryOpen("example")
		if s == nil {
			return errors.New(r.String())
		}
		return nil
	})
}

func TestEventsAreForAdmins(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.run()
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
	b.problem(b.do(http.MethodGet, eventsPath("example"), nil, func(r *http.Request) { r.Header.Del("Authorization") }),
		http.StatusUnauthorized, "no-bearer")
	b.problem(b.do(http.MethodGet, eventsPath("none"), nil), http.StatusNotFound, "not-found")
	b.problem(b.do(http.MethodGet, eventsPath("No_Name"), nil), http.StatusNotFound, "not-found")
	b.problem(b.do(http.MethodPost, eventsPath("example"), nil), http.StatusMethodNotAllowed, "malformed")
	if r := b.do(http.MethodHead, eventsPath("example"), nil); r.status != http.StatusOK || r.header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("HEAD got %s with %v", r, r.header)
	}
	lone := newLoneBench(t)
	lone.problem(lone.do(http.MethodGet, eventsPath("example"), nil), http.StatusServiceUnavailable, "unavailable")
}

func TestEventsGoOnAfterAnOutage(t *testing.T) {
	t.Parallel()
	b := newBench(t, beating)
	b.run()
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
	b.commit("other", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
	s, other := b.open("example"), b.open("other")
	s.addon()
	other.addon()
	b.wire.intercept(func(*http.Request) *http.Response {
		return failure(http.StatusInternalServerError, metav1.StatusReasonInternalError)
	})
	b.wire.cut()
	s.silent() // heartbeats go on
	b.operate("example", planned)
	b.must(b.cluster.Delete(t.Context(), b.addon("other")))
	s.silent()
	b.wire.intercept(nil)
	s.until("the plan", func(d apitype.AddonChart) bool { return d.Phase == v1alpha1.PhasePlanned })
	other.ends(apitype.EventDeleted, `{"name":"other"}`)
}

func TestStreamsOfAnAddonThatIsMadeAnew(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.run()
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
	old := b.open("example")
	old.addon()
	b.must(b.cluster.Delete(t.Context(), b.addon("example")))
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
	s := b.open("example")
	old.ends(apitype.EventDeleted, `{"name":"example"}`)
	s.addon()
	b.operate("example", planned)
	s.until("the plan", func(d apitype.AddonChart) bool { return d.Phase == v1alpha1.PhasePlanned })
}

func TestASlowReaderIsDropped(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.run()
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
	at, err := url.Parse(b.url)
	b.must(err)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", at.Host)
	b.must(err)
	defer func() { _ = conn.Close() }()
	b.must(conn.(*net.TCPConn).SetReadBuffer(4 << 10))
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", eventsPath("example"), b.token)
	b.must(err)
	quick := b.open("example")
	quick.addon()
	b.eventually("both streams are open", func() error { return b.metric("zae_portal_event_streams 2") })
	large := strings.Repeat("x", 300<<10)
	for i := range 60 {
		b.operate("example", func(a *v1alpha1.ZaentrumAddon) {
			planned(a)
			a.Status.Plan.ValuesSchema = fmt.Sprintf("%d%s", i, large)
		})
		quick.until("the change", func(d apitype.AddonChart) bool { return strings.HasPrefix(d.Plan.ValuesSchema, fmt.Sprintf("%dx", i)) })
	}
	b.eventually("the slow one is dropped", func() error { return b.metric(`zae_portal_event_streams_ended_total{reason="slow"} 1`) })
	b.must(b.metric("zae_portal_event_streams 1"))
}

// metric tells whether a line is among the metrics.
func (b *bench) metric(line string) error {
	b.t.Helper()
	if r := b.do(http.MethodGet, "/metrics", nil); !strings.Contains(string(r.body), line+"\n") {
		return errors.New("no metric " + line)
	}
	return nil
}

func TestManyStreamsShareOneWatch(t *testing.T) {
	t.Parallel()
	const many = 200
	b := newBench(t, func(o *portal.Options) { o.StreamsPerCaller = many })
	b.run()
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
	b.open("example").addon()
	before := heap()
	all := make([]*stream, many-1)
	for i := range all {
		all[i] = b.open("example")
	}
	for _, s := range all {
		s.addon()
	}
	each := (heap() - before) / (many - 1) // the reader's side and the buffers of both ends included
	b.operate("example", planned)
	for _, s := range all {
		if _, doc := s.addon(); doc.Phase != v1alpha1.PhasePlanned {
			t.Fatalf("got %s", doc.Phase)
		}
	}
	if n := b.wire.watches(); n != 1 {
		t.Errorf("%d watches for %d streams", n, many)
	}
	if each > 256<<10 {
		t.Errorf("a stream takes %d KiB", each>>10)
	}
	t.Logf("a stream takes %d KiB, both ends", each>>10)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse) //nolint:gosec // far from the limit
}
