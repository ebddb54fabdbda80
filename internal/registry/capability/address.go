package capability

import (
	"net"
	"net/url"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"zaentrum.io/zae/internal/fault"
)

// maxAddress is the longest address that is looked at.
const maxAddress = 512

// Address is a Service inside the cluster.
type Address struct {
	Service string
	// Namespace is the Service's; empty for the platform's own.
	Namespace string
	// Port is never 0.
	Port int
}

// ParseAddress reads where an addon is: http://NAME, http://NAME:PORT or http://NAME.NAMESPACE.svc[.cluster.local][:PORT], with
// or without a final slash. namespace is the platform's. Everything else is fault.Invalid: IP addresses in any notation, names
// that are no Service's, the cluster's own Services. The error does not quote the address.
func ParseAddress(raw, namespace string) (Address, error) {
	refuse := func(what string) (Address, error) {
		return Address{}, fault.New(fault.Invalid, "proxyUrl: %s", what).
			WithHint("name a Service: http://my-addon, http://my-addon:8080 or http://my-addon.its-namespace.svc")
	}
	switch {
	case raw == "":
		return refuse("is required")
	case len(raw) > maxAddress:
		return refuse("is longer than " + strconv.Itoa(maxAddress) + " bytes")
	case strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' }):
		return refuse("has a character that no address has")
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return refuse("is no address")
	case !strings.EqualFold(u.Scheme, "http") || u.Opaque != "":
		return refuse("must start with http://")
	case u.User != nil:
		return refuse("must not contain credentials")
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.ForceQuery || strings.Contains(raw, "#"):
		return refuse("must be a Service alone, without a path, query or fragment")
	}
	a := Address{Port: 80}
	if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
		n, err := strconv.Atoi(port)
		if err != nil || n < 1 || n > 65535 || strconv.Itoa(n) != port {
			return refuse("the port must be a number from 1 to 65535")
		}
		a.Port = n
	}
	labels := strings.Split(strings.ToLower(u.Hostname()), ".")
	a.Service = labels[0]
	switch domain := strings.Join(labels[min(2, len(labels)):], "."); {
	case len(labels) == 1:
	case domain == "svc", domain == "svc.cluster.local":
		a.Namespace = labels[1]
	default:
		return refuse("the host must be the name of a Service, not an IP address or a name outside the cluster")
	}
	// A name that starts with a letter is no number, which is an IP address in some notation.
	if !IsServiceName(a.Service) || a.Namespace != "" && !IsLabel(a.Namespace) || strings.Contains(u.Host, "[") {
		return refuse("the host must be the name of a Service, not an IP address")
	}
	if a.Service == "localhost" {
		return refuse("the host must be the name of a Service, not this machine")
	}
	if a.Namespace == "default" && a.Service == "kubernetes" || strings.HasPrefix(a.Namespace, "kube-") {
		return refuse("the cluster's own Services are no addons")
	}
	if a.Namespace == namespace {
		a.Namespace = ""
	}
	return a, nil
}

// Host is the address's host as the portal connects to it.
func (a Address) Host() string {
	if a.Namespace == "" {
		return a.Service
	}
	return a.Service + "." + a.Namespace + ".svc"
}

// URL is the address in the one form in which it is kept.
func (a Address) URL() string {
	if a.Port == 80 {
		return "http://" + a.Host()
	}
	return "http://" + net.JoinHostPort(a.Host(), strconv.Itoa(a.Port))
}

// Workload is the Deployment and Service behind the address: a name alone in the platform's namespace, and with its
// namespace elsewhere, so that no two are taken for one.
func (a Address) Workload() string {
	if a.Namespace == "" {
		return a.Service
	}
	return a.Service + "." + a.Namespace
}

// IsServiceName tells whether s can be the name of a Service: a DNS-1035 label, which starts with a letter.
func IsServiceName(s string) bool { return len(validation.IsDNS1035Label(s)) == 0 }
