package operator

import (
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"zaentrum.io/zae/api/v1alpha1"
)

const (
	// maxMessage is the longest status message or condition; longer ones are cut. A condition may hold
	// 32 KiB, a person reads a line.
	maxMessage = 1024
	// maxChartText is the longest text of a chart that goes into a plan.
	maxChartText = 2048
)

// clean takes secret values, control characters and excess length out of everything in a status that comes
// from rendering or from the cluster, and the latter two out of what the chart says of itself: that stands in
// the archive for everybody to read, so that it holds nobody's secret, and a word taken out of it would tell
// which word is one.
func (s *secrets) clean(status *v1alpha1.ZaentrumAddonStatus) {
	r := s.redactor()
	text := func(t *string) { *t = cut(r.clean(*t), maxMessage) }
	kind := func(t *string) {
		if !slices.ContainsFunc(Kinds, func(known schema.GroupVersionKind) bool { return known.Kind == *t }) {
			text(t)
		}
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
		kind(&c.Kind)
		text(&c.Name)
		text(&c.Reason)
	}
	for i := range status.Jobs {
		text(&status.Jobs[i].Name)
		text(&status.Jobs[i].Reason)
	}
	for i := range status.ValuesSecrets {
		text(&status.ValuesSecrets[i].Name)
		texts(status.ValuesSecrets[i].Keys)
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
			kind(&list[i].Kind)
			text(&list[i].Name)
		}
	}
	for i := range p.Findings {
		f := &p.Findings[i]
		text(&f.Object.Kind)
		text(&f.Object.Name)
		text(&f.Path)
	}
	for i := range p.Workloads {
		w := &p.Workloads[i]
		kind(&w.Kind)
		text(&w.Name)
		texts(w.Images)
		w.Ports = slices.DeleteFunc(w.Ports, func(p int32) bool { return slices.Contains(s.numbers, int64(p)) })
	}
	for i := range p.Changes.Modified {
		m := &p.Changes.Modified[i]
		kind(&m.Kind)
		text(&m.Name)
		texts(m.Fields)
	}
	for i := range p.Changes.Images {
		c := &p.Changes.Images[i]
		for _, t := range []*string{&c.Name, &c.Container, &c.From, &c.To} {
			text(t)
		}
		kind(&c.Kind)
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
