package operator_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"zaentrum.io/zae/api/v1alpha1"
)

// gone waits until there is no such resource.
func (h *house) gone(name string) {
	h.Helper()
	h.eventually(func() string {
		a := &v1alpha1.ZaentrumAddon{}
		err := h.Get(h.Context(), h.key(name), a)
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprintf("%s is still there: %v, finalizers %v", name, err, a.Finalizers)
	})
}

// finalizer waits until the resource has the finalizer, or has it no more.
func (h *house) finalizer(name string, want bool) {
	h.Helper()
	h.eventually(func() string {
		a := h.addonNow(name)
		if controllerutil.ContainsFinalizer(a, v1alpha1.FinalizerValues) != want {
			return fmt.Sprintf("finalizers: %v", a.Finalizers)
		}
		return ""
	})
}

// generating pushes a chart that renders its generated inputs into a Secret.
func (h *house) generating(name, version string, inputs ...string) {
	h.Helper()
	var properties, data []string
	for _, in := range inputs {
		properties = append(properties, fmt.Sprintf(`%q:{"type":"string","minLength":1,"writeOnly":true,"x-zaentrum-generate":"random-hex-32"}`, in))
		data = append(data, fmt.Sprintf("%s: {{ .Values.%s | quote }}", in, in))
	}
	h.chartWith(name, version,
		`{"type":"object","required":["`+strings.Join(inputs, `","`)+`"],"properties":{"level":{"type":"integer"},`+strings.Join(properties, ",")+`}}`,
		"apiVersion: v1\nkind: Secret\nmetadata:\n  name: "+name+"-env\nstringData: {"+strings.Join(data, ", ")+"}\n")
}

// chartWith pushes a chart with this schema and one template beside its primary.
func (h *house) chartWith(name, version, schema, template string) {
	h.Helper()
	dir := h.TempDir()
	for file, text := range map[string]string{
		"Chart.yaml":          "apiVersion: v2\nname: " + name + "\nversion: " + version + "\nannotations:\n  zaentrum.io/addon: \"true\"\n  zaentrum.io/primary: " + name + "\n",
		"values.schema.json":  schema,
		"templates/svc.yaml":  "apiVersion: v1\nkind: Service\nmetadata:\n  name: " + name + "\nspec:\n  selector: {app: " + name + "}\n  ports: [{port: 80}]\n",
		"templates/more.yaml": template,
	} {
		h.must(os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755))
		h.must(os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
	}
	h.registry.Push(dir)
}

// runs is what the chart's Secret holds.
func (h *house) runs(name string) map[string][]byte {
	h.Helper()
	return h.secretNow(name + "-env").Data
}

func (h *house) generated(name string) map[string][]byte {
	h.Helper()
	return h.secretNow(v1alpha1.GeneratedSecretName(name)).Data
}

// The value of the first plan is the one that runs, however often it is planned before, and whoever restarts meanwhile.
func TestTheGeneratedValueOfTheFirstPlanRuns(t *testing.T) {
	h := newHouse(t)
	h.generating("gen", "1.0.0", "key")
	a := h.addon("gen", "gen", "1.0.0")
	a.Spec.Suspend = true
	h.create(a, v1alpha1.PhasePlanned)
	first := string(h.generated("gen")["key"])
	for i := range 3 {
		h.change("gen", func(a *v1alpha1.ZaentrumAddon) { a.Spec.Values = rawValues(fmt.Sprintf(`{"level":%d}`, i)) })
		h.phase("gen", v1alpha1.PhasePlanned)
	}
	h.stop()
	h.start()
	h.change("gen", func(a *v1alpha1.ZaentrumAddon) { a.Spec.Suspend = false })
	h.phase("gen", v1alpha1.PhaseReady)
	if got := string(h.runs("gen")["key"]); got != first || len(first) != 64 {
		t.Errorf("%d characters run, %d were planned; the same: %t", len(got), len(first), got == first)
	}
}

