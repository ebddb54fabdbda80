package inputs

import (
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// format is the judge of a format, nil for one that nobody knows: that one asks for nothing.
//
// Helm validates values with the next major version of the validator used here. A chart must not install by
// hand and be refused by the operator, or the other way round, and the two versions judge formats
// differently: addresses such as "a@-b.example", durations such as "P1Y1D", a template whose brace is
// percent-encoded; one knows semver, the other ip-address. So what is judged differently is judged here, as
// Helm does. The validator's own table is read for the rest, and never changed: it belongs to the process.
func (m *meter) format(name string) func(any) bool {
	var judge func(string) bool
	switch name {
	case "date", "time", "date-time", "uuid", "json-pointer", "relative-json-pointer":
		return jsonschema.Formats[name]
	case "regex":
		judge = func(s string) bool { return m.accept(s) == nil }
	case "duration":
		judge = isDuration
	case "period":
		judge = isPeriod
	case "ipv4":
		judge = isIPv4
	case "ipv6":
		judge = isIPv6
	case "hostname":
		judge = isHostname
	case "email":
		judge = isEmail
	case "uri", "iri":
		judge = func(s string) bool { u, ok := parseURL(s); return ok && u.IsAbs() }
	case "uri-reference", "iri-reference":
		judge = func(s string) bool { _, ok := parseURL(s); return ok && !strings.Contains(s, `\`) }
	case "uri-template":
		judge = isURITemplate
	case "semver":
		judge = semver.MatchString
	default:
		return nil
	}
	return func(v any) bool {
		s, isText := v.(string)
		return !isText || judge(s)
	}
}

var (
	// duration and weeks are those of RFC 3339, appendix A, but for a unit that may be left out in the middle.
	duration = regexp.MustCompile(`^P(\d+Y)?(\d+M)?(\d+D)?(T(\d+H)?(\d+M)?(\d+S)?)?$`)
	weeks    = regexp.MustCompile(`^P\d+W$`)

	hostLabel = regexp.MustCompile(`^[0-9A-Za-z]([-0-9A-Za-z]{0,61}[0-9A-Za-z])?$`)
	mailbox   = regexp.MustCompile("^[0-9A-Za-z.!#$%&'*+\\-/=?^_`{|}~]*$")

	semver = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)` +
		`(-(0|[1-9]\d*|\d*[-A-Za-z][-0-9A-Za-z]*)(\.(0|[1-9]\d*|\d*[-A-Za-z][-0-9A-Za-z]*))*)?` +
		`(\+[-0-9A-Za-z]+(\.[-0-9A-Za-z]+)*)?$`)
)

func isDuration(s string) bool {
	return weeks.MatchString(s) || (duration.MatchString(s) && s != "P" && !strings.HasSuffix(s, "T"))
}

func isPeriod(s string) bool {
	start, end, ok := strings.Cut(s, "/")
	isTime := jsonschema.Formats["date-time"]
	switch {
	case !ok:
		return false
	case strings.HasPrefix(start, "P"):
		return isDuration(start) && isTime(end)
	case strings.HasPrefix(end, "P"):
		return isTime(start) && isDuration(end)
	default:
		return isTime(start) && isTime(end)
	}
}

func isIPv4(s string) bool {
	groups := strings.Split(s, ".")
	if len(groups) != 4 {
		return false
	}
	for _, group := range groups {
		n, err := strconv.Atoi(group) // a sign is fine with Helm
		if err != nil || n < 0 || n > 255 || (len(group) > 1 && group[0] == '0') {
			return false
		}
	}
	return true
}

func isIPv6(s string) bool {
	addr, err := netip.ParseAddr(s)
	return err == nil && addr.Zone() == "" && strings.Contains(s, ":")
}

func isHostname(s string) bool {
	s = strings.TrimSuffix(s, ".")
	if len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if !hostLabel.MatchString(label) {
			return false
		}
	}
	return true
}

func isEmail(s string) bool {
	at := strings.LastIndexByte(s, '@')
	if at < 0 || at > 64 || len(s) > 254 {
		return false
	}
	local, domain := s[:at], s[at+1:]
	if len(local) > 1 && local[0] == '"' && local[at-1] == '"' {
		if strings.ContainsAny(local[1:at-1], `\"`) {
			return false
		}
	} else if !mailbox.MatchString(local) || strings.HasPrefix(local, ".") || strings.HasSuffix(local, ".") || strings.Contains(local, "..") {
		return false
	}
	if !strings.HasPrefix(domain, "[") || !strings.HasSuffix(domain, "]") {
		return isHostname(domain)
	}
	address := domain[1 : len(domain)-1]
	if v6, ok := strings.CutPrefix(address, "IPv6:"); ok {
		return isIPv6(v6)
	}
	return isIPv4(address)
}

// parseURL is Go's, which looks at no IPv6 address.
func parseURL(s string) (*url.URL, bool) {
	u, err := url.Parse(s)
	if err != nil {
		return nil, false
	}
	if host := u.Hostname(); strings.Contains(host, ":") {
		return u, strings.Contains(u.Host, "[") && strings.Contains(u.Host, "]") && isIPv6(host)
	}
	return u, true
}

func isURITemplate(s string) bool {
	u, ok := parseURL(s)
	if !ok {
		return false
	}
	for part := range strings.SplitSeq(u.RawPath, "/") {
		part, err := url.PathUnescape(part)
		if err != nil {
			return false
		}
		open := false
		for _, r := range part {
			if (r == '{' && open) || (r == '}' && !open) {
				return false
			}
			open = (open || r == '{') && r != '}'
		}
		if open {
			return false
		}
	}
	return true
}
