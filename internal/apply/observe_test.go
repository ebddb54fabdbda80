package apply_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"zaentrum.io/zae/internal/manifest"
)

func TestObserve(t *testing.T) {
	b := newBench(t)
	b.mustApply(example)
	b.create(`{apiVersion: v1, kind: Secret, metadata: {name: zaentrum-addon-example-generated, labels: {zaentrum.io/addon: example}, ownerReferences: [{apiVersion: zaentrum.io/v1alpha1, kind: ZaentrumAddon, name: example, uid: ` + string(b.owner.UID) + `, controller: true}]}}`)
	b.create(`{apiVersion: v1, kind: Secret, metadata: {name: foreign, labels: {zaentrum.io/addon: example}}}`)

	t.Run("names what is owned, in apply order, without values Secrets and foreign objects", func(t *testing.T) {
		obs := b.observe(nil)
		if d := cmp.Diff(everything, names(obs.Owned.IDs())); d != "" || len(obs.Taken) > 0 {
			t.Error(d, obs.Taken)
		}
	})
	t.Run("ignores what cannot exist or is no business of ours", func(t *testing.T) {
		b.requests.reset()
		obs, err := b.cluster.Observe(b.ctx, b.owner, []manifest.ID{
			{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "admin"},
			{APIVersion: "apps/v1beta1", Kind: "Deployment", Name: "example"},
			{APIVersion: "v1", Kind: "Secret", Name: "../../kube-system/secrets/x"},
			{APIVersion: "v1", Kind: "Secret"},
			{APIVersion: "a/b/c", Kind: "Secret", Name: "x"},
			{},
		})
		if err != nil || len(obs.Taken) > 0 {
			t.Error(err, obs)
		}
		for _, line := range b.requests.all() {
			if strings.Contains(line, "admin") || strings.HasSuffix(line, "/example") || strings.Contains(line, "kube-system") {
				t.Error(line)
			}
		}
	})
	t.Run("does without kinds that the cluster does not serve", func(t *testing.T) {
		c := b.restarted(b.cluster.Client)
		c.Kinds = append(slices.Clone(kinds), manifest.ID{APIVersion: "example.org/v1", Kind: "Widget"}.GVK())
		obs, err := c.Observe(b.ctx, b.owner, []manifest.ID{{APIVersion: "example.org/v1", Kind: "Widget", Name: "w"}})
		if err != nil || len(obs.Owned) != len(everything) {
			t.Fatal(err)
		}
		wanted := b.decorate(`{apiVersion: example.org/v1, kind: Widget, metadata: {name: w}}`)
		r, err := c.Rehearse(b.ctx, b.owner, wanted, obs, true)
		if err != nil || len(r.Refused) != 1 || r.Refused[0].String() != "Widget/w: not accepted by the cluster (NotServed)" {
			t.Errorf("got %v and %+v", err, r.Refused)
		}
	})
	t.Run("finds what lost its label", func(t *testing.T) {
		b.patch(b.get("v1", "ConfigMap", "config"), `{"metadata":{"labels":{"zaentrum.io/addon":null}}}`)
		obs := b.observe(b.decorate(example))
		if d := cmp.Diff(everything, names(obs.Owned.IDs())); d != "" || len(obs.Taken) > 0 {
			t.Error(d, obs.Taken)
		}
	})
	t.Run("reads only the metadata of what it does not own", func(t *testing.T) {
		accepts := []string{}
		b.requests.before = func(r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/secrets/foreign2") {
				accepts = append(accepts, r.Header.Get("Accept"))
			}
		}
		defer func() { b.requests.before = nil }()
		b.create(`{apiVersion: v1, kind: Secret, metadata: {name: foreign2}}`)
		obs, err := b.cluster.Observe(b.ctx, b.owner, []manifest.ID{{APIVersion: "v1", Kind: "Secret", Name: "foreign2"}})
		if err != nil || len(obs.Taken) != 1 {
			t.Fatal(err, obs)
		}
		if len(accepts) != 1 || !strings.Contains(accepts[0], "PartialObjectMetadata") {
			t.Errorf("asked for %q", accepts)
		}
	})
}

