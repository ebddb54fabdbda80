package values

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/manifest"
)

// maxDepth bounds recursion over trees that come from outside.
const maxDepth = 200

// Decode reads one values document, YAML or JSON, as Kubernetes and Helm read it. Integers are int64. An
// empty document is an empty object. Errors say where, never what.
func Decode(text []byte) (map[string]any, error) {
	docs, err := manifest.Decode(text)
	if err != nil {
		return nil, fault.New(fault.Malformed, "%s", err.Error()).Because(err)
	}
	switch len(docs) {
	case 0:
		return map[string]any{}, nil
	case 1:
	default:
		return nil, fault.New(fault.Malformed, "%d documents where one is expected", len(docs))
	}
	tree, ok := docs[0].(map[string]any)
	if !ok {
		return nil, fault.New(fault.Malformed, "not an object").
			WithHint("a values document is a mapping of keys to values")
	}
	return tree, nil
}

// Normalize returns a copy of a JSON-like tree that holds only map[string]any, []any, string, bool, int64,
// float64 and nil. A number that is integral and fits is an int64, so that 10737418240 renders as written;
// every other number is a float64. Anything that JSON cannot hold is a fault that names the place.
func Normalize(v any) (any, error) {
	return normalize(v, nil)
}

func normalize(v any, at []string) (any, error) {
	if len(at) > maxDepth {
		return nil, fault.New(fault.Invalid, "values are nested deeper than %d levels", maxDepth)
	}
	switch v := v.(type) {
	case nil, string, bool, int64:
		return v, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			n, err := normalize(item, append(at, key))
			if err != nil {
				return nil, err
			}
			out[key] = n
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			n, err := normalize(item, append(at, strconv.Itoa(i)))
			if err != nil {
				return nil, err
			}
			out[i] = n
		}
		return out, nil
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i, nil
		}
		f, err := v.Float64()
		if err != nil {
			return nil, notJSON(at, "a number that JSON cannot hold")
		}
		return normalizeFloat(f, at)
	case float64:
		return normalizeFloat(v, at)
	case float32:
		return normalizeFloat(float64(v), at)
	case int:
		return int64(v), nil
	case int32:
		return int64(v), nil
	case uint32:
		return int64(v), nil
	case uint64:
		if v > math.MaxInt64 {
			return float64(v), nil
		}
		return int64(v), nil
	default:
		return nil, notJSON(at, fmt.Sprintf("a %T, which is no JSON value", v))
	}
}

// maxExact is the largest integer up to which float64 holds every integer.
const maxExact = 1 << 53

func normalizeFloat(f float64, at []string) (any, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, notJSON(at, "a number that JSON cannot hold")
	}
	if f == math.Trunc(f) && math.Abs(f) <= maxExact {
		return int64(f), nil
	}
	return f, nil
}

func notJSON(at []string, what string) error {
	if len(at) == 0 {
		return fault.New(fault.Invalid, "%s", what)
	}
	return fault.New(fault.Invalid, "%q: %s", JoinPath(at), what)
}
