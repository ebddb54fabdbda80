package chart

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/fault"
)

// DefaultTimeout is how long one fetch may take (decisions §8).
const DefaultTimeout = 30 * time.Second

// DefaultCacheBytes is the size of the archive cache when FetcherOptions name none.
const DefaultCacheBytes = 512 << 20

// FetcherOptions say how charts are fetched. The zero value fetches from public and private addresses and
// keeps archives in memory.
type FetcherOptions struct {
	// CacheDir keeps fetched archives across restarts; empty keeps them in memory only. One process uses a
	// directory at a time.
	CacheDir string
	// CacheBytes bounds the archives kept; 0 is DefaultCacheBytes. Those used least recently go first.
	CacheBytes int64
	// AllowLoopback lists the host:port of registries that are on loopback and may speak plain http. For
	// development and tests.
	AllowLoopback []string
	// Deny names more addresses to refuse, such as the cluster's API server, and says what they are. It is
	// asked on every connection, from several goroutines. May be nil.
	Deny func(netip.Addr) (why string, denied bool)
	// Timeout of one fetch with all its requests; 0 is DefaultTimeout.
	Timeout time.Duration
	// Proxy is the URL of a proxy, http://host:port or https://host:port, that all requests go through, apart
	// from those to AllowLoopback; empty for none, whatever the environment says. What it connects to is out
	// of the guard's sight: it must refuse the same addresses.
	Proxy string
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Sleep waits before a request is sent again; nil waits that long, or until the context ends.
	Sleep func(context.Context, time.Duration) error
	// Random spreads such requests: a number in [0, 1), asked for from several goroutines; nil is rand.Float64.
	Random func() float64

	// For tests:
	roots    *x509.CertPool        // instead of the system's
	resolver *net.Resolver         // instead of the system's
	outside  func(netip.Addr) bool // addresses of this machine that stand for some outside
}

func (o *FetcherOptions) defaults() {
	if o.CacheBytes <= 0 {
		o.CacheBytes = DefaultCacheBytes
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
}

// Fetcher fetches chart archives. It is safe for use by several goroutines.
type Fetcher struct {
	courier *courier
	cache   *cache
	parsed  *parsedCache
	timeout time.Duration
	stats   counts
	// base is what fetches run under: one serves several callers, so it cannot end with one of them.
	base context.Context
	stop context.CancelFunc

	mu      sync.Mutex
	flights map[string]*flight
	closed  bool
	running sync.WaitGroup
}

// flight is one fetch that several callers wait for.
type flight struct {
	done    chan struct{}
	archive *Archive
	err     error
}

// Archive is a fetched chart archive. Its bytes must not be changed.
type Archive struct {
	Bytes  []byte
	Digest string // sha256:… of Bytes
	// Stale is not empty when the registry did not answer and this is the archive at hand; it says so.
	Stale string

	parsed *parsedCache // of the fetcher it came from; may be nil
}

// NewFetcher makes a fetcher. Close it when it is no longer needed.
func NewFetcher(o FetcherOptions) (*Fetcher, error) {
	o.defaults()
	c, err := newCourier(o)
	if err != nil {
		return nil, err
	}
	store, err := newStore(o.CacheDir, o.CacheBytes, o.Now)
	if err != nil {
		return nil, fmt.Errorf("chart cache: %w", err)
	}
	f := &Fetcher{
		courier: c,
		cache:   &cache{store: store},
		parsed:  newParsedCache(parsedBytes),
		timeout: o.Timeout,
		flights: map[string]*flight{},
	}
	f.base, f.stop = context.WithCancel(context.Background())
	return f, nil
}

// Close ends the fetches that are under way and waits for them.
func (f *Fetcher) Close() error {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.stop()
	f.running.Wait()
	f.courier.base.CloseIdleConnections()
	return nil
}

// Fetch returns the archive that src names. An archive with the digest that src asks for is served from the
// cache without a request when it was fetched under the same reference and version before; any other is
// revalidated. Callers that ask for the same at the same time share one fetch.
//
// Faults: Invalid (src is not acceptable), ChartMissing, Digest, Registry (no answer, and nothing at hand),
// Chart (the answer is no chart, is too large, or comes from where no chart is fetched from) and Internal (a panic).
func (f *Fetcher) Fetch(ctx context.Context, src v1alpha1.ChartSource) (*Archive, error) {
	w, err := newWish(src)
	if err != nil {
		return nil, err
	}
	fl, err := f.join(w)
	if err != nil {
		return nil, err
	}
	select {
	case <-fl.done:
		return fl.archive, fl.err
	case <-ctx.Done():
		return nil, fault.New(fault.Registry, "chart %s: fetching was given up", w).WithHint(hintWait).Because(ctx.Err())
	}
}

// join finds the flight for w or starts one.
func (f *Fetcher) join(w wish) (*flight, error) {
	key := w.key() + "\x00" + w.digest
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, errors.New("the chart fetcher is closed")
	}
	if fl, ok := f.flights[key]; ok {
		return fl, nil
	}
	fl := &flight{done: make(chan struct{})}
	f.flights[key] = fl
	f.running.Go(func() {
		ctx, cancel := context.WithTimeout(f.base, f.timeout)
		defer cancel()
		defer func() {
			if p := recover(); p != nil { // what a registry answers must not end the program
				fl.archive, fl.err = nil, fault.Recovered(p, "chart %s: fetching it failed inside zae", w)
			}
			f.mu.Lock()
			delete(f.flights, key)
			f.mu.Unlock()
			close(fl.done)
		}()
		var how origin
		fl.archive, how, fl.err = f.fetch(f.courier.retries.within(ctx, f.timeout), w)
		f.stats.count(how, fl.archive)
	})
	return fl, nil
}

