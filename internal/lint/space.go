package lint

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"zaentrum.io/zae/api/v1alpha1"
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
	// alone is how many of the last choices are tried by themselves only, and not in pairs.
	alone int
}

// row is one set of values to render with.
type row struct {
	picks []int    // for each param, the choice
	also  []choice // besides
	file  string
	tree  map[string]any // of the file
	// rendered tells that it did.
	rendered bool
	// narrows tells that it was only made to find out what a finding needs.
	narrows bool
}

// space is what may be given to a chart.
type space struct {
	schema    *inputs.Schema
	defaults  map[string]any
	subcharts []string
	made      maker
	params    []param
	// repairs are given where nobody says otherwise: the chart's own values that nothing is accepted with.
	repairs []assign
	// accepted are the rows of which it is known whether the schema takes them.
	accepted map[string]bool
	most     int  // of those
	dropped  int  // values of inputs beyond maxParams
	tired    bool // validating takes so long that rows are no longer tried
	stopped  func() bool
}

// maxTried bounds the rows of which it is tried whether the schema takes them, before they are rendered, besides those of
// single values.
const maxTried = 500

// maxChoices bounds the values that are tried of one input: more than there are renders.
const maxChoices = 200

// maxParams bounds the inputs that values are tried of, and maxPaired those of which pairs are looked at.
const (
	maxParams = 1000
	maxPaired = 150
)

