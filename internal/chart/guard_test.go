package chart

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/fault"
)

// victim listens on the loopback addresses, and counts who connects.
type victim struct {
	port        string
	connections atomic.Int32
}

func newVictim(t *testing.T) *victim {
	t.Helper()
	v := &victim{port: "0"}
	var accepting sync.WaitGroup
	var listeners []net.Listener
	t.Cleanup(func() {
		for _, l := range listeners {
			_ = l.Close() // ends accepting
		}
		accepting.Wait()
	})
	for _, host := range []string{"127.0.0.1", "::1"} {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(host, v.port))
		if err != nil && host == "::1" {
			t.Logf("without IPv6: %v", err)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		_, v.port, _ = net.SplitHostPort(l.Addr().String())
		listeners = append(listeners, l)
		accepting.Go(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				v.connections.Add(1)
				_ = conn.Close() // nothing is said
			}
		})
	}
	return v
}

// loopbackForms are ways to write, or to mean, an address of this machine. Every name that is looked up is one:
// the tests' name server says 127.0.0.1 and ::1 to all.
var loopbackForms = []string{
	"127.0.0.1", "127.1", "127.0.0.1.", "0177.0.0.1", "2130706433", "0x7f000001", "0x7f.1", "017700000001",
	"0.0.0.0", "0", "localhost", "LOCALHOST", "localhost.", "registry.example.org", "１２７.0.0.1",
	"[::1]", "[0:0:0:0:0:0:0:1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:0.0.0.0]", "[::127.0.0.1]",
	"[::ffff:0:127.0.0.1]", "[64:ff9b::127.0.0.1]", "[64:ff9b:1::127.0.0.1]", "[2002:7f00:1::]", "[2001:0:7f00:1::]",
	"[fe80::1]", "[fe80::1%25lo]", "[::1%25lo]",
}

