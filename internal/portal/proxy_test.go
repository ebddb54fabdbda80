package portal_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/portal"
	"zaentrum.io/zae/internal/registry"
	"zaentrum.io/zae/internal/registry/capability"
)

const (
	apiBase     = apitype.PathApps + "/example"
	consoleBase = "/portal/app/example"
)

// backend is the server of an app.
type backend struct {
	mu     sync.Mutex
	seen   []*http.Request
	bodies []string
	answer http.HandlerFunc
	server *httptest.Server
}

func newBackend(t *testing.T) *backend {
	t.Helper()
	b := &backend{}
	b.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		b.seen = append(b.seen, r)
		answer := b.answer
		b.mu.Unlock()
		if answer != nil {
			answer(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		b.mu.Lock()
		b.bodies = append(b.bodies, string(body))
		b.mu.Unlock()
		_, _ = io.WriteString(w, "hello")
	}))
	t.Cleanup(b.server.Close)
	return b
}

func (b *backend) address() string { return strings.TrimPrefix(b.server.URL, "http://") }

func (b *backend) with(answer http.HandlerFunc) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answer = answer
}

// last is the last request; nil when there was none since.
func (b *backend) last() *http.Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.seen) == 0 {
		return nil
	}
	r := b.seen[len(b.seen)-1]
	b.seen = nil
	return r
}

// newProxyBench is a portal with the apps that are given, each at an address.
func newProxyBench(t *testing.T, apps map[string]string, adjust ...func(*portal.Options)) *bench {
	t.Helper()
	b := newLoneBench(t, append([]func(*portal.Options){func(o *portal.Options) { o.Resolve = apps }}, adjust...)...)
	for name := range apps {
		b.registerApp(name, "http://"+name)
	}
	return b
}

func (b *bench) registerApp(name, address string) {
	b.t.Helper()
	b.must(b.registry.Register(b.t.Context(), registry.Registration{
		Source: registry.SourceAddress, Manifest: &capability.Manifest{Service: name},
		Place: capability.Place{ProxyURL: address, Workload: name},
	}))
}

// raw sends a request as it is written, and answers the connection with a reader on it.
func (b *bench) raw(text string) (net.Conn, *bufio.Reader) {
	b.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.url, "http://"))
	b.must(err)
	b.t.Cleanup(func() { _ = conn.Close() })
	b.must(conn.SetDeadline(time.Now().Add(20 * time.Second)))
	_, err = io.WriteString(conn, strings.ReplaceAll(text, "\n", "\r\n"))
	b.must(err)
	return conn, bufio.NewReader(conn)
}

func header(pairs ...string) func(*http.Request) {
	return func(r *http.Request) {
		for i := 0; i < len(pairs); i += 2 {
			r.Header[http.CanonicalHeaderKey(pairs[i])] = append(r.Header[http.CanonicalHeaderKey(pairs[i])], pairs[i+1])
		}
	}
}

func TestACallIsForwardedToTheAppWithTheCallersBearer(t *testing.T) {
	t.Parallel()
	app := newBackend(t)
	b := newProxyBench(t, map[string]string{"example": app.address()})
	viewer := b.issuer.token(map[string]any{"azp": "media-player", "realm_access": nil})
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"} {
		var body any
		if method != "GET" && method != "HEAD" {
			body = "payload"
		}
		r := b.do(method, apiBase+"/a%20b/c;d=e?x=1;2&y=%zz", body, bearer(viewer), header("X-Own", "1"))
		got := app.last()
		if r.status != 200 || got == nil {
			t.Fatalf("%s: %s", method, r)
		}
		if got.Method != method || got.RequestURI != "/a%20b/c;d=e?x=1;2&y=%zz" || got.Host != "example" || got.Header.Get("X-Own") != "1" ||
			got.Header.Get("Authorization") != "Bearer "+viewer || got.Header.Get("X-Forwarded-Prefix") != apiBase {
			t.Errorf("%s: the app got %s %s %s %v", method, got.Method, got.Host, got.RequestURI, got.Header)
		}
		if method != "HEAD" && string(r.body) != "hello" {
			t.Errorf("%s: %s", method, r)
		}
	}
	for _, method := range []string{"TRACE", "CONNECT"} {
		_, answer := b.raw(method + " " + apiBase + "/x HTTP/1.1\nHost: p\nAuthorization: Bearer " + viewer + "\n\n")
		if line, _ := answer.ReadString('\n'); !strings.Contains(line, " 405 ") && !strings.Contains(line, " 400 ") || app.last() != nil {
			t.Errorf("%s: %s", method, line)
		}
	}
}

