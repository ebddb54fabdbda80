package telemetry

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	oteltrace "go.opentelemetry.io/otel/trace"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/trace"
)

// Pass is one reconcile of an addon, as a part of the trace that asked for it.
type Pass struct {
	tracing *Tracing
	parent  trace.Context // none: nobody asked
	span    oteltrace.Span

	mu    sync.Mutex
	steps []step
	wrote bool
	// done tells that the reconcile is over, and told that its span is sent.
	done, told bool
}

// step is a part of a pass.
type step struct {
	name       string
	start, end time.Time
	err        error
}

type passKey struct{}

// passOf is the pass that a context belongs to; nil, which takes all that is told to it, for none.
func passOf(ctx context.Context) *Pass {
	p, _ := ctx.Value(passKey{}).(*Pass)
	return p
}

// Begin begins a reconcile, within the trace that the resource's generation came from.
func (t *Operator) Begin(ctx context.Context, a *v1alpha1.ZaentrumAddon) (context.Context, *Pass) {
	p := &Pass{tracing: t.tracing}
	p.parent, _ = trace.Parse(a.Traceparent())
	ctx = context.WithValue(ctx, passKey{}, p)
	if p.tracing != nil {
		ctx, p.span = p.tracing.start(ctx, p.parent, "reconcile", oteltrace.WithAttributes(
			attribute.String("k8s.namespace.name", a.Namespace), attribute.String("zae.addon", a.Name), attribute.Int64("zae.generation", a.Generation),
		))
	}
	return ctx, p
}

// TraceOf is the id of the trace that a context's pass belongs to; empty for none.
func TraceOf(ctx context.Context) string { return passOf(ctx).trace() }

func (p *Pass) trace() string {
	switch {
	case p == nil:
		return ""
	case p.parent.Valid():
		return p.parent.ID()
	case p.span != nil:
		return p.span.SpanContext().TraceID().String()
	}
	return ""
}

func (p *Pass) did() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wrote = true
}

// step notes a part of the pass. One that ends after the pass is sent by itself.
func (p *Pass) step(name string, start, end time.Time, err error) {
	if p == nil || p.span == nil {
		return
	}
	s := step{name, start, end, err}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !p.done:
		p.steps = append(p.steps, s)
	case p.told:
		p.send(oteltrace.ContextWithSpan(context.Background(), p.span), s)
	default:
		p.send(p.tracing.within(context.Background(), p.parent), s)
	}
}

// End ends the pass with the phase that the addon is in, and answers with the error, which then knows its trace. A pass in
// which nothing was done is not sent: an idle addon costs nothing.
func (p *Pass) End(phase v1alpha1.Phase, err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = true
	if p.span != nil && (p.wrote || err != nil) {
		p.told = true
		for _, s := range p.steps {
			p.send(oteltrace.ContextWithSpan(context.Background(), p.span), s)
		}
		p.span.SetAttributes(attribute.String("zae.phase", string(phase)))
		fail(p.span, err)
		p.span.End()
	}
	p.steps = nil
	if id := p.trace(); err != nil && id != "" {
		return &traced{err, id}
	}
	return err
}

func (p *Pass) send(ctx context.Context, s step) {
	_, span := p.tracing.tracer.Start(ctx, s.name, oteltrace.WithTimestamp(s.start))
	fail(span, s.err)
	span.End(oteltrace.WithTimestamp(s.end))
}

// fail marks a span as failed, by the kind of fault: a text may say too much.
func fail(span oteltrace.Span, err error) {
	if err != nil {
		code := string(fault.CodeOf(err))
		span.SetStatus(codes.Error, code)
		span.SetAttributes(attribute.String("error.type", code))
	}
}

// traced is an error that knows in which trace it came about.
type traced struct {
	error
	id string
}

func (t *traced) Unwrap() error { return t.error }
