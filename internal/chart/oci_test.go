package chart

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/fault"
)

func TestOCI(t *testing.T) {
	for _, tls := range []bool{false, true} {
		t.Run(fmt.Sprintf("tls=%t", tls), func(t *testing.T) {
			reg := newRegistry(t, tls)
			o := FetcherOptions{}
			if tls {
				o.roots = roots(reg.server)
			}
			f := fetcher(t, o, reg.server)
			one := example(t, "one")
			reg.push("a/example", "1.2.0", one)
			if a := mustFetch(t, f, reg.source("a/example", "1.2.0", ""), one); a.Stale != "" {
				t.Error(a.Stale)
			}
			c, err := Load(mustFetch(t, f, reg.source("a/example", "1.2.0", ""), one))
			if err != nil || c.Description != "one" {
				t.Errorf("%+v, %v", c, err)
			}
		})
	}
}

func TestAPlusInAVersionIsAnUnderscoreInATag(t *testing.T) {
	reg := newRegistry(t, false)
	f := fetcher(t, FetcherOptions{}, reg.server)
	reg.push("example", "1.2.0_b.1", example(t, "one"))
	mustFetch(t, f, reg.source("example", "1.2.0+b.1", ""), example(t, "one"))
}

func TestATagIsRevalidatedWithoutDownloading(t *testing.T) {
	reg := newRegistry(t, false)
	dir := t.TempDir()
	one, two := example(t, "one"), example(t, "two")
	src := reg.source("example", "1.2.0", "")
	f := fetcher(t, FetcherOptions{CacheDir: dir}, reg.server)
	reg.push("example", "1.2.0", one)
	mustFetch(t, f, src, one)
	full := []string{"GET /v2/", "GET /v2/example/blobs/DIGEST", "GET /v2/example/manifests/1.2.0"}
	if d := cmp.Diff(full, kinds(reg.asked())); d != "" {
		t.Error("first fetch:", d)
	}
	head := []string{"GET /v2/", "HEAD /v2/example/manifests/1.2.0"}
	mustFetch(t, f, src, one)
	if d := cmp.Diff(head, kinds(reg.asked())); d != "" {
		t.Error("unchanged:", d)
	}
	f = fetcher(t, FetcherOptions{CacheDir: dir}, reg.server)
	mustFetch(t, f, src, one)
	if d := cmp.Diff(head, kinds(reg.asked())); d != "" {
		t.Error("unchanged after a restart:", d)
	}
	reg.push("example", "1.2.0", one)
	mustFetch(t, f, src, one)
	if d := cmp.Diff([]string{"GET /v2/", "GET /v2/example/manifests/1.2.0", "HEAD /v2/example/manifests/1.2.0"}, kinds(reg.asked())); d != "" {
		t.Error("pushed again with the same content:", d)
	}
	reg.push("example", "1.2.0", two)
	mustFetch(t, f, src, two)
	if d := cmp.Diff(append(full, "HEAD /v2/example/manifests/1.2.0"), kinds(reg.asked())); d != "" {
		t.Error("moved:", d)
	}
	reg.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodHead {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return true
		}
		return false
	})
	mustFetch(t, f, src, two) // a registry without HEAD
}

func TestFetchesAreCountedByWhatCameOfThem(t *testing.T) {
	reg := newRegistry(t, false)
	one := example(t, "one")
	reg.push("example", "1.2.0", one)
	f := fetcher(t, FetcherOptions{CacheDir: t.TempDir()}, reg.server)
	src := reg.source("example", "1.2.0", "")
	mustFetch(t, f, src, one)
	mustFetch(t, f, src, one)
	mustFetch(t, f, reg.source("example", "1.2.0", digestOf(one)), one)
	if _, err := f.Fetch(t.Context(), reg.source("example", "9.9.9", "")); err == nil {
		t.Fatal("a version that is not there was fetched")
	}
	reg.Close()
	mustFetch(t, f, src, one)
	size := int64(len(one))
	want := Stats{Cached: 1, Revalidated: 1, Downloaded: 1, Stale: 1, Failed: 1, DownloadedBytes: size, Archives: 1, Bytes: size}
	if d := cmp.Diff(want, f.Stats()); d != "" {
		t.Error(d)
	}
}