func TestOnlyWhoIsSignedInReachesRegisteredApps(t *testing.T) {
	t.Parallel()
	app := newBackend(t)
	b := newProxyBench(t, map[string]string{"example": app.address(), "other": app.address(), "127.0.0.1": app.address()})
	b.problem(b.do("GET", apiBase+"/x", nil, bearer("")), 401, "no-bearer")
	b.problem(b.do("POST", apiBase+"/x", strings.Repeat("x", 1<<20), bearer("x")), 401, "no-bearer")
	b.problem(b.do("GET", apiBase+"/x", nil, bearer(b.issuer.token(map[string]any{"typ": "ID"}))), 401, "no-bearer")
	b.problem(b.do("GET", apiBase+"/x", nil, bearer(b.issuer.token(map[string]any{"exp": 1}))), 401, "no-bearer")
	for _, key := range []string{"nobody", "EXAMPLE", "example.zaentrum", "..", "%2e%2e", "example%2f..", "a@b", "127.0.0.1:80", "kubernetes.default"} {
		b.problem(b.do("GET", apitype.PathApps+"/"+key+"/x", nil), 404, "not-found")
		b.problem(b.do("GET", "/portal/app/"+key+"/x", nil, bearer("")), 404, "not-found")
	}
	if got := app.last(); got != nil {
		t.Errorf("the app got %v", got)
	}
	_, err := b.registry.Remove(t.Context(), "example", registry.SourceAddress)
	b.must(err)
	b.problem(b.do("GET", apiBase+"/x", nil), 404, "not-found")
	b.must(b.registry.Register(t.Context(), registry.Registration{
		Source: registry.SourceAddress, Manifest: &capability.Manifest{Service: "example", ProxyKey: "short"},
		Place: capability.Place{ProxyURL: "http://other/base/", Workload: "example"},
	}))
	for _, key := range []string{"example", "short"} {
		if r := b.do("GET", apitype.PathApps+"/"+key+"/x", nil); r.status != 200 {
			t.Errorf("%s: %s", key, r)
		}
		if got := app.last(); got == nil || got.RequestURI != "/base/x" {
			t.Errorf("%s: the app got %v", key, got)
		}
	}
}

func TestAPathThatMayClimbReachesNoApp(t *testing.T) {
	t.Parallel()
	app := newBackend(t)
	b := newProxyBench(t, map[string]string{"example": app.address()})
	for _, path := range []string{"/../addons", "/%2e%2e/x", "/%252e%252e/x", `/..\x`, "//x", "/a//b", "/a%2fb", "/..;/x", "/%5c..%5cx", "/%00"} {
		for _, base := range []string{apiBase, consoleBase} {
			_, answer := b.raw("GET " + base + path + " HTTP/1.1\nHost: p\nConnection: close\nAuthorization: Bearer " + b.token + "\n\n")
			if line, _ := answer.ReadString('\n'); !strings.Contains(line, " 400 ") {
				t.Errorf("%s%s: %s", base, path, line)
			}
			if got := app.last(); got != nil {
				t.Errorf("%s%s: the app got %s", base, path, got.RequestURI)
			}
		}
	}
}

func TestWhatACallerSaysOfItselfIsNotPassedOn(t *testing.T) {
	t.Parallel()
	app := newBackend(t)
	b := newProxyBench(t, map[string]string{"example": app.address()})
	b.do("GET", apiBase+"/x", nil, header(
		"X-Forwarded-For", "6.6.6.6", "X-Forwarded-Host", "evil", "X-Forwarded-Proto", "gopher", "X-Forwarded-User", "root", "Forwarded", "for=6.6.6.6",
		"X-Real-IP", "6.6.6.6", "X-Original-URL", "/admin", "X-Rewrite-URL", "/admin", "Via", "1.1 evil", "X_Forwarded_For", "6.6.6.6", "Remote-User", "root",
		"X-Auth-Request-User", "root", "X-HTTP-Method-Override", "DELETE", "X-Zaentrum-Caller", "root", "Proxy", "http://evil",
		"X-Accel-Mapping", "/=/etc/", "X-Sendfile-Type", "X-Accel-Redirect", "Http2-Settings", "x",
		"Connection", "X-Hop, Authorization, X-Forwarded-Prefix", "X-Hop", "1", "Keep-Alive", "9", "Proxy-Authorization", "Basic x", "Te", "trailers",
		"Cookie", "session="+canary+"; zae.example.own=1; zae.other.own="+canary+"; zae.example.=x; own=2", "X-Kept", "1",
	))
	got := app.last()
	for _, name := range []string{
		"Forwarded", "X-Forwarded-User", "X-Real-Ip", "X-Original-Url", "X-Rewrite-Url", "Via", "X_forwarded_for", "Remote-User", "X-Auth-Request-User",
		"X-Http-Method-Override", "X-Zaentrum-Caller", "Proxy", "X-Hop", "Keep-Alive", "Proxy-Authorization", "Connection", "Te",
		"X-Accel-Mapping", "X-Sendfile-Type", "Http2-Settings",
	} {
		if v := got.Header.Values(name); len(v) > 0 {
			t.Errorf("%s: %v", name, v)
		}
	}
	for name, want := range map[string]string{
		"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Host": "media.example.org", "X-Forwarded-Proto": "https", "X-Forwarded-Prefix": apiBase,
		"Cookie": "own=1", "Authorization": "Bearer " + b.token, "X-Kept": "1",
	} {
		if v := got.Header.Values(name); len(v) != 1 || v[0] != want {
			t.Errorf("%s: %v", name, v)
		}
	}
	if tp := got.Header.Get("Traceparent"); len(tp) != 55 {
		t.Errorf("traceparent %q", tp)
	}
}

