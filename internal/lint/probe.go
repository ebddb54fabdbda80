package lint

import (
	"context"
	"errors"
	"hash/fnv"
	"io"
	"slices"
	"strings"

	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/manifest"
	"zaentrum.io/zae/internal/worker"
)

// Probes put awkward values into sets of values that render well: texts that break YAML, and numbers without bounds.
// They are made with as few sets as show all fields that any set showed.

// view is which fields a set of values renders.
type view struct {
	row    int
	fields map[uint64]bool
	filled bool // it was tried with everything else given
}

const (
	maxViews      = 1_000_000 // fields that are remembered, in all views together
	maxProbed     = 6         // sets of values that are probed
	probesOfOne   = 10        // renders that the probes of one set need at most, but for those that look for who is at fault
	maxSuspicions = 6         // inputs that are tried by themselves
)

// sees remembers which fields a set of values renders, if it renders one that none before has.
func (l *linter) sees(set manifest.Set, number int) {
	fields := fieldsOf(set)
	found := false
	for sum := range fields {
		if !l.fields[sum] && len(l.fields) < maxNews {
			l.fields[sum], found = true, true
		}
	}
	if found && l.viewed+len(fields) <= maxViews {
		l.viewed += len(fields)
		l.views = append(l.views, view{row: number, fields: fields})
	}
}

// fieldsOf are the fields of objects, by template and kind; which item of a list they are in does not matter.
func fieldsOf(set manifest.Set) map[uint64]bool {
	out := map[uint64]bool{}
	for _, o := range set {
		kind := o.Source + "\x00" + o.ID().Kind
		for _, leaf := range leaves(o) {
			h := fnv.New64a()
			_, _ = io.WriteString(h, kind+"\x00"+numbers.ReplaceAllString(leaf.path, "#"))
			out[h.Sum64()] = true
		}
	}
	return out
}

// probes probes sets of values until each field was in one of them.
func (l *linter) probes(ctx context.Context, platform map[string]any) error {
	left := map[uint64]bool{}
	for _, v := range l.views {
		for sum := range v.fields {
			left[sum] = true
		}
	}
	for n := 0; n < maxProbed && len(left) > 0 && l.spare() >= probesOfOne && l.over < maxOverruns; n++ {
		best, most := 0, 0
		for i, v := range l.views {
			if shows := common(v.fields, left); shows > most {
				best, most = i, shows
			}
		}
		if most == 0 {
			break
		}
		probed, err := l.probeView(ctx, best, platform)
		if err != nil {
			return err
		}
		for sum := range probed {
			delete(left, sum)
		}
	}
	l.probedAll = len(left) == 0
	return nil
}

func common(a, b map[uint64]bool) int {
	n := 0
	for sum := range a {
		if b[sum] {
			n++
		}
	}
	return n
}

// probeView probes a set of values with everything else given, and the next time as it is: what is given may hide what it
// is chosen for. The fields that were probed are the answer.
func (l *linter) probeView(ctx context.Context, i int, platform map[string]any) (map[uint64]bool, error) {
	v := l.views[i]
	if full, ok := l.space.fill(l.rows[v.row]); ok && !v.filled {
		l.views[i].filled = true
		l.rows = append(l.rows, full)
		number := len(l.rows) - 1
		result, err := l.look(ctx, number, platform)
		if err != nil {
			return nil, err
		}
		if result != nil {
			return fieldsOf(result.Objects), l.probe(ctx, number, platform)
		}
	}
	l.views[i].fields = nil
	return v.fields, l.probe(ctx, v.row, platform)
}

// probe puts awkward values into a set that renders.
func (l *linter) probe(ctx context.Context, number int, platform map[string]any) error {
	g := l.space.give(l.rows[number])
	if err := l.probeTexts(ctx, g, number, platform); err != nil {
		return err
	}
	if err := l.probeNumbers(ctx, g, number, platform); err != nil {
		return err
	}
	return l.probeBlanks(ctx, l.rows[number], platform)
}

// fill is a row that gives all texts, lists and maps besides, as far as the schema takes them; false if it is the same.
func (s *space) fill(r row) (row, bool) {
	if r.file != "" {
		return r, false
	}
	picks := slices.Clone(r.picks)
	key := s.give(r).key()
	for i, p := range s.params {
		if picks[i] != 0 || len(p.choices) < 2 || p.input.Enum != nil || p.input.Type != inputs.TypeString && p.input.Type != inputs.TypeJSON || p.choices[1].set[0].value == nil {
			continue
		}
		picks[i] = 1
		if !s.takes(picks) {
			picks[i] = 0
		}
	}
	full := row{picks: picks}
	return full, s.give(full).key() != key
}

// look renders a row and judges what comes out.
func (l *linter) look(ctx context.Context, number int, platform map[string]any) (*worker.Result, error) {
	g := l.space.give(l.rows[number])
	result, err := l.one(ctx, l.src.Archive, g, platform, number)
	if err != nil || result == nil {
		return nil, err
	}
	l.rows[number].rendered = true
	l.warnings(result.Warnings, number)
	l.judgeObjects(result.Objects, g, platform, number)
	l.guard(result.Objects, false, number, platform)
	l.misprints(result.Objects, l.wholeNumbers(g), number)
	if !l.rows[number].narrows {
		l.sees(result.Objects, number)
	}
	return result, l.otherwise(ctx, result, g, platform, number)
}

// try renders values that are in no row. What it needs too much of, or what is wrong with them, is the second answer.
func (l *linter) try(ctx context.Context, g given, platform map[string]any, texts bool) (*worker.Result, []string, error) {
	job := g.job(l.name(), platform)
	job.Texts = texts
	result, err := l.o.Worker.Render(ctx, l.src.Archive, job)
	l.out.Renders++
	if l.o.Progress != nil {
		l.o.Progress(l.out.Renders, max(l.all, l.out.Renders))
	}
	var over *worker.Overrun
	switch {
	case ctx.Err() != nil:
		return nil, nil, ctx.Err()
	case errors.As(err, &over):
		l.over++
		return nil, []string{"rendering the chart was stopped: " + over.What}, nil
	case err != nil:
		return nil, nil, err
	case len(result.ValuesErrors) > 0:
		return nil, result.ValuesErrors, nil
	}
	return result, nil, nil
}

// refusesValues tells whether what is wrong with values is that the schema refuses them.
func (l *linter) refusesValues(problems []string) bool {
	return slices.ContainsFunc(problems, func(p string) bool {
		path, _, _ := strings.Cut(p, ": ")
		_, known := l.space.schema.Input(path)
		return known
	})
}
