package chart

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
)

const (
	maxResponse  = 10 << 20 // bytes of one response's body (decisions §8)
	maxHeaders   = 256 << 10
	maxRedirects = 10
	dialTimeout  = 10 * time.Second
)

// refusal is our own decision not to go on. Its text is ours, so it may be shown.
type refusal struct {
	why, hint string
	// sent tells that it is about what the other side sent, not about where it is: a registry that talks too much
	// is as good as one that fails.
	sent bool
}

func (r *refusal) Error() string { return r.why }

func refuse(hint, format string, args ...any) *refusal {
	return &refusal{why: fmt.Sprintf(format, args...), hint: hint}
}

// answerTooLarge refuses an answer, of at least that size when it is not known.
func answerTooLarge(atLeast string, n int64) *refusal {
	r := refuse(hintSize, "a response of %s%s is over the limit of %s", atLeast, size(n), size(maxResponse))
	r.sent = true
	return r
}

// The ways out of a refusal.
const (
	hintAddress = "serve the chart from a registry on a public or private network address"
	hintScheme  = "serve the chart, and everything its address leads to, over https"
	hintSize    = "leave out of the chart what it does not need"
	hintCircle  = "give the address that the redirects end at"
)

// courier is the one way to the network: every request of every protocol, every hop of a redirect and every
// connection goes through it. It follows redirects itself, so that the rules for them are the same whoever
// sends the request.
type courier struct {
	client *http.Client
	base   *http.Transport
	// loopback are the host:port that may be, and must be, loopback, and may be plain http.
	loopback map[string]bool
	deny     func(netip.Addr) (string, bool)
	retries  retries
	proxy    *url.URL // nil for none
	outside  func(netip.Addr) bool
	resolver *net.Resolver // nil for the system's
}

func newCourier(o FetcherOptions) (*courier, error) {
	c := &courier{
		loopback: make(map[string]bool, len(o.AllowLoopback)),
		deny:     o.Deny,
		retries:  retries{o.Now, o.Sleep, o.Random},
		outside:  o.outside,
		resolver: o.resolver,
	}
	var err error
	if c.proxy, err = proxyOf(o.Proxy); err != nil {
		return nil, err
	}
	for _, hostport := range o.AllowLoopback {
		host, port, err := net.SplitHostPort(hostport)
		if err != nil || host == "" || port == "" {
			return nil, fmt.Errorf("loopback registry %q: want host:port", hostport)
		}
		c.loopback[strings.ToLower(hostport)] = true
	}
	c.base = &http.Transport{
		Proxy:                  c.proxyFor,
		OnProxyConnectResponse: proxyAnswered,
		DialContext:            c.dial,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.roots},
		TLSHandshakeTimeout:    10 * time.Second,
		ResponseHeaderTimeout:  20 * time.Second,
		MaxResponseHeaderBytes: maxHeaders,
		MaxIdleConns:           16,
		MaxIdleConnsPerHost:    2,
		IdleConnTimeout:        30 * time.Second,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // what is counted and hashed is what was sent
	}
	c.client = &http.Client{Transport: hop{c}, CheckRedirect: c.checkRedirect}
	return c, nil
}

// dial connects to addr unless the address it resolves to, checked when the socket is about to connect, is
// refused. A name that resolves to several addresses may still connect to one that is not.
func (c *courier) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if c.proxy != nil && addr == hostport(c.proxy) {
		return dialProxy(ctx, network, addr)
	}
	listed := c.loopback[addr]
	d := net.Dialer{
		Timeout:  dialTimeout,
		Resolver: c.resolver,
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			ap, err := netip.ParseAddrPort(address)
			if err != nil {
				return refuse(hintAddress, "refusing to connect: not an address")
			}
			if listed {
				if ap.Addr().Unmap().IsLoopback() {
					return nil
				}
				return refuse("take it off the loopback registries", "refusing to connect: %s is configured as a loopback registry and is none", addr)
			}
			if c.outside != nil && c.outside(ap.Addr()) {
				return nil
			}
			if why := refuseAddress(ap.Addr(), c.deny); why != "" {
				return refuseTo(why)
			}
			return nil
		},
	}
	return d.DialContext(ctx, network, addr)
}

func refuseTo(why string) *refusal {
	return refuse(hintAddress, "refusing to connect to %s: charts are not fetched from there", why)
}

func (c *courier) checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return refuse(hintCircle, "redirected more than %d times", maxRedirects)
	}
	if !c.mayUse(req) {
		return refuse(hintScheme, "redirected to another scheme than https")
	}
	req.Header.Del("Referer") // it would carry the query of the hop before
	req.URL.User = nil
	return nil
}

// mayUse tells whether the scheme of a request is acceptable for its host.
func (c *courier) mayUse(req *http.Request) bool {
	switch req.URL.Scheme {
	case "https":
		return true
	case "http":
		return c.loopback[hostport(req.URL)]
	default:
		return false
	}
}

// hostport is what is dialed for a URL.
func hostport(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// RoundTrip sends a request and follows its redirects. The registry client tries plain http for hosts that
// look local; where that is not allowed, https is used in its place.
func (c *courier) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	if req.URL.Scheme == "http" && !c.mayUse(req) {
		req.URL.Scheme = "https"
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, err // of a refused redirect, Do answers with both
	}
	return resp, nil
}

// hop sends one request, redirected or not, again when that may help.
type hop struct{ c *courier }

func (h hop) RoundTrip(req *http.Request) (*http.Response, error) {
	return h.c.retries.do(req, h.once)
}

func (h hop) once(req *http.Request) (*http.Response, error) {
	if !h.c.mayUse(req) {
		return nil, refuse(hintScheme, "refusing another scheme than https")
	}
	if h.c.proxy != nil && !h.c.loopback[hostport(req.URL)] {
		if why := refuseHost(req.URL.Hostname(), h.c.deny); why != "" {
			return nil, refuseTo(why)
		}
	}
	resp, err := h.c.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if req.Method != http.MethodHead && resp.ContentLength > maxResponse {
		_ = resp.Body.Close() // nothing was read from it
		return nil, answerTooLarge("", resp.ContentLength)
	}
	resp.Body = &limited{body: resp.Body, left: maxResponse}
	return resp, nil
}

// limited is a body that fails when it is longer than it may be.
type limited struct {
	body io.ReadCloser
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.body.Read(p)
	l.left -= int64(n)
	if l.left < 0 {
		return 0, answerTooLarge("at least ", maxResponse-l.left)
	}
	return n, err
}

func (l *limited) Close() error { return l.body.Close() }

// size is a number of bytes for people, exact where rounding would hide on which side of a limit it lies.
func size(n int64) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	if n >= 1<<20 {
		return fmt.Sprintf("%.1f MiB (%d bytes)", float64(n)/(1<<20), n)
	}
	return fmt.Sprintf("%d bytes", n)
}
