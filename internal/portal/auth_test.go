package portal_test

import (
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/portal"
)

// bearer sets the Authorization header; empty takes it away.
func bearer(token string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Del("Authorization")
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
	}
}

// adminPaths are endpoints of which each needs an admin.
func adminPaths() [][2]string {
	return [][2]string{
		{http.MethodGet, apitype.PathAddonCharts}, {http.MethodPost, apitype.PathAddonCharts}, {http.MethodGet, chartPath("example")},
		{http.MethodPatch, chartPath("example")}, {http.MethodDelete, chartPath("example")}, {http.MethodPost, chartPath("example") + "/install"},
		{http.MethodGet, apitype.PathAddons}, {http.MethodGet, "/api/portal/addons/example/setup"},
	}
}

func TestEveryChartEndpointNeedsAnAdminBeforeAnythingElse(t *testing.T) {
	t.Parallel()
	b := newLoneBench(t)
	viewer := b.issuer.token(map[string]any{"realm_access": map[string]any{"roles": []string{"user"}}})
	for _, p := range adminPaths() {
		// A body that is wrong, and large enough to be on its way still, does not come in between.
		r := b.do(p[0], p[1], `{"`+strings.Repeat("x", 1<<20-10), bearer(""))
		b.problem(r, http.StatusUnauthorized, "no-bearer")
		if got := r.header.Get("WWW-Authenticate"); got != `Bearer realm="zaentrum"` {
			t.Errorf("WWW-Authenticate: %s", got)
		}
		r = b.do(p[0], p[1], `{`, bearer(viewer))
		b.problem(r, http.StatusForbidden, "forbidden")
		if got := r.header.Get("WWW-Authenticate"); !strings.Contains(got, `error="insufficient_scope"`) {
			t.Errorf("WWW-Authenticate: %s", got)
		}
	}
}

func TestWhoIsAnAdmin(t *testing.T) {
	t.Parallel()
	b := newLoneBench(t, func(o *portal.Options) {
		o.Auth.ServiceAccounts = []string{"pipeline", "9f9f-subject"}
	})
	admin := map[string]any{"roles": []string{"zaentrum-admin"}}
	otherKey, err := rsa.GenerateKey(rand.Reader, 2048)
	b.must(err)
	for name, tc := range map[string]struct {
		claims map[string]any
		token  string
		status int
	}{
		"an admin through zae":                     {status: 200},
		"an admin through the portal":              {claims: map[string]any{"azp": "zaentrum-web"}, status: 200},
		"an admin, client_id instead of azp":       {claims: map[string]any{"azp": nil, "client_id": "zae"}, status: 200},
		"azp comes before client_id":               {claims: map[string]any{"azp": "media-player", "client_id": "zae"}, status: 403},
		"an admin through another client":          {claims: map[string]any{"azp": "media-player"}, status: 403},
		"an admin through no client":               {claims: map[string]any{"azp": nil}, status: 403},
		"azp that is no text":                      {claims: map[string]any{"azp": []string{"zae"}}, status: 403},
		"no roles":                                 {claims: map[string]any{"realm_access": nil}, status: 403},
		"the role in another claim":                {claims: map[string]any{"realm_access": nil, "roles": []string{"zaentrum-admin"}}, status: 403},
		"a role that only starts alike":            {claims: map[string]any{"realm_access": map[string]any{"roles": []string{"zaentrum-administrator"}}}, status: 403},
		"roles of a wrong shape":                   {claims: map[string]any{"realm_access": map[string]any{"roles": map[string]any{"zaentrum-admin": true}}}, status: 403},
		"a listed service account":                 {claims: map[string]any{"azp": "pipeline", "preferred_username": "service-account-pipeline", "realm_access": admin}, status: 200},
		"a listed service account by its sub":      {claims: map[string]any{"azp": "whatever", "sub": "9f9f-subject"}, status: 200},
		"a listed service account without a role":  {claims: map[string]any{"azp": "pipeline", "preferred_username": "service-account-pipeline", "realm_access": nil}, status: 403},
		"a person through a service's client":      {claims: map[string]any{"azp": "pipeline", "preferred_username": "admin"}, status: 403},
		"an expired token":                         {claims: map[string]any{"exp": time.Now().Add(-time.Minute).Unix()}, status: 401},
		"a token without expiry":                   {claims: map[string]any{"exp": nil}, status: 401},
		"a token for later":                        {claims: map[string]any{"nbf": time.Now().Add(time.Hour).Unix()}, status: 401},
		"another issuer's token":                   {claims: map[string]any{"iss": "https://evil.example.org"}, status: 401},
		"an ID token":                              {claims: map[string]any{"typ": "ID"}, status: 401},
		"a refresh token":                          {claims: map[string]any{"typ": "Refresh"}, status: 401},
		"a key that is not the issuer's":           {token: sign(t, jose.SigningKey{Algorithm: jose.RS256, Key: otherKey}, b.issuer.adminClaims()), status: 401},
		"a symmetric signature":                    {token: sign(t, jose.SigningKey{Algorithm: jose.HS256, Key: make([]byte, 32)}, b.issuer.adminClaims()), status: 401},
		"no signature":                             {token: "eyJhbGciOiJub25lIn0.e30.", status: 401},
		"no token":                                 {token: "x", status: 401},
		"a token too long to be one":               {token: strings.Repeat("x", 40<<10), status: 401},
		"a token that was changed after signature": {token: tampered(b.issuer.token(nil)), status: 401},
	} {
		t.Run(name, func(t *testing.T) {
			b := *b
			b.t = t
			token := tc.token
			if token == "" {
				token = b.issuer.token(tc.claims)
			}
			r := b.do(http.MethodGet, apitype.PathAddons, nil, bearer(token))
			if r.status != tc.status {
				t.Errorf("got %s", r)
			}
			if challenge := r.header.Get("WWW-Authenticate"); (tc.status == 200) != (challenge == "") {
				t.Errorf("WWW-Authenticate: %q", challenge)
			}
		})
	}
}

