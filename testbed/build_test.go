package testbed

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// tiny is a module with one program that says its version.
func tiny(t *testing.T) (module, string) {
	t.Helper()
	dir := t.TempDir()
	for name, data := range map[string]string{
		"go.mod":     "module example.com/tiny\n\ngo 1.26.0\n\nrequire example.com/dep v1.2.3\n\nreplace example.com/dep => ./dep\n",
		"go.sum":     "",
		"main.go":    "package main\n\nimport \"example.com/dep\"\n\nfunc main() { println(dep.Version) }\n",
		"dep/go.mod": "module example.com/dep\n\ngo 1.26.0\n",
		"dep/dep.go": "package dep\n\nvar Version string\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return module{
		dir: "tiny", require: "example.com/dep", duration: "a moment",
		ldflags:  func(version string) []string { return []string{"-X", "example.com/dep.Version=" + version} },
		programs: []program{{"tiny", "example.com/tiny", func(b *Binaries) *string { return &b.Etcd }}},
	}, dir
}

func TestBuildOnceForAll(t *testing.T) {
	t.Parallel()
	m, dir := tiny(t)
	cache := filepath.Join(t.TempDir(), "cache")
	var progress bytes.Buffer
	say := progressTo(&progress)
	paths := make([]string, 4)
	var wg sync.WaitGroup
	for i := range paths {
		wg.Go(func() {
			var b Binaries
			if err := m.build(t.Context(), dir, cache, &b, say); err != nil {
				t.Error(err)
			}
			paths[i] = b.Etcd
		})
	}
	wg.Wait()
	for _, path := range paths {
		if path != paths[0] || !strings.Contains(path, "tiny-v1.2.3-") {
			t.Errorf("built %s and %s", paths[0], path)
		}
	}
	if n := strings.Count(progress.String(), "building tiny v1.2.3, about a moment, once\n"); n != 1 {
		t.Errorf("built %d times:\n%s", n, progress.String())
	}
	if out, err := exec.Command(paths[0]).CombinedOutput(); err != nil || string(out) != "v1.2.3\n" {
		t.Errorf("%q, %v", out, err)
	}
	if left, _ := filepath.Glob(filepath.Join(cache, "build-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestBuildErrorShowsTheCompiler(t *testing.T) {
	t.Parallel()
	m, dir := tiny(t)
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\n\nfunc main() { nonsense }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var b Binaries
	err := m.build(t.Context(), dir, t.TempDir(), &b, progressTo(nil))
	if err == nil || !strings.Contains(err.Error(), "undefined: nonsense") {
		t.Errorf("got %v", err)
	}
}

func TestWaitingForABuildEndsWithTheContext(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := tryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := lock(ctx, path, cancel); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestSourcesAreFound(t *testing.T) {
	t.Parallel()
	dir, err := sourceDir(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range modules() {
		if v, err := requiredVersion(filepath.Join(dir, m.dir, "go.mod"), m.require); err != nil || !strings.HasPrefix(v, "v") {
			t.Errorf("%s: %s, %v", m.dir, v, err)
		}
	}
}
