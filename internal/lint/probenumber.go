package lint

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"zaentrum.io/zae/internal/guard"
	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/manifest"
	"zaentrum.io/zae/internal/values"
)

// trial is an input with a value that is given for it to see what comes of it.
type trial struct {
	path  string
	value any
	// was is the text that is in objects without the trial; empty for a value that is looked for itself.
	was string
	// input is the one that has path in it, where it is not path itself.
	input string
}

// The numbers that are tried where the schema has no bound: those beyond 32 bits, and below 0. Each input has its own.
const (
	farAbove = int64(3_000_000_019)
	farBelow = int64(-1_000_003)
	apart    = int64(1_000_000)
	longest  = int64(1_000_000) // from which a float is written with an exponent
)

// oddText breaks no YAML, and is no name, no image and no quantity.
const oddText = "An Odd Text"

// probeNumbers gives numbers without bounds, and texts that are empty, and looks for what comes of it.
func (l *linter) probeNumbers(ctx context.Context, g given, number int, platform map[string]any) error {
	above, below := l.unbounded()
	fractions := l.fractions()
	empty, odd := l.oddTexts(g)
	if len(above)+len(below)+len(fractions)+len(empty)+len(odd) == 0 || l.space.tired {
		return nil
	}
	base, problems, err := l.try(ctx, g, platform, false)
	if err != nil || len(problems) > 0 {
		return err
	}
	before := l.refusals(base.Objects, platform)
	p := &trialProbe{linter: l, given: g, platform: platform, base: base.Objects, before: before, number: number}
	for _, one := range []struct {
		rule, how string
		trials    []trial
	}{
		{"number-unbounded", "the schema takes any large number, and with one", above},
		{"number-unbounded", "the schema takes any number below 0, and with one", below},
		{"number-unbounded", fractionHow, fractions},
		{"text-not-narrowed", "the schema takes any text, and with one", odd},
		{"text-not-narrowed", "the schema takes an empty text, and with one", empty},
	} {
		if err := p.try(ctx, one.rule, one.how, one.trials); err != nil {
			return err
		}
	}
	return nil
}

// oddTexts are the texts that are tried as empty ones, and as odd ones: those that were made up, in lists and maps too, and
// those that are not found again, such as a quantity.
func (l *linter) oddTexts(g given) (empty, odd []trial) {
	found := map[string]bool{}
	for _, s := range l.slots(g) {
		in, ok := l.space.schema.Input(s.input)
		if !ok || s.secret || in.Type != inputs.TypeString && in.Type != inputs.TypeJSON {
			continue
		}
		found[s.path] = true
		one := trial{path: s.path, was: s.text}
		if s.path != s.input {
			one.input = s.input
		}
		if text, ok := l.takesText(g, s, []string{""}); ok && text == "" {
			one.value = ""
			empty = append(empty, one)
		}
		if text, ok := l.takesText(g, s, []string{oddText}); ok && text == oddText {
			one.value = oddText
			odd = append(odd, one)
		}
	}
	for i, in := range l.space.schema.Inputs() {
		v, there := values.Get(g.spec, strings.Split(in.Path, "."))
		if text, ok := v.(string); !there || !ok || text == "" || in.Unaddressable || in.Type != inputs.TypeString || found[in.Path] || len(odd) >= maxSlots {
			continue
		}
		if one := (trial{path: in.Path, value: oddText + " " + strconv.Itoa(i)}); l.space.made.accepts(in, one.value) {
			odd = append(odd, one)
		}
	}
	return empty, odd
}

const fractionHow = "the schema takes a fraction, and with one"

// fractions are the inputs that may be any number, each with one of its own that is no whole one.
func (l *linter) fractions() []trial {
	var out []trial
	for i, in := range l.space.schema.Inputs() {
		if in.Unaddressable || in.Enum != nil || in.Type != inputs.TypeNumber || len(out) >= maxSlots {
			continue
		}
		for _, bound := range []json.Number{in.Minimum, in.ExclusiveMinimum, in.Maximum, "1"} {
			least, err := bound.Float64()
			if err != nil {
				continue
			}
			by := float64(i%100+100) / 512 // which floats hold as it is
			if bound == in.Maximum {
				by = -by
			}
			if one := (trial{path: in.Path, value: least + by}); l.space.made.accepts(in, one.value) {
				out = append(out, one)
				break
			}
		}
	}
	return out
}

