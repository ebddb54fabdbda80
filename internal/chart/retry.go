package chart

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

const (
	maxAttempts = 3 // of one request
	firstPause  = 500 * time.Millisecond
	maxDrained  = 4 << 10 // bytes read from an answer that is not wanted, so that its connection can be used again
)

// retries decide whether a request is sent again. A request is, when the registry is overloaded or failed
// (429, 5xx) or did not answer in time; never for another status, a broken connection or a refused address.
type retries struct {
	now    func() time.Time
	sleep  func(context.Context, time.Duration) error
	random func() float64 // in [0, 1)
}

type boundKey struct{}

// within notes in the context until when, by the clock of the retries, everything must be done.
func (r retries) within(ctx context.Context, timeout time.Duration) context.Context {
	return context.WithValue(ctx, boundKey{}, r.now().Add(timeout))
}

// do sends a request until it is answered well enough, and waits in between: longer each time, never in step
// with others, as long as the registry asks for, and only when that leaves time to ask again.
func (r retries) do(req *http.Request, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	for attempt := 1; ; attempt++ {
		resp, err := send(req)
		pause, again := r.pause(req, resp, err, attempt)
		if !again {
			return resp, err
		}
		if resp != nil {
			_, _ = io.CopyN(io.Discard, resp.Body, maxDrained) // at worst the connection is not used again
			_ = resp.Body.Close()
		}
		if err := r.sleep(req.Context(), pause); err != nil {
			return nil, err
		}
	}
}

// pause is how long to wait before a request is sent again, if it is.
func (r retries) pause(req *http.Request, resp *http.Response, err error, attempt int) (time.Duration, bool) {
	if attempt >= maxAttempts || req.Context().Err() != nil {
		return 0, false
	}
	if (req.Method != http.MethodGet && req.Method != http.MethodHead) || (req.Body != nil && req.Body != http.NoBody) {
		return 0, false
	}
	step := firstPause << (attempt - 1)
	pause := step/2 + time.Duration(r.random()*float64(step)/2)
	if err != nil {
		var ne net.Error
		if !errors.As(err, &ne) || !ne.Timeout() {
			return 0, false
		}
	} else {
		if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode < 500 {
			return 0, false
		}
		pause += retryAfter(resp.Header.Get("Retry-After"), r.now())
	}
	until, bounded := req.Context().Value(boundKey{}).(time.Time)
	if bounded && !r.now().Add(pause).Before(until) {
		return 0, false
	}
	return pause, true
}

// retryAfter is how long an answer asks to wait (RFC 9110 §10.2.3); 0 when it does not, or not clearly.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// sleep waits, or answers with the context's error when that ends first.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
