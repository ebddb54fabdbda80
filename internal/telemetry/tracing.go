package telemetry

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"

	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/trace"
)

// Tracing sends spans to a collector, over OTLP and HTTP. A nil Tracing sends none, and costs nothing.
type Tracing struct {
	provider *sdktrace.TracerProvider
	tracer   oteltrace.Tracer
}

// TracingOptions say where spans go.
type TracingOptions struct {
	// Endpoint is the URL of a collector, to which /v1/traces is added. When it is empty, the environment says where, and
	// all else (OTEL_EXPORTER_OTLP_…).
	Endpoint string
	// Service and Version name who sends.
	Service, Version string
	Log              *slog.Logger
}

// Asked tells whether spans are to be sent: an endpoint is given, here or in the environment, and the environment does
// not forbid it.
func Asked(endpoint string, env func(string) string) bool {
	if strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") || strings.EqualFold(env("OTEL_TRACES_EXPORTER"), "none") {
		return false
	}
	return endpoint != "" || env("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// NewTracing sets up tracing. It does not reach for the collector: spans that cannot be sent are lost, which is logged once,
// and nothing waits for them. Close it to send what is left.
func NewTracing(ctx context.Context, o TracingOptions) (*Tracing, error) {
	var options []otlptracehttp.Option
	if o.Endpoint != "" {
		u, err := url.Parse(o.Endpoint)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return nil, fault.New(fault.Usage, "the endpoint for traces is not like http://host:4318").
				WithHint("headers, such as a key, are given in OTEL_EXPORTER_OTLP_HEADERS")
		}
		options = append(options, otlptracehttp.WithEndpointURL(u.JoinPath("v1", "traces").String()))
	}
	otel.SetLogger(logr.FromSlogHandler(o.Log.Handler())) // the exporter's own words, about what it reads in the environment
	out := &sender{log: o.Log}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) { out.lost() }))
	exporter, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	out.SpanExporter = exporter
	who, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", o.Service), attribute.String("service.version", o.Version),
	), resource.WithFromEnv(), resource.WithTelemetrySDK())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) { // a part of the environment that cannot be read
		return nil, fmt.Errorf("traces: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(out), sdktrace.WithResource(who))
	return &Tracing{provider: provider, tracer: provider.Tracer("zaentrum.io/zae")}, nil
}

// closeTimeout bounds how long the end of a program waits for spans to be sent.
const closeTimeout = 5 * time.Second

// Close sends what is left.
func (t *Tracing) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = t.provider.Shutdown(ctx) // what could not be sent has been told
}

// within is a context in which spans are parts of a trace; of a new one when there is none.
func (t *Tracing) within(ctx context.Context, parent trace.Context) context.Context {
	if !parent.Valid() {
		return ctx
	}
	flags := oteltrace.TraceFlags(0).WithSampled(parent.Sampled)
	return oteltrace.ContextWithRemoteSpanContext(ctx, oteltrace.NewSpanContext(oteltrace.SpanContextConfig{
		TraceID: parent.Trace, SpanID: parent.Span, TraceFlags: flags, Remote: true,
	}))
}

func (t *Tracing) start(ctx context.Context, parent trace.Context, name string, o ...oteltrace.SpanStartOption) (context.Context, oteltrace.Span) {
	return t.tracer.Start(t.within(ctx, parent), name, o...)
}

// Request begins the span of a request that is part of a trace, and answers with its own place in it, which is a new one
// also where no spans are sent. Without a parent a trace begins.
func (t *Tracing) Request(ctx context.Context, parent trace.Context) (trace.Context, func(route string, status int)) {
	if t == nil {
		return begun(parent, rand.Reader), func(string, int) {}
	}
	_, span := t.start(ctx, parent, "request", oteltrace.WithSpanKind(oteltrace.SpanKindServer))
	sc := span.SpanContext()
	return trace.Context{Trace: sc.TraceID(), Span: sc.SpanID(), Sampled: sc.IsSampled()}, func(route string, status int) {
		span.SetName(route)
		span.SetAttributes(attribute.String("http.route", route), attribute.Int("http.response.status_code", status))
		if status >= 500 {
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}

// Call begins the span of a call that goes out as a part of a request, and answers with its own place in the trace, for
// whoever is called. It ends with the status that came back, 0 for none, and what came of it, which is no error when it is
// ProxyAnswered or empty.
func (t *Tracing) Call(parent trace.Context, name string) (trace.Context, func(status int, result string)) {
	if t == nil || !parent.Valid() {
		return begun(parent, rand.Reader), func(int, string) {}
	}
	_, span := t.start(context.Background(), parent, name, oteltrace.WithSpanKind(oteltrace.SpanKindClient))
	sc := span.SpanContext()
	return trace.Context{Trace: sc.TraceID(), Span: sc.SpanID(), Sampled: sc.IsSampled()}, func(status int, result string) {
		if status != 0 {
			span.SetAttributes(attribute.Int("http.response.status_code", status))
		}
		if result != "" && result != ProxyAnswered {
			span.SetStatus(codes.Error, result)
			span.SetAttributes(attribute.String("error.type", result))
		}
		span.End()
	}
}

// begun is a place in the parent's trace, or in a new one.
func begun(parent trace.Context, random io.Reader) trace.Context {
	var c trace.Context
	var err error
	if parent.Valid() {
		c, err = parent.Child(random)
	} else {
		c, err = trace.New(random)
	}
	if err != nil { // a request is worth more than its name
		return trace.Context{}
	}
	return c
}

// sender is an exporter that says once that spans are lost, and once that they are not any more. What the collector
// answered is not repeated.
type sender struct {
	sdktrace.SpanExporter
	log    *slog.Logger
	silent atomic.Bool
}

// ExportSpans never fails: nobody could do anything about it.
func (s *sender) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := s.SpanExporter.ExportSpans(ctx, spans); err != nil {
		s.lost()
	} else if s.silent.CompareAndSwap(true, false) {
		s.log.Info("traces are sent again")
	}
	return nil
}

func (s *sender) lost() {
	if s.silent.CompareAndSwap(false, true) {
		s.log.Warn("traces cannot be sent to the collector, and are lost")
	}
}
