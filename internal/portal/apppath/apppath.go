// Package apppath judges the paths of calls that the portal passes on to apps.
//
// It is pure, and apart from the portal so that its fuzz target is built in no time.
package apppath

import (
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxBytes is the length of the longest path that is passed on.
const MaxBytes = 8 << 10

// maxDecoding is how many levels of percent-encoding are looked through.
const maxDecoding = 8

// Problem says why a path, percent-encoded as it was sent and beginning with a slash, is not passed on; empty when
// it is. It is passed on as it is or not at all: servers read odd paths in different ways, and one of them may find the way
// out of the app in it.
func Problem(path string) string {
	if !strings.HasPrefix(path, "/") {
		return "the path does not start with /"
	}
	if len(path) > MaxBytes {
		return "the path is too long"
	}
	if strings.Contains(path, "//") {
		return "the path has an empty segment"
	}
	for segment := range strings.SplitSeq(path[1:], "/") {
		if what := segmentProblem(segment); what != "" {
			return what
		}
	}
	return ""
}

// segmentProblem looks at a segment as it is, decoded, decoded twice, and so on.
func segmentProblem(segment string) string {
	for level := range maxDecoding {
		// Some servers take what follows a semicolon for parameters, and decide about dots without them.
		name, _, _ := strings.Cut(segment, ";")
		switch {
		case name == "." || name == "..":
			return "the path has a segment of dots"
		case strings.ContainsRune(segment, '\\'):
			return "the path has a backslash"
		case level > 0 && strings.ContainsRune(segment, '/'):
			return "the path has an encoded slash"
		case !utf8.ValidString(segment):
			return "the path is not UTF-8 text"
		case strings.ContainsFunc(segment, unicode.IsControl):
			return "the path has control characters"
		}
		if _, err := url.PathUnescape(segment); err != nil && level == 0 {
			return "the path has a wrong percent escape"
		}
		decoded := unescaped(segment)
		if decoded == segment {
			return ""
		}
		segment = decoded
	}
	return "the path is percent-encoded too often"
}

// unescaped decodes what is an escape and leaves other percent signs, as lenient servers do.
func unescaped(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if b, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				out.WriteByte(byte(b))
				i += 2
				continue
			}
		}
		out.WriteByte(s[i])
	}
	return out.String()
}
