package session

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/session/issuertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const instance = "https://media.example.org"

func newIssuer(t *testing.T, change ...func(*issuertest.Issuer)) (*issuertest.Issuer, Web) {
	t.Helper()
	i := issuertest.New()
	for _, c := range change {
		c(i)
	}
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		i.CloseClientConnections()
		i.Close()
	})
	return i, Web{Transport: transport, Safe: issuertest.Loopback, Timeout: 5 * time.Second}
}

func wantFault(t *testing.T, err error, code fault.Code, texts ...string) {
	t.Helper()
	if fault.CodeOf(err) != code {
		t.Fatalf("got %q (%v), want %q", fault.CodeOf(err), err, code)
	}
	f := fault.From(err)
	for _, text := range texts {
		if !strings.Contains(f.Message+" "+f.Hint, text) {
			t.Errorf("%q (%q) does not say %q", f.Message, f.Hint, text)
		}
	}
	if strings.Contains(f.Message+f.Hint, issuertest.Canary) {
		t.Errorf("the error holds a token or the issuer's text: %v", err)
	}
}

func TestADeviceSignsInWithPKCE(t *testing.T) {
	t.Parallel()
	i, web := newIssuer(t, func(i *issuertest.Issuer) { i.Pending = 1 })
	p, err := Discover(t.Context(), web, i.URL, "zae")
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	token, err := p.Device(t.Context(), func(pr Prompt) {
		shown++
		if pr.Code != "WXYZ-1234" || pr.URL != i.URL+"/activate" || pr.Complete == "" || pr.Expires.IsZero() {
			t.Errorf("prompt %+v", pr)
		}
	})
	if err != nil {
		t.Fatal(err) // the issuer refuses a code without the right verifier
	}
	if shown != 1 || token.AccessToken == "" || token.RefreshToken == "" || token.Expiry.IsZero() {
		t.Errorf("shown %d times, token %v", shown, token.Valid())
	}
}

func TestASignInThatFails(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*issuertest.Issuer)
		code   fault.Code
		says   string
	}{
		"refused":           {func(i *issuertest.Issuer) { i.Fail = "access_denied" }, fault.Forbidden, "refused at the issuer"},
		"too late":          {func(i *issuertest.Issuer) { i.Fail = "expired_token" }, fault.NoBearer, "not used in time"},
		"code ended":        {func(i *issuertest.Issuer) { i.Pending, i.CodeLifetime = 99, time.Second }, fault.NoBearer, "not used in time"},
		"another error":     {func(i *issuertest.Issuer) { i.Fail = "invalid_client" }, fault.NoBearer, "invalid_client"},
		"a hostile error":   {func(i *issuertest.Issuer) { i.Fail = "\x1b[31m" + issuertest.Canary }, fault.NoBearer, "an error of its own"},
		"HTML":              {func(i *issuertest.Issuer) { i.FailStatus = 502 }, fault.Unreachable, "status 502"},
		"HTML with success": {func(i *issuertest.Issuer) { i.FailStatus = 200 }, fault.Unreachable, "no usable answer"},
		"a closed connection": {func(i *issuertest.Issuer) {
			i.OnToken = func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }
		}, fault.Unreachable, "cannot be reached"},
		"a redirect": {func(i *issuertest.Issuer) {
			i.OnToken = func(w http.ResponseWriter, r *http.Request) bool {
				http.Redirect(w, r, i.URL+"/elsewhere", http.StatusTemporaryRedirect)
				return true
			}
		}, fault.Unreachable, "status 307"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i, web := newIssuer(t, tc.change)
			p, err := Discover(t.Context(), web, i.URL, "zae")
			if err != nil {
				t.Fatal(err)
			}
			_, err = p.Device(t.Context(), func(Prompt) {})
			wantFault(t, err, tc.code, tc.says)
		})
	}
}

