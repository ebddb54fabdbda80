package operator_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"zaentrum.io/zae/api/v1alpha1"
)

func TestASuspendedAddonIsPlannedAndNothingIsApplied(t *testing.T) {
	h := newHouse(t)
	a := h.example()
	a.Spec.Suspend = true
	a = h.create(a, v1alpha1.PhasePlanned)
	if p := a.Status.Plan; p == nil || p.Chart.Name != "example" || p.Chart.Version != "1.2.0" || len(p.Objects) != 9 ||
		len(p.Changes.Added) != 9 || len(p.Workloads) != 3 || !strings.HasPrefix(p.Chart.Digest, "sha256:") || p.ValuesSchema == "" {
		t.Errorf("plan: %+v", p)
	}
	if c := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionPlanned); c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != a.Generation {
		t.Errorf("Planned: %+v", c)
	}
	if a.Status.LastAppliedChart != nil || h.exists(&appsv1.Deployment{}, "example") {
		t.Error("a suspended addon was applied")
	}
}

func TestInstallingGoesOnToReadyAndDegraded(t *testing.T) {
	h := newHouse(t)
	a := h.create(h.example(), v1alpha1.PhaseInstalling)
	if a.Status.LastAppliedChart == nil || a.Status.LastAppliedChart.Version != "1.2.0" || a.Status.LastAppliedChart.Digest != a.Status.Plan.Chart.Digest {
		t.Errorf("lastAppliedChart: %+v", a.Status.LastAppliedChart)
	}
	if len(a.Status.Components) != 2 || a.Status.Components[1].Desired != 2 || a.Status.Components[1].Reason == "" {
		t.Errorf("components: %+v", a.Status.Components)
	}
	h.rollout("example", 1, 1)
	h.rollout("example-worker", 2, 2)
	a = h.phase("example", v1alpha1.PhaseReady)
	for _, c := range a.Status.Components {
		if c.Ready != c.Desired || c.Reason != "" {
			t.Errorf("component: %+v", c)
		}
	}
	h.rollout("example-worker", 2, 1)
	h.phase("example", v1alpha1.PhaseDegraded)
	// A plan for another version leaves what runs alone.
	h.rollout("example-worker", 2, 2)
	h.phase("example", v1alpha1.PhaseReady)
	h.change("example", func(a *v1alpha1.ZaentrumAddon) { a.Spec.Chart.Version, a.Spec.Suspend = "1.3.0", true })
	a = h.phase("example", v1alpha1.PhasePlanned)
	if a.Status.LastAppliedChart.Version != "1.2.0" || len(a.Status.Plan.Changes.Added) != 1 || len(a.Status.Plan.Changes.Removed) != 1 || len(a.Status.Plan.Changes.Images) == 0 {
		t.Errorf("%+v, changes %+v", a.Status.LastAppliedChart, a.Status.Plan.Changes)
	}
	if !h.exists(&corev1.ConfigMap{}, "example-legacy") {
		t.Error("a plan removed an object")
	}
	h.change("example", func(a *v1alpha1.ZaentrumAddon) { a.Spec.Suspend = false })
	h.eventually(func() string {
		if h.exists(&corev1.ConfigMap{}, "example-legacy") || !h.exists(&corev1.ConfigMap{}, "example-features") {
			return "the upgrade was not applied"
		}
		return ""
	})
}

// rollout plays the controller that no controller manager does here.
func (h *house) rollout(name string, desired, ready int32) {
	h.Helper()
	d := &appsv1.Deployment{}
	h.must(h.Get(h.Context(), h.key(name), d))
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: desired, UpdatedReplicas: desired,
		ReadyReplicas: ready, AvailableReplicas: ready, UnavailableReplicas: desired - ready,
		Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"}},
	}
	h.must(h.Status().Update(h.Context(), d))
}

