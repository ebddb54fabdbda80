package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"zaentrum.io/zae/testbed/oidc"
)

// call sends a request with a bearer, none when it is empty, and answers status, header and body.
func (h *house) call(bearer, method, path string) (int, http.Header, string) {
	h.Helper()
	req, err := http.NewRequestWithContext(h.ctx, method, h.URL+path, nil)
	if err != nil {
		h.Fatal(err)
	}
	if bearer != "" {
		req.Header.Set("Authorization", "Bearer "+bearer)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		h.Fatal(err)
	}
	h.note(string(body))
	return resp.StatusCode, resp.Header, string(body)
}

// bearer is a token of a user as the provider gives it to a client.
func (h *house) bearer(user, client string) string {
	h.Helper()
	token, err := bed.Token(user, client)
	if err != nil {
		h.Fatal(err)
	}
	return token
}

// machine signs the client ci in, by the grant that machines use.
func (h *house) machine() string {
	h.Helper()
	_, doc := h.post("ci", oidc.CISecret, url.Values{"grant_type": {"client_credentials"}})
	token, _ := doc["access_token"].(string)
	if token == "" {
		h.Fatalf("no token for ci: %v", doc)
	}
	return token
}

// post calls the provider's token endpoint as a confidential client.
func (h *house) post(client, secret string, form url.Values) (int, map[string]any) {
	h.Helper()
	var provider struct {
		Token string `json:"token_endpoint"`
	}
	if err := json.Unmarshal(read(h, bed.Issuer+"/.well-known/openid-configuration", ""), &provider); err != nil {
		h.Fatal(err)
	}
	req, err := http.NewRequestWithContext(h.ctx, http.MethodPost, provider.Token, strings.NewReader(form.Encode()))
	if err != nil {
		h.Fatal(err)
	}
	req.SetBasicAuth(client, secret)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.Fatal(err)
	}
	defer resp.Body.Close()
	doc := map[string]any{}
	if err := json.NewDecoder(resp.Body).Decode(&doc); err != nil {
		h.Fatal(err)
	}
	return resp.StatusCode, doc
}

func TestAnAddonIsReachedThroughThePortal(t *testing.T) {
	h := newHouse(t)
	h.login()
	if status, _, _ := h.call(h.bearer("admin", "zae"), http.MethodGet, "/api/portal/apps/example/api/setup"); status != http.StatusNotFound {
		t.Errorf("an addon that is not there: %d", status)
	}
	h.zae(0, h.add("--yes", "--wait")...)
	// Whoever is signed in, through whatever client, is passed on.
	for _, who := range [][2]string{{"admin", "zae"}, {"viewer", "zaentrum-web"}, {"viewer", "media-player"}, {"", "ci"}} {
		status, header, body := h.call(h.bearer(who[0], who[1]), http.MethodGet, "/api/portal/apps/example/api/setup")
		if status != http.StatusOK || !strings.Contains(body, `"sections"`) || !strings.Contains(header.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("%v: %d %v %s", who, status, header, body)
		}
	}
	if status, header, _ := h.call("", http.MethodGet, "/api/portal/apps/example/api/setup"); status != http.StatusUnauthorized || header.Get("WWW-Authenticate") == "" {
		t.Errorf("without a bearer: %d %v", status, header)
	}
	status, header, body := h.call("", http.MethodGet, "/portal/app/example/")
	if status != http.StatusOK || !strings.Contains(body, "<!doctype html>") || !strings.Contains(strings.Join(header.Values("Content-Security-Policy"), "; "), "frame-ancestors 'self'") {
		t.Errorf("the console: %d %v %.200s", status, header, body)
	}
	doc := h.api(http.StatusOK, "admin", http.MethodGet, "/api/portal/addons/example/setup", nil)
	sections, _ := doc["sections"].([]any)
	if doc["state"] != "needs-setup" || len(sections) != 3 || doc["note"] != nil {
		t.Errorf("the setup checklist: %v", doc)
	}
	if _, _, body := h.call("", http.MethodGet, "/readyz?verbose"); !strings.Contains(body, "development only: resolve: Services are reached elsewhere: example\n") ||
		!strings.Contains(body, "cluster: ok\ndatabase: ok\nissuer: ok\n") {
		t.Errorf("readyz:\n%s", body)
	}
	h.zae(0, "addon", "remove", "example", "--yes")
	h.eventually("the addon is not reached any more", func() bool {
		status, _, _ := h.call(h.bearer("admin", "zae"), http.MethodGet, "/api/portal/apps/example/api/setup")
		return status == http.StatusNotFound
	})
}

func TestWhoIsBelieved(t *testing.T) {
	h := openHouse(t, opening{api: []string{"--service-accounts", "ci"}})
	const path = "/api/portal/addons"
	claims := func(change func(map[string]any)) string {
		c, err := bed.Identity().Claims("admin", "zae")
		if err != nil {
			t.Fatal(err)
		}
		change(c)
		token, err := bed.Identity().Sign(c)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	ago := func(d time.Duration) int64 { return time.Now().Add(-d).Unix() }
	tokens := map[string]struct {
		token  string
		status int
	}{
		"an admin through zae":                 {h.bearer("admin", "zae"), 200},
		"an admin through the portal":          {h.bearer("admin", "zaentrum-web"), 200},
		"an admin through the player":          {h.bearer("admin", "media-player"), 403},
		"a viewer":                             {h.bearer("viewer", "zae"), 403},
		"a machine, by its own grant":          {h.machine(), 200},
		"client_id in place of azp":            {claims(func(c map[string]any) { delete(c, "azp"); c["client_id"] = "zae" }), 200},
		"neither":                              {claims(func(c map[string]any) { delete(c, "azp"); delete(c, "client_id") }), 403},
		"just expired, for clocks that differ": {claims(func(c map[string]any) { c["exp"] = ago(5 * time.Second) }), 200},
		"expired":                              {claims(func(c map[string]any) { c["exp"] = ago(time.Minute) }), 401},
		"of later":                             {claims(func(c map[string]any) { c["nbf"] = ago(-time.Minute) }), 401},
		"of another issuer":                    {claims(func(c map[string]any) { c["iss"] = "https://elsewhere.example.org" }), 401},
		"an ID token":                          {claims(func(c map[string]any) { c["typ"] = "ID" }), 401},
		"a refresh token":                      {claims(func(c map[string]any) { c["typ"] = "Refresh" }), 401},
	}
	for name, tc := range tokens {
		status, header, body := h.call(tc.token, http.MethodGet, path)
		challenge := header.Get("WWW-Authenticate")
		want := map[int]string{200: "", 401: `error="invalid_token"`, 403: `error="insufficient_scope"`}[tc.status]
		if status != tc.status || !strings.Contains(challenge, want) || (want == "") != (challenge == "") {
			t.Errorf("%s: %d %q %s", name, status, challenge, body)
		}
	}
	// A key that is new counts as soon as the issuer may be asked again.
	if err := bed.Identity().RotateKey(); err != nil {
		t.Fatal(err)
	}
	fresh := h.bearer("admin", "zae")
	h.eventually("the new key counts", func() bool {
		status, _, _ := h.call(fresh, http.MethodGet, path)
		return status == http.StatusOK
	})
	if status, _, body := h.call(tokens["an admin through zae"].token, http.MethodGet, path); status != http.StatusOK {
		t.Errorf("the key of before, which is still published: %d %s", status, body)
	}
}
