package cli

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/initchart"
	"zaentrum.io/zae/internal/values"
)

var commented = regexp.MustCompile(`(?m)^( *)# `)

// skeletonOf is what zae addon inputs --skeleton writes.
func skeletonOf(t *testing.T, dir string) string {
	t.Helper()
	a := offlineApp(t)
	if err := a.addonInputs(t.Context(), dir, &inputsOptions{skeleton: true}); err != nil {
		t.Fatal(err)
	}
	return a.out.w.(*bytes.Buffer).String()
}

// With all its comments taken in, a skeleton says what the chart says without one, and nothing of it is secret.
func TestASkeletonUncommentedIsTheChartsOwn(t *testing.T) {
	t.Parallel()
	fresh := filepath.Join(t.TempDir(), "fresh")
	if err := offlineApp(t).addonInit("fresh", fresh); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]map[string]any{
		exampleChart: {"worker": map[string]any{"replicas": int64(1), "logLevel": "info"}},
		fresh:        {"logLevel": "info", "upstream": map[string]any{"url": "https://api.example.org"}},
	} {
		text := skeletonOf(t, dir)
		bare, err := values.Decode([]byte(text))
		if err != nil || len(bare) > 0 {
			t.Errorf("%s: without a word changed it gives %v, %v", dir, bare, err)
		}
		got, err := values.Decode([]byte(commented.ReplaceAllString(text, "$1")))
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", dir, d)
		}
	}
}

// What cannot be written is said to be incomplete, and what is there stays.
func TestInitNeverOverwrites(t *testing.T) {
	t.Parallel()
	files, err := initchart.Files("example")
	if err != nil {
		t.Fatal(err)
	}
	name := file(t, files[0].Name, "mine")
	if err := writeNew(name, "theirs"); err == nil {
		t.Error("a file was overwritten")
	}
	err = offlineApp(t).addonInit("example", filepath.Dir(name))
	if fault.CodeOf(err) != fault.Usage || !strings.Contains(err.Error(), "nothing was written") {
		t.Errorf("got %v", err)
	}
}
