package trace_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	oteltrace "go.opentelemetry.io/otel/trace"

	"zaentrum.io/zae/internal/trace"
)

const example = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestAContextIsReadAsItIsWritten(t *testing.T) {
	t.Parallel()
	c, ok := trace.Parse(example)
	if !ok || c.String() != example || c.ID() != "4bf92f3577b34da6a3ce929d0e0e4736" || !c.Sampled {
		t.Errorf("%v %v", c, ok)
	}
	made, err := trace.New(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if again, ok := trace.Parse(made.String()); !ok || again != made || !made.Sampled {
		t.Errorf("%s is read as %s", made, again)
	}
	child, err := made.Child(rand.Reader)
	if err != nil || child.Trace != made.Trace || child.Span == made.Span || !child.Sampled {
		t.Errorf("%s is a child of %s: %v", child, made, err)
	}
	if got := trace.From(trace.With(context.Background(), made)); got != made {
		t.Errorf("carried %s, got %s", made, got)
	}
}

func TestNoContextIsNone(t *testing.T) {
	t.Parallel()
	var none trace.Context
	if none.Valid() || none.String() != "" || none.ID() != "" || trace.From(t.Context()).Valid() {
		t.Error("the zero value is something")
	}
	if c, err := trace.New(bytes.NewReader(make([]byte, 24))); err == nil {
		t.Errorf("made %v of zeros", c)
	}
	if c, err := trace.New(strings.NewReader("short")); err == nil || c.Valid() {
		t.Errorf("made %v of five bytes", c)
	}
}

// odd are values that are no context of version 00, or nearly not.
var odd = []string{
	"", "00", example + "-", example + "x", strings.ToUpper(example), strings.Replace(example, "-", "_", 1),
	"00-00000000000000000000000000000000-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
	"ff" + example[2:], "01" + example[2:], "01" + example[2:] + "-more", "01" + example[2:] + "more", "0x" + example[2:],
	example[:53] + "00", example[:53] + "ff", example[:53] + "0g", " " + example, "00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01",
}

// FuzzParse holds Parse against OpenTelemetry's reader of the same header, which takes a dash after a context of version
// 00, and refuses one with flags that have no meaning yet.
func FuzzParse(f *testing.F) {
	f.Add(example)
	for _, text := range odd {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, ok := trace.Parse(text)
		if !ok {
			if theirs := otel(text); theirs.IsValid() && (text[:2] != "00" || len(text) == len(example)) {
				t.Errorf("%q is not read, by OpenTelemetry %v", text, theirs)
			}
			return
		}
		if len(text) < len(example) || text[3:35] != c.ID() {
			t.Fatalf("%q has the id %s", text, c.ID())
		}
		theirs := otel(c.String())
		if c.ID() != theirs.TraceID().String() || hex.EncodeToString(c.Span[:]) != theirs.SpanID().String() || c.Sampled != theirs.IsSampled() {
			t.Errorf("%q is %s, by OpenTelemetry %v", text, c, theirs)
		}
	})
}

func otel(text string) oteltrace.SpanContext {
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": text})
	return oteltrace.SpanContextFromContext(ctx)
}
