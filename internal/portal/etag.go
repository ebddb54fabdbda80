package portal

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"zaentrum.io/zae/api/v1alpha1"
)

// planTag is the ETag of an addon: it stands for the resource, its generation and the plan as it is shown, so that
// an install can name the plan that was read. Progress does not change it: phase, conditions, components.
func planTag(a *v1alpha1.ZaentrumAddon) string {
	sum := sha256.New()
	_ = json.NewEncoder(sum).Encode([]any{a.UID, a.Generation, a.Status.ObservedGeneration >= a.Generation, a.Status.Plan}) // plain data; a hash takes all
	return `"` + base64.RawURLEncoding.EncodeToString(sum.Sum(nil)) + `"`
}

// tags are what an If-Match asks for: nil is none, and any tag matches.
type tags []string

// matches compares strongly (RFC 9110, §8.8.3.2): a weak tag is no tag of ours.
func (t tags) matches(tag string) bool { return t == nil || slices.Contains(t, tag) }

// tagList is the list of If-Match: entity tags with commas between them.
var tagList = regexp.MustCompile(`^[ \t,]*(?:(?:W/)?"[^"\x00-\x20\x7f]*"[ \t]*(?:,[ \t,]*|$))+$`)

var oneTag = regexp.MustCompile(`(?:W/)?"[^"]*"`)

// ifMatch reads the header; without one, and with *, every plan is wanted. One that cannot be read is refused:
// what was meant as a condition must not be lost.
func ifMatch(header http.Header) (tags, error) {
	given := header.Values("If-Match")
	if len(given) == 0 {
		return nil, nil
	}
	list := strings.Trim(strings.Join(given, ","), " \t")
	if list == "*" {
		return nil, nil
	}
	if !tagList.MatchString(list) {
		return nil, malformed("If-Match is no list of entity tags").
			WithHint("send what ETag said when the plan was read, quotes included")
	}
	return oneTag.FindAllString(list, -1), nil
}
