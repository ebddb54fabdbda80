package render

import (
	"errors"
	"regexp"
	"strconv"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
)

// Helm's and text/template's errors begin in one of these ways, each followed by a place. What comes after
// the place is the chart's text: it can carry a value, or be made to look like another place.
var prefixes = []string{"execution error at (", "parse error at (", "execution error in (", "parse error in (", "template: "}

// position is the line and column behind a template's name, up to what ends it in Helm's shapes.
var position = regexp.MustCompile(`^(:[0-9]{1,7}(?::[0-9]{1,7})?)?(?:\)|: )`)

// where says at which place an error of the engine is, and nothing else.
func where(err error, h *helmchart.Chart) string {
	place, _ := locate(err, h)
	return place
}

// maxWords bounds what is told of a chart's own words.
const maxWords = 1000

// verbatim is where, and then what the engine and the chart say, in one line.
func verbatim(err error, h *helmchart.Chart) string {
	place, words := locate(err, h)
	words = strings.Join(strings.Fields(words), " ")
	if words == "" {
		return place
	}
	if len(words) > maxWords {
		words = strings.ToValidUTF8(words[:maxWords], "") + "…"
	}
	return place + ": " + words
}

// locate parts an error of the engine into its place, and what comes after it.
func locate(err error, h *helmchart.Chart) (place, words string) {
	var m *mismatch
	if errors.As(err, &m) {
		return m.Error(), ""
	}
	text := err.Error()
	for _, prefix := range prefixes {
		rest, ok := strings.CutPrefix(text, prefix)
		if !ok {
			continue
		}
		// The longest name that fits is the template: another one's name may be its beginning.
		name, pos, words := "", "", ""
		for _, n := range templates(h) {
			after, ok := strings.CutPrefix(rest, n)
			if !ok || len(n) < len(name) {
				continue
			}
			if match := position.FindStringSubmatch(after); match != nil {
				name, pos, words = n, match[1], strings.TrimPrefix(after[len(match[0]):], ":")
			}
		}
		switch {
		case name == "":
		case pos == "":
			return "template error in " + printable(name), words
		default:
			return "template error at " + printable(name) + pos, words
		}
	}
	return "template error", text
}

// printable is a name from a chart, fit for a terminal.
func printable(name string) string {
	if q := strconv.Quote(name); q != `"`+name+`"` {
		return q
	}
	return name
}
