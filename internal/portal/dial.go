package portal

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"zaentrum.io/zae/internal/chart"
)

// dialTimeout bounds the making of one connection to an addon.
const dialTimeout = 5 * time.Second

// errAddress says that a name leads to an address where no Service is.
var errAddress = errors.New("leads to an address that is no Service's")

// dialer connects to Services by their names, and to nothing else: what a name leads to is judged when the socket is
// about to connect, so that a name cannot change its meaning in between.
type dialer struct {
	// namespace is that of Services whose names are one label; empty leaves such names as they are.
	namespace string
	// resolve is Options.Resolve: what development reaches elsewhere, unjudged.
	resolve map[string]string
	// deny names more addresses to refuse; see Options.Deny.
	deny func(netip.Addr) (string, bool)
	// resolver is the network's when nil; tests have one of their own.
	resolver *net.Resolver
}

func (d *dialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, errAddress
	}
	if to, ok := d.resolve[host]; ok {
		return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, to)
	}
	if _, err := netip.ParseAddr(host); err == nil || host == "" {
		return nil, errAddress // a Service has a name
	}
	if !strings.Contains(host, ".") && d.namespace != "" {
		// One label alone is looked for in all search domains, the last of which are the node's.
		addr = net.JoinHostPort(host+"."+d.namespace+".svc", port)
	}
	own := net.Dialer{
		Timeout: dialTimeout, Resolver: d.resolver,
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			ap, err := netip.ParseAddrPort(address)
			if err != nil || chart.RefuseAddress(ap.Addr(), d.deny) != "" {
				return errAddress
			}
			return nil
		},
	}
	return own.DialContext(ctx, network, addr)
}