func TestPhasesOfWhatCannotBePlanned(t *testing.T) {
	h := newHouse(t)
	for name, tc := range map[string]struct {
		chart, version string
		suspend        bool
		phase          v1alpha1.Phase
		says           string
	}{
		"no-such-version": {"example", "9.9.9", true, v1alpha1.PhasePlanFailed, "9.9.9"},
		"no-such-chart":   {"nothing", "1.0.0", false, v1alpha1.PhaseFailed, "nothing"},
		"violating":       {"violation", "1.0.0", true, v1alpha1.PhasePlanFailed, "2 violations"},
		"violating-too":   {"violation", "1.0.0", false, v1alpha1.PhaseFailed, "2 violations"},
		"input-missing":   {"example", "1.2.0", true, v1alpha1.PhasePlanFailed, "database"},
		"a-name-that-is-longer-than-the-forty-characters": {"tiny", "0.1.0", true, v1alpha1.PhaseFailed, "40"},
	} {
		a := h.addon(name, tc.chart, tc.version)
		a.Spec.Suspend = tc.suspend
		a = h.create(a, tc.phase)
		if !strings.Contains(a.Status.Message, tc.says) {
			t.Errorf("%s: message %q does not say %q", name, a.Status.Message, tc.says)
		}
		if c := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionPlanned); c == nil || c.Status != metav1.ConditionFalse {
			t.Errorf("%s: Planned: %+v", name, c)
		}
	}
	var deployments appsv1.DeploymentList
	h.must(h.List(t.Context(), &deployments, client.InNamespace(h.namespace)))
	if len(deployments.Items) > 0 {
		t.Errorf("applied: %d Deployments", len(deployments.Items))
	}
}

func TestThePlatformMustBeOneAndDerivable(t *testing.T) {
	h := newHouse(t)
	a := h.addon("tiny", "tiny", "0.1.0")
	a.Spec.Suspend = true
	h.create(a, v1alpha1.PhasePlanned)

	second := h.platform("second")
	h.must(h.Create(t.Context(), second))
	h.says("tiny", v1alpha1.PhaseFailed, "platform, second")
	h.must(h.Delete(t.Context(), second))
	h.phase("tiny", v1alpha1.PhasePlanned)

	first := &v1alpha1.Zaentrum{}
	h.must(h.Get(t.Context(), h.key("platform"), first))
	before := first.DeepCopy()
	first.Spec.Identity.Mode = v1alpha1.ModeExternal
	h.must(h.Patch(t.Context(), first, client.MergeFrom(before)))
	h.says("tiny", v1alpha1.PhaseFailed, "issuer")
	h.must(h.Delete(t.Context(), first))
	h.says("tiny", v1alpha1.PhaseFailed, "no Zaentrum platform")
}

func TestGeneratedValuesAreMadeOnce(t *testing.T) {
	h := newHouse(t)
	h.create(h.example(), v1alpha1.PhaseInstalling)
	made := &corev1.Secret{}
	h.must(h.Get(t.Context(), h.key("zaentrum-addon-example-generated"), made))
	key := string(made.Data["config.key"])
	if len(key) != 44 || made.Labels[v1alpha1.LabelAddon] != "example" || len(made.OwnerReferences) != 1 {
		t.Errorf("%d characters, labels %v, owners %v", len(key), made.Labels, made.OwnerReferences)
	}
	same := func(when string) {
		t.Helper()
		again := &corev1.Secret{}
		h.must(h.Get(t.Context(), h.key("zaentrum-addon-example-generated"), again))
		if string(again.Data["config.key"]) != key {
			t.Errorf("%s the value was made again", when)
		}
		rendered := &corev1.Secret{}
		h.must(h.Get(t.Context(), h.key("example-env"), rendered))
		if string(rendered.Data["config-key"]) != key {
			t.Errorf("%s the chart has another value", when)
		}
	}
	same("at first")
	h.change("example", func(a *v1alpha1.ZaentrumAddon) { a.Spec.Chart.Version = "1.3.0" })
	h.eventually(func() string {
		if !h.exists(&corev1.ConfigMap{}, "example-features") {
			return "the upgrade was not applied"
		}
		return ""
	})
	same("after an upgrade")
	h.stop()
	h.start()
	h.change("example", func(a *v1alpha1.ZaentrumAddon) {
		a.Spec.Values = &runtime.RawExtension{Raw: []byte(`{"worker":{"replicas":3}}`)}
	})
	h.eventually(func() string {
		d := &appsv1.Deployment{}
		h.must(h.Get(t.Context(), h.key("example-worker"), d))
		if *d.Spec.Replicas != 3 {
			return "the values were not applied"
		}
		return ""
	})
	same("after a restart")
}

func TestAnotherAddonsGeneratedSecretIsNotTaken(t *testing.T) {
	h := newHouse(t)
	h.secret("zaentrum-addon-example-generated", "", map[string]string{"config.key": "x"})
	h.must(h.Create(t.Context(), h.example()))
	if a := h.phase("example", v1alpha1.PhaseFailed); !strings.Contains(a.Status.Message, "zaentrum-addon-example-generated") {
		t.Errorf("message: %s", a.Status.Message)
	}
}

