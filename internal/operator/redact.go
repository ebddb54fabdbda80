package operator

import (
	"cmp"
	"encoding/base64"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"zaentrum.io/zae/api/v1alpha1"
)

const (
	// maxMessage is the longest status message or condition; longer ones are cut. A condition may hold
	// 32 KiB, a person reads a line.
	maxMessage = 1024
	// maxChartText is the longest text of a chart that goes into a plan.
	maxChartText = 2048
	// minSecret is the shortest value that is looked for: shorter ones stand in any text by accident.
	minSecret = 4
	redacted  = "[redacted]"
)

// secrets are the secret values that a reconcile has come across. A chart may put them where they do not
// belong, into the name of an object or of an image: none of them may leave the operator in a status or an
// event.
type secrets struct {
	values []string
	// generated are the paths of the inputs for which the generated value is used, and that nothing runs with
	// yet. The values are among the others.
	generated []string
}

func (s *secrets) add(values ...string) { s.values = append(s.values, values...) }

// addTree adds all texts of a values document.
func (s *secrets) addTree(v any) {
	switch v := v.(type) {
	case string:
		s.add(v)
	case []any:
		for _, item := range v {
			s.addTree(item)
		}
	case map[string]any:
		for _, item := range v {
			s.addTree(item)
		}
	}
}

// replacer finds each value as it is, in lower case, line by line, escaped, and as base64.
func (s *secrets) replacer() *strings.Replacer {
	var forms []string
	for _, v := range s.values {
		forms = append(forms, v, base64.StdEncoding.EncodeToString([]byte(v)), url.QueryEscape(v), url.PathEscape(v))
		quoted := strconv.Quote(v)
		forms = append(forms, quoted[1:len(quoted)-1], printable(v))
		forms = append(forms, strings.Split(v, "\n")...)
	}
	for _, f := range slices.Clone(forms) {
		forms = append(forms, strings.ToLower(f), strings.TrimSpace(f))
	}
	forms = slices.DeleteFunc(forms, func(f string) bool { return len(f) < minSecret })
	// The longest first, so that no part of one is left beside what was cut out of it.
	slices.SortFunc(forms, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	forms = slices.Compact(forms)
	pairs := make([]string, 0, 2*len(forms))
	for _, f := range forms {
		pairs = append(pairs, f, redacted)
	}
	return strings.NewReplacer(pairs...)
}

// clean takes secret values, control characters and excess length out of everything in a status that comes
// from rendering or from the cluster, and the latter two out of what the chart says of itself: that stands in
// the archive for everybody to read, so that it holds nobody's secret, and a word taken out of it would tell
// which word is one.
func (s *secrets) clean(status *v1alpha1.ZaentrumAddonStatus) {
	r := s.replacer()
	text := func(t *string) {
		// Once more, since a value can be hidden by the characters that are dropped.
		*t = cut(r.Replace(printable(r.Replace(*t))), maxMessage)
	}
	texts := func(list []string) {
		for i := range list {
			text(&list[i])
		}
	}
	text(&status.Message)
	for i := range status.Conditions {
		text(&status.Conditions[i].Message)
	}
	for i := range status.Components {
		c := &status.Components[i]
		text(&c.Kind)
		text(&c.Name)
		text(&c.Reason)
	}
	p := status.Plan
	if p == nil {
		return
	}
	texts(p.ValuesErrors)
	texts(p.Violations)
	texts(p.Effects)
	texts(p.Warnings)
	for _, list := range [][]v1alpha1.ObjectRef{p.Objects, p.Changes.Added, p.Changes.Removed} {
		for i := range list {
			text(&list[i].Kind)
			text(&list[i].Name)
		}
	}
	for i := range p.Workloads {
		w := &p.Workloads[i]
		text(&w.Kind)
		text(&w.Name)
		texts(w.Images)
	}
	for i := range p.Changes.Modified {
		m := &p.Changes.Modified[i]
		text(&m.Kind)
		text(&m.Name)
		texts(m.Fields)
	}
	for i := range p.Changes.Images {
		c := &p.Changes.Images[i]
		for _, t := range []*string{&c.Kind, &c.Name, &c.Container, &c.From, &c.To} {
			text(t)
		}
	}
	for _, t := range []*string{&p.Chart.Name, &p.Chart.Version, &p.Chart.AppVersion, &p.Chart.Description} {
		*t = cut(printable(*t), maxChartText)
	}
	annotations := make(map[string]string, len(p.Chart.Annotations))
	for k, v := range p.Chart.Annotations {
		annotations[cut(printable(k), maxChartText)] = cut(printable(v), maxChartText)
	}
	p.Chart.Annotations = annotations
	for i := range p.Inputs {
		p.Inputs[i].Path = cut(printable(p.Inputs[i].Path), maxChartText)
	}
}

// printable drops control characters, which could move a terminal's cursor or break a document.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
}

// cut shortens a text to at most limit bytes, visibly.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit-len("…")], "") + "…"
}
