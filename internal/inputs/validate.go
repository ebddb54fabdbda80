package inputs

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"

	"zaentrum.io/zae/api/v1alpha1"
)

// Validate says what in the values does not satisfy the schema: all problems at once, each as
// "dotted.path: message", sorted and each once. No message holds a value; keys, limits and property names
// are not values.
//
// The reserved key zaentrum is left out unless the schema itself declares it, so that a closed schema does
// not refuse what the operator puts there. The values are not changed.
func (s *Schema) Validate(values map[string]any) []string { return s.ValidateAt("", values) }

// ValidateAt is Validate for values that stand at a dotted path in others, which all paths then begin with: those
// of a bundled chart.
func (s *Schema) ValidateAt(at string, values map[string]any) []string {
	if s == nil || s.compiled == nil {
		return nil
	}
	if _, there := values[v1alpha1.PlatformKey]; there && !s.declaresPlatform {
		values = maps.Clone(values)
		delete(values, v1alpha1.PlatformKey)
	}
	plain, where, what := plain(values, nil)
	if what != "" {
		return []string{dotted(at, values, where) + ": " + what}
	}
	tree, _ := plain.(map[string]any)
	return s.validate(at, tree)
}

func (s *Schema) validate(at string, values map[string]any) (found []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		switch recover().(type) {
		case nil:
		case exhausted:
			found = []string{whole(at) + ": validating against the schema takes too long"}
		default:
			found = []string{whole(at) + ": cannot be validated against the schema"}
		}
	}()
	length, empty := longest(values)
	s.meter.start(length)
	err := s.compiled.schema.Validate(values)
	if err == nil {
		return nil
	}
	return explainValues(&reader{s.compiled.index, values, empty}, at, values, err)
}

// wholePath stands for the values as a whole where a dotted path is expected.
const wholePath = "values"

func whole(at string) string {
	if at == "" {
		return wholePath
	}
	return show(at)
}

// plain copies values with the Go types of JSON: int64, float64 and json.Number among them, which the
// validator compares exactly.
func plain(v any, at []string) (any, []string, string) {
	if len(at) > maxDepth {
		return nil, nil, "nested deeper than " + strconv.Itoa(maxDepth) + " levels"
	}
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			item, where, what := plain(v[key], append(at, key))
			if what != "" {
				return nil, where, what
			}
			out[key] = item
		}
		return out, nil, ""
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			item, where, what := plain(item, append(at, strconv.Itoa(i)))
			if what != "" {
				return nil, where, what
			}
			out[i] = item
		}
		return out, nil, ""
	case json.Number:
		if !reasonable(string(v)) {
			return nil, at, "is a number with too many digits"
		}
		if _, err := v.Float64(); err != nil {
			return nil, at, "is not a number that JSON can hold"
		}
		return v, nil, ""
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, at, "is not a number that JSON can hold"
		}
		return v, nil, ""
	case nil, bool, string, int, int32, int64, uint32, uint64, float32:
		return v, nil, ""
	default:
		return nil, at, "is not a JSON value"
	}
}
