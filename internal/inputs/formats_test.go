package inputs

import (
	"strings"
	"testing"
)

// The verdicts are those of the validator that Helm has, which is not the one used here.
func TestFormatsAreJudgedAsHelmDoes(t *testing.T) {
	label := strings.Repeat("a", 63)
	for format, texts := range map[string]struct{ good, bad []string }{
		"date-time":             {[]string{"2020-02-29T23:59:60Z", "2020-01-01t00:00:00.5+01:00"}, []string{"2020-02-30T00:00:00Z", "2020-01-01 00:00:00Z", "2020-01-01T00:00:00"}},
		"date":                  {[]string{"2020-02-29"}, []string{"2021-02-29", "2020-1-1"}},
		"time":                  {[]string{"00:59:60+01:00", "12:00:00z"}, []string{"12:00:60Z", "24:00:00Z", "12:00:00", "12:00:00.Z"}},
		"duration":              {[]string{"P1Y1D", "PT1H1S", "P4W", "P1Y2M3DT4H5M6S"}, []string{"P", "PT", "P1", "P1DT", "P1D1Y", "PT1D", "P1Y1W", "1D", "p1d"}},
		"period":                {[]string{"2020-01-01T00:00:00Z/P1Y1D", "P1D/2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z/2021-01-01T00:00:00Z"}, []string{"P1D/P1D", "2020-01-01T00:00:00Z", "2020-01-01/P1D"}},
		"hostname":              {[]string{"a", "a.example.", "1.example", label}, []string{"", ".", "-a.example", "a.-b", "a.b-", "a..b", "a_b", label + "a", strings.Repeat("a.", 127) + "a"}},
		"email":                 {[]string{"a@example.org", "@example.org", `"a b"@example.org`, "a@[127.0.0.1]", "a@[IPv6:::1]", "a+b/c@d"}, []string{"a", "a@", ".a@b", "a.@b", "a..b@c", "a b@c", "a@-b", `"a\"@b`, "a@[1.2.3]", "ä@b", strings.Repeat("a", 65) + "@b", "A <a@b.example>"}},
		"ipv4":                  {[]string{"127.0.0.1", "+1.2.3.4"}, []string{"00.1.2.3", "1.2.3.04", "256.1.1.1", "1.2.3", "1.2.3.x"}},
		"ipv6":                  {[]string{"::1", "::ffff:1.2.3.4"}, []string{"::1%eth0", "1.2.3.4", "::g"}},
		"uri":                   {[]string{"https://example.org/x?y#z", "urn:x", "http://[::1]/"}, []string{"/x", "http://[::g]/", "http://%zz/", ""}},
		"uri-reference":         {[]string{"/x", "", "#x", "https://example.org"}, []string{`a\b`, "http://[::g]/"}},
		"uri-template":          {[]string{"/{a}/b", "/{a%7D", "/x"}, []string{"/{a", "/{a{b}}", "/a}", "http://[::g]/"}},
		"json-pointer":          {[]string{"", "/a~0~1/b"}, []string{"a", "/a~", "/a~2"}},
		"relative-json-pointer": {[]string{"0", "1#", "12/a"}, []string{"", "01", "#", "-1/a"}},
		"uuid":                  {[]string{"123e4567-e89b-12d3-a456-42661417400A"}, []string{"123e4567e89b12d3a456426614174000", "123e4567-e89b-12d3-a456-42661417400g"}},
		"regex":                 {[]string{"^a+$", ""}, []string{"(", "(?=a)"}},
		"semver":                {[]string{"1.2.3", "0.0.0-a.1.0a+001.b"}, []string{"1.2", "v1.2.3", "01.2.3", "1.2.3-01", "1.2.3-", "1.2.3+", "1.2.3-a..b", "1.2.3+a+b"}},
		"ip-address":            {[]string{"x"}, nil}, // only this version of the validator knows it
		"uriref":                {[]string{`a\b`}, nil},
		"zae-0":                 {[]string{"x"}, nil},
	} {
		s := parse(t, `{"properties":{"a":{"format":"`+format+`"}}}`)
		for _, text := range texts.good {
			if got := s.Validate(map[string]any{"a": text}); got != nil {
				t.Errorf("%s refuses %q: %q", format, text, got)
			}
		}
		for _, text := range texts.bad {
			if got := s.Validate(map[string]any{"a": text}); len(got) != 1 || got[0] != "a: does not have the format the schema asks for (format)" {
				t.Errorf("%s on %q: %q", format, text, got)
			}
		}
		if got := s.Validate(map[string]any{"a": int64(1)}); got != nil {
			t.Errorf("%s judges what is no text: %q", format, got)
		}
	}
}