// wish is a chart source, understood.
type wish struct {
	ref     Reference
	version string // empty for https
	digest  string // empty when any will do
}

func newWish(src v1alpha1.ChartSource) (wish, error) {
	ref, err := ParseReference(src.Ref)
	if err != nil {
		return wish{}, err
	}
	if err := checkVersion(src.Version); err != nil {
		return wish{}, err
	}
	if err := checkDigest(src.Digest); err != nil {
		return wish{}, err
	}
	w := wish{ref: ref, digest: src.Digest}
	if ref.Scheme == SchemeOCI {
		if ref.Tag != "" {
			return wish{}, fault.New(fault.Invalid, "chart %s has a tag in its reference", ref).WithHint("give it as version")
		}
		if src.Version == "" {
			return wish{}, needsVersion(ref)
		}
		w.version = src.Version
	}
	return w, nil
}

// key names what is asked for, apart from the digest.
func (w wish) key() string { return w.ref.canonical() + "\x00" + tagOf(w.version) }

// String is for people.
func (w wish) String() string {
	if w.version == "" {
		return w.ref.String()
	}
	return w.ref.String() + " " + w.version
}

func (f *Fetcher) fetch(ctx context.Context, w wish) (*Archive, origin, error) {
	known := f.cache.known(w.key())
	if w.digest != "" {
		for i, r := range known {
			if r.matches(w.digest) {
				if data, ok := f.cache.blob(r.Archive); ok {
					if i >= maxRecords/2 { // near the front nothing is forgotten soon
						f.cache.use(w.key(), r)
					}
					return f.archive(data, r.Archive), cached, nil
				}
			}
		}
	}
	var g got
	var err error
	if w.ref.Scheme == SchemeOCI {
		g, err = f.fetchOCI(ctx, w, known)
	} else {
		g, err = f.fetchHTTPS(ctx, w, known)
	}
	if err != nil {
		fl, outage := f.explain(w, err)
		if outage && w.digest == "" {
			if a := f.atHand(known, fl); a != nil {
				return a, stale, nil
			}
		}
		return nil, failed, fl
	}
	if w.digest != "" && !g.record.matches(w.digest) {
		return nil, failed, mismatch(w, g.record)
	}
	f.cache.remember(w.key(), g.record)
	return f.archive(g.data, g.record.Archive), g.origin, nil
}

// got is what a registry or server was asked for.
type got struct {
	data   []byte
	record record
	origin origin
}

// atHand is the last archive fetched under the same reference and version, for when the registry fails.
func (f *Fetcher) atHand(known []record, why *fault.Fault) *Archive {
	for _, r := range known {
		if data, ok := f.cache.blob(r.Archive); ok {
			a := f.archive(data, r.Archive)
			a.Stale = fmt.Sprintf("%s; using the archive at hand, %s", why.Message, r.Archive)
			return a
		}
	}
	return nil
}

func (f *Fetcher) archive(data []byte, digest string) *Archive {
	return &Archive{Bytes: data, Digest: digest, parsed: f.parsed}
}

func mismatch(w wish, got record) *fault.Fault {
	what := "archive " + got.Archive
	if got.Manifest != "" {
		what += ", manifest " + got.Manifest
	}
	return fault.New(fault.Digest, "chart %s is not %s (%s)", w, w.digest, what).
		WithHint("the version was published again with other content, or the digest is another chart's: review it and give the new digest")
}

// digestOf is sha256:… of data.
func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}
