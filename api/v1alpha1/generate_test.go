package v1alpha1_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestGeneratedFilesAreCurrent generates the deep copies and the CRDs anew and compares.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: runs controller-gen")
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "tool", "controller-gen",
		"object", "paths=./...", "crd:crdVersions=v1",
		"output:crd:artifacts:config="+dir, "output:object:dir="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("controller-gen: %v\n%s", err, out)
	}
	for _, pair := range [][2]string{
		{"zz_generated.deepcopy.go", "zz_generated.deepcopy.go"},
		{"../../deploy/crds/zaentrum.io_zaentrumaddons.yaml", "zaentrum.io_zaentrumaddons.yaml"},
		{"../../deploy/crds/zaentrum.io_zaentrums.yaml", "zaentrum.io_zaentrums.yaml"},
	} {
		kept, err := os.ReadFile(pair[0])
		if err != nil {
			t.Fatal(err)
		}
		fresh, err := os.ReadFile(filepath.Join(dir, pair[1]))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(kept, fresh) {
			t.Errorf("%s is stale: run make generate", pair[0])
		}
	}
	made, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(made) != 3 {
		t.Errorf("controller-gen makes %d files, of which only 3 are compared: add the others", len(made))
	}
}
