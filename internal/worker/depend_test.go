package worker_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/values"
	"zaentrum.io/zae/internal/worker"
)

// secretChart is a chart with one secret input, s, and these templates in one file.
func secretChart(t *testing.T, input, templates string) *chart.Archive {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "made")
	for file, text := range map[string]string{
		"Chart.yaml":           "apiVersion: v2\nname: made\nversion: 1.0.0\n",
		"values.yaml":          "image: ghcr.io/example/app\n",
		"values.schema.json":   `{"properties":{"s":` + input + `,"plain":{"type":"string"}}}`,
		"templates/all.yaml":   templates,
		"templates/fixed.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: fixed}\nstringData: {s: {{ .Values.s | quote }}, \"{{ .Values.s | sha1sum | trunc 7 }}\": x}\n",
	} {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return archive(t, dir)
}

func dependence(t *testing.T, pool *worker.Pool, a *chart.Archive, secret string) *worker.Dependence {
	t.Helper()
	j := worker.Job{Name: "made", Namespace: "zaentrum", From: []values.From{{TargetPath: "s", Text: secret, Secret: true}}, Dependence: true}
	got, err := pool.Render(t.Context(), a, j)
	if err != nil || len(got.ValuesErrors) > 0 {
		t.Fatal(err, got)
	}
	return got.Dependence
}

const anyString = `{"type":"string","writeOnly":true}`

// Whatever a template makes of a secret is found: parts, encodings, digests, in values, names, keys and kinds. What it
// does not make of it is not, nor is the data of Secrets.
func TestWhatDependsOnASecretIsFound(t *testing.T) {
	pool := newPool(t, worker.Options{})
	const url = "postgres://admin:Tr0ub4dor-Xy77@db.example.net:5432/app"
	for name, c := range map[string]struct {
		input, secret, templates string
		want                     []string
		numbers                  []int64
	}{
		"a part in a name": {anyString, url, `
apiVersion: v1
kind: ConfigMap
metadata: {name: "db-{{ (urlParse .Values.s).userinfo | splitList ":" | last }}"}`, []string{"db-Tr0ub4dor-Xy77"}, nil},
		"a part, of one that is checked": {anyString, url, `
{{- if not (hasPrefix "postgres://" .Values.s) }}{{ fail "no" }}{{ end }}
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
data: {scheme: {{ (urlParse .Values.s).scheme }}, pass: {{ (urlParse .Values.s).userinfo | splitList ":" | last }}}`, []string{"Tr0ub4dor-Xy77"}, nil},
		"of one that is checked for how it begins and ends, and for its length": {anyString, "tok-abcdefgh12345678-end", `
{{- if not (and (hasPrefix "tok-" .Values.s) (hasSuffix "-end" .Values.s) (eq (len .Values.s) 24)) }}{{ fail "no" }}{{ end }}
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
data: {a: {{ .Values.s | trunc 14 | quote }}}`, []string{"tok-abcdefgh12"}, nil},
		"of one of a pattern": {`{"type":"string","writeOnly":true,"pattern":"^key_[a-f0-9]{12}$"}`, "key_00c0ffee1234", `
apiVersion: v1
kind: ConfigMap
metadata: {name: c, labels: {k: "x{{ .Values.s | trimPrefix "key_" }}"}}`, []string{"x00c0ffee1234"}, nil},
		"an encoding in an image": {anyString, "s3cret-word", `
apiVersion: batch/v1
kind: Job
metadata: {name: j}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: "x/{{ printf "%x" .Values.s }}:1"}, {name: b, image: "{{ .Values.image }}:1"}]}}}`, []string{"x/7333637265742d776f7264:1"}, nil},
		"a kind": {anyString, "s3cret-word", `
apiVersion: v1
kind: "K{{ .Values.s | swapcase }}"
metadata: {name: c}`, []string{"KS3CRET-WORD"}, nil},
		"a key and a number": {anyString, "10203", `
apiVersion: v1
kind: ConfigMap
metadata: {name: c, labels: {"{{ splitList "" .Values.s | reverse | join "" }}": x}}
data: {"k{{ .Values.s | sha256sum | trunc 8 }}": x}
port: {{ .Values.s }}`, nil, []int64{10203}},
		"a secret of three letters": {anyString, "p w", `
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Values.s | replace " " "" | quote }}}
image: x/{{ .Values.s }}:1`, []string{"pw", "x/p w:1"}, nil},
		"one of JSON": {anyString, `{"user":"ada","password":"t0p-s3cret"}`, `
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
data: {user: {{ get (fromJson .Values.s) "user" }}, p: {{ required "no" (get (fromJson .Values.s) "password") }}}`, []string{"ada", "t0p-s3cret"}, nil},
		"which branch, and how many": {anyString, "s3cret-word", `
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
data:
  {{- if contains "s3c" .Values.s }}
  branch: "chosen {{ .Values.s | upper }}"
  {{- end }}
list: [{{ range $i, $_ := splitList "e" .Values.s }}"{{ $i }}-{{ trunc 2 $_ }}",{{ end }}]`, []string{"0-s3", "1-t-", "chosen S3CRET-WORD"}, nil},
		"as it is, which everybody finds": {anyString, "s3cret-word", `
apiVersion: v1
kind: ConfigMap
metadata: {name: "a-{{ .Values.s }}"}`, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := dependence(t, pool, secretChart(t, c.input, c.templates), c.secret)
			if got == nil {
				t.Fatal("nothing")
			}
			// The key of the Secret that is a digest is one more, each time.
			texts := slices.DeleteFunc(slices.Clone(got.Texts), func(s string) bool { return len(s) == 7 && !slices.Contains(c.want, s) })
			if name == "a key and a number" {
				if !slices.Contains(texts, "30201") || len(texts) != 2 {
					t.Errorf("texts: %v", texts)
				}
				texts = nil
			}
			if d := cmp.Diff(c.want, texts, cmpEmpty); d != "" {
				t.Errorf("texts (-want +got): %s", d)
			}
			if d := cmp.Diff(c.numbers, got.Numbers, cmpEmpty); d != "" {
				t.Errorf("numbers: %s", d)
			}
			if len(got.Blind) > 0 {
				t.Errorf("blind: %v", got.Blind)
			}
		})
	}
}

