package portal_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/portal"
)

// craft makes a compact token of whatever header and claims.
func craft(t *testing.T, head, claims any, signature string) string {
	t.Helper()
	part := func(v any) string {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	return part(head) + "." + part(claims) + "." + base64.RawURLEncoding.EncodeToString([]byte(signature))
}

// signWith signs with more in the header.
func signWith(t testing.TB, key jose.SigningKey, claims map[string]any, more map[jose.HeaderKey]any, embed bool) string {
	t.Helper()
	options := (&jose.SignerOptions{EmbedJWK: embed}).WithType("JWT")
	for name, value := range more {
		options = options.WithHeader(name, value)
	}
	signer, err := jose.NewSigner(key, options)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	out, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestForgedTokensAreNotBelieved(t *testing.T) {
	t.Parallel()
	b := newLoneBench(t)
	claims := b.issuer.adminClaims()
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	b.must(err)
	small, err := rsa.GenerateKey(rand.Reader, 1024) //nolint:gosec // too small, on purpose
	b.must(err)
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	b.must(err)
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	b.must(err)
	secret := []byte("0123456789abcdef0123456789abcdef")
	b.issuer.mu.Lock()
	own, kid := b.issuer.key, b.issuer.keyID
	b.issuer.more = []any{
		jose.JSONWebKey{Key: rsaKey.Public(), KeyID: "rsa"}, jose.JSONWebKey{Key: small.Public(), KeyID: "small"},
		jose.JSONWebKey{Key: secret, KeyID: "secret"}, jose.JSONWebKey{Key: edKey.Public(), KeyID: "ed", Use: "enc"},
		map[string]any{"kty": "XYZ", "kid": "novel"}, "no key at all",
	}
	b.issuer.mu.Unlock()

	// What tempts a verifier to ask elsewhere is never asked.
	var asked atomic.Int32
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: other.Public(), KeyID: kid}}})
	}))
	t.Cleanup(thief.Close)

	der, err := x509.MarshalPKIXPublicKey(own.Public())
	b.must(err)
	rsaDER, err := x509.MarshalPKIXPublicKey(rsaKey.Public())
	b.must(err)
	jwk, err := json.Marshal(jose.JSONWebKey{Key: own.Public(), KeyID: kid, Algorithm: "ES256", Use: "sig"})
	b.must(err)
	hmac := func(key []byte, kid string) string {
		return sign(t, jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: append(key, make([]byte, 32)...), KeyID: kid}}, claims)
	}
	exact := func(key []byte) string {
		return sign(t, jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: key, KeyID: kid}}, claims)
	}
	stranger := jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: other, KeyID: kid}}
	good := b.issuer.token(nil)
	parts := strings.Split(good, ".")
	full, err := jose.ParseSigned(good, []jose.SignatureAlgorithm{jose.ES256})
	b.must(err)
	for name, token := range map[string]string{
		"none":                        craft(t, map[string]any{"alg": "none"}, claims, ""),
		"None":                        craft(t, map[string]any{"alg": "None", "kid": kid}, claims, ""),
		"no algorithm":                craft(t, map[string]any{"kid": kid}, claims, "x"),
		"an empty algorithm":          craft(t, map[string]any{"alg": "", "kid": kid}, claims, "x"),
		"a signature taken off":       parts[0] + "." + parts[1] + ".",
		"a signature of zeros":        craft(t, map[string]any{"alg": "ES256", "kid": kid}, claims, strings.Repeat("\x00", 64)),
		"another header":              strings.Split(craft(t, map[string]any{"alg": "ES256", "kid": "other"}, 0, ""), ".")[0] + "." + parts[1] + "." + parts[2],
		"HS256 with the public DER":   exact(der),
		"HS256 with the public PEM":   exact(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})),
		"HS256 with the public JWK":   exact(jwk),
		"HS256 with the RSA DER":      hmac(rsaDER, "rsa"),
		"HS256 with a published key":  sign(t, jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: secret, KeyID: "secret"}}, claims),
		"RS256 under an ES256 key id": sign(t, jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: rsaKey, KeyID: kid}}, claims),
		"RS512, which is not allowed": sign(t, jose.SigningKey{Algorithm: jose.RS512, Key: jose.JSONWebKey{Key: rsaKey, KeyID: "rsa"}}, claims),
		"an RSA key too small":        sign(t, jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: small, KeyID: "small"}}, claims),
		"a key for encryption":        sign(t, jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: edKey, KeyID: "ed"}}, claims),
		"a stranger's key":            sign(t, stranger, claims),
		"a stranger's key, embedded":  signWith(t, stranger, claims, nil, true),
		"jku":                         signWith(t, stranger, claims, map[jose.HeaderKey]any{"jku": thief.URL}, false),
		"x5u":                         signWith(t, stranger, claims, map[jose.HeaderKey]any{"x5u": thief.URL}, false),
		"crit that nobody knows": signWith(t, jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: own, KeyID: kid}}, claims,
			map[jose.HeaderKey]any{"crit": []string{"exotic"}, "exotic": true}, false),
		"a key id with a path":  sign(t, jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: other, KeyID: "../../dev/null"}}, claims),
		"JSON serialization":    strings.ReplaceAll(full.FullSerialize(), "\n", ""),
		"an issuer with a tail": b.issuer.token(map[string]any{"iss": b.issuer.url + "/"}),
		"no issuer":             b.issuer.token(map[string]any{"iss": nil}),
		"expiry as text":        b.issuer.token(map[string]any{"exp": "tomorrow"}),
		"not before as text":    b.issuer.token(map[string]any{"nbf": "yesterday"}),
		"no claims at all":      sign(t, jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: own, KeyID: kid}}, map[string]any{}),
	} {
		for _, path := range []string{apitype.PathAddons, apitype.PathApps + "/example/x"} {
			r := b.do("GET", path, nil, bearer(token))
			b.problem(r, 401, "no-bearer")
			if challenge := r.header.Get("WWW-Authenticate"); !strings.HasPrefix(challenge, `Bearer realm="zaentrum", error="invalid_token", error_description="`) {
				t.Errorf("%s: WWW-Authenticate: %s", name, challenge)
			}
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the thief was asked %d times", n)
	}
	for name, token := range map[string]string{
		"the issuer's own": good,
		"an RSA key":       sign(t, jose.SigningKey{Algorithm: jose.PS256, Key: jose.JSONWebKey{Key: rsaKey, KeyID: "rsa"}}, claims),
		"no key id":        sign(t, jose.SigningKey{Algorithm: jose.ES256, Key: own}, claims),
		"jku and x5u that point elsewhere, under the issuer's own signature": signWith(t, jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: own, KeyID: kid}},
			claims, map[jose.HeaderKey]any{"jku": thief.URL, "x5u": thief.URL}, false),
	} {
		if r := b.do("GET", apitype.PathAddons, nil, bearer(token)); r.status != 200 {
			t.Errorf("%s: %s", name, r)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the thief was asked %d times", n)
	}
}

