package apply_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"zaentrum.io/zae/internal/apply"
	"zaentrum.io/zae/internal/manifest"
)

func TestPruneDeletesWhatIsNotWantedAnyMore(t *testing.T) {
	b := newBench(t)
	b.mustApply(example)
	docs := strings.Split(example, "---\n")
	kept := strings.Join(docs[1:3], "---\n") // the Secret and the ConfigMap
	b.requests.reset()
	b.mustApply(kept)
	got := b.prune(kept)
	if d := cmp.Diff([]string{"Job/setup", "Deployment/example", "Service/example", "PersistentVolumeClaim/data", "ServiceAccount/example"}, got); d != "" {
		t.Error(d)
	}
	if w := b.requests.writes(); len(w) != 5 {
		t.Errorf("wrote %q", w)
	}
	for _, gone := range []manifest.ID{{APIVersion: "v1", Kind: "Service", Name: "example"}, {APIVersion: "apps/v1", Kind: "Deployment", Name: "example"}} {
		if _, err := b.find(gone.APIVersion, gone.Kind, gone.Name); !apierrors.IsNotFound(err) {
			t.Errorf("%s is still there, or: %v", gone, err)
		}
	}
	b.get("v1", "Secret", "env")
	b.requests.reset()
	if got := b.prune(kept); len(got) > 0 || len(b.requests.writes()) > 0 {
		t.Errorf("pruned again: %v %q", got, b.requests.writes())
	}
}

func TestPruneSparesWhatIsNotOurs(t *testing.T) {
	const controller = `ownerReferences: [{apiVersion: zaentrum.io/v1alpha1, kind: ZaentrumAddon, name: example, uid: OURS, controller: true}]`
	const labels = `labels: {zaentrum.io/addon: example, app.kubernetes.io/managed-by: zaentrum-operator}`
	for name, text := range map[string]string{
		"not controlled":         `{apiVersion: v1, kind: Secret, metadata: {name: x, ` + labels + `}}`,
		"controlled by another":  `{apiVersion: v1, kind: Secret, metadata: {name: x, ` + labels + `, ` + strings.Replace(controller, "OURS", "another", 1) + `}}`,
		"owned, not controlled":  `{apiVersion: v1, kind: Secret, metadata: {name: x, ` + labels + `, ` + strings.Replace(controller, "controller: true", "controller: false", 1) + `}}`,
		"not managed by us":      `{apiVersion: v1, kind: Secret, metadata: {name: x, labels: {zaentrum.io/addon: example}, ` + controller + `}}`,
		"without the addon":      `{apiVersion: v1, kind: Secret, metadata: {name: x, labels: {app.kubernetes.io/managed-by: zaentrum-operator}, ` + controller + `}}`,
		"labelled for another":   `{apiVersion: v1, kind: Secret, metadata: {name: x, labels: {zaentrum.io/addon: other, app.kubernetes.io/managed-by: zaentrum-operator}, ` + controller + `}}`,
		"a values Secret":        `{apiVersion: v1, kind: Secret, metadata: {name: zaentrum-addon-example-generated, ` + labels + `, ` + controller + `}}`,
		"of a kind not for us":   `{apiVersion: v1, kind: LimitRange, metadata: {name: x, ` + labels + `, ` + controller + `}, spec: {limits: []}}`,
		"ours by name and label": `{apiVersion: v1, kind: ConfigMap, metadata: {name: x, ` + labels + `, ownerReferences: [{apiVersion: zaentrum.io/v1alpha1, kind: ZaentrumAddon, name: example, uid: former, controller: true}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.create(strings.ReplaceAll(text, "OURS", string(b.owner.UID)))
			if got := b.prune("{}"); len(got) > 0 || len(b.requests.writes()) > 0 {
				t.Errorf("pruned %v: %q", got, b.requests.writes())
			}
		})
	}
}

// The prune decides by itself, whatever observation it is given.
func TestPruneDoesNotTrustTheObservation(t *testing.T) {
	b := newBench(t)
	values := b.decorate(`{apiVersion: v1, kind: Secret, metadata: {name: zaentrum-addon-example-values-1}}`)
	u := values[0].Unstructured()
	if err := b.other.Create(b.ctx, u); err != nil {
		t.Fatal(err)
	}
	ids, err := b.cluster.Prune(b.ctx, b.owner, nil, &apply.Observation{Owned: values})
	if err != nil || len(ids) > 0 || len(b.requests.writes()) > 0 {
		t.Errorf("%v, pruned %v: %q", err, ids, b.requests.writes())
	}
}

// What is deleted is what was checked.
func TestPruneIsGuardedAgainstRaces(t *testing.T) {
	const text = `{apiVersion: v1, kind: ConfigMap, metadata: {name: config}, data: {a: x}}`
	for name, tc := range map[string]struct {
		meanwhile func(b *bench)
		deleted   bool
	}{
		"its data changed": {func(b *bench) {
			b.patch(b.get("v1", "ConfigMap", "config"), `{"data":{"b":"x"}}`)
		}, true},
		"it is gone": {func(b *bench) {
			_ = b.other.Delete(b.ctx, b.get("v1", "ConfigMap", "config"))
		}, true},
		"it was given away": {func(b *bench) {
			b.patch(b.get("v1", "ConfigMap", "config"), `{"metadata":{"ownerReferences":null}}`)
		}, false},
		"it lost its mark": {func(b *bench) {
			b.patch(b.get("v1", "ConfigMap", "config"), `{"metadata":{"labels":{"app.kubernetes.io/managed-by":null}}}`)
		}, false},
		"it was labelled for another": {func(b *bench) {
			b.patch(b.get("v1", "ConfigMap", "config"), `{"metadata":{"labels":{"zaentrum.io/addon":"other"}}}`)
		}, false},
		"it was replaced": {func(b *bench) {
			_ = b.other.Delete(b.ctx, b.get("v1", "ConfigMap", "config"))
			b.create(text)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.mustApply(text)
			obs := b.observe(nil)
			done := false
			b.requests.before = func(r *http.Request) {
				if r.Method == http.MethodDelete && !done {
					done = true
					tc.meanwhile(b)
				}
			}
			ids, err := b.cluster.Prune(b.ctx, b.owner, nil, obs)
			if err != nil {
				t.Fatal(err)
			}
			if slices.Equal(names(ids), []string{"ConfigMap/config"}) != tc.deleted {
				t.Errorf("pruned %v", ids)
			}
			if _, err := b.find("v1", "ConfigMap", "config"); apierrors.IsNotFound(err) != tc.deleted {
				t.Errorf("found: %v", err)
			}
		})
	}
}
