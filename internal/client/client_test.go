package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "t0ken-c4n4ry"

// at is a client of a server that answers with a handler.
func at(t *testing.T, h http.HandlerFunc, change ...func(*Options)) *Client {
	t.Helper()
	srv := httptest.NewServer(h)
	i, err := ParseInstance(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Instance: i, Bearer: func(context.Context) (string, error) { return token, nil }, Timeout: 5 * time.Second}
	for _, c := range change {
		c(&o)
	}
	c := New(o)
	t.Cleanup(func() {
		c.Close()
		srv.CloseClientConnections()
		srv.Close()
	})
	return c
}

func send(status int, kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func wantFault(t *testing.T, err error, code fault.Code, texts ...string) {
	t.Helper()
	if fault.CodeOf(err) != code {
		t.Fatalf("got %q (%v), want %q", fault.CodeOf(err), err, code)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q does not say %q", err, text)
		}
	}
	if f := fault.From(err); strings.Contains(f.Message+f.Hint, token) {
		t.Errorf("the error holds the token: %v", err)
	}
}

func TestWhatIsNoPortalIsUnreachable(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		h    http.HandlerFunc
		says string
	}{
		"HTML":                 {send(200, "text/html; charset=utf-8", "<html>"), "text/html instead of JSON"},
		"an HTML error":        {send(502, "text/html", "<html>"), "status 502 and text/html"},
		"an HTML 401":          {send(401, "text/html", "<html>"), "status 401"},
		"a plain 404":          {send(404, "text/plain", "404 page not found"), "status 404"},
		"no content type":      {func(w http.ResponseWriter, _ *http.Request) { w.Header()["Content-Type"] = nil }, "an unknown kind of document"},
		"JSON that is none":    {send(200, "application/json", "{"), "text that is not JSON"},
		"two documents":        {send(200, "application/json", "{}{}"), "text that is not JSON"},
		"JSON of another kind": {send(200, "application/json", `{"generation":"x"}`), "JSON of another shape"},
		"a list":               {send(200, "application/json", `[]`), "JSON of another shape"},
		"an empty answer":      {send(200, "application/json", ""), "text that is not JSON"},
		"no content":           {send(204, "application/json", ""), "not JSON"},
		"a broken problem":     {send(500, apitype.ProblemType, "{"), "not JSON"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://sso.example.org/login?state="+token, http.StatusFound)
		}, "a redirect to https://sso.example.org,"},
		"a redirect to nowhere": {send(302, "application/json", "{}"), "a redirect to elsewhere"},
		"too much": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			flood(w)
		}, "more than 8192 KiB"},
		"too much of a problem": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", apitype.ProblemType)
			w.WriteHeader(400)
			flood(w)
		}, "more than 256 KiB"},
		"a broken answer": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "{")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, "broke off"},
		"a closed connection": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "cannot be reached"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := at(t, tc.h).Get(t.Context(), "example")
			wantFault(t, err, fault.Unreachable, tc.says)
		})
	}
}