// Another generated input of a newer chart leaves the first one's value as it is.
func TestAnUpgradeGeneratesOnlyWhatIsNew(t *testing.T) {
	h := newHouse(t)
	h.generating("gen", "1.0.0", "key")
	h.generating("gen", "2.0.0", "key", "second")
	h.create(h.addon("gen", "gen", "1.0.0"), v1alpha1.PhaseReady)
	first := string(h.runs("gen")["key"])
	h.change("gen", func(a *v1alpha1.ZaentrumAddon) { a.Spec.Chart.Version = "2.0.0" })
	h.phase("gen", v1alpha1.PhaseReady)
	got, kept := h.runs("gen"), h.generated("gen")
	if string(got["key"]) != first || len(got["second"]) != 64 || string(got["second"]) != string(kept["second"]) || string(got["second"]) == first {
		t.Error("the values are not the first one, and one of its own")
	}
	h.change("gen", func(a *v1alpha1.ZaentrumAddon) { a.Spec.Chart.Version = "1.0.0" })
	h.phase("gen", v1alpha1.PhaseReady)
	h.change("gen", func(a *v1alpha1.ZaentrumAddon) { a.Spec.Chart.Version = "2.0.0" })
	h.phase("gen", v1alpha1.PhaseReady)
	if again := h.runs("gen"); string(again["second"]) != string(got["second"]) || string(again["key"]) != first {
		t.Error("a value was made again after a way back and forth")
	}
}

// Two operators that do not know of each other make one value: it is created, never overwritten.
func TestTwoOperatorsMakeOneValue(t *testing.T) {
	h := newHouse(t)
	stop := h.operator(t.TempDir())
	defer stop()
	const addons = 8
	for i := range addons {
		name := fmt.Sprintf("gen%d", i)
		h.generating(name, "1.0.0", "key")
		h.generating(name, "2.0.0", "key", "second", "third")
		h.must(h.Create(t.Context(), h.addon(name, name, "1.0.0")))
	}
	first := map[string]string{}
	for i := range addons {
		name := fmt.Sprintf("gen%d", i)
		h.phase(name, v1alpha1.PhaseReady)
		first[name] = string(h.generated(name)["key"])
		h.change(name, func(a *v1alpha1.ZaentrumAddon) { a.Spec.Chart.Version = "2.0.0" })
	}
	for i := range addons {
		name := fmt.Sprintf("gen%d", i)
		h.eventually(func() string {
			if a := h.addonNow(name); a.Status.LastAppliedChart.Version != "2.0.0" || a.Status.Phase != v1alpha1.PhaseReady {
				return fmt.Sprintf("%s: %s: %s", name, a.Status.Phase, a.Status.Message)
			}
			runs, kept := h.runs(name), h.generated(name)
			for _, path := range []string{"key", "second", "third"} {
				if string(runs[path]) != string(kept[path]) {
					return fmt.Sprintf("%s: %s runs with another value than the one that is kept", name, path)
				}
			}
			return ""
		})
		if string(h.generated(name)["key"]) != first[name] {
			t.Errorf("%s: the first value was replaced", name)
		}
	}
}

// While the Secret of a removed addon may still go or stay, no new value is made beside it.
func TestARemovedAddonsGeneratedValueIsWaitedFor(t *testing.T) {
	h := newHouse(t)
	h.generating("gen", "1.0.0", "key")
	first := h.create(h.addon("gen", "gen", "1.0.0"), v1alpha1.PhaseReady)
	former := h.secretNow(v1alpha1.GeneratedSecretName("gen"))
	h.must(h.Delete(t.Context(), first))
	h.gone("gen")
	h.must(h.Create(t.Context(), h.addon("gen", "gen", "1.0.0"))) // nothing collects here
	h.says("gen", "", "waiting for Secret zaentrum-addon-gen-generated")
	if now := h.secretNow(former.Name); now.UID != former.UID || string(now.Data["key"]) != string(former.Data["key"]) {
		t.Error("the former Secret was replaced")
	}
	// The collector takes what the former addon owned.
	h.collect(first.UID, former, h.secretNow("gen-env"), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "gen"}})
	h.phase("gen", v1alpha1.PhaseReady)
	if got := h.generated("gen"); string(got["key"]) == string(former.Data["key"]) || string(h.runs("gen")["key"]) != string(got["key"]) {
		t.Error("not a value of its own")
	}
}

