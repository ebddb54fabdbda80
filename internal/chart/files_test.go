package chart

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFilesOfAnArchiveCanBePackedAgain(t *testing.T) {
	t.Parallel()
	a, err := ReadLocal("../../examples/example/1.2.0")
	if err != nil {
		t.Fatal(err)
	}
	files, err := Files(a)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 10 || files[0].Name == "" {
		t.Fatalf("%d files", len(files))
	}
	again, err := Repack("example", files)
	if err != nil {
		t.Fatal(err)
	}
	same, err := Files(again)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(files, same); d != "" {
		t.Error(d)
	}
	if twice, err := Repack("example", files); err != nil || twice.Digest != again.Digest {
		t.Errorf("the same files are %s and %s, %v", again.Digest, twice.Digest, err)
	}
	if _, err := Load(again); err != nil {
		t.Error(err)
	}
}

func TestFilesKeepsToTheLimits(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]*Archive{"no archive": {Bytes: []byte("x")}, "too large": {Bytes: make([]byte, maxArchive+1)}} {
		if _, err := Files(a); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
