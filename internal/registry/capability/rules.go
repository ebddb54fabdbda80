package capability

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Limits on lists and texts.
const (
	maxComponents    = 16
	maxSections      = 16
	maxSummary       = 120
	maxSectionTitle  = 60
	maxNameLength    = 40
	maxCommandLength = 63
	maxPath          = 2048
	maxEscapes       = 8 // levels of percent-encoding that are looked through
)

// methods are what a command may be called with; empty means GET.
var methods = []string{"", "GET", "POST", "PUT", "PATCH", "DELETE"}

// keyShape is a key that stands in a row's key.
var keyShape = regexp.MustCompile(`^[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?$`)

// report collects what is wrong.
type report []string

func (r *report) add(field, what string, args ...any) {
	*r = append(*r, field+": "+fmt.Sprintf(what, args...))
}

// problems are everything that is wrong with m, sorted.
func (m *Manifest) problems() []string {
	var r report
	switch {
	case m.Service == "":
		r.add("service", "is required")
	case !IsLabel(m.Service) || len(m.Service) > maxNameLength:
		r.add("service", "must be a DNS-1123 label of at most %d characters", maxNameLength)
	}
	if m.Kind != "" && m.Kind != KindPlatform && m.Kind != KindAddon {
		r.add("kind", "must be platform or addon")
	}
	if m.ProxyKey != "" && !IsLabel(m.ProxyKey) {
		r.add("proxyKey", "must be a DNS-1123 label")
	}
	m.commandProblems(&r)
	m.uiProblems(&r)
	m.componentProblems(&r)
	m.setupProblems(&r)
	slices.Sort(r)
	return r
}

func (m *Manifest) commandProblems(r *report) {
	names := map[string]bool{}
	for i, c := range m.Commands {
		at := fmt.Sprintf("commands[%d]", i)
		switch {
		case c.Name == "":
			r.add(at+".name", "is required")
		case utf8.RuneCountInString(c.Name) > maxCommandLength:
			r.add(at+".name", "is longer than %d characters", maxCommandLength)
		case names[c.Name]:
			r.add(at+".name", "is there twice")
		}
		names[c.Name] = true
		if !slices.Contains(methods, c.Method) {
			r.add(at+".method", "must be GET, POST, PUT, PATCH or DELETE")
		}
		if what := PathProblem(c.Path); what != "" {
			r.add(at+".path", "%s", what)
		}
	}
	for i, c := range m.Checks {
		at := fmt.Sprintf("checks[%d]", i)
		if c.Name == "" {
			r.add(at+".name", "is required")
		}
		if what := PathProblem(c.Path); what != "" {
			r.add(at+".path", "%s", what)
		}
	}
}

func (m *Manifest) uiProblems(r *report) {
	if s := m.UI.Space; s != nil && !keyShape.MatchString(s.Key) {
		r.add("ui.space.key", "must be letters, digits, '-', '_' and '.'")
	}
	tiles := map[string]bool{}
	for i, t := range m.UI.Tiles {
		at := fmt.Sprintf("ui.tiles[%d]", i)
		r.key(at, t.Key, tiles)
		if what := targetProblem(t.Target); what != "" {
			r.add(at+".target", "%s", what)
		}
	}
	slots := map[string]bool{}
	for i, s := range m.UI.Slots {
		at := fmt.Sprintf("ui.slots[%d]", i)
		r.key(at, s.Key, slots)
		if s.Slot == "" {
			r.add(at+".slot", "is required")
		}
		if what := urlProblem(s.URL); what != "" {
			r.add(at+".url", "%s", what)
		}
	}
}

func (r *report) key(at, key string, seen map[string]bool) {
	switch {
	case key == "":
		r.add(at+".key", "is required")
	case !keyShape.MatchString(key):
		r.add(at+".key", "must be letters, digits, '-', '_' and '.'")
	case seen[key]:
		r.add(at+".key", "is there twice")
	}
	seen[key] = true
}

func (m *Manifest) componentProblems(r *report) {
	if len(m.Components) == 0 {
		return
	}
	if len(m.Components) > maxComponents {
		r.add("components", "more than %d", maxComponents)
	}
	names, workloads, primaries := map[string]bool{}, map[string]bool{}, 0
	for i, c := range m.Components {
		at := fmt.Sprintf("components[%d]", i)
		r.label(at+".name", c.Name, names)
		r.label(at+".workload", c.Workload, workloads)
		switch c.Role {
		case RolePrimary:
			primaries++
		case RoleRequired, RoleOptional:
		default:
			r.add(at+".role", "must be primary, required or optional")
		}
		if utf8.RuneCountInString(c.Summary) > maxSummary {
			r.add(at+".summary", "is longer than %d characters", maxSummary)
		}
	}
	if primaries != 1 {
		r.add("components", "%d of them are primary, and one must be", primaries)
	}
}

