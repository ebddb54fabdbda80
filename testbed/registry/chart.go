package registry

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"sigs.k8s.io/yaml"
)

// The media types of a chart in a registry, as Helm has them.
const (
	ConfigMediaType = types.MediaType("application/vnd.cncf.helm.config.v1+json")
	ChartMediaType  = types.MediaType("application/vnd.cncf.helm.chart.content.v1.tar+gzip")
)

// chart is what Chart.yaml says about itself.
type chart struct {
	Name        string `json:"name"`
	Version     string `json:"version"`
	Description string `json:"description"`
}

// Package makes a chart archive of a directory: the same bytes for the same files. Entries are sorted, have no times
// or owners, and lie below a folder named after the chart. All regular files are taken (.helmignore is not read);
// anything else, such as a symbolic link, is an error.
func Package(dir string) ([]byte, error) {
	meta, err := os.ReadFile(filepath.Join(dir, "Chart.yaml"))
	if err != nil {
		return nil, fmt.Errorf("package chart: %w", err)
	}
	var c chart
	if err := yaml.Unmarshal(meta, &c); err != nil {
		return nil, fmt.Errorf("package chart: Chart.yaml: %w", err)
	}
	if c.Name == "" || c.Version == "" || c.Name != path.Base(c.Name) {
		return nil, errors.New("package chart: Chart.yaml needs a name and a version")
	}
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	archive := tar.NewWriter(zip)
	root := os.DirFS(dir)
	// WalkDir goes in lexical order.
	err = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("%s is not a regular file", name)
		}
		data, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		if err := archive.WriteHeader(&tar.Header{
			Name:     path.Join(c.Name, name),
			Mode:     0o644,
			Size:     int64(len(data)),
			ModTime:  time.Unix(0, 0),
			Typeflag: tar.TypeReg,
		}); err != nil {
			return err
		}
		_, err = archive.Write(data)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("package chart: %w", err)
	}
	if err := errors.Join(archive.Close(), zip.Close()); err != nil {
		return nil, fmt.Errorf("package chart: %w", err)
	}
	return out.Bytes(), nil
}

// Push puts a chart archive into a registry under ref (host:port/path:tag), as Helm does, and returns the manifest's
// digest. A loopback registry is spoken to in plain http, any other in https, without credentials. Without a tag the
// chart's version is taken, with _ for +.
func Push(ctx context.Context, ref string, archive []byte) (manifestDigest string, err error) {
	config, err := chartConfig(archive)
	if err != nil {
		return "", fmt.Errorf("push chart: %w", err)
	}
	var c chart
	if err := json.Unmarshal(config, &c); err != nil {
		return "", fmt.Errorf("push chart: %w", err)
	}
	ref = strings.TrimPrefix(ref, "oci://")
	if !strings.Contains(path.Base(ref), ":") {
		ref += ":" + strings.ReplaceAll(c.Version, "+", "_")
	}
	tag, err := name.NewTag(ref, name.StrictValidation)
	if err != nil {
		return "", fmt.Errorf("push chart: %w", err)
	}
	a, err := newArtifact(config, archive, c)
	if err != nil {
		return "", fmt.Errorf("push chart: %w", err)
	}
	image, err := partial.CompressedToImage(a)
	if err != nil {
		return "", fmt.Errorf("push chart: %w", err)
	}
	if err := remote.Write(tag, image, remote.WithContext(ctx)); err != nil {
		return "", fmt.Errorf("push chart to %s: %w", tag, err)
	}
	digest, err := image.Digest()
	if err != nil {
		return "", fmt.Errorf("push chart: %w", err)
	}
	return digest.String(), nil
}

// Digest is the digest of a chart archive, as a reference names it.
func Digest(archive []byte) string {
	h, _, _ := v1.SHA256(bytes.NewReader(archive)) // reading from memory does not fail
	return h.String()
}

// chartConfig is the archive's Chart.yaml as JSON.
func chartConfig(archive []byte) ([]byte, error) {
	zip, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil, errors.New("no Chart.yaml in the archive's top folder")
		}
		if err != nil {
			return nil, err
		}
		if dir, file := path.Split(path.Clean(h.Name)); file != "Chart.yaml" || strings.Count(dir, "/") != 1 {
			continue
		}
		data, err := io.ReadAll(io.LimitReader(r, 1<<20))
		if err != nil {
			return nil, err
		}
		return yaml.YAMLToJSON(data)
	}
}

// artifact is a chart as an image of one layer: what the client library can push.
type artifact struct {
	config, archive, manifest []byte
}

func newArtifact(config, archive []byte, c chart) (*artifact, error) {
	descriptor := func(data []byte, t types.MediaType) (v1.Descriptor, error) {
		h, size, err := v1.SHA256(bytes.NewReader(data))
		return v1.Descriptor{MediaType: t, Digest: h, Size: size}, err
	}
	cd, err := descriptor(config, ConfigMediaType)
	if err != nil {
		return nil, err
	}
	ld, err := descriptor(archive, ChartMediaType)
	if err != nil {
		return nil, err
	}
	m := v1.Manifest{
		SchemaVersion: 2,
		MediaType:     types.OCIManifestSchema1,
		Config:        cd,
		Layers:        []v1.Descriptor{ld},
		Annotations: map[string]string{
			"org.opencontainers.image.title":   c.Name,
			"org.opencontainers.image.version": c.Version,
		},
	}
	if c.Description != "" {
		m.Annotations["org.opencontainers.image.description"] = c.Description
	}
	manifest, err := json.Marshal(m)
	return &artifact{config, archive, manifest}, err
}

func (a *artifact) RawConfigFile() ([]byte, error)      { return a.config, nil }
func (a *artifact) RawManifest() ([]byte, error)        { return a.manifest, nil }
func (a *artifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }
func (a *artifact) LayerByDigest(h v1.Hash) (partial.CompressedLayer, error) {
	if h.String() != Digest(a.archive) {
		return nil, fmt.Errorf("no layer %s", h)
	}
	return static.NewLayer(a.archive, ChartMediaType), nil
}