func TestClocksMayDifferALittle(t *testing.T) {
	t.Parallel()
	now := time.Now().Truncate(time.Second)
	b := newLoneBench(t, func(o *portal.Options) { o.Now = func() time.Time { return now } })
	for _, tc := range []struct {
		claim   string
		seconds int
		status  int
		says    string
	}{
		{"exp", -29, 200, ""}, {"exp", -30, 401, "has expired"}, {"exp", -3600, 401, "has expired"}, {"exp", 1, 200, ""},
		{"nbf", 30, 200, ""}, {"nbf", 31, 401, "not to be used yet"}, {"nbf", -1, 200, ""},
	} {
		token := b.issuer.token(map[string]any{tc.claim: now.Add(time.Duration(tc.seconds) * time.Second).Unix()})
		r := b.do("GET", apitype.PathAddons, nil, bearer(token))
		if r.status != tc.status || !strings.Contains(string(r.body), tc.says) {
			t.Errorf("%s %+d s: %s", tc.claim, tc.seconds, r)
		}
	}
}

func TestAKeyThatTheIssuerGaveUpIsGivenUp(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64 // seconds by which the clock is put forward
	b := newLoneBench(t, func(o *portal.Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load()) * time.Second) }
	})
	old := b.issuer.token(map[string]any{"exp": time.Now().Add(100 * time.Hour).Unix()})
	get := func(token string) int { return b.do("GET", apitype.PathAddons, nil, bearer(token)).status }
	if s := get(old); s != 200 {
		t.Fatal(s)
	}
	b.issuer.rotate()
	ahead.Store(200)
	if s := get(old); s != 200 { // nobody has looked yet
		t.Error(s)
	}
	ahead.Store(400)
	b.eventually("the old key is dropped", func() error {
		if s := get(old); s != 401 {
			return fmt.Errorf("%d", s)
		}
		return nil
	})
	fresh := b.issuer.token(map[string]any{"exp": time.Now().Add(100 * time.Hour).Unix()})
	if s := get(fresh); s != 200 {
		t.Error(s)
	}
	// While the issuer hangs, keys go on for a day, and nobody waits for it.
	hang := make(chan struct{})
	b.issuer.mu.Lock()
	b.issuer.hang = hang
	b.issuer.mu.Unlock()
	ahead.Store(10_000)
	start := time.Now()
	for range 20 {
		if s := get(fresh); s != 200 {
			t.Error(s)
		}
	}
	if took := time.Since(start); took > 4*time.Second {
		t.Errorf("20 calls took %s", took)
	}
	close(hang)
	b.issuer.setDown(true)
	ahead.Store(10_000 + 25*3600)
	b.problem(b.do("GET", apitype.PathAddons, nil, bearer(fresh)), 503, "sign-in-unavailable")
	b.issuer.setDown(false)
	ahead.Store(10_010 + 25*3600)
	if s := get(fresh); s != 200 {
		t.Error(s)
	}
}

