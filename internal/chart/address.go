package chart

import "net/netip"

// ranges that no chart is fetched from, beside those that netip.Addr knows by itself. Private ranges
// (RFC 1918, unique local) are not among them: registries live there.
var refusedRanges = []struct {
	prefix netip.Prefix
	why    string
}{
	{netip.MustParsePrefix("169.254.169.254/32"), "a cloud metadata address"},
	{netip.MustParsePrefix("100.100.100.200/32"), "a cloud metadata address"},
	{netip.MustParsePrefix("168.63.129.16/32"), "a cloud metadata address"},
	{netip.MustParsePrefix("192.0.0.192/32"), "a cloud metadata address"},
	{netip.MustParsePrefix("fd00:ec2::/32"), "a cloud metadata address"},
	{netip.MustParsePrefix("fd20:ce::254/128"), "a cloud metadata address"},
	{netip.MustParsePrefix("fd00:42::42/128"), "a cloud metadata address"},
	{netip.MustParsePrefix("0.0.0.0/8"), "an unspecified address"},
	{netip.MustParsePrefix("240.0.0.0/4"), "a reserved address"},
}

// RefuseAddress says why nothing that others name is reached at a: loopback, link-local, metadata and the like, and
// what deny, which may be nil, names besides. It is empty when a may be reached.
func RefuseAddress(a netip.Addr, deny func(netip.Addr) (string, bool)) string {
	return refuseAddress(a, deny)
}

// refuseAddress says why no connection may be made to a; empty when one may. An IPv6 address that carries
// an IPv4 one is judged by both, since a gateway may lead to the inner one.
func refuseAddress(a netip.Addr, deny func(netip.Addr) (string, bool)) string {
	for _, a := range carried(a.WithZone("")) {
		switch {
		case !a.IsValid():
			return "not an address"
		case a.IsLoopback():
			return "a loopback address"
		case a.IsUnspecified():
			return "an unspecified address"
		case a.IsMulticast():
			return "a multicast address"
		}
		for _, r := range refusedRanges {
			if r.prefix.Contains(a) {
				return r.why
			}
		}
		if a.IsLinkLocalUnicast() {
			return "a link-local address"
		}
		if deny != nil {
			if why, denied := deny(a); denied {
				return why
			}
		}
	}
	return ""
}

var (
	compatible  = netip.MustParsePrefix("::/96")                    // IPv4-compatible, RFC 4291 §2.5.5.1
	translated  = netip.MustParsePrefix("::ffff:0:0:0/96")          // IPv4-translated, RFC 2765
	nat64       = netip.MustParsePrefix("64:ff9b::/96")             // RFC 6052
	nat64Local  = netip.MustParsePrefix("64:ff9b:1::/48")           // RFC 8215
	sixToFour   = netip.MustParsePrefix("2002::/16")                // RFC 3056
	teredo      = netip.MustParsePrefix("2001::/32")                // RFC 4380
	isatapMarks = [][4]byte{{0, 0, 0x5e, 0xfe}, {2, 0, 0x5e, 0xfe}} // RFC 5214
)

// carried is a itself, an IPv4-mapped one as IPv4, and the IPv4 addresses inside it.
func carried(a netip.Addr) []netip.Addr {
	a = a.Unmap()
	out := []netip.Addr{a}
	if !a.Is6() {
		return out
	}
	b := a.As16()
	inner := func(i int) netip.Addr { return netip.AddrFrom4([4]byte(b[i : i+4])) }
	switch {
	case compatible.Contains(a):
		if a != netip.IPv6Loopback() && a != netip.IPv6Unspecified() {
			out = append(out, inner(12))
		}
	case translated.Contains(a), nat64.Contains(a):
		out = append(out, inner(12))
	case nat64Local.Contains(a):
		// The operator of the network chooses where in it the IPv4 address lies (RFC 6052 §2.2). What starts
		// with zero in one reading belongs to another; the last one counts unless it is empty.
		for _, v4 := range []netip.Addr{
			netip.AddrFrom4([4]byte{b[6], b[7], b[9], b[10]}), netip.AddrFrom4([4]byte{b[7], b[9], b[10], b[11]}), inner(9),
		} {
			if v4.As4()[0] != 0 {
				out = append(out, v4)
			}
		}
		if v4 := inner(12); !v4.IsUnspecified() || len(out) == 1 {
			out = append(out, v4)
		}
	case sixToFour.Contains(a):
		out = append(out, inner(2))
	case teredo.Contains(a):
		out = append(out, inner(4), netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]}))
	}
	for _, mark := range isatapMarks {
		if [4]byte(b[8:12]) == mark {
			out = append(out, inner(12))
		}
	}
	return out
}