func TestAnAnswerActsOnTheAppAlone(t *testing.T) {
	t.Parallel()
	app := newBackend(t)
	b := newProxyBench(t, map[string]string{"example": app.address()})
	app.with(func(w http.ResponseWriter, _ *http.Request) {
		for _, pair := range [][2]string{
			{"Set-Cookie", "session=evil; Path=/; Domain=example.org"}, {"Set-Cookie", "deep=1; Path=/deep; HttpOnly; SameSite=None"},
			{"Set-Cookie", "__Host-x=1; Path=/; Secure"}, {"Set-Cookie", "up=1; Path=/../x"}, {"Set-Cookie", "aware=1; Path=" + consoleBase + "/y"},
			{"Clear-Site-Data", `"*"`}, {"Service-Worker-Allowed", "/"}, {"Strict-Transport-Security", "max-age=0"}, {"Alt-Svc", `h2="evil:443"`},
			{"Access-Control-Allow-Origin", "*"}, {"Access-Control-Allow-Credentials", "true"}, {"Refresh", "0;url=//evil"}, {"Nel", "{}"},
			{"Cross-Origin-Resource-Policy", "cross-origin"}, {"X-Content-Type-Options", "x"}, {"X-Frame-Options", "ALLOWALL"}, {"Referrer-Policy", "unsafe-url"},
			{"Content-Security-Policy", "script-src https://evil"}, {"WWW-Authenticate", `Basic realm="portal"`}, {"WWW-Authenticate", "Bearer"},
			{"Cache-Control", "public, max-age=60"}, {"X-Own", "1"}, {"Keep-Alive", "x"}, {"Connection", "X-Hop"}, {"X-Hop", "1"}, {"Etag", `"1"`},
			{"X-Accel-Redirect", "/internal/secrets"}, {"X-Accel-Buffering", "yes"}, {"X-Sendfile", "/etc/passwd"}, {"X-Lighttpd-Send-File", "/etc/passwd"},
			{"Surrogate-Control", "max-age=1000"}, {"Permissions-Policy", "camera=*"}, {"Cross-Origin-Opener-Policy", "unsafe-none"},
		} {
			w.Header().Add(pair[0], pair[1])
		}
		w.Header()["Content-Type"] = nil
		_, _ = io.WriteString(w, "<html>")
	})
	for base, want := range map[string]map[string][]string{
		apiBase: {
			"Content-Security-Policy": {"default-src 'none'; sandbox; frame-ancestors 'none'"}, "X-Frame-Options": {"DENY"}, "Referrer-Policy": {"no-referrer"},
			"Cache-Control": {"no-store"},
		},
		consoleBase: {
			"Content-Security-Policy": {
				"default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; media-src 'self' blob:; " +
					"object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'self'",
				"script-src https://evil",
			},
			"X-Frame-Options": {"SAMEORIGIN"}, "Referrer-Policy": {"same-origin"}, "Cache-Control": {"public, max-age=60"},
		},
	} {
		h := b.do("GET", base+"/x", nil).header
		for name, values := range want {
			if diff := cmp.Diff(values, h.Values(name)); diff != "" {
				t.Errorf("%s %s: %s", base, name, diff)
			}
		}
		for _, name := range []string{
			"Clear-Site-Data", "Service-Worker-Allowed", "Alt-Svc", "Access-Control-Allow-Origin", "Access-Control-Allow-Credentials",
			"Refresh", "Nel", "Keep-Alive", "X-Hop", "X-Accel-Redirect", "X-Accel-Buffering", "X-Sendfile", "X-Lighttpd-Send-File", "Surrogate-Control",
		} {
			if v := h.Values(name); len(v) > 0 {
				t.Errorf("%s %s: %v", base, name, v)
			}
		}
		for name, value := range map[string]string{
			"Strict-Transport-Security": "max-age=31536000", "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), serial=(), usb=()",
			"Cross-Origin-Resource-Policy": "same-origin", "X-Content-Type-Options": "nosniff", "Www-Authenticate": "Bearer", "X-Own": "1", "Etag": `"1"`,
			"Content-Type": "application/octet-stream",
		} {
			if v := h.Values(name); len(v) != 1 || v[0] != value {
				t.Errorf("%s %s: %v", base, name, v)
			}
		}
		aware := base + consoleBase + "/y"
		if base == consoleBase {
			aware = consoleBase + "/y"
		}
		if diff := cmp.Diff([]string{
			"zae.example.session=evil; Path=" + base + "/; Secure; SameSite=Lax",
			"zae.example.deep=1; Path=" + base + "/deep; HttpOnly; Secure; SameSite=Lax",
			"zae.example.__Host-x=1; Path=" + base + "/; Secure; SameSite=Lax",
			"zae.example.up=1; Path=" + base + "/; Secure; SameSite=Lax",
			"zae.example.aware=1; Path=" + aware + "; Secure; SameSite=Lax",
		}, h.Values("Set-Cookie")); diff != "" {
			t.Error(diff)
		}
	}
}

