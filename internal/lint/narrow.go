package lint

import (
	"context"
	"slices"
)

// What a finding is told to show with is a set of values that was rendered and showed it: whoever gives just that sees
// it. Sets are made to show much at once, so that a finding first comes from one that says more than it takes. What is
// not needed is found out by rendering without it.

// maxNarrowed bounds the renders that only look for what a finding needs.
const maxNarrowed = 60

// piece is one value of a row: a choice of a param, or one besides those.
type piece struct {
	param, pick int // param is -1 for one besides
	choice      choice
}

// parts are what a row gives besides what must be given; nil for a file's.
func (s *space) parts(r row) []piece {
	if r.file != "" {
		return nil
	}
	var out []piece
	for i, pick := range r.picks {
		if pick > 0 {
			out = append(out, piece{i, pick, s.params[i].choices[pick]})
		}
	}
	for _, c := range r.also {
		out = append(out, piece{-1, 0, c})
	}
	return out
}

// rowOf is the row of some parts.
func (s *space) rowOf(parts []piece) row {
	r := row{picks: make([]int, len(s.params)), narrows: true}
	for _, p := range parts {
		if p.param < 0 {
			r.also = append(r.also, p.choice)
		} else {
			r.picks[p.param] = p.pick
		}
	}
	return r
}

// narrow looks for the least of what is given that shows each finding, as long as more than some renders are left.
func (l *linter) narrow(ctx context.Context, platform map[string]any, keep int) error {
	n := &narrowing{linter: l, platform: platform, keep: keep, known: map[string]int{}}
	for i, r := range l.rows {
		if r.rendered {
			n.known[l.space.give(r).key()] = i
		}
	}
	defer func() { l.narrows = "" }()
	for i := 0; ; i++ { // what a render shows for the first time comes after the others
		if i >= len(l.f.list) {
			return nil
		}
		one := l.f.list[i]
		key := one.key()
		least, ok := l.space.least(l.rows, l.f.rows[key])
		if !ok || slices.Contains(againstRules, one.Rule) {
			continue
		}
		l.narrows = one.Rule
		if err := n.shrink(ctx, key, l.space.parts(l.rows[least])); err != nil {
			return err
		}
	}
}

// least is the row that says least of those that show a finding; false if it shows without anything, or whatever the
// values are.
func (s *space) least(rows []row, at []int) (int, bool) {
	best := -1
	for _, n := range at {
		switch {
		case n == static || n == elsewhere:
			continue
		case n >= len(rows) || len(s.says(rows[n])) == 0:
			return 0, false
		case best < 0 || len(s.says(rows[n])) < len(s.says(rows[best])):
			best = n
		}
	}
	return best, best >= 0 && !slices.Contains(at, static)
}

type narrowing struct {
	*linter
	platform map[string]any
	keep     int
	known    map[string]int // by what is given, the row that rendered it
}

// shrink leaves out of some parts what a finding shows without, in ever smaller pieces.
func (n *narrowing) shrink(ctx context.Context, key string, parts []piece) error {
	if len(parts) < 2 {
		return nil
	}
	if common := n.common(key, parts); len(common) < len(parts) && len(common) > 0 {
		shows, err := n.shows(ctx, key, common)
		if err != nil {
			return err
		}
		if shows {
			parts = common
		}
	}
	for size := (len(parts) + 1) / 2; size > 0 && len(parts) > 1; {
		shrunk := false
		for at := 0; at < len(parts) && len(parts) > 1; {
			rest := slices.Concat(parts[:at], parts[min(at+size, len(parts)):])
			if len(rest) == 0 {
				break
			}
			shows, err := n.shows(ctx, key, rest)
			if err != nil {
				return err
			}
			if shows {
				parts, shrunk = rest, true
				continue
			}
			at += size
		}
		if size == 1 && !shrunk {
			break
		}
		if size > 1 {
			size = (size + 1) / 2
		}
	}
	return nil
}

// common are the parts that all rows have that show a finding, as far as they can be the whole of it: what a row has
// that rendered and does not show it, is not.
func (n *narrowing) common(key string, parts []piece) []piece {
	return slices.DeleteFunc(slices.Clone(parts), func(p piece) bool {
		return slices.ContainsFunc(n.f.rows[key], func(row int) bool {
			return row >= 0 && row < len(n.rows) && !slices.Contains(n.space.says(n.rows[row]), p.choice.label)
		})
	})
}

// shows renders some parts, unless they were rendered before. Without renders left the answer is no.
func (n *narrowing) shows(ctx context.Context, key string, parts []piece) (bool, error) {
	r := n.space.rowOf(parts)
	values := n.space.give(r).key()
	if n.narrows == "secret-derived" { // not every set was rendered with other secrets
		values += n.narrows
	}
	at, known := n.known[values]
	if known {
		return slices.Contains(n.f.rows[key], at), nil
	}
	if n.narrowed >= maxNarrowed || n.spare() <= n.keep || n.over >= maxOverruns {
		return false, nil
	}
	n.narrowed++
	n.rows = append(n.rows, r)
	at = len(n.rows) - 1
	if _, err := n.look(ctx, at, n.platform); err != nil {
		return false, err
	}
	n.known[values] = at
	return slices.Contains(n.f.rows[key], at), nil
}
