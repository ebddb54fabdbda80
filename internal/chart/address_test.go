package chart

import (
	"net/netip"
	"testing"
)

func TestAddresses(t *testing.T) {
	deny := func(a netip.Addr) (string, bool) {
		return "the cluster's API server", a == netip.MustParseAddr("10.96.0.1")
	}
	for addr, want := range map[string]string{
		"127.0.0.1":                 "a loopback address",
		"127.255.1.2":               "a loopback address",
		"::1":                       "a loopback address",
		"::ffff:127.0.0.1":          "a loopback address",
		"::127.0.0.1":               "a loopback address",
		"::ffff:0:127.0.0.1":        "a loopback address",
		"64:ff9b::127.0.0.1":        "a loopback address",
		"64:ff9b:1::127.0.0.1":      "a loopback address",
		"2002:7f00:1::":             "a loopback address",
		"2001:0:7f00:1::":           "a loopback address",
		"2001:0:102:304::80ff:fffe": "a loopback address", // the client's address is stored inverted
		"fe80::5efe:127.0.0.1":      "a link-local address",
		"fd00::5efe:127.0.0.1":      "a loopback address",
		"0.0.0.0":                   "an unspecified address",
		"0.1.2.3":                   "an unspecified address",
		"::":                        "an unspecified address",
		"::ffff:0.0.0.0":            "an unspecified address",
		"169.254.1.1":               "a link-local address",
		"fe80::1":                   "a link-local address",
		"fe80::1%eth0":              "a link-local address",
		"169.254.169.254":           "a cloud metadata address",
		"::ffff:169.254.169.254":    "a cloud metadata address",
		"64:ff9b::a9fe:a9fe":        "a cloud metadata address",
		"64:ff9b:1:a9fe:a9:fe00::":  "a cloud metadata address", // a /48 of the operator's choice
		"fd00:ec2::254":             "a cloud metadata address",
		"fd20:ce::254":              "a cloud metadata address",
		"100.100.100.200":           "a cloud metadata address",
		"224.0.0.1":                 "a multicast address",
		"ff02::1":                   "a multicast address",
		"255.255.255.255":           "a reserved address",
		"10.96.0.1":                 "the cluster's API server",
		"::ffff:10.96.0.1":          "the cluster's API server",
		"64:ff9b::10.96.0.1":        "the cluster's API server",
		"10.0.0.1":                  "",
		"172.16.0.1":                "",
		"192.168.1.1":               "",
		"fd12:3456::1":              "",
		"::ffff:192.168.1.1":        "",
		"100.64.0.1":                "",
		"140.82.121.33":             "",
		"2606:50c0:8000::153":       "",
		"64:ff9b::140.82.121.33":    "",
	} {
		if got := refuseAddress(netip.MustParseAddr(addr), deny); got != want {
			t.Errorf("%s: got %q, want %q", addr, got, want)
		}
	}
	if refuseAddress(netip.Addr{}, nil) == "" {
		t.Error("no address at all is let through")
	}
}