func TestValuesObjectsMustBelongToTheAddon(t *testing.T) {
	h := newHouse(t)
	h.secret("platform-admin", "a0", map[string]string{"database.url": canary})
	for i, tc := range []struct {
		secret, label string
		optional      bool
		says          string
	}{
		{"platform-admin", "", false, "must start"},
		{"platform-admin", "", true, "must start"},
		{"zaentrum-addon-a2-other", "somebody", false, "labelled"},
		{"zaentrum-addon-a3-other", "somebody", true, "labelled"},
		{"zaentrum-addon-a4-bare", "", false, "labelled"},
		{"zaentrum-addon-a5-bare", "", true, "labelled"},
	} {
		name := fmt.Sprintf("a%d", i)
		if tc.secret != "platform-admin" {
			h.secret(tc.secret, tc.label, map[string]string{"database.url": canary})
		}
		a := h.addon(name, "example", "1.2.0")
		from := h.from(tc.secret)
		from.Optional = tc.optional
		a.Spec.ValuesFrom = []v1alpha1.ValuesSource{from}
		a.Spec.Suspend = true
		a = h.create(a, v1alpha1.PhasePlanFailed)
		if all := strings.Join(a.Status.Plan.ValuesErrors, "\n"); !strings.Contains(all, tc.secret) || !strings.Contains(all, tc.says) {
			t.Errorf("%s optional=%t: %s", tc.secret, tc.optional, all)
		}
	}
	// A missing one is tolerated when it is optional.
	a := h.addon("tiny", "tiny", "0.1.0")
	a.Spec.Suspend = true
	a.Spec.ValuesFrom = []v1alpha1.ValuesSource{{Kind: v1alpha1.ValuesFromConfigMap, Name: "zaentrum-addon-tiny-x", Optional: true}}
	h.create(a, v1alpha1.PhasePlanned)
}

func TestValuesSecretsAreAdoptedAndCleanedUp(t *testing.T) {
	h := newHouse(t)
	h.create(h.example(), v1alpha1.PhaseInstalling)
	old := &corev1.Secret{}
	h.eventually(func() string {
		h.must(h.Get(t.Context(), h.key("zaentrum-addon-example-values-a"), old))
		if len(old.OwnerReferences) != 1 || old.OwnerReferences[0].Name != "example" {
			return fmt.Sprintf("owners: %v", old.OwnerReferences)
		}
		return ""
	})
	h.secret("zaentrum-addon-example-values-b", "example", map[string]string{"database.url": canary})
	h.must(h.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: h.namespace, Name: "zaentrum-addon-example-values-kept",
			Labels: map[string]string{v1alpha1.LabelAddon: "example", v1alpha1.LabelKeep: "true"},
		},
		StringData: map[string]string{"database.url": canary},
	}))
	h.secret("zaentrum-addon-nobody-values-a", "nobody", map[string]string{"database.url": canary})
	h.change("example", func(a *v1alpha1.ZaentrumAddon) { a.Spec.ValuesFrom[0].Name = "zaentrum-addon-example-values-b" })

	stamped := func(name string) string {
		s := &corev1.Secret{}
		h.must(h.Get(t.Context(), h.key(name), s))
		return s.Annotations[v1alpha1.AnnotationUnreferencedSince]
	}
	look := func() { // anything that makes the janitor look again
		h.change("example", func(a *v1alpha1.ZaentrumAddon) {
			metav1.SetMetaDataAnnotation(&a.ObjectMeta, "look", h.clock.now().String())
		})
		s := &corev1.Secret{}
		if h.exists(s, "zaentrum-addon-nobody-values-a") {
			before := s.DeepCopy()
			s.Labels["look"] = fmt.Sprint(h.clock.now().UnixNano())
			h.must(h.Patch(t.Context(), s, client.MergeFrom(before)))
		}
	}
	time.Sleep(300 * time.Millisecond)
	if stamped("zaentrum-addon-example-values-a")+stamped("zaentrum-addon-nobody-values-a") != "" {
		t.Error("the moment is noted at once: a Secret that is about to be used is written to twice")
	}
	noticed := h.clock.now()
	h.clock.step(10 * time.Second)
	look()
	h.eventually(func() string {
		if stamped("zaentrum-addon-example-values-a") == "" || stamped("zaentrum-addon-nobody-values-a") == "" {
			return "the moment is not kept on the Secrets"
		}
		if stamped("zaentrum-addon-example-values-b") != "" || stamped("zaentrum-addon-example-values-kept") != "" {
			return "the moment is kept on a Secret that is used or kept"
		}
		return ""
	})
	if at, err := time.Parse(time.RFC3339, stamped("zaentrum-addon-example-values-a")); err != nil || at.After(noticed) {
		t.Errorf("noted is %s, not the moment it was noticed, before %s", at, noticed)
	}
	// A restart does not forget the moment.
	h.stop()
	h.clock.step(9 * time.Minute)
	h.start()
	look()
	time.Sleep(300 * time.Millisecond)
	if !h.exists(&corev1.Secret{}, "zaentrum-addon-example-values-a") {
		t.Fatal("deleted before ten minutes")
	}
	h.clock.step(2 * time.Minute)
	look()
	h.eventually(func() string {
		if h.exists(&corev1.Secret{}, "zaentrum-addon-example-values-a") {
			return "not deleted after ten minutes"
		}
		return ""
	})
	h.clock.step(45 * time.Minute)
	look()
	time.Sleep(300 * time.Millisecond)
	if !h.exists(&corev1.Secret{}, "zaentrum-addon-nobody-values-a") {
		t.Fatal("deleted before an hour")
	}
	h.clock.step(10 * time.Minute)
	look()
	h.eventually(func() string {
		if h.exists(&corev1.Secret{}, "zaentrum-addon-nobody-values-a") {
			return "not deleted after an hour"
		}
		return ""
	})
	for _, name := range []string{"zaentrum-addon-example-values-b", "zaentrum-addon-example-values-kept", "zaentrum-addon-example-generated"} {
		if !h.exists(&corev1.Secret{}, name) {
			t.Errorf("%s is gone", name)
		}
	}
}