// unbounded are the inputs that may be any large number, or any below 0, each with one of its own.
func (l *linter) unbounded() (above, below []trial) {
	for i, in := range l.space.schema.Inputs() {
		if in.Unaddressable || in.Enum != nil || in.Type != inputs.TypeInteger || len(above)+len(below) >= maxSlots {
			continue
		}
		step := int64(1)
		if n, err := in.MultipleOf.Int64(); err == nil && n > 0 && n < apart {
			step = n
		}
		n := int64(i%1000) * apart
		if one := (trial{path: in.Path, value: (farAbove + n) / step * step}); l.space.made.accepts(in, one.value) {
			above = append(above, one)
		}
		if one := (trial{path: in.Path, value: (farBelow - n) / step * step}); l.space.made.accepts(in, one.value) {
			below = append(below, one)
		}
	}
	return above, below
}

// trying are the values with other ones for some inputs.
func (g given) trying(trials ...trial) given {
	out := g
	out.spec = values.CloneTree(g.spec)
	for _, one := range trials {
		if one.input == "" {
			values.Set(out.spec, strings.Split(one.path, "."), one.value)
			continue
		}
		keys := strings.Split(one.input, ".")
		if whole, there := values.Get(out.spec, keys); there {
			values.Set(out.spec, keys, swapped(whole, func(text string) string {
				if other, ok := one.value.(string); ok && text == one.was {
					return other
				}
				return text
			}))
		}
	}
	return out
}

// trialProbe tries values over a set that renders.
type trialProbe struct {
	*linter
	given    given
	platform map[string]any
	base     manifest.Set
	before   map[string]bool
	number   int
}

// try gives all trials at once, and those that templates do not take each by itself.
func (p *trialProbe) try(ctx context.Context, rule, how string, trials []trial) error {
	if len(trials) == 0 || p.spare() < 1 {
		return nil
	}
	problems, err := p.together(ctx, rule, how, trials)
	if err != nil || len(problems) == 0 || p.refusesValues(problems) {
		return err
	}
	if len(trials) == 1 {
		p.tell(rule, trials[0], how, problems[0])
		return nil
	}
	for i, one := range trials {
		if i >= maxSuspicions || p.spare() < 1 || p.over >= maxOverruns {
			break
		}
		problems, err := p.together(ctx, rule, how, []trial{one})
		switch {
		case err != nil:
			return err
		case len(problems) > 0 && !p.refusesValues(problems):
			p.tell(rule, one, how, problems[0])
		}
	}
	return nil
}

// together renders with some trials, and tells of the fields that cannot hold them. What is wrong with the values as a
// whole is the answer.
func (p *trialProbe) together(ctx context.Context, rule, how string, trials []trial) ([]string, error) {
	result, problems, err := p.linter.try(ctx, p.given.trying(trials...), p.platform, false)
	if err != nil || len(problems) > 0 {
		return problems, err
	}
	p.misprints(result.Objects, trials, static)
	for _, f := range guard.Check(p.facts(result.Objects, false, p.platform)) {
		if f.Level != guard.Refuse || p.before[refusalKey(f)] {
			continue
		}
		in := result.Objects
		if trials[0].was != "" {
			in = p.base
		}
		one, object, ok := blamed(in, f, trials)
		if !ok || p.probed[rule+"\x00"+one.path] || one.value == "" && p.isUnquoted(object, f.Path) {
			continue
		}
		p.probed[rule+"\x00"+one.path] = true
		found := Finding{Rule: rule, File: f.Source, Object: object, Path: f.Path, render: p.number + 1}
		found.Message = one.path + ": " + how + ", the field is refused: " + f.What
		switch {
		case how == fractionHow:
			found.Severity, found.Fix = Warning, "Declare the input as an integer, or pipe it through int where it is written."
		case rule == "text-not-narrowed" && strings.HasSuffix(f.What, "a quantity"):
			found.Fix = quantityFix
		}
		at := p.locate(f.Source, f.Path)
		found.Line, found.Column = at.line, at.column
		p.f.add(found, static)
	}
	return nil, nil
}