// What was kept is used again, also when the addon is added while the former one is about to let go.
func TestKeptGeneratedValuesAreUsedAgain(t *testing.T) {
	h := newHouse(t)
	h.generating("gen", "1.0.0", "key")
	h.generating("gen", "2.0.0", "key", "second")
	a := h.create(h.addon("gen", "gen", "1.0.0"), v1alpha1.PhaseReady)
	first := string(h.runs("gen")["key"])
	h.change("gen", func(a *v1alpha1.ZaentrumAddon) {
		metav1.SetMetaDataAnnotation(&a.ObjectMeta, v1alpha1.AnnotationKeepValues, "true")
	})
	h.finalizer("gen", true)
	h.must(h.Delete(t.Context(), a))
	h.eventually(func() string {
		err := h.Create(t.Context(), h.addon("gen", "gen", "2.0.0"))
		if err != nil {
			return err.Error()
		}
		return ""
	})
	h.collect(a.UID, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "gen-env"}}, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "gen"}})
	h.phase("gen", v1alpha1.PhaseReady)
	if got := h.runs("gen"); string(got["key"]) != first || len(got["second"]) != 64 {
		t.Errorf("the kept value is used: %t, and the new one was made: %t", string(got["key"]) == first, len(got["second"]) == 64)
	}
	if s := h.secretNow(v1alpha1.GeneratedSecretName("gen")); s.Labels[v1alpha1.LabelKeep] != "true" || len(s.OwnerReferences) > 0 {
		t.Errorf("labels %v, owners %v", s.Labels, s.OwnerReferences)
	}
}

// A cache that has not seen the Secret is no reason to make the value again, and neither is an answer that was lost.
func TestALostAnswerMakesNoSecondValue(t *testing.T) {
	h := newHouse(t)
	h.generating("gen", "1.0.0", "key")
	h.generating("gen", "2.0.0", "key", "second")
	lost := map[string]int{} // once each: creating the Secret, and extending it
	h.wire.lose(func(r *http.Request) bool {
		path := below(r)
		if !writes(r) || path != "secrets" && path != "secrets/"+v1alpha1.GeneratedSecretName("gen") {
			return false
		}
		lost[r.Method]++
		return lost[r.Method] == 1
	})
	h.must(h.Create(t.Context(), h.addon("gen", "gen", "1.0.0")))
	h.phase("gen", v1alpha1.PhaseReady)
	first := string(h.runs("gen")["key"])
	h.change("gen", func(a *v1alpha1.ZaentrumAddon) { a.Spec.Chart.Version = "2.0.0" })
	h.phase("gen", v1alpha1.PhaseReady)
	if got, kept := h.runs("gen"), h.generated("gen"); string(got["key"]) != first || string(kept["key"]) != first || string(got["second"]) != string(kept["second"]) {
		t.Error("a value was made twice")
	}
	h.wire.lose(nil)
	if lost[http.MethodPost] == 0 || lost[http.MethodPatch] == 0 {
		t.Errorf("these answers were lost: %v", lost)
	}
}

// An addon that is removed while it is worked on, from what the cache still has of it, gets no new value and no Job: those
// that it had may just have been collected.
func TestARemovedAddonGetsNoNewValueAndNoJob(t *testing.T) {
	job := "apiVersion: batch/v1\nkind: Job\nmetadata: {name: gone-job}\nspec:\n  template:\n    spec:\n" +
		"      restartPolicy: Never\n      containers: [{name: c, image: \"x:1\"}]\n"
	for path, made := range map[string]client.Object{
		"secrets/" + v1alpha1.GeneratedSecretName("gone"): &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.GeneratedSecretName("gone")}},
		"jobs/gone-job": &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "gone-job"}},
	} {
		t.Run(path, func(t *testing.T) {
			h := newHouse(t)
			h.chartWith("gone", "1.0.0", `{"type":"object","required":["key"],"properties":{"key":{"type":"string","writeOnly":true,"x-zaentrum-generate":"random-hex-32"}}}`, job)
			var once sync.Once
			h.wire.hook(func(r *http.Request) *http.Response {
				if below(r) == path { // the first look at it, or its dry run
					once.Do(func() {
						if err := h.Delete(r.Context(), h.addon("gone", "", "")); err != nil {
							t.Error(err)
						}
					})
				}
				return nil
			})
			h.must(h.Create(t.Context(), h.addon("gone", "gone", "1.0.0")))
			h.gone("gone")
			h.chart("witness", "1.0.0", configMap("witness"))
			h.create(h.addon("witness", "witness", "1.0.0"), v1alpha1.PhaseReady)
			h.stop()
			if h.exists(made, made.GetName()) {
				t.Error("it was made for an addon that is gone")
			}
		})
	}
}
