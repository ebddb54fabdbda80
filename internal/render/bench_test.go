package render

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"
)

// BenchmarkRender is a small chart from values to objects.
func BenchmarkRender(b *testing.B) {
	in := input(b, "simple", nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, errs := Render(b.Context(), in); len(errs) > 0 {
			b.Fatal(errs)
		}
	}
}

// BenchmarkBareHelm is the same with nothing but Helm's own functions: no checks, no strict decoding.
func BenchmarkBareHelm(b *testing.B) {
	h, err := loader.LoadDir(filepath.Join("testdata", "simple"))
	if err != nil {
		b.Fatal(err)
	}
	given := map[string]any{"zaentrum": platform}
	caps := capabilities()
	b.ReportAllocs()
	for b.Loop() {
		if err := chartutil.ProcessDependenciesWithMerge(h, given); err != nil {
			b.Fatal(err)
		}
		vals, err := chartutil.ToRenderValuesWithSchemaValidation(h, given, chartutil.ReleaseOptions{Name: "example", Namespace: "zaentrum", Revision: 1, IsInstall: true}, caps, true)
		if err != nil {
			b.Fatal(err)
		}
		files, err := engine.Render(h, vals)
		if err != nil {
			b.Fatal(err)
		}
		for name, text := range files {
			if strings.HasSuffix(name, "NOTES.txt") {
				continue
			}
			for doc := range bytes.SplitSeq([]byte(text), []byte("\n---\n")) {
				var tree map[string]any
				if err := yaml.Unmarshal(doc, &tree); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
}
