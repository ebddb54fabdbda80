package chart

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"zaentrum.io/zae/internal/fault"
)

// pauses is a clock that sleeping moves.
type pauses struct {
	mu    sync.Mutex
	at    time.Time
	slept []time.Duration
}

func (p *pauses) now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at
}

func (p *pauses) sleep(ctx context.Context, d time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slept = append(p.slept, d)
	p.at = p.at.Add(d)
	return ctx.Err()
}

// TestWhatIsTriedAgain counts the requests and the pauses for answers of every kind.
func TestWhatIsTriedAgain(t *testing.T) {
	start := time.Date(2026, 10, 2, 12, 0, 0, 0, time.UTC)
	const half, whole = 250 * time.Millisecond, 500 * time.Millisecond
	after := func(status int, header string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			if header != "" {
				w.Header().Set("Retry-After", header)
			}
			w.WriteHeader(status)
		}
	}
	for rule, tc := range map[string]struct {
		answer func(http.ResponseWriter)
		random float64
		slept  []time.Duration // nil: it is asked once
		code   fault.Code
	}{
		"500":                            {after(500, ""), 0, []time.Duration{half, whole}, fault.Registry},
		"502":                            {after(502, ""), 0, []time.Duration{half, whole}, fault.Registry},
		"503, and not in step":           {after(503, ""), 0.5, []time.Duration{375 * time.Millisecond, 750 * time.Millisecond}, fault.Registry},
		"429":                            {after(429, ""), 0, []time.Duration{half, whole}, fault.Registry},
		"429, and when to come back":     {after(429, "2"), 0, []time.Duration{2*time.Second + half, 2*time.Second + whole}, fault.Registry},
		"503, and when to come back":     {after(503, start.Add(3*time.Second).Format(http.TimeFormat)), 0, []time.Duration{3*time.Second + half, whole}, fault.Registry},
		"429, once within the bound":     {after(429, "20"), 0, []time.Duration{20*time.Second + half}, fault.Registry},
		"429, and not within the bound":  {after(429, "30"), 0, nil, fault.Registry},
		"429, and not within an age":     {after(429, "2147483647"), 0, nil, fault.Registry},
		"429, and nothing that is clear": {after(429, "-1"), 0, []time.Duration{half, whole}, fault.Registry},
		"400":                            {after(400, "1"), 0, nil, fault.Registry},
		"401":                            {after(401, "1"), 0, nil, fault.ChartMissing},
		"403":                            {after(403, "1"), 0, nil, fault.ChartMissing},
		"404":                            {after(404, "1"), 0, nil, fault.ChartMissing},
		"408":                            {after(408, "1"), 0, nil, fault.Registry},
		"418":                            {after(418, "1"), 0, nil, fault.Registry},
		"a broken connection":            {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, 0, nil, fault.Registry},
	} {
		t.Run(rule, func(t *testing.T) {
			s := serve(t, true, nil)
			s.intercept(func(w http.ResponseWriter, _ *http.Request) bool { tc.answer(w); return true })
			p := &pauses{at: start}
			f := fetcher(t, FetcherOptions{roots: roots(s), Timeout: 30 * time.Second, Now: p.now, Sleep: p.sleep, Random: func() float64 { return tc.random }}, s)
			_, err := f.Fetch(t.Context(), link(s, "/a.tgz"))
			wantFault(t, err, tc.code)
			if d := cmp.Diff(tc.slept, p.slept); d != "" {
				t.Error("pauses:", d)
			}
			if n := len(s.asked()); n != len(tc.slept)+1 {
				t.Errorf("asked %d times after %d pauses", n, len(tc.slept))
			}
		})
	}
}

// TestAPassingFaultPasses asks a registry that fails at every step once.
func TestAPassingFaultPasses(t *testing.T) {
	reg := newRegistry(t, false)
	one := example(t, "one")
	reg.push("example", "1.2.0", one)
	failed := map[string]bool{}
	reg.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		first := !failed[r.Method+r.URL.Path]
		failed[r.Method+r.URL.Path] = true
		if first {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return first
	})
	if a := mustFetch(t, fetcher(t, FetcherOptions{}, reg.server), reg.source("example", "1.2.0", ""), one); a.Stale != "" {
		t.Error(a.Stale)
	}
	if len(failed) != 3 {
		t.Errorf("steps: %v", failed)
	}
}

func TestATimeOutIsTriedAgain(t *testing.T) {
	p := &pauses{at: time.Unix(0, 0)}
	r := retries{p.now, p.sleep, func() float64 { return 0 }}
	ctx := r.within(t.Context(), time.Minute)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://example.org", nil)
	if err != nil {
		t.Fatal(err)
	}
	// sent is how often a request is sent that fails with an error.
	sent := func(req *http.Request, fails error) int {
		n := 0
		resp, err := r.do(req, func(*http.Request) (*http.Response, error) { n++; return nil, fails })
		if err == nil {
			t.Error("no error")
			_ = resp.Body.Close()
		}
		return n
	}
	late := &net.DNSError{IsTimeout: true}
	// Not what writes, and not when nobody waits any more.
	post := req.Clone(ctx)
	post.Method = http.MethodPost
	ended, cancel := context.WithCancel(ctx)
	cancel()
	for rule, tc := range map[string]struct {
		req   *http.Request
		fails error
		want  int
	}{
		"a time-out":                  {req, late, maxAttempts},
		"a refused address":           {req, refuseTo("x"), 1},
		"no such host":                {req, &net.DNSError{IsNotFound: true}, 1},
		"a time-out of a write":       {post, late, 1},
		"a time-out nobody waits for": {req.Clone(ended), late, 1},
	} {
		if n := sent(tc.req, tc.fails); n != tc.want {
			t.Errorf("%s: sent %d times, want %d", rule, n, tc.want)
		}
	}
}

func TestSleeping(t *testing.T) {
	if err := sleep(t.Context(), time.Millisecond); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := sleep(ctx, time.Hour); err == nil {
		t.Error("it was slept through the end")
	}
}

// TestPausesAreSpread asks with the real source of randomness.
func TestPausesAreSpread(t *testing.T) {
	seen := map[string]bool{}
	for range 20 {
		s := serve(t, true, nil)
		s.fail(http.StatusServiceUnavailable)
		p := &pauses{}
		f := fetcher(t, FetcherOptions{roots: roots(s), Now: p.now, Sleep: p.sleep}, s)
		if _, err := f.Fetch(t.Context(), link(s, "/a.tgz")); err == nil {
			t.Error("fetched")
		}
		for i, d := range p.slept {
			if low := firstPause << i / 2; d < low || d >= 2*low {
				t.Errorf("pause %d: %s", i, d)
			}
			seen[strconv.Itoa(i)+d.String()] = true
		}
	}
	if len(seen) < 30 {
		t.Errorf("%d different pauses of 40", len(seen))
	}
}
