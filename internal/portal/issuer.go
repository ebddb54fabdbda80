package portal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"golang.org/x/sync/singleflight"

	"zaentrum.io/zae/internal/telemetry"
	"zaentrum.io/zae/internal/trace"
)

const (
	// issuerTimeout bounds one request to the issuer.
	issuerTimeout = 5 * time.Second
	// issuerPause is the shortest time between two attempts to find the issuer.
	issuerPause = time.Second
	// maxIssuerAnswer is the largest document that is read from the issuer.
	maxIssuerAnswer = 1 << 20
	// leeway is how far the issuer's clock may be off.
	leeway = 30 * time.Second
)

// issuer verifies tokens. It finds the issuer's documents when the first token comes, and again until it
// succeeds, so that portal-api starts while the issuer is down.
type issuer struct {
	auth       Auth
	algorithms []jose.SignatureAlgorithm
	now        func() time.Time
	tracing    *telemetry.Tracing
	client     *http.Client
	flight     singleflight.Group

	mu       sync.Mutex
	verifier *oidc.IDTokenVerifier
	keys     *keySet
	failed   time.Time // the last attempt that failed
}

func newIssuer(a Auth, algorithms []jose.SignatureAlgorithm, now func() time.Time, tracing *telemetry.Tracing) *issuer {
	transport := a.Transport
	if transport == nil {
		own := http.DefaultTransport.(*http.Transport).Clone()
		own.MaxIdleConnsPerHost = 2
		own.MaxResponseHeaderBytes = 64 << 10
		transport = own
	}
	i := &issuer{auth: a, algorithms: algorithms, now: now, tracing: tracing}
	i.client = &http.Client{
		Transport: &issuerTransport{next: transport, tracing: tracing}, Timeout: issuerTimeout,
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > 3 || via[0].URL.Scheme == "https" && r.URL.Scheme != "https" {
				return errors.New("the issuer redirects too often, or away from https")
			}
			return nil
		},
	}
	return i
}

func (i *issuer) close() {
	i.mu.Lock()
	keys := i.keys
	i.mu.Unlock()
	if keys != nil {
		keys.background.Wait()
	}
	i.client.CloseIdleConnections()
}

// verify checks signature, issuer, audience and time of a token. It is fault.SignIn when the
// issuer's documents cannot be read.
func (i *issuer) verify(ctx context.Context, raw string) (*oidc.IDToken, map[string]any, error) {
	verifier := i.find(ctx)
	if verifier == nil {
		return nil, nil, issuerFault("the issuer cannot be reached, so the bearer cannot be checked")
	}
	var unread bool // the library's errors do not tell
	token, err := verifier.Verify(context.WithValue(ctx, unreadKey{}, &unread), raw)
	switch {
	case unread, err != nil && ctx.Err() != nil:
		// The keys at hand did not fit, and new ones could not be read.
		return nil, nil, issuerFault("the issuer's keys cannot be read, so the bearer cannot be checked")
	case err != nil:
		// The library's text quotes claims.
		return nil, nil, invalidToken("the bearer is not a valid token of this instance's issuer")
	}
	claims := map[string]any{}
	if err := token.Claims(&claims); err != nil {
		return nil, nil, invalidToken("the bearer's claims cannot be read")
	}
	return token, claims, i.inTime(token, claims)
}

// inTime tells whether a token may be used now, with some leeway for clocks that differ.
func (i *issuer) inTime(token *oidc.IDToken, claims map[string]any) error {
	now := i.now()
	if token.Expiry.IsZero() {
		return invalidToken("the bearer does not say when it expires")
	}
	if !now.Before(token.Expiry.Add(leeway)) {
		return invalidToken("the bearer has expired")
	}
	if given, ok := claims["nbf"]; ok {
		from, ok := given.(float64)
		if !ok || from > float64(now.Add(leeway).Unix()) {
			return invalidToken("the bearer is not to be used yet")
		}
	}
	return nil
}