func TestARedirectIsNotFollowedAndStaysInTheApp(t *testing.T) {
	t.Parallel()
	app := newBackend(t)
	b := newProxyBench(t, map[string]string{"example": app.address()})
	const refused = "refused"
	for location, want := range map[string]struct{ api, console string }{
		"/login?x=1#y":        {apiBase + "/login?x=1#y", consoleBase + "/login?x=1#y"},
		"next":                {apiBase + "/a/next", consoleBase + "/a/next"},
		"../up":               {apiBase + "/up", consoleBase + "/up"},
		"../../../up":         {apiBase + "/up", consoleBase + "/up"},
		"?q":                  {apiBase + "/a/b?q", consoleBase + "/a/b?q"},
		"":                    {apiBase + "/a/b", consoleBase + "/a/b"},
		"http://example/x":    {apiBase + "/x", consoleBase + "/x"},
		"http://EXAMPLE:80/x": {apiBase + "/x", consoleBase + "/x"},
		"//example/x":         {apiBase + "/x", consoleBase + "/x"},
		consoleBase + "/x":    {consoleBase + "/x", consoleBase + "/x"},
		apiBase + "/x":        {apiBase + "/x", apiBase + "/x"},
		"https://media.example.org" + consoleBase + "/x": {consoleBase + "/x", consoleBase + "/x"},
		"/../api/portal/addons":                          {refused, refused},
		consoleBase + "/../../x":                         {refused, refused},
		"/%2e%2e/x":                                      {refused, refused},
		"/%252e%252e/x":                                  {refused, refused},
		"/%5cevil.example.org":                           {refused, refused},
		`/\evil.example.org`:                             {refused, refused},
		`\\evil.example.org`:                             {refused, refused},
		"//":                                             {refused, refused},
		"/a//b":                                          {refused, refused},
		"javascript:alert(1)":                            {refused, refused},
		"JAVASCRIPT:alert(1)":                            {refused, refused},
		"data:text/html,x":                               {refused, refused},
		"ftp://evil.example.org/":                        {refused, refused},
		"https://u:p@example.org/":                       {refused, refused},
		"https:evil.example.org":                         {refused, refused},
		"http://example:8080/x":                          {refused, "http://example:8080/x"},
		"https://evil.example.org/x":                     {refused, "https://evil.example.org/x"},
		"//evil.example.org/x":                           {refused, "//evil.example.org/x"},
		"https://media.example.org/x":                    {refused, "https://media.example.org/x"},
		"https://media.example.org" + apitype.PathAddons: {refused, "https://media.example.org" + apitype.PathAddons},
		"http://169.254.169.254/latest/meta-data/":       {refused, "http://169.254.169.254/latest/meta-data/"},
	} {
		app.with(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", location)
			w.WriteHeader(http.StatusFound)
		})
		for base, want := range map[string]string{apiBase: want.api, consoleBase: want.console} {
			var got *http.Response
			c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
			r, err := http.NewRequestWithContext(t.Context(), "GET", b.url+base+"/a/b", nil)
			b.must(err)
			r.Header.Set("Authorization", "Bearer "+b.token)
			got, err = c.Do(r)
			b.must(err)
			_ = got.Body.Close()
			if want == refused {
				if got.StatusCode != http.StatusBadGateway || got.Header.Get("Location") != "" {
					t.Errorf("%q on %s: %d %v", location, base, got.StatusCode, got.Header.Values("Location"))
				}
			} else if got.StatusCode != http.StatusFound || got.Header.Get("Location") != want {
				t.Errorf("%q on %s: %d %q, wanted %q", location, base, got.StatusCode, got.Header.Get("Location"), want)
			}
		}
	}
	app.with(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "https://elsewhere.example.org/1")
		w.WriteHeader(http.StatusCreated)
	})
	if r := b.do("POST", apiBase+"/x", nil); r.status != http.StatusCreated || r.header.Get("Location") != "" {
		t.Errorf("%s %v", r, r.header)
	}
}

func TestAConsoleIsFilesForWhoeverAsks(t *testing.T) {
	t.Parallel()
	app := newBackend(t)
	b := newProxyBench(t, map[string]string{"example": app.address()})
	if r := b.do("GET", consoleBase+"/index.html?v=1", nil, bearer("")); r.status != 200 {
		t.Errorf("%s", r)
	}
	if got := app.last(); got.RequestURI != "/index.html?v=1" || got.Header.Get("Authorization") != "" || got.Header.Get("X-Forwarded-Prefix") != consoleBase {
		t.Errorf("the app got %s %v", got.RequestURI, got.Header)
	}
	if r := b.do("GET", consoleBase+"/x", nil); r.status != 200 || app.last().Header.Get("Authorization") != "Bearer "+b.token {
		t.Errorf("%s", r)
	}
	b.problem(b.do("GET", consoleBase+"/x", nil, bearer("bad")), 401, "no-bearer")
	for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS"} {
		r := b.do(method, consoleBase+"/x", nil)
		b.problem(r, 405, "malformed")
		if r.header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%v", r.header)
		}
	}
	b.problem(b.do("GET", consoleBase+"/sw.js", nil, bearer(""), header("Service-Worker", "script")), 403, "forbidden")
	if got := app.last(); got != nil {
		t.Errorf("the app got %v", got)
	}
	_, answer := b.raw("GET " + consoleBase + "?tab=1 HTTP/1.1\nHost: p\n\n")
	response, err := http.ReadResponse(answer, nil)
	b.must(err)
	_ = response.Body.Close()
	if response.StatusCode != 308 || response.Header.Get("Location") != consoleBase+"/?tab=1" {
		t.Errorf("%d %v", response.StatusCode, response.Header)
	}
}

