// Package issuertest is a small OpenID provider for tests: the device grant with PKCE, refresh tokens that
// rotate and end the session when one is used twice, and revocation. It issues opaque tokens, and must
// never be part of a program.
package issuertest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"time"
)

// Canary is in every token and in every text of an error: it must not be seen anywhere.
const Canary = "c4n4ry"

// Issuer is the provider. Set its fields before the first request.
type Issuer struct {
	*httptest.Server

	// Pending is how often a poll is told to wait.
	Pending int
	// Fail is the error code that the token endpoint answers, and FailStatus, when set, its status.
	Fail       string
	FailStatus int
	// Lifetime of access tokens; an hour when zero. CodeLifetime of device codes; ten minutes when zero.
	Lifetime, CodeLifetime time.Duration
	// KeepRefresh does not rotate refresh tokens.
	KeepRefresh bool
	// Metadata changes the discovery document.
	Metadata func(map[string]any)
	// OnToken is called before the token endpoint answers; when it returns true it has answered itself.
	OnToken func(http.ResponseWriter, *http.Request) bool

	mu        sync.Mutex
	challenge string
	polls     int
	refreshes int
	serial    int
	live      map[string]bool // refresh tokens
	spent     map[string]bool
	revoked   []string
}

// New starts an issuer.
func New() *Issuer {
	i := &Issuer{live: map[string]bool{}, spent: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", i.metadata)
	mux.HandleFunc("POST /device", i.device)
	mux.HandleFunc("POST /token", i.token)
	mux.HandleFunc("POST /revoke", i.revoke)
	i.Server = httptest.NewServer(mux)
	return i
}

// Refreshes is how many refresh tokens were presented.
func (i *Issuer) Refreshes() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.refreshes
}

// Revoked are the tokens that were revoked.
func (i *Issuer) Revoked() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]string(nil), i.revoked...)
}

// SignedIn makes a session without a sign-in, and returns its refresh token.
func (i *Issuer) SignedIn() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.newRefresh()
}

func (i *Issuer) newRefresh() string {
	i.serial++
	token := fmt.Sprintf("refresh-%s-%d", Canary, i.serial)
	i.live[token] = true
	return token
}

func (i *Issuer) metadata(w http.ResponseWriter, _ *http.Request) {
	doc := map[string]any{
		"issuer": i.URL, "token_endpoint": i.URL + "/token", "device_authorization_endpoint": i.URL + "/device",
		"revocation_endpoint": i.URL + "/revoke", "scopes_supported": []string{"openid", "offline_access"},
	}
	if i.Metadata != nil {
		i.Metadata(doc)
	}
	answer(w, http.StatusOK, doc)
}

func (i *Issuer) device(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if r.FormValue("client_id") == "" || r.FormValue("code_challenge_method") != "S256" || r.FormValue("code_challenge") == "" {
		refuse(w, "invalid_request")
		return
	}
	i.challenge = r.FormValue("code_challenge")
	life := i.CodeLifetime
	if life == 0 {
		life = 10 * time.Minute
	}
	answer(w, http.StatusOK, map[string]any{
		"device_code": "device-" + Canary, "user_code": "WXYZ-1234", "verification_uri": i.URL + "/activate",
		"verification_uri_complete": i.URL + "/activate?user_code=WXYZ-1234", "expires_in": int(life.Seconds()), "interval": 1,
	})
}

func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	if i.OnToken != nil && i.OnToken(w, r) {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	switch r.FormValue("grant_type") {
	case "urn:ietf:params:oauth:grant-type:device_code":
		i.redeem(w, r)
	case "refresh_token":
		i.refresh(w, r)
	default:
		refuse(w, "unsupported_grant_type")
	}
}

func (i *Issuer) redeem(w http.ResponseWriter, r *http.Request) {
	i.polls++
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	switch {
	case r.FormValue("device_code") != "device-"+Canary || base64.RawURLEncoding.EncodeToString(sum[:]) != i.challenge:
		refuse(w, "invalid_grant")
	case i.polls <= i.Pending:
		refuse(w, "authorization_pending")
	case i.Fail != "" || i.FailStatus != 0:
		i.fail(w)
	default:
		i.issue(w, i.newRefresh())
	}
}

func (i *Issuer) refresh(w http.ResponseWriter, r *http.Request) {
	i.refreshes++
	token := r.FormValue("refresh_token")
	switch {
	case i.Fail != "" || i.FailStatus != 0:
		i.fail(w)
	case i.spent[token]: // used twice: whoever has the newer one may be a thief
		clear(i.live)
		refuse(w, "invalid_grant")
	case !i.live[token]:
		refuse(w, "invalid_grant")
	case i.KeepRefresh:
		i.issue(w, "")
	default:
		delete(i.live, token)
		i.spent[token] = true
		i.issue(w, i.newRefresh())
	}
}

func (i *Issuer) fail(w http.ResponseWriter) {
	if i.FailStatus != 0 {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(i.FailStatus)
		_, _ = fmt.Fprintf(w, "<html>%s</html>", Canary)
		return
	}
	refuse(w, i.Fail)
}

func (i *Issuer) issue(w http.ResponseWriter, refresh string) {
	i.serial++
	life := i.Lifetime
	if life == 0 {
		life = time.Hour
	}
	doc := map[string]any{"access_token": fmt.Sprintf("access-%s-%d", Canary, i.serial), "token_type": "Bearer", "expires_in": int(life.Seconds())}
	if refresh != "" {
		doc["refresh_token"] = refresh
	}
	answer(w, http.StatusOK, doc)
}

func (i *Issuer) revoke(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	token := r.FormValue("token")
	delete(i.live, token)
	i.revoked = append(i.revoked, token)
	w.WriteHeader(http.StatusOK)
}

func refuse(w http.ResponseWriter, code string) {
	answer(w, http.StatusBadRequest, map[string]any{"error": code, "error_description": "because " + Canary})
}

func answer(w http.ResponseWriter, status int, doc any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(doc)
}

// Loopback tells whether an address is of this issuer's kind: on this machine.
func Loopback(u *url.URL) bool { return u.Hostname() == "127.0.0.1" }
