package render

import (
	"fmt"
	"slices"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"

	layers "zaentrum.io/zae/internal/values"
)

// resolve settles which bundled charts take part, under which names, and what they export: conditions,
// tags, aliases and import-values. It changes h; values are those given for it.
func resolve(h *helmchart.Chart, values map[string]any) error {
	if err := enable(h, values, ""); err != nil {
		return err
	}
	return imports(h)
}

// enable drops the bundled charts that values switch off, and names the others by their aliases. path is
// where the chart's values are, and ends in a dot. As in Helm, the chart's own defaults are looked at
// together with the outermost chart's values, and a chart that is bundled without being declared stays.
func enable(h *helmchart.Chart, values map[string]any, path string) error {
	deps := h.Metadata.Dependencies
	if deps == nil {
		return nil
	}
	instantiate(h, deps)
	seen := layers.CloneTree(values)
	if err := coalesce(h, seen, false, ""); err != nil {
		return err
	}
	off := map[string]bool{}
	for _, d := range deps {
		if d.Enabled = enabled(d, seen, path); !d.Enabled {
			off[d.Name] = true
		}
	}
	h.Metadata.Dependencies = slices.DeleteFunc(deps, func(d *helmchart.Dependency) bool { return off[d.Name] })
	if len(h.Metadata.Dependencies) == 0 {
		h.Metadata.Dependencies = nil // which means, here as in Helm, that nothing is imported
	}
	on := slices.DeleteFunc(slices.Clone(h.Dependencies()), func(sub *helmchart.Chart) bool { return off[sub.Name()] })
	h.SetDependencies(on...)
	for _, sub := range on {
		if err := enable(sub, seen, path+sub.Name()+"."); err != nil {
			return err
		}
	}
	return nil
}

// instantiate puts one chart per declared dependency in place of the bundled ones: renamed where an alias
// says so, and several times where several dependencies mean the same.
func instantiate(h *helmchart.Chart, deps []*helmchart.Dependency) {
	declared := func(sub *helmchart.Chart) bool {
		return slices.ContainsFunc(deps, func(d *helmchart.Dependency) bool { return means(d, sub) })
	}
	list := slices.DeleteFunc(slices.Clone(h.Dependencies()), declared)
	for _, d := range deps {
		i := slices.IndexFunc(h.Dependencies(), func(sub *helmchart.Chart) bool { return means(d, sub) })
		if i < 0 {
			continue
		}
		sub := cloneChart(h.Dependencies()[i])
		if d.Alias != "" {
			sub.Metadata.Name = d.Alias
		}
		list = append(list, sub)
	}
	for _, d := range deps {
		if d.Alias != "" {
			d.Name = d.Alias
		}
	}
	h.SetDependencies(list...)
}

func means(d *helmchart.Dependency, sub *helmchart.Chart) bool {
	return d.Name == sub.Name() && chartutil.IsCompatibleRange(d.Version, sub.Metadata.Version)
}

// enabled tells whether a dependency takes part: by the first of its conditions that values answer with a
// boolean, else by its tags, else yes.
func enabled(d *helmchart.Dependency, values map[string]any, path string) bool {
	for _, c := range strings.Split(strings.TrimSpace(d.Condition), ",") {
		if c == "" {
			continue
		}
		if on, ok := lookup(values, path+c).(bool); ok {
			return on
		}
	}
	tags, _ := values["tags"].(map[string]any)
	var yes, no bool
	for _, tag := range d.Tags {
		if on, ok := tags[tag].(bool); ok {
			yes, no = yes || on, no || !on
		}
	}
	return yes || !no
}

// lookup is the value at a dotted path; nil when there is none.
func lookup(values map[string]any, path string) any {
	var v any = values
	for _, key := range strings.Split(path, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[key]
	}
	return v
}

// imports puts the values that bundled charts export into their parents' defaults, innermost first. A
// parent's own default wins, and among several imports the first.
func imports(h *helmchart.Chart) error {
	for _, sub := range h.Dependencies() {
		if err := imports(sub); err != nil {
			return err
		}
	}
	if h.Metadata.Dependencies == nil {
		return nil
	}
	all := map[string]any{}
	if err := coalesce(h, all, true, ""); err != nil {
		return err
	}
	imported := map[string]any{}
	for _, d := range h.Metadata.Dependencies {
		for _, item := range d.ImportValues {
			var from string
			to := "."
			switch item := item.(type) {
			case string:
				from = "exports." + item
			case map[string]any:
				from, to = fmt.Sprint(item["child"]), fmt.Sprint(item["parent"])
			default:
				continue
			}
			if t, ok := lookup(all, d.Name+"."+from).(map[string]any); ok {
				if len(t) == 0 {
					t = map[string]any{} // Helm's rule: only what is not empty is shared with the exporting chart
				}
				underlayTable(imported, wrap(to, t), true)
			}
		}
	}
	h.Values = layers.CloneTree(all)
	underlayTable(h.Values, imported, true)
	return nil
}

// wrap is a table with t at a dotted path; a dot alone is the top.
func wrap(path string, t map[string]any) map[string]any {
	if path == "." {
		return t
	}
	keys := strings.Split(path, ".")
	for _, key := range slices.Backward(keys) {
		t = map[string]any{key: t}
	}
	return t
}