// cmpEmpty takes no list for an empty one.
var cmpEmpty = cmp.FilterValues(func(a, b any) bool {
	empty := func(v any) bool {
		switch v := v.(type) {
		case []string:
			return len(v) == 0
		case []int64:
			return len(v) == 0
		}
		return false
	}
	return empty(a) && empty(b)
}, cmp.Ignore())

// Where the chart renders with no other secret, nothing can be shown to be independent but what the chart says itself.
func TestASecretThatCannotBeAnotherHidesAll(t *testing.T) {
	pool := newPool(t, worker.Options{})
	a := secretChart(t, anyString, `
{{- if ne (sha256sum .Values.s) "142828d5ac785c828b4499fbbe0f6846f33ca3184893fe91a981ac5801b2d667" }}{{ fail "no" }}{{ end }}
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {part: {{ .Values.s | trunc 6 }}, image: "{{ .Values.image }}", made: "{{ .Release.Name }}-{{ 1 }}"}`)
	got := dependence(t, pool, a, "only-this-1")
	if d := cmp.Diff([]string{"s"}, got.Blind); d != "" {
		t.Error(d)
	}
	for text, want := range map[string]bool{"only-t": true, "made-1": true, "settings": false, "ghcr.io/example/app": false, "ConfigMap": false} {
		if slices.Contains(got.Texts, text) != want {
			t.Errorf("%s: found %v, want %v", text, !want, want)
		}
	}
}

// It is found out once for a chart and its values, and told each time; without secrets, or unasked, there is nothing.
func TestDependenceIsFoundOnce(t *testing.T) {
	pool := newPool(t, worker.Options{})
	a := secretChart(t, anyString, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"x{{ .Values.s | sha256sum | trunc 10 }}\"}\n")
	first := dependence(t, pool, a, "s3cret-word")
	if again := dependence(t, pool, a, "s3cret-word"); again != first {
		t.Error("found out again, or not told")
	}
	if other := dependence(t, pool, a, "an0ther-word"); cmp.Equal(other.Texts, first.Texts) {
		t.Error("told of other values")
	}
	none, err := pool.Render(t.Context(), a, worker.Job{Name: "made", From: []values.From{{TargetPath: "s", Text: "s3cret-word"}}})
	if err != nil || none.Dependence != nil {
		t.Error("not asked for, and told", err)
	}
	without := secretChart(t, `{"type":"string"}`, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n")
	plain, err := pool.Render(t.Context(), without, worker.Job{Name: "made", Spec: map[string]any{"s": "plain-word"}, Dependence: true})
	if err != nil || plain.Dependence != nil {
		t.Error("no secret, and told", err)
	}
}
