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

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
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
	g.look(ctx, true)
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

// Run keeps the addresses up to date until the context ends: it looks hosts up as often as it is told to, and watches the
// endpoints, which costs no request while they stay the same. Where they cannot be watched they are read as often. Only one
// Run may be under way.
func (g *APIServerGuard) Run(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var events <-chan watch.Event // nil: nothing is watched
	var stop func()
	told := false // this watch has told something
	again := func() { events, stop = g.watch(ctx); told = false }
	again()
	defer func() { stop() }()
	for {
		select {
		case e, open := <-events:
			if slice, ok := e.Object.(*discoveryv1.EndpointSlice); ok && open && e.Type != watch.Deleted {
				g.behind, g.said, told = addressesOf(slice), "", true
				g.put()
				continue
			}
			stop()
			events, stop = nil, func() {}
			if !open && told { // the ordinary end; whatever else it was, the next tick tries again
				again()
			}
		case <-ticker.C:
			g.look(ctx, events == nil)
			if events == nil {
				again()
			}
		case <-ctx.Done():
			return
		}
	}
}

// watch watches the endpoints; it answers with nil where they cannot be watched.
func (g *APIServerGuard) watch(ctx context.Context) (<-chan watch.Event, func()) {
	nothing := func() {}
	client, err := discovery.NewForConfig(g.config)
	if err != nil {
		return nil, nothing
	}
	watching, err := client.EndpointSlices(metav1.NamespaceDefault).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + apiServerEndpoints})
	if err != nil {
		return nil, nothing
	}
	return watching.ResultChan(), watching.Stop
}

const apiServerEndpoints = "kubernetes" // the EndpointSlice's name, in the namespace default

// look brings the addresses up to date, those of the endpoints when told to. What cannot be looked up stays as it was.
func (g *APIServerGuard) look(ctx context.Context, endpoints bool) {
	ctx, cancel := context.WithTimeout(ctx, guardTimeout)
	defer cancel()
	for _, host := range g.hosts {
		if addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host); err == nil {
			g.byHost[host] = addrs
		}
	}
	if endpoints {
		if behind, err := g.endpoints(ctx); err == nil {
			g.behind, g.said = behind, ""
		} else if ctx.Err() == nil {
			g.say(err)
		}
	}
	g.put()
}

// put has what was found count.
func (g *APIServerGuard) put() {
	denied := map[netip.Addr]bool{}
	for _, addrs := range g.byHost {
		for _, addr := range addrs {
			denied[addr.Unmap()] = true
		}
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
	slice, err := client.EndpointSlices(metav1.NamespaceDefault).Get(ctx, apiServerEndpoints, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return addressesOf(slice), nil
}

func addressesOf(slice *discoveryv1.EndpointSlice) []netip.Addr {
	var addrs []netip.Addr
	for _, endpoint := range slice.Endpoints {
		for _, text := range endpoint.Addresses {
			if addr, err := netip.ParseAddr(text); err == nil { // the API server registers addresses only
				addrs = append(addrs, addr.Unmap())
			}
		}
	}
	return addrs
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