func TestOtherSitesPagesCannotCall(t *testing.T) {
	t.Parallel()
	app := newBackend(t)
	b := newProxyBench(t, map[string]string{"example": app.address()})
	for _, path := range []string{apiBase + "/x", apitype.PathAddonCharts} {
		for _, h := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example.org"}, {"Origin", "null"}} {
			r := b.do("POST", path, "{}", header(h...))
			b.problem(r, 403, "forbidden")
		}
	}
	for _, h := range [][]string{{"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Site", "none"}, {"Origin", "https://media.example.org"}, {"Origin", b.url}, {}} {
		if r := b.do("POST", apiBase+"/x", "{}", header(h...)); r.status != 200 {
			t.Errorf("%v: %s", h, r)
		}
	}
}

func TestEventsArriveAsTheyAreSentAndEndWithTheBearer(t *testing.T) {
	t.Parallel()
	app := newBackend(t)
	b := newProxyBench(t, map[string]string{"example": app.address()})
	next, gone := make(chan string), make(chan struct{}, 1)
	app.with(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for {
			w.(http.Flusher).Flush()
			select {
			case text := <-next:
				_, _ = io.WriteString(w, text)
			case <-r.Context().Done():
				gone <- struct{}{}
				return
			}
		}
	})
	open := func(token string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), "GET", b.url+apiBase+"/events", nil)
		b.must(err)
		r.Header.Set("Authorization", "Bearer "+token)
		response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
		b.must(err)
		t.Cleanup(func() { _ = response.Body.Close() })
		return response
	}
	response := open(b.token)
	if response.Header.Get("X-Accel-Buffering") != "no" {
		t.Errorf("%v", response.Header)
	}
	events := bufio.NewReader(response.Body)
	for i := range 3 {
		want := fmt.Sprintf("data: %d\n", i)
		next <- want
		if line, err := events.ReadString('\n'); err != nil || line != want {
			t.Fatalf("%q %v", line, err)
		}
	}
	_ = response.Body.Close()
	<-gone                                                                                         // the app learns that the caller has gone
	response = open(b.issuer.token(map[string]any{"exp": time.Now().Add(2 * time.Second).Unix()})) //nolint:bodyclose // by open
	if rest, err := io.ReadAll(response.Body); err != nil || len(rest) != 0 {
		t.Errorf("a stream whose bearer expires does not end well: %q %v", rest, err)
	}
	<-gone
	response = open(b.token) //nolint:bodyclose // by open
	b.portal.Close()
	if _, err := io.ReadAll(response.Body); err != nil {
		t.Errorf("a stream whose server ends does not end well: %v", err)
	}
	<-gone
	b.problem(b.do("GET", apiBase+"/events", nil), 503, "addon-unreachable")
	<-gone
}

// websocket answers handshakes, and then whatever comes with the same.
func websocket(protocol string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		fmt.Fprintf(buffered, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n"+
			"Set-Cookie: session=evil\r\nSec-WebSocket-Protocol: %s\r\n\r\n", protocol)
		_ = buffered.Flush()
		for {
			line, err := buffered.ReadString('\n')
			if err != nil {
				return
			}
			_, _ = buffered.WriteString("echo " + line)
			_ = buffered.Flush()
		}
	}
}

