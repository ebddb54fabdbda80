package render

import (
	"slices"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"

	"zaentrum.io/zae/internal/inputs"
	layers "zaentrum.io/zae/internal/values"
)

// Validate says what is wrong with values by the schema of the chart and by those of the bundled charts that take
// part, sorted, as inputs.Schema.Validate does; what is in a bundled chart's values begins with its name. As in
// Helm, all are held against what templates see: with the defaults of bundled charts and what they export.
func Validate(in Input, schema *inputs.Schema) []string {
	h := cloneChart(in.Chart.Helm())
	values := layers.CloneTree(in.Values)
	if err := settle(h, values); err != nil {
		return []string{where(err, h)}
	}
	found := append(schema.Validate(values), bundledSchemas(h, values, h.Name()+"/", "")...)
	slices.Sort(found)
	return slices.Compact(found)
}

// bundledSchemas goes through the charts that h bundles; values are h's own and stand at a dotted path, which
// ends in a dot.
func bundledSchemas(h *helmchart.Chart, values map[string]any, prefix, at string) []string {
	var found []string
	for _, sub := range h.Dependencies() {
		tree, ok := values[sub.Name()].(map[string]any)
		if !ok {
			continue // nothing to look at: anything but an object was an error before
		}
		schema, err := inputs.Parse(sub.Schema)
		if err != nil {
			found = append(found, printable(strings.TrimPrefix(sub.ChartFullPath(), prefix))+"/"+err.Error())
		}
		found = append(found, schema.ValidateAt(at+sub.Name(), tree)...)
		found = append(found, bundledSchemas(sub, tree, prefix, at+sub.Name()+".")...)
	}
	return found
}
