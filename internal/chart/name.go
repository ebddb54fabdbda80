package chart

import (
	"net/url"
	"regexp"
	"strings"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/fault"
)

var (
	archivePattern = regexp.MustCompile(`(?i)\.(tgz|tar\.gz)$`)
	// trailingVersion is -X.Y.Z at the end of a file name, with an optional v, pre-release and build.
	trailingVersion = regexp.MustCompile(`-[vV]?[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
	labelPattern    = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
)

// DefaultName is the addon's name when nobody names it: the last segment of the reference without tag,
// digest, archive extension and trailing -<version>, in lower case (contract §1, decisions §2). It looks at
// the name only; whether the reference is acceptable is ParseReference's business. The fault is Invalid when
// nothing usable is left.
func DefaultName(ref string) (string, error) {
	u, err := url.Parse(ref)
	if err != nil {
		return "", nameless()
	}
	name := u.Path[strings.LastIndexByte(u.Path, '/')+1:]
	if i := strings.IndexAny(name, ":@"); i >= 0 {
		name = name[:i]
	}
	name = archivePattern.ReplaceAllString(name, "")
	name = trailingVersion.ReplaceAllString(name, "")
	name = strings.ToLower(name)
	if CheckName(name) != nil {
		return "", nameless()
	}
	return name, nil
}

func nameless() *fault.Fault {
	return fault.New(fault.Invalid, "the chart reference gives no usable name").
		WithHint("name the addon: lower-case letters, digits and -, at most %d, the same as the service in its manifest", v1alpha1.MaxNameLength)
}

// CheckName tells whether name can be an addon's: a DNS-1123 label of at most 40 characters.
func CheckName(name string) error {
	switch {
	case name == "":
		return fault.New(fault.Invalid, "the addon needs a name")
	case len(name) > v1alpha1.MaxNameLength:
		return fault.New(fault.Invalid, "the addon's name has %d characters, at most %d are allowed", len(name), v1alpha1.MaxNameLength)
	case !labelPattern.MatchString(name):
		return fault.New(fault.Invalid, "the addon's name must be lower-case letters, digits and -, and start and end with a letter or digit")
	}
	return nil
}
