package portal

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/registry"
	"zaentrum.io/zae/internal/telemetry"
)

const (
	// maxBehind is how many events may wait for a reader; one that is further behind is dropped.
	maxBehind = 16
	// maxPending is how many states of an addon may wait to be written as documents; the latest counts.
	maxPending = 16
	// streamWrite is the time in which a reader must take what is written to it.
	streamWrite = 10 * time.Second
	// sweepEvery is the pause between two looks at what no event tells: what another replica wrote to the registry.
	sweepEvery = 2 * time.Second
	// streamRetry is the time after which a reader whose stream broke off shall come back.
	streamRetry = time.Second
)

// streams are the event streams that are open. Each change of an addon is made into a document once, however many
// streams show it, and by one goroutine; a stream that does not keep up is dropped.
type streams struct {
	s     *Server
	queue workqueue.TypedInterface[string] // names of topics that have something to do

	mu       sync.Mutex
	watched  *addonWatch // nil while Run does not run
	topics   map[string]*topic
	open     int
	byCaller map[string]int
}

// topic is one addon that is streamed.
type topic struct {
	readers map[*reader]struct{}
	// pending are states of the resource that no document was made of yet; the last one is the newest known.
	pending []state
	// shown is the state that last was made from, and last the event with it; nil before the first.
	shown *v1alpha1.ZaentrumAddon
	last  *event
	with  registration
	// stale asks for another look at the registry.
	stale bool
	// absent counts the sweeps in a row that did not find the resource among those watched.
	absent int
}

// state is a resource as it was at one moment, or the moment at which it was gone.
type state struct {
	addon *v1alpha1.ZaentrumAddon
	gone  bool
}

// event is one event in the form in which it is sent.
type event struct {
	id    string
	frame []byte
	// final says that the stream ends with it.
	final bool
}

// reader is one stream.
type reader struct {
	events chan *event // closed with a reader that is too far behind
	// seen is the id of the last event of a stream that this one goes on from.
	seen string
	// greeted tells that it has got the first event.
	greeted bool
}

func newStreams(s *Server) *streams {
	return &streams{s: s, topics: map[string]*topic{}, byCaller: map[string]int{}}
}

// follow makes the streams show what a watch sees.
func (b *streams) follow(w *addonWatch) error {
	_, err := w.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { b.seen(object, false) },
		UpdateFunc: func(_, object any) { b.seen(object, false) },
		DeleteFunc: func(object any) {
			if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			b.seen(object, true)
		},
	})
	if err != nil {
		return fmt.Errorf("watch addons: %w", err)
	}
	return nil
}

// run makes documents of what is seen, until ctx ends; then all streams end.
func (b *streams) run(ctx context.Context, w *addonWatch) {
	queue := workqueue.NewTyped[string]()
	b.mu.Lock()
	b.watched, b.queue = w, queue
	b.mu.Unlock()
	var group sync.WaitGroup
	group.Go(func() {
		for {
			name, end := queue.Get()
			if end {
				return
			}
			b.work(ctx, name)
			queue.Done(name)
		}
	})
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
			b.sweep(ctx)
		}
	}
	b.mu.Lock()
	b.watched, b.queue = nil, nil
	end := final(apitype.EventEnd, apitype.StreamEnd{Reason: apitype.EndShutdown})
	for name, t := range b.topics {
		for r := range t.readers {
			t.send(r, end)
		}
		delete(b.topics, name)
	}
	b.mu.Unlock()
	queue.ShutDown()
	group.Wait()
}

// wake has the worker look at a topic. The lock is held.
func (b *streams) wake(name string) {
	if b.queue != nil {
		b.queue.Add(name)
	}
}

// seen takes what the watch sees.
func (b *streams) seen(object any, gone bool) {
	if addon, ok := object.(*v1alpha1.ZaentrumAddon); ok {
		b.mu.Lock()
		defer b.mu.Unlock()
		if t := b.topics[addon.Name]; t != nil {
			t.take(state{addon, gone})
			b.wake(addon.Name)
		}
	}
}

