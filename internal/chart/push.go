package chart

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"zaentrum.io/zae/internal/fault"
)

// configMediaType is the media type of a chart's configuration, which is its Chart.yaml as JSON.
const configMediaType = "application/vnd.cncf.helm.config.v1+json"

// pushTimeout is how long one push may take: 10 MiB over a slow line.
const pushTimeout = 10 * time.Minute

// PushOptions say how a chart is pushed.
type PushOptions struct {
	// AllowLoopback lists the host:port of registries that are on loopback and may speak plain http.
	AllowLoopback []string
	// Keychain has the credentials; nil is that of docker's configuration. Only the registry that is pushed to gets them.
	Keychain authn.Keychain

	// For tests:
	roots *x509.CertPool                        // instead of the system's
	proxy func(*http.Request) (*url.URL, error) // instead of the environment's
}

// Pushed is what a push came to.
type Pushed struct {
	Reference string // oci://…/name:tag
	Manifest  string // sha256:… of the manifest
	Archive   string // sha256:… of the archive, which is what a plan reports
	// Replaced is the digest of another manifest that had the tag before; empty for none, and when the registry did not
	// tell.
	Replaced string
}

// Push pushes an archive as Helm does, to to + "/" + name under its version as tag. to is oci://registry/path, without
// a tag. Only https is spoken, but to AllowLoopback.
//
// Faults: Invalid (to is not acceptable), Chart (the archive is no chart) and Registry.
func Push(ctx context.Context, a *Archive, to string, o PushOptions) (*Pushed, error) {
	if digestOf(a.Bytes) != a.Digest {
		return nil, errors.New("the archive is not what its digest says")
	}
	image, err := newArtifact(a)
	if err != nil {
		return nil, err
	}
	ref, err := pushReference(to, image)
	if err != nil {
		return nil, err
	}
	t, err := newPushTransport(o)
	if err != nil {
		return nil, err
	}
	defer t.base.CloseIdleConnections()
	var opts []name.Option
	if t.loopback[ref.Host] {
		opts = append(opts, name.Insecure)
	}
	registry, err := name.NewRegistry(ref.Host, append(opts, name.StrictValidation)...)
	if err != nil {
		return nil, badReference("has no valid host")
	}
	tag := registry.Repo(ref.Path).Tag(ref.Tag)
	keychain := o.Keychain
	if keychain == nil {
		keychain = authn.DefaultKeychain
	}
	ctx, cancel := context.WithTimeout(ctx, pushTimeout)
	defer cancel()
	remoteOptions := []remote.Option{
		remote.WithContext(ctx), remote.WithTransport(t), remote.WithUserAgent(userAgent), remote.WithAuthFromKeychain(keychain),
	}
	out := &Pushed{Reference: ref.String() + ":" + ref.Tag, Manifest: digestOf(image.manifest), Archive: a.Digest}
	if before, err := remote.Head(tag, remoteOptions...); err == nil && before.Digest.String() != out.Manifest {
		out.Replaced = before.Digest.String()
	}
	pushed, err := partial.CompressedToImage(image)
	if err != nil {
		return nil, err
	}
	if err := remote.Write(tag, pushed, remoteOptions...); err != nil {
		return nil, explainPush(ref, err)
	}
	return out, nil
}

// pushReference is where the chart goes: below to, under its name, its version being the tag.
func pushReference(to string, image *artifact) (Reference, error) {
	ref, err := ParseReference(to)
	if err != nil {
		return Reference{}, err
	}
	switch {
	case ref.Scheme != SchemeOCI:
		return Reference{}, badReference("is not one to push to").WithHint("give oci://registry/path")
	case ref.Tag != "":
		return Reference{}, badReference("has a tag, and a chart is pushed under its version").WithHint("leave the tag out, and the chart's name too")
	}
	ref.Path += "/" + image.name
	ref.Tag = tagOf(image.version)
	if len(ref.Path) > 255 || !repoPattern.MatchString(ref.Path) {
		return Reference{}, unusable("", "Chart.yaml: name: %s is no name that a registry takes", printable(image.name)).
			WithHint("lower-case letters and digits, separated by . _ and -")
	}
	if len(ref.Tag) > maxVersion || !tagPattern.MatchString(ref.Tag) {
		return Reference{}, unusable("", "Chart.yaml: version: %s is no tag that a registry takes", printable(image.version))
	}
	return ref, nil
}

// artifact is a chart as an OCI artifact.
type artifact struct {
	name, version    string
	config, manifest []byte
	layer            v1.Layer
}

func newArtifact(a *Archive) (*artifact, error) {
	meta, err := a.metadata()
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(meta)
	if err != nil {
		return nil, unusable("", "Chart.yaml cannot be held in JSON")
	}
	out := &artifact{name: meta.Name, version: meta.Version, config: config, layer: static.NewLayer(a.Bytes, chartMediaType)}
	digest, err := out.layer.Digest()
	if err != nil {
		return nil, err
	}
	hash, size, err := v1.SHA256(bytes.NewReader(config))
	if err != nil {
		return nil, err
	}
	annotations := map[string]string{
		"org.opencontainers.image.title": meta.Name, "org.opencontainers.image.version": meta.Version,
	}
	if meta.Description != "" {
		annotations["org.opencontainers.image.description"] = meta.Description
	}
	// No time of creation: the same chart is the same manifest.
	out.manifest, err = json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Annotations: annotations,
		Config: v1.Descriptor{MediaType: configMediaType, Size: size, Digest: hash},
		Layers: []v1.Descriptor{{MediaType: chartMediaType, Size: int64(len(a.Bytes)), Digest: digest}},
	})
	return out, err
}

