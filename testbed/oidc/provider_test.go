package oidc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	goidc "github.com/coreos/go-oidc/v3/oidc"
	"go.uber.org/goleak"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"zaentrum.io/zae/testbed/oidc"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		http.DefaultClient.CloseIdleConnections()
	}))
}

// bench is a provider with what a client needs to use it.
type bench struct {
	*oidc.Provider
	ctx  context.Context // with the HTTP client
	oidc *goidc.Provider
	log  *buffer
}

func serve(t *testing.T, o oidc.Options) *bench {
	t.Helper()
	log := new(buffer)
	o.Log = log
	p, err := oidc.Serve(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	ctx := context.WithValue(t.Context(), oauth2.HTTPClient, client)
	provider, err := goidc.NewProvider(ctx, p.Issuer())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(time.Second); err != nil {
			t.Error(err)
		}
	})
	return &bench{p, ctx, provider, log}
}

func (b *bench) config(client string, scopes ...string) *oauth2.Config {
	e := b.oidc.Endpoint()
	e.AuthStyle = oauth2.AuthStyleInParams
	return &oauth2.Config{ClientID: client, Endpoint: e, RedirectURL: "http://127.0.0.1:4711/callback", Scopes: append([]string{"openid"}, scopes...)}
}

// signIn goes through the code flow.
func (b *bench) signIn(t *testing.T, c *oauth2.Config, user string) *oauth2.Token {
	t.Helper()
	verifier := oauth2.GenerateVerifier()
	callback, err := oidc.Authorize(b.ctx, c.AuthCodeURL("state-1", goidc.Nonce("nonce-1"), oauth2.S256ChallengeOption(verifier)), user)
	if err != nil {
		t.Fatal(err)
	}
	q := query(t, callback)
	if !strings.HasPrefix(callback, c.RedirectURL+"?") || q.Get("state") != "state-1" || q.Get("iss") != b.Issuer() {
		t.Fatalf("called back with %s", callback)
	}
	token, err := c.Exchange(b.ctx, q.Get("code"), oauth2.VerifierOption(verifier))
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// accessClaims verifies an access token as a resource server does.
func (b *bench) accessClaims(t *testing.T, token string) map[string]any {
	t.Helper()
	verified, err := b.oidc.VerifierContext(b.ctx, &goidc.Config{ClientID: "account"}).Verify(b.ctx, token)
	if err != nil {
		t.Fatal(err)
	}
	var claims map[string]any
	if err := verified.Claims(&claims); err != nil {
		t.Fatal(err)
	}
	return claims
}

func TestCodeFlow(t *testing.T) {
	t.Parallel()
	b := serve(t, oidc.Options{})
	token := b.signIn(t, b.config("zaentrum-web", "profile"), "admin")

	claims := b.accessClaims(t, token.AccessToken)
	for k, want := range map[string]any{
		"aud": "account", "azp": "zaentrum-web", "client_id": "zaentrum-web", "typ": "Bearer", "scope": "openid profile",
		"preferred_username": "admin", "email": "admin@zaentrum.test",
		"realm_access": map[string]any{"roles": []any{"zaentrum-admin", "user"}},
	} {
		if !reflect.DeepEqual(claims[k], want) {
			t.Errorf("access token: %s is %v, want %v", k, claims[k], want)
		}
	}
	for _, k := range []string{"sub", "jti", "iat", "exp", "sid"} {
		if claims[k] == nil || claims[k] == "admin" {
			t.Errorf("access token: %s is %v", k, claims[k])
		}
	}
	if life := claims["exp"].(float64) - claims["iat"].(float64); life != 300 {
		t.Errorf("access token holds %v s", life)
	}

	raw, _ := token.Extra("id_token").(string)
	id, err := b.oidc.VerifierContext(b.ctx, &goidc.Config{ClientID: "zaentrum-web"}).Verify(b.ctx, raw)
	if err != nil {
		t.Fatal(err)
	}
	if id.Nonce != "nonce-1" || id.Subject != claims["sub"] || len(id.Audience) != 1 {
		t.Errorf("ID token: %+v", id)
	}
	if err := id.VerifyAccessToken(token.AccessToken); err != nil {
		t.Error(err)
	}
	info, err := b.oidc.UserInfo(b.ctx, oauth2.StaticTokenSource(token))
	if err != nil || info.Subject != id.Subject || info.Email != "admin@zaentrum.test" {
		t.Errorf("userinfo: %+v, %v", info, err)
	}
	// An ID token is not an access token.
	if _, err := b.oidc.UserInfo(b.ctx, oauth2.StaticTokenSource(&oauth2.Token{AccessToken: raw})); err == nil {
		t.Error("userinfo accepts an ID token")
	}
}

func TestCodeFlowRefusals(t *testing.T) {
	t.Parallel()
	b := serve(t, oidc.Options{})
	verifier := oauth2.GenerateVerifier()
	pkce := oauth2.S256ChallengeOption(verifier)
	code := func(c *oauth2.Config) string {
		t.Helper()
		callback, err := oidc.Authorize(b.ctx, c.AuthCodeURL("s", pkce), "viewer")
		if err != nil {
			t.Fatal(err)
		}
		return query(t, callback).Get("code")
	}
	c := b.config("zae")

	// At the authorization endpoint: what concerns the client comes back to it, the rest is a page.
	for name, refused := range map[string]struct {
		url, want string
	}{
		"without PKCE":    {c.AuthCodeURL("s"), "invalid_request"},
		"plain PKCE":      {c.AuthCodeURL("s", oauth2.SetAuthURLParam("code_challenge", verifier)), "invalid_request"},
		"implicit":        {c.AuthCodeURL("s", pkce, oauth2.SetAuthURLParam("response_type", "token")), "unsupported_response_type"},
		"prompt none":     {c.AuthCodeURL("s", pkce, oauth2.SetAuthURLParam("prompt", "none")), "login_required"},
		"without openid":  {c.AuthCodeURL("s", pkce, oauth2.SetAuthURLParam("scope", "profile")), "invalid_scope"},
		"unknown client":  {b.config("nobody").AuthCodeURL("s", pkce), ""},
		"foreign address": {c.AuthCodeURL("s", pkce, oauth2.SetAuthURLParam("redirect_uri", "https://example.com/")), ""},
		"like a loopback": {c.AuthCodeURL("s", pkce, oauth2.SetAuthURLParam("redirect_uri", "http://127.0.0.1.example.com:80/x")), ""},
		"user and host":   {c.AuthCodeURL("s", pkce, oauth2.SetAuthURLParam("redirect_uri", "http://127.0.0.1:80@example.com/x")), ""},
	} {
		callback, err := oidc.Authorize(b.ctx, refused.url, "viewer")
		if refused.want == "" {
			if err == nil {
				t.Errorf("%s: sent to %s", name, callback)
			}
			continue
		}
		if err != nil || query(t, callback).Get("error") != refused.want {
			t.Errorf("%s: %s, %v; want %s", name, callback, err, refused.want)
		}
	}
	if _, err := oidc.Authorize(b.ctx, c.AuthCodeURL("s", pkce), "nobody"); err == nil {
		t.Error("an unknown user is signed in")
	}

	_, err := c.Exchange(b.ctx, code(c), oauth2.VerifierOption(oauth2.GenerateVerifier()))
	wantError(t, "another verifier", err, "invalid_grant")
	_, err = c.Exchange(b.ctx, code(c))
	wantError(t, "no verifier", err, "invalid_grant")
	_, err = c.Exchange(b.ctx, code(c), oauth2.VerifierOption(verifier), oauth2.SetAuthURLParam("redirect_uri", "http://127.0.0.1:4711/other"))
	wantError(t, "another redirect URI", err, "invalid_grant")
	_, err = b.config("media-player").Exchange(b.ctx, code(c), oauth2.VerifierOption(verifier))
	wantError(t, "another client", err, "invalid_grant")

	used := code(c)
	token, err := c.Exchange(b.ctx, used, oauth2.VerifierOption(verifier))
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Exchange(b.ctx, used, oauth2.VerifierOption(verifier))
	wantError(t, "a used code", err, "invalid_grant")
	_, err = refresh(b.ctx, c, token.RefreshToken)
	wantError(t, "a refresh after the code was used twice", err, "invalid_grant")
}

func TestDeviceFlow(t *testing.T) {
	t.Parallel()
	b := serve(t, oidc.Options{})
	c := b.config("zae")
	verifier := oauth2.GenerateVerifier()
	d, err := c.DeviceAuth(b.ctx, oauth2.S256ChallengeOption(verifier))
	if err != nil {
		t.Fatal(err)
	}
	if d.Interval != 1 || d.VerificationURIComplete != d.VerificationURI+"?user_code="+d.UserCode || time.Until(d.Expiry) < 9*time.Minute {
		t.Errorf("%+v", d)
	}
	wantError(t, "too early", poll(b, "zae", d.DeviceCode, verifier), "authorization_pending")
	wantError(t, "too fast", poll(b, "zae", d.DeviceCode, verifier), "slow_down")
	wantError(t, "no verifier", poll(b, "zae", d.DeviceCode, ""), "invalid_grant")
	wantError(t, "another verifier", poll(b, "zae", d.DeviceCode, oauth2.GenerateVerifier()), "invalid_grant")
	wantError(t, "another client", poll(b, "media-player", d.DeviceCode, verifier), "invalid_grant")

	// People type codes as they like; the form is what the page has.
	if page := get(t, b.ctx, d.VerificationURIComplete); !strings.Contains(page, d.UserCode) || !strings.Contains(page, ">admin<") {
		t.Errorf("verification page: %s", page)
	}
	typed := strings.ToLower(strings.ReplaceAll(d.UserCode, "-", " "))
	if _, err := oidc.PostForm(b.ctx, b.Issuer(), oidc.TestbedDevicePath, url.Values{"user_code": {typed}, "user": {"admin"}, "action": {"approve"}}); err != nil {
		t.Fatal(err)
	}
	if err := b.ApproveDevice(d.UserCode, "viewer"); err == nil {
		t.Error("a device was approved twice")
	}
	token, err := c.DeviceAccessToken(b.ctx, d, oauth2.VerifierOption(verifier))
	if err != nil {
		t.Fatal(err)
	}
	claims := b.accessClaims(t, token.AccessToken)
	if claims["preferred_username"] != "admin" || claims["azp"] != "zae" || claims["aud"] != "account" {
		t.Errorf("%v", claims)
	}
	if token.RefreshToken == "" || token.Extra("id_token") == nil {
		t.Error("no refresh token or no ID token")
	}
	wantError(t, "a used device code", poll(b, "zae", d.DeviceCode, verifier), "invalid_grant")
}

func TestDeviceFlowEndings(t *testing.T) {
	t.Parallel()
	now := newClock()
	b := serve(t, oidc.Options{Now: now.now, DeviceInterval: time.Millisecond})
	c := b.config("zae")

	plain, err := c.DeviceAuth(b.ctx) // PKCE is not demanded
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, "a verifier out of nothing", poll(b, "zae", plain.DeviceCode, oauth2.GenerateVerifier()), "invalid_grant")
	if err := b.ApproveDevice(plain.UserCode, "viewer"); err != nil {
		t.Error(err)
	}
	now.add(time.Second)
	if err := poll(b, "zae", plain.DeviceCode, ""); err != nil {
		t.Error(err)
	}

	denied, err := c.DeviceAuth(b.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.DenyDevice(denied.UserCode); err != nil {
		t.Error(err)
	}
	wantError(t, "denied", poll(b, "zae", denied.DeviceCode, ""), "access_denied")

	late, err := c.DeviceAuth(b.ctx)
	if err != nil {
		t.Fatal(err)
	}
	now.add(11 * time.Minute)
	wantError(t, "late", poll(b, "zae", late.DeviceCode, ""), "expired_token")
	if err := b.ApproveDevice(late.UserCode, "admin"); err == nil {
		t.Error("an expired device was approved")
	}

	_, err = c.DeviceAuth(b.ctx, oauth2.SetAuthURLParam("code_challenge", "x"), oauth2.SetAuthURLParam("code_challenge_method", "plain"))
	wantError(t, "plain PKCE", err, "invalid_request")
	_, err = b.config("zaentrum-web").DeviceAuth(b.ctx)
	wantError(t, "a client without the grant", err, "unauthorized_client")
	_, err = b.config("nobody").DeviceAuth(b.ctx)
	wantError(t, "an unknown client", err, "invalid_client")
}

func TestRefreshTokensRotate(t *testing.T) {
	t.Parallel()
	now := newClock()
	b := serve(t, oidc.Options{Now: now.now, AccessTokenLifetime: time.Minute})
	c := b.config("zae")
	first := b.signIn(t, c, "admin")
	second, err := refresh(b.ctx, c, first.RefreshToken)
	if err != nil {
		t.Fatal(err)
	}
	if second.RefreshToken == first.RefreshToken || second.AccessToken == first.AccessToken || second.Extra("id_token") == nil {
		t.Error("nothing new")
	}
	if second.ExpiresIn != 60 {
		t.Errorf("holds %d s, want 60", second.ExpiresIn)
	}
	_, err = refresh(b.ctx, c, first.RefreshToken)
	wantError(t, "the old refresh token", err, "invalid_grant")
	_, err = refresh(b.ctx, b.config("media-player"), second.RefreshToken)
	wantError(t, "another client", err, "invalid_grant")
	third, err := refresh(b.ctx, c, second.RefreshToken)
	if err != nil {
		t.Fatal(err)
	}
	now.add(31 * time.Minute)
	_, err = refresh(b.ctx, c, third.RefreshToken)
	wantError(t, "after half an hour", err, "invalid_grant")
}

func TestRefreshTokenReuseEndsTheSession(t *testing.T) {
	t.Parallel()
	b := serve(t, oidc.Options{EndSessionOnReuse: true})
	c := b.config("zae")
	first := b.signIn(t, c, "admin")
	second, err := refresh(b.ctx, c, first.RefreshToken)
	if err != nil {
		t.Fatal(err)
	}
	_, err = refresh(b.ctx, c, first.RefreshToken)
	wantError(t, "the old refresh token", err, "invalid_grant")
	_, err = refresh(b.ctx, c, second.RefreshToken)
	wantError(t, "the new one after that", err, "invalid_grant")
}

func TestRevocation(t *testing.T) {
	t.Parallel()
	b := serve(t, oidc.Options{})
	c := b.config("zae")
	var discovery struct {
		Revoke string `json:"revocation_endpoint"`
		End    string `json:"end_session_endpoint"`
	}
	if err := b.oidc.Claims(&discovery); err != nil {
		t.Fatal(err)
	}
	revoke := func(client, token string) error {
		_, err := post(b.ctx, discovery.Revoke, url.Values{"client_id": {client}, "token": {token}})
		return err
	}
	info := func(token string) error {
		_, err := b.oidc.UserInfo(b.ctx, oauth2.StaticTokenSource(&oauth2.Token{AccessToken: token}))
		return err
	}

	token := b.signIn(t, c, "viewer")
	wantError(t, "another client", revoke("media-player", token.RefreshToken), "invalid_grant")
	if err := errors.Join(revoke("zae", "nonsense"), info(token.AccessToken), revoke("zae", token.RefreshToken)); err != nil {
		t.Fatal(err)
	}
	_, err := refresh(b.ctx, c, token.RefreshToken)
	wantError(t, "a revoked refresh token", err, "invalid_grant")
	if info(token.AccessToken) == nil {
		t.Error("an access token of an ended session still holds")
	}

	token = b.signIn(t, c, "viewer")
	if err := revoke("zae", token.AccessToken); err != nil {
		t.Fatal(err)
	}
	if info(token.AccessToken) == nil {
		t.Error("a revoked access token still holds")
	}
	token, err = refresh(b.ctx, c, token.RefreshToken)
	if err != nil {
		t.Fatalf("the session ended with one access token: %v", err)
	}

	// Sign out in the browser.
	id, _ := token.Extra("id_token").(string)
	if page := get(t, b.ctx, discovery.End+"?"+url.Values{"id_token_hint": {id}}.Encode()); !strings.Contains(page, "signed out") {
		t.Error(page)
	}
	_, err = refresh(b.ctx, c, token.RefreshToken)
	wantError(t, "after sign-out", err, "invalid_grant")
}

func TestClientCredentials(t *testing.T) {
	t.Parallel()
	b := serve(t, oidc.Options{})
	for _, style := range []oauth2.AuthStyle{oauth2.AuthStyleInHeader, oauth2.AuthStyleInParams} {
		c := clientcredentials.Config{ClientID: "ci", ClientSecret: oidc.CISecret, TokenURL: b.oidc.Endpoint().TokenURL, AuthStyle: style}
		token, err := c.Token(b.ctx)
		if err != nil {
			t.Fatal(err)
		}
		claims := b.accessClaims(t, token.AccessToken)
		if claims["preferred_username"] != "service-account-ci" || claims["azp"] != "ci" || token.RefreshToken != "" {
			t.Errorf("%v", claims)
		}
		c.ClientSecret = "wrong"
		_, err = c.Token(b.ctx)
		wantError(t, "a wrong secret", err, "invalid_client")
	}
	c := clientcredentials.Config{ClientID: "zae", TokenURL: b.oidc.Endpoint().TokenURL, AuthStyle: oauth2.AuthStyleInParams}
	_, err := c.Token(b.ctx)
	wantError(t, "a public client", err, "unauthorized_client")
}

func TestTokensWithoutAFlow(t *testing.T) {
	t.Parallel()
	b := serve(t, oidc.Options{Audience: []string{"account", "zae-api"}})
	token, err := b.Token("viewer", "media-player")
	if err != nil {
		t.Fatal(err)
	}
	claims := b.accessClaims(t, token)
	if claims["azp"] != "media-player" || !reflect.DeepEqual(claims["aud"], []any{"account", "zae-api"}) {
		t.Errorf("%v", claims)
	}
	for _, wrong := range [][2]string{{"nobody", "zae"}, {"admin", "nobody"}, {"", "zae"}} {
		if _, err := b.Token(wrong[0], wrong[1]); err == nil {
			t.Errorf("%v: got a token", wrong)
		}
	}
	text, err := oidc.PostForm(b.ctx, b.Issuer(), oidc.TestbedTokenPath, url.Values{"user": {""}, "client": {"ci"}})
	if err != nil {
		t.Fatal(err)
	}
	if claims := b.accessClaims(t, text); claims["preferred_username"] != "service-account-ci" {
		t.Errorf("%v", claims)
	}

	// A new key is found by verifiers, and old tokens still verify.
	if err := b.RotateKey(); err != nil {
		t.Fatal(err)
	}
	b.accessClaims(t, token)
	changed, err := b.Claims("admin", "zae")
	if err != nil {
		t.Fatal(err)
	}
	changed["aud"] = "somebody-else"
	forged, err := b.Sign(changed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.oidc.VerifierContext(b.ctx, &goidc.Config{ClientID: "account"}).Verify(b.ctx, forged); err == nil || !strings.Contains(err.Error(), "audience") {
		t.Errorf("got %v", err)
	}
}

func TestTheLogHasNoSecrets(t *testing.T) {
	t.Parallel()
	b := serve(t, oidc.Options{})
	c := b.config("zae")
	token := b.signIn(t, c, "admin")
	next, err := refresh(b.ctx, c, token.RefreshToken)
	if err != nil {
		t.Fatal(err)
	}
	_, err = refresh(b.ctx, c, token.RefreshToken)
	wantError(t, "used", err, "invalid_grant")
	for target, form := range map[string]url.Values{
		b.oidc.Endpoint().TokenURL:          {"client_id": {token.AccessToken}, "grant_type": {token.RefreshToken}},
		b.Issuer() + oidc.TestbedTokenPath:  {"client": {token.AccessToken}, "user": {token.RefreshToken}},
		b.Issuer() + oidc.TestbedDevicePath: {"user_code": {token.AccessToken}, "user": {token.RefreshToken}},
	} {
		var refused *oauth2.RetrieveError
		if _, err := post(b.ctx, target, form); !errors.As(err, &refused) {
			t.Errorf("%s: got %v, want a refusal", target, err)
		}
	}

	log := b.log.String()
	for _, secret := range []string{token.AccessToken, token.RefreshToken, next.AccessToken, next.RefreshToken} {
		if strings.Contains(log, secret) {
			t.Fatalf("the log has a token:\n%s", log)
		}
	}
	for _, line := range []string{
		"POST /token client=zae grant=refresh_token user=admin\n",
		"POST /token client=zae grant=refresh_token error=invalid_grant",
	} {
		if !strings.Contains(log, line) {
			t.Errorf("the log has no %q:\n%s", line, log)
		}
	}
}

func TestServeOnlyOnLoopback(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"0.0.0.0:0", ":0", "example.com:0"} {
		if p, err := oidc.Serve(t.Context(), oidc.Options{Addr: addr}); err == nil {
			t.Errorf("listens on %s", addr)
			if err := p.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
}

// poll asks once for a device's token.
func poll(b *bench, client, deviceCode, verifier string) error {
	form := url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "client_id": {client}, "device_code": {deviceCode},
	}
	if verifier != "" {
		form.Set("code_verifier", verifier)
	}
	_, err := post(b.ctx, b.oidc.Endpoint().TokenURL, form)
	return err
}

func refresh(ctx context.Context, c *oauth2.Config, token string) (*oauth2.Token, error) {
	return c.TokenSource(ctx, &oauth2.Token{RefreshToken: token}).Token()
}

// post posts a form; an OAuth error comes back as the library's.
func post(ctx context.Context, url string, form url.Values) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := ctx.Value(oauth2.HTTPClient).(*http.Client).Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode == http.StatusOK {
		return string(body), err
	}
	var oe struct{ Error string }
	_ = json.Unmarshal(body, &oe) // the pages' errors are text, and have no code
	return "", &oauth2.RetrieveError{Response: resp, ErrorCode: oe.Error}
}

func get(t *testing.T, ctx context.Context, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := ctx.Value(oauth2.HTTPClient).(*http.Client).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return string(body)
}

func query(t *testing.T, rawURL string) url.Values {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query()
}

// wantError wants an OAuth error code.
func wantError(t *testing.T, what string, err error, code string) {
	t.Helper()
	var re *oauth2.RetrieveError
	if !errors.As(err, &re) {
		t.Errorf("%s: got %v, want %s", what, err, code)
		return
	}
	got := re.ErrorCode
	if got == "" { // the device endpoint's errors come undecoded
		var oe struct{ Error string }
		if err := json.Unmarshal(re.Body, &oe); err != nil {
			t.Errorf("%s: %v in %q", what, err, re.Body)
		}
		got = oe.Error
	}
	if got != code {
		t.Errorf("%s: got %s, want %s", what, got, code)
	}
}

// clock is a clock a test sets.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Now()} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// buffer is a log several goroutines write.
type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
