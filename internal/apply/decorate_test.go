package apply_test

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apply"
	"zaentrum.io/zae/internal/manifest"
)

var update = flag.Bool("update", false, "write golden files")

// parse decodes YAML documents into a set.
func parse(t testing.TB, text string) manifest.Set {
	t.Helper()
	docs, err := manifest.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	out := manifest.Set{}
	for _, d := range docs {
		tree, ok := d.(map[string]any)
		if !ok {
			t.Fatalf("not an object: %v", d)
		}
		out = append(out, manifest.Object{Tree: tree})
	}
	return out
}

func marksOf(o apply.Owner) apply.Marks {
	return apply.Marks{
		Owner: o,
		Labels: map[string]string{
			v1alpha1.LabelAddon:     o.Name,
			v1alpha1.LabelManagedBy: v1alpha1.ManagedBy,
			v1alpha1.LabelInstance:  o.Name,
			v1alpha1.LabelPartOf:    "zaentrum-addons",
		},
		ComponentLabel:     v1alpha1.LabelComponent,
		LabelPrefix:        "zaentrum.io/",
		PodLabel:           v1alpha1.LabelAddon,
		ChecksumAnnotation: v1alpha1.AnnotationValuesChecksum,
		Checksum:           "c0ffee",
	}
}

var exampleOwner = apply.Owner{
	APIVersion: "zaentrum.io/v1alpha1", Kind: "ZaentrumAddon", Namespace: "zaentrum", Name: "example", UID: "11111111-2222-3333-4444-555555555555",
}

func TestDecorateGolden(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "decorate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	in := parse(t, string(text))
	before := in.Clone()
	out := apply.Decorate(in, marksOf(exampleOwner))
	if d := cmp.Diff(before, in); d != "" {
		t.Errorf("Decorate changed its input: %s", d)
	}
	var got bytes.Buffer
	for _, o := range out {
		y, err := yaml.Marshal(o.Tree)
		if err != nil {
			t.Fatal(err)
		}
		got.WriteString("---\n")
		got.Write(y)
	}
	golden := filepath.Join("testdata", "decorate.golden.yaml")
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got.String()); d != "" {
		t.Errorf("run with -update if this is right:\n%s", d)
	}
}

func TestDecorateTwiceIsDecorateOnce(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "decorate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	once := apply.Decorate(parse(t, string(text)), marksOf(exampleOwner))
	twice := apply.Decorate(once, marksOf(exampleOwner))
	if d := cmp.Diff(once, twice); d != "" {
		t.Error(d)
	}
}

func TestDigest(t *testing.T) {
	digest := func(text string) string {
		return apply.Decorate(parse(t, text), marksOf(exampleOwner))[0].Unstructured().GetAnnotations()[v1alpha1.AnnotationApplied]
	}
	secret := digest(`{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {k: YQ==}}`)
	for name, tc := range map[string]struct {
		text string
		same bool
	}{
		"leaves a Secret's data out": {`{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {k: Yg==}}`, true},
		"covers a Secret's keys":     {`{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {k: YQ==, l: YQ==}}`, false},
		"leaves stringData out":      {`{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {k: b}}`, true},
		"covers a Secret's type":     {`{apiVersion: v1, kind: Secret, metadata: {name: a}, type: kubernetes.io/tls, data: {k: YQ==}}`, false},
		"covers a Secret's labels":   {`{apiVersion: v1, kind: Secret, metadata: {name: a, labels: {a: b}}, data: {k: YQ==}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := digest(tc.text); got == "" || (got == secret) != tc.same {
				t.Errorf("got %s, and %s", got, secret)
			}
		})
	}
	if digest(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: a}}`) == digest(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: b}}`) {
		t.Error("a ConfigMap's data is not covered")
	}
}

// What passed no guardrails must not panic; the API server refuses it.
func TestDecorateTakesOddTrees(t *testing.T) {
	for _, text := range []string{
		`{}`,
		`{apiVersion: apps/v1, kind: Deployment, metadata: x, spec: y}`,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {labels: [], annotations: 3}, spec: {template: {metadata: {labels: x}, spec: {containers: x, securityContext: y}}}}`,
		`{apiVersion: batch/v1, kind: Job, metadata: {name: 3}, spec: {template: {spec: {containers: [x, {securityContext: y, env: [x, {name: 3}], ports: {}}], imagePullSecrets: 3}}}}`,
		`{apiVersion: v1, kind: Secret, metadata: {}, stringData: {a: 3}, data: 4}`,
		`{apiVersion: v1, kind: Secret, metadata: {}, stringData: {a: b}, data: [4]}`,
		`{apiVersion: 3, kind: [x]}`,
	} {
		apply.Decorate(parse(t, text), marksOf(exampleOwner))
	}
}

func FuzzDecorate(f *testing.F) {
	text, err := os.ReadFile(filepath.Join("testdata", "decorate.yaml"))
	if err != nil {
		f.Fatal(err)
	}
	for doc := range strings.SplitSeq(string(text), "---\n") {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		docs, err := manifest.Decode(text)
		if err != nil {
			return
		}
		set := manifest.Set{}
		for _, d := range docs {
			if tree, ok := d.(map[string]any); ok {
				set = append(set, manifest.Object{Tree: tree})
			}
		}
		once := apply.Decorate(set, marksOf(exampleOwner))
		if d := cmp.Diff(once, apply.Decorate(once, marksOf(exampleOwner))); d != "" {
			t.Error(d)
		}
	})
}

// TestDecorateDropsReservedLabels: what only the operator says is not a chart's to say, on an object or on pods.
func TestDecorateDropsReservedLabels(t *testing.T) {
	t.Parallel()
	set := parse(t, `
apiVersion: batch/v1
kind: Job
metadata: {name: j, labels: {zaentrum.io/keep: "true", app: j}}
spec: {template: {metadata: {labels: {zaentrum.io/component: portal-api, zaentrum.io/foo: x, zaentrum.io/addon: other, app: j}}, spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, labels: {zaentrum.io/component: other}}
spec: {selector: {matchLabels: {app: d}}, template: {metadata: {labels: {zaentrum.io/component: other, zaentrum.io/keep: "true", app: d}}, spec: {containers: [{name: c, image: x}]}}}
---
apiVersion: v1
kind: Secret
metadata: {name: s, labels: {zaentrum.io/keep: "true"}}
`)
	everywhere := map[string]any{
		"zaentrum.io/addon": "example", "app.kubernetes.io/managed-by": "zaentrum-operator",
		"app.kubernetes.io/instance": "example", "app.kubernetes.io/part-of": "zaentrum-addons",
	}
	with := func(more map[string]any) map[string]any {
		out := maps.Clone(everywhere)
		maps.Copy(out, more)
		return out
	}
	want := map[string]map[string]any{
		"Job/j": with(map[string]any{"app": "j"}), "Job/j pods": {"zaentrum.io/addon": "example", "app": "j"},
		"Deployment/d":      with(map[string]any{"zaentrum.io/component": "d"}),
		"Deployment/d pods": {"zaentrum.io/addon": "example", "zaentrum.io/component": "d", "app": "d"},
		"Secret/s":          everywhere,
	}
	got := map[string]map[string]any{}
	for _, o := range apply.Decorate(set, marksOf(exampleOwner)) {
		got[o.ID().String()], _, _ = unstructured.NestedMap(o.Tree, "metadata", "labels")
		if pods, found, _ := unstructured.NestedMap(o.Tree, "spec", "template", "metadata", "labels"); found {
			got[o.ID().String()+" pods"] = pods
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
