package portal

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

const (
	// issuerTimeout bounds one request to the issuer.
	issuerTimeout = 5 * time.Second
	// issuerPause is the shortest time between two attempts to find the issuer.
	issuerPause = time.Second
	// keysPause is the shortest time between two readings of the issuer's keys: a token with a made-up key id
	// makes the verifier ask for new ones.
	keysPause = 5 * time.Second
	// maxIssuerAnswer is the largest document that is read from the issuer.
	maxIssuerAnswer = 1 << 20
)

// issuer verifies tokens. It finds the issuer's documents when the first token comes, and again until it
// succeeds, so that portal-api starts while the issuer is down.
type issuer struct {
	auth   Auth
	now    func() time.Time
	client *http.Client
	calm   *calm

	mu       sync.Mutex
	verifier *oidc.IDTokenVerifier
	failed   time.Time // the last attempt that failed
}

func newIssuer(a Auth, now func() time.Time) *issuer {
	transport := a.Transport
	if transport == nil {
		own := http.DefaultTransport.(*http.Transport).Clone()
		own.MaxIdleConnsPerHost = 2
		transport = own
	}
	quiet := &calm{next: transport, now: now}
	return &issuer{auth: a, now: now, calm: quiet, client: &http.Client{Transport: quiet, Timeout: issuerTimeout}}
}

func (i *issuer) close() { i.client.CloseIdleConnections() }

// verify checks signature, issuer, audience and time of a token. It is fault.SignIn when the
// issuer's documents cannot be read.
func (i *issuer) verify(ctx context.Context, raw string) (*oidc.IDToken, error) {
	verifier := i.ready()
	if verifier == nil {
		return nil, issuerFault("the issuer cannot be reached, so the bearer cannot be checked")
	}
	failures := i.calm.failures.Load()
	token, err := verifier.Verify(ctx, raw)
	switch {
	case err == nil:
		return token, nil
	case expired(err):
		return nil, invalidToken("the bearer has expired")
	case i.calm.failures.Load() != failures, ctx.Err() != nil:
		// The keys at hand did not fit, and new ones could not be read.
		return nil, issuerFault("the issuer's keys cannot be read, so the bearer cannot be checked")
	}
	// The library's text quotes claims.
	return nil, invalidToken("the bearer is not a valid token of this instance's issuer")
}

// ready is the verifier; nil while the issuer cannot be found.
func (i *issuer) ready() *oidc.IDTokenVerifier {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.verifier != nil {
		return i.verifier
	}
	if !i.failed.IsZero() && i.now().Sub(i.failed) < issuerPause {
		return nil
	}
	// Not the caller's context: the answer is everybody's.
	ctx, cancel := context.WithTimeout(context.Background(), issuerTimeout)
	defer cancel()
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, i.client), i.auth.Issuer)
	if err != nil {
		i.failed = i.now()
		return nil
	}
	i.verifier = provider.Verifier(&oidc.Config{
		ClientID: i.auth.Audience, SkipClientIDCheck: i.auth.Audience == "",
		SupportedSigningAlgs: i.auth.Algorithms, Now: i.now,
	})
	return i.verifier
}

// calm reads each document of the issuer at most once per keysPause, however many tokens ask for it, bounds
// its size, and counts the readings that failed.
type calm struct {
	next     http.RoundTripper
	now      func() time.Time
	failures atomic.Int64

	mu   sync.Mutex
	kept map[string]document
}

// document is an answer that is kept for a moment.
type document struct {
	at     time.Time
	header http.Header
	body   []byte
}

// RoundTrip answers from what is kept, or asks.
func (c *calm) RoundTrip(r *http.Request) (*http.Response, error) {
	address := r.URL.String()
	c.mu.Lock()
	doc, ok := c.kept[address]
	c.mu.Unlock()
	if ok && c.now().Sub(doc.at) < keysPause {
		return doc.response(r), nil
	}
	response, err := c.next.RoundTrip(r)
	if err != nil {
		c.failures.Add(1)
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxIssuerAnswer))
	if closeErr := response.Body.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		c.failures.Add(1)
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		c.failures.Add(1)
		response.Body = io.NopCloser(bytes.NewReader(body))
		return response, nil
	}
	doc = document{at: c.now(), header: response.Header, body: body}
	c.mu.Lock()
	if c.kept == nil {
		c.kept = map[string]document{}
	}
	c.kept[address] = doc
	c.mu.Unlock()
	return doc.response(r), nil
}

func (d document) response(r *http.Request) *http.Response {
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: d.header.Clone(), Body: io.NopCloser(bytes.NewReader(d.body)), ContentLength: int64(len(d.body)), Request: r,
	}
}

// CloseIdleConnections lets http.Client reach the transport below.
func (c *calm) CloseIdleConnections() {
	if next, ok := c.next.(interface{ CloseIdleConnections() }); ok {
		next.CloseIdleConnections()
	}
}
