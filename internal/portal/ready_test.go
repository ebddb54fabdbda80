package portal_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/portal"
)

// readiness reads /readyz as JSON.
func (b *bench) readiness(status int) (out apitype.Readiness) {
	b.t.Helper()
	r := b.do("GET", "/readyz", nil, bearer(""), header("Accept", "text/html, application/json;q=0.9"))
	if r.status != status || r.header.Get("Content-Type") != "application/json" {
		b.t.Fatalf("%s", r)
	}
	b.must(json.Unmarshal(r.body, &out))
	return out
}

func TestReadinessTellsDatabaseClusterAndIssuerApart(t *testing.T) {
	t.Parallel()
	b := newLoneBench(t)
	ok := apitype.Check{OK: true}
	outside := apitype.Check{OK: true, Note: "this portal-api does not run in a cluster"}
	if diff := cmp.Diff(apitype.Readiness{Ready: true, Checks: map[string]apitype.Check{"database": ok, "cluster": outside, "issuer": ok}}, b.readiness(200)); diff != "" {
		t.Error(diff)
	}
	if r := b.do("GET", "/readyz?verbose", nil, bearer("")); string(r.body) != "cluster: ok\ndatabase: ok\nissuer: ok\nok\n" {
		t.Errorf("%s", r)
	}
	b.must(b.registry.Close())
	got := b.readiness(503)
	if got.Ready || got.Checks["database"].OK || !got.Checks["issuer"].OK {
		t.Errorf("%+v", got)
	}
	if r := b.do("GET", "/readyz?verbose", nil, bearer("")); r.status != 503 || string(r.body) != "cluster: ok\ndatabase: the registry cannot be read\nissuer: ok\n" {
		t.Errorf("%s", r)
	}
}

func TestAnIssuerThatIsAwayIsToldAndDoesNotMakeAnybodyUnready(t *testing.T) {
	t.Parallel()
	b := newLoneBench(t)
	b.issuer.setDown(true)
	if got := b.readiness(200); !got.Ready || got.Checks["issuer"] != (apitype.Check{Note: "the issuer cannot be reached"}) {
		t.Errorf("%+v", got)
	}
	if r := b.do("GET", "/readyz", nil, bearer("")); r.status != 200 || string(r.body) != "ok\n" {
		t.Errorf("%s", r)
	}
	b.issuer.setDown(false)
	b.eventually("the issuer is found", func() error {
		if got := b.readiness(200); !got.Checks["issuer"].OK {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
	none := newLoneBench(t, func(o *portal.Options) { o.Auth.Issuer = "" })
	if got := none.readiness(200); got.Checks["issuer"].OK || !strings.Contains(got.Checks["issuer"].Note, "nobody can sign in") {
		t.Errorf("%+v", got)
	}
}

func TestAClusterThatIsAwayIsToldAndDoesNotMakeAnybodyUnready(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *portal.Options) { o.Now = func() time.Time { return time.Now().Add(time.Hour) } })
	b.allow(nil)
	b.eventually("the right is missed", func() error {
		got := b.readiness(200)
		if check := got.Checks["cluster"]; !got.Ready || check.OK || !strings.Contains(check.Note, "portal-api's Role does not let it") {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
	b.wire.intercept(func(*http.Request) *http.Response { return failure(500, "InternalError") })
	b.eventually("the cluster's failure is told", func() error {
		got := b.readiness(200)
		if check := got.Checks["cluster"]; !got.Ready || check.OK || check.Note != "the cluster does not answer, or not as it should" {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
	b.wire.intercept(nil)
	b.allow(shippedRole(t))
	b.eventually("the cluster is back", func() error {
		if got := b.readiness(200); !got.Checks["cluster"].OK {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
}

func TestDevelopmentSettingsAreSaid(t *testing.T) {
	t.Parallel()
	b := newLoneBench(t, func(o *portal.Options) {
		o.Resolve = map[string]string{"example": "127.0.0.1:1"}
		o.Auth.Issuer, o.PublicOrigin = "http://issuer.example.org", "http://media.example.org"
	})
	want := []string{
		"issuer: its keys are read over http", "public-origin: bearers are sent over http", "resolve: Services are reached elsewhere: example",
	}
	if diff := cmp.Diff(want, b.portal.Development()); diff != "" {
		t.Error(diff)
	}
	if r := b.do("GET", "/readyz", nil, bearer("")); r.status != 200 || string(r.body) != "development only: "+strings.Join(want, "\ndevelopment only: ")+"\nok\n" {
		t.Errorf("%s", r)
	}
	for issuer, want := range map[string]int{
		"https://issuer.example.org": 0, "http://127.0.0.1:8081": 0, "http://localhost": 0, "http://zaentrum.localhost/auth": 0, "http://[::1]:80": 0, "": 0,
		"http://10.0.0.1": 1, "http://localhost.example.org": 1, "http://[::2]": 1,
	} {
		b := newLoneBench(t, func(o *portal.Options) { o.Auth.Issuer = issuer })
		if got := b.portal.Development(); len(got) != want {
			t.Errorf("%s: %v", issuer, got)
		}
	}
}

func TestMetricsMayBeServedElsewhere(t *testing.T) {
	t.Parallel()
	b := newLoneBench(t, func(o *portal.Options) { o.MetricsElsewhere = true })
	b.problem(b.do("GET", "/metrics", nil), 404, "not-found")
	elsewhere := httptest.NewUnstartedServer(nil)
	elsewhere.Config = b.portal.MetricsServer()
	elsewhere.Start()
	defer elsewhere.Close()
	b2 := *b
	b2.url = elsewhere.URL
	if r := b2.do("GET", "/metrics", nil, bearer("")); r.status != 200 || !strings.Contains(string(r.body), "zae_portal_requests_total") {
		t.Errorf("%s", r)
	}
	if r := b2.do("GET", apitype.PathAddons, nil); r.status != 404 {
		t.Errorf("%s", r)
	}
}
