package lint

import (
	"regexp"
	"slices"
	"strings"
)

// One fault of a template shows in many renders, each time a little different: on another line of its output, in
// an object of another name, at another place of a list. It is told once, as it shows first.

// shown is a finding with the renders that show it.
type shown struct {
	Finding
	rows []int
}

var numbers = regexp.MustCompile(`[0-9]+`)

// spot is what findings share that may be one fault; empty for those that no render shows.
func (s *shown) spot() string {
	inRender := slices.ContainsFunc(s.rows, func(n int) bool { return n != static })
	if !inRender && s.render == 0 || !strings.Contains(s.File, "templates/") {
		return ""
	}
	message := numbers.ReplaceAllString(s.Message, "#")
	if rule, known := RuleByID(s.Rule); known && rule.Guardrail {
		message = "" // says what was found there, which may be this or that
	}
	return strings.Join([]string{s.Rule, string(s.Severity), s.File, message}, "\x00")
}

// fieldOf is the kind and path of a finding, whatever the object's name and the place in lists.
func (s *shown) fieldOf() string {
	kind, _, _ := strings.Cut(s.Object, "/")
	return kind + " " + numbers.ReplaceAllString(s.Path, "#")
}

// placed tells whether two findings are at the same place of a template.
func (s *shown) placed(other *shown) bool {
	return s.Line > 0 && s.Line == other.Line && s.Column == other.Column
}

// merged are the findings with those that are one fault put together, in the order in which they came.
func merged(all []shown, common func(rows []int) []string) []shown {
	var out []shown
	spots := map[string][]int{}
	for _, one := range all {
		spot := one.spot()
		if spot == "" {
			out = append(out, one)
			continue
		}
		i := slices.IndexFunc(spots[spot], func(i int) bool { return sameFault(&out[i], &one, common) })
		if i < 0 {
			spots[spot] = append(spots[spot], len(out))
			out = append(out, one)
			continue
		}
		first := &out[spots[spot][i]]
		first.rows = append(first.rows, one.rows...)
		slices.Sort(first.rows)
		first.rows = slices.Compact(first.rows)
	}
	return out
}

// sameFault tells whether two findings of one spot are one fault: they are at one place of the template, or no
// render shows both, and they show with the same inputs or one of them always does.
func sameFault(a, b *shown, common func(rows []int) []string) bool {
	if a.placed(b) {
		return true
	}
	if a.Line != b.Line || a.Column != b.Column || a.fieldOf() != b.fieldOf() || slices.ContainsFunc(a.rows, func(n int) bool { return slices.Contains(b.rows, n) }) {
		return false
	}
	return len(common(a.rows)) == 0 || len(common(b.rows)) == 0 || len(common(slices.Concat(a.rows, b.rows))) > 0
}