func TestKeepingValues(t *testing.T) {
	h := newHouse(t)
	h.create(h.example(), v1alpha1.PhaseInstalling)
	finalizer := func(want bool) {
		t.Helper()
		h.eventually(func() string {
			a := &v1alpha1.ZaentrumAddon{}
			h.must(h.Get(t.Context(), h.key("example"), a))
			if controllerutil.ContainsFinalizer(a, v1alpha1.FinalizerValues) != want {
				return fmt.Sprintf("finalizers: %v", a.Finalizers)
			}
			return ""
		})
	}
	keep := func(value string) {
		h.change("example", func(a *v1alpha1.ZaentrumAddon) {
			metav1.SetMetaDataAnnotation(&a.ObjectMeta, v1alpha1.AnnotationKeepValues, value)
		})
	}
	owned := func(want int) {
		t.Helper()
		h.eventually(func() string {
			for _, name := range []string{"zaentrum-addon-example-values-a", "zaentrum-addon-example-generated"} {
				s := &corev1.Secret{}
				h.must(h.Get(t.Context(), h.key(name), s))
				if len(s.OwnerReferences) != want {
					return fmt.Sprintf("%s has %d owners, not %d", name, len(s.OwnerReferences), want)
				}
			}
			return ""
		})
	}
	finalizer(false)
	owned(1)
	keep("true")
	finalizer(true)
	owned(0)      // so that no deletion, not even one in the foreground, takes them along
	keep("false") // leaves no trace
	finalizer(false)
	owned(1)
	declined := h.secret("zaentrum-addon-example-values-declined", "example", map[string]string{"database.url": canary})
	keep("true")
	finalizer(true)
	a := h.phase("example", v1alpha1.PhaseInstalling)
	h.must(h.Delete(t.Context(), a))
	h.eventually(func() string {
		if err := h.Get(t.Context(), h.key("example"), &v1alpha1.ZaentrumAddon{}); err == nil {
			return "the finalizer does not let go"
		}
		return ""
	})
	for _, name := range []string{"zaentrum-addon-example-values-a", "zaentrum-addon-example-generated"} {
		s := &corev1.Secret{}
		h.must(h.Get(t.Context(), h.key(name), s))
		if s.Labels[v1alpha1.LabelKeep] != "true" || len(s.OwnerReferences) > 0 {
			t.Errorf("%s: labels %v, owners %v", name, s.Labels, s.OwnerReferences)
		}
	}
	h.must(client.IgnoreNotFound(h.Get(t.Context(), client.ObjectKeyFromObject(declined), declined)))
	if declined.Labels[v1alpha1.LabelKeep] == "true" {
		t.Error("a Secret is kept that nothing referred to")
	}
}

