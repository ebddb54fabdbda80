package capability_test

import (
	"net/netip"
	"strings"
	"testing"

	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/registry/capability"
)

func TestAnAddressIsAServiceInOneForm(t *testing.T) {
	for in, want := range map[string]string{
		"http://my-addon":                              "http://my-addon",
		"http://my-addon/":                             "http://my-addon",
		"HTTP://My-Addon:80":                           "http://my-addon",
		"http://my-addon:8080":                         "http://my-addon:8080",
		"http://my-addon.zaentrum.svc":                 "http://my-addon",
		"http://my-addon.zaentrum.svc.cluster.local:1": "http://my-addon:1",
		"http://my-addon.other.svc":                    "http://my-addon.other.svc",
		"http://my-addon.other.svc.cluster.local:8080": "http://my-addon.other.svc:8080",
	} {
		a, err := capability.ParseAddress(in, "zaentrum")
		if err != nil || a.URL() != want {
			t.Errorf("%s: %s, %v", in, a.URL(), err)
			continue
		}
		again, err := capability.ParseAddress(a.URL(), "zaentrum")
		if err != nil || again != a {
			t.Errorf("%s reads as %+v, %v", a.URL(), again, err)
		}
	}
	if a, _ := capability.ParseAddress("http://a.other.svc", "zaentrum"); a.Workload() != "a.other" {
		t.Errorf("workload %s", a.Workload())
	}
}

// notServices are addresses that must be refused.
var notServices = []string{
	"", "my-addon", "my-addon:8080", "https://my-addon", "ftp://my-addon", "file:///etc/passwd", "http:my-addon", "http://", "http:///x", "//my-addon", "javascript:alert(1)",
	// IP addresses, in every notation that something takes for one.
	"http://127.0.0.1", "http://127.0.0.1:80", "http://10.0.0.1", "http://169.254.169.254/", "http://127.1", "http://127.0.1", "http://0", "http://2130706433", "http://0x7f000001",
	"http://0x7f.0.0.1", "http://0177.0.0.1", "http://017700000001", "http://0b1", "http://[::1]", "http://[::1]:80", "http://[::ffff:127.0.0.1]", "http://[fe80::1%25eth0]",
	"http://::1", "http://1", "http://127.0.0.1.", "http://①②⑦.0.0.1", "http://127。0。0。1", "http://%31%32%37.0.0.1", "http://7f000001.", "http://127.0.0.1.svc",
	"http://127.0.0.svc", "http://1.2.svc",
	// Names that lead elsewhere.
	"http://localhost", "http://LOCALHOST:80", "http://example.org", "http://my-addon.other", "http://my-addon.other.svc.example.org", "http://my-addon.svc",
	"http://my-addon.other.svc.cluster.local.", "http://my-addon.", "http://.my-addon", "http://my..addon", "http://a.b.c.svc", "http://metadata.google.internal",
	"http://my_addon", "http://-my", "http://my-", "http://" + strings.Repeat("a", 64), "http://my%2eaddon", "http://my-addon.other%2esvc", "http://my-addon\u202e",
	// The cluster's own.
	"http://kubernetes.default.svc", "http://KUBERNETES.default.svc:443", "http://kubernetes.default.svc.cluster.local", "http://kube-dns.kube-system.svc", "http://x.kube-public.svc",
	// More than a Service.
	"http://user:c4nary@my-addon", "http://c4nary@my-addon", "http://my-addon@c4nary", "http://my-addon/path", "http://my-addon/?q", "http://my-addon?", "http://my-addon#", "http://my-addon/#x",
	"http://my-addon//", "http://my-addon/..", "http://my-addon\\c4nary", "http://my-addon:", "http://my-addon:0", "http://my-addon:65536", "http://my-addon:08", "http://my-addon:-1",
	"http://my-addon:+80", "http://my-addon:http", "http://my-addon:80:80", "http://my-addon 80", "http://my-addon\n", "\thttp://my-addon", "http://my-addon\x00", "http://" + strings.Repeat("a/", 400),
}

func TestAnAddressThatIsNoServiceIsRefusedAndNotQuoted(t *testing.T) {
	for _, in := range notServices {
		a, err := capability.ParseAddress(in, "zaentrum")
		if fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%q: %+v, %v", in, a, err)
			continue
		}
		if !strings.HasPrefix(err.Error(), "proxyUrl: ") || strings.Contains(err.Error(), "c4nary") || fault.From(err).Hint == "" {
			t.Errorf("%q: %v", in, err)
		}
	}
	for _, in := range []string{"http://svc", "http://svc.other.svc"} {
		if _, err := capability.ParseAddress(in, "zaentrum"); err != nil {
			t.Errorf("a Service named svc: %v", err)
		}
	}
}

func FuzzParseAddress(f *testing.F) {
	for _, in := range notServices {
		f.Add(in)
	}
	f.Add("http://my-addon:8080")
	f.Add("http://my-addon.other.svc.cluster.local/")
	f.Fuzz(func(t *testing.T, raw string) {
		a, err := capability.ParseAddress(raw, "zaentrum")
		if err != nil {
			if fault.CodeOf(err) != fault.Invalid {
				t.Fatalf("%v", err)
			}
			return
		}
		again, err := capability.ParseAddress(a.URL(), "zaentrum")
		if err != nil || again != a {
			t.Fatalf("%q is kept as %s, which reads as %+v, %v", raw, a.URL(), again, err)
		}
		if _, err := netip.ParseAddr(a.Host()); err == nil {
			t.Fatalf("%q is an IP address", raw)
		}
		if first := a.Service[0]; first < 'a' || first > 'z' || a.Namespace == "zaentrum" || a.Port < 1 || a.Port > 65535 {
			t.Fatalf("%q reads as %+v", raw, a)
		}
	})
}
