package worker_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"zaentrum.io/zae/internal/worker"
)

func TestASecretAmongPlainValuesIsRefusedWhereverItStands(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "plain")
	for file, text := range map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: plain\nversion: 1.0.0\n",
		"values.schema.json": `{"properties":{"url":{"type":"string","writeOnly":true},"m":{"additionalProperties":{"writeOnly":true}},
			"users":{"items":{"properties":{"password":{"writeOnly":true}}}},"d.t":{"writeOnly":true}}}`,
		"templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\n",
	} {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	j := job(t, "plain")
	j.From = nil
	j.Spec = map[string]any{
		"url": canary, "m": map[string]any{"a": canary, "b": nil}, "d.t": canary,
		"users": []any{map[string]any{"name": "x"}, map[string]any{"password": canary}},
	}
	got, err := new(worker.Direct).Render(t.Context(), archive(t, dir), j)
	if err != nil {
		t.Fatal(err)
	}
	const what = ": is a secret input and stands in the plain values: take it out of values and give it as a secret"
	if d := cmp.Diff([]string{"d.t" + what, "m.a" + what, "url" + what, "users[1].password" + what}, got.ValuesErrors); d != "" {
		t.Error(d)
	}
	if len(got.Objects) > 0 || strings.Contains(strings.Join(got.ValuesErrors, ""), canary) {
		t.Error("rendered, or a value is told")
	}
}

func TestSecretsOutsideOfSecretsAreTold(t *testing.T) {
	pool := newPool(t, worker.Options{})
	for dir, want := range map[string][]string{
		"hostile/secret-in-names": {
			"ConfigMap/" + canary + ": the secret input token stands outside of a Secret's data (metadata.name)",
			"Deployment/worker: the secret input token stands outside of a Secret's data (spec.template.spec.containers[0].image)",
		},
		"example/1.2.0": nil,
	} {
		_, r := tryAll(t, pool, archive(t, examples+dir))
		if r == nil {
			t.Fatalf("%s is not rendered", dir)
		}
		if d := cmp.Diff(want, r.Leaks); d != "" {
			t.Errorf("%s: %s", dir, d)
		}
	}
}
