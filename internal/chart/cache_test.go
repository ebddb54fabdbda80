package chart

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/fault"
)

func stores(t *testing.T, bytes int64) map[string]store {
	t.Helper()
	clock := time.Unix(1_000_000, 0)
	var mu sync.Mutex
	d, err := newDisk(t.TempDir(), bytes, func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		clock = clock.Add(time.Second)
		return clock
	})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]store{"disk": d, "memory": newMemory(bytes)}
}

func TestStores(t *testing.T) {
	for kind, s := range stores(t, 100) {
		t.Run(kind, func(t *testing.T) {
			blob := func(mark byte) ([]byte, string) {
				data := bytes.Repeat([]byte{mark}, 40)
				return data, digestOf(data)
			}
			a, da := blob('a')
			b, db := blob('b')
			c, dc := blob('c')
			if _, ok := s.getBlob(da); ok {
				t.Error("something is in an empty store")
			}
			s.putBlob(da, a)
			s.putBlob(db, b)
			if got, ok := s.getBlob(da); !ok || !bytes.Equal(got, a) {
				t.Error("a is lost")
			}
			s.putBlob(dc, c) // of 100 bytes, 120 would be used
			if _, ok := s.getBlob(db); ok {
				t.Error("what was used least recently is still there")
			}
			for _, d := range []string{da, dc} {
				if _, ok := s.getBlob(d); !ok {
					t.Errorf("%s was evicted though used more recently", d)
				}
			}
			big := make([]byte, 1000)
			s.putBlob(digestOf(big), big)
			if _, ok := s.getBlob(digestOf(big)); !ok {
				t.Error("the archive that was just fetched must stay, however big")
			}
			if n, size, gone := s.held(); n != 1 || size != 1000 || gone != 3 {
				t.Errorf("holds %d archives of %d bytes, and %d had to go; want one of 1000, and 3", n, size, gone)
			}
			recs := []record{{Archive: da, Manifest: db, ETag: `"x"`, LastModified: "y"}}
			s.putRecords("id", recs)
			if d := cmp.Diff(recs, s.getRecords("id")); d != "" {
				t.Error(d)
			}
			if got := s.getRecords("other"); len(got) != 0 {
				t.Error(got)
			}
		})
	}
}

func TestADamagedCacheIsAnEmptyOne(t *testing.T) {
	reg := newRegistry(t, false)
	one := example(t, "one")
	reg.push("example", "1.2.0", one)
	src, unpinned := reg.source("example", "1.2.0", digestOf(one)), reg.source("example", "1.2.0", "")
	for damage, do := range map[string]func(path string) error{
		"cut":      func(path string) error { return os.Truncate(path, 5) },
		"emptied":  func(path string) error { return os.Truncate(path, 0) },
		"altered":  func(path string) error { return os.WriteFile(path, []byte(`[{"archive":"x"}]`), 0o600) },
		"replaced": func(path string) error { return os.WriteFile(path, example(t, "two"), 0o600) },
		"removed":  os.Remove,
		"too big":  func(path string) error { return os.Truncate(path, maxResponse+1) },
	} {
		for _, part := range []string{blobsDir, refsDir} {
			t.Run(damage+" "+part, func(t *testing.T) {
				dir := t.TempDir()
				mustFetch(t, fetcher(t, FetcherOptions{CacheDir: dir}, reg.server), src, one)
				files, err := filepath.Glob(filepath.Join(dir, part, "*"))
				if err != nil || len(files) != 1 {
					t.Fatal(files, err)
				}
				if err := do(files[0]); err != nil {
					t.Fatal(err)
				}
				f := fetcher(t, FetcherOptions{CacheDir: dir}, reg.server)
				mustFetch(t, f, unpinned, one)
				mustFetch(t, f, src, one)
				reg.asked()
				mustFetch(t, f, src, one)
				if hits := reg.asked(); len(hits) != 0 {
					t.Errorf("it is not whole again: %v", hits)
				}
			})
		}
	}
}

