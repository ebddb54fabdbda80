package operator

import (
	"encoding/json"
	"fmt"

	"zaentrum.io/zae/api/v1alpha1"
)

// maxStatusBytes keeps a status well under what etcd takes (decisions §8 says 512 KiB): one that is too
// large could never be written again.
const maxStatusBytes = 480 << 10

// fit cuts the lists of a status until it fits. What is cut is counted, and said: in the list where it
// holds text, else in the message.
func fit(s *v1alpha1.ZaentrumAddonStatus) {
	message, left := s.Message, 0
	for limit := 4096; size(s) > maxStatusBytes && limit > 0; limit /= 2 {
		if s.Plan == nil {
			return
		}
		p := s.Plan
		cut := 0
		p.Violations = cutText(p.Violations, limit)
		p.ValuesErrors = cutText(p.ValuesErrors, limit)
		p.Objects, cut = cutList(p.Objects, limit, cut)
		p.Workloads, cut = cutList(p.Workloads, limit, cut)
		p.Changes.Added, cut = cutList(p.Changes.Added, limit, cut)
		p.Changes.Removed, cut = cutList(p.Changes.Removed, limit, cut)
		p.Changes.Images, cut = cutList(p.Changes.Images, limit, cut)
		s.Components, cut = cutList(s.Components, limit, cut)
		for i := range p.Workloads {
			p.Workloads[i].Images, cut = cutList(p.Workloads[i].Images, limit, cut)
			p.Workloads[i].Ports, cut = cutList(p.Workloads[i].Ports, limit, cut)
		}
		if cut > 0 {
			left += cut
			s.Message = fmt.Sprintf("%s (the plan is too long to show whole: %d entries are left out)", message, left)
		}
	}
	if size(s) > maxStatusBytes && s.Plan != nil { // the chart's own texts are what is large
		s.Plan.ValuesSchema = ""
		s.Plan.Chart.Annotations = nil
		if len(s.Plan.Chart.Description) > 1024 {
			s.Plan.Chart.Description = s.Plan.Chart.Description[:1024] + "…"
		}
	}
}

func cutText(list []string, limit int) []string {
	if len(list) <= limit {
		return list
	}
	return append(list[:limit-1:limit-1], fmt.Sprintf("… and %d more", len(list)-limit+1))
}

func cutList[T any](list []T, limit, cut int) ([]T, int) {
	if len(list) <= limit {
		return list, cut
	}
	return list[:limit:limit], cut + len(list) - limit
}

func size(s *v1alpha1.ZaentrumAddonStatus) int {
	b, err := json.Marshal(s)
	if err != nil {
		return 0
	}
	return len(b)
}
