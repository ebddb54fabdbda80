// Package otlptest is a collector of spans for tests: an HTTP server that takes what an OTLP exporter sends, and keeps it. It
// stands in for an OpenTelemetry Collector, of which it is only the receiving end.
package otlptest

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Collector is a collector that runs.
type Collector struct {
	// URL is its endpoint, to which /v1/traces is added.
	URL string

	t       testing.TB
	mu      sync.Mutex
	spans   []Span
	exports int
	status  int
}

// Span is a span as it was sent.
type Span struct {
	Service, Name        string
	Trace, ID, Parent    string // hexadecimal; Parent is empty for a root
	Failed               bool
	Attributes           map[string]string
	StartNanos, EndNanos uint64
}

// Serve starts a collector, which ends with the test.
func Serve(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{t: t, status: http.StatusOK}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

// Answer has the collector answer with a status from now on; another one than 200 loses what is sent.
func (c *Collector) Answer(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = status
}

// ServeHTTP takes an export.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		c.t.Errorf("not an export of traces: %s %s %s", r.Method, r.URL.Path, r.Header.Get("Content-Type"))
		w.WriteHeader(http.StatusNotFound)
		return
	}
	request, err := read(r)
	if err != nil {
		c.t.Errorf("not an export of traces: %v", err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.exports++
	if c.status == http.StatusOK {
		for _, from := range request.GetResourceSpans() {
			service := texts(from.GetResource().GetAttributes())["service.name"]
			for _, scope := range from.GetScopeSpans() {
				for _, s := range scope.GetSpans() {
					c.spans = append(c.spans, spanOf(service, s))
				}
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	w.WriteHeader(c.status)
}

func read(r *http.Request) (*collector.ExportTraceServiceRequest, error) {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(r.Body)
		if err != nil {
			return nil, err
		}
		body = unpacked
	}
	raw, err := io.ReadAll(io.LimitReader(body, 8<<20))
	if err != nil {
		return nil, err
	}
	request := &collector.ExportTraceServiceRequest{}
	return request, proto.Unmarshal(raw, request)
}

func spanOf(service string, s *otlp.Span) Span {
	return Span{
		Service: service, Name: s.GetName(),
		Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()),
		Failed:     s.GetStatus().GetCode() == otlp.Status_STATUS_CODE_ERROR,
		Attributes: texts(s.GetAttributes()),
		StartNanos: s.GetStartTimeUnixNano(), EndNanos: s.GetEndTimeUnixNano(),
	}
}

func texts(attributes []*common.KeyValue) map[string]string {
	out := map[string]string{}
	for _, a := range attributes {
		if v, ok := a.GetValue().GetValue().(*common.AnyValue_StringValue); ok {
			out[a.GetKey()] = v.StringValue
			continue
		}
		out[a.GetKey()] = a.GetValue().String()
	}
	return out
}

// Spans are those that were sent until now.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span(nil), c.spans...)
}

// Named are those of a name.
func (c *Collector) Named(name string) []Span {
	var out []Span
	for _, s := range c.Spans() {
		if s.Name == name {
			out = append(out, s)
		}
	}
	return out
}

// Exports is how often something was sent.
func (c *Collector) Exports() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.exports
}
