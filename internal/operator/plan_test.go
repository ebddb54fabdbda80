package operator_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"zaentrum.io/zae/api/v1alpha1"
)

// The plan of an upgrade says what it changes and sets off, and goes on saying it until it is installed.
func TestThePlanOfAnUpgradeSaysWhatChanges(t *testing.T) {
	h := newHouse(t)
	a := h.example()
	a.Spec.Suspend = true
	a = h.create(a, v1alpha1.PhasePlanned)
	if d := cmp.Diff([]string{"generates config.key"}, a.Status.Plan.Effects); d != "" || len(a.Status.Plan.Changes.Modified) > 0 {
		t.Errorf("before the install: %s, modified %v", d, a.Status.Plan.Changes.Modified)
	}

	// The value is kept by now: the plan says so all the same, also after a restart.
	h.change("example", func(a *v1alpha1.ZaentrumAddon) {
		a.Spec.Values = &runtime.RawExtension{Raw: []byte(`{"worker":{"replicas":1}}`)}
	})
	a = h.phase("example", v1alpha1.PhasePlanned)
	again := append([]string{}, a.Status.Plan.Effects...)
	h.stop()
	h.start()
	h.change("example", func(a *v1alpha1.ZaentrumAddon) {
		a.Spec.Values = &runtime.RawExtension{Raw: []byte(`{"worker":{"replicas":2}}`)}
	})
	a = h.phase("example", v1alpha1.PhasePlanned)
	for _, effects := range [][]string{again, a.Status.Plan.Effects} {
		if d := cmp.Diff([]string{"generates config.key"}, effects); d != "" {
			t.Error(d)
		}
	}

	h.change("example", func(a *v1alpha1.ZaentrumAddon) { a.Spec.Suspend = false })
	h.phase("example", v1alpha1.PhaseInstalling)
	h.eventually(func() string {
		h.must(h.Get(t.Context(), h.key("example"), a))
		if p := a.Status.Plan; len(p.Effects)+len(p.Changes.Modified)+len(p.Changes.Added) > 0 {
			return fmt.Sprintf("installed, and the plan still has %+v, %q", p.Changes, p.Effects)
		}
		return ""
	})

	h.secret("zaentrum-addon-example-values-b", "example", map[string]string{"database.url": canary + "-2"})
	h.change("example", func(a *v1alpha1.ZaentrumAddon) {
		a.Spec.Suspend, a.Spec.Chart.Version = true, "1.3.0"
		a.Spec.ValuesFrom = []v1alpha1.ValuesSource{h.from("zaentrum-addon-example-values-b")}
		a.Spec.Values = &runtime.RawExtension{Raw: []byte(`{"worker":{"replicas":3,"logLevel":"debug"}}`)}
	})
	p := h.phase("example", v1alpha1.PhasePlanned).Status.Plan
	fields := map[string][]string{}
	for _, m := range p.Changes.Modified {
		fields[m.Ref().String()] = m.Fields
	}
	const checksum = "spec.template.metadata.annotations[zaentrum.io/values-checksum]"
	if d := cmp.Diff([]string{"data.database-url"}, fields["Secret/example-env"]); d != "" {
		t.Error(d)
	}
	if !slices.Contains(fields["ConfigMap/example-settings"], "data.LOG_LEVEL") {
		t.Errorf("the settings: %q", fields["ConfigMap/example-settings"])
	}
	if d := cmp.Diff([]string{
		"spec.replicas", checksum, "spec.template.spec.containers[worker].envFrom", "spec.template.spec.containers[worker].image",
	}, fields["Deployment/example-worker"]); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{
		"Deployment/example rolls its pods: values checksum, containers[primary].args, containers[primary].image",
		"Deployment/example-worker rolls its pods: values checksum, containers[worker].envFrom, containers[worker].image",
		"Job/example-migrate runs again: its pod template changes (values checksum, containers[migrate].image)",
	}, p.Effects); d != "" {
		t.Error(d)
	}

	h.must(h.Get(t.Context(), h.key("example"), a))
	if !strings.Contains(a.Status.Message, fmt.Sprintf("%d changed", len(p.Changes.Modified))) {
		t.Errorf("the message: %s", a.Status.Message)
	}
}

