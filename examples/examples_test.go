// Package examples_test checks the charts that stand here as examples, as far as that needs no renderer.
package examples_test

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/values"
)

var charts = []string{"example/1.2.0", "example/1.3.0", "tiny", "refused/violation"}

func readTree(t *testing.T, file string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := values.Decode(text)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return tree
}

// files are the files of a chart by name.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	root := os.DirFS(dir)
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(root, name)
		out[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestEveryChartIsAnAddonChart(t *testing.T) {
	for _, dir := range charts {
		t.Run(dir, func(t *testing.T) {
			chart := readTree(t, path.Join(dir, "Chart.yaml"))
			if chart["apiVersion"] != "v2" {
				t.Errorf("apiVersion %v", chart["apiVersion"])
			}
			if kind, set := chart["type"]; set && kind != "application" {
				t.Errorf("type %v", kind)
			}
			annotations, _ := chart["annotations"].(map[string]any)
			if annotations[v1alpha1.ChartAnnotationAddon] != "true" {
				t.Error("not marked as an addon")
			}
			if annotations[v1alpha1.ChartAnnotationPrimary] != chart["name"] {
				t.Errorf("primary %v", annotations[v1alpha1.ChartAnnotationPrimary])
			}
			for name, text := range files(t, dir) {
				if strings.HasPrefix(name, "crds/") {
					t.Errorf("%s: an addon has no CRDs", name)
				}
				if strings.HasPrefix(name, "templates/") && strings.Contains(text, "zaentrum.io/") {
					t.Errorf("%s: the operator sets the zaentrum.io/* labels", name)
				}
				if strings.Contains(text, v1alpha1.ReservedPrefix) {
					t.Errorf("%s: a name under %s", name, v1alpha1.ReservedPrefix)
				}
			}
		})
	}
}

func TestTheExampleAsksForItsInputs(t *testing.T) {
	for _, version := range []string{"1.2.0", "1.3.0"} {
		t.Run(version, func(t *testing.T) {
			dir := path.Join("example", version)
			text, err := os.ReadFile(path.Join(dir, "values.schema.json"))
			if err != nil {
				t.Fatal(err)
			}
			schema, err := inputs.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			defaults := readTree(t, path.Join(dir, "values.yaml"))
			var got []string
			for _, in := range schema.Inputs() {
				got = append(got, in.Path)
				p, err := values.ParsePath(in.Path)
				if err != nil {
					t.Error(err)
				}
				if _, there := values.Get(defaults, p); there && (in.Secret || in.Generate != "") {
					t.Errorf("values.yaml holds %s", in.Path)
				}
			}
			want := []string{"database.url", "config.key", "worker.replicas", "worker.logLevel"}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
			platform, err := values.Platform(values.DefaultPlatform())
			if err != nil {
				t.Fatal(err)
			}
			layers := values.Layers{Defaults: defaults, Platform: platform}
			if got := schema.Validate(layers.Merged()); !slices.Equal(got, []string{"config: is required", "database: is required"}) {
				t.Errorf("without inputs: %q", got)
			}
			layers.Generated = map[string]string{"config.key": "generated"}
			layers.From = []values.From{{TargetPath: "database.url", Text: "postgres://example@postgres/example"}}
			if got := schema.Validate(layers.Merged()); got != nil {
				t.Errorf("with inputs: %q", got)
			}
			ci := readTree(t, path.Join(dir, "ci/values.yaml"))
			if got := schema.Validate(values.Merge(defaults, ci)); got != nil {
				t.Errorf("ci/values.yaml: %q", got)
			}
			for key := range platform {
				if _, ok := ci["zaentrum"].(map[string]any)[key]; !ok {
					t.Errorf("ci/values.yaml lacks zaentrum.%s", key)
				}
			}
		})
	}
}

func TestTheUpgradeAddsRemovesAndReplaces(t *testing.T) {
	before, after := files(t, "example/1.2.0"), files(t, "example/1.3.0")
	var added, removed, changed []string
	for name, text := range after {
		old, there := before[name]
		switch {
		case !there:
			added = append(added, name)
		case old != text:
			changed = append(changed, name)
		}
	}
	for name := range before {
		if _, there := after[name]; !there {
			removed = append(removed, name)
		}
	}
	slices.Sort(changed)
	for what, pair := range map[string][2][]string{
		"added":   {{"templates/features.yaml"}, added},
		"removed": {{"templates/legacy.yaml"}, removed},
		"changed": {{"Chart.yaml", "templates/worker.yaml"}, changed},
	} {
		if d := cmp.Diff(pair[0], pair[1]); d != "" {
			t.Errorf("%s: %s", what, d)
		}
	}
	versions := readTree(t, "example/1.2.0/Chart.yaml")["appVersion"].(string) + " " + readTree(t, "example/1.3.0/Chart.yaml")["appVersion"].(string)
	if versions != "4.1.0 4.2.0" {
		t.Errorf("app versions %s", versions)
	}
}
