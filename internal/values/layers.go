package values

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"

	"zaentrum.io/zae/api/v1alpha1"
)

// From is what one valuesFrom entry holds.
type From struct {
	// TargetPath, when set, is the dotted path that Text is put at.
	TargetPath string
	// Text is the raw text of the key, never parsed.
	Text string
	// Document is the values document; read when there is no TargetPath.
	Document map[string]any
	// Secret tells that Text is of a Secret, whatever the schema says of the path.
	Secret bool
}

// Layers are all sources of an addon's values, lowest first (contract §1).
type Layers struct {
	// Defaults are the chart's values.yaml.
	Defaults map[string]any
	// Generated are generated values by dotted path.
	Generated map[string]string
	// Spec is spec.values.
	Spec map[string]any
	// From are the spec.valuesFrom entries in order.
	From []From
	// Platform is the block under the key zaentrum.
	Platform map[string]any
	// Subcharts are the top-level keys that hold values of bundled subcharts. A null below one is kept,
	// since it may delete a default that only the subchart has.
	Subcharts []string
}

// Merged is what the chart is rendered with. The layers are left as they are and share nothing with the
// result. Target paths and generated paths that ParsePath refuses are left out: refuse them before.
//
// A generated value gives way to one that Spec or From gives. Null and the empty string are not given, at
// the path itself or in place of an object above it; a scalar above it is, and replaces the generated value
// as any higher layer would.
func (l Layers) Merged() map[string]any {
	given := l.given()
	for _, dotted := range slices.Sorted(maps.Keys(l.Generated)) {
		path, err := ParsePath(dotted)
		if err == nil && open(given, path) {
			Set(given, path, l.Generated[dotted])
		}
	}
	keep := make(map[string]bool, len(l.Subcharts))
	for _, name := range l.Subcharts {
		keep[name] = true
	}
	merged := merge(l.Defaults, given, keep, true)
	delete(merged, v1alpha1.PlatformKey)
	if l.Platform != nil {
		merged[v1alpha1.PlatformKey] = CloneTree(l.Platform)
	}
	return merged
}

// Given tells whether Spec or From gives a value for the path, or something that is no object in place of one
// around it, so that a generated value has no place there. Null and the empty string are not given (decisions §3).
// Chart defaults and generated values do not count.
func (l Layers) Given(path string) bool {
	keys, err := ParsePath(path)
	return err == nil && !open(l.given(), keys)
}

// Lookup looks up what Spec and From together have at a path, nulls included.
func (l Layers) Lookup() func(path []string) (any, bool) {
	given := l.given()
	return func(path []string) (any, bool) { return Get(given, path) }
}

// given are the values that people gave, in one tree of its own. Nulls are kept.
func (l Layers) given() map[string]any {
	out := CloneTree(l.Spec)
	for _, f := range l.From {
		if f.TargetPath == "" {
			out = overlay(out, f.Document)
			continue
		}
		if path, err := ParsePath(f.TargetPath); err == nil {
			Set(out, path, f.Text)
		}
	}
	return out
}

// open tells whether nothing given stands at the path or in the way to it.
func open(tree map[string]any, path []string) bool {
	for _, key := range path[:len(path)-1] {
		v, ok := tree[key]
		if !ok || empty(v) {
			return true
		}
		if tree, ok = v.(map[string]any); !ok {
			return false
		}
	}
	return empty(tree[path[len(path)-1]])
}

func empty(v any) bool { return v == nil || v == "" }

// Checksum is the SHA-256, in lower-case hex, of the merged values as JSON with sorted keys. It is the same
// for trees that are equal as JSON. The tree must hold what Normalize returns; otherwise it is empty.
func Checksum(merged map[string]any) string {
	text, err := json.Marshal(merged)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
