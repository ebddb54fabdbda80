package render

import (
	"fmt"

	helmchart "helm.sh/helm/v3/pkg/chart"

	layers "zaentrum.io/zae/internal/values"
)

// Helm exports no way to coalesce values that does not print those it cannot merge to the process-wide
// logger. So the rules are here once more; a test holds them against Helm's.

// globalKey is the key whose values every bundled chart sees.
const globalKey = "global"

// mismatch is a value that stands where a bundled chart's values belong.
type mismatch struct{ path string }

func (m *mismatch) Error() string {
	return fmt.Sprintf("values: %s must be an object: it holds the values of a bundled chart", m.path)
}

// coalesce lays values over the chart's defaults, and the same for each bundled chart under its name.
// values are changed in place. With keep, a null stays a null, as long as more is to be laid under it;
// otherwise it deletes the default it meets. at is the path of values, for errors.
func coalesce(h *helmchart.Chart, values map[string]any, keep bool, at string) error {
	underlay(h, values, keep)
	for _, sub := range h.Dependencies() {
		key := sub.Name()
		if _, ok := values[key]; !ok {
			values[key] = map[string]any{}
		}
		lower, ok := values[key].(map[string]any)
		if !ok {
			return &mismatch{at + key}
		}
		passGlobals(values, lower)
		if err := coalesce(sub, lower, keep, at+key+"."); err != nil {
			return err
		}
	}
	return nil
}

// underlay lays one chart's defaults under values.
func underlay(h *helmchart.Chart, values map[string]any, keep bool) {
	for key, def := range layers.CloneTree(h.Values) {
		given, there := values[key]
		switch {
		case !there:
			values[key] = def
		case given == nil:
			if !keep {
				delete(values, key)
			}
		default:
			over, ok1 := given.(map[string]any)
			under, ok2 := def.(map[string]any)
			if ok1 && ok2 {
				// A null in a bundled chart's values is for that chart's own defaults.
				underlayTable(over, under, keep || bundles(h, key))
			}
		}
	}
}

func bundles(h *helmchart.Chart, name string) bool {
	for _, sub := range h.Dependencies() {
		if sub.Name() == name {
			return true
		}
	}
	return false
}

// underlayTable lays under beneath over. Both are changed: a null in over shows in under too, which is seen
// where under belongs to a bigger tree.
func underlayTable(over, under map[string]any, keep bool) {
	for key, v := range over {
		if v != nil {
			continue
		}
		if under[key] != nil && !keep {
			delete(over, key)
			delete(under, key)
		} else {
			under[key] = nil
		}
	}
	for key, def := range under {
		given, there := over[key]
		if !there {
			over[key] = def
			continue
		}
		o, ok1 := given.(map[string]any)
		u, ok2 := def.(map[string]any)
		if ok1 && ok2 {
			underlayTable(o, u, keep)
		}
	}
}

// passGlobals lays the globals of a chart over those of a bundled one.
func passGlobals(upper, lower map[string]any) {
	from, ok := table(upper, globalKey)
	if !ok {
		return
	}
	to, ok := table(lower, globalKey)
	if !ok {
		return
	}
	for key, v := range from {
		inherited, isTable := v.(map[string]any)
		own, there := to[key]
		ownTable, ownIsTable := own.(map[string]any)
		switch {
		case isTable && !there:
			to[key] = shallow(inherited)
		case isTable && ownIsTable:
			// Like Helm, only the first level is copied: deeper down, what the bundled chart adds shows in
			// the upper chart as well.
			merged := shallow(inherited)
			underlayTable(merged, ownTable, true)
			to[key] = merged
		case isTable || ownIsTable:
			// A table and something else: the bundled chart keeps its own.
		default:
			to[key] = v
		}
	}
	lower[globalKey] = to
}

// table is the table under a key, an empty one when there is nothing; not ok when there is something else.
func table(m map[string]any, key string) (map[string]any, bool) {
	v, there := m[key]
	if !there {
		return map[string]any{}, true
	}
	t, ok := v.(map[string]any)
	return t, ok
}

// nullDeleted gives values a null for every default that they lack, so that it is not laid under them
// again: values were laid over the defaults before, and what is missing was deleted on purpose. A null that
// is only the default's own is taken away, for the opposite reason.
func nullDeleted(values, defaults map[string]any, top bool) {
	for key, def := range defaults {
		v, there := values[key]
		switch {
		case !there:
			values[key] = nil
		case v == nil && def == nil && top:
			delete(values, key)
		default:
			over, ok1 := v.(map[string]any)
			under, ok2 := def.(map[string]any)
			if ok1 && ok2 {
				nullDeleted(over, under, false)
			}
		}
	}
}

func shallow(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}
