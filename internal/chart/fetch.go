package chart

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

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
	// Now is the clock by which the cache knows what was used last; nil is time.Now.
	Now func() time.Time

	roots *x509.CertPool // instead of the system's; for tests
}

// Fetcher fetches chart archives. It is safe for use by several goroutines.
type Fetcher struct {
	courier *courier
	cache   *cache
	parsed  *parsedCache
	timeout time.Duration
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
	c, err := newCourier(o.AllowLoopback, o.Deny, o.roots)
	if err != nil {
		return nil, err
	}
	if o.CacheBytes <= 0 {
		o.CacheBytes = DefaultCacheBytes
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Now == nil {
		o.Now = time.Now
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
// Faults: Invalid (src is not acceptable), ChartMissing, Digest, Registry (no answer, and nothing at hand)
// and Chart (the answer is no chart, is too large, or comes from where no chart is fetched from).
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
		return nil, fault.New(fault.Registry, "chart %s: fetching was given up", w).Because(ctx.Err())
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
		fl.archive, fl.err = f.fetch(ctx, w)
		f.mu.Lock()
		delete(f.flights, key)
		f.mu.Unlock()
		close(fl.done)
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

func (f *Fetcher) fetch(ctx context.Context, w wish) (*Archive, error) {
	known := f.cache.known(w.key())
	if w.digest != "" {
		for _, r := range known {
			if r.matches(w.digest) {
				if data, ok := f.cache.blob(r.Archive); ok {
					return f.archive(data, r.Archive), nil
				}
			}
		}
	}
	var data []byte
	var rec record
	var err error
	if w.ref.Scheme == SchemeOCI {
		data, rec, err = f.fetchOCI(ctx, w, known)
	} else {
		data, rec, err = f.fetchHTTPS(ctx, w, known)
	}
	if err != nil {
		fl, outage := f.explain(w, err)
		if outage && w.digest == "" {
			if a := f.atHand(known, fl); a != nil {
				return a, nil
			}
		}
		return nil, fl
	}
	if w.digest != "" && !rec.matches(w.digest) {
		return nil, mismatch(w, rec)
	}
	f.cache.remember(w.key(), rec)
	return f.archive(data, rec.Archive), nil
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

// statusError is an answer that is not the one asked for.
type statusError struct{ status int }

func (e *statusError) Error() string { return fmt.Sprintf("status %d", e.status) }

// explain makes the fault of an error on the way, without its text, which may carry a URL. outage tells
// whether the registry failed, as opposed to having answered or being refused by us.
func (f *Fetcher) explain(w wish, err error) (flt *fault.Fault, outage bool) {
	var own *fault.Fault
	if errors.As(err, &own) {
		return own, false
	}
	var no *refusal
	if errors.As(err, &no) {
		return fault.New(fault.Chart, "chart %s: %s", w, no.why).Because(err), false
	}
	if status := statusOf(err); status != 0 {
		return f.explainStatus(w, status, err)
	}
	return fault.New(fault.Registry, "chart registry %s %s", w.ref.Host, f.trouble(err)).Because(err), true
}

func statusOf(err error) int {
	var se *statusError
	if errors.As(err, &se) {
		return se.status
	}
	var te *transport.Error
	if errors.As(err, &te) {
		return te.StatusCode
	}
	return 0
}

func (f *Fetcher) explainStatus(w wish, status int, err error) (*fault.Fault, bool) {
	switch {
	case status == http.StatusNotFound || status == http.StatusGone:
		return fault.New(fault.ChartMissing, "chart %s not found", w).Because(err), false
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fault.New(fault.ChartMissing, "chart %s not found, or not public", w).
			WithHint("charts are fetched anonymously: make the chart public, or serve it from a registry that lets anonymous clients read").Because(err), false
	case status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout:
		return fault.New(fault.Registry, "chart registry %s answered with status %d", w.ref.Host, status).Because(err), true
	default:
		return fault.New(fault.Registry, "chart registry %s answered with status %d", w.ref.Host, status).Because(err), false
	}
}

// trouble is what kind of network failure err is.
func (f *Fetcher) trouble(err error) string {
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var ne net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("did not answer within %s", f.timeout)
	case errors.Is(err, context.Canceled):
		return "was not waited for"
	case errors.As(err, &dns) && dns.IsNotFound:
		return "cannot be reached: no such host"
	case errors.As(err, &dns):
		return "cannot be reached: its name cannot be looked up"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "cannot be reached: connection refused"
	case errors.As(err, &cert):
		return "cannot be trusted: its TLS certificate is not valid"
	case errors.As(err, &record):
		return "does not speak https"
	case errors.As(err, &ne) && ne.Timeout():
		return "did not answer in time"
	default:
		return "failed: the connection broke or the answer could not be understood"
	}
}
