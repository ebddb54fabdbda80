package chart

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
)

// names is a name server on loopback for tests.
type names struct {
	conn net.PacketConn
	mu   sync.Mutex
	// answer are the addresses of a name; none is no such name.
	answer func(name string) []netip.Addr
}

func newNames(t testing.TB, answer func(name string) []netip.Addr) *names {
	t.Helper()
	conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &names{conn: conn, answer: answer}
	var serving sync.WaitGroup
	serving.Go(n.serve)
	t.Cleanup(func() {
		_ = conn.Close() // ends serving
		serving.Wait()
	})
	return n
}

// become changes what every name means.
func (n *names) become(addrs ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.answer = always(addrs...)
}

func always(addrs ...string) func(string) []netip.Addr {
	var parsed []netip.Addr
	for _, a := range addrs {
		parsed = append(parsed, netip.MustParseAddr(a))
	}
	return func(string) []netip.Addr { return parsed }
}

func (n *names) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", n.conn.LocalAddr().String())
	}}
}

func (n *names) serve() {
	buf := make([]byte, 1500)
	for {
		size, from, err := n.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		if reply := n.reply(buf[:size]); reply != nil {
			_, _ = n.conn.WriteTo(reply, from) // a lost answer fails the test by itself
		}
	}
}

// reply answers one question (RFC 1035 §4).
func (n *names) reply(query []byte) []byte {
	const header = 12
	end, labels := header, []string{}
	for end < len(query) && query[end] != 0 {
		next := end + 1 + int(query[end])
		if next > len(query) {
			return nil
		}
		labels = append(labels, string(query[end+1:next]))
		end = next
	}
	end += 5 // the root, the type and the class
	if end > len(query) {
		return nil
	}
	n.mu.Lock()
	addrs := n.answer(strings.Join(labels, "."))
	n.mu.Unlock()
	var answers []byte
	count, kind := uint16(0), binary.BigEndian.Uint16(query[end-4:])
	for _, a := range addrs {
		if (kind == 1) != a.Is4() { // A, else AAAA
			continue
		}
		count++
		answers = append(answers, 0xc0, header, 0, byte(kind), 0, 1, 0, 0, 0, 0, 0, byte(a.BitLen()/8))
		answers = append(answers, a.AsSlice()...)
	}
	reply := append([]byte(nil), query[:end]...)
	reply[2], reply[3] = 0x84, 0 // an answer, authoritative
	if len(addrs) == 0 {
		reply[3] = 3 // no such name
	}
	binary.BigEndian.PutUint16(reply[4:], 1)
	binary.BigEndian.PutUint16(reply[6:], count)
	binary.BigEndian.PutUint32(reply[8:], 0)
	return append(reply, answers...)
}