func TestWaitingForApprovalEndsWithTheContext(t *testing.T) {
	t.Parallel()
	i, web := newIssuer(t, func(i *issuertest.Issuer) { i.Pending = 99 })
	p, err := Discover(t.Context(), web, i.URL, "zae")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err = p.Device(ctx, func(Prompt) { cancel(fault.New(fault.Interrupted, "interrupted")) })
	wantFault(t, err, fault.Interrupted)
}

func TestStartingASignInEndsWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	hang := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel(fault.New(fault.Interrupted, "interrupted"))
		_, _ = io.Copy(io.Discard, r.Body) // or the server does not see that the client is gone
		<-r.Context().Done()
	}))
	defer hang.Close()
	i, web := newIssuer(t, func(i *issuertest.Issuer) {
		i.Metadata = func(m map[string]any) { m["device_authorization_endpoint"] = hang.URL }
	})
	p, err := Discover(t.Context(), web, i.URL, "zae")
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Device(ctx, func(Prompt) { t.Error("shown") })
	wantFault(t, err, fault.Interrupted)
}

func TestAnIssuerThatIsNotTrusted(t *testing.T) {
	t.Parallel()
	set := func(key string, value any) func(*issuertest.Issuer) {
		return func(i *issuertest.Issuer) { i.Metadata = func(m map[string]any) { m[key] = value } }
	}
	for name, tc := range map[string]struct {
		change func(*issuertest.Issuer)
		says   string
	}{
		"another name":           {set("issuer", "https://evil.example.org"), "calls itself by another name"},
		"a token endpoint":       {set("token_endpoint", "http://evil.example.org/token"), "an endpoint that is not https"},
		"a device endpoint":      {set("device_authorization_endpoint", "http://evil.example.org/d"), "an endpoint that is not https"},
		"a revocation endpoint":  {set("revocation_endpoint", "ftp://x"), "an endpoint that is not https"},
		"a relative endpoint":    {set("token_endpoint", "/token"), "an endpoint that is not https"},
		"no token endpoint":      {set("token_endpoint", ""), "no token endpoint"},
		"a document of no shape": {set("issuer", 1), "did not answer with its endpoints"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i, web := newIssuer(t, tc.change)
			_, err := Discover(t.Context(), web, i.URL, "zae")
			wantFault(t, err, fault.Unreachable, tc.says)
		})
	}
	t.Run("no device endpoint", func(t *testing.T) {
		t.Parallel()
		i, web := newIssuer(t, set("device_authorization_endpoint", ""))
		p, err := Discover(t.Context(), web, i.URL, "zae")
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Device(t.Context(), func(Prompt) { t.Error("shown") })
		wantFault(t, err, fault.Unreachable, "no sign-in with a device code", "ZAE_TOKEN")
	})
}

func TestAnIssuerMustBeHTTPSOrAllowed(t *testing.T) {
	t.Parallel()
	for _, issuer := range []string{"http://issuer.example.org", "http://127.0.0.1:1", "ftp://x", "", "issuer", "https://u:p@issuer.example.org", "https://i?x"} {
		_, err := Discover(t.Context(), Web{}, issuer, "zae")
		wantFault(t, err, fault.Unreachable)
	}
	_, err := Discover(t.Context(), Web{}, "https://issuer.example.org", "")
	wantFault(t, err, fault.Unreachable, "no client")
}

func TestDiscoveryFollowsNoRedirectAndReadsNoFlood(t *testing.T) {
	t.Parallel()
	var visited atomic.Bool
	mux := http.NewServeMux()
	mux.HandleFunc("/r/.well-known/openid-configuration", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/visited", http.StatusFound)
	})
	mux.HandleFunc("/visited", func(http.ResponseWriter, *http.Request) { visited.Store(true) })
	mux.HandleFunc("/flood/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		for range 100 {
			if _, err := io.WriteString(w, strings.Repeat(" ", 1<<20)); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/hang/.well-known/openid-configuration", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	srv := httptest.NewServer(mux)
	defer srv.Close()
	web := Web{Transport: &http.Transport{DisableKeepAlives: true}, Safe: issuertest.Loopback, Timeout: 300 * time.Millisecond}
	for path, says := range map[string]string{"/r": "status 302", "/flood": "did not answer with its endpoints", "/hang": "no answer in time"} {
		_, err := Discover(t.Context(), web, srv.URL+path, "zae")
		wantFault(t, err, fault.Unreachable, says)
	}
	if visited.Load() {
		t.Error("the redirect was followed")
	}
}