func TestAFloodOfUnknownKeysReachesTheIssuerOnce(t *testing.T) {
	t.Parallel()
	b := newLoneBench(t)
	if r := b.do("GET", apitype.PathAddons, nil); r.status != 200 {
		t.Fatalf("%s", r)
	}
	before := b.issuer.read("/keys")
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	b.must(err)
	client := &http.Client{Timeout: 30 * time.Second}
	defer client.CloseIdleConnections()
	send := func(token string) error {
		r, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), "GET", b.url+apitype.PathAddons, nil)
		if err != nil {
			return err
		}
		bearer(token)(r)
		response, err := client.Do(r)
		if err != nil {
			return err
		}
		_ = response.Body.Close()
		if want := map[bool]int{true: 200, false: 401}[token == b.token]; response.StatusCode != want {
			return fmt.Errorf("%d, wanted %d", response.StatusCode, want)
		}
		return nil
	}
	var all sync.WaitGroup
	errs := make(chan error, 300)
	for i := range 60 {
		forged := sign(t, jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: fmt.Sprint("made-up-", i)}}, b.issuer.adminClaims())
		all.Go(func() { errs <- errors.Join(send(forged), send(b.token)) })
	}
	all.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	if n := b.issuer.read("/keys") - before; n > 2 { // 5 seconds may have gone by
		t.Errorf("60 made-up keys made %d readings", n)
	}
}

func TestAnIssuersKeysAreReadSafely(t *testing.T) {
	t.Parallel()
	plain := newTestIssuer(t)
	var to string
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, plain.url+"/keys", http.StatusFound)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"issuer": "https://" + r.Host, "authorization_endpoint": "https://" + r.Host + "/a", "token_endpoint": "https://" + r.Host + "/t", "jwks_uri": to,
		})
	}))
	t.Cleanup(secure.Close)
	for _, address := range []string{plain.url + "/keys", secure.URL + "/moved", "ftp://x/keys", "", "/keys"} {
		to = address
		b := newLoneBench(t, func(o *portal.Options) {
			o.Auth.Issuer, o.Auth.Transport = secure.URL, secure.Client().Transport
		})
		b.problem(b.do("GET", apitype.PathAddons, nil, bearer(plain.token(map[string]any{"iss": secure.URL}))), 503, "sign-in-unavailable")
	}
	if n := plain.read("/keys"); n != 0 {
		t.Errorf("keys of an https issuer were read over http %d times", n)
	}
}