// isUnquoted tells whether a field was told of already as one that texts are written into as they are: an empty one is null.
func (l *linter) isUnquoted(object, path string) bool {
	return slices.ContainsFunc(l.f.list, func(f Finding) bool {
		return f.Rule == "text-unquoted" && f.Severity != Info && f.Object == clean(object) && f.Path == path
	})
}

// blamed is the trial that is in the field of a finding, and the object.
func blamed(set manifest.Set, f guard.Finding, trials []trial) (trial, string, bool) {
	for _, o := range set {
		if id := o.ID(); id.Kind != f.Kind || o.Source != f.Source {
			continue
		}
		for _, leaf := range leaves(o) {
			if leaf.path != f.Path {
				continue
			}
			for _, one := range trials {
				if text := one.text(); leaf.text == text || one.was != "" && strings.Contains(leaf.text, text) {
					return one, o.ID().String(), true
				}
			}
		}
	}
	return trial{}, "", false
}

// text is what a trial is found again by.
func (t trial) text() string {
	if t.was != "" {
		return t.was
	}
	return fmt.Sprint(t.value)
}

// tell tells that templates do not take a trial.
func (p *trialProbe) tell(rule string, t trial, how, problem string) {
	if !p.probed[rule+"\x00"+t.path] {
		p.probed[rule+"\x00"+t.path] = true
		p.tellRefused(rule, t.path, how, problem, p.given.trying(t))
	}
}

func (l *linter) refusals(set manifest.Set, platform map[string]any) map[string]bool {
	out := map[string]bool{}
	for _, f := range guard.Check(l.facts(set, false, platform)) {
		out[refusalKey(f)] = true
	}
	return out
}

func refusalKey(f guard.Finding) string {
	return f.Rule + "\x00" + f.Kind + "\x00" + f.Source + "\x00" + f.Path
}

var (
	// verbError is what printf writes where its verb does not fit.
	verbError = regexp.MustCompile(`%!(?:[a-zA-Z]\(|\(EXTRA |\(NOVERB\)|\(BADINDEX\))`)
	// goMap is a map of made-up values as Go prints it.
	goMap = regexp.MustCompile(`map\[[^\]]*(?:zae[0-9]|(?i:zs[0-9a-f]{8}))`)
)

// misprints tells of values that are written as Go prints them.
func (l *linter) misprints(set manifest.Set, numbers []trial, number int) {
	for _, o := range set {
		for _, leaf := range leaves(o) {
			what := ""
			switch {
			case leaf.key:
			case verbError.MatchString(leaf.text) && !l.knows(leaf.text):
				what = "a verb of printf does not fit its value"
			case goMap.MatchString(leaf.text):
				what = "a map is written as Go prints it"
			default:
				i := slices.IndexFunc(numbers, func(one trial) bool { return exponent(leaf, one.value) })
				if i >= 0 {
					what = numbers[i].path + " is written with an exponent"
				}
			}
			if what != "" {
				l.finding("value-misprinted", o, leaf.path, what, number)
			}
		}
	}
}

// exponent tells whether a whole number is in a field as a float.
func exponent(f leaf, v any) bool {
	n, ok := v.(int64)
	if !ok || n < longest && n > -longest {
		return false
	}
	text := strconv.FormatFloat(float64(n), 'g', -1, 64)
	return strings.Contains(text, "e+") && strings.Contains(f.text, text)
}

// wholeNumbers are the numbers in a set of values that are long enough to be written in two ways.
func (l *linter) wholeNumbers(g given) []trial {
	var out []trial
	for _, in := range l.space.schema.Inputs() {
		if in.Unaddressable || in.Type != inputs.TypeInteger && in.Type != inputs.TypeNumber {
			continue
		}
		v, there := values.Get(g.spec, strings.Split(in.Path, "."))
		if !there {
			v, there = values.Get(l.space.defaults, strings.Split(in.Path, "."))
		}
		if n, ok := v.(int64); ok && there && (n >= longest || n <= -longest) {
			out = append(out, trial{path: in.Path, value: n})
		}
	}
	return out
}
