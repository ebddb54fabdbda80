package apply_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/internal/apply"
)

// strayed is a drift as text: object, and path by manager.
func strayed(drifted []apply.Drift) []string {
	var out []string
	for _, d := range drifted {
		for _, f := range d.Fields {
			out = append(out, fmt.Sprintf("%s %s by %s", d.ID, f.Path, f.Manager))
		}
	}
	return out
}

func TestAHandEditIsNamedByFieldAndManager(t *testing.T) {
	b := newBench(t)
	b.mustApply(example)
	for name, tc := range map[string]struct {
		apiVersion, kind, name string
		patch                  string
		jsonPatch              bool
		want                   []string
	}{
		"changed values": {"apps/v1", "Deployment", "example",
			`{"spec":{"replicas":5,"template":{"spec":{"securityContext":{"runAsNonRoot":false}}}}}`, false,
			[]string{"Deployment/example spec.replicas by somebody", "Deployment/example spec.template.spec.securityContext.runAsNonRoot by somebody"}},
		"a container's image and variable": {"apps/v1", "Deployment", "example",
			`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"c4n4ry"},{"op":"replace","path":"/spec/template/spec/containers/0/env/1/value","value":"c4n4ry"}]`, true,
			[]string{"Deployment/example spec.template.spec.containers[example].env[A].value by somebody", "Deployment/example spec.template.spec.containers[example].image by somebody"}},
		"a volume that is removed": {"apps/v1", "Deployment", "example", `[{"op":"remove","path":"/spec/template/spec/volumes/1"}]`, true,
			[]string{"Deployment/example spec.template.spec.volumes[config] by "}},
		"a port":               {"v1", "Service", "example", `[{"op":"replace","path":"/spec/ports/1/name","value":"x"}]`, true, []string{"Service/example spec.ports[53/UDP].name by somebody"}},
		"a removed value":      {"v1", "ConfigMap", "config", `{"data":{"a":null}}`, false, []string{"ConfigMap/config data.a by "}},
		"a changed secret":     {"v1", "Secret", "env", `{"data":{"key":"eA=="}}`, false, []string{"Secret/env data.key by somebody"}},
		"a removed secret":     {"v1", "Secret", "env", `{"data":null}`, false, []string{"Secret/env data.key by ", "Secret/env data.url by "}},
		"the addon label":      {"v1", "Service", "example", `{"metadata":{"labels":{"zaentrum.io/addon":null}}}`, false, []string{"Service/example metadata.labels[zaentrum.io/addon] by "}},
		"an atomic list":       {"apps/v1", "Deployment", "example", `{"spec":{"template":{"spec":{"tolerations":[]}}}}`, false, []string{"Deployment/example spec.template.spec.tolerations by "}},
		"our mark":             {"batch/v1", "Job", "setup", `{"metadata":{"annotations":{"zaentrum.io/applied":"x"}}}`, false, []string{"Job/setup metadata.annotations[zaentrum.io/applied] by somebody"}},
		"our mark, and more":   {"v1", "ConfigMap", "config", `{"metadata":{"annotations":{"zaentrum.io/applied":"x"}},"data":{"b":"c4n4ry"}}`, false, []string{"ConfigMap/config data.b by somebody"}},
		"the record of fields": {"v1", "ConfigMap", "config", `{"metadata":{"managedFields":[{}]}}`, false, []string{"ConfigMap/config metadata.managedFields by "}},
	} {
		t.Run(name, func(t *testing.T) {
			u := b.get(tc.apiVersion, tc.kind, tc.name)
			if tc.jsonPatch {
				if err := b.other.Patch(b.ctx, u, client.RawPatch(types.JSONPatchType, []byte(tc.patch)), client.FieldOwner("somebody")); err != nil {
					t.Fatal(err)
				}
			} else {
				b.patch(u, tc.patch)
			}
			r := b.mustApply(example)
			if d := cmp.Diff(tc.want, strayed(r.Drifted)); d != "" {
				t.Error(d)
			}
			if r := b.mustApply(example); len(r.Applied)+len(r.Drifted) > 0 {
				t.Errorf("again: %v", strayed(r.Drifted))
			}
		})
	}
}

func TestTheOneThatHasAFieldNowIsNamed(t *testing.T) {
	b := newBench(t)
	b.mustApply(example)
	for i, who := range []string{"first", "second", "kubectl-edit"} {
		u := b.get("apps/v1", "Deployment", "example")
		patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, 5+i)
		if err := b.other.Patch(b.ctx, u, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(who)); err != nil {
			t.Fatal(err)
		}
	}
	forced := client.ApplyConfigurationFromUnstructured(parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: config, namespace: `+b.owner.Namespace+`}, data: {a: theirs}}`)[0].Unstructured())
	if err := b.other.Apply(b.ctx, forced, client.FieldOwner("another-controller"), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
	want := []string{"ConfigMap/config data.a by another-controller", "Deployment/example spec.replicas by kubectl-edit"}
	if d := cmp.Diff(want, strayed(b.mustApply(example).Drifted)); d != "" {
		t.Error(d)
	}
}

func TestWhatIsWantedAnewIsNoDrift(t *testing.T) {
	b := newBench(t)
	r := b.mustApply(example)
	if len(r.Drifted) > 0 || len(r.Created) != len(everything) {
		t.Errorf("a first apply: %+v", r)
	}
	// Somebody else has the fields before the chart does.
	b.patch(b.get("apps/v1", "Deployment", "example"), `{"spec":{"revisionHistoryLimit":3}}`)
	b.patch(b.get("v1", "Secret", "env"), `{"data":{"theirs":"eA=="}}`)
	next := strings.NewReplacer("replicas: 2", "replicas: 3\n  revisionHistoryLimit: 5", "example/example:1", "example/example:2",
		`key: k}`, `key: l, another: m, theirs: "m"}`, `b: "2"}`, `c: "3"}`).Replace(example)
	r = b.mustApply(next)
	if len(r.Applied) != 3 || len(r.Created) > 0 {
		t.Errorf("an upgrade: %+v", r)
	}
	if len(r.Drifted) > 0 {
		t.Errorf("an upgrade is a drift: %v", strayed(r.Drifted))
	}
	if r = b.mustApply(example); len(r.Drifted) > 0 {
		t.Errorf("the way back is a drift: %v", strayed(r.Drifted))
	}
	if err := b.other.Delete(b.ctx, b.get("v1", "ConfigMap", "config")); err != nil {
		t.Fatal(err)
	}
	if r = b.mustApply(example); len(r.Drifted) > 0 || len(r.Created) != 1 {
		t.Errorf("a deleted object: %+v", r)
	}
}

func TestADriftThatIsOvertakenIsTold(t *testing.T) {
	b := newBench(t)
	b.mustApply(example)
	b.patch(b.get("v1", "ConfigMap", "config"), `{"data":{"a":"theirs"}}`)
	b.patch(b.get("apps/v1", "Deployment", "example"), `{"spec":{"replicas":5}}`)
	wanted := b.decorate(example)
	obs := b.observe(wanted)
	if err := b.other.Delete(b.ctx, b.get("apps/v1", "Deployment", "example")); err != nil {
		t.Fatal(err)
	}
	rehearsal, err := b.cluster.Rehearse(b.ctx, b.owner, wanted, obs, false)
	if err == nil {
		_, err = b.cluster.Apply(b.ctx, b.owner, rehearsal)
	}
	if err == nil {
		t.Fatal("what is gone was changed")
	}
	if d := cmp.Diff([]string{"ConfigMap/config data.a by somebody"}, strayed(b.mustApply(example).Drifted)); d != "" {
		t.Error(d)
	}
}