func TestNothingIsKeptWithoutAPlatform(t *testing.T) {
	h := newHouse(t)
	h.create(h.example(), v1alpha1.PhaseInstalling)
	h.change("example", func(a *v1alpha1.ZaentrumAddon) {
		metav1.SetMetaDataAnnotation(&a.ObjectMeta, v1alpha1.AnnotationKeepValues, "true")
		controllerutil.AddFinalizer(a, v1alpha1.FinalizerValues)
	})
	h.must(h.Delete(t.Context(), h.platform("platform")))
	h.must(h.Delete(t.Context(), h.addon("example", "", "")))
	h.eventually(func() string {
		if err := h.Get(t.Context(), h.key("example"), &v1alpha1.ZaentrumAddon{}); err == nil {
			return "the finalizer does not let go"
		}
		return ""
	})
	s := &corev1.Secret{}
	h.must(h.Get(t.Context(), h.key("zaentrum-addon-example-values-a"), s))
	if s.Labels[v1alpha1.LabelKeep] == "true" {
		t.Error("kept for nobody")
	}
}

func TestARegistryThatIsDownDoesNotFailWhatRuns(t *testing.T) {
	h := newHouse(t)
	h.create(h.example(), v1alpha1.PhaseInstalling)
	h.rollout("example", 1, 1)
	h.rollout("example-worker", 2, 2)
	h.phase("example", v1alpha1.PhaseReady)
	h.registry.Close()
	h.stop()
	h.start() // the archive survives a restart
	h.change("example", func(a *v1alpha1.ZaentrumAddon) { metav1.SetMetaDataAnnotation(&a.ObjectMeta, "look", "again") })
	h.eventually(func() string {
		a := &v1alpha1.ZaentrumAddon{}
		h.must(h.Get(t.Context(), h.key("example"), a))
		if a.Status.Phase != v1alpha1.PhaseReady {
			return string(a.Status.Phase) + ": " + a.Status.Message
		}
		if !strings.Contains(a.Status.Message, "registry") {
			return "the message does not say that the registry is down: " + a.Status.Message
		}
		return ""
	})
}

// TestTheResourceRefusesWhatItCanCheckItself is about the rules in the CRD.
func TestTheResourceRefusesWhatItCanCheckItself(t *testing.T) {
	h := newHouse(t)
	for _, c := range []v1alpha1.ChartSource{
		{Ref: "http://example.org/chart-1.0.0.tgz"},
		{Ref: "oci://example.org/charts/example"},
		{Ref: "oci://example.org/charts/example:1.0.0", Version: "1.0.0"},
		{Ref: "oci://example.org/charts/example@sha256:x", Version: "1.0.0"},
		{Ref: "oci://example.org/charts/example", Version: "not a tag"},
		{Ref: "oci://example.org/charts/example", Version: "1.0.0", Digest: "sha256:short"},
		{Ref: "", Version: "1.0.0"},
	} {
		a := h.addon("refused", "", "")
		a.Spec.Chart = c
		if err := h.Create(context.Background(), a); err == nil {
			t.Errorf("accepted: %+v", c)
			h.must(h.Delete(t.Context(), a))
		}
	}
	a := h.addon("port", "", "")
	a.Spec.Chart.Ref = "oci://example.org:5000/charts/example"
	a.Spec.Chart.Version = "1.0.0"
	h.must(h.Create(t.Context(), a, client.DryRunAll))
}

// chart pushes a chart with one template beside its primary.
func (h *house) chart(name, version, template string) {
	h.Helper()
	dir := h.TempDir()
	for file, text := range map[string]string{
		"Chart.yaml":          "apiVersion: v2\nname: " + name + "\nversion: " + version + "\nannotations:\n  zaentrum.io/addon: \"true\"\n  zaentrum.io/primary: " + name + "\n",
		"values.schema.json":  `{"type":"object","properties":{"s":{"type":"string","writeOnly":true}}}`,
		"templates/svc.yaml":  "apiVersion: v1\nkind: Service\nmetadata:\n  name: " + name + "\nspec:\n  selector: {app: " + name + "}\n  ports: [{port: 80}]\n",
		"templates/more.yaml": template,
	} {
		h.must(os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755))
		h.must(os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
	}
	h.registry.Push(dir)
}

func configMap(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n"
}

