package telemetry

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Portal is what an API tells of itself. It is safe for use by several goroutines.
type Portal struct {
	serve         http.Handler
	requests      *prometheus.CounterVec
	seconds       *prometheus.HistogramVec
	registrations *prometheus.CounterVec
	streams       prometheus.Gauge
	streamEnds    *prometheus.CounterVec
	proxied       *prometheus.CounterVec
	proxying      *prometheus.GaugeVec
	registering   prometheus.Gauge
}

// What comes of a call to an app.
const (
	ProxyAnswered    = "answered"
	ProxyUnreachable = "unreachable"
	ProxyLate        = "late"
	ProxyFailed      = "failed"  // by the app: it broke off, or its answer is none
	ProxyAborted     = "aborted" // by the caller
)

// What comes of an attempt to register an addon.
const (
	RegistrationNew       = "registered"
	RegistrationUnchanged = "unchanged"
	RegistrationFailed    = "failed"
)

// NewPortal has a registry of its own, which it serves.
func NewPortal() *Portal {
	registry := prometheus.NewRegistry()
	p := &Portal{
		serve: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
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
		streams: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "zae_portal_event_streams", Help: "Event streams that are open.",
		}),
		streamEnds: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "zae_portal_event_streams_ended_total", Help: "Event streams that ended, by what ended them.",
		}, []string{"reason"}),
		proxied: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "zae_portal_proxied_total", Help: "Calls that were passed on to an app, by route and result.",
		}, []string{"route", "result"}),
		proxying: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "zae_portal_proxying", Help: "Calls to apps that are open, streams and WebSockets among them, by route.",
		}, []string{"route"}),
	}
	p.registering = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "zae_portal_registering", Help: "1 for the replica that registers chart addons, 0 for one that stands by.",
	})
	registry.MustRegister(p.registering, p.requests, p.seconds, p.registrations, p.streams, p.streamEnds, p.proxied, p.proxying)
	for _, result := range []string{RegistrationNew, RegistrationUnchanged, RegistrationFailed} {
		p.registrations.WithLabelValues(result)
	}
	for _, reason := range []string{StreamEnded, StreamGone, StreamExpired, StreamSlow} {
		p.streamEnds.WithLabelValues(reason)
	}
	return p
}

// Registering notes whether this replica is the one that registers addons.
func (p *Portal) Registering(does bool) {
	p.registering.Set(0)
	if does {
		p.registering.Set(1)
	}
}

// Request notes an answered request. The route is a pattern, never an address.
func (p *Portal) Request(route string, status int, took time.Duration) {
	p.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	p.seconds.WithLabelValues(route).Observe(took.Seconds())
}

// Streamed notes the end of an event stream as an answered request: how long it was open says nothing about the server.
func (p *Portal) Streamed(route string, status int) {
	p.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
}

// Proxying notes that a call is passed on to an app, and answers with what notes that it is over.
func (p *Portal) Proxying(route string) (over func()) {
	open := p.proxying.WithLabelValues(route)
	open.Inc()
	return open.Dec
}

// Proxied notes what came of a call that was passed on to an app.
func (p *Portal) Proxied(route, result string) { p.proxied.WithLabelValues(route, result).Inc() }

// Registration notes what came of an attempt to register an addon.
func (p *Portal) Registration(result string) { p.registrations.WithLabelValues(result).Inc() }

// What ends an event stream.
const (
	StreamEnded   = "ended"
	StreamGone    = "gone" // the reader went
	StreamExpired = "expired"
	StreamSlow    = "slow"
)

// StreamOpened notes an event stream; the function notes its end, and what ended it.
func (p *Portal) StreamOpened() (ended func(reason string)) {
	p.streams.Inc()
	return func(reason string) {
		p.streams.Dec()
		p.streamEnds.WithLabelValues(reason).Inc()
	}
}

// ServeHTTP answers with the metrics.
func (p *Portal) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.serve.ServeHTTP(w, r) }