// TestForbiddenTargetsAreNeverReached tries every way to listeners on loopback that are not allowed, and wants no
// connection made to them.
func TestForbiddenTargetsAreNeverReached(t *testing.T) {
	v := newVictim(t)
	everything := newNames(t, always("127.0.0.1", "::1"))
	door := newRegistry(t, false) // allowed, and sends on to the victim
	door.push("example", "1.2.0", example(t, "one"))
	gate, second := serve(t, true, nil), serve(t, true, nil) // the same, over https
	throughDoor, throughGate := door.source("example", "1.2.0", ""), link(gate, "/example.tgz")

	redirect := func(to string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Location", to) // as it is written here
			w.WriteHeader(http.StatusTemporaryRedirect)
			return true
		}
	}
	of := func(path, to string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			return strings.Contains(r.URL.Path, path) && redirect(to)(w, r)
		}
	}
	realm := func(scheme, to string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("WWW-Authenticate", scheme+` realm="`+to+`",service="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
	}
	type way struct {
		src  v1alpha1.ChartSource
		prep func()
	}
	tried := 0
	for _, host := range loopbackForms {
		host += ":" + v.port
		ways := map[string]way{
			"an https reference": {v1alpha1.ChartSource{Ref: "https://" + host + "/example.tgz"}, nil},
			"an oci reference":   {v1alpha1.ChartSource{Ref: "oci://" + host + "/example", Version: "1"}, nil},
		}
		for _, scheme := range []string{"https", "http"} {
			to := scheme + "://" + host + "/x"
			for how, prep := range map[string]func(){
				"a redirect of a registry":   func() { door.intercept(redirect(to)) },
				"a redirect of a manifest":   func() { door.intercept(of("/manifests/", to)) },
				"a redirect of a layer":      func() { door.intercept(of("/blobs/", to)) },
				"a token server":             func() { door.intercept(realm("Bearer", to)) },
				"a token server, in capital": func() { door.intercept(realm("BEARER", to)) },
			} {
				ways[how+" to "+scheme] = way{throughDoor, prep}
			}
			ways["a redirect of a link to "+scheme] = way{throughGate, func() { gate.intercept(redirect(to)) }}
			ways["the second redirect of a link to "+scheme] = way{throughGate, func() {
				gate.intercept(redirect(second.URL + "/next"))
				second.intercept(redirect(to))
			}}
		}
		ways["a redirect without a scheme"] = way{throughGate, func() { gate.intercept(redirect("//" + host + "/x")) }}
		ways["a redirect with credentials"] = way{throughGate, func() { gate.intercept(redirect("https://example.org@" + host + "/x")) }}
		for how, w := range ways {
			tried++
			door.recover()
			if w.prep != nil {
				w.prep()
			}
			f := fetcher(t, FetcherOptions{resolver: everything.resolver(), roots: roots(gate, second)}, door.server, gate, second)
			_, err := f.Fetch(t.Context(), w.src)
			if code := fault.CodeOf(err); code != fault.Chart && code != fault.Registry && code != fault.Invalid {
				t.Errorf("%s by %s: got %v", host, how, err)
			}
			if n := v.connections.Load(); n > 0 {
				t.Fatalf("%s by %s: reached by %d connections", host, how, n)
			}
		}
	}
	t.Logf("%d ways, %d connections", tried, v.connections.Load())

	// The listeners do count: allowed, they are reached.
	victim := "127.0.0.1:" + v.port
	f := fetcher(t, FetcherOptions{AllowLoopback: []string{victim}}, door.server)
	if _, err := f.Fetch(t.Context(), v1alpha1.ChartSource{Ref: "oci://" + victim + "/example", Version: "1"}); err == nil || v.connections.Load() == 0 {
		t.Errorf("%v, %d connections", err, v.connections.Load())
	}
}

// TestANameMayNotChangeItsMeaning is about names that lead outside first, and to this machine then. 127.0.0.2
// plays the outside.
func TestANameMayNotChangeItsMeaning(t *testing.T) {
	v := newVictim(t)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.2:"+v.port)
	if err != nil {
		t.Fatal(err)
	}
	one := example(t, "one")
	outside := serveOn(t, l, &archives{data: one})
	dns := newNames(t, nil)
	f := fetcher(t, FetcherOptions{
		resolver: dns.resolver(), roots: roots(outside),
		outside: func(a netip.Addr) bool { return a == netip.MustParseAddr("127.0.0.2") },
	})
	// The certificate is for example.com.
	src := v1alpha1.ChartSource{Ref: "https://example.com:" + v.port + "/a.tgz"}
	refused := func(parts ...string) {
		t.Helper()
		outside.CloseClientConnections()
		f.courier.base.CloseIdleConnections()
		_, err := f.Fetch(t.Context(), src)
		wantFault(t, err, fault.Chart, parts...)
		if n := v.connections.Load(); n != 0 {
			t.Fatalf("%d connections", n)
		}
	}

	dns.become("127.0.0.2")
	mustFetch(t, f, src, one)
	dns.become("127.0.0.1")
	refused("a loopback address")
	dns.become("::1", "127.0.0.1")
	refused("a loopback address")
	dns.become("169.254.169.254")
	refused("a cloud metadata address")
	dns.become("::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe")
	refused("a cloud metadata address")

	// Of several addresses only those outside are used.
	dns.become("127.0.0.1", "127.0.0.2", "::1")
	f.courier.base.CloseIdleConnections()
	mustFetch(t, f, src, one)
	if n := v.connections.Load(); n != 0 {
		t.Errorf("%d connections", n)
	}

	// Between two hops.
	dns.become("127.0.0.2")
	outside.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		dns.become("127.0.0.1")
		w.Header().Set("Connection", "close")
		http.Redirect(w, r, src.Ref+"?next", http.StatusFound)
		return true
	})
	refused("a loopback address")
	if hits := outside.asked(); len(hits) == 0 {
		t.Error("the first hop was not made")
	}
}

func TestRefusedAddressesAreNotTriedAgain(t *testing.T) {
	looked := atomic.Int32{}
	dns := newNames(t, func(string) []netip.Addr {
		looked.Add(1)
		return always("127.0.0.1")("")
	})
	f := fetcher(t, FetcherOptions{resolver: dns.resolver(), Sleep: noSleep(t)})
	_, err := f.Fetch(t.Context(), v1alpha1.ChartSource{Ref: "https://registry.example.org/a.tgz"})
	wantFault(t, err, fault.Chart, "chart https://registry.example.org/a.tgz: refusing to connect to a loopback address")
	if hint := fault.From(err).Hint; hint != hintAddress {
		t.Errorf("the way out: %q", hint)
	}
	if n := looked.Load(); n > 2 { // one for each family
		t.Errorf("looked up %d times", n)
	}
}

func TestAProxyIsUsedOnlyWhenConfigured(t *testing.T) {
	target := serve(t, true, &archives{data: example(t, "one")})
	var asked []string
	var mu sync.Mutex
	status := http.StatusOK
	proxy := serve(t, false, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.Method+" "+r.Host)
		mu.Unlock()
		if status != http.StatusOK {
			http.Error(w, "hunter2", status)
			return
		}
		tunnel(t, w, target.host())
	}))
	src := v1alpha1.ChartSource{Ref: "https://example.com/a.tgz"}
	nowhere := newNames(t, always())
	f := fetcher(t, FetcherOptions{Proxy: proxy.URL, roots: roots(target), resolver: nowhere.resolver()})
	mustFetch(t, f, src, example(t, "one"))
	if len(asked) != 1 || asked[0] != "CONNECT example.com:443" {
		t.Errorf("asked: %v", asked)
	}

	// What can be told without looking up is still refused here.
	asked = nil
	for _, host := range []string{"127.0.0.1", "[::ffff:127.0.0.1]", "169.254.169.254", "2130706433", "0x7f000001", "127.1", "localhost", "a.localhost.", "[64:ff9b::7f00:1]"} {
		_, err := f.Fetch(t.Context(), v1alpha1.ChartSource{Ref: "https://" + host + "/a.tgz"})
		wantFault(t, err, fault.Chart, "refusing to connect to")
	}
	if len(asked) != 0 {
		t.Errorf("the proxy was asked for %v", asked)
	}

	// A loopback registry is reached without it.
	door := newRegistry(t, false)
	door.push("example", "1.2.0", example(t, "two"))
	both := fetcher(t, FetcherOptions{Proxy: proxy.URL}, door.server)
	mustFetch(t, both, door.source("example", "1.2.0", ""), example(t, "two"))
	if len(asked) != 0 {
		t.Errorf("the proxy was asked for %v", asked)
	}

	// Its refusal is told as such, without its words.
	status = http.StatusForbidden
	f.courier.base.CloseIdleConnections()
	_, err := f.Fetch(t.Context(), v1alpha1.ChartSource{Ref: "https://example.com/b.tgz"})
	wantFault(t, err, fault.Registry, "https://example.com/b.tgz", "example.com", "the proxy answered with status 403")
	if strings.Contains(err.Error()+fault.From(err).Hint, "hunter2") {
		t.Errorf("quoted: %v", err)
	}

	for _, bad := range []string{"proxy:3128", "socks5://proxy", "http://", "http://user:hunter2@proxy:3128", "http://proxy/path", "http://%zz"} {
		_, err := NewFetcher(FetcherOptions{Proxy: bad})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// tunnel is what a proxy does for CONNECT, always to the same place.
func tunnel(t *testing.T, w http.ResponseWriter, to string) {
	far, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", to)
	if err != nil {
		t.Error(err)
		return
	}
	near, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	if _, err := fmt.Fprint(near, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		t.Error(err)
	}
	pipe(near, far)
}
