package chart

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/fault"
)

// The schemes of a reference.
const (
	SchemeOCI   = "oci"
	SchemeHTTPS = "https"
)

const (
	maxReference = 2048 // characters
	maxVersion   = 128  // characters; the longest tag a registry takes
)

// Reference is a parsed chart reference.
type Reference struct {
	Scheme string // SchemeOCI or SchemeHTTPS
	Host   string // host or host:port, in lower case
	Path   string // without the leading slash; as written, so still percent-encoded for https
	Tag    string // the tag of an oci reference; empty for none

	query string // of an https reference; may be a credential, so it is never shown
}

// String is the reference without its tag and query, fit to be shown.
func (r Reference) String() string { return r.Scheme + "://" + r.Host + "/" + r.Path }

// url is what an https reference is fetched from.
func (r Reference) url() string {
	if r.query == "" {
		return r.String()
	}
	return r.String() + "?" + r.query
}

// canonical is what a resource holds: everything but the tag.
func (r Reference) canonical() string { return r.url() }

var (
	tagPattern     = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)
	versionPattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._+-]*$`)
	digestPattern  = regexp.MustCompile(`^sha256:[a-f0-9]{64}$`)
	// hostPattern is a host name or an IPv4 address; IPv6 has brackets and is left to net/url.
	hostPattern = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?\.?$`)
	// repoPattern is the name of a repository, as the OCI distribution specification has it.
	repoPattern = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)
)

// ParseReference parses oci://registry/path/chart, with or without a tag, or an https:// link to a chart
// archive (decisions §2). Faults are Invalid and never repeat what was given.
func ParseReference(raw string) (Reference, error) {
	if raw == "" {
		return Reference{}, badReference("is empty").WithHint("give oci://registry/path/chart or an https:// link to a chart archive")
	}
	if !utf8.ValidString(raw) {
		return Reference{}, badReference("is not valid text")
	}
	if utf8.RuneCountInString(raw) > maxReference {
		return Reference{}, badReference("is longer than 2,048 characters")
	}
	for _, r := range raw {
		if unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return Reference{}, badReference("has a space or a control character")
		}
	}
	scheme, rest, ok := strings.Cut(raw, "://")
	switch {
	case ok && scheme == SchemeOCI:
		return parseOCI(rest)
	case ok && scheme == SchemeHTTPS:
		return parseHTTPS(raw)
	default:
		return Reference{}, badReference("must start with oci:// or https://").WithHint("give oci://registry/path/chart or an https:// link to a chart archive")
	}
}

func parseOCI(rest string) (Reference, error) {
	host, path, _ := strings.Cut(rest, "/")
	if strings.Contains(host, "@") {
		return Reference{}, credentials()
	}
	if strings.Contains(path, "@") {
		return Reference{}, badReference("has a digest").WithHint("leave @… out of the reference and give it as digest")
	}
	if strings.ContainsAny(rest, "?#") {
		return Reference{}, badReference("has a query or a fragment, which an oci:// reference does not take")
	}
	r := Reference{Scheme: SchemeOCI, Path: path}
	var err error
	if r.Host, err = parseHost(host); err != nil {
		return Reference{}, err
	}
	if i := strings.IndexByte(path[strings.LastIndexByte(path, '/')+1:], ':'); i >= 0 {
		i += strings.LastIndexByte(path, '/') + 1
		r.Path, r.Tag = path[:i], path[i+1:]
		if len(r.Tag) > maxVersion || !tagPattern.MatchString(r.Tag) {
			return Reference{}, badReference("has a tag that is none: letters, digits, _ . and -, at most 128")
		}
	}
	switch {
	case r.Path == "":
		return Reference{}, badReference("names no chart").WithHint("give oci://registry/path/chart")
	case !repoPattern.MatchString(r.Path) || len(r.Path) > 255:
		return Reference{}, badReference("has a path that no registry takes: lower-case letters and digits, separated by . _ - and /, at most 255")
	}
	return r, nil
}

func parseHTTPS(raw string) (Reference, error) {
	u, err := url.Parse(raw)
	if err != nil { // its text repeats the reference
		return Reference{}, badReference("is not a valid URL")
	}
	if u.User != nil {
		return Reference{}, credentials()
	}
	if strings.Contains(raw, "#") {
		return Reference{}, badReference("has a fragment, which is never sent").WithHint("leave #… out")
	}
	r := Reference{Scheme: SchemeHTTPS, query: u.RawQuery}
	if r.Host, err = parseHost(u.Host); err != nil {
		return Reference{}, err
	}
	r.Path = strings.TrimPrefix(u.EscapedPath(), "/")
	if r.Path == "" {
		return Reference{}, badReference("names no archive").WithHint("give an https:// link to a chart archive")
	}
	return r, nil
}

func parseHost(host string) (string, error) {
	u, err := url.Parse("//" + host)
	if err != nil || u.Host != host || u.Hostname() == "" || u.User != nil || strings.HasSuffix(host, ":") {
		return "", badReference("has no valid host")
	}
	name := strings.ToLower(u.Hostname())
	if !strings.HasPrefix(host, "[") && !hostPattern.MatchString(name) {
		return "", badReference("has no valid host")
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
			return "", badReference("has no valid port")
		}
	}
	return strings.ToLower(host), nil
}

func badReference(what string) *fault.Fault {
	return fault.New(fault.Invalid, "chart reference %s", what)
}

func credentials() *fault.Fault {
	return badReference("has credentials in it").WithHint("charts are fetched anonymously: leave user and password out")
}

// Source makes what a resource holds of what the CLI and the API accept: it splits a tag off an oci
// reference into the version and refuses contradictions. version and digest may be empty; an oci reference
// needs one of tag and version, an https archive ignores the version. Faults are Invalid.
func Source(ref, version, digest string) (v1alpha1.ChartSource, error) {
	r, err := ParseReference(ref)
	if err != nil {
		return v1alpha1.ChartSource{}, err
	}
	if err := checkVersion(version); err != nil {
		return v1alpha1.ChartSource{}, err
	}
	if err := checkDigest(digest); err != nil {
		return v1alpha1.ChartSource{}, err
	}
	if r.Scheme == SchemeOCI {
		switch {
		case version == "" && r.Tag == "":
			return v1alpha1.ChartSource{}, needsVersion(r)
		case version == "":
			version = r.Tag
		case r.Tag != "" && r.Tag != tagOf(version):
			return v1alpha1.ChartSource{}, fault.New(fault.Invalid, "chart %s has the tag %s and the version %s", r, r.Tag, version).
				WithHint("give one of them, or the same twice")
		}
	}
	return v1alpha1.ChartSource{Ref: r.canonical(), Version: version, Digest: digest}, nil
}

// tagOf is the tag of a version: a tag cannot hold the + of build metadata, so Helm pushes it as _.
func tagOf(version string) string { return strings.ReplaceAll(version, "+", "_") }

func needsVersion(r Reference) *fault.Fault {
	return fault.New(fault.Invalid, "chart %s needs a version", r).WithHint("give the tag as version")
}

func checkVersion(version string) error {
	if version != "" && (len(version) > maxVersion || !versionPattern.MatchString(version)) {
		return fault.New(fault.Invalid, "chart version is none: letters, digits, _ . + and -, at most 128")
	}
	return nil
}

func checkDigest(digest string) error {
	if digest != "" && !digestPattern.MatchString(digest) {
		return fault.New(fault.Invalid, "chart digest is none: sha256: and 64 lower-case hexadecimal digits")
	}
	return nil
}