func (r *report) label(at, label string, seen map[string]bool) {
	switch {
	case !IsLabel(label):
		r.add(at, "must be a DNS-1123 label")
	case seen[label]:
		r.add(at, "is there twice")
	}
	seen[label] = true
}

func (m *Manifest) setupProblems(r *report) {
	if m.Setup == nil {
		return
	}
	if what := PathProblem(m.Setup.Path); what != "" {
		r.add("setup.path", "%s", what)
	}
	if len(m.Setup.Sections) > maxSections {
		r.add("setup.sections", "more than %d", maxSections)
	}
	keys := map[string]bool{}
	for i, s := range m.Setup.Sections {
		at := fmt.Sprintf("setup.sections[%d]", i)
		r.key(at, s.Key, keys)
		if utf8.RuneCountInString(s.Title) > maxSectionTitle {
			r.add(at+".title", "is longer than %d characters", maxSectionTitle)
		}
		if what := targetProblem(s.Target); what != "" {
			r.add(at+".target", "%s", what)
		}
	}
}

// IsKey tells whether s may be the key of a tile, a slot or a section.
func IsKey(s string) bool { return keyShape.MatchString(s) }

// PlainText makes a text that an addon wrote fit to be shown: one line, without control characters and marks that change
// the direction of text, and of at most so many characters.
func PlainText(s string, most int) string {
	var out []rune
	for _, r := range strings.Join(strings.Fields(s), " ") {
		if unprintable(r) || r == utf8.RuneError {
			continue
		}
		if len(out) == most {
			return string(append(out[:most-1], '…'))
		}
		out = append(out, r)
	}
	return string(out)
}

// IsLabel tells whether s is a DNS-1123 label.
func IsLabel(s string) bool { return len(validation.IsDNS1123Label(s)) == 0 }

// PathProblem says what is wrong with a path relative to the service; empty when nothing is. A path starts
// with one slash and cannot climb out of the service, written plainly or percent-encoded, however often.
func PathProblem(path string) string {
	if !strings.HasPrefix(path, "/") {
		return "must start with /"
	}
	if len(path) > maxPath {
		return fmt.Sprintf("is longer than %d bytes", maxPath)
	}
	for range maxEscapes {
		switch {
		case strings.Contains(path, "//"):
			return "must not contain //"
		case strings.Contains(path, ".."):
			return "must not contain .."
		case strings.Contains(path, `\`):
			return "must not contain a backslash"
		case strings.Contains(path, "#"):
			return "must not contain a fragment"
		case !utf8.ValidString(path) || strings.ContainsFunc(path, unprintable):
			return "must not contain control characters"
		}
		decoded, err := url.PathUnescape(path)
		if err != nil {
			return "has a wrong percent escape"
		}
		if decoded == path {
			return ""
		}
		path = decoded
	}
	return "is percent-encoded too often"
}

// targetProblem says what is wrong with where a tile or a setup section leads: nothing, a hash route, or a
// path inside the console.
func targetProblem(target string) string {
	switch {
	case target == "":
		return ""
	case strings.HasPrefix(target, "#"):
		if !utf8.ValidString(target) || strings.ContainsFunc(target, unprintable) {
			return "must not contain control characters"
		}
		return ""
	}
	path, fragment, _ := strings.Cut(target, "#")
	if what := PathProblem(path); what != "" {
		return "must be a hash route or a path inside the console: " + what
	}
	if strings.ContainsFunc(fragment, unprintable) {
		return "must not contain control characters"
	}
	return ""
}

// urlProblem says what is wrong with a slot's address: nothing, a path on the public origin, or an http or
// https address. Everything else, such as javascript:, would run in the portal's own pages.
func urlProblem(raw string) string {
	if raw == "" {
		return ""
	}
	if strings.HasPrefix(raw, "/") {
		path, fragment, _ := strings.Cut(raw, "#")
		if what := PathProblem(path); what != "" {
			return what
		}
		if strings.ContainsFunc(fragment, unprintable) {
			return "must not contain control characters"
		}
		return ""
	}
	if strings.ContainsFunc(raw, unprintable) || strings.Contains(raw, `\`) {
		return "must not contain control characters or backslashes"
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return "must be a path starting with / or an http or https address"
	}
	if u.User != nil {
		return "must not contain credentials"
	}
	return ""
}

// unprintable are control characters, line and paragraph separators, and the marks that change the direction
// of text.
func unprintable(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == '\u061c' || r == '\u200e' || r == '\u200f' ||
		r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}
