package values

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"zaentrum.io/zae/internal/fault"
)

// MaxPathLength is the longest dotted path, in bytes; it is the limit of targetPath in the resource.
const MaxPathLength = 1024

// ParsePath splits a dotted path, such as worker.replicas, into its keys. There are no array indices and
// there is no way to write a key that holds a dot. An empty path, an empty segment, a control character and
// a path longer than MaxPathLength are faults.
func ParsePath(dotted string) ([]string, error) {
	if dotted == "" {
		return nil, fault.New(fault.Invalid, "an empty path names no value").
			WithHint("write the keys with dots between them, such as worker.replicas")
	}
	if len(dotted) > MaxPathLength {
		return nil, fault.New(fault.Invalid, "a path of %d bytes is longer than %d", len(dotted), MaxPathLength)
	}
	if !utf8.ValidString(dotted) || strings.ContainsFunc(dotted, unicode.IsControl) {
		return nil, fault.New(fault.Invalid, "path %q holds a control character or is not UTF-8", dotted)
	}
	path := strings.Split(dotted, ".")
	for _, key := range path {
		if key == "" {
			return nil, fault.New(fault.Invalid, "path %q has an empty segment", dotted).
				WithHint("write one dot between two keys and none at either end")
		}
	}
	return path, nil
}

// JoinPath is the dotted path of keys.
func JoinPath(path []string) string { return strings.Join(path, ".") }

// Get returns what is at the path. It is false when a key is missing or something that is no object is in
// the way; a null that is there is returned with true.
func Get(tree map[string]any, path []string) (any, bool) {
	var at any = tree
	for _, key := range path {
		m, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		if at, ok = m[key]; !ok {
			return nil, false
		}
	}
	return at, true
}

// Set puts v at the path of a tree that the caller owns. Missing objects are made, and whatever is in the
// way and is no object is replaced by one. An empty path changes nothing.
func Set(tree map[string]any, path []string, v any) {
	if len(path) == 0 {
		return
	}
	last := len(path) - 1
	for _, key := range path[:last] {
		next, ok := tree[key].(map[string]any)
		if !ok || next == nil {
			next = map[string]any{}
			tree[key] = next
		}
		tree = next
	}
	tree[path[last]] = v
}

// Delete removes what is at the path of a tree that the caller owns, and then the objects along the path
// that this left empty, so that clearing the only field of a group clears the group. It tells whether
// something was there.
func Delete(tree map[string]any, path []string) bool {
	if len(path) == 0 {
		return false
	}
	key := path[0]
	v, ok := tree[key]
	if !ok {
		return false
	}
	if len(path) == 1 {
		delete(tree, key)
		return true
	}
	next, ok := v.(map[string]any)
	if !ok || !Delete(next, path[1:]) {
		return false
	}
	if len(next) == 0 {
		delete(tree, key)
	}
	return true
}
