package chart

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"

	"zaentrum.io/zae/internal/fault"
)

func noProxy(*http.Request) (*url.URL, error) { return nil, nil }

// keys are the credentials of one registry.
type keys struct{ host, user, password string }

func (k keys) Resolve(r authn.Resource) (authn.Authenticator, error) {
	if r.RegistryStr() != k.host {
		return authn.Anonymous, nil
	}
	return &authn.Basic{Username: k.user, Password: k.password}, nil
}

func local(t testing.TB, dir string) *Archive {
	t.Helper()
	a, err := ReadLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestWhatWasPushedIsFetched(t *testing.T) {
	t.Parallel()
	for name, tls := range map[string]bool{"over https": true, "over plain http on loopback": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRegistry(t, tls)
			o := PushOptions{Keychain: keys{}, proxy: noProxy}
			if tls {
				o.roots = roots(r.server)
			} else {
				o.AllowLoopback = []string{r.host()}
			}
			dir := tree(t, map[string]string{"Chart.yaml": "apiVersion: v2\nname: example\nversion: 1.2.0+build.1\ndescription: An example\n", "values.yaml": "a: 1\n"})
			a := local(t, dir)
			got, err := Push(t.Context(), a, "oci://"+r.host()+"/charts", o)
			if err != nil {
				t.Fatal(err)
			}
			want := &Pushed{Reference: "oci://" + r.host() + "/charts/example:1.2.0_build.1", Manifest: got.Manifest, Archive: a.Digest}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
			f := fetcher(t, FetcherOptions{}, r.server)
			if tls {
				f = fetcher(t, FetcherOptions{roots: roots(r.server)}, r.server)
			}
			for _, digest := range []string{"", a.Digest, got.Manifest} {
				fetched, err := f.Fetch(t.Context(), r.source("charts/example", "1.2.0+build.1", digest))
				if err != nil || fetched.Digest != a.Digest {
					t.Errorf("%q: fetched %v, %v", digest, fetched, err)
				}
			}
			// The same again is the same, and replaces nothing.
			again, err := Push(t.Context(), a, "oci://"+r.host()+"/charts", o)
			if err != nil || *again != *got {
				t.Errorf("again %+v, %v", again, err)
			}
		})
	}
}

func TestAPushIsHelmsArtifact(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, false)
	a := local(t, "../../examples/example/1.3.0")
	got, err := Push(t.Context(), a, "oci://"+r.host()+"/charts", PushOptions{AllowLoopback: []string{r.host()}, Keychain: keys{}})
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		MediaType   string
		Config      layer
		Layers      []layer
		Annotations map[string]string
	}
	read(t, r, "/v2/charts/example/manifests/1.3.0", &m)
	if m.MediaType != "application/vnd.oci.image.manifest.v1+json" || len(m.Layers) != 1 || m.Layers[0].Digest != a.Digest ||
		m.Layers[0].MediaType != "application/vnd.cncf.helm.chart.content.v1.tar+gzip" || m.Config.MediaType != "application/vnd.cncf.helm.config.v1+json" {
		t.Errorf("got %+v", m)
	}
	if m.Annotations["org.opencontainers.image.version"] != "1.3.0" || m.Annotations["org.opencontainers.image.created"] != "" {
		t.Errorf("annotated %v", m.Annotations)
	}
	var config struct {
		Name, Version, APIVersion, AppVersion, Type string
		Annotations                                 map[string]string
	}
	read(t, r, "/v2/charts/example/blobs/"+m.Config.Digest, &config)
	if config.Name != "example" || config.Version != "1.3.0" || config.APIVersion != "v2" || config.AppVersion != "4.2.0" || config.Annotations["zaentrum.io/addon"] != "true" {
		t.Errorf("configured %+v", config)
	}
	if got.Replaced != "" {
		t.Errorf("replaced %s", got.Replaced)
	}
	// Another chart under the same version is told of.
	other := local(t, tree(t, map[string]string{"Chart.yaml": "apiVersion: v2\nname: example\nversion: 1.3.0\n"}))
	again, err := Push(t.Context(), other, "oci://"+r.host()+"/charts", PushOptions{AllowLoopback: []string{r.host()}, Keychain: keys{}})
	if err != nil || again.Replaced != got.Manifest {
		t.Errorf("got %+v, %v", again, err)
	}
}

func read(t *testing.T, r *ociRegistry, path string, into any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := r.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(json.NewDecoder(resp.Body).Decode(into), resp.Body.Close())
	if err != nil {
		t.Fatal(err)
	}
}

