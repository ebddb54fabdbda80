package apppath

import (
	"net/url"
	"path"
	"strings"
	"testing"
)

// climbing are paths that some server takes for the way out of the app, or that none should see.
var climbing = []string{
	"/..", "/../", "/../x", "/a/../x", "/a/..", "/./x", "/.", "/a/./b",
	"/%2e%2e/x", "/%2E%2E/x", "/.%2e/x", "/%2e./x", "/%2e/x", "/a/%2e%2e",
	"/%252e%252e/x", "/%25252e%25252e/x", "/.%252e/x", "/%25%32%65%25%32%65/x",
	"/..;/x", "/..;a=b/x", "/%2e%2e;/x", "/.;/x", "/..%3bx/y", "/%252e%252e%253b/x",
	"/..%2fx", "/..%2Fx", "/a%2f..%2fx", "/a%2fb", "/%2f", "/a%252fb", "/a%25252fb", "/%2e%2e%2fx",
	"/%252e%252e%252f%25zz", "/a%252f%25", // a decoder that takes what it can
	`/..\x`, `/a\b`, "/..%5cx", "/a%5cb", "/a%255cb", "/%5c%5chost/x",
	"//x", "/a//b", "//", "/a//", "//evil.example.org/x",
	"/%00", "/a%00.html", "/a%0d%0aX:%20y", "/a%250d%250a", "/%7f", "/a%c2%85b",
	"/%c0%ae%c0%ae/x", "/%ff", "/%e2%80", // no UTF-8, and overlong forms are none
	"/%", "/%2", "/%zz", "x", "", "../x", "?x", "/%" + strings.Repeat("25", maxDecoding+1) + "2e",
	"/" + strings.Repeat("a", MaxBytes),
}

// plain are paths that are passed on as they are.
var plain = []string{
	"/", "/a", "/a/", "/a/b/c.html", "/.well-known/x", "/...", "/a..b", "/..a", "/a..", "/%20", "/a%20b", "/%C3%A9", "/100%25",
	"/a%2bb", "/a+b", "/a%3fb", "/a%23b", "/a;b=c", "/;", "/a:b@c", "/~x/$&'()*,=!", "/%e2%82%ac", "/%2525", "/a%26b",
}

func TestAPathThatMayClimbIsNotPassedOn(t *testing.T) {
	t.Parallel()
	for _, p := range climbing {
		if Problem(p) == "" {
			t.Errorf("%q is passed on", p)
		}
	}
	for _, p := range plain {
		if what := Problem(p); what != "" {
			t.Errorf("%q: %s", p, what)
		}
	}
}

// FuzzProblem holds a path that is passed on against every way that servers have to read it: decoded any number of
// times, cut at semicolons, with backslashes for slashes, and cleaned.
func FuzzProblem(f *testing.F) {
	for _, p := range append(climbing, plain...) {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, given string) {
		if Problem(given) != "" {
			return
		}
		segments := strings.Count(given, "/")
		for _, read := range []func(string) string{unescaped, func(s string) string {
			out, err := url.PathUnescape(s)
			if err != nil {
				return s
			}
			return out
		}} {
			for p, level := given, 0; level < 12; p, level = read(p), level+1 {
				p := strings.ReplaceAll(p, `\`, "/")
				if n := strings.Count(p, "/"); n != segments {
					t.Fatalf("%q has %d slashes after %d decodings, and %d before", given, n, level, segments)
				}
				var cut []string
				for _, segment := range strings.Split(p, "/") {
					name, _, _ := strings.Cut(segment, ";")
					cut = append(cut, name)
				}
				for _, form := range []string{p, strings.Join(cut, "/")} {
					clean := path.Clean("/base" + form)
					if clean != "/base" && !strings.HasPrefix(clean, "/base/") {
						t.Fatalf("%q climbs out as %q", given, form)
					}
				}
				if strings.ContainsAny(p, "\x00\r\n") {
					t.Fatalf("%q has control characters", given)
				}
			}
		}
		u, err := url.Parse("http://portal" + given)
		if strings.ContainsAny(given, "?#") {
			return // never in the path of a request
		}
		if err != nil || u.Host != "portal" {
			t.Fatalf("%q is no path: %v", given, err)
		}
	})
}
