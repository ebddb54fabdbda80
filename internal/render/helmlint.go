package render

import (
	"os"
	"path/filepath"
	"strings"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"

	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/fault"
)

// HelmFinding is one thing that helm lint finds.
type HelmFinding struct {
	Severity string // error, warning or info
	File     string // in the chart; empty for the chart as a whole
	What     string // in our words: Helm's own quote values and what templates render
}

// UnpackForHelm writes the files of a chart into a new directory for HelmLint, whose path is the answer; remove takes
// it away again. Schemas are left out: Helm's validator would fetch what they refer to, and Validate has judged them.
func UnpackForHelm(name string, files []chart.File) (root string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "zae-lint-")
	if err != nil {
		return "", nil, fault.New(fault.Internal, "helm lint: no directory to unpack the chart into").Because(err)
	}
	remove = func() { _ = os.RemoveAll(dir) }
	fail := func(err error) (string, func(), error) {
		remove()
		return "", nil, fault.New(fault.Internal, "helm lint: the chart cannot be unpacked").Because(err)
	}
	if root, err = filepath.Abs(filepath.Join(dir, filepath.Base(filepath.FromSlash(name)))); err != nil {
		return fail(err)
	}
	for _, f := range files {
		if filepath.Base(f.Name) == "values.schema.json" {
			continue
		}
		to := filepath.Join(root, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return fail(err)
		}
		if err := os.WriteFile(to, f.Data, 0o600); err != nil {
			return fail(err)
		}
	}
	return root, remove, nil
}

// HelmLint runs Helm's own lint on a chart that UnpackForHelm wrote, with values that Render accepted. It renders
// the chart, under another release name, and has no bounds: workers call it. What Helm logs on the way are values
// and texts of templates: the process's logger must be silent.
func HelmLint(root string, values map[string]any, namespace string) (found []HelmFinding) {
	defer func() {
		if recover() != nil { // its text may quote a value
			found = []HelmFinding{{Severity: "error", File: "Chart.yaml", What: "helm lint ends in a panic"}}
		}
	}()
	version := &chartutil.KubeVersion{Version: KubeVersion, Major: kubeMajor, Minor: kubeMinor}
	for _, m := range lint.AllWithKubeVersionAndSchemaValidation(root, values, namespace, version, true).Messages {
		if f, keep := helmFinding(root, m); keep {
			found = append(found, f)
		}
	}
	return found
}

// helmWords are Helm's findings by how their texts begin or, after a …, by what is in them, and how they are
// told here.
var helmWords = []struct{ theirs, ours string }{
	{"name is required", "the chart has no name"},
	{"chart name ", "the chart's name is not one"},
	{"apiVersion is required", "apiVersion is missing"},
	{"apiVersion '", "apiVersion is neither v1 nor v2"},
	{"version is required", "version is missing"},
	{"version '", "version is no semantic version"},
	{"version should be of type string", "version is not a string: quote it"},
	{"appVersion should be of type string", "appVersion is not a string: quote it"},
	{"version ", "version is not above 0.0.0"},
	{"a maintainer entry is empty", "an entry of maintainers is empty"},
	{"each maintainer requires a name", "a maintainer has no name"},
	{"invalid email '", "a maintainer's email address is not valid"},
	{"invalid url '", "a maintainer's url is not valid"},
	{"invalid source URL '", "an entry of sources is no URL"},
	{"invalid icon URL '", "icon is no URL"},
	{"chart type is not valid", "type needs apiVersion v2"},
	{"dependencies are not valid", "dependencies need apiVersion v2"},
	{"unable to parse YAML", "not valid YAML as Helm reads it"},
	{"unable to load chart", "Helm cannot load the chart"},
	{"chart metadata is missing these dependencies", "charts/ holds charts that Chart.yaml does not list under dependencies"},
	{"chart directory is missing these dependencies", "charts/ lacks charts that Chart.yaml lists under dependencies"},
	{"multiple dependencies with name or alias", "two dependencies have one name or alias"},
	{"file extension '", "the file's extension is none of .yaml, .yml, .tpl and .txt"},
	{"manifest is a crd-install hook", "crd-install hooks are of Helm 2"},
	{".Release.Time has been removed", ".Release.Time is of Helm 2"},
	{"document starts with an illegal indent", "what it renders starts with an indent"},
	{"object name does not conform", "an object's name is not a valid one"},
	{"a Deployment must contain matchLabels", "a workload has no selector"},
	{"a StatefulSet must contain matchLabels", "a workload has no selector"},
	{"…must contain matchLabels or matchExpressions", "a workload has no selector"},
	{"annotation 'helm.sh/resource-policy' within List", "helm.sh/resource-policy inside a List does nothing"},
	{"… is deprecated in v", "an object is of an API version that is deprecated"},
	{"…/deprecated/", "an object is of an API version that is deprecated"},
	{"template: ", "a template fails when Helm renders it"},
	{"parse error ", "a template does not parse"},
	{"not a directory", "templates is not a directory"},
	{"should be a file, not a directory", "Chart.yaml is a directory"},
}

func helmFinding(root string, m support.Message) (HelmFinding, bool) {
	text := m.Err.Error()
	if strings.HasPrefix(text, "icon is recommended") || m.Severity == support.InfoSev && strings.HasPrefix(text, "file does not exist") {
		return HelmFinding{}, false // an addon's icon is an annotation, and it may have no values.yaml
	}
	f := HelmFinding{Severity: "info", File: m.Path, What: "helm lint has a finding: run it to see its text"}
	switch m.Severity {
	case support.ErrorSev:
		f.Severity = "error"
	case support.WarningSev:
		f.Severity = "warning"
	}
	if m.Path == root {
		f.File = "Chart.yaml"
	}
	f.File = printable(strings.TrimSuffix(f.File, "/"))
	for _, w := range helmWords {
		part, inside := strings.CutPrefix(w.theirs, "…")
		if strings.HasPrefix(text, part) || inside && strings.Contains(text, part) {
			f.What = w.ours
			break
		}
	}
	return f, true
}