// The registry gets the credentials it has in the keychain, fetching never any.
func TestOnlyPushingUsesCredentials(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, true)
	var fetching bool
	var leaked []string
	r.intercept(func(w http.ResponseWriter, req *http.Request) bool {
		user, password, ok := req.BasicAuth()
		if fetching {
			if ok || req.Header.Get("Authorization") != "" {
				leaked = append(leaked, req.URL.Path)
			}
			return false
		}
		if user != "author" || password != "hunter2" {
			w.Header().Set("WWW-Authenticate", `Basic realm="charts"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		return false
	})
	a := local(t, "../../examples/tiny")
	o := PushOptions{roots: roots(r.server), proxy: noProxy, Keychain: keys{r.host(), "author", "hunter2"}}
	if _, err := Push(t.Context(), a, "oci://"+r.host()+"/charts", o); err != nil {
		t.Fatal(err)
	}
	o.Keychain = keys{"elsewhere.example", "author", "hunter2"}
	_, err := Push(t.Context(), a, "oci://"+r.host()+"/charts", o)
	wantFault(t, err, fault.Registry, "does not let you push (status 401)")
	if f := fault.From(err); !strings.Contains(f.Hint, "docker login "+r.host()) {
		t.Errorf("hint %s", f.Hint)
	}
	fetching = true
	f := fetcher(t, FetcherOptions{roots: roots(r.server)}, r.server)
	if _, err := f.Fetch(t.Context(), r.source("charts/tiny", "0.1.0", "")); err != nil && fault.CodeOf(err) != fault.ChartMissing {
		t.Fatal(err)
	}
	if len(leaked) > 0 {
		t.Errorf("credentials went to %q", leaked)
	}
}

func TestAPushThatCannotBe(t *testing.T) {
	t.Parallel()
	plain, secure := newRegistry(t, false), newRegistry(t, true)
	broken := newRegistry(t, true)
	broken.fail(http.StatusTeapot)
	tiny := local(t, "../../examples/tiny")
	gone := newRegistry(t, false)
	gone.Close()
	for name, tc := range map[string]struct {
		archive *Archive
		to      string
		o       PushOptions
		code    fault.Code
		want    string
	}{
		"plain http":            {tiny, "oci://" + plain.host() + "/charts", PushOptions{}, fault.Registry, "does not speak https"},
		"an unknown issuer":     {tiny, "oci://" + secure.host() + "/charts", PushOptions{}, fault.Registry, "cannot be trusted"},
		"an odd answer":         {tiny, "oci://" + broken.host() + "/charts", PushOptions{roots: roots(broken.server)}, fault.Registry, "answered with status 418"},
		"nobody there":          {tiny, "oci://" + gone.host() + "/charts", PushOptions{AllowLoopback: []string{gone.host()}}, fault.Registry, "connection refused"},
		"no such host":          {tiny, "oci://registry.invalid/charts", PushOptions{}, fault.Registry, "cannot be reached"},
		"not loopback":          {tiny, "oci://192.0.2.1:5000/charts", PushOptions{AllowLoopback: []string{"192.0.2.1:5000"}}, fault.Registry, "is given as a loopback registry and is none"},
		"a tag":                 {tiny, "oci://" + secure.host() + "/charts:1", PushOptions{}, fault.Invalid, "has a tag"},
		"an archive's address":  {tiny, "https://example.org/charts", PushOptions{}, fault.Invalid, "is not one to push to"},
		"no path":               {tiny, "oci://" + secure.host(), PushOptions{}, fault.Invalid, "names no chart"},
		"no chart":              {mustArchive(t, []byte("hunter2")), "oci://" + secure.host() + "/charts", PushOptions{}, fault.Chart, "is not a complete gzipped tar"},
		"a name that is no one": {local(t, tree(t, map[string]string{"Chart.yaml": "apiVersion: v2\nname: Upper\nversion: 1.0.0\n"})), "oci://" + secure.host() + "/charts", PushOptions{}, fault.Chart, "no name that a registry takes"},
		"a bad loopback":        {tiny, "oci://" + secure.host() + "/charts", PushOptions{AllowLoopback: []string{"x"}}, fault.Invalid, "want host:port"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.o.Keychain, tc.o.proxy = keys{}, noProxy
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			_, err := Push(ctx, tc.archive, tc.to, tc.o)
			wantFault(t, err, tc.code, tc.want)
		})
	}
	if asked := plain.asked(); len(asked) > 0 {
		t.Errorf("the plain registry was asked %q", asked)
	}
}

func mustArchive(t *testing.T, data []byte) *Archive {
	t.Helper()
	a, err := NewArchive(data)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
