package render

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/values"
)

// helmObjects renders as helm install does, with Helm's own functions alone, and lists the objects as JSON but
// for test hooks, sorted.
func helmObjects(h *helmchart.Chart, given map[string]any) ([]string, error) {
	trees, err := helmTrees(h, given, false)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, tree := range trees {
		list, err := listed(tree)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	slices.Sort(out)
	return out, nil
}

// helmTrees are the documents that Helm's own functions render, as helm install does, in the order of their files.
func helmTrees(h *helmchart.Chart, given map[string]any, skipSchema bool) ([]map[string]any, error) {
	if err := chartutil.ProcessDependenciesWithMerge(h, given); err != nil {
		return nil, err
	}
	vals, err := chartutil.ToRenderValuesWithSchemaValidation(h, given, chartutil.ReleaseOptions{
		Name: "example", Namespace: "zaentrum", Revision: 1, IsInstall: true,
	}, capabilities(), skipSchema)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(h, vals)
	if err != nil {
		return nil, err
	}
	var out []map[string]any
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, "NOTES.txt") {
			continue
		}
		docs := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(files[name])))
		for {
			doc, err := docs.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, err
			}
			var tree map[string]any
			if err := yaml.Unmarshal(doc, &tree); err != nil {
				return nil, err
			}
			out = append(out, tree)
		}
	}
	return out, nil
}

// listed is an object as JSON, or those in a list.
func listed(tree map[string]any) ([]string, error) {
	if tree == nil || (tree["kind"] != "List" && isTest(tree)) {
		return nil, nil
	}
	if tree["kind"] != "List" {
		text, err := json.Marshal(tree)
		return []string{drawn.ReplaceAllString(string(text), `"$1":"drawn"`)}, err
	}
	var out []string
	items, _ := tree["items"].([]any)
	for _, item := range items {
		object, _ := item.(map[string]any)
		list, err := listed(object)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	return out, nil
}

// ourObjects are the same by our own way from a chart to objects.
func ourObjects(t *testing.T, c *chart.Chart, given, platform map[string]any) ([]string, error) {
	t.Helper()
	schema, err := inputs.Parse(c.Schema)
	if err != nil {
		return nil, err
	}
	in := inputOf(c, given)
	in.Values["zaentrum"] = platform
	if found := Validate(in, schema); len(found) > 0 {
		return nil, errors.New(strings.Join(found, "\n"))
	}
	set, errs := Render(t.Context(), in)
	if len(errs) > 0 {
		return nil, errors.New(strings.Join(errs, "\n"))
	}
	var out []string
	for _, o := range set {
		text, err := json.Marshal(o.Tree)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, drawn.ReplaceAllString(string(text), `"$1":"drawn"`))
	}
	slices.Sort(out)
	return out, nil
}

// chartsIn are all charts in a directory: its directories with a Chart.yaml, and archives.
func chartsIn(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if info, err := os.Stat(filepath.Join(path, "Chart.yaml")); err == nil && !info.IsDir() {
				out = append(out, path)
			}
		case strings.HasSuffix(path, ".tgz"):
			out = append(out, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func ourChart(path string) (*chart.Chart, error) {
	if !strings.HasSuffix(path, ".tgz") {
		return chart.LoadDir(path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return chart.Load(&chart.Archive{Bytes: text})
}

// TestObjectsAreThoseOfHelmForAllItsOwnCharts renders every chart of Helm's own test data and of this
// repository's examples both ways.
func TestObjectsAreThoseOfHelmForAllItsOwnCharts(t *testing.T) {
	silenceHelm(t)
	platform, err := values.Platform(&v1alpha1.Zaentrum{ObjectMeta: metav1.ObjectMeta{Namespace: "zaentrum"}})
	if err != nil {
		t.Fatal(err)
	}
	var compared, objects, refusedByBoth, notLoaded int
	seen := map[string]bool{}
	for prefix, dir := range map[string]string{"": moduleDir(t, "helm.sh/helm/v3"), "examples": "../../examples"} {
		for _, path := range chartsIn(t, dir) {
			if strings.HasPrefix(path, filepath.Join("../../examples", "hostile")) {
				continue // made to take all time and memory there is: for processes of their own
			}
			if path == filepath.Join("../../examples", "lint", "random") {
				continue // never the same twice
			}
			name := filepath.ToSlash(filepath.Join(prefix, strings.TrimPrefix(path, dir)))
			name = strings.TrimPrefix(name, "/")
			h, err := loader.Load(path)
			if err != nil {
				notLoaded++
				continue
			}
			given := map[string]any{}
			if strings.HasPrefix(name, "examples/") {
				given = exampleValues()
			}
			reason := otherObjects[name]
			seen[name] = reason != ""
			want, wantErr := helmObjects(h, with(given, "zaentrum", platform))
			c, err := ourChart(path)
			var got []string
			if err == nil {
				got, err = ourObjects(t, c, given, platform)
			}
			alike := (err == nil) == (wantErr == nil) && cmp.Equal(want, got)
			switch {
			case alike && reason != "":
				t.Errorf("%s is rendered alike: take it out of the table", name)
			case !alike && reason == "":
				t.Errorf("%s: Helm's error %v, ours %v\n%s", name, wantErr, err, cmp.Diff(want, got))
			case reason != "":
			case err != nil:
				refusedByBoth++
			default:
				compared++
				objects += len(got)
			}
		}
	}
	for name := range otherObjects {
		if !seen[name] {
			t.Errorf("%s is in the table and is no chart", name)
		}
	}
	t.Logf("%d charts with %d objects compared, %d refused by both, %d that Helm does not load, %d otherwise for a reason", compared, objects, refusedByBoth, notLoaded, len(otherObjects))
	if compared < 100 || objects < 100 {
		t.Error("too little was compared")
	}
}

func with(tree map[string]any, key string, v any) map[string]any {
	out := values.CloneTree(tree)
	out[key] = values.Clone(v)
	return out
}

// exampleValues are what the repository's examples ask for.
func exampleValues() map[string]any {
	return map[string]any{"database": map[string]any{"url": "postgres://x"}, "config": map[string]any{"key": "k"}}
}

// otherObjects are the charts that are not rendered as Helm does, and why.
var otherObjects = map[string]string{
	"cmd/helm/testdata/testcharts/chart-missing-deps": notBundled,
	"cmd/helm/testdata/testcharts/issue-7233":         notBundled,
	"pkg/action/testdata/charts/chart-missing-deps":   notBundled,
	"examples/lint/odd-names":                         "a key of values.yaml is a word that YAML 1.1 takes for a boolean: it stays as written here",
	"pkg/lint/rules/testdata/withsubchart":            "a bundled chart has another version than the one declared: refused here, and by Helm's engine rendered with the declaration unheeded",
}

const notBundled = "a declared chart is not bundled: refused here and by helm install, and left out by Helm's engine"

// drawn are values that charts of the test data draw anew each time they are rendered, by either.
var drawn = regexp.MustCompile(`"(mariadb(?:-replication|-root)?-password)":"[^"]+"`)
