package portal_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/registry"
	"zaentrum.io/zae/internal/registry/capability"
)

func TestABodyIsBoundedAndDeclaredAsJSON(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	contentType := func(value string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Del("Content-Type")
			if value != "" {
				r.Header.Set("Content-Type", value)
			}
		}
	}
	good := `{"chart":"` + exampleRef + `:1.2.0"}`
	for _, media := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1", "application/merge-patch+json", ";"} {
		b.refused(http.MethodPost, apitype.PathAddonCharts, good, http.StatusUnsupportedMediaType, "not-json", contentType(media))
	}
	large := `{"chart":"` + exampleRef + `:1.2.0","secretValues":{"a":"` + canary + strings.Repeat("x", 1<<20) + `"}}`
	b.refused(http.MethodPost, apitype.PathAddonCharts, large, http.StatusRequestEntityTooLarge, "too-large")
	chunked := func(r *http.Request) { r.ContentLength = -1 }
	b.refused(http.MethodPost, apitype.PathAddonCharts, large, http.StatusRequestEntityTooLarge, "too-large", chunked)
	b.refused(http.MethodPost, chartPath("example")+"/install", `{"force":true}`, http.StatusBadRequest, "malformed")
	var out apitype.WriteAnswer
	r := b.do(http.MethodPost, apitype.PathAddonCharts, good, contentType("Application/JSON; charset=UTF-8"))
	if err := json.Unmarshal(r.body, &out); err != nil || r.status != http.StatusAccepted {
		t.Errorf("got %s", r)
	}
}

func TestEveryAnswerCarriesTheSecurityHeaders(t *testing.T) {
	t.Parallel()
	b := newLoneBench(t)
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/nowhere", apitype.PathAddons, apitype.PathDiscovery, apitype.PathAddonCharts} {
		h := b.do(http.MethodGet, path, nil).header
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Strict-Transport-Security": "max-age=31536000",
			"Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), serial=(), usb=()",
		} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
		if !strings.Contains(h.Get("Content-Security-Policy"), "frame-ancestors 'none'") || h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %v", path, h)
		}
	}
}

func TestAnUnknownAddressOrMethodIsAProblemToo(t *testing.T) {
	t.Parallel()
	b := newLoneBench(t)
	for _, path := range []string{"/", "/nowhere", "/api/portal/addon-charts/", "/api/portal/addon-charts/a/b/c", "/api/portal/addon-charts/a/install/"} {
		b.problem(b.do(http.MethodGet, path, nil), http.StatusNotFound, "not-found")
	}
	for path, allow := range map[string]string{
		apitype.PathAddonCharts: "GET, HEAD, POST", chartPath("example"): "DELETE, GET, HEAD, PATCH", chartPath("example") + "/install": "POST", "/healthz": "GET, HEAD",
	} {
		r := b.do(http.MethodPut, path, `{}`)
		b.problem(r, http.StatusMethodNotAllowed, "malformed")
		if got := r.header.Get("Allow"); got != allow {
			t.Errorf("%s: Allow %q", path, got)
		}
	}
}

func TestOutsideAClusterChartsAreNotAvailableAndTheRestWorks(t *testing.T) {
	t.Parallel()
	b := newLoneBench(t)
	var out apitype.Availability
	b.answer(http.MethodGet, apitype.PathAddonCharts, nil, http.StatusOK, &out)
	if out.Available || !strings.Contains(out.Note, "does not run in a cluster") {
		t.Errorf("%+v", out)
	}
	for _, p := range adminPaths() {
		if strings.HasPrefix(p[1], apitype.PathAddons) || p[0] == http.MethodGet && p[1] == apitype.PathAddonCharts {
			continue
		}
		got := b.problem(b.do(p[0], p[1], `{"secretValues":{"a":"`+canary+`"}}`), http.StatusServiceUnavailable, "unavailable")
		if got.Note != out.Note {
			t.Errorf("%v: note %q", p, got.Note)
		}
	}
	b.must(b.registry.Register(t.Context(), registry.Registration{
		Source: registry.SourceAddress, Manifest: &capability.Manifest{Service: "byaddress", UI: capability.UI{App: capability.AppInfo{Title: "By address"}}},
		Place: capability.Place{ProxyURL: "http://byaddress", Workload: "byaddress"},
	}))
	var addons apitype.Addons
	b.answer(http.MethodGet, apitype.PathAddons, nil, http.StatusOK, &addons)
	want := []apitype.Addon{{Name: "byaddress", Title: "By address", Address: "http://byaddress", Registered: true, Components: []v1alpha1.Component{}}}
	if diff := cmp.Diff(want, addons.Addons); diff != "" {
		t.Error(diff)
	}
	stop := b.run()
	stop()
}