// flood writes up to 100 MiB, as long as anybody reads.
func flood(w io.Writer) {
	chunk := []byte(strings.Repeat(" ", 1<<20))
	for range 100 {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

func TestNoAnswerIsWaitedForLongerThanTheTimeout(t *testing.T) {
	t.Parallel()
	short := func(o *Options) { o.Timeout = 50 * time.Millisecond }
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	_, err := at(t, hang, short).Get(t.Context(), "example")
	wantFault(t, err, fault.Unreachable, "did not answer within 50ms")

	stuck := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	_, err = at(t, stuck, short).Get(t.Context(), "example")
	wantFault(t, err, fault.Unreachable, "did not finish its answer")
}

func TestNobodyThereIsUnreachable(t *testing.T) {
	t.Parallel()
	i, err := ParseInstance("http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	_, err = New(Options{Instance: i}).List(t.Context())
	wantFault(t, err, fault.Unreachable, "http://127.0.0.1:1 cannot be reached", "refused")
}

func TestAnInterruptionIsItsCause(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	c := at(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel(fault.New(fault.Interrupted, "interrupted"))
		<-r.Context().Done()
	})
	_, err := c.Get(ctx, "example")
	wantFault(t, err, fault.Interrupted)
}

func TestEveryCodeOfAServerComesBack(t *testing.T) {
	t.Parallel()
	for _, code := range fault.Codes() {
		m := code.Means()
		body, _ := json.Marshal(apitype.Problem{Status: m.HTTP, Code: string(code), Detail: "why", Hint: "do this"})
		_, err := at(t, send(m.HTTP, apitype.ProblemType, string(body))).Get(t.Context(), "example")
		f := fault.From(err)
		if f.Message != "why" || f.Hint != "do this" {
			t.Errorf("%s: got %q, hint %q", code, f.Message, f.Hint)
		}
		if local[code] {
			if got := f.Code.Means().Exit; got == 2 || got >= 130 {
				t.Errorf("a server decided on exit %d with %s", got, code)
			}
			continue
		}
		if f.Code != code {
			t.Errorf("%s came back as %s", code, f.Code)
		}
	}
}

func TestAnUnknownCodeIsTakenByItsStatus(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]fault.Code{
		400: fault.Invalid, 401: fault.NoBearer, 403: fault.Forbidden, 404: fault.NotFound, 409: fault.Conflict, 413: fault.TooLarge,
		415: fault.NotJSON, 418: fault.Invalid, 422: fault.Refused, 429: fault.RateLimited, 500: fault.Internal, 501: fault.Internal,
		502: fault.Cluster, 503: fault.Unavailable,
	} {
		for _, body := range []string{`{"code":"unheard-of"}`, `{}`} {
			_, err := at(t, send(status, apitype.ProblemType, body)).Get(t.Context(), "example")
			if got := fault.CodeOf(err); got != want {
				t.Errorf("%d %s: got %s, want %s", status, body, got, want)
			}
			if err.Error() == "" {
				t.Errorf("%d: no text", status)
			}
		}
	}
}

func TestTheNoteOfAnUnavailableInstanceIsShown(t *testing.T) {
	t.Parallel()
	_, err := at(t, send(503, apitype.ProblemType, `{"code":"unavailable","title":"chart addons not available","note":"outside a cluster"}`)).List(t.Context())
	wantFault(t, err, fault.Unavailable, "outside a cluster")
}

func TestAnEchoedTokenIsNotShown(t *testing.T) {
	t.Parallel()
	c := at(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", apitype.ProblemType)
		w.WriteHeader(400)
		_ = json.NewEncoder(w).Encode(apitype.Problem{Detail: "bad " + r.Header.Get("Authorization"), Hint: token})
	})
	_, err := c.Get(t.Context(), "example")
	wantFault(t, err, fault.Invalid, "bad Bearer [bearer]")
}

func TestALongTextOfAServerIsCut(t *testing.T) {
	t.Parallel()
	body, _ := json.Marshal(apitype.Problem{Detail: strings.Repeat("ä", 100_000)})
	_, err := at(t, send(400, apitype.ProblemType, string(body))).Get(t.Context(), "example")
	if n := len(err.Error()); n > maxText+10 {
		t.Errorf("%d bytes", n)
	}
}

func TestABearerThatCannotBeOneIsNotSent(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "a b", "a\nb", "Bearer x", "ä", "\x00"} {
		var calls atomic.Int32
		c := at(t, func(http.ResponseWriter, *http.Request) { calls.Add(1) }, func(o *Options) {
			o.Bearer = func(context.Context) (string, error) { return bad, nil }
		})
		_, err := c.List(t.Context())
		wantFault(t, err, fault.NoBearer)
		if calls.Load() != 0 {
			t.Errorf("%q was sent", bad)
		}
	}
}

func TestTheErrorOfTheBearerIsReturned(t *testing.T) {
	t.Parallel()
	gone := fault.New(fault.NoBearer, "not signed in")
	c := at(t, send(200, "application/json", "{}"), func(o *Options) {
		o.Bearer = func(context.Context) (string, error) { return "", gone }
	})
	if _, err := c.List(t.Context()); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}

