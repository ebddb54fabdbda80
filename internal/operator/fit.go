package operator

import (
	"encoding/json"
	"fmt"

	"zaentrum.io/zae/api/v1alpha1"
)

// maxStatusBytes keeps a status well under what etcd takes (decisions §8 says 512 KiB): one that is too
// large could never be written again.
const maxStatusBytes = 480 << 10

// maxAnnotations is the most annotations of a chart that a plan carries.
const maxAnnotations = 64

// fit cuts a status until it can be written: first what the chart says of itself beyond the contract, then
// its schema, then the lists, the least important halves first. What is cut is counted, and said: in the list
// where it holds text, else in the message.
func fit(s *v1alpha1.ZaentrumAddonStatus) {
	if s.Plan == nil {
		return
	}
	p := s.Plan
	if len(p.Chart.Annotations) > maxAnnotations {
		p.Chart.Annotations = contractAnnotations(p.Chart.Annotations)
	}
	if size(s) <= maxStatusBytes {
		return
	}
	p.Chart.Annotations = contractAnnotations(p.Chart.Annotations)
	whole := *s.DeepCopy() // each try cuts the whole anew, so that the counts are right
	for limit := 4096; limit > 0; limit /= 2 {
		if cutLists(s, &whole, limit); size(s) <= maxStatusBytes {
			return
		}
	}
	p = s.Plan
	p.ValuesSchema = "" // a schema is at most 256 KiB, so that this is the last resort
}

// contractAnnotations are those that the contract gives a meaning (§1).
func contractAnnotations(all map[string]string) map[string]string {
	kept := map[string]string{}
	for _, name := range []string{
		v1alpha1.ChartAnnotationAddon, v1alpha1.ChartAnnotationPrimary, v1alpha1.ChartAnnotationTitle,
		v1alpha1.ChartAnnotationDescription, v1alpha1.ChartAnnotationIcon,
	} {
		if v, ok := all[name]; ok {
			kept[name] = v
		}
	}
	return kept
}

// cutLists makes s the whole with no list longer than limit.
func cutLists(s, whole *v1alpha1.ZaentrumAddonStatus, limit int) {
	*s = *whole.DeepCopy()
	p, left := s.Plan, 0
	p.Violations = cutText(p.Violations, limit)
	p.ValuesErrors = cutText(p.ValuesErrors, limit)
	p.Warnings = cutText(p.Warnings, limit)
	p.Effects = cutText(p.Effects, limit)
	p.Inputs = cutList(p.Inputs, limit, &left)
	p.Objects = cutList(p.Objects, limit, &left)
	p.Workloads = cutList(p.Workloads, limit, &left)
	p.Changes.Added = cutList(p.Changes.Added, limit, &left)
	p.Changes.Removed = cutList(p.Changes.Removed, limit, &left)
	p.Changes.Modified = cutList(p.Changes.Modified, limit, &left)
	for i := range p.Changes.Modified {
		p.Changes.Modified[i].Fields = cutText(p.Changes.Modified[i].Fields, limit)
	}
	p.Changes.Images = cutList(p.Changes.Images, limit, &left)
	s.Components = cutList(s.Components, limit, &left)
	for i := range p.Workloads {
		p.Workloads[i].Images = cutList(p.Workloads[i].Images, limit, &left)
		p.Workloads[i].Ports = cutList(p.Workloads[i].Ports, limit, &left)
	}
	if left > 0 {
		note := fmt.Sprintf(" (the plan is too long to show whole: %d entries are left out)", left)
		s.Message = cut(s.Message, maxMessage-len(note)) + note
	}
}

func cutText(list []string, limit int) []string {
	if len(list) <= limit {
		return list
	}
	return append(list[:limit-1:limit-1], fmt.Sprintf("… and %d more", len(list)-limit+1))
}

func cutList[T any](list []T, limit int, left *int) []T {
	if len(list) <= limit {
		return list
	}
	*left += len(list) - limit
	return list[:limit:limit]
}

func size(s *v1alpha1.ZaentrumAddonStatus) int {
	b, err := json.Marshal(s)
	if err != nil {
		return 0
	}
	return len(b)
}
