package portal_test

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/portal"
	"zaentrum.io/zae/internal/telemetry"
	"zaentrum.io/zae/internal/telemetry/otlptest"
)

func TestWhatGoesOutIsPartOfTheTrace(t *testing.T) {
	t.Parallel()
	collector := otlptest.Serve(t)
	tracing, err := telemetry.NewTracing(t.Context(), telemetry.TracingOptions{
		Endpoint: collector.URL, Service: "zae-api", Version: "1", Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	app := newBackend(t)
	b := newProxyBench(t, map[string]string{"example": app.address(), "new": app.address(), "down": "127.0.0.1:1"}, func(o *portal.Options) { o.Tracing = tracing })
	b.registerManifest(setupManifest)
	inTrace := func(id string) func(*http.Request) { return partOf("00-" + id + "-00f067aa0ba902b7-01") }
	id := func(n string) string { return strings.Repeat(n, 16) }
	parents := map[string]string{}
	call := func(trace, method, path string, body any) {
		t.Helper()
		app.last()
		b.do(method, path, body, inTrace(trace))
		if got := app.last(); got != nil {
			parents[trace] = got.Header.Get("Traceparent")
		}
	}
	call(id("a1"), "GET", apiBase+"/"+canary+"?"+canary, nil)
	call(id("a2"), "GET", apitype.PathApps+"/down/x", nil)
	app.with(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"state":"ready"}`) })
	call(id("a3"), "GET", "/api/portal/addons/example/setup", nil)
	app.with(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"service":"fresh"}`) })
	call(id("a4"), "POST", apitype.PathAddons, `{"proxyUrl":"http://new"}`)
	tracing.Close()
	spans := map[string]otlptest.Span{}
	for _, s := range collector.Spans() {
		spans[s.Trace+" "+s.Name] = s
		for name, value := range s.Attributes {
			if strings.Contains(name+value+s.Name, canary) {
				t.Errorf("%+v", s)
			}
		}
	}
	for _, tc := range []struct {
		trace, route, name string
		failed             bool
	}{
		{id("a1"), "/api/portal/apps/{key}/{path...}", "proxy", false},
		{id("a2"), "/api/portal/apps/{key}/{path...}", "proxy", true},
		{id("a3"), "GET /api/portal/addons/{name}/setup", "setup", false},
		{id("a4"), "POST /api/portal/addons", "manifest", false},
	} {
		request, out := spans[tc.trace+" "+tc.route], spans[tc.trace+" "+tc.name]
		if request.ID == "" || request.Parent != "00f067aa0ba902b7" || out.Parent != request.ID || out.Failed != tc.failed {
			t.Errorf("%s: %+v in %+v", tc.name, out, request)
		}
		if got := parents[tc.trace]; !tc.failed && got != "00-"+tc.trace+"-"+out.ID+"-01" {
			t.Errorf("%s: the addon got traceparent %q, and the span is %s", tc.name, got, out.ID)
		}
	}
	if s := spans[id("a1")+" issuer"]; s.ID == "" || s.Failed {
		t.Errorf("the issuer's documents were read in no span: %+v", s)
	}
}
