package chart

import (
	"net/url"
	"strings"
	"testing"
	"unicode"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/fault"
)

func TestSource(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	for _, tc := range []struct {
		rule                 string
		ref, version, digest string
		want                 v1alpha1.ChartSource
	}{
		{"a tag becomes the version", "oci://ghcr.io/example/charts/example:1.2.0", "", "", v1alpha1.ChartSource{Ref: "oci://ghcr.io/example/charts/example", Version: "1.2.0"}},
		{"a version stays", "oci://ghcr.io/example/charts/example", "1.2.0", digest, v1alpha1.ChartSource{Ref: "oci://ghcr.io/example/charts/example", Version: "1.2.0", Digest: digest}},
		{"the same twice is no contradiction", "oci://ghcr.io/example/charts/example:1.2.0", "1.2.0", "", v1alpha1.ChartSource{Ref: "oci://ghcr.io/example/charts/example", Version: "1.2.0"}},
		{"a tag has _ for the + of a version", "oci://ghcr.io/example/charts/example:1.2.0_b1", "1.2.0+b1", "", v1alpha1.ChartSource{Ref: "oci://ghcr.io/example/charts/example", Version: "1.2.0+b1"}},
		{"a port is no tag", "oci://localhost:5000/example", "latest", "", v1alpha1.ChartSource{Ref: "oci://localhost:5000/example", Version: "latest"}},
		{"a port and a tag", "oci://localhost:5000/example:2", "", "", v1alpha1.ChartSource{Ref: "oci://localhost:5000/example", Version: "2"}},
		{"a host is lower case", "oci://GHCR.io/example:1", "", "", v1alpha1.ChartSource{Ref: "oci://ghcr.io/example", Version: "1"}},
		{"an IPv6 host", "oci://[fd00::1]:5000/example:1", "", "", v1alpha1.ChartSource{Ref: "oci://[fd00::1]:5000/example", Version: "1"}},
		{"an https archive needs no version", "https://example.org/charts/Example-1.2.0.tgz", "", "", v1alpha1.ChartSource{Ref: "https://example.org/charts/Example-1.2.0.tgz"}},
		{"an https query stays", "https://example.org/a.tgz?token=x%20y", "", "", v1alpha1.ChartSource{Ref: "https://example.org/a.tgz?token=x%20y"}},
		{"percent-encoding stays", "https://example.org/a%2Fb.tgz", "", "", v1alpha1.ChartSource{Ref: "https://example.org/a%2Fb.tgz"}},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			got, err := Source(tc.ref, tc.version, tc.digest)
			if err != nil {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
			if again, err := Source(got.Ref, got.Version, got.Digest); err != nil || again != got {
				t.Errorf("what a resource holds is not accepted as it is: %+v, %v", again, err)
			}
		})
	}
}

