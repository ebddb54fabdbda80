package values

// Merge lays src, the values somebody gave, over dst, a chart's defaults, as Helm does: objects merge key by
// key, everything else replaces. A null in src over something in dst deletes the key; a null over nothing
// stays a null. Neither tree is changed and the result shares nothing with them.
func Merge(dst, src map[string]any) map[string]any {
	return merge(dst, src, nil, true)
}

// merge is Merge with two of Helm's distinctions: below the keys in keep, which name subcharts, a null stays
// a null, because it is the subchart's own default that it deletes; and a null over a null deletes at the
// top and stays below it.
func merge(dst, src map[string]any, keep map[string]bool, top bool) map[string]any {
	out := CloneTree(dst)
	for key, v := range src {
		below, there := dst[key]
		switch v := v.(type) {
		case nil:
			if there && (below != nil || top) {
				delete(out, key)
			} else {
				out[key] = nil
			}
		case map[string]any:
			lower, ok := below.(map[string]any)
			switch {
			case !ok:
				out[key] = CloneTree(v)
			case keep[key]:
				out[key] = overlay(lower, v)
			default:
				out[key] = merge(lower, v, nil, false)
			}
		default:
			out[key] = Clone(v)
		}
	}
	return out
}

// overlay lays one layer of given values over another: objects merge key by key, everything else replaces,
// and a null stays a null, because what it deletes are the chart's defaults further down.
func overlay(dst, src map[string]any) map[string]any {
	out := CloneTree(dst)
	for key, v := range src {
		upper, ok := v.(map[string]any)
		lower, ok2 := out[key].(map[string]any)
		if ok && ok2 {
			out[key] = overlay(lower, upper)
		} else {
			out[key] = Clone(v)
		}
	}
	return out
}

// Clone is a deep copy of a tree, a list or a scalar.
func Clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return CloneTree(v)
	case []any:
		if v == nil {
			return v
		}
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = Clone(item)
		}
		return out
	default:
		return v
	}
}

// CloneTree is a deep copy of a tree that is never nil.
func CloneTree(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = Clone(v)
	}
	return out
}
