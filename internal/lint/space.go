package lint

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/values"
	"zaentrum.io/zae/internal/worker"
)

// choice is one value of one input. The first of an input is that nobody says anything.
type choice struct {
	label string // such as worker.mode=host; empty for the first
	value any
}

// param is an input that values are tried of.
type param struct {
	input   inputs.Input
	choices []choice
}

// row is one set of values to render with.
type row struct {
	picks []int // for each param, the choice
	file  string
	tree  map[string]any // of the file
}

// space is what may be given to a chart.
type space struct {
	schema   *inputs.Schema
	defaults map[string]any
	made     maker
	params   []param
}

// maxParams bounds the inputs of which combinations are looked at.
const maxParams = 60

func newSpace(schema *inputs.Schema, defaults map[string]any) *space {
	s := &space{schema: schema, defaults: defaults, made: maker{schema: schema, salt: "first"}}
	for _, in := range schema.Inputs() {
		if in.Unaddressable || in.Generate != "" || len(s.params) == maxParams {
			continue
		}
		if p := s.param(in); len(p.choices) > 1 {
			s.params = append(s.params, p)
		}
	}
	return s
}

// param are the values of an input that are tried: all members of an enum, both booleans, the bounds of a number,
// and that it is given at all.
func (s *space) param(in inputs.Input) param {
	p := param{input: in, choices: []choice{{}}}
	now, there := values.Get(s.defaults, strings.Split(in.Path, "."))
	var tried []any
	switch {
	case in.Enum != nil:
		tried = in.Enum
	case in.Type == inputs.TypeBoolean:
		tried = []any{false, true}
	case in.Type == inputs.TypeInteger || in.Type == inputs.TypeNumber:
		tried = s.made.candidates(inputs.Input{
			Path: in.Path, Type: in.Type, Minimum: in.Minimum, Maximum: in.Maximum,
			ExclusiveMinimum: in.ExclusiveMinimum, ExclusiveMaximum: in.ExclusiveMaximum, MultipleOf: in.MultipleOf,
		})
		bounds := 0
		for _, n := range []json.Number{in.Minimum, in.Maximum, in.ExclusiveMinimum, in.ExclusiveMaximum} {
			if n != "" {
				bounds++
			}
		}
		if bounds == 0 {
			tried = tried[:0]
		}
	default:
		if in.Required && !there {
			return p // always given
		}
		if v, ok := s.made.value(in); ok {
			p.choices = append(p.choices, choice{in.Path + " given", v})
		}
		return p
	}
	for _, v := range tried {
		if !bounded(in, v) || there && sameValue(now, v) || !s.made.accepts(in, v) ||
			slices.ContainsFunc(p.choices[1:], func(c choice) bool { return sameValue(c.value, v) }) {
			continue
		}
		p.choices = append(p.choices, choice{in.Path + "=" + label(v), v})
	}
	return p
}

// bounded keeps numbers to those that are bounds, or next to one.
func bounded(in inputs.Input, v any) bool {
	if in.Enum != nil || in.Type != inputs.TypeInteger && in.Type != inputs.TypeNumber {
		return true
	}
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
// input; then pairs of values. more is how many pairs there are that no row has.
func (s *space) rows(most int) (rows []row, more int) {
	add := func(picks []int) bool {
		if len(rows) >= most {
			return false
		}
		rows = append(rows, row{picks: picks})
		return true
	}
	add(make([]int, len(s.params)))
	singles := 0
	for i, p := range s.params {
		for c := 1; c < len(p.choices); c++ {
			picks := make([]int, len(s.params))
			picks[i] = c
			if !add(picks) {
				singles++
			}
		}
	}
	left := s.pairs()
	for _, r := range rows {
		left.cover(r.picks)
	}
	for left.open > 0 {
		picks := left.next()
		if picks == nil {
			break
		}
		if !add(picks) {
			return rows, left.open + singles
		}
		left.cover(picks)
	}
	return rows, left.open + singles
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

// next is a row that has the first pair that is left, and as many others as it can find one after the other.
func (p *pairs) next() []int {
	n := len(p.sizes)
	for i := range n {
		for j := i + 1; j < n; j++ {
			k := slices.Index(p.left[i*n+j], true)
			if k < 0 {
				continue
			}
			picks := make([]int, n)
			for x := range picks {
				picks[x] = -1
			}
			picks[i], picks[j] = k/p.sizes[j], k%p.sizes[j]
			for x := range picks {
				if picks[x] < 0 {
					picks[x] = p.best(picks, x)
				}
			}
			return picks
		}
	}
	return nil
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

// given are the values of a row, secrets apart.
type given struct {
	spec      map[string]any
	from      []values.From
	generated map[string]string
	secrets   map[string]string // by path, as they are looked for
	missing   []string          // inputs that no value could be made up for
}

// give makes the values of a row, with everything that must be there.
func (s *space) give(r row, m maker) given {
	g := given{spec: values.CloneTree(r.tree), generated: map[string]string{}, secrets: map[string]string{}}
	delete(g.spec, v1alpha1.PlatformKey)
	for i, pick := range r.picks {
		if pick > 0 {
			v := s.params[i].choices[pick].value
			if s.params[i].input.Secret || s.params[i].input.Type == inputs.TypeString && s.params[i].input.Enum == nil {
				if other, ok := m.value(s.params[i].input); ok {
					v = other
				}
			}
			values.Set(g.spec, strings.Split(s.params[i].input.Path, "."), values.Clone(v))
		}
	}
	lookup := func(path []string) (any, bool) { return values.Get(g.spec, path) }
	for range 4 { // a value may make others necessary
		added := false
		for _, state := range s.schema.States(s.defaults, lookup) {
			in, ok := s.schema.Input(state.Path)
			if !ok || state.State != v1alpha1.InputMissing || in.Unaddressable || slices.Contains(g.missing, in.Path) {
				continue
			}
			v, ok := m.value(in)
			if !ok {
				g.missing = append(g.missing, in.Path)
				continue
			}
			values.Set(g.spec, strings.Split(in.Path, "."), v)
			added = true
		}
		if !added {
			break
		}
	}
	s.part(&g, m)
	return g
}

// part takes the secrets out of the plain values, and makes up generated ones.
func (s *space) part(g *given, m maker) {
	for _, in := range s.schema.Inputs() {
		if in.Unaddressable {
			continue
		}
		path := strings.Split(in.Path, ".")
		v, there := values.Get(g.spec, path)
		there = there && v != nil
		switch {
		case in.Generate != "" && (!there || v == ""):
			values.Delete(g.spec, path)
			g.generated[in.Path] = m.generated(in)
			g.secrets[in.Path] = g.generated[in.Path]
		case there && (in.Secret || in.Generate != ""):
			text, ok := v.(string)
			if !ok {
				text = label(v)
			}
			values.Delete(g.spec, path)
			g.from = append(g.from, values.From{TargetPath: in.Path, Text: text})
			g.secrets[in.Path] = text
		}
	}
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
	return common, false
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
