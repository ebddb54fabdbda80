package lint

import (
	"context"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

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
	changed := l.otherSecrets(g)
	other, err := l.one(ctx, l.src.Archive, changed, platform, number)
	if err != nil || other == nil {
		return err
	}
	l.derived(result.Objects, other.Objects, g.secrets, changed.secrets, number)
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

// derived looks for fields that are others with other secrets: those that hold one, and those that are made of one.
func (l *linter) derived(a, b manifest.Set, before, after map[string]string, number int) {
	told := map[string]bool{}
	for _, f := range l.f.list {
		if f.Rule == "secret-leak" || f.Rule == "not-deterministic" {
			told[f.Object+"\x00"+f.Path] = true // whatever changes there comes from it
		}
	}
	theirs := counterparts(a, b)
	l.presence(a, b, theirs, told, number)
	for i, o := range a {
		if theirs[i] == nil || told[o.ID().String()+"\x00"] {
			continue
		}
		fields := map[string]string{}
		for _, leaf := range leaves(*theirs[i]) {
			if !leaf.key {
				fields[leaf.path] = leaf.text
			}
		}
		for _, leaf := range leaves(o) {
			text, there := fields[leaf.path]
			if !there || text == leaf.text || leaf.key || leaf.data || leaf.checksum && sum(leaf.text, text, before) || told[clean(o.ID().String())+"\x00"+clean(leaf.path)] {
				continue
			}
			if path := holds(leaf.text, text, before, after); path != "" {
				l.finding("secret-leak", o, leaf.path, path+" is seen outside of a Secret's data", number)
				continue
			}
			l.finding("secret-derived", o, leaf.path, "changes with a secret input", number)
		}
	}
}

// presence tells of objects, members and items that there are with some secrets, and with others not.
func (l *linter) presence(a, b manifest.Set, theirs []*manifest.Object, told map[string]bool, number int) {
	taken := map[string]bool{}
	for i, o := range a {
		id := o.ID().String()
		switch other := theirs[i]; {
		case told[clean(id)+"\x00"]:
			if other != nil {
				taken[other.ID().String()] = true
			}
		case other == nil:
			l.finding("secret-derived", o, "metadata.name", "is rendered, or not, depending on a secret input", number)
		default:
			taken[other.ID().String()] = true
			members(o.Tree, other.Tree, "", func(path string) {
				if !told[clean(id)+"\x00"+clean(path)] {
					l.finding("secret-derived", o, path, "what is in it depends on a secret input", number)
				}
			})
		}
	}
	for _, o := range b {
		if !taken[o.ID().String()] {
			l.finding("secret-derived", o, "metadata.name", "is rendered, or not, depending on a secret input", number)
		}
	}
}

// members finds maps that have other keys in two trees, and lists of another length.
func members(a, b any, path string, tell func(path string)) {
	switch a := a.(type) {
	case map[string]any:
		other, ok := b.(map[string]any)
		same := ok && len(a) == len(other)
		for _, key := range slices.Sorted(maps.Keys(a)) {
			item, there := other[key]
			if same = same && there; !there {
				continue
			}
			at := strings.TrimPrefix(path+"."+key, ".")
			if strings.ContainsAny(key, "./ ") {
				at = path + "[" + key + "]"
			}
			members(a[key], item, at, tell)
		}
		if !same {
			tell(path)
		}
	case []any:
		other, ok := b.([]any)
		for i := range min(len(a), len(other)) {
			members(a[i], other[i], path+"["+strconv.Itoa(i)+"]", tell)
		}
		if !ok || len(a) != len(other) {
			tell(path)
		}
	}
}

// shortestPart is the length from which a part of a secret's encoding is one.
const shortestPart = 6

// sum tells whether a text is a digest of a secret, as far as can be seen: as long as with a secret of another length, or
// a number, and no part of an encoding that can be read back.
func sum(text, other string, secrets map[string]string) bool {
	if len(text) != len(other) && (strings.Trim(text+other, "0123456789") != "" || len(text) > 10) {
		return false
	}
	low := strings.ToLower(text)
	for _, secret := range secrets {
		if len(secret) < shortestPart {
			continue
		}
		backwards := []rune(secret)
		slices.Reverse(backwards)
		for _, form := range []string{
			secret, string(backwards), hex.EncodeToString([]byte(secret)), base32.StdEncoding.EncodeToString([]byte(secret)),
			base64.StdEncoding.EncodeToString([]byte(secret)), base64.URLEncoding.EncodeToString([]byte(secret)),
		} {
			form = strings.ToLower(form)
			if strings.Contains(low, form) || len(low) >= shortestPart && strings.Contains(form, low) {
				return false
			}
		}
	}
	return true
}

// holds is the secret that is in a text as it is, however short: with another one there is the other in its place.
func holds(text, other string, before, after map[string]string) string {
	for _, path := range slices.Sorted(maps.Keys(before)) {
		was, is := before[path], after[path]
		if was != "" && was != is && strings.Contains(text, was) && strings.ReplaceAll(text, was, is) == other {
			return path
		}
	}
	return ""
}

// counterparts are the objects of b that those of a are there, nil for none: of the same name, or, of another, the next
// of its kind that its template renders.
func counterparts(a, b manifest.Set) []*manifest.Object {
	out := make([]*manifest.Object, len(a))
	left := map[string][]*manifest.Object{}
	spot := func(o manifest.Object) string { return o.Source + "\x00" + o.ID().Kind }
	for _, o := range b {
		if _, same := a.Find(o.ID()); !same {
			left[spot(o)] = append(left[spot(o)], &o)
		}
	}
	for i, o := range a {
		if other, ok := b.Find(o.ID()); ok {
			out[i] = &other
		} else if rest := left[spot(o)]; len(rest) > 0 {
			out[i], left[spot(o)] = rest[0], rest[1:]
		}
	}
	return out
}
