package worker_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/render"
	"zaentrum.io/zae/internal/worker"
)

// helmLint unpacks a chart and has the pool run Helm's lint on it.
func helmLint(t *testing.T, pool *worker.Pool, dir string) ([]render.HelmFinding, error) {
	t.Helper()
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	a := archive(t, examples+dir)
	files, err := chart.Files(a)
	if err != nil {
		t.Fatal(err)
	}
	root, remove, err := render.UnpackForHelm("example", files)
	if err != nil {
		t.Fatal(err)
	}
	found, err := pool.HelmLint(t.Context(), a, job(t, "example"), root)
	remove()
	if left, _ := os.ReadDir(temp); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	return found, err
}

func TestHelmsLintRunsInAWorker(t *testing.T) {
	pool := newPool(t, worker.Options{Max: 1})
	for dir, want := range map[string]string{"example/1.2.0": "", "lint/helm-says": "templates/settings.yaml"} {
		found, err := helmLint(t, pool, dir)
		if err != nil {
			t.Fatal(err)
		}
		var files []string
		for _, f := range found {
			files = append(files, f.File)
		}
		if got := strings.Join(files, " "); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%s: found in %q", dir, got)
		}
	}
}

// TestHelmsLintEndsAlone: what a chart uses up there is the worker's.
func TestHelmsLintEndsAlone(t *testing.T) {
	pool := newPool(t, worker.Options{Max: 1})
	for _, dir := range []string{"hostile/memory", "hostile/time"} {
		_, err := helmLint(t, pool, dir)
		var over *worker.Overrun
		if !errors.As(err, &over) {
			t.Errorf("%s: got %v", dir, err)
		}
	}
	if _, err := helmLint(t, pool, filepath.FromSlash("example/1.2.0")); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestThePeakOfMemoryIsKnown: what a job used and let go of again is known when it is done.
func TestThePeakOfMemoryIsKnown(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the system does not tell")
	}
	const much = 64 << 20
	held := bytes.Repeat([]byte("x"), much)
	if peak := worker.Peak(); peak < int64(len(held)) {
		t.Errorf("%d bytes", peak)
	}
}