func TestASecretThatAChartPutsElsewhereDoesNotShow(t *testing.T) {
	h := newHouse(t)
	for i, template := range []string{
		"apiVersion: v1\nkind: \"{{ .Values.s }}\"\nmetadata:\n  name: x\n",
		"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n\"{{ .Values.s }}\": b\n",
		"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n  labels: {\"{{ .Values.s }}\": 5}\n",
		"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: \"{{ .Values.s | lower }}\"\n",
		"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: \"{{ .Values.s | b64enc }}\"\n",
		"apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: w\nspec:\n  template:\n    spec:\n      restartPolicy: Never\n      containers: [{name: c, image: \"x:{{ .Values.s }}\"}]\n      volumes: [{name: v, secret: {secretName: \"{{ .Values.s }}\"}}]\n",
	} {
		name := fmt.Sprintf("leak%d", i)
		h.chart(name, "1.0.0", template)
		secret := "zaentrum-addon-" + name + "-values-a"
		h.secret(secret, name, map[string]string{"s": canary})
		a := h.addon(name, name, "1.0.0")
		a.Spec.Suspend = true
		a.Spec.ValuesFrom = []v1alpha1.ValuesSource{{Kind: v1alpha1.ValuesFromSecret, Name: secret, ValuesKey: "s", TargetPath: "s"}}
		h.must(h.Create(t.Context(), a))
		h.eventually(func() string {
			h.must(h.Get(t.Context(), h.key(name), a))
			if a.Status.ObservedGeneration == 0 {
				return "not planned"
			}
			return ""
		})
		if text := fmt.Sprintf("%+v", a.Status.Plan); strings.Contains(text, canary) || !strings.Contains(text, "[redacted]") {
			t.Errorf("%s: %s", template, text)
		}
	} // and the house searches everything else when it closes
}

func TestASlowRegistryHoldsUpNobodyElse(t *testing.T) {
	h := newHouse(t)
	for i := range 20 {
		a := h.addon(fmt.Sprintf("slow%d", i), "", "1.0.0")
		a.Spec.Chart.Ref = "oci://" + h.slow + "/charts/" + a.Name
		h.must(h.Create(t.Context(), a))
	}
	start := time.Now()
	a := h.addon("tiny", "tiny", "0.1.0")
	a.Spec.Suspend = true
	h.create(a, v1alpha1.PhasePlanned)
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("planned after %v behind 20 addons with a registry that never answers", took)
	}
	h.says("slow0", "", "waiting for the registry")
}

func TestComponentsAreReadWhenTheChartIsGone(t *testing.T) {
	h := newHouse(t)
	h.create(h.example(), v1alpha1.PhaseInstalling)
	h.rollout("example", 1, 1)
	h.rollout("example-worker", 2, 2)
	h.phase("example", v1alpha1.PhaseReady)
	h.change("example", func(a *v1alpha1.ZaentrumAddon) { a.Spec.Chart.Version, a.Spec.Suspend = "9.9.9", true })
	h.phase("example", v1alpha1.PhasePlanFailed)
	h.rollout("example-worker", 2, 1)
	h.eventually(func() string {
		a := &v1alpha1.ZaentrumAddon{}
		h.must(h.Get(t.Context(), h.key("example"), a))
		if len(a.Status.Components) != 2 || a.Status.Components[1].Ready != 1 {
			return fmt.Sprintf("components: %+v", a.Status.Components)
		}
		return ""
	})
}

func TestARefusalOfManyObjectsIsTold(t *testing.T) {
	h := newHouse(t)
	h.chart("many", "1.0.0", "{{ range until 450 }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ printf \"cm-%04d-%s\" . (repeat 60 \"x\") }}\ndata: {\"bad key\": x}\n{{ end }}\n")
	h.must(h.Create(t.Context(), h.addon("many", "many", "1.0.0")))
	h.says("many", v1alpha1.PhaseFailed, "450 violations")
}

func TestWhatAFormerAddonLeftIsWaitedFor(t *testing.T) {
	h := newHouse(t)
	h.chart("again", "1.0.0", configMap("again-a"))
	first := h.create(h.addon("again", "again", "1.0.0"), v1alpha1.PhaseReady)
	h.must(h.Delete(t.Context(), first))
	// Nothing collects here: the former objects stay until the test plays the collector.
	h.must(h.Create(t.Context(), h.addon("again", "again", "1.0.0")))
	h.says("again", "", "waiting for the former")
	h.collect(first.UID, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "again-a"}}, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "again"}})
	h.phase("again", v1alpha1.PhaseReady)
}