func TestDigests(t *testing.T) {
	reg := newRegistry(t, false)
	one, two := example(t, "one"), example(t, "two")
	first := reg.push("example", "1.2.0", one)
	f := fetcher(t, FetcherOptions{}, reg.server)

	for what, digest := range map[string]string{"the archive's": digestOf(one), "the manifest's": first} {
		f := fetcher(t, FetcherOptions{}, reg.server)
		mustFetch(t, f, reg.source("example", "1.2.0", digest), one)
		reg.asked()
		mustFetch(t, f, reg.source("example", "1.2.0", digest), one)
		if hits := reg.asked(); len(hits) != 0 {
			t.Errorf("%s digest is at hand, and the registry was asked: %v", what, hits)
		}
	}

	_, err := f.Fetch(t.Context(), reg.source("example", "1.2.0", digestOf(two)))
	wantFault(t, err, fault.Digest, digestOf(two), digestOf(one), first)
	for _, hit := range reg.asked() {
		if strings.Contains(hit, "/blobs/") {
			t.Errorf("an archive that is not the one asked for was downloaded: %s", hit)
		}
	}

	// What was fetched without a digest is at hand with one, also after the tag moved.
	mustFetch(t, f, reg.source("example", "1.2.0", ""), one)
	second := reg.push("example", "1.2.0", two)
	mustFetch(t, f, reg.source("example", "1.2.0", ""), two)
	reg.asked()
	for digest, want := range map[string][]byte{digestOf(one): one, first: one, digestOf(two): two, second: two} {
		mustFetch(t, f, reg.source("example", "1.2.0", digest), want)
	}
	if hits := reg.asked(); len(hits) != 0 {
		t.Errorf("asked: %v", hits)
	}

	// An archive at hand is not what another reference or version stands for.
	reg.push("other", "1.2.0", two)
	reg.push("example", "2.0.0", two)
	for _, src := range []v1alpha1.ChartSource{reg.source("other", "1.2.0", digestOf(one)), reg.source("example", "2.0.0", digestOf(one))} {
		_, err = f.Fetch(t.Context(), src)
		wantFault(t, err, fault.Digest)
	}
}

