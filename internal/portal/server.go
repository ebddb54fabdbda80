// Package portal is portal-api, the HTTP door: it manages ZaentrumAddon resources for admins and registers
// the addons that are Ready.
//
// It creates Secrets and never reads one, and it never writes an object of an addon: the resource is all it
// changes. No value of an input or of a Secret, and no text of the API server, which may quote one, reaches
// an answer or a log line.
package portal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync/atomic"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/registry"
	"zaentrum.io/zae/internal/telemetry"
)

// Options say how portal-api is set up. Only Registry is required.
type Options struct {
	// Client reaches the cluster, and must not read from a cache: what it reads decides what is written. It is
	// nil outside a cluster. Its scheme is Scheme, or one that holds the same types.
	Client client.WithWatch
	// Namespace is the platform's.
	Namespace string
	// Registry keeps what is registered. The caller closes it, after Run has returned.
	Registry registry.Store
	// Auth says whose bearer tokens are believed.
	Auth Auth
	// PublicOrigin is where the portal is seen, such as https://media.example.org; slot addresses are made
	// absolute with it.
	PublicOrigin string
	// PlatformServices are the names of the platform's own Services, which no addon may register as its own.
	PlatformServices []string
	// Resolve says where a Service name is reached instead of where the network says: name → host:port. It is
	// for development, where nothing listens behind a Service.
	Resolve map[string]string
	// Deny names addresses that nothing is reached at, beside those that netip knows by itself, such as the API
	// server's, and says what they are. May be nil.
	Deny func(netip.Addr) (why string, denied bool)
	// MetricsElsewhere leaves /metrics out of Handler: MetricsServer has them.
	MetricsElsewhere bool
	// Proxy bounds what calls to apps may take.
	Proxy ProxyLimits
	// Audit says how much of the audit is kept.
	Audit AuditLimits
	// Election finds the one replica that registers addons; nil means that there is no other, and this one does.
	Election *Election
	// RefreshInterval is the time after which a registered addon's manifest is read again; 0 means 5 minutes.
	RefreshInterval time.Duration
	// RetryInterval is the time after which a failed registration is tried again, doubled with each failure up
	// to 5 minutes; 0 means one second.
	RetryInterval time.Duration
	// RequestTimeout bounds the work for one request; 0 means 20 seconds.
	RequestTimeout time.Duration
	// WritesPerSecond and WriteBurst bound how often one caller writes; 0 means 10 a second, and 50 at once.
	WritesPerSecond float64
	WriteBurst      int
	// Streams bounds the event streams that are open at once, StreamsPerCaller those of one caller; 0 means 512 and 32.
	Streams, StreamsPerCaller int
	// Heartbeat is the pause after which an event stream on which nothing happens says so; 0 means 15 seconds.
	Heartbeat time.Duration
	// Tracing sends spans of requests; nil sends none.
	Tracing *telemetry.Tracing
	// Log gets one line per request and one per change of a registration; nil means none.
	Log *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Random is where names of Secrets come from; nil means crypto/rand.
	Random io.Reader
}

// Scheme holds the types that portal-api reads and writes, for the client in Options.
func Scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(s), coordinationv1.AddToScheme(s), corev1.AddToScheme(s), authorizationv1.AddToScheme(s)); err != nil {
		return nil, err
	}
	return s, nil
}

// Server is portal-api. Make one with New.
type Server struct {
	o         Options
	log       *slog.Logger
	now       func() time.Time
	auth      *authenticator
	available *availability
	metrics   *telemetry.Portal
	fetch     *fetcher
	streams   *streams
	watched   atomic.Pointer[addonWatch] // nil while Run does not run
	own       own
	documents documents
	rates     *rates
	proxy     *proxy
	// crossOrigin refuses what the pages of other sites ask for.
	crossOrigin *http.CrossOriginProtection
	audit       *auditor
	handler     http.Handler
}