// tampered is a token whose payload is another than was signed.
func tampered(token string) string {
	parts := strings.Split(token, ".")
	payload := []byte(parts[1])
	payload[10] ^= 1
	return parts[0] + "." + string(payload) + "." + parts[2]
}

func TestTheSchemeIsBearerInAnyCaseAndOneHeader(t *testing.T) {
	t.Parallel()
	b := newLoneBench(t)
	for header, status := range map[string]int{"bearer " + b.token: 200, "BEARER  " + b.token: 200, "Basic " + b.token: 401, b.token: 401, "Bearer": 401} {
		r := b.do(http.MethodGet, apitype.PathAddons, nil, func(r *http.Request) { r.Header.Set("Authorization", header) })
		if r.status != status {
			t.Errorf("%.12s…: got %s", header, r)
		}
	}
	r := b.do(http.MethodGet, apitype.PathAddons, nil, func(r *http.Request) { r.Header.Add("Authorization", "Bearer "+b.token) })
	b.problem(r, http.StatusUnauthorized, "no-bearer")
}

func TestClaimRoleAudienceAndClientsAreConfigurable(t *testing.T) {
	t.Parallel()
	b := newLoneBench(t, func(o *portal.Options) {
		o.Auth.RoleClaim, o.Auth.AdminRole, o.Auth.Audience, o.Auth.Clients = "resource_access.portal.roles", "boss", "portal", []string{"cli"}
	})
	good := map[string]any{"azp": "cli", "aud": []string{"account", "portal"}, "resource_access": map[string]any{"portal": map[string]any{"roles": []string{"boss"}}}}
	with := func(name string, value any) string {
		claims := map[string]any{name: value}
		for k, v := range good {
			if k != name {
				claims[k] = v
			}
		}
		return b.issuer.token(claims)
	}
	for token, status := range map[string]int{
		b.issuer.token(good): 200, with("aud", "account"): 401, with("aud", nil): 401, with("azp", "zae"): 403, with("resource_access", nil): 403,
		with("resource_access.portal.roles", []string{"user"}): 403, // a claim whose name is the whole path comes first
	} {
		if r := b.do(http.MethodGet, apitype.PathAddons, nil, bearer(token)); r.status != status {
			t.Errorf("wanted %d, got %s", status, r)
		}
	}
}

