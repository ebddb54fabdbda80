package chart

import (
	"encoding/binary"
	"net/netip"
	"testing"
)

func TestAddresses(t *testing.T) {
	deny := func(a netip.Addr) (string, bool) {
		return "the cluster's API server", a == netip.MustParseAddr("10.96.0.1")
	}
	for addr, want := range map[string]string{
		"127.0.0.1":                  "a loopback address",
		"127.255.1.2":                "a loopback address",
		"::1":                        "a loopback address",
		"::ffff:127.0.0.1":           "a loopback address",
		"::127.0.0.1":                "a loopback address",
		"::ffff:0:127.0.0.1":         "a loopback address",
		"64:ff9b::127.0.0.1":         "a loopback address",
		"64:ff9b:1::127.0.0.1":       "a loopback address",
		"2002:7f00:1::":              "a loopback address",
		"2001:0:7f00:1::":            "a loopback address",
		"2001:0:102:304::80ff:fffe":  "a loopback address", // the client's address is stored inverted
		"fe80::5efe:127.0.0.1":       "a link-local address",
		"fd00::5efe:127.0.0.1":       "a loopback address",
		"0.0.0.0":                    "an unspecified address",
		"0.1.2.3":                    "an unspecified address",
		"::":                         "an unspecified address",
		"::ffff:0.0.0.0":             "an unspecified address",
		"169.254.1.1":                "a link-local address",
		"fe80::1":                    "a link-local address",
		"fe80::1%eth0":               "a link-local address",
		"169.254.169.254":            "a cloud metadata address",
		"::ffff:169.254.169.254":     "a cloud metadata address",
		"64:ff9b::a9fe:a9fe":         "a cloud metadata address",
		"64:ff9b:1:a9fe:a9:fe00::":   "a cloud metadata address", // a /48 of the operator's choice
		"64:ff9b:1::0.0.0.0":         "an unspecified address",
		"64:ff9b:1::0.1.2.3":         "an unspecified address",
		"64:ff9b:1::100.100.100.200": "a cloud metadata address",
		"64:ff9b:1:abcd::a9fe:a9fe":  "a cloud metadata address",
		"2002:a9fe:a9fe::1":          "a cloud metadata address",
		"2001:0:a9fe:a9fe::1":        "a cloud metadata address",
		"::ffff:100.100.100.200":     "a cloud metadata address",
		"::ffff:255.255.255.255":     "a reserved address",
		"64:ff9b:1::140.82.121.33":   "",
		"64:ff9b:1:8c52:79:2100::":   "",
		"2002:8c52:7921::1":          "",
		"fd00:ec2::254":              "a cloud metadata address",
		"fd20:ce::254":               "a cloud metadata address",
		"100.100.100.200":            "a cloud metadata address",
		"224.0.0.1":                  "a multicast address",
		"ff02::1":                    "a multicast address",
		"255.255.255.255":            "a reserved address",
		"10.96.0.1":                  "the cluster's API server",
		"::ffff:10.96.0.1":           "the cluster's API server",
		"64:ff9b::10.96.0.1":         "the cluster's API server",
		"10.0.0.1":                   "",
		"172.16.0.1":                 "",
		"192.168.1.1":                "",
		"fd12:3456::1":               "",
		"::ffff:192.168.1.1":         "",
		"100.64.0.1":                 "",
		"140.82.121.33":              "",
		"2606:50c0:8000::153":        "",
		"64:ff9b::140.82.121.33":     "",
	} {
		if got := refuseAddress(netip.MustParseAddr(addr), deny); got != want {
			t.Errorf("%s: got %q, want %q", addr, got, want)
		}
	}
	if refuseAddress(netip.Addr{}, nil) == "" {
		t.Error("no address at all is let through")
	}
}

// FuzzDialGuard carries an IPv4 address in every way there is, and wants none of them let through when the
// address itself is refused.
func FuzzDialGuard(f *testing.F) {
	for _, a := range []string{
		"127.0.0.1", "0.0.0.0", "0.1.2.3", "169.254.169.254", "169.254.1.1", "100.100.100.200", "168.63.129.16", "192.0.0.192",
		"224.0.0.1", "239.255.255.250", "255.255.255.255", "240.0.0.1", "10.96.0.1", "10.0.0.1", "192.168.0.1", "140.82.121.33",
	} {
		v4 := netip.MustParseAddr(a).As4()
		f.Add(v4[0], v4[1], v4[2], v4[3], uint64(0), uint64(0))
		f.Add(v4[0], v4[1], v4[2], v4[3], uint64(0x20010db8deadbeef), uint64(0x0123456789abcdef))
	}
	deny := func(a netip.Addr) (string, bool) {
		return "the cluster's API server", a == netip.MustParseAddr("10.96.0.1")
	}
	f.Fuzz(func(t *testing.T, a, b, c, d byte, high, low uint64) {
		v4 := netip.AddrFrom4([4]byte{a, b, c, d})
		why := refuseAddress(v4, deny)
		if (v4.IsLoopback() || v4.IsUnspecified() || v4.IsMulticast() || v4.IsLinkLocalUnicast() || v4.As4()[0] == 0 || v4.As4()[0] >= 240) != (why != "") &&
			why != "a cloud metadata address" && why != "the cluster's API server" {
			t.Errorf("%s: %q", v4, why)
		}
		if v4.IsPrivate() && why != "" && why != "the cluster's API server" {
			t.Errorf("%s is private, and refused: %s", v4, why)
		}
		var rest [16]byte
		binary.BigEndian.PutUint64(rest[:8], high)
		binary.BigEndian.PutUint64(rest[8:], low)
		for form, addr := range carriers(v4.As4(), rest) {
			if got := refuseAddress(addr, deny); why != "" && got == "" {
				t.Errorf("%s is refused (%s), and let through as %s (%s)", v4, why, addr, form)
			}
			if got := refuseAddress(addr.WithZone("eth0"), deny); why != "" && got == "" {
				t.Errorf("%s is refused (%s), and let through in a zone as %s (%s)", v4, why, addr, form)
			}
		}
	})
}

// carriers are IPv6 addresses that lead to an IPv4 one, with the rest of each taken from other bytes.
func carriers(v4 [4]byte, rest [16]byte) map[string]netip.Addr {
	at := func(prefix string, places ...int) netip.Addr {
		p := netip.MustParsePrefix(prefix)
		b := rest
		known := p.Addr().As16()
		copy(b[:p.Bits()/8], known[:p.Bits()/8])
		for i, place := range places {
			b[place] = v4[i]
		}
		return netip.AddrFrom16(b)
	}
	teredo := at("2001::/32")
	b := teredo.As16()
	for i := range v4 {
		b[12+i] = ^v4[i]
	}
	return map[string]netip.Addr{
		"mapped":             at("::ffff:0:0/96", 12, 13, 14, 15),
		"translated":         at("::ffff:0:0:0/96", 12, 13, 14, 15),
		"NAT64":              at("64:ff9b::/96", 12, 13, 14, 15),
		"6to4":               at("2002::/16", 2, 3, 4, 5),
		"a Teredo server":    at("2001::/32", 4, 5, 6, 7),
		"a Teredo client":    netip.AddrFrom16(b),
		"ISATAP":             at("fd00::5efe:0:0/96", 12, 13, 14, 15),
		"local NAT64, a /96": at("64:ff9b:1::/96", 12, 13, 14, 15),
	}
}
