//go:build linux

package chart

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// smallDisk is a file system of 64 KiB that nothing else is on.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k,mode=0700"); err != nil {
		if errors.Is(err, syscall.EPERM) {
			t.Skip("needs the right to mount a file system")
		}
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestAFullDiskKeepsWhatItHasAndTheRestIsInMemory(t *testing.T) {
	dir := smallDisk(t)
	open := func() *disk {
		t.Helper()
		d, err := newDisk(dir, 1<<20, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	kept, late := bytes.Repeat([]byte{'a'}, 10), bytes.Repeat([]byte{'b'}, 5000)
	d := open()
	d.putBlob(digestOf(kept), kept)
	d.putRecords("kept", []record{{Archive: digestOf(kept)}})
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("not full: %v", err)
	}
	recs := []record{{Archive: digestOf(late)}}
	d.putBlob(digestOf(late), late)
	d.putRecords("late", recs)
	if got, ok := d.getBlob(digestOf(late)); !ok || !bytes.Equal(got, late) {
		t.Error("what has no room is not in memory")
	}
	if diff := cmp.Diff(recs, d.getRecords("late")); diff != "" {
		t.Error(diff)
	}
	d = open() // as after a restart
	if _, ok := d.getBlob(digestOf(kept)); !ok || len(d.getRecords("kept")) != 1 {
		t.Error("what was kept is lost")
	}
	d.putBlob(digestOf(late), late)
	d.putRecords("late", recs)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	// With room again it goes to the disk as it is used.
	_, _ = d.getBlob(digestOf(late))
	_ = d.getRecords("late")
	d = open()
	if _, ok := d.getBlob(digestOf(late)); !ok || len(d.getRecords("late")) != 1 {
		t.Error("with room again it did not go to the disk")
	}
}