// stored is a store with one session that has expired.
func stored(t *testing.T, i *issuertest.Issuer, web Web, left time.Duration) Bearers {
	t.Helper()
	b := Bearers{Store: NewStore(filepath.Join(t.TempDir(), "zae")), Web: web, Now: time.Now}
	one := Session{
		Instance: instance, Issuer: i.URL, ClientID: "zae", AccessToken: "old-access", RefreshToken: i.SignedIn(),
		Expiry: time.Now().Add(left), SignedIn: time.Now(),
	}
	if err := b.Store.Keep(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAFreshTokenIsUsedWithoutARequest(t *testing.T) {
	t.Parallel()
	i, web := newIssuer(t)
	b := stored(t, i, web, time.Hour)
	i.Close()
	if got, err := b.Bearer(t.Context(), instance); err != nil || got != "old-access" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestATokenIsRenewedBeforeItExpires(t *testing.T) {
	t.Parallel()
	for _, keep := range []bool{false, true} {
		i, web := newIssuer(t, func(i *issuertest.Issuer) { i.KeepRefresh = keep })
		b := stored(t, i, web, leeway-time.Second)
		for range 2 { // the second time it is fresh
			if got, err := b.Bearer(t.Context(), instance); err != nil || got == "old-access" {
				t.Fatalf("got %q, %v", got, err)
			}
		}
		one, _, _ := b.Store.Of(instance)
		if one.RefreshToken == "" || i.Refreshes() != 1 {
			t.Errorf("refresh token %q after %d refreshes", one.RefreshToken, i.Refreshes())
		}
	}
}

func TestAShortLivedTokenIsNotRenewedForEachCall(t *testing.T) {
	t.Parallel()
	i, web := newIssuer(t, func(i *issuertest.Issuer) { i.Lifetime = 20 * time.Second })
	now := time.Now()
	b := stored(t, i, web, -time.Minute)
	b.Now = func() time.Time { return now }
	for _, step := range []struct {
		later time.Duration
		want  int
	}{{0, 1}, {10 * time.Second, 1}, {4 * time.Second, 1}, {2 * time.Second, 2}} {
		now = now.Add(step.later)
		if _, err := b.Bearer(t.Context(), instance); err != nil {
			t.Fatal(err)
		}
		if i.Refreshes() != step.want {
			t.Errorf("%d refreshes, want %d", i.Refreshes(), step.want)
		}
	}
}

func TestManyRenewOnce(t *testing.T) {
	t.Parallel()
	i, web := newIssuer(t, func(i *issuertest.Issuer) {
		i.OnToken = func(http.ResponseWriter, *http.Request) bool { time.Sleep(50 * time.Millisecond); return false }
	})
	b := stored(t, i, web, -time.Minute)
	var wg sync.WaitGroup
	got := make([]string, 8)
	for n := range got {
		wg.Go(func() {
			// A store of its own, as another process has; its lock is another open file.
			other := Bearers{Store: NewStore(filepath.Dir(b.Store.Path())), Web: web, Now: time.Now}
			var err error
			if got[n], err = other.Bearer(t.Context(), instance); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, g := range got {
		if g != got[0] || g == "old-access" {
			t.Errorf("got %q", got)
		}
	}
	if i.Refreshes() != 1 {
		t.Errorf("%d refreshes", i.Refreshes())
	}
}

func TestASessionThatTheIssuerEndedIsForgotten(t *testing.T) {
	t.Parallel()
	i, web := newIssuer(t, func(i *issuertest.Issuer) { i.Fail = "invalid_grant" })
	b := stored(t, i, web, -time.Minute)
	_, err := b.Bearer(t.Context(), instance)
	wantFault(t, err, fault.NoBearer, "has ended", "zae login --url "+instance)
	_, err = b.Bearer(t.Context(), instance)
	wantFault(t, err, fault.NoBearer, "not signed in", "zae login --url "+instance)
	if i.Refreshes() != 1 {
		t.Errorf("%d refreshes", i.Refreshes())
	}
}

func TestAnIssuerThatIsAway(t *testing.T) {
	t.Parallel()
	i, web := newIssuer(t, func(i *issuertest.Issuer) { i.FailStatus = 503 })
	b := stored(t, i, web, leeway/2)
	if got, err := b.Bearer(t.Context(), instance); err != nil || got != "old-access" {
		t.Errorf("a token with a moment left was not used: %q, %v", got, err)
	}
	b = stored(t, i, web, -time.Minute)
	_, err := b.Bearer(t.Context(), instance)
	wantFault(t, err, fault.Unreachable, "status 503")
	if _, ok, _ := b.Store.Of(instance); !ok {
		t.Error("the session was forgotten because the issuer was away")
	}
}

func TestASessionWithoutARefreshTokenEnds(t *testing.T) {
	t.Parallel()
	b := Bearers{Store: NewStore(t.TempDir()), Now: time.Now}
	one := Session{Instance: instance, Issuer: "https://i", AccessToken: "a", Expiry: time.Now().Add(leeway / 2)}
	if err := b.Store.Keep(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Bearer(t.Context(), instance); err != nil || got != "a" {
		t.Errorf("got %q, %v", got, err)
	}
	one.Expiry = time.Now().Add(-time.Second)
	if err := b.Store.Keep(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	_, err := b.Bearer(t.Context(), instance)
	wantFault(t, err, fault.NoBearer, "has ended")
}

func TestAnInterruptedRenewalKeepsTheNewToken(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	i, web := newIssuer(t, func(i *issuertest.Issuer) {
		i.OnToken = func(http.ResponseWriter, *http.Request) bool {
			cancel(fault.New(fault.Interrupted, "interrupted"))
			time.Sleep(20 * time.Millisecond)
			return false
		}
	})
	b := stored(t, i, web, -time.Minute)
	before, _, _ := b.Store.Of(instance)
	_, err := b.Bearer(ctx, instance)
	wantFault(t, err, fault.Interrupted)
	after, _, _ := b.Store.Of(instance)
	if after.RefreshToken == before.RefreshToken || after.AccessToken == before.AccessToken {
		t.Error("the renewed session was lost: its refresh token is spent")
	}
}

func TestARefreshTokenIsNotSentElsewhere(t *testing.T) {
	t.Parallel()
	var visited atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visited.Store(true) }))
	defer other.Close()
	i, web := newIssuer(t)
	i.OnToken = func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, other.URL, http.StatusPermanentRedirect)
		return true
	}
	b := stored(t, i, web, -time.Minute)
	_, err := b.Bearer(t.Context(), instance)
	wantFault(t, err, fault.Unreachable)
	if visited.Load() {
		t.Error("the redirect was followed")
	}
}

func TestRevoke(t *testing.T) {
	t.Parallel()
	i, web := newIssuer(t)
	p, err := Discover(t.Context(), web, i.URL, "zae")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Revoke(t.Context(), Session{RefreshToken: "r", AccessToken: "a"}); err != nil {
		t.Error(err)
	}
	if err := p.Revoke(t.Context(), Session{AccessToken: "a"}); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(i.Revoked()); got != "[r a]" {
		t.Errorf("revoked %s", got)
	}
}

func TestTheStoreIsForItsOwnerOnly(t *testing.T) {
	t.Parallel()
	s := NewStore(filepath.Join(t.TempDir(), "a", "zae"))
	for range 2 {
		if err := s.Keep(t.Context(), Session{Instance: instance, Issuer: "i", AccessToken: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]fs.FileMode{s.Path(): 0o600, filepath.Dir(s.Path()): 0o700 | fs.ModeDir} {
		info, err := os.Stat(path)
		if err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	names, _ := os.ReadDir(filepath.Dir(s.Path()))
	if len(names) != 2 { // the sessions and the lock
		t.Errorf("left %v", names)
	}
}

func TestAStoreThatOthersCouldReadIsClosed(t *testing.T) {
	t.Parallel()
	s := NewStore(t.TempDir())
	if err := s.Keep(t.Context(), Session{Instance: instance, Issuer: "i"}); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(s.Path(), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.Keep(t.Context(), Session{Instance: instance, Issuer: "i"}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(s.Path()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestSessionsAreKeyedByInstanceAndIssuer(t *testing.T) {
	t.Parallel()
	s := NewStore(t.TempDir())
	now := time.Now()
	for n, one := range []Session{
		{Instance: instance, Issuer: "a", AccessToken: "1"},
		{Instance: instance, Issuer: "b", AccessToken: "2"},
		{Instance: "https://other", Issuer: "a", AccessToken: "3"},
		{Instance: instance, Issuer: "a", AccessToken: "4"},
	} {
		one.SignedIn = now.Add(time.Duration(n) * time.Second)
		if err := s.Keep(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
	if one, ok, err := s.Of(instance); err != nil || !ok || one.AccessToken != "4" {
		t.Errorf("got %+v, %v, %v", one, ok, err)
	}
	gone, err := s.Forget(t.Context(), instance)
	if err != nil || len(gone) != 2 {
		t.Errorf("forgot %d, %v", len(gone), err)
	}
	if _, ok, _ := s.Of(instance); ok {
		t.Error("still there")
	}
	if one, ok, _ := s.Of("https://other"); !ok || one.AccessToken != "3" {
		t.Error("another instance's session is gone")
	}
	if gone, err := s.Forget(t.Context(), instance); err != nil || len(gone) != 0 {
		t.Errorf("forgot %d, %v", len(gone), err)
	}
}

func TestForgettingNothingMakesNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "zae")
	if _, err := NewStore(dir).Forget(t.Context(), instance); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
}

func TestADamagedStoreIsToldOfAndNotOverwritten(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"{", "[]", `{"sessions":[{"accessToken":"` + issuertest.Canary + `"`, strings.Repeat("x", maxStore+1)} {
		s := NewStore(t.TempDir())
		if err := os.WriteFile(s.Path(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := s.Of(instance)
		wantFault(t, err, fault.NoBearer, s.Path(), "sign in again")
		wantFault(t, s.Keep(t.Context(), Session{}), fault.NoBearer)
		if now, _ := os.ReadFile(s.Path()); string(now) != text {
			t.Error("it was overwritten")
		}
	}
}

func TestAWaitForTheLockEndsWithTheContext(t *testing.T) {
	t.Parallel()
	s := NewStore(t.TempDir())
	ctx, cancel := context.WithCancelCause(t.Context())
	err := s.locked(t.Context(), func() error {
		cancel(fault.New(fault.Interrupted, "interrupted"))
		return NewStore(s.dir).Keep(ctx, Session{})
	})
	wantFault(t, err, fault.Interrupted)
}

func TestTheStoreKeepsWhatLaterVersionsNeed(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(document{[]Session{{Instance: "i", Issuer: "s", ClientID: "c", AccessToken: "a", RefreshToken: "r"}}})
	want := `{"sessions":[{"instance":"i","issuer":"s","clientId":"c","accessToken":"a","refreshToken":"r","signedIn":"0001-01-01T00:00:00Z"}]}`
	if err != nil || string(text) != want {
		t.Errorf("got %s, %v", text, err)
	}
}
