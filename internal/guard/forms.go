package guard

import (
	"math"
	"net/netip"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// The forms that have a name. Those of texts have nothing against an empty one, which is a field that is not there.
var forms = map[string]form{
	"label":       ofText(isLabel, validation.IsDNS1123Label),
	"name":        ofText("must be lower-case letters, digits, - and .", validation.IsDNS1123Subdomain),
	"key":         ofText(isKey, validation.IsQualifiedName),
	"label-value": labelValue,
	"port-name":   ofText("must be lower-case letters, digits and -, at most 15, with a letter", validation.IsValidPortName),
	"env-name":    ofText("must be printable ASCII characters other than =", validation.IsRelaxedEnvVarName),
	"data-key":    ofText(isDataKey, validation.IsConfigMapKey),
	"header":      ofText("must be the name of an HTTP header", validation.IsHTTPHeaderName),
	"address":     ofText("must be an IP address", wrong(func(s string) bool { _, err := netip.ParseAddr(s); return err != nil })),
	"inner-path":  ofText("must be relative and without ..", wrong(leavesFolder)),
	"file-path": ofText("must be relative, and without .. at its beginning or between slashes",
		wrong(func(s string) bool { return leavesFolder(s) || strings.HasPrefix(s, "..") })),

	"straight-path": ofText("must be without ..", wrong(func(s string) bool { return slices.Contains(strings.Split(s, "/"), "..") })),
	"search": ofText("must be a domain", wrong(func(s string) bool {
		return s != "." && len(validation.IsDNS1123SubdomainWithUnderscore(strings.TrimSuffix(s, "."))) > 0
	})),

	"bundle": ofText("must be the name of a ClusterTrustBundle", wrong(func(s string) bool { // one of a signer is signer:name
		return slices.ContainsFunc(strings.Split(s, ":"), func(part string) bool { return len(validation.IsDNS1123Subdomain(part)) > 0 })
	})),

	"port":        portForm,
	"target-port": targetPortForm,
	"amount":      amountForm,
	"count":       countForm,
	"labels":      labelsForm,
	"annotations": annotationsForm,
	"data-keys":   dataKeysForm,
}

var labelValue = ofText("must be letters, digits, -, _ and ., at most 63, with a letter or digit at both ends", validation.IsValidLabelValue)

const (
	isLabel   = "must be lower-case letters, digits and -, at most 63"
	isKey     = "must be a name such as example or example.org/name"
	isDataKey = "must be letters, digits, -, _ and ."
)

func ofText(what string, problems func(string) []string) form {
	return func(v value) []hit {
		if s := v.text(); s != "" && len(problems(s)) > 0 {
			return []hit{v.hit("%s", what)}
		}
		return nil
	}
}

func wrong(is func(string) bool) func(string) []string {
	return func(s string) []string {
		if is(s) {
			return []string{"wrong"}
		}
		return nil
	}
}

func leavesFolder(s string) bool {
	return path.IsAbs(s) || slices.Contains(strings.Split(s, "/"), "..")
}

// portForm is of a port by its number or by the name that a container gives it.
func portForm(v value) []hit {
	if s, ok := v.raw.(string); ok {
		if len(validation.IsValidPortName(s)) > 0 {
			return []hit{v.hit("must be a number from 1 to 65535, or the name of a port")}
		}
		return nil
	}
	return between(1, math.MaxUint16)(v)
}

// targetPortForm is of one that may be left to be the Service's own, in several ways.
func targetPortForm(v value) []hit {
	if v.zero() || v.is("") {
		return nil
	}
	return portForm(v)
}

func amountForm(v value) []hit {
	if q, ok := v.quantity(); ok && q.Sign() < 0 {
		return []hit{v.hit("must not be negative")}
	}
	return nil
}

// countForm is of a number of pods or a share of them.
func countForm(v value) []hit {
	if s, ok := v.raw.(string); ok {
		if len(validation.IsValidPercent(s)) > 0 {
			return []hit{v.hit("must be a number or a percentage")}
		}
		return nil
	}
	return between(0, math.MaxInt64)(v)
}

func labelsForm(v value) []hit {
	var hits []hit
	for _, k := range v.keys() {
		at := v.at(k)
		if len(validation.IsQualifiedName(k)) > 0 {
			hits = append(hits, at.hit("the key %s", isKey))
		}
		hits = append(hits, labelValue(at)...)
	}
	return hits
}

// maxAnnotations is how long all annotations of an object may be together.
const maxAnnotations = 256 << 10

func annotationsForm(v value) []hit {
	var hits []hit
	size := 0
	for _, k := range v.keys() {
		size += len(k) + len(v.at(k).text())
		if len(validation.IsQualifiedName(strings.ToLower(k))) > 0 {
			hits = append(hits, v.at(k).hit("the key %s", isKey))
		}
	}
	if size > maxAnnotations {
		hits = append(hits, v.hit("more than 256 KiB"))
	}
	return hits
}

func dataKeysForm(v value) []hit {
	var hits []hit
	for _, k := range v.keys() {
		if len(validation.IsConfigMapKey(k)) > 0 {
			hits = append(hits, v.at(k).hit("the key %s", isDataKey))
		}
	}
	return hits
}
