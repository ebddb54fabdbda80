package render

import (
	"path"
	"slices"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"

	"zaentrum.io/zae/internal/chart"
	layers "zaentrum.io/zae/internal/values"
)

// Source is the text of one template.
type Source struct {
	// File is its path in the outermost chart, such as charts/sub/templates/worker.yaml.
	File string
	// Values is where the chart that has it gets its values from: empty for the outermost chart.
	Values []string
	Text   string
	// Partial tells that it renders nothing by itself.
	Partial bool
}

// Sources are the templates of a chart and of the charts it bundles. A bundled chart that is used under several
// names has its templates once for each. They are for those who look at templates, never to be shown.
func Sources(c *chart.Chart) []Source {
	h := c.Helm()
	var out []Source
	sources(h, h.Name()+"/", nil, &out)
	return out
}

func sources(h *helmchart.Chart, prefix string, at []string, out *[]Source) {
	for _, t := range h.Templates {
		*out = append(*out, Source{
			File:    strings.TrimPrefix(path.Join(h.ChartFullPath(), t.Name), prefix),
			Values:  at,
			Text:    string(t.Data),
			Partial: strings.HasPrefix(path.Base(t.Name), "_"),
		})
	}
	for _, sub := range h.Dependencies() {
		for _, key := range keysOf(h, sub.Name()) {
			sources(sub, prefix, append(at[:len(at):len(at)], key), out)
		}
	}
}

// keysOf are the keys under which a bundled chart gets its values: its aliases, or its name.
func keysOf(h *helmchart.Chart, name string) []string {
	var keys []string
	for _, d := range h.Metadata.Dependencies {
		switch {
		case d.Name != name:
		case d.Alias != "":
			keys = append(keys, d.Alias)
		default:
			keys = append(keys, name)
		}
	}
	if len(keys) == 0 {
		return []string{name}
	}
	return keys
}

// Switches are the paths of values that decide which bundled charts take part: those of conditions, and of tags.
func Switches(c *chart.Chart) [][]string {
	var out [][]string
	switches(c.Helm(), nil, &out)
	return out
}

func switches(h *helmchart.Chart, at []string, out *[][]string) {
	for _, d := range h.Metadata.Dependencies {
		for _, condition := range strings.Split(strings.TrimSpace(d.Condition), ",") {
			if condition != "" {
				*out = append(*out, append(slices.Clone(at), strings.Split(condition, ".")...))
			}
		}
		for _, tag := range d.Tags {
			*out = append(*out, []string{"tags", tag})
		}
	}
	for _, sub := range h.Dependencies() {
		for _, key := range keysOf(h, sub.Name()) {
			switches(sub, append(at[:len(at):len(at)], key), out)
		}
	}
}

// Condition is what switches one of a chart's own dependencies.
type Condition struct {
	// Index is of the entry in Chart.yaml, and Name its alias or name.
	Index int
	Name  string
	Paths [][]string // of values; the first that is a boolean decides
}

// Conditions are those of a chart's own dependencies, in the order of Chart.yaml.
func Conditions(c *chart.Chart) []Condition {
	var out []Condition
	for i, d := range c.Helm().Metadata.Dependencies {
		one := Condition{Index: i, Name: d.Name}
		if d.Alias != "" {
			one.Name = d.Alias
		}
		for _, condition := range strings.Split(strings.TrimSpace(d.Condition), ",") {
			if condition != "" {
				one.Paths = append(one.Paths, strings.Split(condition, "."))
			}
		}
		if len(one.Paths) > 0 {
			out = append(out, one)
		}
	}
	return out
}

// Defaults are the values that templates see where nobody gives any: the chart's own, those of all charts that it
// bundles, whether or not they take part, and what it imports from them.
func Defaults(c *chart.Chart) map[string]any {
	h := cloneChart(c.Helm())
	instantiateAll(h)
	values := map[string]any{}
	if imports(h) != nil || coalesce(h, values, false, "") != nil {
		return layers.CloneTree(c.Defaults) // it does not render either
	}
	return values
}

func instantiateAll(h *helmchart.Chart) {
	if h.Metadata.Dependencies != nil {
		instantiate(h, h.Metadata.Dependencies)
	}
	for _, sub := range h.Dependencies() {
		instantiateAll(sub)
	}
}