// take takes a state that is newer than those it has: a watch may be behind what a stream was opened with.
func (t *topic) take(now state) {
	newest := t.shown
	if n := len(t.pending); n > 0 {
		newest = t.pending[n-1].addon
	}
	if newest != nil {
		// A deletion has a version of its own, unless the watch has missed it: then it has that of the last state seen.
		order, err := resourceversion.CompareResourceVersion(now.addon.ResourceVersion, newest.ResourceVersion)
		if err == nil && (order < 0 && now.addon.UID != newest.UID || order <= 0 && !now.gone) {
			return
		}
	}
	if len(t.pending) >= maxPending {
		t.pending = slices.Delete(t.pending, 0, 1)
	}
	t.pending = append(t.pending, now)
}

// registryChanged takes that this replica wrote about an addon to the registry.
func (b *streams) registryChanged(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.topics[name]; t != nil {
		t.stale = true
		b.wake(name)
	}
}

// sweep looks at what no event tells: what other replicas wrote to the registry, and a resource that was gone before the
// watch had seen it.
func (b *streams) sweep(ctx context.Context) {
	b.mu.Lock()
	quiet := len(b.topics) == 0
	b.mu.Unlock()
	if quiet {
		return
	}
	sources, failures, err := b.registrations(ctx)
	if err != nil {
		return // what was shown stays; the next sweep asks again
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, t := range b.topics {
		now := registration{is: sources[name] == registry.SourceChart, failure: failures[name].Message}
		if t.last != nil && now != t.with {
			t.stale = true
		}
		if addon, err := b.watched.get(name); err == nil && addon == nil {
			t.absent++
		} else {
			t.absent = 0
		}
		if t.stale || t.absent > 1 || t.last == nil {
			b.wake(name)
		}
	}
}

func (b *streams) registrations(ctx context.Context) (map[string]registry.Source, map[string]registry.Failure, error) {
	ctx, cancel := context.WithTimeout(ctx, b.s.o.RequestTimeout)
	defer cancel()
	sources, err := b.s.o.Registry.Sources(ctx)
	if err != nil {
		return nil, nil, err
	}
	failures, err := b.s.o.Registry.Failures(ctx)
	return sources, failures, err
}

// work makes events of everything that a topic has to show.
func (b *streams) work(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(ctx, b.s.o.RequestTimeout)
	defer cancel()
	b.mu.Lock()
	t := b.topics[name]
	lost := t != nil && t.absent > 1 && len(t.pending) == 0
	b.mu.Unlock()
	if t == nil {
		return
	}
	if lost {
		b.findLost(ctx, name, t)
	}
	// The registry is read before the states are taken: what is written to it meanwhile asks for another look.
	b.mu.Lock()
	t.stale = false
	b.mu.Unlock()
	with, err := b.s.registrationOf(ctx, name)
	if err != nil {
		return // the sweep asks again
	}
	b.mu.Lock()
	pending, shown := t.pending, t.shown
	t.pending = nil
	if len(pending) == 0 && shown != nil {
		pending = []state{{addon: shown}}
	}
	b.mu.Unlock()
	for _, now := range pending {
		e := render(now.addon, with)
		b.mu.Lock()
		t.show(now, e, with)
		b.mu.Unlock()
	}
	b.mu.Lock()
	t.greet()
	b.mu.Unlock()
}

// findLost asks the cluster about a resource that the watch does not have.
func (b *streams) findLost(ctx context.Context, name string, t *topic) {
	r, err := b.s.read(ctx, name)
	b.mu.Lock()
	defer b.mu.Unlock()
	t.absent = 0
	switch {
	case err == nil:
		t.take(state{addon: &r.addon})
	case fault.CodeOf(err) == fault.NotFound && t.shown != nil:
		t.pending = append(t.pending, state{addon: t.shown, gone: true})
	}
}

// show sends a state to the readers. One of another resource than before ends the streams of that one. The lock is held.
func (t *topic) show(now state, e *event, with registration) {
	if t.shown != nil && (t.shown.UID != now.addon.UID || now.gone) {
		t.greet() // who came last has not got the state before
		t.end(final(apitype.EventDeleted, apitype.Deleted{Name: t.shown.Name}))
	}
	if now.gone {
		t.shown, t.last = nil, nil
		return
	}
	if t.last != nil && t.last.id == e.id {
		t.shown, t.with = now.addon, with
		return
	}
	t.shown, t.last, t.with = now.addon, e, with
	for r := range t.readers {
		if r.greeted {
			t.send(r, e)
		}
	}
}

// greet sends the last event to those who have got none, unless they have it from a stream before. The lock is held.
func (t *topic) greet() {
	if t.last == nil {
		return
	}
	for r := range t.readers {
		if !r.greeted {
			r.greeted = true
			if r.seen != t.last.id {
				t.send(r, t.last)
			}
		}
	}
}

// end sends the last event of the streams that show something. The lock is held.
func (t *topic) end(e *event) {
	for r := range t.readers {
		if r.greeted {
			t.send(r, e)
		}
	}
}

// send hands an event to a reader, or drops a reader that is too far behind. The lock is held.
func (t *topic) send(r *reader, e *event) {
	select {
	case r.events <- e:
		if e.final {
			delete(t.readers, r)
		}
	default:
		close(r.events)
		delete(t.readers, r)
	}
}

// render makes the event that shows an addon. Its id stands for what it shows, on every replica.
func render(a *v1alpha1.ZaentrumAddon, with registration) *event {
	doc, err := chartDocument(a, with)
	if err != nil { // values that are none: the resource is shown without them
		doc.Message = err.Error()
	}
	data, err := json.Marshal(doc)
	if err != nil { // only a document that JSON cannot hold, and ours came from JSON
		data = []byte("{}")
	}
	sum := sha256.Sum256(append([]byte(a.UID), data...))
	id := base64.RawURLEncoding.EncodeToString(sum[:15])
	return &event{id: id, frame: frame(apitype.EventAddon, id, data)}
}

// final is the last event of a stream.
func final(kind string, data any) *event {
	raw, err := json.Marshal(data)
	if err != nil { // two plain types
		raw = []byte("{}")
	}
	return &event{frame: frame(kind, "", raw), final: true}
}

// frame is an event as it is sent. JSON has no line breaks of its own.
func frame(kind, id string, data []byte) []byte {
	out := make([]byte, 0, len(data)+len(kind)+len(id)+32)
	out = append(out, "event: "+kind+"\n"...)
	if id != "" {
		out = append(out, "id: "+id+"\n"...)
	}
	out = append(out, "data: "...)
	out = append(out, data...)
	return append(out, "\n\n"...)
}

// ready waits until the first list of addons is complete.
func (b *streams) ready(ctx context.Context) bool {
	b.mu.Lock()
	watched := b.watched
	b.mu.Unlock()
	return watched != nil && cache.WaitForCacheSync(ctx.Done(), watched.HasSynced)
}

// join opens a stream of an addon, which was just read. The function closes it.
func (b *streams) join(from caller, live *v1alpha1.ZaentrumAddon, seen string) (*reader, func(), error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := from.key()
	switch {
	case b.watched == nil:
		return nil, nil, later(fault.New(fault.Busy, "addons are not watched: portal-api starts or stops"), 0)
	case b.byCaller[key] >= b.s.o.StreamsPerCaller:
		return nil, nil, later(fault.New(fault.RateLimited, "%d event streams of this caller are open already", b.byCaller[key]).
			WithHint("close one first, or read the addon without a stream"), 30*time.Second)
	case b.open >= b.s.o.Streams:
		return nil, nil, later(fault.New(fault.Busy, "%d event streams are open already", b.open).
			WithHint("read the addon without a stream"), 30*time.Second)
	}
	t := b.topics[live.Name]
	if t == nil {
		t = &topic{readers: map[*reader]struct{}{}}
		b.topics[live.Name] = t
	}
	r := &reader{events: make(chan *event, maxBehind), seen: seen}
	t.readers[r] = struct{}{}
	t.take(state{addon: live})
	b.open++
	b.byCaller[key]++
	b.wake(live.Name)
	return r, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(t.readers, r)
		if len(t.readers) == 0 && b.topics[live.Name] == t {
			delete(b.topics, live.Name)
		}
		b.open--
		if b.byCaller[key]--; b.byCaller[key] == 0 {
			delete(b.byCaller, key)
		}
	}, nil
}

