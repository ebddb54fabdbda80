package portal_test

import (
	"net/http"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/trace"
)

const traceID = "4bf92f3577b34da6a3ce929d0e0e4736"

func partOf(values ...string) func(*http.Request) {
	return func(r *http.Request) { r.Header[trace.HeaderParent] = values }
}

// traceOf is the trace that an answer names.
func (b *bench) traceOf(r reply) trace.Context {
	b.t.Helper()
	c, ok := trace.Parse(r.header.Get(trace.HeaderResponse))
	if !ok {
		b.t.Errorf("the answer names no trace: %v", r.header)
	}
	return c
}

func TestARequestIsPartOfTheTraceItNames(t *testing.T) {
	b := newLoneBench(t)
	r := b.do(http.MethodGet, apitype.PathDiscovery, nil, partOf("00-"+traceID+"-00f067aa0ba902b7-01"))
	here := b.traceOf(r)
	if here.ID() != traceID || strings.Contains(here.String(), "00f067aa0ba902b7") {
		t.Errorf("got %s", here)
	}
	if !strings.Contains(b.log.String(), "trace="+traceID) {
		t.Errorf("the log does not have it:\n%s", b.log)
	}
	p := b.problem(b.do(http.MethodGet, "/nowhere", nil, partOf("00-"+traceID+"-00f067aa0ba902b7-00")), http.StatusNotFound, "not-found")
	if p.Trace != traceID {
		t.Errorf("the problem names %q", p.Trace)
	}
}

func TestARequestOutsideOfATraceBeginsOne(t *testing.T) {
	b := newLoneBench(t)
	seen := map[string]bool{}
	good := "00-" + traceID + "-00f067aa0ba902b7-01"
	for name, edit := range map[string]func(*http.Request){
		"none":        func(*http.Request) {},
		"malformed":   partOf("00-" + traceID + "-\" onload=x-01"),
		"zero":        partOf("00-00000000000000000000000000000000-00f067aa0ba902b7-01"),
		"two of them": partOf(good, good),
	} {
		here := b.traceOf(b.do(http.MethodGet, apitype.PathDiscovery, nil, edit))
		if here.ID() == traceID || seen[here.ID()] || !here.Sampled {
			t.Errorf("%s: %s", name, here)
		}
		seen[here.ID()] = true
	}
}

func TestAWriteIsTracedOnTheResource(t *testing.T) {
	b := newBench(t)
	trace1, trace2 := traceID, strings.Repeat("ab", 16)
	in := func(id string) func(*http.Request) { return partOf("00-" + id + "-00f067aa0ba902b7-01") }
	create := apitype.CreateRequest{Chart: "oci://ghcr.io/example/charts/example", Version: "1.2.0"}
	check := func(when, want string) {
		t.Helper()
		a := b.addon("example")
		c, _ := trace.Parse(a.Traceparent())
		if c.ID() != want {
			t.Errorf("%s: generation %d is of trace %q, not of %q: %v", when, a.Generation, c.ID(), want, a.Annotations)
		}
	}
	r := b.do(http.MethodPost, apitype.PathAddonCharts, create, in(trace1))
	if r.status != http.StatusAccepted || b.traceOf(r).String() != b.addon("example").Traceparent() {
		t.Errorf("%s, in %s; the resource has %s", r, b.traceOf(r), b.addon("example").Traceparent())
	}
	check("created", trace1)
	b.do(http.MethodPost, apitype.PathAddonCharts, create, in(trace2))
	check("the same again, which writes nothing", trace1)
	version := "1.3.0"
	b.do(http.MethodPatch, apitype.PathAddonCharts+"/example", apitype.PatchRequest{Version: &version}, in(trace2))
	check("patched", trace2)
	// Somebody else's change is of no trace of ours.
	a := b.addon("example")
	before := a.DeepCopy()
	a.Spec.Chart.Version = "1.4.0"
	b.must(b.cluster.Patch(t.Context(), a, client.MergeFrom(before)))
	check("changed by kubectl", "")
	// A pipeline may trace what it writes.
	a.Annotations = map[string]string{v1alpha1.AnnotationTraceparent: "00-" + trace1 + "-00f067aa0ba902b7-01"}
	b.must(b.cluster.Update(t.Context(), a))
	check("traced by somebody else", trace1)
	// The deletion that waits for the finalizer is a generation too.
	b.do(http.MethodDelete, apitype.PathAddonCharts+"/example?keepValues=true", nil, in(trace2))
	check("deleted", trace2)
	a = b.addon("example")
	if a.DeletionTimestamp == nil {
		t.Error("it is not being deleted")
	}
	a.Finalizers = nil
	b.must(b.cluster.Update(t.Context(), a))
}
