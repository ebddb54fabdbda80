package portal

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
)

// nameServer says the same address to every name, and notes the names.
type nameServer struct {
	conn net.PacketConn
	mu   sync.Mutex
	says netip.Addr
	seen []string
}

func newNameServer(t *testing.T) *nameServer {
	t.Helper()
	conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &nameServer{conn: conn}
	var serving sync.WaitGroup
	serving.Go(func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(s.reply(buf[:n]), from)
		}
	})
	t.Cleanup(func() {
		_ = conn.Close()
		serving.Wait()
	})
	return s
}

// reply answers one question (RFC 1035 §4).
func (s *nameServer) reply(query []byte) []byte {
	end, labels := 12, []string{}
	for query[end] != 0 {
		next := end + 1 + int(query[end])
		labels = append(labels, string(query[end+1:next]))
		end = next
	}
	end += 5
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, strings.Join(labels, "."))
	out := append([]byte{}, query[:end]...)
	out[2], out[3] = 0x81, 0x80
	clear(out[6:12])
	kind, address := binary.BigEndian.Uint16(query[end-4:]), s.says.AsSlice()
	if kind == 1 && s.says.Is4() || kind == 28 && s.says.Is6() {
		out[7] = 1
		out = append(out, 0xc0, 12, 0, byte(kind), 0, 1, 0, 0, 0, 0, 0, byte(len(address)))
		out = append(out, address...)
	}
	return out
}

func (s *nameServer) become(addr string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.says, s.seen = netip.MustParseAddr(addr), nil
}

func TestANameLeadsToAServiceOrNowhere(t *testing.T) {
	names := newNameServer(t)
	victim, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	reached := make(chan struct{}, 100)
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			conn, err := victim.Accept()
			if err != nil {
				return
			}
			reached <- struct{}{}
			_ = conn.Close()
		}
	})
	t.Cleanup(accepting.Wait)
	t.Cleanup(func() { _ = victim.Close() })
	_, port, _ := net.SplitHostPort(victim.Addr().String())
	apiServer := netip.MustParseAddr("10.96.0.1")
	d := &dialer{
		namespace: "zaentrum", deny: func(a netip.Addr) (string, bool) { return "the API server", a == apiServer },
		resolver: &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "udp", names.conn.LocalAddr().String())
		}},
	}
	for _, addr := range []string{
		"127.0.0.1", "127.0.0.2", "0.0.0.0", "169.254.169.254", "169.254.1.1", "fe80::1", "::1", "::", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "fd00:ec2::254",
		"100.100.100.200", "224.0.0.1", "10.96.0.1", "::ffff:10.96.0.1",
	} {
		names.become(addr)
		for _, host := range []string{"example", "example.other.svc"} {
			conn, err := d.dial(t.Context(), "tcp", net.JoinHostPort(host, port))
			if err == nil {
				_ = conn.Close()
			}
			if !errors.Is(err, errAddress) {
				t.Errorf("%s as %s: %v", host, addr, err)
			}
		}
		for i, want := range []string{"example.zaentrum.svc", "example.other.svc"} {
			names.mu.Lock()
			if !slices.ContainsFunc(names.seen, func(n string) bool { return n == want || strings.HasPrefix(n, want+".") }) || slices.Contains(names.seen, "example") {
				t.Errorf("%d: asked for %v", i, names.seen)
			}
			names.mu.Unlock()
		}
	}
	for _, addr := range []string{"127.0.0.1:" + port, "[::1]:" + port, "10.0.0.1:80", ":80", "no-port"} {
		if _, err := d.dial(t.Context(), "tcp", addr); !errors.Is(err, errAddress) {
			t.Errorf("%s: %v", addr, err)
		}
	}
	if len(reached) > 0 {
		t.Errorf("loopback was reached %d times", len(reached))
	}
	// The listener does count.
	d.resolve = map[string]string{"example": victim.Addr().String()}
	conn, err := d.dial(t.Context(), "tcp", "example:80")
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	<-reached
}
