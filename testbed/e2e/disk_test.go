package e2e

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"zaentrum.io/zae/testbed"
)

// fill writes to a file system until there is no room, and answers with what makes room again.
func fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(f, io.LimitReader(zeros{}, 1<<30))
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("not full: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestFaultFullDisk gives the operator's cache of charts a file system of its own (tmpfs) and fills it: while it runs and
// before it starts again.
func TestFaultFullDisk(t *testing.T) {
	own := serveBadRegistry(t)
	dir := filepath.Join(bed.Dir, "small-disk")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256k,mode=0700"); err != nil {
		if errors.Is(err, syscall.EPERM) {
			t.Skip("a file system of its own needs the right to mount one")
		}
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	// Without an election: the lease of one that was killed would be waited for each time.
	h := openHouse(t, opening{args: []string{"--leader-elect=false", "--resync", "2s", "--cache-dir", dir, "--allow-loopback-registry", own.Addr()}})
	apply := func(name string) {
		h.publishTo(own.Addr(), name, "1.0.0", "one")
		h.apply("apiVersion: zaentrum.io/v1alpha1\nkind: ZaentrumAddon\nmetadata: {name: " + name + "}\nspec: {chart: {ref: \"oci://" + own.Addr() + "/charts/" + name + "\", version: 1.0.0}}\n")
		h.phase(name, "Ready")
	}
	restart := func(p *testbed.Process) {
		t.Helper()
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := p.Start(h.ctx); err != nil {
			t.Fatal(err)
		}
	}
	pass := func() {
		t.Helper()
		passes := h.reconciles()
		h.eventually("a pass", func() bool { return h.reconciles() > passes+3 })
	}

	apply("before")
	free := fill(t, dir)
	apply("full")
	pass()
	h.phase("before", "Ready")

	// What could not be kept on disk is at hand in memory while the registry is away.
	if err := own.Kill(); err != nil {
		t.Fatal(err)
	}
	pass()
	h.phase("full", "Ready")
	h.phase("before", "Ready")
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}

	restart(h.Operator)
	pass()
	h.phase("full", "Ready")
	h.phase("before", "Ready")
	apply("after-restart")

	// What was kept before survives a restart on the full disk with the registry away.
	if err := own.Kill(); err != nil {
		t.Fatal(err)
	}
	restart(h.Operator)
	pass()
	h.phase("before", "Ready")
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}

	// With room again all is kept again.
	free()
	h.phase("full", "Ready")
	pass()
	restart(h.Operator)
	pass()
	if err := own.Kill(); err != nil {
		t.Fatal(err)
	}
	restart(h.Operator)
	pass()
	for _, name := range []string{"before", "full", "after-restart"} {
		h.phase(name, "Ready")
		if h.mark(name) != "one" {
			t.Errorf("%s: %q runs", name, h.mark(name))
		}
	}
}