func TestAnIssuerThatIsDownIs503AndThenItIsBack(t *testing.T) {
	t.Parallel()
	b := newLoneBench(t)
	b.issuer.setDown(true)
	r := b.do(http.MethodGet, apitype.PathAddons, nil)
	b.problem(r, http.StatusServiceUnavailable, "sign-in-unavailable")
	if r.header.Get("Retry-After") == "" || r.header.Get("WWW-Authenticate") != "" {
		t.Errorf("header %v", r.header)
	}
	// Who sends no token at all needs no issuer to be refused, and what needs no token still works.
	b.problem(b.do(http.MethodGet, apitype.PathAddons, nil, bearer("")), http.StatusUnauthorized, "no-bearer")
	b.problem(b.do(http.MethodGet, apitype.PathAddons, nil, bearer("no-token")), http.StatusUnauthorized, "no-bearer")
	var discovery apitype.Discovery
	b.answer(http.MethodGet, apitype.PathDiscovery, nil, http.StatusOK, &discovery)
	b.issuer.setDown(false)
	b.eventually("the issuer is found", func() error {
		if r := b.do(http.MethodGet, apitype.PathAddons, nil); r.status != http.StatusOK {
			return fmt.Errorf("got %s", r)
		}
		return nil
	})
	// Once its keys are known, it may be down again.
	b.issuer.setDown(true)
	if r := b.do(http.MethodGet, apitype.PathAddons, nil); r.status != http.StatusOK {
		t.Errorf("got %s", r)
	}
}

func TestNewKeysAreFoundAndMadeUpOnesDoNotFloodTheIssuer(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64 // seconds by which the clock is put forward
	b := newLoneBench(t, func(o *portal.Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load()) * time.Second) }
	})
	if r := b.do(http.MethodGet, apitype.PathAddons, nil); r.status != http.StatusOK {
		t.Fatalf("got %s", r)
	}
	before := b.issuer.read("/keys")
	stranger := newTestIssuer(t)
	for range 20 {
		b.problem(b.do(http.MethodGet, apitype.PathAddons, nil, bearer(stranger.token(map[string]any{"iss": b.issuer.url}))), http.StatusUnauthorized, "no-bearer")
	}
	if n := b.issuer.read("/keys") - before; n > 1 {
		t.Errorf("20 made-up keys made %d readings", n)
	}
	b.issuer.rotate()
	ahead.Store(10)
	if r := b.do(http.MethodGet, apitype.PathAddons, nil, bearer(b.issuer.token(nil))); r.status != http.StatusOK {
		t.Errorf("a token of the new key: %s", r)
	}
	b.issuer.rotate()
	b.issuer.setDown(true)
	ahead.Store(20)
	b.problem(b.do(http.MethodGet, apitype.PathAddons, nil, bearer(b.issuer.token(nil))), http.StatusServiceUnavailable, "sign-in-unavailable")
}

func TestWithoutAnIssuerNobodyIsAnAdmin(t *testing.T) {
	t.Parallel()
	b := newLoneBench(t, func(o *portal.Options) { o.Auth.Issuer = "" })
	b.problem(b.do(http.MethodGet, apitype.PathAddons, nil), http.StatusServiceUnavailable, "sign-in-unavailable")
	var discovery apitype.Discovery
	b.answer(http.MethodGet, apitype.PathDiscovery, nil, http.StatusOK, &discovery)
	if discovery.Auth != nil {
		t.Errorf("auth %+v", discovery.Auth)
	}
}

func TestAnIssuerThatIsAnotherIsNotBelieved(t *testing.T) {
	t.Parallel()
	real := newTestIssuer(t)
	// A discovery document that names another issuer than the address it comes from.
	liar := httptest.NewServer(real)
	t.Cleanup(liar.Close)
	b := newLoneBench(t, func(o *portal.Options) { o.Auth.Issuer = liar.URL })
	b.problem(b.do(http.MethodGet, apitype.PathAddons, nil, bearer(real.token(nil))), http.StatusServiceUnavailable, "sign-in-unavailable")
}

func TestOptionsThatCannotBeMeantAreRefused(t *testing.T) {
	t.Parallel()
	store := newLoneBench(t).registry
	for name, o := range map[string]portal.Options{
		"no registry":           {},
		"a symmetric algorithm": {Registry: store, Auth: portal.Auth{Algorithms: []string{"HS256"}}},
		"no signature":          {Registry: store, Auth: portal.Auth{Algorithms: []string{"none"}}},
		"an issuer that is none": {
			Registry: store, Auth: portal.Auth{Issuer: "example.org"},
		},
		"an origin with a path":  {Registry: store, PublicOrigin: "https://example.org/portal"},
		"a name without a place": {Registry: store, Resolve: map[string]string{"example": "127.0.0.1"}},
	} {
		if _, err := portal.New(o); err == nil {
			t.Errorf("%s passes", name)
		}
	}
}