// later is a fault with the time after which to try again, in whole seconds; 0 means soon.
func later(f *fault.Fault, after time.Duration) error {
	seconds := max(1, int64((after+time.Second-1)/time.Second))
	return &httpFault{Fault: f, header: http.Header{"Retry-After": {strconv.FormatInt(seconds, 10)}}}
}

// chartEvents answers GET /api/portal/addon-charts/{name}/events.
func (s *Server) chartEvents(w http.ResponseWriter, r *http.Request) {
	from, reader, leave, err := s.joinEvents(r)
	if err != nil {
		s.problem(w, r, err)
		return
	}
	defer leave()
	ended := s.metrics.StreamOpened()
	reason := telemetry.StreamGone
	defer func() { ended(reason) }()
	out := &eventWriter{w: w, control: http.NewResponseController(w)}
	w.Header().Set("Content-Type", apitype.EventStreamType)
	w.Header().Set("X-Accel-Buffering", "no") // nginx, and others that follow it, pass each event on at once
	if r.Method == http.MethodHead {
		return
	}
	if !out.write([]byte("retry: " + strconv.FormatInt(streamRetry.Milliseconds(), 10) + "\n\n")) {
		return
	}
	var expiry <-chan time.Time
	if !from.expires.IsZero() {
		timer := time.NewTimer(from.expires.Sub(s.now()))
		defer timer.Stop()
		expiry = timer.C
	}
	beat := time.NewTicker(s.o.Heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-expiry:
			reason = telemetry.StreamExpired
			out.write(final(apitype.EventEnd, apitype.StreamEnd{Reason: apitype.EndExpired}).frame)
			return
		case <-beat.C:
			if !out.write([]byte(": still here\n\n")) {
				return
			}
		case e, ok := <-reader.events:
			if !ok {
				reason = telemetry.StreamSlow
				out.write(final(apitype.EventEnd, apitype.StreamEnd{Reason: apitype.EndSlow}).frame)
				return
			}
			if !out.write(e.frame) {
				reason = telemetry.StreamSlow
				return
			}
			beat.Reset(s.o.Heartbeat)
			if e.final {
				reason = telemetry.StreamEnded
				return
			}
		}
	}
}

