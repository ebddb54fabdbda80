package render

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/manifest"
	layers "zaentrum.io/zae/internal/values"
)

// KubeVersion is the Kubernetes version that templates see.
const KubeVersion = chart.KubeVersion

const (
	kubeMajor   = "1"
	kubeMinor   = "37"
	helmVersion = "v3.22.0"

	maxOutput = 4 << 20 // bytes that all templates of a chart may render together
)

// Input is what is rendered.
type Input struct {
	Chart     *chart.Chart
	Name      string // of the release
	Namespace string
	// Values are the chart's defaults with everything laid over them: a default that is missing was
	// deleted. The defaults of bundled charts are added here. They are only read.
	Values map[string]any
	// Verbatim has an error of a template end with the chart's own words, which may quote any value: it is for
	// whoever gave them all, and no secret.
	Verbatim bool
}

// Render renders a chart. The strings say where rendering failed, sorted and, unless the input is Verbatim, without any
// text that a template or a value produced; there is a set only when there are none.
//
// Objects come in the order of their files' names and, in a file, of its documents. Lists are expanded;
// notes, partials and test hooks are left out (decisions §4). When ctx ends, Render returns without waiting
// for the templates, which then run to their end on their own.
func Render(ctx context.Context, in Input) (manifest.Set, []string) {
	values := layers.CloneTree(in.Values) // the caller may change what it gave once this has returned
	return within(ctx, func() (manifest.Set, []string) {
		h, files, errs := texts(in, values)
		if len(errs) > 0 {
			return nil, errs
		}
		return objects(ctx, h.Name(), files)
	})
}

// Text is what one template renders, before it is read as objects.
type Text struct{ File, Text string }

// Texts is what the templates of a chart render, in the order of their files' names, also where that is no YAML. It
// is for those who look at templates, never to be shown. It returns as Render does.
func Texts(ctx context.Context, in Input) ([]Text, []string) {
	values := layers.CloneTree(in.Values)
	return within(ctx, func() ([]Text, []string) {
		h, files, errs := texts(in, values)
		var out []Text
		for _, name := range slices.Sorted(maps.Keys(files)) {
			out = append(out, Text{strings.TrimPrefix(name, h.Name()+"/"), files[name]})
		}
		return out, errs
	})
}

// within runs a job that nothing can stop, for as long as ctx lasts.
func within[T any](ctx context.Context, job func() (T, []string)) (T, []string) {
	var none T
	if ctx.Err() != nil {
		return none, []string{givenUp(ctx)}
	}
	type result struct {
		value T
		errs  []string
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if recover() != nil { // its text may quote a value
				r = result{errs: []string{"rendering failed"}}
			}
			done <- r
		}()
		r.value, r.errs = job()
	}()
	select {
	case r := <-done:
		return r.value, r.errs
	case <-ctx.Done():
		return none, []string{givenUp(ctx)}
	}
}

func givenUp(ctx context.Context) string {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return "rendering did not finish in time"
	}
	return "rendering was given up"
}

// texts renders all templates, within the bound on what they may render together. It changes the values.
func texts(in Input, values map[string]any) (*helmchart.Chart, map[string]string, []string) {
	h := cloneChart(in.Chart.Helm())
	files, err := execute(h, in.Name, in.Namespace, values)
	switch {
	case err != nil && in.Verbatim:
		return h, nil, []string{verbatim(err, h)}
	case err != nil:
		return h, nil, []string{where(err, h)}
	}
	size := 0
	for _, text := range files {
		size += len(text)
	}
	if size > maxOutput {
		return h, nil, []string{fmt.Sprintf("the templates render %d bytes, the limit is %d", size, maxOutput)}
	}
	if errs := swallowed(files, h, values); len(errs) > 0 {
		return h, nil, errs
	}
	return h, files, nil
}

// execute renders all templates of the chart to text, by file. It changes the chart and the values.
func execute(h *helmchart.Chart, name, namespace string, values map[string]any) (map[string]string, error) {
	if err := settle(h, values); err != nil {
		return nil, err
	}
	return engine.Engine{}.Render(h, chartutil.Values{
		"Chart":        h.Metadata,
		"Capabilities": capabilities(),
		"Release": map[string]any{
			"Name":      name,
			"Namespace": namespace,
			"Revision":  1,
			"IsInstall": true,
			"IsUpgrade": false,
			"Service":   "Helm",
		},
		"Values": chartutil.Values(values),
	})
}

// settle makes values what templates see: with the defaults of the bundled charts that take part. It changes the
// chart and the values.
func settle(h *helmchart.Chart, values map[string]any) error {
	platform, hasPlatform := values[v1alpha1.PlatformKey]
	if hasPlatform {
		platform = layers.Clone(platform)
	}
	nullDeleted(values, h.Values, true)
	if err := resolve(h, values); err != nil {
		return err
	}
	if err := coalesce(h, values, false, ""); err != nil {
		return err
	}
	if hasPlatform {
		// Nothing a chart has under this key, or imports from a bundled chart, is mixed into it.
		values[v1alpha1.PlatformKey] = platform
	}
	return nil
}

// capabilities are what templates see of a cluster and of Helm. Helm's own defaults depend on how the
// program was linked and on whether it is a test.
func capabilities() *chartutil.Capabilities {
	c := &chartutil.Capabilities{
		KubeVersion: chartutil.KubeVersion{Version: KubeVersion, Major: kubeMajor, Minor: kubeMinor},
		APIVersions: slices.Clone(chartutil.DefaultVersionSet),
	}
	slices.Sort(c.APIVersions)
	c.HelmVersion.Version = helmVersion
	return c
}

// cloneChart copies what rendering changes: metadata, values and the tree. Templates and files are shared,
// since nothing writes to them.
func cloneChart(h *helmchart.Chart) *helmchart.Chart {
	m := *h.Metadata
	m.Annotations = cloneStrings(m.Annotations)
	m.Dependencies = nil
	for _, d := range h.Metadata.Dependencies {
		dep := *d
		dep.ImportValues, _ = layers.Clone(d.ImportValues).([]any)
		m.Dependencies = append(m.Dependencies, &dep)
	}
	out := &helmchart.Chart{
		Metadata:  &m,
		Templates: withoutNotes(h.Templates),
		Values:    layers.CloneTree(h.Values),
		Schema:    h.Schema,
		Files:     h.Files,
	}
	for _, sub := range h.Dependencies() {
		out.AddDependency(cloneChart(sub))
	}
	return out
}

// withoutNotes leaves notes out, which nobody reads here and which therefore must not fail (decisions §4).
func withoutNotes(templates []*helmchart.File) []*helmchart.File {
	return slices.DeleteFunc(slices.Clone(templates), func(f *helmchart.File) bool { return path.Base(f.Name) == notesSuffix })
}

func cloneStrings(m map[string]string) map[string]string {
	if m == nil {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

// templates are the names by which Helm's errors call the templates of a chart and of those bundled with it.
func templates(h *helmchart.Chart) []string {
	var names []string
	for _, t := range h.Templates {
		names = append(names, path.Join(h.ChartFullPath(), t.Name))
	}
	for _, sub := range h.Dependencies() {
		names = append(names, templates(sub)...)
	}
	return names
}