func TestAWebSocketGoesThrough(t *testing.T) {
	t.Parallel()
	app := newBackend(t)
	b := newProxyBench(t, map[string]string{"example": app.address()})
	app.with(websocket("chat"))
	handshake := "GET " + apiBase + "/ws HTTP/1.1\nHost: p\nUpgrade: websocket\nConnection: Upgrade\nSec-WebSocket-Key: x\n"
	for how, text := range map[string]string{
		"a header":      handshake + "Authorization: Bearer " + b.token + "\nSec-WebSocket-Protocol: chat\n\n",
		"a subprotocol": handshake + "Sec-WebSocket-Protocol: chat, zaentrum.bearer." + b.token + "\nOrigin: https://media.example.org\n\n",
	} {
		conn, answer := b.raw(text)
		response, err := http.ReadResponse(answer, &http.Request{Method: "GET"}) //nolint:bodyclose // a WebSocket's has none
		b.must(err)
		if response.StatusCode != 101 || response.Header.Get("Sec-Websocket-Protocol") != "chat" || response.Header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %d %v", how, response.StatusCode, response.Header)
		}
		got := app.last()
		if got.Header.Get("Authorization") != "Bearer "+b.token || got.Header.Get("Sec-Websocket-Protocol") != "chat" {
			t.Errorf("%s: the app got %v", how, got.Header)
		}
		for range 3 {
			_, err = io.WriteString(conn, "hi\n")
			b.must(err)
			if line, err := answer.ReadString('\n'); err != nil || line != "echo hi\n" {
				t.Errorf("%s: %q %v", how, line, err)
			}
		}
		_ = conn.Close()
	}
	refused := func(status int, text string) {
		t.Helper()
		_, answer := b.raw(text)
		response, err := http.ReadResponse(answer, nil)
		b.must(err)
		_ = response.Body.Close()
		if response.StatusCode != status {
			t.Errorf("%d for %.200q", response.StatusCode, text)
		}
		if got := app.last(); got != nil {
			t.Errorf("the app got %v for %.200q", got, text)
		}
	}
	auth := "Authorization: Bearer " + b.token + "\n"
	refused(401, handshake+"\n")
	refused(403, handshake+auth+"Origin: https://evil.example.org\n\n")
	refused(403, handshake+auth+"Sec-Fetch-Site: cross-site\n\n")
	refused(400, strings.Replace(handshake, "websocket", "h2c", 1)+auth+"HTTP2-Settings: x\n\n")
	refused(400, strings.Replace(handshake, "GET", "POST", 1)+auth+"\n")
	refused(405, strings.Replace(handshake, apiBase, consoleBase, 1)+auth+"\n")
	// An end of portal-api is one of its WebSockets.
	_, answer := b.raw(handshake + auth + "\n")
	response, err := http.ReadResponse(answer, &http.Request{Method: "GET"}) //nolint:bodyclose // a WebSocket's has none
	b.must(err)
	if response.StatusCode != 101 {
		t.Fatal(response.Status)
	}
	b.portal.Close()
	if _, err := answer.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the WebSocket goes on: %v", err)
	}
	// One that nobody asked for is none.
	app.with(websocket(""))
	b.problem(b.do("GET", apiBase+"/ws", nil), 502, "addon-failed")
}

// rude is a server that says what it is told to, byte for byte.
func rude(t *testing.T, answer func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			running.Go(func() {
				defer func() { _ = conn.Close() }()
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					answer(conn)
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, conn := range conns {
			_ = conn.Close()
		}
		mu.Unlock()
		running.Wait()
	})
	return l.Addr().String()
}

func forever(conn net.Conn, piece string) {
	for {
		if _, err := io.WriteString(conn, piece); err != nil {
			return
		}
	}
}

func TestAHostileAppIsCutOffAndNamed(t *testing.T) {
	t.Parallel()
	const ok = "HTTP/1.1 200 OK\r\n"
	apps := map[string]struct {
		say  func(net.Conn)
		want int // 0: broken off in the middle
	}{
		"silent":          {func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }, 504},
		"gone":            {func(net.Conn) {}, 502},
		"no-http":         {func(c net.Conn) { _, _ = io.WriteString(c, "220 "+canary+" ESMTP\r\n") }, 502},
		"endless-header":  {func(c net.Conn) { _, _ = io.WriteString(c, ok); forever(c, "X: "+canary+"\r\n") }, 502},
		"endless-line":    {func(c net.Conn) { _, _ = io.WriteString(c, ok+"X: "); forever(c, strings.Repeat("x", 1000)) }, 502},
		"endless-interim": {func(c net.Conn) { forever(c, "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n") }, 502},
		"two-lengths":     {func(c net.Conn) { _, _ = io.WriteString(c, ok+"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab") }, 502},
		"bad-length":      {func(c net.Conn) { _, _ = io.WriteString(c, ok+"Content-Length: -1\r\n\r\nab") }, 502},
		"short":           {func(c net.Conn) { _, _ = io.WriteString(c, ok+"Content-Length: 100\r\n\r\nab") }, 0},
		"bad-chunk":       {func(c net.Conn) { _, _ = io.WriteString(c, ok+"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\nzz\r\n") }, 0},
		"stalled": {func(c net.Conn) {
			_, _ = io.WriteString(c, ok+"Content-Length: 100\r\n\r\nab")
			_, _ = io.Copy(io.Discard, c)
		}, 0},
		"other-protocol": {func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 101 X\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n")
		}, 502},
	}
	addresses := map[string]string{}
	for name, app := range apps {
		addresses[name] = rude(t, app.say)
	}
	fine := newBackend(t)
	addresses["fine"] = fine.address()
	b := newProxyBench(t, addresses, func(o *portal.Options) {
		o.Proxy = portal.ProxyLimits{Header: 3 * time.Second, Idle: 3 * time.Second}
	})
	var all sync.WaitGroup
	for name, app := range apps {
		all.Go(func() {
			r, err := http.NewRequestWithContext(t.Context(), "GET", b.url+apitype.PathApps+"/"+name+"/x", nil)
			if err != nil {
				t.Error(err)
				return
			}
			r.Header.Set("Authorization", "Bearer "+b.token)
			response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}).Do(r)
			if err != nil {
				if app.want != 0 { // what breaks off may do so before any of it has gone out
					t.Errorf("%s: %v", name, err)
				}
				return
			}
			defer func() { _ = response.Body.Close() }()
			body, err := io.ReadAll(response.Body)
			if strings.Contains(string(body), canary) {
				t.Errorf("%s is repeated: %s", name, body)
			}
			if app.want == 0 {
				if err == nil || response.StatusCode != 200 {
					t.Errorf("%s: passes as %d %q", name, response.StatusCode, body)
				}
				return
			}
			if response.StatusCode != app.want || !strings.Contains(string(body), `"addon `+name+" ") || !strings.Contains(string(body), `"code":"addon-failed"`) {
				t.Errorf("%s: %d %s", name, response.StatusCode, body)
			}
			if response.Header.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(response.Header.Get("Content-Security-Policy"), "'none'") {
				t.Errorf("%s: %v", name, response.Header)
			}
		})
	}
	all.Wait()
	if r := b.do("GET", apitype.PathApps+"/fine/x", nil); r.status != 200 {
		t.Errorf("another app: %s", r)
	}
}

