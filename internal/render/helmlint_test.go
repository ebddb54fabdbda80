package render_test

import (
	"io"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/render"
)

func TestHelmsLintIsToldInOurWords(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	log.SetOutput(io.Discard) // as a worker does
	defer log.SetOutput(os.Stderr)
	const canary = "c4n4ry"
	files := []chart.File{
		{Name: "Chart.yaml", Data: []byte("apiVersion: v2\nname: x\nversion: 1.0.0\nsources: [\"" + canary + "\"]\n")},
		{Name: "values.schema.json", Data: []byte(`{"$ref": "http://127.0.0.1:1/` + canary + `"}`)},
		{Name: "templates/a.yaml", Data: []byte("  apiVersion: v1\n  kind: Secret\n  metadata: {name: \"" + canary + "_\"}\n  x: {{ required \"" + canary + "\" .Values.nothing }}\n")},
		{Name: "templates/b.md", Data: []byte(canary)},
	}
	root, remove, err := render.UnpackForHelm("x", files)
	if err != nil {
		t.Fatal(err)
	}
	found := render.HelmLint(root, map[string]any{"secret": canary}, "zaentrum")
	remove()
	var got []string
	for _, f := range found {
		got = append(got, f.Severity+" "+f.File+": "+f.What)
	}
	slices.Sort(got)
	want := []string{
		"error Chart.yaml: an entry of sources is no URL",
		"error templates/b.md: the file's extension is none of .yaml, .yml, .tpl and .txt",
		"warning templates/a.yaml: an object's name is not a valid one",
		"warning templates/a.yaml: what it renders starts with an indent",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	if strings.Contains(strings.Join(got, "\n"), canary) {
		t.Errorf("what the chart says is told: %s", got)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestSourcesOfBundledChartsKnowTheirValues(t *testing.T) {
	meta := func(name, more string) []byte {
		return []byte("apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n" + more)
	}
	a, err := chart.Repack("top", []chart.File{
		{Name: "Chart.yaml", Data: meta("top", "dependencies:\n- {name: sub, version: 1.0.0, alias: one}\n- {name: sub, version: 1.0.0, alias: two}\n")},
		{Name: "templates/a.yaml", Data: []byte("a")},
		{Name: "templates/_h.tpl", Data: []byte("h")},
		{Name: "charts/sub/Chart.yaml", Data: meta("sub", "")},
		{Name: "charts/sub/templates/b.yaml", Data: []byte("b")},
		{Name: "charts/sub/charts/deep/Chart.yaml", Data: meta("deep", "")},
		{Name: "charts/sub/charts/deep/templates/c.yaml", Data: []byte("c")},
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := chart.Load(a)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range render.Sources(c) {
		line := s.File + " " + strings.Join(s.Values, ".") + " " + s.Text
		if s.Partial {
			line += " partial"
		}
		got = append(got, line)
	}
	slices.Sort(got)
	want := []string{
		"charts/sub/charts/deep/templates/c.yaml one.deep c",
		"charts/sub/charts/deep/templates/c.yaml two.deep c",
		"charts/sub/templates/b.yaml one b",
		"charts/sub/templates/b.yaml two b",
		"templates/_h.tpl  h partial",
		"templates/a.yaml  a",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}
