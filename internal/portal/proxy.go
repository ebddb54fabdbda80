package portal

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/portal/apppath"
	"zaentrum.io/zae/internal/registry"
	"zaentrum.io/zae/internal/registry/capability"
	"zaentrum.io/zae/internal/telemetry"
	"zaentrum.io/zae/internal/trace"
)

// ProxyLimits bound what calls to apps may take. A zero field means its default.
type ProxyLimits struct {
	// Header is the longest time that an app may take until its answer begins, once it has all of the call. Default
	// one minute.
	Header time.Duration
	// Idle is the longest time that nothing may move between the proxy and an app. Default 5 minutes.
	Idle time.Duration
	// Caller is the longest time that a caller may take to send, or to take, the next piece. Default one minute.
	Caller time.Duration
	// PerApp is how many calls of one app may be open, PerCaller how many of them one caller may have, and Files how
	// many files of its console may be on their way. Defaults 100, 25 and 64. All is how many there may be of all apps
	// together, by default 1000.
	PerApp, PerCaller, Files, All int
}

func (l ProxyLimits) withDefaults() ProxyLimits {
	for _, d := range []struct {
		of *time.Duration
		is time.Duration
	}{{&l.Header, time.Minute}, {&l.Idle, 5 * time.Minute}, {&l.Caller, time.Minute}} {
		if *d.of <= 0 {
			*d.of = d.is
		}
	}
	for _, d := range []struct {
		of *int
		is int
	}{{&l.PerApp, 100}, {&l.PerCaller, 25}, {&l.Files, 64}, {&l.All, 1000}} {
		if *d.of <= 0 {
			*d.of = d.is
		}
	}
	return l
}

// proxy forwards calls to registered apps.
type proxy struct {
	s         *Server
	limits    ProxyLimits
	origin    *url.URL // nil when it is not known
	transport *http.Transport
	reverse   *httputil.ReverseProxy
	open      counts
	tunnels   tunnels
}

func newProxy(s *Server, d *dialer, origin *url.URL, limits ProxyLimits) *proxy {
	p := &proxy{s: s, limits: limits.withDefaults(), origin: origin}
	p.transport = &http.Transport{
		Proxy: nil, // never one of the environment
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := d.dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &idleConn{Conn: conn, idle: p.limits.Idle}, nil
		},
		TLSHandshakeTimeout:    dialTimeout,
		TLSNextProto:           map[string]func(string, *tls.Conn) http.RoundTripper{}, // HTTP/1.1 only
		ResponseHeaderTimeout:  p.limits.Header,
		ExpectContinueTimeout:  time.Second,
		IdleConnTimeout:        30 * time.Second,
		MaxIdleConns:           256,
		MaxIdleConnsPerHost:    8,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true, // what the app encodes is for the caller to decode
	}
	p.reverse = &httputil.ReverseProxy{
		Transport:      p.transport,
		Rewrite:        p.rewrite,
		ModifyResponse: p.modify,
		ErrorHandler:   p.failed,
		FlushInterval:  100 * time.Millisecond,
		BufferPool:     &buffers{},
		ErrorLog:       slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug), // its texts quote what apps send
	}
	return p
}

func (p *proxy) close() {
	p.tunnels.end()
	p.transport.CloseIdleConnections()
}

// passage is one call on its way through the proxy.
type passage struct {
	way    way
	app    *registry.App
	target *url.URL // of the app's server
	// base is where the app begins in the portal on this way, other on the other one, and rest what follows base in the
	// call's path, percent-encoded as it was sent.
	base, other, rest string
	origin            *url.URL
	// bearer is the caller's, and expires when it is none any more.
	bearer  string
	expires time.Time
	// protocols are the WebSocket subprotocols that were asked for, without the bearer among them; nil when none were.
	protocols []string
	trace     trace.Context

	w      http.ResponseWriter // the caller's
	cancel context.CancelFunc
	// flooded tells that the app gave more interim answers than it may.
	flooded atomic.Bool
	result  string // of telemetry
	status  int    // that the app answered; 0 when it did not
}

type passageKey struct{}

func passageOf(ctx context.Context) *passage {
	p, _ := ctx.Value(passageKey{}).(*passage)
	return p
}

