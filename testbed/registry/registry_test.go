package registry_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"zaentrum.io/zae/testbed/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// chartDir makes a chart; files come in an order that is not the archive's.
func chartDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range map[string]string{
		"values.yaml":            "a: 1\n",
		"Chart.yaml":             "apiVersion: v2\nname: example\nversion: 1.2.3+b.4\ndescription: An example.\n",
		"templates/b.yaml":       "b: 2\n",
		"templates/a.yaml":       "a: 1\n",
		"charts/sub/Chart.yaml":  "apiVersion: v2\nname: sub\nversion: 9.9.9\n",
		"charts/sub/values.yaml": "",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestPackageIsDeterministic(t *testing.T) {
	dir := chartDir(t)
	first, err := registry.Package(dir)
	if err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "values.yaml"), later, later); err != nil {
		t.Fatal(err)
	}
	second, err := registry.Package(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Error("two archives of the same files differ")
	}
	zip, err := gzip.NewReader(bytes.NewReader(first))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.ModTime.Unix() != 0 || h.Uname != "" || h.Mode != 0o644 {
			t.Errorf("%s: %+v", h.Name, h)
		}
		names = append(names, h.Name)
	}
	want := "example/Chart.yaml example/charts/sub/Chart.yaml example/charts/sub/values.yaml example/templates/a.yaml example/templates/b.yaml example/values.yaml"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestPackageRefusesWhatIsNotAChart(t *testing.T) {
	empty := t.TempDir()
	nameless := t.TempDir()
	if err := os.WriteFile(filepath.Join(nameless, "Chart.yaml"), []byte("version: 1.0.0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "Chart.yaml"), []byte("name: ../x\nversion: 1.0.0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	linked := chartDir(t)
	if err := os.Symlink("/etc/passwd", filepath.Join(linked, "templates/link.yaml")); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"empty": empty, "nameless": nameless, "outside": outside, "linked": linked} {
		if _, err := registry.Package(dir); err == nil {
			t.Errorf("%s: packaged", name)
		}
	}
}

func TestPushAndPull(t *testing.T) {
	s, err := registry.Serve(context.Background(), registry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := s.Stop(time.Second); err != nil {
			t.Error(err)
		}
	})
	archive, err := registry.Package(chartDir(t))
	if err != nil {
		t.Fatal(err)
	}
	digest, err := registry.Push(t.Context(), s.Addr()+"/charts/example:1.2.3", archive)
	if err != nil {
		t.Fatal(err)
	}
	// Without a tag the version is taken; + is no character of a tag.
	again, err := registry.Push(t.Context(), "oci://"+s.Addr()+"/charts/example", archive)
	if err != nil || again != digest {
		t.Errorf("%s, %v; want %s", again, err, digest)
	}

	// A pull as a client without this package's code does it.
	base := "http://" + s.Addr() + "/v2/charts/example/"
	for _, tag := range []string{"1.2.3", "1.2.3_b.4", digest} {
		raw, header := fetch(t, base+"manifests/"+tag)
		if got := header.Get("Docker-Content-Digest"); got != digest {
			t.Errorf("%s: digest %s, want %s", tag, got, digest)
		}
		var m struct {
			MediaType string
			Config    struct{ MediaType, Digest string }
			Layers    []struct {
				MediaType, Digest string
				Size              int
			}
			Annotations map[string]string
		}
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatal(err)
		}
		if m.Config.MediaType != "application/vnd.cncf.helm.config.v1+json" || len(m.Layers) != 1 ||
			m.Layers[0].MediaType != "application/vnd.cncf.helm.chart.content.v1.tar+gzip" ||
			m.Layers[0].Digest != registry.Digest(archive) || m.Layers[0].Size != len(archive) ||
			m.Annotations["org.opencontainers.image.title"] != "example" {
			t.Errorf("manifest: %s", raw)
		}
		config, _ := fetch(t, base+"blobs/"+m.Config.Digest)
		if want := `{"apiVersion":"v2","description":"An example.","name":"example","version":"1.2.3+b.4"}`; string(config) != want {
			t.Errorf("config: %s", config)
		}
		if got, _ := fetch(t, base+"blobs/"+m.Layers[0].Digest); !bytes.Equal(got, archive) {
			t.Error("another archive came back")
		}
	}

	for name, bad := range map[string]func() error{
		"not an archive": func() error { return pushError(t, s.Addr()+"/x:1", []byte("x")) },
		"no reference":   func() error { return pushError(t, "::", archive) },
	} {
		if bad() == nil {
			t.Errorf("%s: pushed", name)
		}
	}
}

func TestRegistryComesBackWithItsContent(t *testing.T) {
	var requests atomic.Int64
	s, err := registry.Serve(context.Background(), registry.Options{Wrap: func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			h.ServeHTTP(w, r)
		})
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := s.Kill(); err != nil {
			t.Error(err)
		}
	})
	archive, err := registry.Package(chartDir(t))
	if err != nil {
		t.Fatal(err)
	}
	ref := s.Addr() + "/charts/example:1"
	if _, err := registry.Push(t.Context(), ref, archive); err != nil {
		t.Fatal(err)
	}
	http.DefaultClient.CloseIdleConnections()
	if err := s.Stop(time.Second); err != nil {
		t.Fatal(err)
	}
	if resp, err := http.Get("http://" + s.Addr() + "/v2/"); err == nil {
		resp.Body.Close()
		t.Error("a stopped registry answers")
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	fetch(t, "http://"+s.Addr()+"/v2/charts/example/manifests/1")
	if requests.Load() == 0 {
		t.Error("nothing went through the wrapper")
	}
}

func pushError(t *testing.T, ref string, archive []byte) error {
	t.Helper()
	_, err := registry.Push(t.Context(), ref, archive)
	return err
}

func fetch(t *testing.T, url string) ([]byte, http.Header) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatal(fmt.Sprint(url, ": ", resp.Status, " ", string(data)))
	}
	return data, resp.Header
}