func TestTakenObjectsAreLeftAlone(t *testing.T) {
	for name, text := range map[string]string{
		"made by hand":               `{apiVersion: v1, kind: ConfigMap, metadata: {name: config}, data: {a: theirs}}`,
		"with our labels":            `{apiVersion: v1, kind: ConfigMap, metadata: {name: config, labels: {zaentrum.io/addon: example, app.kubernetes.io/managed-by: zaentrum-operator}}, data: {a: theirs}}`,
		"controlled by another":      `{apiVersion: v1, kind: ConfigMap, metadata: {name: config, ownerReferences: [{apiVersion: zaentrum.io/v1alpha1, kind: ZaentrumAddon, name: another, uid: u, controller: true}]}, data: {a: theirs}}`,
		"owned but not controlled":   `{apiVersion: v1, kind: ConfigMap, metadata: {name: config, ownerReferences: [{apiVersion: zaentrum.io/v1alpha1, kind: ZaentrumAddon, name: example, uid: OURS}]}, data: {a: theirs}}`,
		"of an earlier one like us":  `{apiVersion: v1, kind: ConfigMap, metadata: {name: config, labels: {zaentrum.io/addon: example}, ownerReferences: [{apiVersion: zaentrum.io/v1alpha1, kind: ZaentrumAddon, name: example, uid: former, controller: true}]}, data: {a: theirs}}`,
		"on its way out by somebody": `{apiVersion: v1, kind: ConfigMap, metadata: {name: config, finalizers: [example.org/x]}, data: {a: theirs}}`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			u := b.create(strings.ReplaceAll(text, "OURS", string(b.owner.UID)))
			if strings.HasPrefix(name, "on its way") {
				if err := b.other.Delete(b.ctx, u); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { b.ctx = context.Background(); b.patch(u, `{"metadata":{"finalizers":null}}`) })
			}
			before := b.get("v1", "ConfigMap", "config")
			b.requests.reset()
			wanted := b.decorate(example)
			obs := b.observe(wanted)
			if d := cmp.Diff([]string{"ConfigMap/config"}, names(obs.Taken)); d != "" {
				t.Error(d)
			}
			leaving := strings.HasPrefix(name, "of an earlier") || strings.HasPrefix(name, "on its way")
			if (len(obs.Leaving) == 1) != leaving {
				t.Errorf("leaving: %v", obs.Leaving)
			}
			r, err := b.applied(b.ctx, wanted, obs)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff([]string{"ConfigMap/config"}, names(r.Taken)); d != "" || r.Complete() {
				t.Errorf("complete %v %s", r.Complete(), d)
			}
			if got := b.prune("{}"); len(got) > 0 {
				t.Errorf("pruned %v", got)
			}
			for _, line := range b.requests.all() {
				if !strings.HasPrefix(line, "GET ") {
					t.Errorf("sent %s", line)
				}
			}
			if d := cmp.Diff(before, b.get("v1", "ConfigMap", "config")); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestAnObjectThatIsBeingDeletedIsWaitedFor(t *testing.T) {
	b := newBench(t)
	const text = `{apiVersion: v1, kind: ConfigMap, metadata: {name: config}, data: {a: x}}` + "\n---\n" + `{apiVersion: v1, kind: Secret, metadata: {name: env}}`
	b.mustApply(text)
	u := b.get("v1", "ConfigMap", "config")
	b.patch(u, `{"metadata":{"finalizers":["example.org/x"]}}`)
	if err := b.other.Delete(b.ctx, u); err != nil {
		t.Fatal(err)
	}
	b.requests.reset()
	wanted := b.decorate(text)
	obs := b.observe(wanted)
	if d := cmp.Diff([]string{"ConfigMap/config"}, names(obs.Terminating)); d != "" {
		t.Error(d)
	}
	r, err := b.applied(b.ctx, wanted, obs)
	if err != nil || r.Complete() || !slices.Equal(names(r.Waiting), []string{"ConfigMap/config"}) {
		t.Errorf("%v %+v", err, r)
	}
	if w := b.requests.writes(); len(w) > 0 {
		t.Error(w)
	}
	if got := b.prune("{apiVersion: v1, kind: Secret, metadata: {name: env}}"); len(got) > 0 {
		t.Errorf("pruned %v, which is going already", got)
	}
	b.patch(u, `{"metadata":{"finalizers":null}}`)
	if got := names(b.mustApply(text).Applied); !slices.Equal(got, []string{"ConfigMap/config"}) {
		t.Errorf("applied %v", got)
	}
}