func TestDiscoverySendsNoBearer(t *testing.T) {
	t.Parallel()
	c := at(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("a bearer was sent")
		}
		send(200, "application/json", `{"capabilityVersion":1,"auth":{"issuer":"https://i","clientId":"zae"},"services":[]}`)(w, r)
	})
	got, err := c.Discovery(t.Context())
	if err != nil || got.Doc.Auth.Issuer != "https://i" || got.Doc.Auth.ClientID != "zae" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAWriteThatIsRefusedIsSentOnce(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]http.HandlerFunc{
		"503": send(503, apitype.ProblemType, `{"code":"unavailable"}`),
		"429": send(429, apitype.ProblemType, `{"code":"rate-limited"}`),
	} {
		var calls atomic.Int32
		c := at(t, func(w http.ResponseWriter, r *http.Request) {
			if calls.Add(1) > 1 && r.Method == http.MethodGet {
				send(200, "application/json", "{}")(w, r)
				return
			}
			h(w, r)
		})
		if _, err := c.Create(t.Context(), apitype.CreateRequest{}); err == nil {
			t.Errorf("%s: no error", name)
		}
		if calls.Load() != 1 {
			t.Errorf("%s: sent %d times", name, calls.Load())
		}
	}
}

func TestARedirectIsNotFollowedWithTheBearer(t *testing.T) {
	t.Parallel()
	var visited atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visited.Store(true) }))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		c := at(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, status) })
		_, err := c.Patch(t.Context(), "example", apitype.PatchRequest{SecretValues: map[string]string{"a": "s3cret"}})
		wantFault(t, err, fault.Unreachable)
	}
	if visited.Load() {
		t.Error("the redirect was followed")
	}
}

func TestTheCallsAreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen []string
	c := at(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, fmt.Sprintf("%s %s %s %s %s", r.Method, r.URL.RequestURI(), r.Header.Get("Content-Type"), r.Header.Get("Authorization"), body))
		send(200, "application/json", "{}")(w, r)
	})
	ctx := t.Context()
	suspend := false
	empty := map[string]any{}
	for _, call := range []func() error{
		func() error { _, err := c.Availability(ctx); return err },
		func() error {
			_, err := c.Create(ctx, apitype.CreateRequest{Chart: "oci://x/y", Version: "1"})
			return err
		},
		func() error { _, err := c.Get(ctx, "a/b"); return err },
		func() error { _, err := c.Install(ctx, "x", ""); return err },
		func() error {
			_, err := c.Patch(ctx, "x", apitype.PatchRequest{Suspend: &suspend, Values: &empty})
			return err
		},
		func() error { _, err := c.Delete(ctx, "x", true); return err },
		func() error { _, err := c.List(ctx); return err },
	} {
		if err := call(); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"GET /api/portal/addon-charts  Bearer " + token + " ",
		"POST /api/portal/addon-charts application/json Bearer " + token + ` {"chart":"oci://x/y","version":"1"}`,
		"GET /api/portal/addon-charts/a%2Fb  Bearer " + token + " ",
		"POST /api/portal/addon-charts/x/install  Bearer " + token + " ",
		"PATCH /api/portal/addon-charts/x application/json Bearer " + token + ` {"values":{},"suspend":false}`,
		"DELETE /api/portal/addon-charts/x?keepValues=true  Bearer " + token + " ",
		"GET /api/portal/addons  Bearer " + token + " ",
	}
	if strings.Join(seen, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(seen, "\n"), strings.Join(want, "\n"))
	}
}

func TestTheETagOfAPlanComesBackAsTheConditionOfItsInstall(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]string{
		`"abc"`: `"abc"`, `W/"abc"`: `"abc"`, "": "", "abc": "", `"a"b"`: "", `"`: "", `"a b"`: "", `"` + strings.Repeat("x", 300) + `"`: "",
	} {
		var got []string
		c := at(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				got = r.Header.Values("If-Match")
			} else {
				w.Header().Set("ETag", sent)
			}
			send(200, "application/json", "{}")(w, r)
		})
		one, err := c.Get(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Install(t.Context(), "x", one.ETag); err != nil {
			t.Fatal(err)
		}
		if strings.Join(got, "|") != want {
			t.Errorf("ETag %s became If-Match %q", sent, got)
		}
	}
}

