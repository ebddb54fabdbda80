package lint

import (
	"context"
	"hash/fnv"
	"io"

	"zaentrum.io/zae/internal/manifest"
	"zaentrum.io/zae/internal/worker"
)

// maxDerived bounds the renders that only look for what changes with a secret, and maxNews what is remembered for it.
const (
	maxDerived = 24
	maxNews    = 200_000
)

// otherwise renders a set of values once more with other secrets, if something is rendered with them that no set before
// has shown.
func (l *linter) otherwise(ctx context.Context, result *worker.Result, g given, platform map[string]any, number int) error {
	if len(g.secrets) == 0 || l.spare() < 1 {
		return nil
	}
	if l.narrows == "" {
		if l.derivations == maxDerived || !l.news(result.Objects) {
			return nil
		}
		l.derivations++
	} else if l.narrows != "secret-derived" && l.narrows != "secret-leak" {
		return nil
	}
	other, err := l.one(ctx, l.src.Archive, l.otherSecrets(g), platform, number)
	if err != nil || other == nil {
		return err
	}
	l.derived(result.Objects, other.Objects, number)
	return nil
}

// news tells whether a text is in these objects, outside of a Secret's data, that none before had at its place.
func (l *linter) news(set manifest.Set) bool {
	found := false
	for _, o := range set {
		kind := o.ID().Kind
		for _, leaf := range leaves(o) {
			if leaf.key || leaf.data || len(l.shown) >= maxNews {
				continue
			}
			h := fnv.New64a()
			_, _ = io.WriteString(h, kind+"\x00"+numbers.ReplaceAllString(leaf.path, "#")+"\x00"+leaf.text)
			if sum := h.Sum64(); !l.shown[sum] {
				l.shown[sum], found = true, true
			}
		}
	}
	return found
}

// spare is how many renders there are left besides the sets of values that are still to come.
func (l *linter) spare() int { return l.o.MaxRenders - l.out.Renders - l.coming }

// derived looks for fields that are others with other secrets.
func (l *linter) derived(a, b manifest.Set, number int) {
	told := map[string]bool{}
	for _, f := range l.f.list {
		if f.Rule == "secret-leak" || f.Rule == "not-deterministic" {
			told[f.Object] = true // whatever else changes there comes from it
		}
	}
	for _, o := range a {
		other, ok := b.Find(o.ID())
		if !ok || told[o.ID().String()] {
			continue
		}
		theirs := map[string]string{}
		for _, leaf := range leaves(other) {
			if !leaf.key {
				theirs[leaf.path] = leaf.text
			}
		}
		for _, leaf := range leaves(o) {
			if text, there := theirs[leaf.path]; there && text != leaf.text && !leaf.key && !leaf.data && !leaf.checksum {
				l.finding("secret-derived", o, leaf.path, "changes with a secret input", number)
				break
			}
		}
	}
}
