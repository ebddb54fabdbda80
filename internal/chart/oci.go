package chart

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"zaentrum.io/zae/internal/fault"
)

// chartMediaType is the media type of the layer that holds a chart.
const chartMediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"

// fetchOCI returns the archive behind a tag. When the tag still names a manifest whose archive is at hand,
// nothing but the manifest's head is asked for.
func (f *Fetcher) fetchOCI(ctx context.Context, w wish, known []record) (got, error) {
	repo, err := f.repository(w.ref)
	if err != nil {
		return got{}, err
	}
	puller, err := remote.NewPuller(
		remote.WithAuth(authn.Anonymous), // never the credentials of our surroundings
		remote.WithTransport(f.courier),
		remote.WithUserAgent(userAgent),
		remote.WithRetryBackoff(remote.Backoff{Duration: time.Millisecond, Steps: 1}), // the courier tries again
		remote.WithRetryStatusCodes(),
	)
	if err != nil {
		return got{}, err
	}
	tag := repo.Tag(tagOf(w.version))

	if rec, data, ok := f.cache.newest(known); ok && rec.Manifest != "" {
		head, err := puller.Head(ctx, tag)
		switch {
		case err == nil && head.Digest.String() == rec.Manifest:
			return got{data, rec, revalidated}, nil
		case err == nil:
		default:
			// Some registries answer a HEAD oddly; then the manifest itself decides.
			if _, outage := f.explain(w, err); outage && (statusOf(err) != 0 || ctx.Err() != nil || isNetwork(err)) {
				return got{}, err
			}
		}
	}

	desc, err := puller.Get(ctx, tag)
	if err != nil {
		return got{}, err
	}
	layer, err := chartLayer(w, desc.Manifest)
	if err != nil {
		return got{}, err
	}
	rec := record{Archive: layer.Digest.String(), Manifest: digestOf(desc.Manifest)}
	if w.digest != "" && !rec.matches(w.digest) {
		return got{}, mismatch(w, rec) // without downloading what would be thrown away
	}
	if data, ok := f.cache.blob(rec.Archive); ok {
		return got{data, rec, revalidated}, nil
	}
	data, err := pull(ctx, puller, repo.Digest(rec.Archive))
	if err != nil {
		return got{}, err
	}
	if sum := digestOf(data); sum != rec.Archive {
		return got{}, registryFault(w, "sent other content than its manifest names").WithHint("push the chart again")
	}
	f.cache.keep(rec.Archive, data)
	return got{data, rec, downloaded}, nil
}

// repository is the reference as the registry client has it. A host without a dot is a host here, not a
// user of Docker Hub.
func (f *Fetcher) repository(ref Reference) (name.Repository, error) {
	opts := []name.Option{name.StrictValidation}
	if f.courier.loopback[ref.Host] {
		opts = append(opts, name.Insecure)
	}
	reg, err := name.NewRegistry(ref.Host, opts...)
	if err != nil {
		return name.Repository{}, badReference("has no valid host")
	}
	return reg.Repo(ref.Path), nil
}

// chartLayer finds the one layer that is the chart.
func chartLayer(w wish, manifest []byte) (v1.Descriptor, error) {
	var m struct {
		MediaType types.MediaType `json:"mediaType"`
		Layers    []v1.Descriptor `json:"layers"`
		Manifests []any           `json:"manifests"`
	}
	if err := json.Unmarshal(manifest, &m); err != nil {
		return v1.Descriptor{}, fault.New(fault.Chart, "chart %s: the registry's manifest cannot be read", w).WithHint("push the chart again").Because(err)
	}
	var found []v1.Descriptor
	for _, l := range m.Layers {
		if l.MediaType == chartMediaType {
			found = append(found, l)
		}
	}
	switch {
	case len(found) > 1:
		return v1.Descriptor{}, fault.New(fault.Chart, "chart %s: the artifact holds %d charts instead of one", w, len(found))
	case len(found) == 0 && (m.MediaType.IsIndex() || len(m.Manifests) > 0):
		return v1.Descriptor{}, notAChart(w, "is an index of several artifacts")
	case len(found) == 0:
		return v1.Descriptor{}, notAChart(w, "has no layer of that type")
	case found[0].Digest.Algorithm != "sha256":
		return v1.Descriptor{}, notAChart(w, "names its chart by another digest than sha256")
	case found[0].Size > maxResponse:
		return v1.Descriptor{}, fault.New(fault.Chart, "chart %s: an archive of %s is over the limit of %s", w, size(found[0].Size), size(maxResponse)).WithHint(hintSize)
	}
	return found[0], nil
}

func notAChart(w wish, why string) *fault.Fault {
	return fault.New(fault.Chart, "chart %s is not a Helm chart: the artifact %s", w, why).
		WithHint("push it with helm push, which stores it as %s", chartMediaType)
}

func pull(ctx context.Context, puller *remote.Puller, ref name.Digest) ([]byte, error) {
	layer, err := puller.Layer(ctx, ref)
	if err != nil {
		return nil, err
	}
	body, err := layer.Compressed()
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	_, err = io.Copy(&buf, body)
	if err := errors.Join(err, body.Close()); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}
