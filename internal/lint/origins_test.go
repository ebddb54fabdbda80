package lint_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/lint"
)

// withFiles is a chart of the examples with other files besides.
func withFiles(t *testing.T, dir string, files map[string]string) *chart.Archive {
	t.Helper()
	all, err := chart.Files(sourceOf(t, examples+dir).Archive)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		all = slices.DeleteFunc(all, func(f chart.File) bool { return f.Name == name })
		all = append(all, chart.File{Name: name, Data: []byte(text)})
	}
	archive, err := chart.Repack("tiny", all)
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

// job is a Job with more in its pod's spec, at an indent of 6.
func job(pod string) string {
	return "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: once\nspec:\n  template:\n    spec:\n      restartPolicy: Never\n" +
		"      containers:\n        - name: once\n          image: once:1\n" + pod
}

// TestFindingsAreAtTheLinesOfTemplates: HERE is the place that the template has for what is found.
func TestFindingsAreAtTheLinesOfTemplates(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	for name, c := range map[string]struct {
		rule  string
		files map[string]string
	}{
		"twice in one file": {"no-host-network", map[string]string{"templates/job.yaml": "# hostNetwork: true\n" + job("      hostNetwork: true # HERE\n") + "---\n" + strings.ReplaceAll(job("      hostNetwork: false\n"), "once", "twice")}},
		"in a branch":       {"no-host-network", map[string]string{"templates/job.yaml": job("      {{- if .Values.zaentrum.partOf }}\n      hostNetwork: true # HERE\n      {{- else }}\n      hostNetwork: true\n      {{- end }}\n")}},
		"in another template": {"no-host-network", map[string]string{
			"templates/job.yaml":     job("      {{- include \"pod\" . | nindent 6 }}\n"),
			"templates/_helpers.tpl": "{{/* x */}}\n{{- define \"pod\" -}}\nhostPID: false\nhostNetwork: true # HERE\n{{- end -}}\n",
		}},
		"in a template that reads another as data": {"no-host-network", map[string]string{
			"templates/job.yaml":     job("      hostNetwork: {{ (include \"pod\" . | fromYaml).network }} # HERE\n"),
			"templates/_helpers.tpl": "{{- define \"pod\" -}}\nnetwork: true\n{{- end -}}\n",
		}},
		"made of values":               {"no-host-network", map[string]string{"templates/job.yaml": job("      {{- toYaml (dict \"hostNetwork\" true) | nindent 6 }}\n"), "templates/x.yaml": ""}},
		"with a made key":              {"no-host-network", map[string]string{"templates/job.yaml": job("      {{ \"host\" }}Network: true # HERE\n")}},
		"with a quoted key":            {"no-host-network", map[string]string{"templates/job.yaml": job("      \"hostNetwork\": true # HERE\n")}},
		"in braces":                    {"no-added-capabilities", map[string]string{"templates/job.yaml": job("          securityContext: {capabilities: {drop: [ALL], add: [CHOWN]}} # HERE\n")}},
		"in a loop":                    {"no-privileged", map[string]string{"templates/job.yaml": job("        {{- range $i, $name := list \"a\" \"b\" }}\n        - name: {{ $name }}\n          image: x:1\n          securityContext:\n            privileged: {{ eq $i 1 }} # HERE\n        {{- end }}\n")}},
		"in an anchor":                 {"no-privileged", map[string]string{"templates/job.yaml": job("          securityContext: &sc\n            privileged: true # HERE\n      initContainers:\n        - name: first\n          image: x:1\n          securityContext: *sc\n")}},
		"of an item":                   {"no-host-path", map[string]string{"templates/job.yaml": job("      volumes:\n        - emptyDir: {}\n          name: a\n        - hostPath: {path: /} # HERE\n          name: b\n")}},
		"in a list":                    {"no-host-network", map[string]string{"templates/job.yaml": "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(job("      hostNetwork: true # HERE\n"), "\n", "\n  ")}},
		"of what is not there":         {"secret-type", map[string]string{"templates/s.yaml": "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\ntype: x # HERE\n"}},
		"of no YAML":                   {"render-fails", map[string]string{"templates/s.yaml": "{{ if true }}\n\n{{ end }}\napiVersion: v1\nkind: Secret\nmetadata:\n  name: s\ndata:\n  {{ \"a\" }}: \"b\" c # HERE\n"}},
		"of a key that is there twice": {"render-fails", map[string]string{"templates/s.yaml": "{{ if true }}\n\n{{ end }}\napiVersion: v1\nkind: Secret\nmetadata:\n  name: s\nmetadata: # HERE\n  name: s\n"}},
		"of a secret that breaks the YAML": {"secret-text", map[string]string{
			"values.schema.json": `{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "required": ["token"], "properties": {"token": {"type": "string", "minLength": 1, "writeOnly": true}}}`,
			"templates/s.yaml":   "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\nstringData:\n  a: b\n  token: {{ .Values.token }} # HERE\n  c: d\n",
		}},
		"of a secret that is no base64": {"secret-text", map[string]string{
			"values.schema.json": `{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "required": ["token"], "properties": {"token": {"type": "string", "minLength": 1, "writeOnly": true}}}`,
			"templates/s.yaml":   "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\ndata:\n  a: YQ==\n  token: {{ .Values.token | quote }} # HERE\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: s}\ndata:\n  token: x\n",
		}},
		"of an error that is rendered": {"render-fails", map[string]string{"templates/s.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: s\ndata:\n  a: {{ \"%\" | b64dec | quote }} # HERE\n"}},
		"of no object":                 {"render-fails", map[string]string{"templates/s.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: s\n---\n{{ if true }}\n- a # HERE\n{{ end }}\n"}},
		"with Windows' lines":          {"no-host-network", map[string]string{"templates/job.yaml": strings.ReplaceAll(job("      hostNetwork: true # HERE\n"), "\n", "\r\n")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report := check(t, pool, lint.Source{Label: "tiny", Archive: withFiles(t, "tiny", c.files)}, lint.Options{})
			want := ""
			for file, text := range c.files {
				for i, line := range strings.Split(text, "\n") {
					if strings.Contains(line, "HERE") {
						want = fmt.Sprintf("%s:%d", file, i+1)
					}
				}
			}
			if want == "" { // nothing says it: the nearest field around it does
				want = "templates/job.yaml:7"
			}
			var got []string
			for _, f := range report.Findings {
				if f.Rule == c.rule {
					got = append(got, fmt.Sprintf("%s:%d", f.File, f.Line))
					if f.Column == 0 {
						t.Errorf("no column: %+v", f)
					}
				}
			}
			got = slices.Compact(got)
			if len(got) != 1 || got[0] != want {
				t.Errorf("%v, not %s:\n%s", got, want, lines(report))
			}
		})
	}
}

// TestFilesAreNamedAsTheyLie: Helm calls files of bundled charts by other names than the archive does. One place is told once,
// also when the chart is there under two names.
func TestFilesAreNamedAsTheyLie(t *testing.T) {
	t.Parallel()
	const job = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {{ .Chart.Name }}\nspec:\n  template:\n    spec:\n      restartPolicy: Never\n      hostNetwork: true\n      containers: [{name: a, image: a:1}]\n"
	packed, err := chart.Repack("packed", []chart.File{
		{Name: "Chart.yaml", Data: []byte("apiVersion: v2\nname: packed\nversion: 1.0.0\n")}, {Name: "templates/job.yaml", Data: []byte(job)},
	})
	if err != nil {
		t.Fatal(err)
	}
	archive := withFiles(t, "tiny", map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: tiny\nversion: 1.0.0\nappVersion: \"1\"\nannotations:\n  zaentrum.io/addon: \"true\"\n  zaentrum.io/primary: tiny\n" +
			"dependencies:\n- {name: inner, version: 1.0.0, alias: first}\n- {name: inner, version: 1.0.0, alias: second}\n- {name: packed, version: 1.0.0}\n",
		"charts/folder/Chart.yaml":         "apiVersion: v2\nname: inner\nversion: 1.0.0\n",
		"charts/folder/templates/job.yaml": job,
		"charts/packed-1.0.0.tgz":          string(packed.Bytes),
	})
	report := check(t, newPool(t), lint.Source{Label: "tiny", Archive: archive}, lint.Options{})
	var got []string
	for _, f := range report.Findings {
		if f.Rule == "no-host-network" {
			got = append(got, fmt.Sprintf("%s:%d:%d %s", f.File, f.Line, f.Column, f.Object))
		}
	}
	want := []string{"charts/folder/templates/job.yaml:9:7 Job/first", "charts/packed-1.0.0.tgz:0:0 Job/packed"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q in\n%s", got, lines(report))
	}
}

// TestFindingsHaveAPlace: line and column are known, but for what is no longer there, or is a file as a whole.
func TestFindingsHaveAPlace(t *testing.T) {
	t.Parallel()
	without := map[string]bool{"claim-deleted": true, "input-removed": true, "helm-lint": true}
	for _, name := range []string{"faulty.txt", "against.txt", "back.txt"} {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			place, rest, _ := strings.Cut(line, " ")
			words := strings.Fields(rest)
			if !strings.HasPrefix(line, "#") && (strings.HasSuffix(place, ":0:0") || strings.HasSuffix(place, ":0")) && len(words) > 1 && !without[words[1]] {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
}