func TestDiscoveryNeedsNoBearerAndTellsTheManifests(t *testing.T) {
	t.Parallel()
	b := newLoneBench(t)
	raw := b.do(http.MethodGet, apitype.PathDiscovery, nil, bearer("")).body
	if !strings.Contains(string(raw), `"services":[]`) {
		t.Errorf("got %s", raw)
	}
	for _, name := range []string{"zeta", "alpha"} {
		b.must(b.registry.Register(t.Context(), registry.Registration{
			Source:   registry.SourceChart,
			Manifest: &capability.Manifest{Service: name, Commands: []capability.Command{{Name: "scan", Path: "/scan"}}},
			Place:    capability.Place{ProxyURL: "http://" + name, Workload: name},
		}))
	}
	var out apitype.Discovery
	b.answer(http.MethodGet, apitype.PathDiscovery, nil, http.StatusOK, &out)
	service := func(name string) map[string]any {
		return map[string]any{"service": name, "commands": []any{map[string]any{"name": "scan", "path": "/scan"}}}
	}
	want := apitype.Discovery{
		CapabilityVersion: 1, Auth: &apitype.DiscoveryAuth{Issuer: b.issuer.url, ClientID: "zae"},
		Services: []map[string]any{service("alpha"), service("zeta")},
	}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Error(diff)
	}
}

func TestProbesAndMetricsNeedNoBearer(t *testing.T) {
	t.Parallel()
	b := newLoneBench(t)
	for _, path := range []string{"/healthz", "/readyz"} {
		if r := b.do(http.MethodGet, path, nil, bearer("")); r.status != http.StatusOK || string(r.body) != "ok\n" {
			t.Errorf("%s: %s", path, r)
		}
	}
	b.do(http.MethodGet, chartPath("example"), nil)
	metrics := string(b.do(http.MethodGet, "/metrics", nil, bearer("")).body)
	if want := `zae_portal_requests_total{route="GET /api/portal/addon-charts/{name}",status="503"} 1`; !strings.Contains(metrics, want) {
		t.Errorf("no %s in\n%s", want, metrics)
	}
	b.must(b.registry.Close())
	if r := b.do(http.MethodGet, "/readyz", nil, bearer("")); r.status != http.StatusServiceUnavailable {
		t.Errorf("without a registry: %s", r)
	}
	if r := b.do(http.MethodGet, "/healthz", nil, bearer("")); r.status != http.StatusOK {
		t.Errorf("without a registry: %s", r)
	}
	// What went wrong inside is in the log, and not in the answer.
	p := b.problem(b.do(http.MethodGet, apitype.PathAddons, nil), http.StatusInternalServerError, "internal")
	if strings.Contains(p.Detail, "sql") || !strings.Contains(b.log.String(), "database is closed") {
		t.Errorf("detail %q, log\n%s", p.Detail, b.log)
	}
}

func TestTheLogHasRoutesAndNothingOfARequestsContent(t *testing.T) {
	t.Parallel()
	b := newLoneBench(t)
	b.do(http.MethodPost, apitype.PathAddonCharts+"?password="+canary, `{"secretValues":{"a":"`+canary+`"}}`, func(r *http.Request) {
		r.Header.Set("X-Secret", canary)
	})
	b.do(http.MethodGet, "/nowhere/"+canary, nil)
	b.do(http.MethodGet, chartPath("example"), nil)
	b.eventually("the log is written", func() error {
		for _, want := range []string{
			`level=INFO msg=request route="POST /api/portal/addon-charts" status=503`, `route=none status=404`,
			`route="GET /api/portal/addon-charts/{name}" status=503`, `addon=example code=unavailable`,
		} {
			if !strings.Contains(b.log.String(), want) {
				return fmt.Errorf("no %s in the log:\n%s", want, b.log)
			}
		}
		return nil
	})
}

func TestAHeadThatNeverEndsIsCutOff(t *testing.T) {
	t.Parallel()
	b := newLoneBench(t)
	s := b.portal.HTTPServer("127.0.0.1:0")
	if s.ReadHeaderTimeout <= 0 || s.ReadTimeout <= 0 || s.WriteTimeout <= 0 || s.IdleTimeout <= 0 || s.MaxHeaderBytes > 64<<10 || s.Addr != "127.0.0.1:0" {
		t.Errorf("%+v", s)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.url, "http://"))
	b.must(err)
	defer func() { _ = conn.Close() }()
	b.must(conn.SetDeadline(time.Now().Add(10 * time.Second)))
	_, err = conn.Write([]byte("GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 80<<10) + "\r\n\r\n"))
	b.must(err)
	buf := make([]byte, 64)
	n, _ := conn.Read(buf)
	if !strings.Contains(string(buf[:n]), "431") {
		t.Errorf("got %q", buf[:n])
	}
}
