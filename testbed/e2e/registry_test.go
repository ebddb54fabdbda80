package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"zaentrum.io/zae/testbed/registry"
)

// badRegistry is a registry of a test's own that can be made to misbehave.
type badRegistry struct {
	*registry.Server
	mu    sync.Mutex
	fault func(http.ResponseWriter, *http.Request, http.Handler)
}

func serveBadRegistry(t *testing.T) *badRegistry {
	t.Helper()
	b := &badRegistry{}
	s, err := registry.Serve(context.Background(), registry.Options{Wrap: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b.mu.Lock()
			fault := b.fault
			b.mu.Unlock()
			if fault == nil || r.Method != http.MethodGet && r.Method != http.MethodHead {
				next.ServeHTTP(w, r)
				return
			}
			fault(w, r, next)
		})
	}})
	if err != nil {
		t.Fatal(err)
	}
	b.Server = s
	t.Cleanup(func() {
		if err := s.Kill(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *badRegistry) set(fault func(http.ResponseWriter, *http.Request, http.Handler)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault = fault
}

// blob tells a chart's content from what names it.
func blob(r *http.Request) bool { return strings.Contains(r.URL.Path, "/blobs/") }

// answer is what the registry would have answered.
func answer(r *http.Request, next http.Handler) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	next.ServeHTTP(rec, r)
	return rec
}

// pass hands an answer on, with another body and length.
func pass(w http.ResponseWriter, rec *httptest.ResponseRecorder, body []byte, length int) {
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	w.Header().Set("Content-Length", strconv.Itoa(length))
	w.WriteHeader(rec.Code)
	_, _ = w.Write(body) // the client may hang up, or the length not fit
}

// registryFaults are what a registry may do wrong. Each is of all that is asked of it.
var registryFaults = []struct {
	name string
	do   func(http.ResponseWriter, *http.Request, http.Handler)
}{
	{"hangs", func(_ http.ResponseWriter, r *http.Request, _ http.Handler) { <-r.Context().Done() }},
	{"takes two seconds for each answer", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		select {
		case <-time.After(2 * time.Second):
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}},
	{"fails", func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		http.Error(w, "no", http.StatusInternalServerError)
	}},
	{"has too many requests", func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Retry-After", "3600")
		http.Error(w, "no", http.StatusTooManyRequests)
	}},
	{"promises more than it sends", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		rec := answer(r, next)
		body := rec.Body.Bytes()
		pass(w, rec, body, len(body)+1000)
	}},
	{"sends less than it promises", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		rec := answer(r, next)
		body := rec.Body.Bytes()
		pass(w, rec, body[:len(body)/2], len(body))
	}},
	{"says that everything is huge", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		rec := answer(r, next)
		pass(w, rec, rec.Body.Bytes(), 1<<40)
	}},
	{"sends without end", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		rec := answer(r, next)
		for k, v := range rec.Header() {
			w.Header()[k] = v
		}
		w.Header().Del("Content-Length")
		w.WriteHeader(rec.Code)
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	}},
	{"sends other content than it names", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		rec := answer(r, next)
		body := rec.Body.Bytes()
		if blob(r) && len(body) > 100 {
			body[len(body)/2] ^= 1
		}
		pass(w, rec, body, len(body))
	}},
	{"names another size", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		rec := answer(r, next)
		body := rec.Body.Bytes()
		if strings.Contains(r.URL.Path, "/manifests/") && r.Method == http.MethodGet {
			body = []byte(strings.ReplaceAll(rec.Body.String(), `"size":`, `"size":9`))
		}
		pass(w, rec, body, len(body))
	}},
	{"does not know anything any more", func(w http.ResponseWriter, r *http.Request, _ http.Handler) { http.NotFound(w, r) }},
}

