package lint

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/values"
	"zaentrum.io/zae/internal/worker"
)

// choice is one value of one input, or all that an alternative asks for. The first of a param is that nobody says
// anything, or the alternative without which nothing is accepted.
type choice struct {
	label string // such as worker.mode=host; empty for the first
	set   []assign
}

// param is an input that values are tried of, or a place where the schema has alternatives.
type param struct {
	input   inputs.Input // none for alternatives
	choices []choice
}

// row is one set of values to render with.
type row struct {
	picks []int // for each param, the choice
	file  string
	tree  map[string]any // of the file
	// rendered tells that it did.
	rendered bool
}

// space is what may be given to a chart.
type space struct {
	schema    *inputs.Schema
	defaults  map[string]any
	subcharts []string
	made      maker
	params    []param
	// accepted are the rows of which it is known whether the schema takes them.
	accepted map[string]bool
	tired    bool // validating takes so long that rows are no longer tried
	stopped  func() bool
}

// maxTried bounds the rows of which it is tried whether the schema takes them, before they are rendered.
const maxTried = 500

// maxParams bounds the inputs of which combinations are looked at.
const maxParams = 60

// newSpace is what a schema lets be given over a chart's values. forms are the functions that its templates hand texts to.
func newSpace(schema *inputs.Schema, c *chart.Chart, forms map[string]string) *space {
	s := &space{schema: schema, defaults: c.Defaults, subcharts: c.Subcharts, accepted: map[string]bool{}}
	s.made = maker{schema: schema, salt: "first", forms: forms}
	if doc := newSchemaDoc(c.Schema); doc.root != nil {
		s.made.doc = doc
	}
	s.params = s.forks()
	forks := len(s.params)
	for _, in := range schema.Inputs() {
		if in.Unaddressable || in.Generate != "" || len(s.params) == maxParams {
			continue
		}
		if p := s.param(in); len(p.choices) > 1 {
			s.params = append(s.params, p)
		}
	}
	s.settle(forks)
	return s
}

// settle chooses an alternative at each fork where nothing is accepted without one.
func (s *space) settle(forks int) {
	first := row{picks: make([]int, len(s.params))}
	problems := len(s.problems(s.give(first)))
	for i := range forks {
		if problems == 0 {
			return
		}
		p, best := &s.params[i], 0
		for c := 1; c < len(p.choices); c++ {
			p.choices[0].set = p.choices[c].set
			if n := len(s.problems(s.give(first))); n < problems {
				best, problems = c, n
			}
		}
		p.choices[0].set = nil
		if best > 0 {
			p.choices[0].set = p.choices[best].set
			p.choices = slices.Delete(p.choices, best, best+1)
		}
	}
}

// param are the values of an input that are tried: all members of an enum, both booleans, the bounds of a number, each
// type of several, null, and that it is given at all.
func (s *space) param(in inputs.Input) param {
	p := param{input: in, choices: []choice{{}}}
	path := strings.Split(in.Path, ".")
	now, there := values.Get(s.defaults, path)
	add := func(text string, v any) {
		if !slices.ContainsFunc(p.choices[1:], func(c choice) bool { return sameValue(c.set[0].value, v) }) {
			p.choices = append(p.choices, choice{text, []assign{{path, v}}})
		}
	}
	var tried []any
	switch {
	case in.Enum != nil:
		tried = in.Enum
	case in.Type == inputs.TypeBoolean:
		tried = []any{false, true}
	case in.Type == inputs.TypeInteger || in.Type == inputs.TypeNumber:
		tried = s.bounds(in)
	case in.Type == inputs.TypeJSON:
		shapes := map[string]bool{"null": true}
		if in.Required && !there {
			v, _ := s.made.value(in) // given anyhow
			shapes[shape(v)] = true
		}
		for _, v := range s.made.described(in) {
			if (!there || !sameValue(now, v)) && !shapes[shape(v)] && s.made.accepts(in, v) {
				shapes[shape(v)] = true
				add(in.Path+shapeText(v), v)
			}
		}
	case !in.Required || there:
		if v, ok := s.made.value(in); ok {
			add(in.Path+" given", v)
		}
	}
	for _, v := range tried {
		if (!there || !sameValue(now, v)) && s.made.accepts(in, v) {
			add(in.Path+"="+label(v), v)
		}
	}
	if s.made.takesNull(in) {
		add(in.Path+"=null", nil)
	}
	return p
}

// shape is the type of a value, and whether there is something in it.
func shape(v any) string {
	switch v := v.(type) {
	case []any:
		return "list " + strconv.FormatBool(len(v) > 0)
	case map[string]any:
		return "map " + strconv.FormatBool(len(v) > 0)
	case string:
		return "text"
	case bool:
		return "boolean"
	case nil:
		return "null"
	default:
		return "number"
	}
}