func TestWhatComesBeforeAndAfterAnAnswerIsDropped(t *testing.T) {
	t.Parallel()
	app := rude(t, func(c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\nContent-Security-Policy: x\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n"+
			"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Told\r\n\r\n2\r\nhi\r\n0\r\nX-Told: 1\r\nX-Untold: 1\r\nSet-Cookie: a=b\r\n\r\n")
	})
	b := newProxyBench(t, map[string]string{"example": app})
	_, answer := b.raw("GET " + apiBase + "/x HTTP/1.1\nHost: p\nTE: trailers\nConnection: TE, close\nAuthorization: Bearer " + b.token + "\n\n")
	all, err := io.ReadAll(answer)
	b.must(err)
	for _, unwanted := range []string{" 103 ", " 102 ", "X-Told", "X-Untold", "a=b", "Link", "Trailer"} {
		if strings.Contains(string(all), unwanted) {
			t.Errorf("%s in %s", unwanted, all)
		}
	}
	if !strings.HasPrefix(string(all), "HTTP/1.1 200 OK") || !strings.Contains(string(all), "X-Content-Type-Options: nosniff") || !strings.Contains(string(all), "hi") {
		t.Errorf("%s", all)
	}
}

func TestAnAppThatIsDownIsNamed(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	b := newProxyBench(t, map[string]string{"example": address})
	b.registerApp("loop", "http://localhost")
	b.registerApp("number", "http://127.0.0.1:1")
	b.registerApp("metadata", "http://169.254.169.254")
	b.registerApp("nowhere", "http://nowhere.invalid")
	for _, key := range []string{"example", "loop", "number", "metadata", "nowhere"} {
		r := b.do("GET", apitype.PathApps+"/"+key+"/x", nil)
		p := b.problem(r, 503, "addon-unreachable")
		if !strings.HasPrefix(p.Detail, "addon "+key+" cannot be reached: ") || r.header.Get("Retry-After") == "" {
			t.Errorf("%s %v", p.Detail, r.header)
		}
		if want := "leads to an address that is no Service's"; key != "example" && key != "nowhere" && !strings.Contains(p.Detail, want) {
			t.Errorf("%s: %s", key, p.Detail)
		}
	}
}

func TestAnUploadIsStreamedAndMayTakeItsTime(t *testing.T) {
	t.Parallel()
	app := newBackend(t)
	b := newProxyBench(t, map[string]string{"example": app.address()}, func(o *portal.Options) {
		o.Proxy = portal.ProxyLimits{Idle: time.Second, Header: time.Second, Caller: 20 * time.Second}
	})
	got := make(chan byte)
	app.with(func(w http.ResponseWriter, r *http.Request) {
		one := make([]byte, 1)
		for {
			if _, err := r.Body.Read(one); err != nil {
				return
			}
			got <- one[0]
		}
	})
	reader, writer := io.Pipe()
	done := make(chan reply, 1)
	go func() {
		r, _ := http.NewRequestWithContext(t.Context(), "PUT", b.url+apiBase+"/x", reader)
		r.Header.Set("Authorization", "Bearer "+b.token)
		response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
		if err != nil {
			done <- reply{body: []byte(err.Error())}
			return
		}
		_ = response.Body.Close()
		done <- reply{status: response.StatusCode}
	}()
	for i := range byte(4) { // each arrives before the next is sent, over longer than nothing may move
		_, err := writer.Write([]byte{i})
		b.must(err)
		if one := <-got; one != i {
			t.Fatalf("got %d", one)
		}
		time.Sleep(400 * time.Millisecond) //nolint:forbidigo // time is what is tested
	}
	b.must(writer.Close())
	if r := <-done; r.status != 200 {
		t.Errorf("%s", r)
	}
}

