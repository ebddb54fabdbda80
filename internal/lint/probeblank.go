package lint

import (
	"context"
	"slices"
	"strings"

	"zaentrum.io/zae/internal/guard"
	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/values"
)

// What an empty text or a 0 switches on is seen by giving them, all at once where the templates take that. What these
// values do to the fields that they are written into is found by other probes.

// blanks are the empty texts and zeros that may be given over a set of values.
func (l *linter) blanks(g given) []choice {
	var out []choice
	for _, in := range l.space.schema.Inputs() {
		if in.Unaddressable || in.Secret || in.Generate != "" || in.Enum != nil || len(out) >= maxSlots {
			continue
		}
		var blank any
		switch in.Type {
		case inputs.TypeString:
			blank = ""
		case inputs.TypeInteger, inputs.TypeNumber:
			blank = int64(0)
		default:
			continue
		}
		path := strings.Split(in.Path, ".")
		now, there := values.Get(g.spec, path)
		if !there {
			now, there = values.Get(l.space.defaults, path)
		}
		if there && !sameValue(now, blank) && l.space.made.accepts(in, blank) {
			out = append(out, choice{in.Path + "=" + label(blank), []assign{{path, blank}}})
		}
	}
	return out
}

// probeBlanks looks for what empty texts and zeros show.
func (l *linter) probeBlanks(ctx context.Context, r row, platform map[string]any) error {
	all := slices.DeleteFunc(l.blanks(l.space.give(r)), func(c choice) bool { return l.probed["blank\x00"+c.label] })
	if len(all) == 0 || l.space.tired {
		return nil
	}
	left := maxSuspicions
	var together func(some []choice) error
	together = func(some []choice) error {
		if len(some) == 0 || l.spare() < 1 || left == 0 || l.over >= maxOverruns {
			return nil
		}
		left--
		with := row{picks: l.space.without(r.picks, some), file: r.file, tree: r.tree, also: append(slices.Clone(r.also), some...), narrows: true, rendered: true}
		result, problems, err := l.try(ctx, l.space.give(with), platform, false)
		if err != nil {
			return err
		}
		if len(problems) > 0 {
			if len(some) > 1 {
				if err := together(some[:len(some)/2]); err != nil {
					return err
				}
				return together(some[len(some)/2:])
			}
			return nil
		}
		for _, c := range some {
			l.probed["blank\x00"+c.label] = true
		}
		number := -1
		for _, f := range guard.Check(l.facts(result.Objects, false, platform)) {
			if f.Level != guard.Refuse || fieldRules[f.Rule] || l.isTold(f) {
				continue
			}
			if number < 0 {
				l.rows = append(l.rows, with)
				l.narrowed++
				number = len(l.rows) - 1
			}
			l.guardrail(f, number)
		}
		return nil
	}
	return together(all)
}

// without are picks without those that give what others do.
func (s *space) without(picks []int, others []choice) []int {
	out := slices.Clone(picks)
	for i, pick := range picks {
		given := s.params[i].choices[pick].set
		if pick > 0 && len(given) == 1 && slices.ContainsFunc(others, func(c choice) bool { return slices.Equal(c.set[0].path, given[0].path) }) {
			out[i] = 0
		}
	}
	return out
}

// fieldRules are those that an empty text or a 0 breaks at its own field.
var fieldRules = map[string]bool{"valid-object": true, "valid-name": true, "wrong-type": true, "unique-list-entry": true}

// isTold tells whether a guardrail's finding is among those there are, with whatever values.
func (l *linter) isTold(g guard.Finding) bool {
	return slices.ContainsFunc(l.f.list, func(f Finding) bool {
		return f.Rule == g.Rule && f.Path == clean(g.Path) && (f.File == g.Source || g.Source == "") && strings.HasPrefix(f.Object, g.Kind)
	})
}
