package apply_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What somebody made by hand and handed to the owner is the owner's from then on: what the chart renders no longer goes,
// and what they alone set stays.
func TestWhatOthersCreatedIsTakenOver(t *testing.T) {
	b := newBench(t)
	const owned = `labels: {zaentrum.io/addon: example, l: x}, ownerReferences: [{apiVersion: zaentrum.io/v1alpha1, kind: ZaentrumAddon, name: example, uid: OURS, controller: true, blockOwnerDeletion: true}]`
	for _, text := range []string{
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: config, ` + owned + `}, data: {a: x, b: z, theirs: "1"}}`,
		`{apiVersion: v1, kind: Secret, metadata: {name: env, ` + owned + `}, data: {a: eA==, b: eg==, theirs: MQ==}}`,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, ` + owned + `}, spec: {replicas: 1, minReadySeconds: 5, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: "x:1", env: [{name: A, value: a}, {name: B, value: b}, {name: THEIRS, value: "1"}]}]}}}}`,
	} {
		b.create(strings.ReplaceAll(text, "OURS", string(b.owner.UID)))
	}
	const chart = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: config, labels: {l: x}}, data: {a: x, b: z}}
---
{apiVersion: v1, kind: Secret, metadata: {name: env}, stringData: {a: x, b: z}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: "x:1", env: [{name: A, value: a}, {name: B, value: b}]}]}}}}
`
	b.mustApply(chart)
	b.requests.reset()
	b.mustApply(chart)
	if w := b.requests.writes(); len(w) > 0 {
		t.Errorf("it does not come to rest: %q", w)
	}

	less := strings.NewReplacer(", labels: {l: x}", "", ", b: z", "", ", {name: B, value: b}", "").Replace(chart)
	rehearsed := b.rehearse(less, false)
	b.mustApply(less)
	if d := cmp.Diff(map[string]any{"a": "x", "theirs": "1"}, at(t, b.get("v1", "ConfigMap", "config"), "data")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[string]any{"a": "eA==", "theirs": "MQ=="}, at(t, b.get("v1", "Secret", "env"), "data")); d != "" {
		t.Error(d)
	}
	if _, ok := b.get("v1", "ConfigMap", "config").GetLabels()["l"]; ok {
		t.Error("the label is still there")
	}
	web := b.get("apps/v1", "Deployment", "web")
	env := at(t, web, "spec", "template", "spec", "containers").([]any)[0].(map[string]any)["env"]
	if d := cmp.Diff([]any{map[string]any{"name": "A", "value": "a"}, map[string]any{"name": "THEIRS", "value": "1"}}, env); d != "" {
		t.Error(d)
	}
	if got := at(t, web, "spec", "minReadySeconds"); got != int64(5) {
		t.Errorf("what they alone set is %v", got)
	}
	if n := len(rehearsed.Changes); n != 3 {
		t.Errorf("%d changes were foretold: %+v", n, rehearsed.Changes)
	}
}

// One that applies says itself what it holds, and is left to say it.
func TestWhatOthersApplyIsLeftToThem(t *testing.T) {
	b := newBench(t)
	b.mustApply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: config}, data: {a: x, b: z}}`)
	b.applyAs("somebody", `{apiVersion: v1, kind: ConfigMap, metadata: {name: config}, data: {b: z}}`)
	b.requests.reset()
	b.mustApply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: config}, data: {a: x, b: z}}`)
	if w := b.requests.writes(); len(w) > 0 {
		t.Errorf("wrote %q", w)
	}
	b.mustApply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: config}, data: {a: x}}`)
	if d := cmp.Diff(map[string]any{"a": "x", "b": "z"}, at(t, b.get("v1", "ConfigMap", "config"), "data")); d != "" {
		t.Error(d)
	}
}

// applyAs applies as another manager would.
func (b *bench) applyAs(manager, text string) {
	b.t.Helper()
	u := parse(b.t, text)[0].Unstructured()
	u.SetNamespace(b.owner.Namespace)
	if err := b.other.Apply(b.ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(manager)); err != nil {
		b.t.Fatal(err)
	}
}