// shapeText says of an input that may be of several types what is given for it.
func shapeText(v any) string {
	switch shape(v) {
	case "list false":
		return "=[]"
	case "map false":
		return "={}"
	case "text":
		return " as a text"
	case "number":
		return " as a number"
	case "boolean":
		return "=" + label(v)
	default:
		return " given"
	}
}

// bounds are the numbers at the bounds of an input, or next to those that exclude themselves.
func (s *space) bounds(in inputs.Input) []any {
	var out []any
	for _, v := range s.made.candidates(inputs.Input{
		Path: in.Path, Type: in.Type, Minimum: in.Minimum, Maximum: in.Maximum,
		ExclusiveMinimum: in.ExclusiveMinimum, ExclusiveMaximum: in.ExclusiveMaximum, MultipleOf: in.MultipleOf,
	}) {
		if bounded(in, v) {
			out = append(out, v)
		}
	}
	return out
}

// bounded keeps numbers to those that are bounds, or next to one.
func bounded(in inputs.Input, v any) bool {
	text := label(v)
	if text == in.Minimum.String() || text == in.Maximum.String() {
		return true
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return false
	}
	for _, b := range []json.Number{in.ExclusiveMinimum, in.ExclusiveMaximum} {
		if g, err := b.Float64(); err == nil && (f == g+1 || f == g-1) {
			return true
		}
	}
	return false
}

