package operator

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"
)

// DenyAPIServer names the addresses of the cluster's own API server, which no chart reference may reach
// (contract §3): those of the host that the operator itself talks to, and the Service's, as given by the
// environment inside a cluster. Loopback addresses are left to the fetcher, which refuses them anyway.
func DenyAPIServer(ctx context.Context, config *rest.Config, serviceHost string) func(netip.Addr) (string, bool) {
	hosts := []string{serviceHost}
	if u, err := url.Parse(config.Host); err == nil && u.Hostname() != "" {
		hosts = append(hosts, u.Hostname())
	} else if host, _, err := net.SplitHostPort(config.Host); err == nil {
		hosts = append(hosts, host)
	} else {
		hosts = append(hosts, strings.Trim(config.Host, "[]"))
	}
	denied := map[netip.Addr]bool{}
	for _, host := range hosts {
		if host == "" {
			continue
		}
		// Names are looked up once: an API server that moves is the less likely danger than a lookup that hangs
		// on every connection.
		addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err != nil {
			continue
		}
		for _, addr := range addrs {
			if addr = addr.Unmap(); !addr.IsLoopback() {
				denied[addr] = true
			}
		}
	}
	return func(addr netip.Addr) (string, bool) {
		return "the cluster's API server", denied[addr.Unmap()]
	}
}
