package initchart_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	helmlint "helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/engine"
	"zaentrum.io/zae/internal/initchart"
	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/values"
	"zaentrum.io/zae/internal/worker"
	"zaentrum.io/zae/internal/workertest"
)

func TestMain(m *testing.M) { workertest.Main(m) }

// names are an ordinary one, the longest, and those that YAML may take for something else.
var names = []string{"example", strings.Repeat("a", v1alpha1.MaxNameLength), "on", "null", "y", "a-1"}

func write(t *testing.T, name string) string {
	t.Helper()
	files, err := initchart.Files(name)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), name)
	for _, f := range files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(f.Text), 0o600); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(f.Text, "@NAME@") || strings.Contains(f.Name, "@") {
			t.Errorf("%s: the name is not filled in", f.Name)
		}
		if f.Name == "templates/NOTES.txt" {
			t.Error("has notes, which nobody sees")
		}
	}
	return dir
}

// fetcher answers with one archive.
type fetcher struct{ archive *chart.Archive }

func (f fetcher) Fetch(context.Context, v1alpha1.ChartSource) (*chart.Archive, error) {
	return f.archive, nil
}

func TestANewChartPassesItsOwnChecks(t *testing.T) {
	pool, err := worker.NewPool(worker.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pool.Close() }()
	generated := func(_ context.Context, wanted []inputs.Input) (map[string]string, error) {
		out := map[string]string{}
		for _, in := range wanted {
			out[in.Path] = "Z2VuZXJhdGVk"
		}
		return out, nil
	}
	for _, name := range names {
		for what, from := range map[string][]values.From{
			"as it is":      nil,
			"with a secret": {{TargetPath: "upstream.token", Text: "c4n4ry"}},
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				archive, err := chart.ReadLocal(write(t, name))
				if err != nil {
					t.Fatal(err)
				}
				e := &engine.Engine{Fetch: fetcher{archive}, Worker: pool}
				got, err := e.Check(t.Context(), engine.Request{
					Name: name, Namespace: "zaentrum", Platform: values.DefaultPlatform(), From: from, Generated: generated,
				})
				if err != nil {
					t.Fatal(err)
				}
				if len(got.ValuesErrors)+len(got.Findings)+len(got.Warnings)+len(got.Chart.SchemaWarnings) > 0 {
					t.Errorf("errors %q, findings %v, warnings %q, of the schema %v", got.ValuesErrors, got.Findings, got.Warnings, got.Chart.SchemaWarnings)
				}
				var kinds []string
				for _, o := range got.Objects {
					kinds = append(kinds, o.ID().String())
				}
				if want := []string{"Deployment/" + name, "Secret/" + name + "-env", "Service/" + name}; !slices.Equal(kinds, want) {
					t.Errorf("renders %q", kinds)
				}
				if got.Chart.Facts.Name != name || got.Chart.Facts.Annotations[v1alpha1.ChartAnnotationPrimary] != name {
					t.Errorf("is %+v", got.Chart.Facts)
				}
			})
		}
	}
}

func TestANewChartAsksForInputsOfEachKind(t *testing.T) {
	archive, err := chart.ReadLocal(write(t, "example"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := chart.Load(archive)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := inputs.Parse(c.Schema)
	if err != nil {
		t.Fatal(err)
	}
	var secret, generated, choice bool
	for _, in := range schema.Inputs() {
		secret = secret || in.Secret && in.Generate == ""
		generated = generated || in.Generate != ""
		choice = choice || len(in.Enum) > 1
		if in.Title == "" {
			t.Errorf("%s has no title", in.Path)
		}
		path, err := values.ParsePath(in.Path)
		if err != nil {
			t.Error(err)
		}
		if _, there := values.Get(c.Defaults, path); there == (in.Secret || in.Generate != "") {
			t.Errorf("values.yaml has %s: %v", in.Path, there)
		}
	}
	if !secret || !generated || !choice {
		t.Errorf("secret %v, generated %v, enum %v", secret, generated, choice)
	}
}

func TestHelmFindsNothingInANewChart(t *testing.T) {
	for _, name := range names {
		dir := write(t, name)
		ci, err := os.ReadFile(filepath.Join(dir, "ci", "values.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		given, err := values.Decode(ci)
		if err != nil {
			t.Fatal(err)
		}
		for what, v := range map[string]map[string]any{"as it is": nil, "ci/values.yaml": given} {
			for _, m := range helmlint.All(dir, v, "zaentrum", true).Messages {
				if m.Severity > support.InfoSev {
					t.Errorf("%s, %s: %s", name, what, m)
				}
			}
		}
	}
}

func TestANewChartIsTheSameEachTime(t *testing.T) {
	one, err := chart.Pack(write(t, "example"))
	if err != nil {
		t.Fatal(err)
	}
	two, err := chart.Pack(write(t, "example"))
	if err != nil || !bytes.Equal(one, two) {
		t.Errorf("differs, %v", err)
	}
}
