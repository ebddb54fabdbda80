package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	ociregistry "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	helmchart "helm.sh/helm/v3/pkg/chart"
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
	server := httptest.NewServer(ociregistry.New(ociregistry.Logger(log.New(io.Discard, "", 0))))
	tb.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")

	h, err := loader.LoadDir(dir)
	if err != nil {
		tb.Fatal(err)
	}
	file, err := chartutil.Save(h, tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	archive := readFile(tb, file)
	ref, err := name.ParseReference(host+"/charts/"+h.Name()+":"+h.Metadata.Version, name.Insecure)
	if err != nil {
		tb.Fatal(err)
	}
	image, err := newArtifact(h, archive)
	if err != nil {
		tb.Fatal(err)
	}
	if err := remote.Write(ref, image, remote.WithTransport(http.DefaultTransport)); err != nil {
		tb.Fatal(err)
	}
	fetcher, err := chart.NewFetcher(chart.FetcherOptions{AllowLoopback: []string{host}, CacheDir: tb.TempDir()})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = fetcher.Close() })
	src := v1alpha1.ChartSource{Ref: "oci://" + host + "/charts/" + h.Name(), Version: h.Metadata.Version}
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

// artifact is a Helm chart as an OCI artifact.
type artifact struct {
	config, manifest []byte
	layer            v1.Layer
}

const (
	configType  = "application/vnd.cncf.helm.config.v1+json"
	contentType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

func newArtifact(h *helmchart.Chart, archive []byte) (v1.Image, error) {
	config, err := json.Marshal(h.Metadata)
	if err != nil {
		return nil, err
	}
	a := &artifact{config: config, layer: static.NewLayer(archive, contentType)}
	digest, err := a.layer.Digest()
	if err != nil {
		return nil, err
	}
	hash, size, err := v1.SHA256(bytes.NewReader(config))
	if err != nil {
		return nil, err
	}
	a.manifest, err = json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1,
		Config: v1.Descriptor{MediaType: configType, Size: size, Digest: hash},
		Layers: []v1.Descriptor{{MediaType: contentType, Size: int64(len(archive)), Digest: digest}},
	})
	if err != nil {
		return nil, err
	}
	return partial.CompressedToImage(a)
}

func (a *artifact) RawConfigFile() ([]byte, error)      { return a.config, nil }
func (a *artifact) RawManifest() ([]byte, error)        { return a.manifest, nil }
func (a *artifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }
func (a *artifact) LayerByDigest(v1.Hash) (partial.CompressedLayer, error) {
	return a.layer, nil
}
