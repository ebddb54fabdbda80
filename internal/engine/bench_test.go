package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	helmengine "helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/charttest"
	"zaentrum.io/zae/internal/engine"
	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/values"
	"zaentrum.io/zae/internal/worker"
)

const exampleDir = "../../examples/example/1.2.0"

const refusedDir = "../../examples/refused/"

// push puts a chart into a registry on a loopback address, and answers how to fetch it.
func push(tb testing.TB, dir string) (v1alpha1.ChartSource, *chart.Fetcher) {
	tb.Helper()
	registry := charttest.Serve(tb)
	ref, version := registry.Push(dir)
	fetcher, err := chart.NewFetcher(chart.FetcherOptions{AllowLoopback: []string{registry.Host}, CacheDir: tb.TempDir()})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = fetcher.Close() })
	src := v1alpha1.ChartSource{Ref: ref, Version: version}
	got, err := fetcher.Fetch(tb.Context(), src)
	if err != nil {
		tb.Fatal(err)
	}
	src.Digest = got.Digest
	return src, fetcher
}

func exampleRequest(src v1alpha1.ChartSource) engine.Request {
	return engine.Request{
		Name: "example", Namespace: "zaentrum", Chart: src, Platform: values.DefaultPlatform(),
		Spec: map[string]any{"worker": map[string]any{"replicas": int64(2)}},
		From: []values.From{{TargetPath: "database.url", Text: "postgres://example"}},
		Generated: func(_ context.Context, wanted []inputs.Input) (map[string]string, error) {
			out := map[string]string{}
			for _, in := range wanted {
				out[in.Path] = "c2V0"
			}
			return out, nil
		},
	}
}

// benchCharts are the charts that are measured, and how many objects each renders.
func benchCharts(b *testing.B) []struct {
	name    string
	dir     string
	objects int
} {
	return []struct {
		name    string
		dir     string
		objects int
	}{
		{"small", multiple(b, 1, "Deployment", "Service", "ConfigMap"), 3},
		{"example", exampleDir, 9},
		{"large", multiple(b, 40, "Deployment", "Service", "ConfigMap", "Secret", "ServiceAccount"), 200},
	}
}

// multiple is a chart of n components, each with one object of each kind, in a file of its own.
func multiple(b *testing.B, n int, kinds ...string) string {
	b.Helper()
	dir := filepath.Join(b.TempDir(), "multiple")
	write := func(name, text string) {
		b.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	write("Chart.yaml", "apiVersion: v2\nname: multiple\nversion: 1.0.0\nannotations:\n  zaentrum.io/addon: \"true\"\n  zaentrum.io/primary: c0\n")
	write("values.yaml", "worker: {replicas: 1, logLevel: info}\n")
	bodies := map[string]string{
		"ServiceAccount": "apiVersion: v1\nkind: ServiceAccount\n%s",
		"Secret":         "apiVersion: v1\nkind: Secret\n%sstringData:\n  key: {{ .Values.database.url | quote }}\n",
		"ConfigMap":      "apiVersion: v1\nkind: ConfigMap\n%sdata:\n  level: {{ .Values.worker.logLevel }}\n  issuer: {{ .Values.zaentrum.issuer }}\n",
		"Service":        "apiVersion: v1\nkind: Service\n%sspec:\n  selector: {app: %[2]s}\n  ports: [{port: 80, targetPort: 8080}]\n",
		"Deployment": "apiVersion: apps/v1\nkind: Deployment\n%sspec:\n  replicas: {{ .Values.worker.replicas }}\n" +
			"  selector: {matchLabels: {app: %[2]s}}\n  template:\n    metadata: {labels: {app: %[2]s}}\n    spec:\n      containers:\n" +
			"        - name: worker\n          image: example.org/worker:{{ .Chart.Version }}\n          env:\n            - {name: A, value: {{ .Values.zaentrum.hostname | quote }}}\n",
	}
	for i := range n {
		for _, kind := range kinds {
			name := fmt.Sprintf("c%d", i)
			head := fmt.Sprintf("metadata:\n  name: %s\n  labels: {release: {{ .Release.Name }}}\n", name)
			text := bodies[kind]
			if strings.Contains(text, "%[2]s") {
				text = fmt.Sprintf(text, head, name)
			} else {
				text = fmt.Sprintf(text, head)
			}
			write(fmt.Sprintf("templates/%s-%d.yaml", strings.ToLower(kind), i), text)
		}
	}
	return dir
}

// BenchmarkCheck is from the archive at hand to everything that can be said without a cluster: fetch from the
// cache, layers, validation, render, guardrails. In a worker process, as the product does it; in this process;
// and beside both, what Helm's engine needs for the same chart and values with its YAML decoded, and nothing
// else: no fetch, no guardrails, the chart loaded once.
func BenchmarkCheck(b *testing.B) {
	for _, c := range benchCharts(b) {
		src, fetcher := push(b, c.dir)
		for _, how := range []struct {
			name   string
			worker engine.Worker
		}{{"worker", newPool(b)}, {"in-process", &worker.Direct{}}} {
			b.Run(c.name+"/"+how.name, func(b *testing.B) {
				e := &engine.Engine{Fetch: fetcher, Worker: how.worker}
				request := exampleRequest(src)
				b.ReportAllocs()
				for b.Loop() {
					got, err := e.Check(b.Context(), request)
					if err != nil {
						b.Fatal(err)
					}
					if got.Blocked() || len(got.Objects) != c.objects {
						b.Fatalf("%d objects, %v, %v", len(got.Objects), got.ValuesErrors, got.Findings)
					}
				}
			})
		}
		b.Run(c.name+"/bare-helm", func(b *testing.B) { bareHelm(b, c.dir, c.objects) })
	}
}

func bareHelm(b *testing.B, dir string, objects int) {
	h, err := loader.LoadDir(dir)
	if err != nil {
		b.Fatal(err)
	}
	platform, err := values.Platform(values.DefaultPlatform())
	if err != nil {
		b.Fatal(err)
	}
	given := map[string]any{
		"worker":   map[string]any{"replicas": int64(2)},
		"database": map[string]any{"url": "postgres://example"},
		"config":   map[string]any{"key": "c2V0"},
		"zaentrum": platform,
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := chartutil.ProcessDependenciesWithMerge(h, given); err != nil {
			b.Fatal(err)
		}
		vals, err := chartutil.ToRenderValues(h, given, chartutil.ReleaseOptions{Name: "example", Namespace: "zaentrum", Revision: 1, IsInstall: true}, chartutil.DefaultCapabilities)
		if err != nil {
			b.Fatal(err)
		}
		files, err := helmengine.Render(h, vals)
		if err != nil {
			b.Fatal(err)
		}
		got := 0
		for file, text := range files {
			if strings.HasSuffix(file, "NOTES.txt") {
				continue
			}
			for doc := range bytes.SplitSeq([]byte(text), []byte("\n---\n")) {
				var tree map[string]any
				if err := yaml.Unmarshal(doc, &tree); err != nil {
					b.Fatal(err)
				}
				if tree != nil {
					got++
				}
			}
		}
		if got < objects {
			b.Fatal(got)
		}
	}
}