// ServeHTTP forwards a call to the app that its path names.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	way, key, rest, _ := splitProxied(r.URL.EscapedPath())
	r.Pattern = way.pattern()
	if o, ok := w.(*observer); ok && capability.IsLabel(key) {
		o.addon = key
	}
	pass, leave, err := p.admit(r, way, key, rest)
	if err != nil {
		drain(r)
		p.s.problem(w, r, err)
		return
	}
	defer leave()
	if rest == "" { // files beside the console's first page are asked for relative to it
		to := pass.base + "/"
		if r.URL.RawQuery != "" {
			to += "?" + r.URL.RawQuery
		}
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusPermanentRedirect)
		return
	}
	p.forward(w, r, pass)
}

// forward has a call answered by its app.
func (p *proxy) forward(w http.ResponseWriter, r *http.Request, pass *passage) {
	ctx, cancel := context.WithCancel(context.WithValue(r.Context(), passageKey{}, pass))
	defer cancel()
	pass.w, pass.cancel = w, cancel
	here, end := p.s.o.Tracing.Call(trace.From(ctx), "proxy")
	pass.trace = here
	pass.result = telemetry.ProxyAborted // until something better is known
	closed := p.s.metrics.Proxying(pass.way.pattern())
	defer func() {
		closed()
		p.s.metrics.Proxied(pass.way.pattern(), pass.result)
		end(pass.status, pass.result)
	}()
	control := http.NewResponseController(w)
	r = r.WithContext(ctx)
	paced := &pacedBody{ReadCloser: r.Body, control: control, each: p.limits.Caller}
	if r.Body == http.NoBody || r.ContentLength == 0 {
		paced.done()
	} else {
		r.Body = paced
	}
	lock := &airlock{w: w, control: control, each: p.limits.Caller, header: http.Header{}, flood: func() {
		pass.flooded.Store(true)
		cancel()
	}}
	defer lock.done()
	p.reverse.ServeHTTP(lock, r)
	if pass.result == telemetry.ProxyAborted && pass.status != 0 {
		pass.result = telemetry.ProxyAnswered
	}
}

// admit decides about a call before anything of it is passed on. The caller leaves with the function that is answered.
func (p *proxy) admit(r *http.Request, w way, key, rest string) (*passage, func(), error) {
	pass := &passage{way: w, rest: rest, origin: p.origin}
	ctx, cancel := context.WithTimeout(r.Context(), p.s.o.RequestTimeout)
	defer cancel()
	from, err := p.identify(ctx, r, pass)
	if err != nil {
		return nil, nil, err
	}
	if !capability.IsLabel(key) {
		return nil, nil, noApp(key)
	}
	if rest != "" {
		if what := apppath.Problem(rest); what != "" {
			return nil, nil, malformed("%s, and is not passed on", what)
		}
	}
	if pass.app, err = p.s.o.Registry.App(ctx, key); err != nil {
		return nil, nil, err
	}
	if pass.app == nil {
		return nil, nil, noApp(key)
	}
	pass.base, pass.other = w.base(key), w.otherBase(key)
	if pass.target, err = targetOf(pass.app); err != nil {
		return nil, nil, err
	}
	leave, err := p.enter(pass, from)
	return pass, leave, err
}

// identify is who a call is from, by its bearer; the empty text for somebody who asks for a console's files without one.
func (p *proxy) identify(ctx context.Context, r *http.Request, pass *passage) (string, error) {
	socket, err := upgrades(r)
	if err != nil {
		return "", err
	}
	if socket {
		pass.protocols = []string{}
		var token string
		token, pass.protocols = socketBearer(r.Header.Values("Sec-Websocket-Protocol"))
		if token != "" && len(r.Header.Values("Authorization")) == 0 {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		if err := p.sameOrigin(r); err != nil {
			return "", err
		}
	}
	if pass.way == wayConsole {
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead, socket:
			return "", notAllowed("GET, HEAD")
		case r.Header.Get("Service-Worker") != "":
			// One that is there once answers for the app for ever after, in the place of whatever is installed then.
			return "", fault.New(fault.Forbidden, "a console has no service worker")
		case len(r.Header.Values("Authorization")) == 0:
			return "", nil
		}
	}
	who, err := p.s.auth.requireValid(ctx, r)
	if err != nil {
		return "", err
	}
	pass.bearer, err = bearer(r)
	pass.expires = who.expires
	return who.key(), err
}

// sameOrigin refuses what another site's page begins: browsers let any page open a WebSocket anywhere.
func (p *proxy) sameOrigin(r *http.Request) error {
	write := r.Clone(r.Context())
	write.Method = http.MethodPost
	if err := p.s.crossOrigin.Check(write); err != nil {
		return crossOriginFault()
	}
	return nil
}

