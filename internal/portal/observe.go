package portal

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/telemetry"
	"zaentrum.io/zae/internal/trace"
)

// observer sees what a handler answers.
type observer struct {
	http.ResponseWriter
	status int
	bytes  int64
	code   string // of the problem, if it is one
	addon  string // or app, that a call is for
}

func (o *observer) WriteHeader(status int) {
	if o.status == 0 && status >= 200 {
		o.status = status
	}
	o.ResponseWriter.WriteHeader(status)
}

func (o *observer) Write(p []byte) (int, error) {
	if o.status == 0 {
		o.status = http.StatusOK
	}
	n, err := o.ResponseWriter.Write(p)
	o.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the writer below.
func (o *observer) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// observed sets the headers of every answer, turns a panic into a problem, and counts, traces and logs the request: its
// route, never its query, headers or body. The request becomes part of the trace that it names, or begins one.
func (s *Server) observed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := s.now()
		o := &observer{ResponseWriter: w}
		r, end := s.traced(w, r)
		for name, value := range map[string]string{
			"Cache-Control":                "no-store",
			"Content-Security-Policy":      "default-src 'none'; frame-ancestors 'none'",
			"Cross-Origin-Opener-Policy":   "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin",
			"Permissions-Policy":           "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), serial=(), usb=()",
			"Referrer-Policy":              "no-referrer",
			"X-Content-Type-Options":       "nosniff",
			"X-Frame-Options":              "DENY",
		} {
			w.Header().Set(name, value)
		}
		if strings.HasPrefix(s.o.PublicOrigin, "https:") {
			w.Header().Set("Strict-Transport-Security", "max-age=31536000")
		}
		defer func() {
			if p := recover(); p != nil {
				if p == http.ErrAbortHandler { //nolint:errorlint // the one value that net/http documents
					o.code = "aborted"
					s.note(o, r, s.now().Sub(start))
					end(routeOf(r), o.status)
					panic(p)
				}
				// The value that was panicked with may hold anything: its type and the place must do.
				failed := fault.Recovered(p, "panic")
				if where, ok := errors.AsType[*fault.Panic](failed); ok {
					s.log.Error("panic", telemetry.KeyTrace, trace.From(r.Context()).ID(), "route", r.Pattern, "type", where.Type, "stack", where.Stack)
				}
				if o.status == 0 {
					s.problem(o, r, failed)
				}
			}
			s.note(o, r, s.now().Sub(start))
			end(routeOf(r), o.status)
		}()
		next.ServeHTTP(o, r)
	})
}

// traced is the request in its trace, which the answer names too.
func (s *Server) traced(w http.ResponseWriter, r *http.Request) (*http.Request, func(string, int)) {
	var parent trace.Context
	if given := r.Header.Values(trace.HeaderParent); len(given) == 1 {
		parent, _ = trace.Parse(given[0])
	}
	tracing := s.o.Tracing
	if quiet(r) {
		tracing = nil
	}
	here, end := tracing.Request(r.Context(), parent)
	if here.Valid() {
		w.Header().Set(trace.HeaderResponse, here.String())
	}
	return r.WithContext(trace.With(r.Context(), here)), end
}

// quiet tells whether a request is one of those that machines make all the time.
func quiet(r *http.Request) bool {
	switch r.URL.Path {
	case "/healthz", "/readyz", "/metrics":
		return true
	}
	return false
}

func routeOf(r *http.Request) string {
	if r.Pattern == "" || r.Pattern == "/" {
		return "none"
	}
	return r.Pattern
}

func (s *Server) note(o *observer, r *http.Request, took time.Duration) {
	route := routeOf(r)
	if o.Header().Get("Content-Type") == apitype.EventStreamType {
		s.metrics.Streamed(route, o.status)
	} else {
		s.metrics.Request(route, o.status, took)
	}
	level := slog.LevelInfo
	if quiet(r) {
		level = slog.LevelDebug
	}
	attrs := []slog.Attr{
		slog.String("route", route), slog.Int("status", o.status), slog.Int64("bytes", o.bytes),
		slog.Int64("ms", took.Milliseconds()), slog.String(telemetry.KeyTrace, trace.From(r.Context()).ID()),
	}
	if name := cmp.Or(o.addon, r.PathValue("name")); possibleName(name) {
		attrs = append(attrs, slog.String(telemetry.KeyAddon, name))
	}
	if o.code != "" {
		attrs = append(attrs, slog.String("code", o.code))
	}
	s.log.LogAttrs(r.Context(), level, "request", attrs...)
}
