package portal

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"zaentrum.io/zae/internal/fault"
)

// observer sees what a handler answers.
type observer struct {
	http.ResponseWriter
	status int
	bytes  int64
	code   string // of the problem, if it is one
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

// observed sets the headers of every answer, turns a panic into a problem, and counts and logs the request:
// its route, never its query, headers or body.
func (s *Server) observed(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := s.now()
		o := &observer{ResponseWriter: w}
		for name, value := range map[string]string{
			"Cache-Control":                "no-store",
			"Content-Security-Policy":      "default-src 'none'; frame-ancestors 'none'",
			"Cross-Origin-Resource-Policy": "same-origin",
			"Referrer-Policy":              "no-referrer",
			"X-Content-Type-Options":       "nosniff",
			"X-Frame-Options":              "DENY",
		} {
			w.Header().Set(name, value)
		}
		defer func() {
			if p := recover(); p != nil {
				if p == http.ErrAbortHandler { //nolint:errorlint // the one value that net/http documents
					panic(p)
				}
				// The value that was panicked with may hold anything: its type and the place must do.
				s.log.Error("panic", "route", r.Pattern, "type", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
				if o.status == 0 {
					s.problem(o, r, fault.New(fault.Internal, "panic"))
				}
			}
			s.note(o, r, s.now().Sub(start))
		}()
		mux.ServeHTTP(o, r)
	})
}

func (s *Server) note(o *observer, r *http.Request, took time.Duration) {
	route := r.Pattern
	if route == "" || route == "/" {
		route = "none"
	}
	s.metrics.requests.WithLabelValues(route, strconv.Itoa(o.status)).Inc()
	s.metrics.seconds.WithLabelValues(route).Observe(took.Seconds())
	level := slog.LevelInfo
	switch route {
	case "GET /healthz", "GET /readyz", "GET /metrics":
		level = slog.LevelDebug
	}
	attrs := []slog.Attr{
		slog.String("route", route), slog.Int("status", o.status), slog.Int64("bytes", o.bytes),
		slog.Int64("ms", took.Milliseconds()),
	}
	if name := r.PathValue("name"); possibleName(name) {
		attrs = append(attrs, slog.String("addon", name))
	}
	if o.code != "" {
		attrs = append(attrs, slog.String("code", o.code))
	}
	s.log.LogAttrs(r.Context(), level, "request", attrs...)
}

// metrics are what /metrics answers.
type metrics struct {
	registry      *prometheus.Registry
	requests      *prometheus.CounterVec
	seconds       *prometheus.HistogramVec
	registrations *prometheus.CounterVec
	serve         http.HandlerFunc
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "zae_portal_requests_total", Help: "Requests answered, by route and status.",
		}, []string{"route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "zae_portal_request_seconds", Help: "Time to answer a request, by route.",
			Buckets: []float64{.005, .02, .1, .5, 2, 10, 30},
		}, []string{"route"}),
		registrations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "zae_portal_registrations_total", Help: "Attempts to register a chart addon, by result.",
		}, []string{"result"}),
	}
	m.registry.MustRegister(m.requests, m.seconds, m.registrations)
	m.serve = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}).ServeHTTP
	return m
}
