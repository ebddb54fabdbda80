package chart

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"go.uber.org/goleak"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/fault"
)

// surroundings is a proxy that the environment names to all tests here. Nobody may use it.
var surroundings atomic.Int32

func TestMain(m *testing.M) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		surroundings.Add(1)
		w.WriteHeader(http.StatusBadGateway)
	}))
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		for _, name := range []string{name, strings.ToLower(name)} {
			if err := os.Setenv(name, proxy.URL); err != nil {
				panic(err)
			}
		}
	}
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent(), goleak.Cleanup(func(code int) {
		proxy.Close()
		if n := surroundings.Load(); n > 0 && code == 0 {
			fmt.Fprintf(os.Stderr, "the environment's proxy was used %d times\n", n)
			code = 1
		}
		os.Exit(code)
	}))
}

func TestTheEnvironmentsProxyIsNotUsed(t *testing.T) {
	nowhere := newNames(t, always())
	f := fetcher(t, FetcherOptions{resolver: nowhere.resolver()})
	for _, ref := range []string{"https://example.com/a.tgz", "oci://example.com/a"} {
		_, err := f.Fetch(t.Context(), v1alpha1.ChartSource{Ref: ref, Version: "1"})
		wantFault(t, err, fault.Registry, "chart "+ref, "the registry example.com", "no such host")
		if fault.From(err).Hint == "" {
			t.Error("no way out")
		}
	}
	if n := surroundings.Load(); n > 0 {
		t.Errorf("it was used %d times", n)
	}
}

// server is an HTTP server on loopback that remembers what was asked of it.
type server struct {
	*httptest.Server
	mu   sync.Mutex
	hits []string
	// before, when set, may answer a request itself.
	before func(w http.ResponseWriter, r *http.Request) bool
	seen   func(r *http.Request)
}

func serve(t testing.TB, tls bool, next http.Handler) *server {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return start(t, l, tls, next)
}

// serveOn serves over https on a listener.
func serveOn(t testing.TB, l net.Listener, next http.Handler) *server {
	t.Helper()
	return start(t, l, true, next)
}

func start(t testing.TB, l net.Listener, tls bool, next http.Handler) *server {
	t.Helper()
	s := &server{}
	s.Server = &httptest.Server{Listener: l, Config: &http.Server{ReadHeaderTimeout: time.Minute}}
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.hits = append(s.hits, r.Method+" "+r.URL.RequestURI())
		before, seen := s.before, s.seen
		s.mu.Unlock()
		if seen != nil {
			seen(r)
		}
		if before != nil && before(w, r) {
			return
		}
		if next != nil {
			next.ServeHTTP(w, r)
		}
	})
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	if tls {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

func (s *server) host() string { return s.Listener.Addr().String() }

// asked are the requests since the last call.
func (s *server) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	hits := s.hits
	s.hits = nil
	return hits
}

func (s *server) intercept(f func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = f
}

func (s *server) fail(status int) {
	s.intercept(func(w http.ResponseWriter, _ *http.Request) bool {
		http.Error(w, "hunter2", status)
		return true
	})
}

func (s *server) recover() { s.intercept(nil) }

// roots trusts the servers.
func roots(servers ...*server) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, s := range servers {
		pool.AddCert(s.Certificate())
	}
	return pool
}

// ociRegistry is an OCI registry.
type ociRegistry struct {
	*server
	t    testing.TB
	made int // manifests
}

func newRegistry(t testing.TB, tls bool) *ociRegistry {
	t.Helper()
	return &ociRegistry{server: serve(t, tls, registry.New(registry.Logger(log.New(io.Discard, "", 0)))), t: t}
}

func (r *ociRegistry) do(method, path, contentType string, body []byte) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.URL+path, bytes.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	resp, err := r.Client().Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		r.t.Fatal(err)
	}
	if resp.StatusCode >= 300 {
		r.t.Fatalf("%s %s: %s", method, path, resp.Status)
	}
}

type layer struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int    `json:"size"`
}

// blob stores content and returns its descriptor.
func (r *ociRegistry) blob(repo, mediaType string, data []byte) layer {
	r.t.Helper()
	r.do(http.MethodPost, "/v2/"+repo+"/blobs/uploads/?digest="+digestOf(data), "application/octet-stream", data)
	return layer{mediaType, digestOf(data), len(data)}
}

// manifest stores a manifest under a tag and returns its digest.
func (r *ociRegistry) manifest(repo, tag string, layers ...layer) string {
	r.t.Helper()
	config := r.blob(repo, "application/vnd.cncf.helm.config.v1+json", []byte(`{"name":"example"}`))
	r.made++
	m, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": layers,
		"annotations": map[string]string{"made": fmt.Sprint(r.made)}, // another digest every time
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.do(http.MethodPut, "/v2/"+repo+"/manifests/"+tag, "application/vnd.oci.image.manifest.v1+json", m)
	return digestOf(m)
}

// push stores a chart and returns the manifest's digest.
func (r *ociRegistry) push(repo, tag string, archive []byte) string {
	r.t.Helper()
	d := r.manifest(repo, tag, r.blob(repo, chartMediaType, archive))
	r.asked()
	return d
}

func (r *ociRegistry) source(repo, version, digest string) v1alpha1.ChartSource {
	return v1alpha1.ChartSource{Ref: "oci://" + r.host() + "/" + repo, Version: version, Digest: digest}
}

// fetcher makes a fetcher that may reach the servers.
func fetcher(t testing.TB, o FetcherOptions, servers ...*server) *Fetcher {
	t.Helper()
	for _, s := range servers {
		o.AllowLoopback = append(o.AllowLoopback, s.host())
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	if o.Sleep == nil {
		o.Sleep = func(context.Context, time.Duration) error { return nil }
	}
	f, err := NewFetcher(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func mustFetch(t testing.TB, f *Fetcher, src v1alpha1.ChartSource, want []byte) *Archive {
	t.Helper()
	a, err := f.Fetch(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a.Bytes, want) || a.Digest != digestOf(want) {
		t.Fatalf("got %s (%d bytes), want %s", a.Digest, len(a.Bytes), digestOf(want))
	}
	return a
}

// kinds are requests without their digests and hosts, sorted and without repetition.
func kinds(hits []string) []string {
	var out []string
	for _, h := range hits {
		if i := strings.Index(h, "sha256:"); i >= 0 {
			h = h[:i] + "DIGEST"
		}
		out = append(out, h)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// noSleep fails the test when a request is sent again.
func noSleep(t testing.TB) func(context.Context, time.Duration) error {
	return func(context.Context, time.Duration) error {
		t.Error("a request is sent again")
		return nil
	}
}

// pipe carries bytes between two connections until either ends.
func pipe(a, b net.Conn) {
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // a tunnel ends this way
			_ = way[0].Close()
			_ = way[1].Close()
		})
	}
	both.Wait()
}
