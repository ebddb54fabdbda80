package chart

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/fault"
)

// archives serves content under any path, with validators.
type archives struct {
	data     []byte
	etag     string
	modified string
}

func (a *archives) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if a.etag != "" {
		w.Header().Set("ETag", a.etag)
	}
	if a.modified != "" {
		w.Header().Set("Last-Modified", a.modified)
	}
	if (a.etag != "" && r.Header.Get("If-None-Match") == a.etag) || (a.modified != "" && r.Header.Get("If-Modified-Since") == a.modified) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(a.data)
}

func link(s *server, path string) v1alpha1.ChartSource {
	return v1alpha1.ChartSource{Ref: s.URL + path, Version: "ignored"}
}

func TestAnArchiveByHTTPS(t *testing.T) {
	for _, validator := range []string{"etag", "modified", ""} {
		t.Run("validator "+validator, func(t *testing.T) {
			one, two := example(t, "one"), example(t, "two")
			h := &archives{data: one}
			change := func(data []byte, version string) {
				h.data = data
				switch validator {
				case "etag":
					h.etag = `"` + version + `"`
				case "modified":
					h.modified = "Fri, 02 Oct 2026 00:00:0" + version + " GMT"
				}
			}
			change(one, "1")
			s := serve(t, true, h)
			statuses := 0
			f := fetcher(t, FetcherOptions{CacheDir: t.TempDir(), roots: roots(s)}, s)
			src := link(s, "/charts/Example-1.2.0.tgz?token=hunter2")
			mustFetch(t, f, src, one)
			s.seen = func(r *http.Request) {
				if r.Header.Get("If-None-Match") != "" || r.Header.Get("If-Modified-Since") != "" {
					statuses++
				}
			}
			mustFetch(t, f, src, one)
			change(two, "2")
			mustFetch(t, f, src, two)
			mustFetch(t, f, src, two)
			if want := 3; validator != "" && statuses != want {
				t.Errorf("%d conditional requests, want %d", statuses, want)
			}
			s.asked()
			src.Digest = digestOf(one)
			mustFetch(t, f, src, one)
			if hits := s.asked(); len(hits) != 0 {
				t.Errorf("pinned and at hand, and asked: %v", hits)
			}
			src.Digest = digestOf([]byte("x"))
			_, err := f.Fetch(t.Context(), src)
			wantFault(t, err, fault.Digest, digestOf(two))

			src.Digest = ""
			s.fail(http.StatusBadGateway)
			if a := mustFetch(t, f, src, two); !strings.Contains(a.Stale, "status 502") || strings.Contains(a.Stale, "hunter2") {
				t.Error(a.Stale)
			}
		})
	}
}