// upgrades tells whether a call asks for a WebSocket. No other protocol can be switched to: HTTP/2 in the clear would take
// everything that follows past the proxy's rules.
func upgrades(r *http.Request) (bool, error) {
	if len(r.Header.Values("Upgrade")) == 0 {
		return false, nil
	}
	if r.Method != http.MethodGet || len(r.Header.Values("Upgrade")) > 1 || !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") || r.ContentLength != 0 {
		return false, malformed("the proxy switches to no other protocol than websocket")
	}
	return true, nil
}

// bearerProtocol begins the WebSocket subprotocol that carries a bearer: a browser can send no header with a WebSocket.
const bearerProtocol = "zaentrum.bearer."

// socketBearer takes the bearer out of the subprotocols that are asked for.
func socketBearer(values []string) (token string, rest []string) {
	rest = []string{}
	for _, value := range values {
		for protocol := range strings.SplitSeq(value, ",") {
			protocol = strings.TrimSpace(protocol)
			if t, ok := strings.CutPrefix(protocol, bearerProtocol); ok {
				token = t
			} else if protocol != "" {
				rest = append(rest, protocol)
			}
		}
	}
	return token, rest
}

// targetOf is where an app's server is. The registry holds what was checked when it was written, and is not relied upon.
func targetOf(app *registry.App) (*url.URL, error) {
	u, err := url.Parse(app.ProxyURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fault.New(fault.AddonFailed, "%s is registered with an address that is none", named(app))
	}
	return u, nil
}

// enter counts a call in, or refuses it because too many are open.
func (p *proxy) enter(pass *passage, from string) (func(), error) {
	key := pass.app.Key
	of, most := []string{"", "calls " + key}, []int{p.limits.All, p.limits.PerApp}
	if pass.way == wayConsole {
		of[1], most[1] = "files "+key, p.limits.Files
	} else {
		of, most = append(of, "calls "+key+" "+from), append(most, p.limits.PerCaller)
	}
	full := p.open.enter(of, most)
	switch full {
	case -1:
		return func() { p.open.leave(of) }, nil
	case 0:
		return nil, fault.New(fault.AddonDown, "the proxy has as many calls open as it may, and takes none to %s", named(pass.app))
	case 2:
		return nil, fault.New(fault.RateLimited, "you have %d calls to %s open, which is as many as one may have", most[full], named(pass.app))
	}
	return nil, fault.New(fault.AddonDown, "%s has %d calls open, which is as many as it may have", named(pass.app), most[full])
}

// rewrite makes the call that an app gets.
func (p *proxy) rewrite(r *httputil.ProxyRequest) {
	pass := passageOf(r.In.Context())
	out := r.Out
	out.URL = &url.URL{Scheme: pass.target.Scheme, Host: pass.target.Host, RawQuery: r.In.URL.RawQuery}
	// Byte for byte what was sent: it has been judged so.
	path := strings.TrimSuffix(pass.target.EscapedPath(), "/") + pass.rest
	if decoded, err := url.PathUnescape(path); err == nil {
		out.URL.Path, out.URL.RawPath = decoded, path
	}
	out.Host = "" // the URL's
	out.Trailer = nil
	pass.rewriteHeaders(r.In, out.Header)
}

// errProtocol says that an app answered with something that was not asked for.
var errProtocol = errors.New("switches to another protocol than was asked for")

// modify makes the answer that a caller gets.
func (p *proxy) modify(res *http.Response) error {
	pass := passageOf(res.Request.Context())
	if res.StatusCode == http.StatusSwitchingProtocols {
		if pass.protocols == nil || !strings.EqualFold(res.Header.Get("Upgrade"), "websocket") {
			return errProtocol
		}
		own := http.Header{}
		for _, name := range []string{"Connection", "Upgrade", "Sec-Websocket-Accept", "Sec-Websocket-Protocol", "Sec-Websocket-Extensions"} {
			if values := res.Header.Values(name); len(values) > 0 {
				own[name] = values
			}
		}
		res.Header = own
		return p.keep(pass, res)
	}
	if err := pass.answerHeaders(res); err != nil {
		return err
	}
	pass.status = res.StatusCode
	res.Trailer = nil
	res.Body = &notedBody{res.Body, pass, res.Request.Context()}
	if media, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";"); strings.EqualFold(strings.TrimSpace(media), "text/event-stream") {
		res.Header.Set("X-Accel-Buffering", "no")
		return p.keep(pass, res)
	}
	return nil
}