// What the cluster does not accept is in the plan, before anything is written, and is asked about again.
func TestWhatTheClusterRefusesBlocksThePlan(t *testing.T) {
	h := newHouse(t)
	h.chart("picky", "1.0.0", deployment("picky", "a", "1"))
	h.chart("picky", "2.0.0", deployment("picky", "b", "2")+"---\n"+configMap("picky-new")+"data: {s: {{ .Values.s | quote }}}\n")
	a := h.create(h.addon("picky", "picky", "1.0.0"), v1alpha1.PhaseInstalling)

	h.secret("zaentrum-addon-picky-values-a", "picky", map[string]string{"s": canary})
	h.change("picky", func(a *v1alpha1.ZaentrumAddon) {
		a.Spec.Chart.Version, a.Spec.Suspend = "2.0.0", true
		a.Spec.ValuesFrom = []v1alpha1.ValuesSource{{Kind: v1alpha1.ValuesFromSecret, Name: "zaentrum-addon-picky-values-a", ValuesKey: "s", TargetPath: "s"}}
	})
	refusal := []string{"Deployment/picky: spec.selector cannot be changed on the existing object"}
	check := func(phase v1alpha1.Phase) {
		t.Helper()
		a = h.phase("picky", phase)
		if d := cmp.Diff(refusal, a.Status.Plan.Violations); d != "" || !strings.Contains(a.Status.Message, refusal[0]) {
			t.Error(d, a.Status.Message)
		}
		if h.exists(&corev1.ConfigMap{}, "picky-new") {
			t.Error("something was written")
		}
	}
	check(v1alpha1.PhasePlanFailed)
	h.change("picky", func(a *v1alpha1.ZaentrumAddon) { a.Spec.Suspend = false })
	check(v1alpha1.PhaseFailed)
	if a.Status.LastAppliedChart == nil || a.Status.LastAppliedChart.Version != "1.0.0" {
		t.Errorf("runs: %+v", a.Status.LastAppliedChart)
	}

	// With what stands in the way gone it goes on by itself, though nothing tells of that: a new object.
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/configmaps": {}}}}
	h.must(h.Create(t.Context(), quota))
	quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: quota.Spec.Hard}
	h.must(h.Status().Update(t.Context(), quota))
	h.chart("full", "1.0.0", configMap("full-a"))
	h.eventually(func() string { // the API server's own cache of quotas may be behind
		err := h.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, GenerateName: "probe-"}})
		if err == nil {
			return "the quota does not count yet"
		}
		return ""
	})
	a = h.create(h.addon("full", "full", "1.0.0"), v1alpha1.PhaseFailed)
	if d := cmp.Diff([]string{"ConfigMap/full-a: not accepted by the cluster (Forbidden)"}, a.Status.Plan.Violations); d != "" || h.exists(&corev1.Service{}, "full") {
		t.Error(d)
	}
	h.must(h.Delete(t.Context(), quota))
	h.phase("full", v1alpha1.PhaseReady)
}

func deployment(name, label, tag string) string {
	return fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: %s\nspec:\n  selector: {matchLabels: {app: %s}}\n  template:\n    metadata: {labels: {app: %s}}\n    spec:\n      containers: [{name: c, image: \"example/x:%s\"}]\n", name, label, label, tag)
}

// Without a change of values the pods stay when a Deployment is scaled by hand, and the plan says no more.
func TestAPlanSaysWhatIsTakenBack(t *testing.T) {
	h := newHouse(t)
	h.create(h.example(), v1alpha1.PhaseInstalling)
	h.change("example", func(a *v1alpha1.ZaentrumAddon) { a.Spec.Suspend = true })
	h.phase("example", v1alpha1.PhasePlanned)
	d := &appsv1.Deployment{}
	h.must(h.Get(t.Context(), h.key("example-worker"), d))
	*d.Spec.Replicas = 5
	h.must(h.Update(t.Context(), d))
	h.eventually(func() string {
		a := &v1alpha1.ZaentrumAddon{}
		h.must(h.Get(t.Context(), h.key("example"), a))
		want := []v1alpha1.ModifiedObject{{Kind: "Deployment", Name: "example-worker", Fields: []string{"spec.replicas"}}}
		if d := cmp.Diff(want, a.Status.Plan.Changes.Modified); d != "" || len(a.Status.Plan.Effects) > 0 {
			return d + fmt.Sprint(a.Status.Plan.Effects)
		}
		return ""
	})
}