// unread tells whether the keys could not be read the last time that they were asked for.
func (i *issuer) unread() bool {
	i.mu.Lock()
	keys := i.keys
	i.mu.Unlock()
	if keys == nil {
		return false
	}
	keys.mu.Lock()
	defer keys.mu.Unlock()
	return keys.failed
}

// find is the verifier; nil while the issuer cannot be found.
func (i *issuer) find(ctx context.Context) *oidc.IDTokenVerifier {
	i.mu.Lock()
	verifier, failed := i.verifier, i.failed
	i.mu.Unlock()
	if verifier != nil || !failed.IsZero() && i.now().Sub(failed) < issuerPause {
		return verifier
	}
	found := i.flight.DoChan("find", func() (any, error) {
		i.mu.Lock()
		verifier := i.verifier
		i.mu.Unlock()
		if verifier != nil {
			return verifier, nil
		}
		// Not for as long as the caller waits: the answer is everybody's.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), issuerTimeout)
		defer cancel()
		verifier, keys, err := i.discover(ctx)
		i.mu.Lock()
		defer i.mu.Unlock()
		if err != nil {
			i.failed = i.now()
			return nil, err
		}
		i.verifier, i.keys = verifier, keys
		return verifier, nil
	})
	select {
	case <-ctx.Done():
		return nil
	case result := <-found:
		verifier, _ := result.Val.(*oidc.IDTokenVerifier)
		return verifier
	}
}

func (i *issuer) discover(ctx context.Context) (*oidc.IDTokenVerifier, *keySet, error) {
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, i.client), i.auth.Issuer)
	if err != nil {
		return nil, nil, err
	}
	var doc struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&doc); err != nil {
		return nil, nil, err
	}
	issuer, err := url.Parse(i.auth.Issuer)
	if err != nil {
		return nil, nil, err
	}
	if at, err := url.Parse(doc.Keys); err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != issuer.Scheme {
		return nil, nil, errors.New("the issuer has its keys where they cannot be read safely")
	}
	keys := &keySet{client: i.client, url: doc.Keys, algorithms: i.algorithms, now: i.now}
	return oidc.NewVerifier(i.auth.Issuer, keys, &oidc.Config{
		ClientID: i.auth.Audience, SkipClientIDCheck: i.auth.Audience == "",
		SupportedSigningAlgs: i.auth.Algorithms,
		SkipExpiryCheck:      true, // inTime does it, with the same leeway for both ends
	}), keys, nil
}

// issuerTransport bounds the size of what the issuer answers, and traces what it is asked.
type issuerTransport struct {
	next    http.RoundTripper
	tracing *telemetry.Tracing
}

// RoundTrip asks the issuer.
func (t *issuerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	_, end := t.tracing.Call(trace.From(r.Context()), "issuer")
	response, err := t.next.RoundTrip(r)
	if err != nil {
		end(0, telemetry.ProxyUnreachable)
		return nil, err
	}
	end(response.StatusCode, "")
	response.Body = &boundedBody{Reader: io.LimitReader(response.Body, maxIssuerAnswer), Closer: response.Body}
	return response, nil
}

// CloseIdleConnections lets http.Client reach the transport below.
func (t *issuerTransport) CloseIdleConnections() {
	if next, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		next.CloseIdleConnections()
	}
}

type boundedBody struct {
	io.Reader
	io.Closer
}

// fetchKeys reads a JSON Web Key Set (RFC 7517). Keys that are of no use to verify a signature are left out.
func fetchKeys(ctx context.Context, client *http.Client, address string) ([]jose.JSONWebKey, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // nothing of it is needed any more
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the issuer answers %d for its keys", response.StatusCode)
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.NewDecoder(response.Body).Decode(&set); err != nil {
		return nil, err
	}
	var keys []jose.JSONWebKey
	for _, raw := range set.Keys {
		var key jose.JSONWebKey
		// A kind of key that is not known is the issuer's business, and no reason to do without the others.
		if err := json.Unmarshal(raw, &key); err == nil && usable(key) {
			keys = append(keys, key)
		}
	}
	return keys, nil
}