// joinEvents opens the stream that a request asks for.
func (s *Server) joinEvents(r *http.Request) (from caller, _ *reader, leave func(), err error) {
	ctx, cancel := context.WithTimeout(r.Context(), s.o.RequestTimeout)
	defer cancel()
	if from, err = s.admit(ctx, chartAdmin, r); err != nil {
		return from, nil, nil, err
	}
	name := r.PathValue("name")
	if !possibleName(name) {
		return from, nil, nil, noAddon(name)
	}
	live, err := s.read(ctx, name)
	if err != nil {
		return from, nil, nil, err
	}
	if !s.streams.ready(ctx) {
		return from, nil, nil, later(fault.New(fault.Busy, "addons are not watched yet"), 0)
	}
	reader, leave, err := s.streams.join(from, &live.addon, r.Header.Get("Last-Event-ID"))
	return from, reader, leave, err
}

// eventWriter writes to a reader who must take it in time. The server's own limit, which is for a whole answer, does not
// hold for a stream.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// write tells whether the reader is still there.
func (o *eventWriter) write(p []byte) bool {
	if err := o.control.SetWriteDeadline(time.Now().Add(streamWrite)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return false
	}
	if _, err := o.w.Write(p); err != nil {
		return false
	}
	return o.control.Flush() == nil
}

// noting is the registry, with a word on each write about an addon.
type noting struct {
	registry.Store
	changed func(name string)
}

// Register writes an addon's rows.
func (n *noting) Register(ctx context.Context, r registry.Registration) error {
	err := n.Store.Register(ctx, r)
	if err == nil {
		n.changed(r.Manifest.Service)
	}
	return err
}

// Remove removes an addon's rows.
func (n *noting) Remove(ctx context.Context, key string, source registry.Source) ([]string, error) {
	removed, err := n.Store.Remove(ctx, key, source)
	n.changed(key)
	return removed, err
}

// Fail keeps why an addon could not be registered.
func (n *noting) Fail(ctx context.Context, key, message string, at time.Time) error {
	err := n.Store.Fail(ctx, key, message, at)
	n.changed(key)
	return err
}

// Clear forgets an addon's failure.
func (n *noting) Clear(ctx context.Context, key string) error {
	err := n.Store.Clear(ctx, key)
	n.changed(key)
	return err
}
