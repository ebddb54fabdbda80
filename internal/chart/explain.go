package chart

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"zaentrum.io/zae/internal/fault"
)

// statusError is an answer that is not the one asked for.
type statusError struct{ status int }

func (e *statusError) Error() string { return fmt.Sprintf("status %d", e.status) }

// explain makes the fault of an error on the way, without its text, which may carry a URL or what the
// registry wrote. outage tells whether the registry failed, as opposed to having answered or being refused by
// us.
func (f *Fetcher) explain(w wish, err error) (flt *fault.Fault, outage bool) {
	var own *fault.Fault
	if errors.As(err, &own) {
		return own, false
	}
	var no *refusal
	if errors.As(err, &no) {
		return fault.New(fault.Chart, "chart %s: %s", w, no.why).WithHint("%s", no.hint).Because(err), no.sent
	}
	var pe *proxyError
	if errors.As(err, &pe) {
		return registryFault(w, "cannot be reached: the proxy answered with status %d", pe.status).
			WithHint("let the proxy through to it, or do without one").Because(err), passing(pe.status)
	}
	if status := statusOf(err); status != 0 {
		return explainStatus(w, status, err)
	}
	what, hint := f.trouble(err)
	return registryFault(w, "%s", what).WithHint("%s", hint).Because(err), true
}

// registryFault is a fault of the registry of w.
func registryFault(w wish, format string, args ...any) *fault.Fault {
	return fault.New(fault.Registry, "chart %s: the registry %s %s", w, w.ref.Host, fmt.Sprintf(format, args...))
}

func statusOf(err error) int {
	var se *statusError
	if errors.As(err, &se) {
		return se.status
	}
	var te *transport.Error
	if errors.As(err, &te) {
		return te.StatusCode
	}
	return 0
}

// passing tells whether a status is one of a server in trouble.
func passing(status int) bool {
	return status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout
}

func explainStatus(w wish, status int, err error) (*fault.Fault, bool) {
	switch {
	case status == http.StatusNotFound || status == http.StatusGone:
		return fault.New(fault.ChartMissing, "chart %s not found", w).
			WithHint("check reference and version: this is what the registry %s is asked for", w.ref.Host).Because(err), false
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fault.New(fault.ChartMissing, "chart %s not found, or not public", w).
			WithHint("charts are fetched anonymously: make the chart public, or serve it from a registry that lets anonymous clients read").Because(err), false
	case status == http.StatusTooManyRequests:
		return registryFault(w, "answered with status %d: it is asked too often", status).
			WithHint("it is asked again later; a registry of your own, or pinning the digest, asks less").Because(err), true
	case passing(status):
		return registryFault(w, "answered with status %d", status).WithHint(hintWait).Because(err), true
	default:
		return registryFault(w, "answered with status %d", status).
			WithHint("check that the reference leads to a chart: a registry or server of archives does not answer so for one").Because(err), false
	}
}

const (
	hintWait  = "it is asked again later; if that does not help, look at the registry"
	hintReach = "check that the registry is up, and reachable from here"
)

// trouble is what kind of network failure err is, and the way out.
func (f *Fetcher) trouble(err error) (what, hint string) {
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var ne net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("did not answer within %s", f.timeout), hintReach
	case errors.Is(err, context.Canceled):
		return "was not waited for", hintWait
	case errors.As(err, &dns) && dns.IsNotFound:
		return "cannot be reached: no such host", "check the host in the reference"
	case errors.As(err, &dns):
		return "cannot be reached: its name cannot be looked up", hintReach
	case errors.Is(err, syscall.ECONNREFUSED):
		return "cannot be reached: connection refused", hintReach
	case errors.As(err, &cert):
		return "cannot be trusted: its TLS certificate is not valid", "give it a certificate that is trusted here"
	case errors.As(err, &record):
		return "does not speak https", hintScheme
	case errors.As(err, &ne) && ne.Timeout():
		return "did not answer in time", hintReach
	default:
		return "failed: the connection broke or the answer could not be understood", hintWait
	}
}
