package operator

import (
	"context"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	discovery "k8s.io/client-go/kubernetes/typed/discovery/v1"
	"k8s.io/client-go/rest"
)

// APIServerGuard knows the addresses of the cluster's own API server, which no chart reference may reach
// (contract §3): those of the host that the operator itself talks to, of the Service, and of the endpoints
// behind it. It is safe for use by several goroutines.
type APIServerGuard struct {
	config *rest.Config
	hosts  []string
	log    *slog.Logger

	byHost map[string][]netip.Addr // what each host meant when it was looked up last
	behind []netip.Addr            // the endpoints when they were read last
	said   string                  // why they could not be read, as it was logged last

	denied atomic.Pointer[map[netip.Addr]bool]
}

const guardTimeout = 10 * time.Second // of one look

// NewAPIServerGuard makes a guard and has it look once; serviceHost is the Service's address, as the environment
// gives it inside a cluster, or empty. It never fails: what cannot be looked up is logged.
func NewAPIServerGuard(ctx context.Context, config *rest.Config, serviceHost string, log *slog.Logger) *APIServerGuard {
	g := &APIServerGuard{config: config, log: log, byHost: map[string][]netip.Addr{}}
	for _, host := range []string{serviceHost, hostOf(config.Host)} {
		if host != "" {
			g.hosts = append(g.hosts, host)
		}
	}
	g.look(ctx)
	return g
}

// hostOf is the host of an address as a rest.Config has it: a URL, or a host with or without a port.
func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil && u.Hostname() != "" {
		return u.Hostname()
	}
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return strings.Trim(address, "[]")
}

// Deny says what an address is, and whether it is one of the API server's.
func (g *APIServerGuard) Deny(addr netip.Addr) (string, bool) {
	return "the cluster's API server", (*g.denied.Load())[addr.Unmap()]
}

// Run looks again, as often as it is told to, until the context ends. Only one Run may be under way.
func (g *APIServerGuard) Run(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			g.look(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// look brings the addresses up to date. What cannot be looked up stays as it was.
func (g *APIServerGuard) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, guardTimeout)
	defer cancel()
	denied := map[netip.Addr]bool{}
	for _, host := range g.hosts {
		if addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host); err == nil {
			g.byHost[host] = addrs
		}
		for _, addr := range g.byHost[host] {
			denied[addr.Unmap()] = true
		}
	}
	if behind, err := g.endpoints(ctx); err == nil {
		g.behind, g.said = behind, ""
	} else if ctx.Err() == nil {
		g.say(err)
	}
	for _, addr := range g.behind {
		denied[addr] = true
	}
	// The fetcher refuses loopback by itself, with exceptions of its own.
	maps.DeleteFunc(denied, func(addr netip.Addr, _ bool) bool { return addr.IsLoopback() })
	g.denied.Store(&denied)
}

// endpoints are the addresses behind the API server's Service.
func (g *APIServerGuard) endpoints(ctx context.Context) ([]netip.Addr, error) {
	client, err := discovery.NewForConfig(g.config)
	if err != nil {
		return nil, err
	}
	slice, err := client.EndpointSlices(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	var addrs []netip.Addr
	for _, endpoint := range slice.Endpoints {
		for _, text := range endpoint.Addresses {
			if addr, err := netip.ParseAddr(text); err == nil { // the API server registers addresses only
				addrs = append(addrs, addr.Unmap())
			}
		}
	}
	return addrs, nil
}

// say logs why the endpoints are not known, once for each reason.
func (g *APIServerGuard) say(err error) {
	why := string(apierrors.ReasonForError(err))
	if why == "" {
		why = "no answer"
	}
	if why == g.said {
		return
	}
	g.said = why
	g.log.Warn("the API server's endpoints are not known: chart references are refused its Service and its configured address only",
		"endpointslice", metav1.NamespaceDefault+"/kubernetes", "reason", why)
}
