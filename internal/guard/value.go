package guard

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// value is a place in a tree and what stands there. The place exists even when nothing stands there, so
// rules can walk down without asking at every step.
type value struct {
	path string
	raw  any
}

// at is the place reached through these keys.
func (v value) at(keys ...string) value {
	for _, k := range keys {
		m, _ := v.raw.(map[string]any)
		v = value{path: join(v.path, k), raw: m[k]}
	}
	return v
}

// items are the elements of a list; of anything else there are none.
func (v value) items() []value {
	list, _ := v.raw.([]any)
	out := make([]value, len(list))
	for i, e := range list {
		out[i] = value{path: v.path + "[" + strconv.Itoa(i) + "]", raw: e}
	}
	return out
}

// keys are the keys of a mapping, sorted; of anything else there are none.
func (v value) keys() []string {
	m, _ := v.raw.(map[string]any)
	return slices.Sorted(maps.Keys(m))
}

// text is the string that stands here; anything else is the empty string.
func (v value) text() string {
	s, _ := v.raw.(string)
	return s
}

// is tells whether exactly this string stands here.
func (v value) is(s string) bool {
	t, ok := v.raw.(string)
	return ok && t == s
}

// blank tells whether what stands here says nothing: it is absent, null or empty.
func (v value) blank() bool {
	switch t := v.raw.(type) {
	case nil:
		return true
	case string:
		return t == ""
	case []any:
		return len(t) == 0
	case map[string]any:
		return len(t) == 0
	}
	return false
}

// unless tells whether something other than the given boolean stands here. What is no boolean counts:
// a rule must not be passed by a value it cannot read.
func (v value) unless(b bool) bool {
	return v.raw != nil && v.raw != b
}

// zero tells whether a number that is zero stands here.
func (v value) zero() bool {
	switch n := v.raw.(type) {
	case int64:
		return n == 0
	case float64:
		return n == 0
	}
	return false
}

// hit says that a rule is broken here.
func (v value) hit(format string, args ...any) hit {
	return hit{path: v.path, what: fmt.Sprintf(format, args...)}
}

// hit is where a rule is broken, and what is wrong there.
type hit struct{ path, what string }

// join is the path one key further down: a.b for plain keys, a[x/y] for others.
func join(path, key string) string {
	plain := key != "" && strings.IndexFunc(key, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	}) < 0
	switch {
	case !plain || len(key) > maxName:
		return path + "[" + clean(key, maxName) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

const (
	maxName = 253 // the longest name an object can have
	maxKind = 63
)

// clean is text from a chart as it may be shown: without control and formatting characters, and cut to
// at most limit characters.
func clean(s string, limit int) string {
	var b strings.Builder
	n := 0
	for _, r := range s {
		if !unicode.IsPrint(r) {
			continue
		}
		if n == limit {
			b.WriteRune('…')
			break
		}
		b.WriteRune(r)
		n++
	}
	return b.String()
}

// scalarText tells scalars apart, also those of different types; ok is false for anything else.
func scalarText(raw any) (text string, ok bool) {
	switch raw.(type) {
	case nil, string, bool, int64, float64:
		return fmt.Sprintf("%T %v", raw, raw), true
	}
	return "", false
}