func TestSourceRefuses(t *testing.T) {
	const secret = "hunter2"
	for rule, tc := range map[string]struct{ ref, version, digest, says string }{
		"nothing":                             {"", "", "", "is empty"},
		"a tag and another version":           {"oci://ghcr.io/example:1", "2", "", "has the tag 1 and the version 2"},
		"no version for oci":                  {"oci://ghcr.io/example", "", "", "needs a version"},
		"a digest in an oci reference":        {"oci://ghcr.io/example@sha256:" + strings.Repeat("a", 64), "1", "", "has a digest"},
		"a tag and a digest":                  {"oci://ghcr.io/example:1@sha256:" + strings.Repeat("a", 64), "", "", "has a digest"},
		"credentials in oci":                  {"oci://user:" + secret + "@ghcr.io/example", "1", "", "credentials"},
		"credentials in https":                {"https://user:" + secret + "@example.org/a.tgz", "", "", "credentials"},
		"a user in https":                     {"https://" + secret + "@example.org/a.tgz", "", "", "credentials"},
		"http":                                {"http://example.org/" + secret, "", "", "must start with"},
		"another scheme":                      {"file:///etc/" + secret, "", "", "must start with"},
		"a scheme in capitals":                {"OCI://ghcr.io/" + secret + ":1", "", "", "must start with"},
		"no scheme":                           {"ghcr.io/" + secret, "1", "", "must start with"},
		"a space":                             {"https://example.org/a b" + secret, "", "", "space"},
		"a trailing newline":                  {"https://example.org/a" + secret + "\n", "", "", "control"},
		"a no-break space":                    {"https://example.org/a\u00a0" + secret, "", "", "space"},
		"a bidirectional override":            {"https://example.org/a\u202e" + secret, "", "", "control"},
		"an escape":                           {"oci://ghcr.io/\x1b[31m" + secret, "1", "", "control"},
		"broken UTF-8":                        {"https://example.org/\xff" + secret, "", "", "not valid text"},
		"more than 2,048 characters":          {"https://example.org/" + strings.Repeat("a", 2048-len("https://example.org/")+1), "", "", "longer"},
		"no host in oci":                      {"oci:///" + secret, "1", "", "host"},
		"no host in https":                    {"https:///" + secret, "", "", "host"},
		"no path in oci":                      {"oci://ghcr.io", "1", "", "names no chart"},
		"no path in https":                    {"https://example.org", "", "", "names no archive"},
		"a port that is none":                 {"oci://ghcr.io:99999/example", "1", "", "port"},
		"a port that is no number":            {"oci://ghcr.io:x" + secret + "/example", "1", "", "host"},
		"an empty port":                       {"oci://ghcr.io:/example", "1", "", "host"},
		"a host with a backslash":             {`https://example.org\` + secret + "/x", "", "", "URL"},
		"capitals in an oci path":             {"oci://ghcr.io/Example", "1", "", "path"},
		"dots in an oci path":                 {"oci://ghcr.io/a/../b", "1", "", "path"},
		"an empty segment":                    {"oci://ghcr.io/a//b", "1", "", "path"},
		"a trailing slash":                    {"oci://ghcr.io/a/", "1", "", "path"},
		"an encoded oci path":                 {"oci://ghcr.io/a%2fb", "1", "", "path"},
		"an empty tag":                        {"oci://ghcr.io/a:", "1", "", "tag"},
		"two tags":                            {"oci://ghcr.io/a:1:2", "", "", "tag"},
		"a + in a tag":                        {"oci://ghcr.io/a:1+2", "", "", "tag"},
		"a query on oci":                      {"oci://ghcr.io/a?x=" + secret, "1", "", "query"},
		"a fragment":                          {"https://example.org/a.tgz#" + secret, "", "", "fragment"},
		"a version with a slash":              {"oci://ghcr.io/a", "1/" + secret, "", "version"},
		"a version that starts with a dash":   {"oci://ghcr.io/a", "-1", "", "version"},
		"a version of over 128 characters":    {"oci://ghcr.io/a", strings.Repeat("1", 129), "", "version"},
		"a digest of another algorithm":       {"oci://ghcr.io/a", "1", "sha512:" + strings.Repeat("a", 128), "digest"},
		"a digest in capitals":                {"oci://ghcr.io/a", "1", "sha256:" + strings.Repeat("A", 64), "digest"},
		"a short digest":                      {"oci://ghcr.io/a", "1", "sha256:" + secret, "digest"},
		"a percent that encodes nothing":      {"https://example.org/%zz" + secret, "", "", "URL"},
		"a host that is a path":               {"https://../" + secret, "", "", "host"},
		"a host with an encoded control":      {"https://exa%0ample.org/" + secret, "", "", "URL"},
		"an unclosed IPv6 host":               {"https://[::1/" + secret, "", "", "URL"},
		"a tag of over 128 characters":        {"oci://ghcr.io/a:" + strings.Repeat("1", 129), "", "", "tag"},
		"an oci path of over 255 characters":  {"oci://ghcr.io/" + strings.Repeat("a", 256), "1", "", "path"},
		"credentials that hide behind a host": {"oci://ghcr.io:" + secret + "@evil.example/a", "1", "", "credentials"},
	} {
		t.Run(rule, func(t *testing.T) {
			_, err := Source(tc.ref, tc.version, tc.digest)
			wantFault(t, err, fault.Invalid, tc.says)
			if f := fault.From(err); strings.Contains(f.Message+f.Hint, secret) {
				t.Errorf("the fault repeats what was given: %v (%s)", f, f.Hint)
			}
		})
	}
}

func TestShownReferencesHaveNoQuery(t *testing.T) {
	r, err := ParseReference("https://example.org/a.tgz?token=hunter2")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(r.String(), "hunter2") {
		t.Error(r.String())
	}
}

func TestDefaultName(t *testing.T) {
	for ref, want := range map[string]string{
		"oci://ghcr.io/example/charts/example":                                      "example",
		"oci://ghcr.io/example/charts/example:1.2.0":                                "example",
		"oci://localhost:5000/example":                                              "example",
		"oci://ghcr.io/example/charts/example@sha256:" + strings.Repeat("a", 64):    "example",
		"https://example.org/charts/Example-1.2.0.tgz":                              "example",
		"https://example.org/charts/example-1.2.0.tar.gz":                           "example",
		"https://example.org/charts/example-1.2.0.TGZ":                              "example",
		"https://example.org/charts/example.tgz.tgz":                                "", // one extension is removed, and a dot stays
		"https://example.org/charts/example-v1.2.0.tgz":                             "example",
		"https://example.org/charts/example-1.2.0-rc.1+build.5.tgz":                 "example",
		"https://example.org/charts/example-1.2.0%2Bbuild.5.tgz":                    "example",
		"https://example.org/charts/example-1.2.tgz":                                "", // two parts are no version
		"https://example.org/charts/example-2.tgz":                                  "example-2",
		"https://example.org/charts/my-example-10.20.30.tgz?x=/other-1.0.0.tgz":     "my-example",
		"https://example.org/charts%2Fexample-1.0.0.tgz":                            "example",
		"https://example.org/charts/exam%70le-1.0.0.tgz":                            "example",
		"https://example.org/":                                                      "",
		"https://example.org":                                                       "",
		"https://example.org/charts/1.2.0.tgz":                                      "",
		"https://example.org/charts/-1.2.0.tgz":                                     "",
		"https://example.org/charts/Ex_ample.tgz":                                   "",
		"https://example.org/charts/" + strings.Repeat("a", 40) + "-1.0.0.tgz":      strings.Repeat("a", 40),
		"https://example.org/charts/" + strings.Repeat("a", 41) + "-1.0.0.tgz":      "",
		"https://example.org/charts/%zz":                                            "",
		"oci://ghcr.io/example/charts/example-app":                                  "example-app",
		"https://example.org/charts/kürbis.tgz":                                     "",
		"https://example.org/download/example-1.2.0.tgz/example-server-0.3.1-b.tgz": "example-server",
	} {
		got, err := DefaultName(ref)
		if want == "" {
			if fault.CodeOf(err) != fault.Invalid {
				t.Errorf("%s: got %q, %v; want an Invalid fault", ref, got, err)
			}
			continue
		}
		if err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", ref, got, err, want)
		}
	}
}

func TestCheckName(t *testing.T) {
	for name, ok := range map[string]bool{
		"a": true, "example": true, "a-b": true, "1": true, "1a": true, strings.Repeat("a", 40): true,
		"": false, "-a": false, "a-": false, "A": false, "a.b": false, "a_b": false, "a b": false, strings.Repeat("a", 41): false, "a\n": false, "ä": false,
	} {
		if err := CheckName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// FuzzReference wants what is accepted to be the same when it is parsed again, and fit to be shown.
func FuzzReference(f *testing.F) {
	for _, s := range []string{
		"oci://a/b:c", "https://a/b?c", "oci://[::1]:1/a", "https://a@b/c", "oci://a/b@c", "oci://a:1/b/c:d", "https://a:/b",
		"https://user:pass@a/b", "https://a/b@c?d=e@f", "https://a/%0a", "https://a/b#c", "oci://A/b", "https://a\n/b", "https://a/\u202eb",
		"https://[fe80::1%25lo]/a", "https://2130706433/a", "https://a/b?", "https://a//b", "https://a/\\b", "oci://user@a/b",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		r, err := ParseReference(raw)
		if err != nil {
			if fault.CodeOf(err) != fault.Invalid {
				t.Errorf("%q: %v", raw, err)
			}
			return
		}
		shown := r.String()
		if u, err := url.Parse(shown); err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			t.Errorf("%q is shown as %q: %v", raw, shown, err)
		}
		if strings.ContainsFunc(shown, func(r rune) bool { return !unicode.IsPrint(r) || unicode.IsSpace(r) }) {
			t.Errorf("%q is shown as %q", raw, shown)
		}
		again, err := ParseReference(r.canonical())
		if r.Tag = ""; err != nil || again != r {
			t.Errorf("%q: its canonical form %q parses to %+v, %v; want %+v", raw, r.canonical(), again, err, r)
		}
	})
}

// FuzzDefaultName wants a name that is one, and the same in any case.
func FuzzDefaultName(f *testing.F) {
	for _, s := range []string{
		"oci://ghcr.io/a/example:1.2.0", "https://example.org/Example-1.2.0.tgz", "https://example.org/example-v1.2.0-rc.1+b.tar.gz",
		"https://example.org/example-1.2.0%2Bb.tgz", "https://example.org/", "oci://a/b@sha256:c", "https://example.org/-1.2.0.tgz", "x", "",
		"https://example.org/\u212Aelvin-1.0.0.tgz", "https://example.org/a%2Fb-1.0.0.TGZ?x=/y",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		name, err := DefaultName(raw)
		if err != nil {
			if fault.CodeOf(err) != fault.Invalid {
				t.Errorf("%q: %v", raw, err)
			}
			return
		}
		if err := CheckName(name); err != nil {
			t.Errorf("%q is named %q: %v", raw, name, err)
		}
		if again, err := DefaultName("oci://registry/" + name + ":1.0.0"); err != nil || (again != name && !trailingVersion.MatchString(name)) {
			t.Errorf("%q is named %q, and that %q, %v", raw, name, again, err)
		}
	})
}
