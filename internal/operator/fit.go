package operator

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"zaentrum.io/zae/api/v1alpha1"
)

// maxStatusBytes keeps a status well under what etcd takes (decisions §8 says 512 KiB): one that is too
// large could never be written again.
const maxStatusBytes = 480 << 10

const (
	// maxAnnotations is the most annotations of a chart that a plan carries.
	maxAnnotations = 64
	// mostEntries is the most entries that any list of a plan has that is too long, and fewEntries how short the
	// lists become before the schema is left out.
	mostEntries = 4096
	fewEntries  = 64
)

// fit cuts a status until it can be written: first what the chart says of itself beyond the contract, then all
// lists alike, then its schema, then the lists again. What is cut is counted, and said: in the list where it
// holds text, else in the message. It tells whether anything was cut for length.
func fit(s *v1alpha1.ZaentrumAddonStatus) bool {
	if p := s.Plan; p != nil && len(p.Chart.Annotations) > maxAnnotations {
		p.Chart.Annotations = contractAnnotations(p.Chart.Annotations)
	}
	if size(s) <= maxStatusBytes {
		return false
	}
	if p := s.Plan; p != nil {
		p.Chart.Annotations = contractAnnotations(p.Chart.Annotations)
	}
	whole := *s // each try cuts the whole anew, so that the counts are right
	for limit := mostEntries; limit > 0; limit /= 2 {
		if cutStatus(s, whole, limit, limit < fewEntries); size(s) <= maxStatusBytes {
			return true
		}
	}
	return true
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

// cutStatus makes s the whole, which stays as it is, with no list longer than limit, and without the schema if
// that is to go.
func cutStatus(s *v1alpha1.ZaentrumAddonStatus, whole v1alpha1.ZaentrumAddonStatus, limit int, noSchema bool) {
	*s = whole
	left := 0
	var without []string
	s.Components = cutList(s.Components, limit, &left)
	s.Jobs = cutJobs(s.Jobs, limit)
	if whole.Plan != nil {
		p := *whole.Plan
		s.Plan = &p
		cutPlan(&p, limit, &left)
		if noSchema && p.ValuesSchema != "" {
			p.ValuesSchema = ""
			without = append(without, "the schema")
		}
	}
	if left > 0 {
		without = append(without, fmt.Sprintf("%d entries of lists", left))
	}
	if len(without) > 0 {
		note := " (the plan is too long to show whole; left out: " + strings.Join(without, ", ") + ")"
		s.Message = cut(s.Message, maxMessage-len(note)) + note
	}
}

// cutJobs are all the Jobs, since one that is forgotten would run again. There are no more than objects in a chart,
// so that what is left of them always fits.
func cutJobs(jobs []v1alpha1.JobRun, limit int) []v1alpha1.JobRun {
	jobs = slices.Clone(jobs)
	for i := range jobs {
		jobs[i].Reason = cut(jobs[i].Reason, max(limit, 16))
	}
	return jobs
}

func cutPlan(p *v1alpha1.Plan, limit int, left *int) {
	p.Violations = cutText(p.Violations, limit)
	p.ValuesErrors = cutText(p.ValuesErrors, limit)
	p.Warnings = cutText(p.Warnings, limit)
	p.Effects = cutText(p.Effects, limit)
	p.Inputs = cutList(p.Inputs, limit, left)
	p.Findings = cutList(p.Findings, limit, left)
	p.Objects = cutList(p.Objects, limit, left)
	p.Workloads = cutList(p.Workloads, limit, left)
	for i := range p.Workloads {
		p.Workloads[i].Images = cutList(p.Workloads[i].Images, limit, left)
		p.Workloads[i].Ports = cutList(p.Workloads[i].Ports, limit, left)
	}
	p.Changes.Added = cutList(p.Changes.Added, limit, left)
	p.Changes.Removed = cutList(p.Changes.Removed, limit, left)
	p.Changes.Images = cutList(p.Changes.Images, limit, left)
	p.Changes.Modified = cutList(p.Changes.Modified, limit, left)
	for i := range p.Changes.Modified {
		p.Changes.Modified[i].Fields = cutText(p.Changes.Modified[i].Fields, limit)
	}
}

var moreEntry = regexp.MustCompile(`^… and (\d+) more$`)

// cutText is the list with at most limit entries, of which the last says how many are left out, also when some
// were left out before.
func cutText(list []string, limit int) []string {
	if len(list) <= limit {
		return list
	}
	left := len(list) - limit + 1
	if m := moreEntry.FindStringSubmatch(list[len(list)-1]); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			left += n - 1
		}
	}
	return append(slices.Clone(list[:limit-1]), fmt.Sprintf("… and %d more", left))
}

// cutList is a copy of the list with at most limit entries.
func cutList[T any](list []T, limit int, left *int) []T {
	if len(list) > limit {
		*left += len(list) - limit
		list = list[:limit]
	}
	return slices.Clone(list)
}

func size(s *v1alpha1.ZaentrumAddonStatus) int {
	b, err := json.Marshal(s)
	if err != nil {
		return 0
	}
	return len(b)
}
