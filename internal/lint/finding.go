package lint

import (
	"cmp"
	"slices"
	"strings"
)

// Finding is one place where a rule is broken. Its text holds no line of a template and no value but what the
// schema itself lists.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	File     string   `json:"file"`             // in the chart
	Line     int      `json:"line,omitempty"`   // from 1; 0 when it is not known
	Column   int      `json:"column,omitempty"` // from 1; 0 when it is not known
	Object   string   `json:"object,omitempty"` // Kind/name
	Path     string   `json:"path,omitempty"`   // of the field in the object, or of the input
	Message  string   `json:"message"`
	Fix      string   `json:"fix,omitempty"`
	// With are the inputs it shows with, such as "worker.mode=host"; empty when it always does.
	With []string `json:"with,omitempty"`
	// First tells that With are the inputs it first shows with, and others show it too.
	First bool `json:"first,omitempty"`
	// Renders is how many sets of values show it; 0 for what shows whatever the values are.
	Renders int `json:"renders,omitempty"`

	// placed tells that the place is where a marked render says it is, and source is the template that renders the
	// object then, which may call another one.
	placed bool
	source string
	// given are the values that show it, where no row does, and field is where in the object it is, where Path says
	// something else.
	given *given
	field string
	// render is the one, from 1, that shows the place of what shows in all of them; 0 is the first that succeeds.
	render int
}

// key is what makes two findings one.
func (f Finding) key() string {
	return strings.Join([]string{f.Rule, f.File, f.Object, f.Path, f.Message}, "\x00")
}

// found gathers findings, each once, with the renders that show it.
type found struct {
	list  []Finding
	index map[string]int
	rows  map[string][]int // by key, the renders that show it
	rules map[string]Rule
	// ignored are the keys of findings that .zaelint.yaml silences.
	ignored map[string]bool
}

func newFound() *found {
	f := &found{index: map[string]int{}, rows: map[string][]int{}, rules: map[string]Rule{}, ignored: map[string]bool{}}
	for _, r := range Catalogue() {
		f.rules[r.ID] = r
	}
	return f
}

// Instead of a render's number: a finding that shows whatever the values are, and one of the other platform.
const (
	static    = -1
	elsewhere = -2
)

// elsewhereText is what is told of a finding that only shows there.
const elsewhereText = "another platform: other names, pull secrets, TLS to its brokers, an alias for its issuer"

// add takes a finding that a render shows, by the render's number.
func (f *found) add(one Finding, row int) {
	rule := f.rules[one.Rule]
	if one.Severity == "" {
		one.Severity = rule.Severity
	}
	if one.Fix == "" {
		one.Fix = rule.Fix
	}
	if one.File == "" {
		one.File = chartFile
	}
	one.Message, one.Object, one.Path = clean(one.Message), clean(one.Object), clean(one.Path)
	key := one.key()
	if at, there := f.index[key]; there {
		if f.list[at].Line == 0 {
			f.list[at].Line, f.list[at].Column = one.Line, one.Column
		}
	} else {
		f.index[key] = len(f.list)
		f.list = append(f.list, one)
	}
	if rows := f.rows[key]; len(rows) == 0 || rows[len(rows)-1] != row {
		f.rows[key] = append(rows, row)
	}
}

// replace changes a finding that is there.
func (f *found) replace(i int, one Finding) {
	was, key := f.list[i].key(), one.key()
	f.list[i] = one
	if was == key {
		return
	}
	rows := slices.Concat(f.rows[key], f.rows[was])
	slices.Sort(rows)
	f.rows[key] = slices.Compact(rows)
	f.index[key] = i
	delete(f.rows, was)
	delete(f.index, was)
}

// sorted are the findings by file and place, each fault once, with what it shows with.
func (f *found) sorted(sp *space, rows []row) []Finding {
	var all []shown
	for _, one := range f.list {
		all = append(all, shown{one, f.rows[one.key()]})
	}
	common := func(at []int) []string { return sp.common(rows, at) }
	out := make([]Finding, 0, len(all))
	for _, one := range merged(all, common) {
		one.With, one.First = sp.shows(rows, one.rows)
		for _, n := range one.rows {
			if n >= 0 && (n >= len(rows) || !rows[n].narrows) {
				one.Renders++
			}
		}
		out = append(out, one.Finding)
	}
	slices.SortStableFunc(out, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Severity.rank(), b.Severity.rank()), cmp.Compare(a.Rule, b.Rule),
			cmp.Compare(a.Object, b.Object), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message))
	})
	return out
}

// maxText bounds what of a chart's names is told.
const maxText = 400

// clean is text without control characters, cut to length.
func clean(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x2028 || r == 0x2029 {
			return ' '
		}
		return r
	}, text)
	if runes := []rune(text); len(runes) > maxText {
		return string(runes[:maxText]) + "…"
	}
	return text
}