func TestTheCacheHoldsNoReferences(t *testing.T) {
	s := serve(t, true, &archives{data: example(t, "one"), etag: `"x"`})
	dir := t.TempDir()
	mustFetch(t, fetcher(t, FetcherOptions{CacheDir: dir, roots: roots(s)}, s), link(s, "/a.tgz?token=hunter2"), example(t, "one"))
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(path+string(text), "hunter2") {
			t.Errorf("%s holds the query", path)
		}
		if info, err := d.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is open to others: %v %v", path, info.Mode(), err)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestLeftoversAreRemoved(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, blobsDir), 0o700); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(dir, blobsDir, tempPrefix+"123")
	if err := os.WriteFile(left, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := newDisk(dir, 100, time.Now); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Error("what a killed process left is still there")
	}
}

func TestRecordsAreBounded(t *testing.T) {
	for kind, s := range stores(t, 1<<20) {
		c := &cache{store: s}
		for i := range 3 * maxRecords {
			c.remember("key", record{Archive: digestOf(fmt.Append(nil, i))})
		}
		got := c.known("key")
		if len(got) != maxRecords || got[0].Archive != digestOf(fmt.Append(nil, 3*maxRecords-1)) {
			t.Errorf("%s: %d records, newest %v", kind, len(got), got[0])
		}
		c.remember("key", got[3])
		again := c.known("key")
		if len(again) != maxRecords || again[0] != got[3] || again[1] != got[0] {
			t.Errorf("%s: an old one that is current again is not the newest: %v", kind, again)
		}
	}
}

func TestAPinnedDigestStaysAtHandHoweverOftenTheTagMoves(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		reg := newRegistry(t, false)
		first := example(t, "first")
		reg.push("example", "1.2.0", first)
		f := fetcher(t, FetcherOptions{CacheDir: dir}, reg.server)
		pinned, current := reg.source("example", "1.2.0", digestOf(first)), reg.source("example", "1.2.0", "")
		mustFetch(t, f, pinned, first)
		for i := range 40 {
			next := example(t, fmt.Sprint("next ", i))
			reg.push("example", "1.2.0", next)
			mustFetch(t, f, current, next)
			reg.asked()
			mustFetch(t, f, pinned, first)
			if hits := reg.asked(); len(hits) != 0 {
				t.Fatalf("after %d moves the registry was asked: %v", i+1, hits)
			}
			if newest := f.cache.known(mustWish(t, current).key())[0]; newest.Archive != digestOf(next) {
				t.Fatalf("what is pinned passes for the newest after %d moves", i+1)
			}
		}
	}
}

func mustWish(t *testing.T, src v1alpha1.ChartSource) wish {
	t.Helper()
	w, err := newWish(src)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestTheCacheDirectoryMustBeUsable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewFetcher(FetcherOptions{CacheDir: file}); err == nil {
		t.Error("a file is a cache directory")
	}
}

func TestASmallerCacheIsMadeSmallerAtOnce(t *testing.T) {
	dir := t.TempDir()
	d, err := newDisk(dir, 100, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	old, recent := bytes.Repeat([]byte("a"), 40), bytes.Repeat([]byte("b"), 40)
	d.putBlob(digestOf(old), old)
	d.now = func() time.Time { return time.Now().Add(time.Hour) }
	d.putBlob(digestOf(recent), recent)
	if d, err = newDisk(dir, 50, time.Now); err != nil {
		t.Fatal(err)
	}
	if _, ok := d.getBlob(digestOf(old)); ok {
		t.Error("80 bytes are kept in a cache of 50")
	}
	if _, ok := d.getBlob(digestOf(recent)); !ok {
		t.Error("what was used last is gone")
	}
}

func TestAPanicInAFetchIsAFaultOfThatFetch(t *testing.T) {
	t.Parallel()
	f, err := NewFetcher(FetcherOptions{})
	if err != nil {
		t.Fatal(err)
	}
	whole := f.courier
	f.courier = nil // a fault of this package's own
	src := v1alpha1.ChartSource{Ref: "oci://registry.example.org/example", Version: "1.0.0"}
	for range 2 { // the second is not kept waiting for the first
		if _, err := f.Fetch(t.Context(), src); fault.CodeOf(err) != fault.Internal {
			t.Errorf("got %v", err)
		} else if _, ok := errors.AsType[*fault.Panic](err); !ok {
			t.Error("it does not tell where")
		}
	}
	f.courier = whole
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
