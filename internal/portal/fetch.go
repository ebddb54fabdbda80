package portal

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/registry/capability"
	"zaentrum.io/zae/internal/telemetry"
	"zaentrum.io/zae/internal/trace"
)

const (
	// manifestTimeout bounds the reading of one manifest (decisions §8).
	manifestTimeout = 5 * time.Second
	// maxRedirects bounds how often an addon may send the reader on, within itself.
	maxRedirects = 3
)

// errElsewhere says that an addon redirects to another address.
var errElsewhere = errors.New("redirected elsewhere")

// fetcher reads manifests from addons. It uses no proxy, keeps to the address it is given, and reads no more
// than a manifest may have.
type fetcher struct {
	client  *http.Client
	tracing *telemetry.Tracing
}

// newFetcher makes a fetcher that connects as d does.
func newFetcher(d *dialer, tracing *telemetry.Tracing) *fetcher {
	return &fetcher{tracing: tracing, client: &http.Client{
		Timeout: manifestTimeout,
		Transport: &http.Transport{
			DialContext:            d.dial,
			DisableKeepAlives:      true, // minutes go by between two readings
			DisableCompression:     true, // a small answer must not unpack into a large one
			MaxResponseHeaderBytes: 16 << 10,
		},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects || r.URL.Scheme != via[0].URL.Scheme || r.URL.Host != via[0].URL.Host || r.URL.User != nil {
				return errElsewhere
			}
			return nil
		},
	}}
}

func (f *fetcher) close() { f.client.CloseIdleConnections() }

// manifest reads and checks the manifest that an address serves, as a part of the trace that ctx carries. Errors are in our
// words: an addon's answer is not repeated.
func (f *fetcher) manifest(ctx context.Context, address string) (*capability.Manifest, error) {
	here, end := f.tracing.Call(trace.From(ctx), "manifest")
	status, manifest, err := f.read(ctx, here, address)
	result := telemetry.ProxyAnswered
	switch {
	case fault.CodeOf(err) == fault.Unreachable && status == 0:
		result = telemetry.ProxyUnreachable
	case err != nil:
		result = telemetry.ProxyFailed
	}
	end(status, result)
	return manifest, err
}

// read is manifest, with the status that was answered; 0 for none.
func (f *fetcher) read(ctx context.Context, here trace.Context, address string) (int, *capability.Manifest, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+capability.WellKnownPath, nil)
	if err != nil {
		return 0, nil, fault.New(fault.Invalid, "%s is no address", shown(address))
	}
	request.Header.Set("Accept", "application/json")
	if here.Valid() {
		request.Header.Set(trace.HeaderParent, here.String())
	}
	response, err := f.client.Do(request)
	if err != nil {
		return 0, nil, fault.New(fault.Unreachable, "%s %s", address, unreached(err)).Because(err)
	}
	defer func() { _ = response.Body.Close() }() // nothing of it is needed any more
	if response.StatusCode != http.StatusOK {
		return response.StatusCode, nil, fault.New(fault.Unreachable, "%s answers %d for its manifest", address, response.StatusCode)
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, capability.MaxBytes+1))
	if err != nil {
		return response.StatusCode, nil, fault.New(fault.Unreachable, "%s %s", address, unreached(err)).Because(err)
	}
	manifest, err := capability.Parse(raw)
	return response.StatusCode, manifest, err
}

// unreached says why an address did not answer.
func unreached(err error) string {
	if named, ok := errors.AsType[*net.DNSError](err); ok && named.IsNotFound {
		return "is no Service that can be found"
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok && wrapped.Timeout() {
		return "did not answer in time"
	}
	switch {
	case errors.Is(err, errElsewhere):
		return "redirects elsewhere"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return "did not answer in time"
	case errors.Is(err, errAddress):
		return errAddress.Error()
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refuses the connection"
	}
	return "cannot be reached"
}
