package render

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"zaentrum.io/zae/internal/manifest"
)

const (
	maxFields      = 20  // of one object that are named
	maxDifferences = 100 // sentences altogether
	maxShown       = 250 // characters of a path, name or file that are shown
)

// Differences says where two renders of one chart with the same values differ, one sentence for each field:
// in the order of the first render, then what only the second has. A template that is good renders the same
// objects each time, so every sentence is something for the chart's author.
//
// Objects are matched by identity. A sentence names object, field and template and never what stands there.
// It is the same for every two renders: a name or key that itself differs each time is not named.
func Differences(a, b manifest.Set) []string {
	d := &differences{}
	left, right := numbered(a), numbered(b)
	var onlyA, onlyB []numberedObject
	for _, o := range left.list {
		if other, ok := right.find[o.key]; ok {
			d.object(o.Object, other)
		} else {
			onlyA = append(onlyA, o)
		}
	}
	for _, o := range right.list {
		if _, ok := left.find[o.key]; !ok {
			onlyB = append(onlyB, o)
		}
	}
	d.unmatched(onlyA, onlyB)
	return d.told
}

// objectKey tells objects of one render apart, those with the same identity by their order.
type objectKey struct {
	id manifest.ID
	n  int
}

type numberedObject struct {
	manifest.Object
	key objectKey
}

type numberedSet struct {
	list []numberedObject
	find map[objectKey]manifest.Object
}

func numbered(s manifest.Set) numberedSet {
	out := numberedSet{find: make(map[objectKey]manifest.Object, len(s))}
	count := map[manifest.ID]int{}
	for _, o := range s {
		id := o.ID()
		key := objectKey{id, count[id]}
		count[id]++
		out.list = append(out.list, numberedObject{o, key})
		out.find[key] = o
	}
	return out
}

// differences gathers sentences, each once.
type differences struct {
	told []string
}

func (d *differences) tell(format string, args ...any) {
	sentence := fmt.Sprintf(format, args...)
	switch {
	case slices.Contains(d.told, sentence):
	case len(d.told) < maxDifferences:
		d.told = append(d.told, sentence)
	case len(d.told) == maxDifferences:
		d.told = append(d.told, "more differs each time it is rendered")
	}
}

// object compares two objects of one identity.
func (d *differences) object(a, b manifest.Object) {
	fields := &fields{}
	fields.compare("", a.Tree, b.Tree)
	for _, path := range fields.paths {
		d.tell("%s %s differs each time it is rendered (%s)", short(printable(a.ID().String())), path, short(printable(a.Source)))
	}
	if fields.more {
		d.tell("%s: more fields differ each time it is rendered (%s)", short(printable(a.ID().String())), short(printable(a.Source)))
	}
}

// unmatched are the objects that only one render has. When a file rendered others of the kind instead, it is
// their names that differ.
func (d *differences) unmatched(onlyA, onlyB []numberedObject) {
	type origin struct{ source, kind string }
	of := func(o numberedObject) origin { return origin{o.Source, o.ID().Kind} }
	count := map[origin][2]int{}
	for i, list := range [][]numberedObject{onlyA, onlyB} {
		for _, o := range list {
			n := count[of(o)]
			n[i]++
			count[of(o)] = n
		}
	}
	for _, o := range append(slices.Clone(onlyA), onlyB...) {
		if n := count[of(o)]; n[0] > 0 && n[1] > 0 {
			d.tell("%s: the name of an object differs each time it is rendered (%s)", short(printable(o.ID().Kind)), short(printable(o.Source)))
		} else {
			d.tell("%s is not there each time the chart is rendered (%s)", short(printable(o.ID().String())), short(printable(o.Source)))
		}
	}
}

// fields are the places at which two trees differ, as deep down as they can be named.
type fields struct {
	paths []string
	more  bool
}

func (f *fields) add(path string) {
	switch {
	case slices.Contains(f.paths, path): // of which the ends were cut off
	case len(f.paths) < maxFields:
		f.paths = append(f.paths, path)
	default:
		f.more = true
	}
}

func (f *fields) compare(path string, a, b any) {
	if f.more {
		return
	}
	switch a := a.(type) {
	case map[string]any:
		if b, ok := b.(map[string]any); ok {
			f.compareMaps(path, a, b)
			return
		}
	case []any:
		if b, ok := b.([]any); ok && len(a) == len(b) {
			for i := range a {
				f.compare(path+"["+strconv.Itoa(i)+"]", a[i], b[i])
			}
			return
		}
	default:
		switch b.(type) {
		case map[string]any, []any:
		default:
			if a == b {
				return
			}
		}
	}
	f.add(short(path))
}

func (f *fields) compareMaps(path string, a, b map[string]any) {
	var onlyA, onlyB []string
	for _, key := range slices.Sorted(maps.Keys(a)) {
		if _, ok := b[key]; !ok {
			onlyA = append(onlyA, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(b)) {
		if _, ok := a[key]; !ok {
			onlyB = append(onlyB, key)
		}
	}
	if len(onlyA) > 0 && len(onlyB) > 0 { // a key that is another one each time
		f.add(short(strings.TrimPrefix(path+".", ".") + "*"))
	} else {
		for _, key := range append(onlyA, onlyB...) {
			f.add(short(fieldPath(path, key)))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(a)) {
		if other, ok := b[key]; ok {
			f.compare(fieldPath(path, key), a[key], other)
		}
	}
}

// fieldPath is the path one key further down, as the guardrails write it: a.b for plain keys, a[x/y] for others.
func fieldPath(path, key string) string {
	plain := key != "" && strings.IndexFunc(key, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) < 0
	switch {
	case !plain:
		return path + "[" + printable(key) + "]"
	case path == "":
		return key
	default:
		return path + "." + key
	}
}

// short keeps text from a chart to what a line can hold.
func short(text string) string {
	if utf8.RuneCountInString(text) <= maxShown {
		return text
	}
	return string([]rune(text)[:maxShown]) + "…"
}