// label is a value that the schema lists, as it is told.
func label(v any) string {
	if text, ok := v.(string); ok && text != "" {
		return clean(text)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return clean(string(text))
}

// rows are the sets of values to render with: what must be given and nothing else; then each value of each
// input; then pairs of values. No two come to the same values. more is how many pairs there are that no row has, but
// for those that the schema refuses.
func (s *space) rows(most int) (rows []row, more int) {
	left := s.pairs()
	same := map[string]bool{}
	add := func(picks []int) bool {
		one := row{picks: picks}
		if key := s.give(one).key(); !same[key] {
			if len(rows) >= most {
				return false
			}
			same[key] = true
			rows = append(rows, one)
		}
		left.cover(picks)
		return true
	}
	add(make([]int, len(s.params)))
	singles := 0
	for i, p := range s.params {
		for c := 1; c < len(p.choices); c++ {
			picks := make([]int, len(s.params))
			picks[i] = c
			if len(rows) >= most || s.takes(picks) && !add(picks) {
				singles++
			}
		}
	}
	for left.open > 0 && len(rows) < most {
		i, j, picks := left.next()
		if !s.takes(picks) { // what else is in the row may be in the way
			alone := make([]int, len(picks))
			alone[i], alone[j] = picks[i], picks[j]
			if picks = alone; !s.takes(picks) {
				left.drop(i, picks[i], j, picks[j])
				continue
			}
		}
		add(picks)
	}
	return rows, left.open + singles
}

// takes tells whether the schema accepts a row.
func (s *space) takes(picks []int) bool {
	key := fmt.Sprint(picks)
	ok, known := s.accepted[key]
	s.tired = s.tired || len(s.accepted) >= maxTried || s.stopped != nil && s.stopped()
	if !known && !s.tired {
		ok = len(s.problems(s.give(row{picks: picks}))) == 0
		s.accepted[key] = ok
	}
	return ok || !known && s.tired
}

// pairs are the pairs of values that no row has yet.
type pairs struct {
	sizes []int
	left  [][]bool // by the numbers of two params, their values' pairs
	open  int
}

func (s *space) pairs() *pairs {
	p := &pairs{}
	for _, one := range s.params {
		p.sizes = append(p.sizes, len(one.choices))
	}
	n := len(p.sizes)
	p.left = make([][]bool, n*n)
	for i := range n {
		for j := i + 1; j < n; j++ {
			p.left[i*n+j] = make([]bool, p.sizes[i]*p.sizes[j])
			for k := range p.left[i*n+j] {
				p.left[i*n+j][k] = true
				p.open++
			}
		}
	}
	return p
}

func (p *pairs) at(i, a, j, b int) *bool {
	if i > j {
		i, a, j, b = j, b, i, a
	}
	return &p.left[i*len(p.sizes)+j][a*p.sizes[j]+b]
}

func (p *pairs) cover(picks []int) {
	for i := range picks {
		for j := i + 1; j < len(picks); j++ {
			if at := p.at(i, picks[i], j, picks[j]); *at {
				*at = false
				p.open--
			}
		}
	}
}

// drop leaves out a pair that cannot be.
func (p *pairs) drop(i, a, j, b int) {
	if at := p.at(i, a, j, b); *at {
		*at = false
		p.open--
	}
}

// next is a row that has the first pair that is left, of the values of i and j, and as many others as it can find one
// after the other.
func (p *pairs) next() (i, j int, picks []int) {
	n := len(p.sizes)
	for i := range n {
		for j := i + 1; j < n; j++ {
			k := slices.Index(p.left[i*n+j], true)
			if k < 0 {
				continue
			}
			picks = make([]int, n)
			for x := range picks {
				picks[x] = -1
			}
			picks[i], picks[j] = k/p.sizes[j], k%p.sizes[j]
			for x := range picks {
				if picks[x] < 0 {
					picks[x] = p.best(picks, x)
				}
			}
			return i, j, picks
		}
	}
	return 0, 0, make([]int, n)
}

func (p *pairs) best(picks []int, x int) int {
	best, most := 0, -1
	for c := range p.sizes[x] {
		n := 0
		for y, pick := range picks {
			if y != x && pick >= 0 && *p.at(x, c, y, pick) {
				n++
			}
		}
		if n > most {
			best, most = c, n
		}
	}
	return best
}

func (g given) job(name string, platform map[string]any) worker.Job {
	namespace, _ := platform["namespace"].(string)
	return worker.Job{Name: name, Namespace: namespace, Spec: g.spec, From: g.from, Generated: g.generated, Platform: platform}
}

// says are the inputs that a row gives besides what must be given.
func (s *space) says(r row) []string {
	var out []string
	if r.file != "" {
		out = append(out, r.file)
	}
	for i, pick := range r.picks {
		if pick > 0 {
			out = append(out, s.params[i].choices[pick].label)
		}
	}
	return out
}

// shows is what all rows that show a finding have in common: nothing when the first row is among them. Where
// they have nothing in common, it is what the first of them says, and first is true.
func (s *space) shows(rows []row, at []int) (with []string, first bool) {
	if s == nil {
		return nil, false
	}
	if !slices.ContainsFunc(at, func(n int) bool { return n != elsewhere }) {
		return []string{elsewhereText}, false
	}
	at = slices.DeleteFunc(slices.Clone(at), func(n int) bool { return n == elsewhere })
	var common []string
	for i, n := range at {
		if n <= 0 || n >= len(rows) {
			return nil, false
		}
		says := s.says(rows[n])
		if i == 0 {
			common = says
			continue
		}
		common = slices.DeleteFunc(slices.Clone(common), func(one string) bool { return !slices.Contains(says, one) })
	}
	if len(common) == 0 && len(at) > 0 {
		return s.says(rows[slices.Min(at)]), true
	}
	return s.needed(common, rows, at), false
}

// maxNeeded is how many inputs may be needed together for a finding to show, for it to be found out which.
const maxNeeded = 3

// needed are the fewest of what some rows have in common that no other row has, which rendered and does not show what
// they show: the rest is there by chance. Of several, those of one group of inputs are meant.
func (s *space) needed(common []string, rows []row, at []int) []string {
	var others [][]string
	for i, r := range rows {
		if r.rendered && !slices.Contains(at, i) {
			others = append(others, s.says(r))
		}
	}
	var best []string
	var choose func(from, n int, some []string)
	choose = func(from, n int, some []string) {
		if n == 0 {
			if (best == nil || related(some) > related(best)) && !slices.ContainsFunc(others, func(all []string) bool { return holdsAll(all, some) }) {
				best = slices.Clone(some)
			}
			return
		}
		for i := from; i+n <= len(common); i++ {
			choose(i+1, n-1, append(some, common[i]))
		}
	}
	for n := 1; n <= min(maxNeeded, len(common)-1) && best == nil; n++ {
		choose(0, n, nil)
	}
	if best == nil {
		return common
	}
	return best
}

func holdsAll(all, some []string) bool {
	return !slices.ContainsFunc(some, func(one string) bool { return !slices.Contains(all, one) })
}

// related is how many inputs are in the group of the first one.
func related(labels []string) int {
	group, _, _ := strings.Cut(labels[0], ".")
	n := 0
	for _, one := range labels {
		if other, _, ok := strings.Cut(one, "."); ok && other == group {
			n++
		}
	}
	return n
}

// tells what was rendered, for people.
func spaceText(renders, rows, skipped, more int) string {
	sets := "sets"
	if rows == 1 {
		sets = "set"
	}
	text := fmt.Sprintf("renders: %d, of %d %s of values", renders, rows, sets)
	if skipped > 0 {
		text += fmt.Sprintf(", %d of which the schema refuses", skipped)
	}
	if more > 0 {
		text += fmt.Sprintf("; %d values and pairs of values are left out (--max-renders)", more)
	}
	return text
}