func TestCallsThatHangHoldUpNoOthers(t *testing.T) {
	t.Parallel()
	slow, fine := newBackend(t), newBackend(t)
	b := newProxyBench(t, map[string]string{"slow": slow.address(), "fine": fine.address()}, func(o *portal.Options) {
		o.Proxy = portal.ProxyLimits{PerApp: 5, PerCaller: 3, Files: 2}
	})
	release := make(chan struct{})
	var hanging atomic.Int32
	slow.with(func(http.ResponseWriter, *http.Request) {
		hanging.Add(1)
		<-release
	})
	other := b.issuer.token(map[string]any{"sub": "other"})
	third := b.issuer.token(map[string]any{"sub": "third"})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	open := func(path, token string) {
		all.Go(func() {
			r, _ := http.NewRequestWithContext(ctx, "GET", b.url+path, nil)
			bearer(token)(r)
			if response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r); err == nil {
				_ = response.Body.Close()
			}
		})
	}
	for range 3 {
		open(apitype.PathApps+"/slow/x", b.token)
	}
	for range 2 {
		open(apitype.PathApps+"/slow/x", other)
		open("/portal/app/slow/x", "")
	}
	b.eventually("the calls hang", func() error {
		if n := hanging.Load(); n != 7 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	b.problem(b.do("GET", apitype.PathApps+"/slow/x", nil), 503, "addon-unreachable") // the app has its most
	b.problem(b.do("GET", apitype.PathApps+"/slow/x", nil, bearer(third)), 503, "addon-unreachable")
	b.problem(b.do("GET", "/portal/app/slow/x", nil, bearer("")), 503, "addon-unreachable")
	start := time.Now()
	for range 20 {
		if r := b.do("GET", apitype.PathApps+"/fine/x", nil); r.status != 200 {
			t.Errorf("%s", r)
		}
	}
	t.Logf("20 calls of another app in %s", time.Since(start))
	close(release)
	all.Wait()
	b.eventually("there is room again", func() error {
		if r := b.do("GET", apitype.PathApps+"/slow/x", nil); r.status != 200 {
			return errors.New(r.String())
		}
		return nil
	})
}

func TestTheLogHasNothingOfAProxiedCallButItsRouteAndApp(t *testing.T) {
	t.Parallel()
	app := newBackend(t)
	b := newProxyBench(t, map[string]string{"example": app.address()})
	b.do("POST", apiBase+"/"+canary+"/x?token="+url.QueryEscape(canary), canary, header("X-Secret", canary))
	app.with(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "ftp://"+canary)
		w.WriteHeader(302)
	})
	b.do("GET", apiBase+"/"+canary, nil)
	b.eventually("the log is written", func() error {
		for _, want := range []string{
			`route=/api/portal/apps/{key}/{path...} status=200`, `addon=example`, `status=502`, `code=addon-failed`,
		} {
			if !strings.Contains(b.log.String(), want) {
				return fmt.Errorf("no %s in the log:\n%s", want, b.log)
			}
		}
		return nil
	})
	metrics := string(b.do("GET", "/metrics", nil).body)
	for _, want := range []string{
		`zae_portal_proxied_total{result="answered",route="/api/portal/apps/{key}/{path...}"} 1`,
		`zae_portal_proxied_total{result="failed",route="/api/portal/apps/{key}/{path...}"} 1`,
		`zae_portal_proxying{route="/api/portal/apps/{key}/{path...}"} 0`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s in\n%s", want, metrics)
		}
	}
}

// BenchmarkProxy is a call of 1 KiB through the proxy, with a bearer that is verified each time; the app's own time is in it.
func BenchmarkProxy(b *testing.B) {
	answer := strings.Repeat("x", 1<<10)
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
	defer app.Close()
	issuer := newTestIssuer(b)
	store, err := registry.Open(b.Context(), registry.InMemory)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	if err := store.Register(b.Context(), registry.Registration{
		Source: registry.SourceAddress, Manifest: &capability.Manifest{Service: "example"}, Place: capability.Place{ProxyURL: "http://example", Workload: "example"},
	}); err != nil {
		b.Fatal(err)
	}
	server, err := portal.New(portal.Options{
		Registry: store, Auth: portal.Auth{Issuer: issuer.url}, Resolve: map[string]string{"example": strings.TrimPrefix(app.URL, "http://")},
	})
	if err != nil {
		b.Fatal(err)
	}
	defer server.Close()
	front := httptest.NewUnstartedServer(nil)
	front.Config = server.HTTPServer("")
	front.Start()
	defer front.Close()
	token := issuer.token(nil)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	defer client.CloseIdleConnections()
	for name, to := range map[string]string{"direct": app.URL + "/x", "proxied": front.URL + apiBase + "/x", "console": front.URL + consoleBase + "/x"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r, err := http.NewRequestWithContext(b.Context(), "GET", to, nil)
				if err != nil {
					b.Fatal(err)
				}
				if name == "proxied" {
					r.Header.Set("Authorization", "Bearer "+token)
				}
				response, err := client.Do(r)
				if err != nil {
					b.Fatal(err)
				}
				if n, err := io.Copy(io.Discard, response.Body); err != nil || n != int64(len(answer)) || response.StatusCode != 200 {
					b.Fatal(n, err, response.Status)
				}
				_ = response.Body.Close()
			}
		})
	}
}
