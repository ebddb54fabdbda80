package portal_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// testIssuer is an OpenID issuer for tests: a discovery document, keys, and tokens with whatever claims a test
// wants, signed for real.
type testIssuer struct {
	t   testing.TB
	url string

	mu       sync.Mutex
	key      *ecdsa.PrivateKey
	keyID    string
	down     bool
	more     []any // keys that are published beside the issuer's own
	hang     chan struct{}
	readings map[string]int // of each document
}

func newTestIssuer(t testing.TB) *testIssuer {
	t.Helper()
	i := &testIssuer{t: t, readings: map[string]int{}}
	i.rotate()
	s := httptest.NewServer(i)
	i.url = s.URL
	t.Cleanup(s.Close)
	return i
}

// rotate gives the issuer a new key; the old one is forgotten.
func (i *testIssuer) rotate() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.key, i.keyID = key, fmt.Sprintf("key-%d", time.Now().UnixNano())
}

func (i *testIssuer) setDown(down bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.down = down
}

func (i *testIssuer) read(path string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.readings[path]
}

func (i *testIssuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	hang := i.hang
	i.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.readings[r.URL.Path]++
	if i.down {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	var out any
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		out = map[string]any{
			"issuer": i.url, "authorization_endpoint": i.url + "/auth", "token_endpoint": i.url + "/token", "jwks_uri": i.url + "/keys",
			"id_token_signing_alg_values_supported": []string{"ES256"},
		}
	case "/keys":
		own := jose.JSONWebKey{Key: i.key.Public(), KeyID: i.keyID, Algorithm: "ES256", Use: "sig"}
		out = map[string]any{"keys": append(slices.Clone(i.more), own)}
	default:
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(out); err != nil {
		i.t.Error(err)
	}
}

// adminClaims are those of an admin who signed in through zae.
func (i *testIssuer) adminClaims() map[string]any {
	return map[string]any{
		"iss": i.url, "sub": "5f0c", "aud": []string{"account"}, "azp": "zae", "typ": "Bearer",
		"iat": time.Now().Add(-time.Minute).Unix(), "exp": time.Now().Add(time.Hour).Unix(),
		"preferred_username": "admin", "realm_access": map[string]any{"roles": []string{"user", "zaentrum-admin"}},
	}
}

// token signs an admin's claims, with changes; a nil value takes a claim away.
func (i *testIssuer) token(changes map[string]any) string {
	claims := i.adminClaims()
	for name, value := range changes {
		if value == nil {
			delete(claims, name)
		} else {
			maps.Copy(claims, map[string]any{name: value})
		}
	}
	i.mu.Lock()
	key, id := i.key, i.keyID
	i.mu.Unlock()
	return sign(i.t, jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: id}}, claims)
}

func sign(t testing.TB, key jose.SigningKey, claims map[string]any) string {
	t.Helper()
	return signWith(t, key, claims, nil, false)
}
