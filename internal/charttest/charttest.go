// Package charttest serves charts from a real OCI registry on a loopback address, for tests. It is never part of the
// product.
package charttest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"sigs.k8s.io/yaml"
)

// Registry is a running registry.
type Registry struct {
	// Host is its host:port, over plain http.
	Host string

	tb     testing.TB
	server *httptest.Server
}

// Serve starts a registry that stops when the test ends.
func Serve(tb testing.TB) *Registry {
	tb.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	tb.Cleanup(server.Close)
	return &Registry{Host: strings.TrimPrefix(server.URL, "http://"), tb: tb, server: server}
}

// Close stops the registry before the test ends.
func (r *Registry) Close() { r.server.Close() }

// Push packages the chart in a directory and pushes it under its own name and version. It answers with the reference
// to fetch it by, without a tag, and with the version.
func (r *Registry) Push(dir string) (ref, version string) {
	r.tb.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "Chart.yaml"))
	if err != nil {
		r.tb.Fatal(err)
	}
	var meta struct{ Name, Version string }
	if err := yaml.Unmarshal(text, &meta); err != nil {
		r.tb.Fatal(err)
	}
	r.PushArchive(meta.Name, meta.Version, Package(r.tb, dir, meta.Name))
	return "oci://" + r.Host + "/charts/" + meta.Name, meta.Version
}

// PushArchive pushes any bytes as a chart archive.
func (r *Registry) PushArchive(chart, version string, archive []byte) {
	r.tb.Helper()
	ref, err := name.ParseReference(r.Host+"/charts/"+chart+":"+version, name.Insecure)
	if err != nil {
		r.tb.Fatal(err)
	}
	config, err := json.Marshal(map[string]string{"apiVersion": "v2", "name": chart, "version": version})
	if err != nil {
		r.tb.Fatal(err)
	}
	image, err := newArtifact(config, archive)
	if err != nil {
		r.tb.Fatal(err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	if err := remote.Write(ref, image, remote.WithTransport(transport)); err != nil {
		r.tb.Fatal(err)
	}
}

// Package makes a chart archive of a directory: all its files under one folder, in name order, without times.
func Package(tb testing.TB, dir, folder string) []byte {
	tb.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipped)
	root := os.DirFS(dir)
	err := fs.WalkDir(root, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(root, file)
		if err != nil {
			return err
		}
		if err := archive.WriteHeader(&tar.Header{Name: path.Join(folder, file), Mode: 0o644, Size: int64(len(text))}); err != nil {
			return err
		}
		_, err = archive.Write(text)
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		tb.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

// artifact is a Helm chart as an OCI artifact.
type artifact struct {
	config, manifest []byte
	layer            v1.Layer
}

// The media types of Helm's charts in OCI registries (Helm, "Storing Helm charts in OCI registries").
const (
	configType  = "application/vnd.cncf.helm.config.v1+json"
	contentType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

func newArtifact(config, archive []byte) (v1.Image, error) {
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

// RawConfigFile is the artifact's configuration.
func (a *artifact) RawConfigFile() ([]byte, error) { return a.config, nil }

// RawManifest is the artifact's manifest.
func (a *artifact) RawManifest() ([]byte, error) { return a.manifest, nil }

// MediaType is that of an OCI manifest.
func (a *artifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// LayerByDigest is the one layer, the archive.
func (a *artifact) LayerByDigest(v1.Hash) (partial.CompressedLayer, error) { return a.layer, nil }