// keep lets an answer go on for as long as the bearer is one, and until portal-api ends.
func (p *proxy) keep(pass *passage, res *http.Response) error {
	pass.status = res.StatusCode
	one := p.tunnels.begin(pass.cancel)
	if one == nil {
		return errEnding
	}
	if !pass.expires.IsZero() {
		one.stopIn(pass.expires.Sub(p.s.now()))
	}
	if both, ok := res.Body.(io.ReadWriteCloser); ok && res.StatusCode == http.StatusSwitchingProtocols {
		res.Body = &socketBody{both, one}
	} else {
		res.Body = &streamBody{res.Body, one}
	}
	return nil
}

// errEnding says that portal-api ends.
var errEnding = errors.New("portal-api is about to end")

// failed answers a call whose app did not answer, or not as it should.
func (p *proxy) failed(_ http.ResponseWriter, r *http.Request, err error) {
	pass := passageOf(r.Context())
	result, f := addonFault(pass, r, err)
	pass.result = result
	p.s.problem(pass.w, r, f)
}

// addonFault says what went wrong with an app's answer, in our words.
func addonFault(pass *passage, r *http.Request, err error) (result string, _ error) {
	who := named(pass.app)
	timeout, isNet := errors.AsType[net.Error](err)
	dial, isOp := errors.AsType[*net.OpError](err)
	switch {
	case errors.Is(err, errEnding):
		return telemetry.ProxyAborted, fault.New(fault.AddonDown, "portal-api is about to end, and takes no new streams")
	case errors.Is(err, errAddress):
		return telemetry.ProxyUnreachable, fault.New(fault.AddonDown, "%s cannot be reached: its name %s", who, errAddress)
	case errors.Is(err, errElsewhereRefused), errors.Is(err, errProtocol):
		return telemetry.ProxyFailed, fault.New(fault.AddonFailed, "%s %s", who, err)
	case pass.flooded.Load():
		return telemetry.ProxyFailed, fault.New(fault.AddonFailed, "%s gives interim answers without end", who)
	case r.Context().Err() != nil:
		return telemetry.ProxyAborted, fault.New(fault.AddonFailed, "the call to %s was broken off", who)
	case isOp && dial.Op == "dial", errors.Is(err, syscall.ECONNREFUSED):
		return telemetry.ProxyUnreachable, fault.New(fault.AddonDown, "%s cannot be reached: it %s", who, unreached(err)).
			WithHint("zae addon status %s shows how it is", pass.app.Key)
	case isNet && timeout.Timeout():
		return telemetry.ProxyLate, &httpFault{
			Fault:  fault.New(fault.AddonFailed, "%s did not answer in time", who),
			status: http.StatusGatewayTimeout,
		}
	}
	return telemetry.ProxyFailed, fault.New(fault.AddonFailed, "%s broke off, or did not answer as HTTP has it", who)
}

// named is an app for people.
func named(app *registry.App) string {
	if app.Addon == "" {
		return "app " + app.Key
	}
	return "addon " + app.Addon
}

func noApp(key string) error {
	return &httpFault{
		Fault:  fault.New(fault.NotFound, "there is no app %s", shown(key)).WithHint("zae addon list shows the addons and whether they are registered"),
		status: http.StatusNotFound,
	}
}

func notAllowed(allow string) error {
	f := &httpFault{
		Fault:  fault.New(fault.Malformed, "this address does not take this method").WithHint("it takes %s", allow),
		status: http.StatusMethodNotAllowed,
	}
	if !strings.Contains(allow, " other ") {
		f.header = http.Header{"Allow": {allow}}
	}
	return f
}

// counts are how many calls are open, by what they count for.
type counts struct {
	mu   sync.Mutex
	open map[string]int
}

// enter counts one more of each, or, when one of them has its most, none, and answers which; -1 when it is in.
func (c *counts) enter(of []string, most []int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, what := range of {
		if c.open[what] >= most[i] {
			return i
		}
	}
	if c.open == nil {
		c.open = map[string]int{}
	}
	for _, what := range of {
		c.open[what]++
	}
	return -1
}

func (c *counts) leave(of []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, what := range of {
		if c.open[what]--; c.open[what] == 0 {
			delete(c.open, what)
		}
	}
}
