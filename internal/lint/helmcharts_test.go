package lint_test

import (
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/lint"
)

// helmCharts are the directories of charts that Helm's module has for its own tests.
func helmCharts(tb testing.TB) (root string, dirs []string) {
	tb.Helper()
	out, err := exec.CommandContext(tb.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "helm.sh/helm/v3").Output()
	if err != nil {
		tb.Fatal(err)
	}
	root = strings.TrimSpace(string(out))
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "Chart.yaml" && strings.Contains(name, "testdata") && !strings.Contains(name, string(filepath.Separator)+"charts"+string(filepath.Separator)) {
			dirs = append(dirs, filepath.Dir(name))
		}
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	slices.Sort(dirs)
	return root, dirs
}

// asAddon is a chart of Helm's as an addon would have it: of apiVersion v2, and marked.
func asAddon(tb testing.TB, dir string) *chart.Archive {
	tb.Helper()
	archive, err := chart.ReadLocal(dir)
	if err != nil {
		return nil
	}
	files, err := chart.Files(archive)
	if err != nil {
		return nil
	}
	for i, f := range files {
		if f.Name != "Chart.yaml" {
			continue
		}
		text := string(f.Data)
		if strings.Contains(text, "type: library") || strings.Contains(text, "annotations:") {
			return nil
		}
		text = strings.Replace(text, "apiVersion: v1", "apiVersion: v2", 1)
		files[i].Data = []byte(strings.TrimRight(text, "\n") + "\nannotations:\n  zaentrum.io/addon: \"true\"\n  zaentrum.io/primary: web\n")
	}
	marked, err := chart.Repack("chart", files)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := chart.Load(marked); err != nil {
		return nil
	}
	return marked
}

// TestHelmsOwnCharts keeps what is told of charts that others wrote, guardrails aside. Each line was looked at; those
// that are not right are in docs/rules.md.
func TestHelmsOwnCharts(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	root, dirs := helmCharts(t)
	var got strings.Builder
	n := 0
	for _, dir := range dirs {
		archive := asAddon(t, dir)
		if archive == nil {
			continue
		}
		n++
		report := check(t, pool, lint.Source{Label: dir, Archive: archive}, lint.Options{})
		name, err := filepath.Rel(root, dir)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&got, "# %s\n", name)
		for _, f := range report.Findings {
			if r, _ := lint.RuleByID(f.Rule); !r.Guardrail {
				fmt.Fprintf(&got, "%s:%d:%d %s %s %s\n", f.File, f.Line, f.Column, f.Severity, f.Rule, f.Text())
			}
		}
	}
	if n < 20 {
		t.Errorf("%d charts", n)
	}
	golden(t, "helm-charts.txt", got.String())
}
