package lint

import (
	"strconv"
	"strings"

	"zaentrum.io/zae/internal/manifest"
)

// spot is a place in an object's tree and what stands there. There is one also where nothing stands, so that checks
// walk down without asking at every step.
type spot struct {
	path string
	raw  any
}

// spotOf is the whole of an object.
func spotOf(o manifest.Object) spot { return spot{raw: o.Tree} }

func (s spot) at(keys ...string) spot {
	for _, key := range keys {
		m, _ := s.raw.(map[string]any)
		s = spot{below(s.path, key), m[key]}
	}
	return s
}

// below is the path one key further down, as findings write it.
func below(path, key string) string {
	if strings.ContainsAny(key, "./ ") {
		return path + "[" + key + "]"
	}
	return strings.TrimPrefix(path+"."+key, ".")
}

// items are the elements of a list; of anything else there are none.
func (s spot) items() []spot {
	list, _ := s.raw.([]any)
	out := make([]spot, len(list))
	for i, item := range list {
		out[i] = spot{s.path + "[" + strconv.Itoa(i) + "]", item}
	}
	return out
}

// fields is the mapping that stands here, or nil.
func (s spot) fields() map[string]any {
	m, _ := s.raw.(map[string]any)
	return m
}

// text is the string that stands here; anything else is the empty string.
func (s spot) text() string {
	text, _ := s.raw.(string)
	return text
}

// number is the whole number that stands here, or one that is assumed where nothing stands.
func (s spot) number(assumed int64) int64 {
	if n, ok := s.raw.(int64); ok {
		return n
	}
	return assumed
}

// blank tells whether nothing is said here: it is absent, null or empty.
func (s spot) blank() bool {
	switch v := s.raw.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}