func TestIntegersAndUnknownFieldsComeBackAsSent(t *testing.T) {
	t.Parallel()
	const body = `{"name":"x","values":{"n":9007199254740993,"f":1.50},"later":true}`
	got, err := at(t, send(200, "application/json", body)).Get(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	if string(got.Raw) != body {
		t.Errorf("raw is %s", got.Raw)
	}
	back, _ := json.Marshal(got.Doc.Values)
	if string(back) != `{"f":1.50,"n":9007199254740993}` {
		t.Errorf("values came back as %s", back)
	}
}

func TestDebugTellsRequestLineStatusAndTimeOnly(t *testing.T) {
	t.Parallel()
	var lines []string
	c := at(t, send(202, "application/json", `{"name":"s3cret"}`), func(o *Options) {
		o.Debug = func(l string) { lines = append(lines, l) }
	})
	if _, err := c.Patch(t.Context(), "x", apitype.PatchRequest{SecretValues: map[string]string{"a": "s3cret"}}); err != nil {
		t.Fatal(err)
	}
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "PATCH /api/portal/addon-charts/x 202 ") || strings.Contains(lines[0], "s3cret") || strings.Contains(lines[0], token) {
		t.Errorf("got %q", lines)
	}
}

func TestParseInstance(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"https://Media.Example.org":          "https://media.example.org",
		"https://media.example.org:443/":     "https://media.example.org",
		"https://media.example.org:8443/p/":  "https://media.example.org:8443/p",
		" http://127.0.0.1:8080 ":            "http://127.0.0.1:8080",
		"http://localhost:80":                "http://localhost",
		"http://[::1]:8080":                  "http://[::1]:8080",
		"http://zaentrum.localhost":          "http://zaentrum.localhost",
		"HTTPS://media.example.org":          "https://media.example.org",
		"":                                   "",
		"media.example.org":                  "",
		"ftp://media.example.org":            "",
		"http://media.example.org":           "",
		"http://127.0.0.1.example.org":       "",
		"http://localhost.example.org":       "",
		"http://10.0.0.1":                    "",
		"https://":                           "",
		"https://user:c4n4ry@example.org":    "",
		"https://example.org?c4n4ry":         "",
		"https://example.org#c4n4ry":         "",
		"https://exa mple.org":               "",
		"https://example.org:c4n4ry":         "",
		"https://user:c4n4ry@exa mple.org/%": "",
	} {
		got, err := ParseInstance(raw)
		if want == "" {
			if fault.CodeOf(err) != fault.Usage {
				t.Errorf("%q: got %v, %v", raw, got, err)
			}
			if err != nil && strings.Contains(err.Error(), "c4n4ry") {
				t.Errorf("%q: the error repeats it: %v", raw, err)
			}
			continue
		}
		if err != nil || got.String() != want {
			t.Errorf("%q: got %q, %v", raw, got, err)
		}
	}
}

func FuzzParseInstance(f *testing.F) {
	for _, s := range []string{"https://a", "http://localhost:80/x/", "https://[::1]:443", "https://a:b@c", "http://[::ffff:127.0.0.1]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		i, err := ParseInstance(raw)
		if err != nil {
			return
		}
		u, err := url.Parse(i.String())
		if err != nil || !SafeScheme(u) || u.User != nil {
			t.Fatalf("%q became %q", raw, i)
		}
		again, err := ParseInstance(i.String())
		if err != nil || again != i {
			t.Fatalf("%q became %q and then %q, %v", raw, i, again, err)
		}
	})
}

// FuzzAnswer proves that no answer of a server makes the client panic or lets it print the bearer.
func FuzzAnswer(f *testing.F) {
	f.Add(200, "application/json", `{"name":"x"}`)
	f.Add(404, "application/problem+json", `{"code":"not-found","detail":"`+token+`"}`)
	f.Add(302, "text/html", "x")
	f.Fuzz(func(t *testing.T, status int, kind, body string) {
		res := &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(body))}
		c := New(Options{Instance: Instance{base: "https://i"}})
		raw, err := c.read(request{method: "GET", path: "/x"}, res)
		if err == nil {
			if !json.Valid(raw) {
				t.Fatal("took what is not JSON")
			}
			return
		}
		g := fault.From(withoutToken(err, token))
		if strings.Contains(g.Message+g.Hint, token) || g.Code.Means().Exit == 0 || g.Code.Means().Exit >= 130 {
			t.Fatalf("%+v", g)
		}
	})
}
