package telemetry_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/engine"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/telemetry"
	"zaentrum.io/zae/internal/telemetry/otlptest"
	"zaentrum.io/zae/internal/trace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// buffer is a log that is written by several goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// tracing sends to a collector of the test.
func tracing(t *testing.T, log *buffer) (*telemetry.Tracing, *otlptest.Collector) {
	t.Helper()
	collector := otlptest.Serve(t)
	tr, err := telemetry.NewTracing(t.Context(), telemetry.TracingOptions{
		Endpoint: collector.URL, Service: "test", Version: "1", Log: telemetry.NewLog(log, true),
	})
	if err != nil {
		t.Fatal(err)
	}
	return tr, collector
}

func TestNothingIsSetUpUnlessItIsAskedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		flag string
		env  map[string]string
		want bool
	}{
		"nothing":             {"", nil, false},
		"the flag":            {"http://x:4318", nil, true},
		"the environment":     {"", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x:4318"}, true},
		"for traces only":     {"", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x:4318"}, true},
		"for metrics only":    {"", map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://x:4318"}, false},
		"switched off":        {"http://x:4318", map[string]string{"OTEL_SDK_DISABLED": "true"}, false},
		"no traces":           {"", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x:4318", "OTEL_TRACES_EXPORTER": "none"}, false},
		"nothing but a name":  {"", map[string]string{"OTEL_SERVICE_NAME": "x"}, false},
		"switched on, no end": {"", map[string]string{"OTEL_SDK_DISABLED": "false"}, false},
	} {
		if got := telemetry.Asked(tc.flag, func(name string) string { return tc.env[name] }); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	// Without it, all of it can be called.
	var none *telemetry.Tracing
	here, end := none.Request(t.Context(), trace.Context{})
	end("GET /", 200)
	none.Close()
	if !here.Valid() || !here.Sampled {
		t.Errorf("got %s", here)
	}
}

func TestAnEndpointIsAnAddress(t *testing.T) {
	for _, endpoint := range []string{"collector:4318", "grpc://x:4317", "http://", "http://user:" + canary + "@x:4318", "http://x?key=" + canary, "://"} {
		_, err := telemetry.NewTracing(t.Context(), telemetry.TracingOptions{Endpoint: endpoint, Log: telemetry.NewLog(&buffer{}, false)})
		if fault.CodeOf(err) != fault.Usage || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}

func TestARequestIsASpan(t *testing.T) {
	tr, collector := tracing(t, &buffer{})
	from, _ := trace.Parse(parent)
	here, end := tr.Request(t.Context(), from)
	end("POST /api/portal/addon-charts", http.StatusAccepted)
	root, end := tr.Request(t.Context(), trace.Context{})
	end("GET /api/portal/addons", http.StatusInternalServerError)
	from.Sampled = false
	unsampled, end := tr.Request(t.Context(), from)
	end("GET /api/portal/addons", http.StatusOK)
	tr.Close()
	spans := collector.Spans()
	if len(spans) != 2 {
		t.Fatalf("%+v", spans)
	}
	if s := spans[0]; s.Trace != here.ID() || s.Parent != "00f067aa0ba902b7" || s.Name != "POST /api/portal/addon-charts" || s.Failed ||
		!strings.Contains(here.String(), s.ID) || s.Service != "test" || !strings.Contains(s.Attributes["http.response.status_code"], "202") {
		t.Errorf("%+v, %s", s, here)
	}
	if s := spans[1]; s.Trace != root.ID() || s.Parent != "" || !s.Failed {
		t.Errorf("%+v, %s", s, root)
	}
	if unsampled.ID() != from.ID() || unsampled.Sampled {
		t.Errorf("got %s", unsampled)
	}
}

// addon is one of the trace parent.
func addon() *v1alpha1.ZaentrumAddon {
	return &v1alpha1.ZaentrumAddon{ObjectMeta: metav1.ObjectMeta{
		Name: "example", Namespace: "zaentrum", Generation: 3,
		Annotations: map[string]string{v1alpha1.AnnotationTraceparent: parent, v1alpha1.AnnotationTracedGeneration: "3"},
	}}
}

func TestAPassIsSentWhenItDidSomethingOrFailed(t *testing.T) {
	tr, collector := tracing(t, &buffer{})
	o, err := telemetry.NewOperator(telemetry.OperatorOptions{Tracing: tr})
	if err != nil {
		t.Fatal(err)
	}
	pass := func(name string, did bool, fails error) error {
		ctx, pass := o.Begin(t.Context(), addon())
		if telemetry.TraceOf(ctx) != "4bf92f3577b34da6a3ce929d0e0e4736" {
			t.Errorf("the trace is %q", telemetry.TraceOf(ctx))
		}
		o.Step(ctx, engine.Step(name))(fails)
		if did {
			o.StatusWritten(ctx)
		}
		return pass.End(v1alpha1.PhaseReady, fails)
	}
	secret := fault.New(fault.Registry, "text with %s", canary)
	if err := pass("idle", false, nil); err != nil {
		t.Error(err)
	}
	if err := pass("wrote", true, nil); err != nil {
		t.Error(err)
	}
	if err := pass("failed", false, secret); !errors.Is(err, secret) || err.Error() != secret.Error() {
		t.Errorf("got %v", err)
	}
	tr.Close()
	if n := len(collector.Spans()); n != 4 {
		t.Fatalf("%d spans: %+v", n, collector.Spans())
	}
	for _, name := range []string{"wrote", "failed"} {
		if s := collector.Named(name); len(s) != 1 || s[0].Failed != (name == "failed") || s[0].Failed && s[0].Attributes["error.type"] != "registry" {
			t.Errorf("%s: %+v", name, s)
		}
	}
	for _, s := range collector.Spans() {
		for k, v := range s.Attributes {
			if strings.Contains(v, canary) {
				t.Errorf("a text shows: %s=%s", k, v)
			}
		}
	}
}

func TestAnErrorKnowsItsTrace(t *testing.T) {
	o, err := telemetry.NewOperator(telemetry.OperatorOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, pass := o.Begin(t.Context(), addon())
	failed := pass.End("", errors.New("away"))
	var out buffer
	telemetry.NewLog(&out, false).Error("Reconciler error", "err", failed)
	if got := line(t, out.String()); got["trace"] != "4bf92f3577b34da6a3ce929d0e0e4736" || got["error"] != "away" {
		t.Errorf("got %v", got)
	}
	stranger := addon()
	stranger.Generation++ // somebody else's change
	ctx, pass := o.Begin(t.Context(), stranger)
	if id := telemetry.TraceOf(ctx); id != "" {
		t.Errorf("it is of trace %s", id)
	}
	if err := errors.New("away"); pass.End("", err) != err { //nolint:errorlint // the very error
		t.Error("an error without a trace is another one")
	}
}

// A fetch may end long after the reconcile that started it.
func TestAStepThatEndsLateIsSent(t *testing.T) {
	tr, collector := tracing(t, &buffer{})
	o, err := telemetry.NewOperator(telemetry.OperatorOptions{Tracing: tr})
	if err != nil {
		t.Fatal(err)
	}
	ctx, pass := o.Begin(t.Context(), addon())
	told := o.Fetch(ctx)
	o.StatusWritten(ctx)
	_ = pass.End(v1alpha1.PhaseInstalling, nil)
	told(nil)
	ctx, pass = o.Begin(t.Context(), addon())
	untold := o.Fetch(ctx)
	_ = pass.End(v1alpha1.PhaseInstalling, nil)
	untold(nil)
	tr.Close()
	fetches, reconciles := collector.Named("fetch"), collector.Named("reconcile")
	if len(fetches) != 2 || len(reconciles) != 1 {
		t.Fatalf("%+v", collector.Spans())
	}
	if fetches[0].Parent != reconciles[0].ID && fetches[1].Parent != reconciles[0].ID {
		t.Errorf("none is part of the reconcile: %+v", fetches)
	}
	if fetches[0].Parent != "00f067aa0ba902b7" && fetches[1].Parent != "00f067aa0ba902b7" {
		t.Errorf("none is part of the request: %+v", fetches)
	}
}

func TestSpansThatAreLostAreToldOnce(t *testing.T) {
	var log buffer
	tr, collector := tracing(t, &log)
	collector.Answer(http.StatusBadRequest)
	send := func() {
		t.Helper()
		_, end := tr.Request(t.Context(), trace.Context{})
		end("GET /", http.StatusOK)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := telemetry.Flush(ctx, tr); err != nil {
			t.Fatal(err)
		}
	}
	send()
	send()
	collector.Answer(http.StatusOK)
	send()
	tr.Close()
	if n := strings.Count(log.String(), "traces cannot be sent"); n != 1 {
		t.Errorf("told %d times: %s", n, log.String())
	}
	if n := strings.Count(log.String(), "traces are sent again"); n != 1 || len(collector.Spans()) != 1 || collector.Exports() != 3 {
		t.Errorf("told %d times, %d spans: %s", n, len(collector.Spans()), log.String())
	}
}

func TestARegistryTakesOneOperator(t *testing.T) {
	registry := prometheus.NewRegistry()
	for i := range 2 {
		if _, err := telemetry.NewOperator(telemetry.OperatorOptions{Registerer: registry}); (err == nil) != (i == 0) {
			t.Errorf("number %d: %v", i+1, err)
		}
	}
}