// New makes a portal-api. It reaches for nothing: the cluster and the issuer may come up later.
func New(o Options) (*Server, error) {
	if o.Registry == nil {
		return nil, errors.New("portal: no registry")
	}
	if o.Client != nil {
		if o.Namespace == "" {
			return nil, errors.New("portal: no namespace")
		}
		for _, object := range []runtime.Object{
			&v1alpha1.ZaentrumAddon{}, &corev1.Secret{}, &authorizationv1.SelfSubjectAccessReview{},
		} {
			if _, _, err := o.Client.Scheme().ObjectKinds(object); err != nil {
				return nil, fmt.Errorf("portal: the client's scheme lacks %T", object)
			}
		}
	}
	var origin *url.URL
	if o.PublicOrigin != "" {
		u, err := url.Parse(o.PublicOrigin)
		origin = u
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.Path != "" && u.Path != "/" {
			return nil, errors.New("portal: the public origin is not like https://media.example.org")
		}
	}
	for name, to := range o.Resolve {
		if _, _, err := net.SplitHostPort(to); err != nil {
			return nil, fmt.Errorf("portal: %s resolves to something that is not host:port", name)
		}
	}
	if o.Election != nil {
		if o.Election.Identity == "" {
			return nil, errors.New("portal: no identity to be elected by")
		}
		filled := o.Election.withDefaults()
		o.Election = &filled
	}
	if o.RefreshInterval <= 0 {
		o.RefreshInterval = 5 * time.Minute
	}
	if o.RetryInterval <= 0 {
		o.RetryInterval = time.Second
	}
	if o.RequestTimeout <= 0 {
		o.RequestTimeout = 20 * time.Second
	}
	if o.WritesPerSecond <= 0 {
		o.WritesPerSecond = 10
	}
	if o.WriteBurst <= 0 {
		o.WriteBurst = 50
	}
	if o.Streams <= 0 {
		o.Streams = 512
	}
	if o.StreamsPerCaller <= 0 {
		o.StreamsPerCaller = 32
	}
	if o.Heartbeat <= 0 {
		o.Heartbeat = 15 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	auth, err := newAuthenticator(o.Auth, o.Now, o.Tracing)
	if err != nil {
		return nil, err
	}
	dial := &dialer{resolve: o.Resolve, deny: o.Deny}
	if o.Client != nil {
		dial.namespace = o.Namespace
	}
	s := &Server{
		o: o, log: o.Log, now: o.Now, auth: auth, metrics: telemetry.NewPortal(),
		available: &availability{client: o.Client, namespace: o.Namespace, now: o.Now},
		fetch:     newFetcher(dial, o.Tracing), crossOrigin: http.NewCrossOriginProtection(),
	}
	if origin != nil {
		if err := s.crossOrigin.AddTrustedOrigin(origin.Scheme + "://" + origin.Host); err != nil {
			return nil, errors.New("portal: the public origin is not like https://media.example.org")
		}
	}
	if s.documents, err = newDocuments(); err != nil {
		return nil, err
	}
	s.streams, s.rates = newStreams(s), newRates(o.WritesPerSecond, o.WriteBurst, o.Now)
	s.o.Registry = &noting{Store: o.Registry, changed: s.streams.registryChanged}
	s.proxy = newProxy(s, dial, origin, o.Proxy)
	routes := s.routes()
	s.audit = newAuditor(s, routes)
	s.handler = s.observed(s.front(s.mux(routes)))
	return s, nil
}

// Handler serves the API. It may be used before Run, and after.
func (s *Server) Handler() http.Handler { return s.handler }

// Close ends the connections that are kept to the issuer and to addons, and all streams. The server can still be used, but
// for new streams.
func (s *Server) Close() {
	s.auth.close()
	s.fetch.close()
	s.proxy.close()
}

// routes is the API: every address with what answers it, in the order in which it is documented.
func (s *Server) routes() []route {
	const charts, chart = apitype.PathAddonCharts, apitype.PathAddonCharts + "/{name}"
	refused := []fault.Code{fault.Conflict, fault.Deleting, fault.Refused, fault.TooLarge, fault.Invalid}
	all := []route{
		endpoint(s, route{
			method: "GET", path: charts, id: "getAvailability", who: admin, status: http.StatusOK,
			summary: "Tells whether chart addons can be managed here, and if not, why.",
		}, s.availability),
		endpoint(s, route{
			method: "POST", path: charts, id: "createAddonChart", who: chartAdmin, status: http.StatusAccepted,
			summary: "Creates a chart addon, suspended, or updates the one of that name, so that it is planned.",
			detail: "Values are replaced; secret inputs are added to those already set, in a Secret of their own. The plan is that of " +
				"this write once observedGeneration reaches the generation that is answered.",
			codes: append(refused, fault.NameTaken),
		}, s.createChart),
		endpoint(s, route{
			method: "GET", path: chart, id: "getAddonChart", who: chartAdmin, status: http.StatusOK,
			summary: "Reads a chart addon: what it asks for, its plan, and what runs.",
			tells:   []parameter{{"ETag", "Stands for the plan as it is shown; If-Match of an install takes it."}},
		}, s.chart),
		endpoint(s, route{
			method: "PATCH", path: chart, id: "patchAddonChart", who: chartAdmin, status: http.StatusAccepted,
			summary: "Changes what the body names of a chart addon, and leaves the rest.",
			detail: "A new chart, version or digest suspends the addon, so that it is planned first, unless the body says \"suspend\": false. " +
				"A new chart or version drops the digest unless the body has one.",
			codes: refused,
		}, s.patchChart),
		endpoint(s, route{
			method: "DELETE", path: chart, id: "deleteAddonChart", who: chartAdmin, status: http.StatusOK,
			summary: "Deletes a chart addon with everything that it applied, and its registry rows.",
			query:   []parameter{{"keepValues", "true keeps the values Secrets and the generated values; false, the default, does not."}},
			codes:   refused,
		}, s.deleteChart),
		endpoint(s, route{
			method: "POST", path: chart + "/install", id: "installAddonChart", who: chartAdmin, status: http.StatusAccepted,
			summary: "Installs the current plan of a chart addon.",
			detail:  "The body may be left out. With a generation, or an If-Match, another plan than the one that was read is refused.",
			header:  []parameter{{"If-Match", "ETags that the plan was read with, one of which must still be its, or * for any."}},
			codes:   append(refused, fault.NoPlan, fault.PlanBlocked),
		}, s.installChart),
		{
			method: "GET", path: chart + "/events", id: "watchAddonChart", who: chartAdmin, status: http.StatusOK, media: apitype.EventStreamType,
			summary: "Streams a chart addon as server-sent events: as it is, and each time that it changes.",
			header:  []parameter{{"Last-Event-ID", "The id of the last event of a stream that this one goes on from."}},
			tells:   []parameter{{"X-Accel-Buffering", "no: proxies pass each event on at once."}},
			codes:   []fault.Code{fault.Busy, fault.RateLimited},
			handler: s.chartEvents,
		},
		endpoint(s, route{
			method: "GET", path: chart + "/values-secrets", id: "listValuesSecrets", who: chartAdmin, status: http.StatusOK,
			summary: "Lists the values Secrets of an addon that secretRefs may name, by name, keys and time; never what is in them.",
			detail: "The operator tells them when it plans the addon. Secrets that were kept when an addon was removed are listed once there is " +
				"an addon of that name again, which may stay suspended.",
		}, s.valuesSecrets),
		endpoint(s, route{
			method: "GET", path: apitype.PathAddons, id: "listAddons", who: admin, status: http.StatusOK,
			summary: "Lists all addons, from charts and from addresses.",
		}, s.addons),
	}
	all = append(append(append(all, s.addressRoutes()...), s.launchpadRoutes()...), s.auditRoutes()...)
	return append(all,
		endpoint(s, route{
			method: "GET", path: apitype.PathSetup, id: "getSetup", who: admin, status: http.StatusOK,
			summary: "Reads the setup checklist of a registered addon.",
		}, s.setup),
		endpoint(s, route{
			method: "GET", path: apitype.PathDiscovery, id: "discover", who: anybody, status: http.StatusOK,
			summary: "Tells where to sign in, and the manifests of registered addons.",
			codes:   []fault.Code{fault.Database},
		}, s.discovery),
		route{
			method: "GET", path: apitype.PathOpenAPI + ".json", id: "getOpenAPI", status: http.StatusOK,
			summary: "This document, in JSON.", handler: s.openAPI("application/json", s.documents.json),
		},
		route{
			method: "GET", path: apitype.PathOpenAPI + ".yaml", id: "getOpenAPIYAML", status: http.StatusOK, media: mediaYAML,
			summary: "This document, in YAML.", handler: s.openAPI(mediaYAML, s.documents.yaml),
		},
		route{method: "GET", path: "/healthz", id: "getHealth", status: http.StatusOK, media: textPlain, summary: "Tells that the process serves.", handler: s.healthy},
		route{
			method: "GET", path: "/readyz", id: "getReadiness", status: http.StatusOK, media: textPlain,
			out: bodyType[apitype.Readiness](), also: map[int]string{http.StatusServiceUnavailable: "Requests cannot be served."},
			summary: "Tells whether requests can be served: in text, or in JSON when that is what the caller accepts.", handler: s.ready,
			query: []parameter{{"verbose", "Tells of the cluster and the issuer too, in the text."}},
		},
		route{
			method: "GET", path: "/metrics", id: "getMetrics", status: http.StatusOK, media: textPlain, codes: []fault.Code{fault.NotFound},
			summary: "Metrics in Prometheus' text format, unless they are served elsewhere.", handler: s.metricsHere,
		},
	)
}

// HTTPServer is a server for Handler on an address, with limits on time and headers.
func (s *Server) HTTPServer(addr string) *http.Server {
	return &http.Server{
		Addr:              addr,
		Handler:           s.handler,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      s.o.RequestTimeout + 30*time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

// MetricsServer is a server for the metrics alone, for Options.MetricsElsewhere.
func (s *Server) MetricsServer() *http.Server {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.metrics)
	return &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

// metricsHere answers with the metrics, unless they are served elsewhere.
func (s *Server) metricsHere(w http.ResponseWriter, r *http.Request) {
	if s.o.MetricsElsewhere {
		s.problem(w, r, &httpFault{Fault: fault.New(fault.NotFound, "there is nothing at this address"), status: http.StatusNotFound})
		return
	}
	s.metrics.ServeHTTP(w, r)
}

func (s *Server) healthy(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok\n") }

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", textPlain)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) // a caller that has gone misses nothing
}