// newSpace is what a schema lets be given over a chart's values, which are defaults with those of bundled charts. forms
// are the functions that its templates hand texts to; stopped, which may be nil, tells that nobody waits any more.
func newSpace(schema *inputs.Schema, c *chart.Chart, defaults map[string]any, forms map[string]string, stopped func() bool) *space {
	s := &space{stopped: stopped, schema: schema, defaults: defaults, subcharts: c.Subcharts, accepted: map[string]bool{}, most: maxTried}
	s.made = maker{schema: schema, salt: "first", forms: forms}
	if doc := newSchemaDoc(c.Schema); doc.root != nil {
		s.made.doc = doc
	}
	s.params = s.forks()
	forks := len(s.params)
	for _, in := range schema.Inputs() {
		switch {
		case in.Unaddressable || in.Generate != "" || stopped != nil && stopped():
			continue
		case len(s.params) == maxParams:
			s.dropped++
			continue
		}
		if p := s.param(in); len(p.choices) > 1 {
			s.params = append(s.params, p)
		}
	}
	if c.Schema == nil {
		s.switches(nil, s.defaults)
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
	if in.Enum == nil {
		tried = append(tried, s.made.listed(path)...)
	}
	if len(tried) > maxChoices {
		s.dropped += len(tried) - maxChoices
		tried = tried[:maxChoices]
	}
	for _, v := range tried {
		if (!there || !sameValue(now, v)) && s.made.accepts(in, v) {
			add(in.Path+"="+label(v), v)
		}
	}
	if s.made.takesNull(in) {
		add(in.Path+"=null", nil)
	}
	if in.Type == inputs.TypeJSON {
		n := len(p.choices)
		for _, c := range s.made.variants(in) {
			if !there || !sameValue(now, c.set[0].value) {
				add(c.label, c.set[0].value)
			}
		}
		p.alone = len(p.choices) - n
	}
	return p
}

// switches are the booleans of values that no schema declares, the other way round.
func (s *space) switches(path []string, tree map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		at := slices.Concat(path, []string{key})
		switch v := tree[key].(type) {
		case map[string]any:
			if at[0] != v1alpha1.PlatformKey {
				s.switches(at, v)
			}
		case bool:
			if len(s.params) == maxParams {
				s.dropped++
				continue
			}
			dotted := strings.Join(at, ".")
			s.params = append(s.params, param{
				input:   inputs.Input{Path: dotted, Type: inputs.TypeBoolean},
				choices: []choice{{}, {dotted + "=" + label(!v), []assign{{at, !v}}}},
			})
		}
	}
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
// input, several in one set where there are more than sets; then pairs of values. No two come to the same values. more
// is how many values and pairs there are that no row has, but for those that the schema refuses.
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
	singles := s.singles()
	s.most = maxTried + len(singles)
	alone := most - 1
	if len(singles) > alone {
		alone = max(alone-packed, 0)
	}
	for i, one := range singles {
		if i >= alone {
			more = s.pack(singles[i:], add)
			break
		}
		if picks := s.picking(one); s.takes(picks) {
			add(picks)
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
	return rows, more + left.open + left.beyond + s.dropped
}

// packed is how many sets are kept for several values at once.
const packed = 12

// single is one value of one param.
type single struct{ param, choice int }

func (s *space) singles() []single {
	var out []single
	for i, p := range s.params {
		for c := 1; c < len(p.choices); c++ {
			out = append(out, single{i, c})
		}
	}
	return out
}

func (s *space) picking(all ...single) []int {
	picks := make([]int, len(s.params))
	for _, one := range all {
		picks[one.param] = one.choice
	}
	return picks
}

// pack adds as many values at once as go together. How many do not come to be in any is the answer.
func (s *space) pack(left []single, add func(picks []int) bool) (out int) {
	var together func(some []single)
	together = func(some []single) {
		picks := s.picking(some...)
		switch {
		case s.takes(picks):
			if !add(picks) {
				out += len(some)
			}
		case len(some) > 1:
			together(some[:len(some)/2])
			together(some[len(some)/2:])
		}
	}
	for len(left) > 0 {
		var some, rest []single
		for _, one := range left {
			if slices.ContainsFunc(some, func(other single) bool { return other.param == one.param }) {
				rest = append(rest, one)
			} else {
				some = append(some, one)
			}
		}
		together(some)
		left = rest
	}
	return out
}

// takes tells whether the schema accepts a row.
func (s *space) takes(picks []int) bool {
	key := fmt.Sprint(picks)
	ok, known := s.accepted[key]
	s.tired = s.tired || len(s.accepted) >= s.most || s.stopped != nil && s.stopped()
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
	// all is how many params there are, and beyond how many pairs those have that are not looked at.
	all, beyond int
}

func (s *space) pairs() *pairs {
	p := &pairs{all: len(s.params)}
	others := 0
	for i, one := range s.params {
		n := len(one.choices) - one.alone
		if i < maxPaired {
			p.sizes = append(p.sizes, n)
		} else {
			p.beyond += (n - 1) * others
		}
		others += n - 1
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
	n := min(len(picks), len(p.sizes))
	for i := range n {
		for j := i + 1; j < n; j++ {
			if picks[i] < p.sizes[i] && picks[j] < p.sizes[j] {
				p.drop(i, picks[i], j, picks[j])
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
			picks = make([]int, p.all)
			for x := range n {
				picks[x] = -1
			}
			picks[i], picks[j] = k/p.sizes[j], k%p.sizes[j]
			for x := range n {
				if picks[x] < 0 {
					picks[x] = p.best(picks[:n], x)
				}
			}
			return i, j, picks
		}
	}
	return 0, 0, make([]int, p.all)
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
	for _, c := range r.also {
		out = append(out, c.label)
	}
	return out
}

// shows is what the row says that says least of those that show a finding: nothing when one of them says nothing, or
// when it shows whatever the values are. others tells that it shows without that, too.
func (s *space) shows(rows []row, at []int) (with []string, others bool) {
	if s == nil {
		return nil, false
	}
	if !slices.ContainsFunc(at, func(n int) bool { return n != elsewhere }) {
		return []string{elsewhereText}, false
	}
	least, ok := s.least(rows, at)
	if !ok {
		return nil, false
	}
	with = s.says(rows[least])
	return with, slices.ContainsFunc(at, func(n int) bool { return n >= 0 && !holdsAll(s.says(rows[n]), with) })
}

// common is what all rows that show a finding have in common.
func (s *space) common(rows []row, at []int) []string {
	if s == nil {
		return nil
	}
	var common []string
	for i, n := range slices.DeleteFunc(slices.Clone(at), func(n int) bool { return n == elsewhere }) {
		if n < 0 || n >= len(rows) {
			return nil
		}
		says := s.says(rows[n])
		if i == 0 {
			common = says
			continue
		}
		common = slices.DeleteFunc(slices.Clone(common), func(one string) bool { return !slices.Contains(says, one) })
	}
	return common
}

func holdsAll(all, some []string) bool {
	return !slices.ContainsFunc(some, func(one string) bool { return !slices.Contains(all, one) })
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
