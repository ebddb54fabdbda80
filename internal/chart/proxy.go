package chart

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// proxyOf reads the URL of a proxy. The error does not repeat it.
func proxyOf(raw string) (*url.URL, error) {
	if raw == "" {
		return nil, nil
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return nil, errors.New("proxy: want http://host:port or https://host:port")
	case u.User != nil:
		return nil, errors.New("proxy: credentials in its URL are not taken: they would show wherever the configuration does")
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("proxy: its URL ends with the host and port")
	}
	return u, nil
}

// proxyFor is the proxy of a request: the one that was configured, and none for a loopback registry. The
// environment is never asked: a proxy resolves and connects out of the guard's sight.
func (c *courier) proxyFor(req *http.Request) (*url.URL, error) {
	if c.proxy == nil || c.loopback[hostport(req.URL)] {
		return nil, nil
	}
	return c.proxy, nil
}

// proxyError is a proxy that does not let a request through.
type proxyError struct{ status int }

func (e *proxyError) Error() string {
	return fmt.Sprintf("the proxy answered with status %d", e.status)
}

func proxyAnswered(_ context.Context, _ *url.URL, _ *http.Request, resp *http.Response) error {
	if resp.StatusCode != http.StatusOK {
		return &proxyError{resp.StatusCode}
	}
	return nil
}

// refuseHost says why a host is not asked of a proxy, as far as can be told without looking its name up.
func refuseHost(host string, deny func(netip.Addr) (string, bool)) string {
	if addr, err := netip.ParseAddr(host); err == nil {
		return refuseAddress(addr, deny)
	}
	name := strings.TrimSuffix(strings.ToLower(host), ".")
	last := name[strings.LastIndexByte(name, '.')+1:]
	switch {
	case last == "localhost":
		return "a loopback address"
	case last != "" && last[0] >= '0' && last[0] <= '9':
		// No top-level domain starts with a digit, but some resolvers read 127.1, 0x7f000001 and 2130706433
		// as addresses.
		return "a number in place of a host"
	}
	return ""
}

// dialProxy connects to the proxy, wherever it is: whoever configured it chose it.
func dialProxy(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout}
	return d.DialContext(ctx, network, addr)
}