func TestWhatTheRegistryHasIsNoChart(t *testing.T) {
	reg := newRegistry(t, false)
	f := fetcher(t, FetcherOptions{}, reg.server)
	chart := func(mark string) layer { return reg.blob("example", chartMediaType, example(t, mark)) }
	image := reg.blob("example", "application/vnd.oci.image.layer.v1.tar+gzip", []byte("x"))
	huge := chart("one")
	huge.Size = maxResponse + 1
	reg.manifest("example", "image", image)
	reg.manifest("example", "two", chart("one"), chart("two"))
	reg.manifest("example", "huge", huge)
	reg.manifest("example", "signed", chart("one"), reg.blob("example", "application/vnd.cncf.helm.chart.provenance.v1.prov", []byte("x")))
	reg.do(http.MethodPut, "/v2/example/manifests/index", "application/vnd.oci.image.index.v1+json",
		[]byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`))
	for tag, says := range map[string]string{
		"image": "has no layer of that type",
		"two":   "holds 2 charts",
		"huge":  "10.0 MiB (10485761 bytes) is over the limit of 10 MiB",
		"index": "is an index",
	} {
		_, err := f.Fetch(t.Context(), reg.source("example", tag, ""))
		wantFault(t, err, fault.Chart, says)
	}
	mustFetch(t, f, reg.source("example", "signed", ""), example(t, "one"))

	reg.push("example", "forged", example(t, "one"))
	reg.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/blobs/") {
			_, _ = w.Write(example(t, "two"))
			return true
		}
		return false
	})
	_, err := fetcher(t, FetcherOptions{}, reg.server).Fetch(t.Context(), reg.source("example", "forged", ""))
	wantFault(t, err, fault.Registry)
}

func TestARegistryThatIsDown(t *testing.T) {
	reg := newRegistry(t, false)
	dir := t.TempDir()
	one := example(t, "one")
	reg.push("example", "1.2.0", one)
	src := reg.source("example", "1.2.0", "")
	o := FetcherOptions{CacheDir: dir, Timeout: 300 * time.Millisecond}
	mustFetch(t, fetcher(t, FetcherOptions{CacheDir: dir}, reg.server), src, one)
	hang := func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }
	for _, tc := range []struct {
		how  string
		what func()
		says string
	}{
		{"503", func() { reg.fail(http.StatusServiceUnavailable) }, "status 503"},
		{"500", func() { reg.fail(http.StatusInternalServerError) }, "status 500"},
		{"429", func() { reg.fail(http.StatusTooManyRequests) }, "status 429"},
		{"no answer", func() { reg.intercept(hang) }, "did not answer within 300ms"},
		{"an answer that breaks off", func() {
			reg.intercept(func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) })
		}, "connection broke"},
		{"refused", reg.Close, "connection refused"},
	} {
		t.Run(tc.how, func(t *testing.T) {
			tc.what()
			f := fetcher(t, o, reg.server) // as after a restart
			a := mustFetch(t, f, src, one)
			for _, part := range []string{tc.says, "at hand", digestOf(one)} {
				if !strings.Contains(a.Stale, part) {
					t.Errorf("%q does not say %q", a.Stale, part)
				}
			}
			if strings.Contains(a.Stale, "hunter2") {
				t.Errorf("the registry's text is shown: %s", a.Stale)
			}
			if a := mustFetch(t, f, reg.source("example", "1.2.0", digestOf(one)), one); a.Stale != "" {
				t.Errorf("a pinned archive is never stale: %s", a.Stale)
			}
			for _, other := range []v1alpha1.ChartSource{
				reg.source("example", "1.3.0", ""), reg.source("other", "1.2.0", ""), reg.source("example", "1.2.0", digestOf([]byte("x"))),
			} {
				_, err := f.Fetch(t.Context(), other)
				wantFault(t, err, fault.Registry, tc.says)
			}
		})
	}
}

// What is at hand stays in use when a registry sends, or says that it will send, more than anybody takes.
func TestARegistryThatTalksTooMuchIsAsOneThatFails(t *testing.T) {
	reg := newRegistry(t, false)
	one := example(t, "one")
	reg.push("example", "1.2.0", one)
	dir := t.TempDir()
	mustFetch(t, fetcher(t, FetcherOptions{CacheDir: dir}, reg.server), reg.source("example", "1.2.0", ""), one)
	for how, answer := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"says that it will": func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Length", "1000000000000")
			w.WriteHeader(http.StatusOK)
			return true
		},
		"sends": func(w http.ResponseWriter, _ *http.Request) bool {
			for range 12 {
				_, _ = w.Write(make([]byte, 1<<20))
			}
			return true
		},
	} {
		t.Run(how, func(t *testing.T) {
			reg.intercept(answer)
			f := fetcher(t, FetcherOptions{CacheDir: dir}, reg.server)
			a := mustFetch(t, f, reg.source("example", "1.2.0", ""), one)
			if !strings.Contains(a.Stale, "over the limit of 10 MiB; using the archive at hand") {
				t.Errorf("%q", a.Stale)
			}
			_, err := f.Fetch(t.Context(), reg.source("example", "1.3.0", ""))
			wantFault(t, err, fault.Chart, "over the limit of 10 MiB")
		})
	}
}

func TestAChartThatIsGoneIsNotStale(t *testing.T) {
	reg := newRegistry(t, false)
	one := example(t, "one")
	reg.push("example", "1.2.0", one)
	f := fetcher(t, FetcherOptions{}, reg.server)
	mustFetch(t, f, reg.source("example", "1.2.0", ""), one)
	_, err := f.Fetch(t.Context(), reg.source("example", "9.9.9", ""))
	wantFault(t, err, fault.ChartMissing, "oci://"+reg.host()+"/example 9.9.9 not found")
	for _, status := range []int{http.StatusNotFound, http.StatusForbidden, http.StatusUnauthorized} {
		reg.fail(status)
		_, err = f.Fetch(t.Context(), reg.source("example", "1.2.0", ""))
		wantFault(t, err, fault.ChartMissing, "not found")
	}
}

func TestCallersShareOneFetch(t *testing.T) {
	reg := newRegistry(t, false)
	one := example(t, "one")
	reg.push("example", "1.2.0", one)
	f := fetcher(t, FetcherOptions{}, reg.server)
	release := make(chan struct{})
	var blobs atomic.Int32
	reg.intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/blobs/") {
			blobs.Add(1)
			<-release
		}
		return false
	})
	var callers sync.WaitGroup
	for range 10 {
		callers.Go(func() {
			a, err := f.Fetch(context.Background(), reg.source("example", "1.2.0", ""))
			if err != nil || a.Digest != digestOf(one) {
				t.Error(err)
			}
		})
	}
	impatient, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := f.Fetch(impatient, reg.source("example", "1.2.0", ""))
	wantFault(t, err, fault.Registry, "given up")
	time.Sleep(20 * time.Millisecond)
	close(release)
	callers.Wait()
	if n := blobs.Load(); n != 1 {
		t.Errorf("%d downloads", n)
	}
}

func TestCloseEndsWhatIsUnderWay(t *testing.T) {
	reg := newRegistry(t, false)
	reached := make(chan struct{})
	var once sync.Once
	reg.intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		once.Do(func() { close(reached) })
		<-r.Context().Done()
		return true
	})
	f := fetcher(t, FetcherOptions{Timeout: time.Hour}, reg.server)
	done := make(chan error, 1)
	go func() {
		_, err := f.Fetch(context.Background(), reg.source("example", "1.2.0", ""))
		done <- err
	}()
	<-reached
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	wantFault(t, <-done, fault.Registry)
	if _, err := f.Fetch(t.Context(), reg.source("example", "1.2.0", "")); err == nil {
		t.Error("a closed fetcher fetches")
	}
}

func TestPullsAreAnonymous(t *testing.T) {
	reg := newRegistry(t, false)
	one := example(t, "one")
	reg.push("example", "1.2.0", one)
	home := t.TempDir()
	auth := base64.StdEncoding.EncodeToString([]byte("user:hunter2"))
	config := fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, reg.host(), auth)
	if err := os.WriteFile(filepath.Join(home, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DOCKER_CONFIG", home)
	t.Setenv("REGISTRY_AUTH_FILE", filepath.Join(home, "config.json"))

	const token = "anonymous-token"
	reg.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/token" {
			if r.Header.Get("Authorization") != "" {
				t.Error("credentials were sent to the token server")
			}
			_, _ = fmt.Fprintf(w, `{"token":%q}`, token)
			return true
		}
		if r.Header.Get("Authorization") != "Bearer "+token {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="x"`, reg.URL))
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		return false
	})
	mustFetch(t, fetcher(t, FetcherOptions{}, reg.server), reg.source("example", "1.2.0", ""), one)

	reg.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") != "" {
			t.Error("credentials were sent")
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	_, err := fetcher(t, FetcherOptions{}, reg.server).Fetch(t.Context(), reg.source("example", "1.2.0", ""))
	wantFault(t, err, fault.ChartMissing, "not public")
}