// TestErrorsCarryNoQuery fails in every way there is and looks for the query.
func TestErrorsCarryNoQuery(t *testing.T) {
	const secret = "hunter2"
	trusted, untrusted := serve(t, true, nil), serve(t, true, nil)
	big := strings.Repeat("x", maxResponse+1)
	for rule, tc := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request)
		code   fault.Code
		says   string
	}{
		"not found":           {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, fault.ChartMissing, "not found"},
		"gone":                {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(410) }, fault.ChartMissing, "not found"},
		"not allowed":         {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }, fault.ChartMissing, "not public"},
		"a server error":      {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, fault.Registry, "status 500"},
		"an odd status":       {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(418) }, fault.Registry, "status 418"},
		"not modified at all": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(304) }, fault.Registry, "status 304"},
		"nothing":             {func(http.ResponseWriter, *http.Request) {}, fault.Chart, "empty"},
		"a break":             {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, fault.Registry, "connection broke"},
		"too much, announced": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(big)))
			_, _ = w.Write([]byte(big))
		}, fault.Chart, "10.0 MiB (10485761 bytes) is over the limit of 10 MiB"},
		"too much, not announced": {func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			_, _ = w.Write([]byte(big))
		}, fault.Chart, "at least 10.0 MiB (10485761 bytes) is over the limit of 10 MiB"},
		"plain http": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://example.org/?"+secret, http.StatusFound)
		}, fault.Chart, "another scheme"},
		"another scheme": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "file:///etc/passwd?"+secret, http.StatusFound)
		}, fault.Chart, "another scheme"},
		"a circle": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.String(), http.StatusFound) }, fault.Chart, "more than 10 times"},
		"a place that is none": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "https://"+secret+"%zz/")
			w.WriteHeader(302)
		}, fault.Registry, ""},
		"an untrusted place": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, untrusted.URL+"/?"+secret, http.StatusFound)
		}, fault.Registry, "certificate"},
	} {
		t.Run(rule, func(t *testing.T) {
			trusted.intercept(func(w http.ResponseWriter, r *http.Request) bool { tc.answer(w, r); return true })
			o := FetcherOptions{roots: roots(trusted)}
			if rule == "an untrusted place" {
				o.roots = roots() // the same host, so the same certificate: trust none
				trusted.intercept(nil)
			}
			f := fetcher(t, o, trusted, untrusted)
			_, err := f.Fetch(t.Context(), link(trusted, "/"+strings.ReplaceAll(rule, " ", "-")+".tgz?token="+secret))
			wantFault(t, err, tc.code, tc.says)
			if flt := fault.From(err); strings.Contains(flt.Message+flt.Hint, secret) {
				t.Errorf("the query is shown: %v", flt)
			}
		})
	}
}

func TestRedirects(t *testing.T) {
	one := example(t, "one")
	a, b := serve(t, true, nil), serve(t, true, &archives{data: one})
	left := 0
	a.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if left--; left > 0 {
			http.Redirect(w, r, r.URL.String(), http.StatusTemporaryRedirect)
		} else {
			http.Redirect(w, r, strings.Replace(b.URL, "https://", "https://user:pass@", 1)+"/x", http.StatusFound)
		}
		return true
	})
	b.seen = func(r *http.Request) {
		if r.Referer() != "" || r.Header.Get("Authorization") != "" {
			t.Errorf("the next host is told %q, %q", r.Referer(), r.Header.Get("Authorization"))
		}
	}
	f := fetcher(t, FetcherOptions{roots: roots(a, b)}, a, b)
	left = 10
	mustFetch(t, f, link(a, "/ten.tgz?token=x"), one)
	left = 11
	_, err := f.Fetch(t.Context(), link(a, "/eleven.tgz"))
	wantFault(t, err, fault.Chart, "more than 10 times")
}

func TestRefusedAddressesAreNamedByKind(t *testing.T) {
	f := fetcher(t, FetcherOptions{Deny: func(a netip.Addr) (string, bool) {
		return "the cluster's API server", a == netip.MustParseAddr("10.96.0.1")
	}})
	for host, says := range map[string]string{
		"127.0.0.1":              "a loopback address",
		"169.254.169.254":        "a cloud metadata address",
		"[fe80::1]":              "a link-local address",
		"[64:ff9b::169.254.1.1]": "a link-local address",
		"0.0.0.0":                "an unspecified address",
		"224.0.0.1":              "a multicast address",
		"10.96.0.1":              "the cluster's API server",
	} {
		for _, ref := range []string{"https://" + host + "/a.tgz", "oci://" + host + "/a"} {
			_, err := f.Fetch(t.Context(), v1alpha1.ChartSource{Ref: ref, Version: "1"})
			wantFault(t, err, fault.Chart, says)
		}
	}
}

func TestALoopbackRegistryMustBeOnLoopback(t *testing.T) {
	f := fetcher(t, FetcherOptions{AllowLoopback: []string{"192.0.2.1:5000"}, Timeout: 2 * time.Second})
	_, err := f.Fetch(t.Context(), v1alpha1.ChartSource{Ref: "oci://192.0.2.1:5000/example", Version: "1"})
	wantFault(t, err, fault.Chart, "configured as a loopback registry and is none")
	if _, err := NewFetcher(FetcherOptions{AllowLoopback: []string{"localhost"}}); err == nil {
		t.Error("a host without a port is allowed")
	}
}
