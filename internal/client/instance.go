package client

import (
	"net/netip"
	"net/url"
	"strings"

	"zaentrum.io/zae/internal/fault"
)

// Instance is the address of a platform, in one spelling, so that it can be a key.
type Instance struct {
	base string // scheme://host[:port][/path], without a slash at the end
}

// String is the address.
func (i Instance) String() string { return i.base }

// ParseInstance reads the address of a platform: https://host, or http:// on this machine only, because
// a bearer must not travel in the clear. Its faults are fault.Usage.
func ParseInstance(raw string) (Instance, error) {
	bad := func(why string) (Instance, error) {
		return Instance{}, fault.New(fault.Usage, "the instance's address %s", why).
			WithHint("give it as https://host, with --url, ZAE_URL or url in the config file")
	}
	trimmed := strings.TrimSpace(raw)
	if trimmed == "" {
		return bad("is empty")
	}
	u, err := url.Parse(trimmed)
	switch {
	case err != nil:
		return bad("cannot be read") // the error repeats the text, which may hold a password
	case u.User != nil:
		return bad("must not hold a user or password")
	case u.Scheme != "https" && u.Scheme != "http":
		return bad("must start with https://")
	case u.Hostname() == "":
		return bad("names no host")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return bad("must not hold a query or fragment")
	case !SafeScheme(u):
		return bad("must be https: a bearer would travel in the clear")
	}
	host := strings.ToLower(u.Host)
	if port := u.Port(); port == "" || u.Scheme == "https" && port == "443" || u.Scheme == "http" && port == "80" {
		host = strings.TrimSuffix(strings.TrimSuffix(host, port), ":")
	}
	return Instance{base: u.Scheme + "://" + host + strings.TrimRight(u.EscapedPath(), "/")}, nil
}

// SafeScheme tells whether tokens may be sent to u: over https, or over http to this machine.
func SafeScheme(u *url.URL) bool {
	switch u.Scheme {
	case "https":
		return true
	case "http":
		return loopback(u.Hostname())
	default:
		return false
	}
}

// loopback knows this machine by address and by the names that RFC 6761 reserves for it.
func loopback(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().IsLoopback()
	}
	return false
}