// TestFaultRegistry has a registry misbehave in every way: what runs stays as it is, others are not held up, and what is
// asked for meanwhile comes as soon as the registry is well again.
func TestFaultRegistry(t *testing.T) {
	bad := serveBadRegistry(t)
	h := openHouse(t, opening{args: []string{"--resync", "2s", "--allow-loopback-registry", bad.Addr()}, within: 10 * time.Minute})
	push := func(name, mark string) {
		t.Helper()
		h.publishTo(bad.Addr(), name, "1.0.0", mark)
	}
	apply := func(name, registry string) {
		t.Helper()
		h.apply("apiVersion: zaentrum.io/v1alpha1\nkind: ZaentrumAddon\nmetadata: {name: " + name + "}\nspec: {chart: {ref: \"oci://" + registry + "/charts/" + name + "\", version: 1.0.0}}\n")
	}
	push("steady", "one")
	apply("steady", bad.Addr())
	h.phase("steady", "Ready")
	h.publish("others", "1.0.0", "a")
	apply("others", bed.Registry)
	h.phase("others", "Ready")

	faults := append(registryFaults[:len(registryFaults):len(registryFaults)], struct {
		name string
		do   func(http.ResponseWriter, *http.Request, http.Handler)
	}{"is down", nil})
	for i, fault := range faults {
		start := time.Now()
		late := fmt.Sprintf("late-%d", i)
		push(late, "late")
		if fault.do == nil {
			if err := bad.Kill(); err != nil {
				t.Fatal(err)
			}
		} else {
			bad.set(fault.do)
		}
		before := h.get("cm/steady", ".metadata.resourceVersion")
		apply(late, bad.Addr())
		// Nobody else is held up: a hand's edit of another addon is put right.
		h.kubectl("patch", "cm", "others", "--type=merge", "-p", `{"data":{"mark":"edited"}}`)
		h.eventually("the hand edit is gone while the registry "+fault.name, func() bool { return h.mark("others") == "a" })
		repaired := time.Since(start)
		h.eventually("it is said of "+late+" that the registry "+fault.name, func() bool {
			return h.get("zaddon/"+late, ".status.message") != ""
		})
		said := h.get("zaddon/"+late, ".status.phase} {.status.message")
		for range 3 { // passes over what runs
			passes := h.reconciles()
			h.eventually("a pass", func() bool { return h.reconciles() > passes+2 })
			if got := h.get("zaddon/steady", ".status.phase"); got != "Ready" && fault.name != "does not know anything any more" {
				t.Errorf("%s: what runs is %s: %s", fault.name, got, h.get("zaddon/steady", ".status.message"))
			}
		}
		if after := h.get("cm/steady", ".metadata.resourceVersion"); after != before || h.mark("steady") != "one" {
			t.Errorf("%s: what runs was written to", fault.name)
		}
		bad.set(nil)
		if err := bad.Start(); err != nil {
			t.Fatal(err)
		}
		if i+1 < len(faults) { // the last one is looked at again by itself, in its time
			h.kubectl("annotate", "zaddon", late, "look=again")
		}
		h.phase(late, "Ready")
		h.phase("steady", "Ready")
		t.Logf("a registry that %s: others repaired after %s; %q; all is well after %s", fault.name, repaired.Round(10*time.Millisecond), said, time.Since(start).Round(100*time.Millisecond))
	}

	// A tag that moves while the registry comes and goes is rolled out once, and told once, as nobody reads plans here.
	push("steady", "two")
	for range 3 {
		if err := bad.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := bad.Start(); err != nil {
			t.Fatal(err)
		}
	}
	h.eventually("the new content is applied", func() bool { return h.mark("steady") == "two" })
	h.phase("steady", "Ready")
	h.eventually("an event tells of it", func() bool { return len(h.contentChanged()) > 0 })
	if told := h.contentChanged(); len(told) != 1 {
		t.Errorf("told: %q", told)
	}
	if !h.Operator.Running() {
		t.Error("the operator does not run any more")
	}
	if took := peak(h.Operator.PID()); took > operatorMemory {
		t.Errorf("the operator took %d MiB", took>>20)
	}
}