// RawConfigFile is Chart.yaml as JSON.
func (a *artifact) RawConfigFile() ([]byte, error) { return a.config, nil }

// RawManifest is the manifest.
func (a *artifact) RawManifest() ([]byte, error) { return a.manifest, nil }

// MediaType is that of an OCI manifest.
func (a *artifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// LayerByDigest is the one layer, the archive.
func (a *artifact) LayerByDigest(v1.Hash) (partial.CompressedLayer, error) { return a.layer, nil }

// pushTransport speaks https, and plain http to the listed loopback registries only.
type pushTransport struct {
	base     *http.Transport
	loopback map[string]bool
	proxy    func(*http.Request) (*url.URL, error)
}

func newPushTransport(o PushOptions) (*pushTransport, error) {
	t := &pushTransport{loopback: map[string]bool{}, proxy: o.proxy}
	if t.proxy == nil {
		t.proxy = http.ProxyFromEnvironment // an author's own; charts are fetched without
	}
	for _, hostport := range o.AllowLoopback {
		host, port, err := net.SplitHostPort(hostport)
		if err != nil || host == "" || port == "" {
			return nil, fault.New(fault.Invalid, "loopback registry %q: want host:port", hostport)
		}
		t.loopback[strings.ToLower(hostport)] = true
	}
	t.base = &http.Transport{
		Proxy:                  t.proxyFor,
		DialContext:            t.dial,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.roots},
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: maxHeaders,
		ForceAttemptHTTP2:      true,
	}
	return t, nil
}

func (t *pushTransport) proxyFor(req *http.Request) (*url.URL, error) {
	if t.loopback[hostport(req.URL)] {
		return nil, nil //nolint:nilnil // as http.Transport has it
	}
	return t.proxy(req)
}

// dial holds what is listed as a loopback registry to being one.
func (t *pushTransport) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout}
	if t.loopback[strings.ToLower(addr)] {
		d.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
			ap, err := netip.ParseAddrPort(address)
			if err != nil || !ap.Addr().Unmap().IsLoopback() {
				return refuse("take it off the loopback registries", "refusing to connect: %s is given as a loopback registry and is none", addr)
			}
			return nil
		}
	}
	return d.DialContext(ctx, network, addr)
}

// RoundTrip sends a request. The registry client tries plain http for hosts that look local; where that is not allowed,
// https is used in its place.
func (t *pushTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "https" && !t.loopback[hostport(req.URL)] {
		req = req.Clone(req.Context())
		req.URL.Scheme = "https"
	}
	return t.base.RoundTrip(req)
}

// explainPush makes the fault of an error on the way, without its text.
func explainPush(ref Reference, err error) error {
	at := fmt.Sprintf("chart %s: ", ref)
	var no *refusal
	if errors.As(err, &no) {
		return fault.New(fault.Registry, "%s%s", at, no.why).WithHint("%s", no.hint).Because(err)
	}
	var cert *tls.CertificateVerificationError
	var dns *net.DNSError
	var record tls.RecordHeaderError
	registry := "the registry " + ref.Host + " "
	switch status := statusOf(err); {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fault.New(fault.Registry, "%s%sdoes not let you push (status %d)", at, registry, status).
			WithHint("sign in with docker login %s: the credentials of docker's configuration are used", ref.Host).Because(err)
	case status == http.StatusNotFound:
		return fault.New(fault.Registry, "%s%shas no such repository (status %d)", at, registry, status).
			WithHint("check the path; some registries want a repository to be made first").Because(err)
	case status == http.StatusRequestEntityTooLarge:
		return fault.New(fault.Registry, "%s%stakes no archive of that size (status %d)", at, registry, status).WithHint(hintSize).Because(err)
	case status != 0:
		return fault.New(fault.Registry, "%s%sanswered with status %d", at, registry, status).WithHint("look at the registry; push again").Because(err)
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return fault.New(fault.Registry, "%s%sdid not answer within %s", at, registry, pushTimeout).WithHint(hintReach).Because(err)
	case errors.As(err, &dns):
		return fault.New(fault.Registry, "%s%scannot be reached: no such host", at, registry).WithHint("check the host in the reference").Because(err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fault.New(fault.Registry, "%s%scannot be reached: connection refused", at, registry).WithHint(hintReach).Because(err)
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return fault.New(fault.Registry, "%s%sdoes not speak https", at, registry).
			WithHint("push to a registry that does; for one on this machine, see --allow-loopback-registry").Because(err)
	case errors.As(err, &cert):
		return fault.New(fault.Registry, "%s%scannot be trusted: its TLS certificate is not valid", at, registry).
			WithHint("give it a certificate that is trusted here").Because(err)
	default:
		return fault.New(fault.Registry, "%s%sfailed: the connection broke, the answer could not be understood, or the credentials could not be read", at, registry).
			WithHint("push again; if that does not help, look at the registry and at docker's configuration").Because(err)
	}
}
