package engine_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	helmengine "helm.sh/helm/v3/pkg/engine"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apply"
	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/charttest"
	"zaentrum.io/zae/internal/engine"
	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/operator"
	"zaentrum.io/zae/internal/values"
)

const exampleDir = "../../examples/example/1.2.0"

const refusedDir = "../../examples/refused/"

// nothing is a cluster without any object.
type nothing struct{}

func (nothing) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (nothing) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

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

// BenchmarkPlan is the example chart from the archive at hand to the plan: fetch from the cache, layers,
// validation, render, guardrails, a look at a cluster that has nothing, decoration, plan.
func BenchmarkPlan(b *testing.B) {
	src, fetcher := push(b, exampleDir)
	e := &engine.Engine{Fetch: fetcher, Cluster: &apply.Cluster{
		Cache: nothing{}, Live: nothing{}, FieldManager: v1alpha1.FieldManager,
		Kinds: operator.Kinds, OwnerLabel: v1alpha1.LabelAddon,
	}}
	request := exampleRequest(src)
	owner := apply.Owner{APIVersion: "zaentrum.io/v1alpha1", Kind: "ZaentrumAddon", Namespace: "zaentrum", Name: "example", UID: "1"}
	b.ReportAllocs()
	for b.Loop() {
		p, err := e.Preview(b.Context(), request, owner)
		if err != nil {
			b.Fatal(err)
		}
		if p.Blocked() || len(p.Plan.Objects) != 9 {
			b.Fatalf("%+v", p.Plan)
		}
	}
}

// BenchmarkBareHelm is what Helm's engine needs for the same chart and values, its YAML decoded: no fetch,
// no guardrails, no plan. The chart is loaded once, as a program that keeps it would.
func BenchmarkBareHelm(b *testing.B) {
	h, err := loader.LoadDir(exampleDir)
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
		objects := 0
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
					objects++
				}
			}
		}
		if objects < 9 {
			b.Fatal(objects)
		}
	}
}
