package portal_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/registry"
	"zaentrum.io/zae/internal/registry/capability"
)

func TestPostCreatesASuspendedAddonWithItsSecretInputsInOneNewSecret(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var out apitype.WriteAnswer
	b.answer(http.MethodPost, apitype.PathAddonCharts, `{"chart":"oci://charts.example.org/charts/example:1.2.0","digest":"`+digestA+`",
		"values":{"worker":{"replicas":2,"big":10737418240,"share":0.5},"gone":null,"list":[1,{"a":null}]},
		"secretValues":{"database.url":"postgres://`+canary+`","config.key":"`+canary+`"},
		"secretRefs":{"mail.password":{"name":"zaentrum-addon-example-kept"},"mail.user":{"name":"zaentrum-addon-example-kept","key":"user"}}}`,
		http.StatusAccepted, &out)
	want := apitype.WriteAnswer{Name: "example", Generation: 1, Chart: apitype.Chart{Ref: exampleRef, Version: "1.2.0", Digest: digestA}}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Error(diff)
	}
	secrets := b.secrets()
	if len(secrets) != 1 {
		t.Fatalf("%d Secrets", len(secrets))
	}
	s := secrets[0]
	if !valuesSecretName.MatchString(s.Name) || s.Type != corev1.SecretTypeOpaque || len(s.OwnerReferences) != 0 {
		t.Errorf("Secret %s of type %s", s.Name, s.Type)
	}
	if diff := cmp.Diff(map[string]string{v1alpha1.LabelAddon: "example"}, s.Labels); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string][]byte{"database.url": []byte("postgres://" + canary), "config.key": []byte(canary)}, s.Data); diff != "" {
		t.Error(diff)
	}
	a := b.addon("example")
	if !a.Spec.Suspend || a.Spec.Chart != (v1alpha1.ChartSource{Ref: exampleRef, Version: "1.2.0", Digest: digestA}) {
		t.Errorf("spec %+v", a.Spec)
	}
	if diff := cmp.Diff([]v1alpha1.ValuesSource{
		secretEntry(s.Name, "config.key", "config.key"), secretEntry(s.Name, "database.url", "database.url"),
		secretEntry("zaentrum-addon-example-kept", "mail.password", "mail.password"),
		secretEntry("zaentrum-addon-example-kept", "user", "mail.user"),
	}, a.Spec.ValuesFrom); diff != "" {
		t.Error(diff)
	}
	// Numbers keep their shape, and null, which deletes a chart's default, survives.
	if got, want := string(a.Spec.Values.Raw), `{"gone":null,"list":[1,{"a":null}],"worker":{"big":10737418240,"replicas":2,"share":0.5}}`; !sameJSON(t, got, want) {
		t.Errorf("values %s", got)
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	read := func(text string) (v any) {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	return cmp.Equal(read(a), read(b))
}

func TestPostOnAnExistingAddonReplacesValuesAddsSecretInputsAndSuspends(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.commit("example", v1alpha1.ZaentrumAddonSpec{
		Chart:  v1alpha1.ChartSource{Ref: exampleRef, Version: "1.1.0", Digest: digestB},
		Values: &runtime.RawExtension{Raw: []byte(`{"old":true}`)},
		ValuesFrom: []v1alpha1.ValuesSource{
			{Kind: v1alpha1.ValuesFromConfigMap, Name: "zaentrum-addon-example-base", Optional: true},
			secretEntry("zaentrum-addon-example-git", "url", "database.url"),
			{Kind: v1alpha1.ValuesFromConfigMap, Name: "zaentrum-addon-example-base", ValuesKey: "level", TargetPath: "worker.logLevel"},
			secretEntry("zaentrum-addon-example-git", "key", "config.key"),
		},
	})
	var out apitype.WriteAnswer
	b.answer(http.MethodPost, apitype.PathAddonCharts, `{"chart":"`+exampleRef+`","version":"1.2.0","secretValues":{"zeta":"`+canary+`","database.url":"`+canary+`","alpha":"`+canary+`"}}`,
		http.StatusAccepted, &out)
	if out.Generation != 2 {
		t.Errorf("generation %d", out.Generation)
	}
	a := b.addon("example")
	if !a.Spec.Suspend || a.Spec.Chart != exampleChart() || a.Spec.Values != nil {
		t.Errorf("spec %+v", a.Spec)
	}
	secrets := b.secrets()
	if len(secrets) != 1 || len(secrets[0].Data) != 3 {
		t.Fatalf("Secrets %d", len(secrets))
	}
	made := secrets[0].Name
	if diff := cmp.Diff([]v1alpha1.ValuesSource{
		{Kind: v1alpha1.ValuesFromConfigMap, Name: "zaentrum-addon-example-base", Optional: true},
		secretEntry(made, "database.url", "database.url"),
		{Kind: v1alpha1.ValuesFromConfigMap, Name: "zaentrum-addon-example-base", ValuesKey: "level", TargetPath: "worker.logLevel"},
		secretEntry("zaentrum-addon-example-git", "key", "config.key"),
		secretEntry(made, "alpha", "alpha"), secretEntry(made, "zeta", "zeta"),
	}, a.Spec.ValuesFrom); diff != "" {
		t.Error(diff)
	}
}

func TestEveryWriteOfSecretInputsMakesANewSecretAndLeavesTheEarlierOnes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var out apitype.WriteAnswer
	b.answer(http.MethodPost, apitype.PathAddonCharts, `{"chart":"`+exampleRef+`:1.2.0","secretValues":{"a":"`+canary+`1","b":"`+canary+`2"}}`, http.StatusAccepted, &out)
	first := b.secrets()[0]
	b.answer(http.MethodPatch, chartPath("example"), `{"secretValues":{"b":"`+canary+`3"}}`, http.StatusAccepted, &out)
	if out.Generation != 2 {
		t.Errorf("a secret change is a new generation, got %d", out.Generation)
	}
	secrets := b.secrets()
	if len(secrets) != 2 {
		t.Fatalf("%d Secrets", len(secrets))
	}
	for _, s := range secrets {
		if s.Name == first.Name {
			if s.ResourceVersion != first.ResourceVersion {
				t.Error("the earlier Secret was changed")
			}
		} else if diff := cmp.Diff(map[string][]byte{"b": []byte(canary + "3")}, s.Data); diff != "" {
			t.Error(diff)
		}
	}
	from := b.addon("example").Spec.ValuesFrom
	if len(from) != 2 || from[0].Name != first.Name || from[1].Name == first.Name {
		t.Errorf("values from %+v", from)
	}
}

func TestPatch(t *testing.T) {
	t.Parallel()
	const https = "https://example.org/charts/example-1.2.0.tgz"
	pinned := v1alpha1.ChartSource{Ref: exampleRef, Version: "1.2.0", Digest: digestA}
	for name, tc := range map[string]struct {
		chart   v1alpha1.ChartSource // pinned when empty
		body    string
		want    v1alpha1.ChartSource
		suspend bool
		values  string // of the resource afterwards; {"kept":1} when empty
		same    bool   // no new generation
	}{
		"a new version suspends and drops the digest": {
			body: `{"version":"1.3.0"}`, want: v1alpha1.ChartSource{Ref: exampleRef, Version: "1.3.0"}, suspend: true,
		},
		"a new version with a digest has that one": {
			body: `{"version":"1.3.0","digest":"` + digestB + `"}`, want: v1alpha1.ChartSource{Ref: exampleRef, Version: "1.3.0", Digest: digestB}, suspend: true,
		},
		"a new digest suspends": {
			body: `{"digest":"` + digestB + `"}`, want: v1alpha1.ChartSource{Ref: exampleRef, Version: "1.2.0", Digest: digestB}, suspend: true,
		},
		"an empty digest drops it": {
			body: `{"digest":""}`, want: exampleChart(), suspend: true,
		},
		"suspend false with a new version applies it at once": {
			body: `{"version":"1.3.0","suspend":false}`, want: v1alpha1.ChartSource{Ref: exampleRef, Version: "1.3.0"},
		},
		"the version there is is not a new one": {
			body: `{"version":"1.2.0"}`, want: pinned, same: true,
		},
		"the chart there is, written with its tag, is not a new one": {
			body: `{"chart":"` + exampleRef + `:1.2.0"}`, want: pinned, same: true,
		},
		"a tag is the version": {
			body: `{"chart":"` + exampleRef + `:2.0.0"}`, want: v1alpha1.ChartSource{Ref: exampleRef, Version: "2.0.0"}, suspend: true,
		},
		"another oci chart keeps the version": {
			body: `{"chart":"oci://mirror.example.org/example"}`, want: v1alpha1.ChartSource{Ref: "oci://mirror.example.org/example", Version: "1.2.0"}, suspend: true,
		},
		"an archive instead has no version": {
			body: `{"chart":"` + https + `"}`, want: v1alpha1.ChartSource{Ref: https}, suspend: true,
		},
		"values are replaced and do not suspend": {
			body: `{"values":{"new":[true]}}`, want: pinned, values: `{"new":[true]}`,
		},
		"empty values take all away": {
			body: `{"values":{}}`, want: pinned, values: `null`,
		},
		"suspend alone": {
			body: `{"suspend":true}`, want: pinned, suspend: true,
		},
		"a chart that was not canonical is still the same": {
			chart: v1alpha1.ChartSource{Ref: "oci://CHARTS.example.org/charts/example", Version: "1.2.0", Digest: digestA},
			body:  `{"chart":"oci://CHARTS.example.org/charts/example","version":"1.2.0"}`,
			want:  v1alpha1.ChartSource{Ref: "oci://CHARTS.example.org/charts/example", Version: "1.2.0", Digest: digestA}, same: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			if tc.chart.Ref == "" {
				tc.chart = pinned
			}
			b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: tc.chart, Values: &runtime.RawExtension{Raw: []byte(`{"kept":1}`)}})
			var out apitype.WriteAnswer
			b.answer(http.MethodPatch, chartPath("example"), tc.body, http.StatusAccepted, &out)
			a := b.addon("example")
			if a.Spec.Chart != tc.want || a.Spec.Suspend != tc.suspend {
				t.Errorf("spec %+v", a.Spec)
			}
			if tc.values == "" {
				tc.values = `{"kept":1}`
			}
			values, err := json.Marshal(a.Spec.Values)
			b.must(err)
			if !sameJSON(t, string(values), tc.values) {
				t.Errorf("values %s", values)
			}
			if same := a.Generation == 1; same != tc.same || out.Generation != a.Generation {
				t.Errorf("generation %d, answered %d", a.Generation, out.Generation)
			}
			if want := (apitype.Chart{Ref: tc.want.Ref, Version: tc.want.Version, Digest: tc.want.Digest}); out.Chart != want {
				t.Errorf("answered %+v", out.Chart)
			}
		})
	}
}

func TestPatchOfSecretInputsKeepsWhatItDoesNotName(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart(), ValuesFrom: []v1alpha1.ValuesSource{
		secretEntry("zaentrum-addon-example-a", "old", "twice"),
		{Kind: v1alpha1.ValuesFromSecret, Name: "zaentrum-addon-example-doc"},
		secretEntry("zaentrum-addon-example-a", "cleared", "cleared"),
		secretEntry("zaentrum-addon-example-a", "new", "twice"),
		secretEntry("zaentrum-addon-example-a", "", "kept"),
		secretEntry("zaentrum-addon-example-b", "cleared", "cleared"),
	}})
	var out apitype.WriteAnswer
	b.answer(http.MethodPatch, chartPath("example"), `{"clearSecrets":["cleared"],"secretRefs":{"twice":{"name":"zaentrum-addon-example-c"}}}`, http.StatusAccepted, &out)
	a := b.addon("example")
	if diff := cmp.Diff([]v1alpha1.ValuesSource{
		{Kind: v1alpha1.ValuesFromSecret, Name: "zaentrum-addon-example-doc"},
		secretEntry("zaentrum-addon-example-c", "twice", "twice"),
		secretEntry("zaentrum-addon-example-a", "", "kept"),
	}, a.Spec.ValuesFrom); diff != "" {
		t.Error(diff)
	}
	if a.Spec.Suspend {
		t.Error("a change of secret inputs suspended the addon")
	}
	if len(b.secrets()) != 0 {
		t.Error("references made a Secret")
	}
}

func TestGetTellsEverythingButTheSecrets(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.commit("example", v1alpha1.ZaentrumAddonSpec{
		Chart: exampleChart(), Suspend: true, Values: &runtime.RawExtension{Raw: []byte(`{"worker":{"big":10737418240}}`)},
		ValuesFrom: []v1alpha1.ValuesSource{
			{Kind: v1alpha1.ValuesFromSecret, Name: "zaentrum-addon-example-doc"},
			{Kind: v1alpha1.ValuesFromConfigMap, Name: "zaentrum-addon-example-map", ValuesKey: "x", TargetPath: "plain"},
			secretEntry("zaentrum-addon-example-a", "k", "z.last"), secretEntry("zaentrum-addon-example-a", "", "a.first"),
		},
	})
	a := b.operate("example", func(a *v1alpha1.ZaentrumAddon) {
		running(a)
		a.Status.Message = "all well"
		a.Status.Jobs = []v1alpha1.JobRun{{Name: "example-migrate", State: v1alpha1.JobComplete, FinishTime: ptr.To(metav1.Now().Rfc3339Copy()), Deleted: true, Run: "1"}}
	})
	b.must(b.registry.Register(t.Context(), registry.Registration{
		Source: registry.SourceChart, Manifest: &capability.Manifest{Service: "example"}, Place: capability.Place{ProxyURL: "http://example", Workload: "example"},
	}))
	b.must(b.registry.Fail(t.Context(), "example", "did not answer", a.CreationTimestamp.Time))
	var got apitype.AddonChart
	b.answer(http.MethodGet, chartPath("example"), nil, http.StatusOK, &got)
	want := apitype.AddonChart{
		Name: "example", Chart: apitype.Chart{Ref: exampleRef, Version: "1.2.0"}, Suspended: true, Phase: v1alpha1.PhaseReady, Message: "all well",
		Generation: 1, ObservedGeneration: 1, Plan: a.Status.Plan, Components: a.Status.Components, Jobs: a.Status.Jobs, LastAppliedChart: a.Status.LastAppliedChart,
		Values:     map[string]any{"worker": map[string]any{"big": float64(10737418240)}},
		SecretKeys: []string{"a.first", "z.last"},
		SecretRefs: map[string]apitype.SecretRef{
			"a.first": {Name: "zaentrum-addon-example-a", Key: "values.yaml"}, "z.last": {Name: "zaentrum-addon-example-a", Key: "k"},
		},
		Registered: true, RegistrationError: "did not answer",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if raw := b.do(http.MethodGet, chartPath("example"), nil).body; !strings.Contains(string(raw), `"big":10737418240`) {
		t.Errorf("an integer lost its shape: %s", raw)
	}
}

func TestGetOfAFreshAddonHasListsAndNoNulls(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
	raw := string(b.do(http.MethodGet, chartPath("example"), nil).body)
	for _, want := range []string{`"components":[]`, `"jobs":[]`, `"values":{}`, `"secretKeys":[]`, `"secretRefs":{}`, `"phase":""`} {
		if !strings.Contains(raw, want) {
			t.Errorf("no %s in %s", want, raw)
		}
	}
}

func TestInstall(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		operate func(*v1alpha1.ZaentrumAddon)
		code    string // of the refusal; empty when it installs
	}{
		"a current clean plan":     {operate: planned},
		"nothing planned yet":      {code: "no-current-plan"},
		"a plan of an earlier one": {operate: func(a *v1alpha1.ZaentrumAddon) { planned(a); a.Status.ObservedGeneration = 0 }, code: "no-current-plan"},
		"violations": {operate: func(a *v1alpha1.ZaentrumAddon) {
			planned(a)
			a.Status.Plan.Violations = []string{"Deployment/x: hostPath volume not allowed"}
		}, code: "plan-blocked"},
		"values errors": {operate: func(a *v1alpha1.ZaentrumAddon) {
			planned(a)
			a.Status.Plan.ValuesErrors = []string{"database.url: is required"}
		}, code: "plan-blocked"},
		"no plan at all": {operate: func(a *v1alpha1.ZaentrumAddon) {
			planned(a)
			a.Status.Plan, a.Status.Phase = nil, v1alpha1.PhasePlanFailed
		}, code: "no-current-plan"},
		"an earlier plan kept while planning fails": {operate: func(a *v1alpha1.ZaentrumAddon) {
			planned(a)
			a.Status.Phase = v1alpha1.PhasePlanFailed
		}, code: "no-current-plan"},
		"a condition that says no": {operate: func(a *v1alpha1.ZaentrumAddon) {
			planned(a)
			a.Status.Conditions = []metav1.Condition{{
				Type: v1alpha1.ConditionPlanned, Status: metav1.ConditionFalse, Reason: "ChartUnreachable", LastTransitionTime: metav1.Now(),
			}}
		}, code: "no-current-plan"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart(), Suspend: true})
			if tc.operate != nil {
				b.operate("example", tc.operate)
			}
			if tc.code != "" {
				b.refused(http.MethodPost, chartPath("example")+"/install", nil, http.StatusConflict, tc.code)
				return
			}
			var out apitype.WriteAnswer
			b.answer(http.MethodPost, chartPath("example")+"/install", nil, http.StatusAccepted, &out)
			if b.addon("example").Spec.Suspend || out.Generation != 2 || out.ObservedGeneration != 1 {
				t.Errorf("answered %+v", out)
			}
			// Once more, when the operator has caught up: nothing is left to do.
			b.operate("example", running)
			b.wire.take()
			b.answer(http.MethodPost, chartPath("example")+"/install", `{}`, http.StatusAccepted, &out)
			if writes := b.wire.take(); out.Generation != 2 || len(writes) != 0 {
				t.Errorf("answered %+v, wrote %v", out, writes)
			}
		})
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		query string
		was   string // the annotation before
		want  string // the annotation when it is deleted
		kept  bool
	}{
		"nothing said":                 {},
		"nothing said takes keep away": {was: "true", want: "false"},
		"keep":                         {query: "?keepValues=true", want: "true", kept: true},
		"keep again":                   {query: "?keepValues=true", was: "true", want: "true", kept: true},
		"do not keep":                  {query: "?keepValues=false", was: "true", want: "false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			a := &v1alpha1.ZaentrumAddon{
				ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "example", Finalizers: []string{"example.org/hold"}},
				Spec:       v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()},
			}
			if tc.was == "true" {
				a.Finalizers = append(a.Finalizers, v1alpha1.FinalizerValues)
			}
			if tc.was != "" {
				a.Annotations = map[string]string{v1alpha1.AnnotationKeepValues: tc.was}
			}
			b.must(b.cluster.Create(t.Context(), a))
			b.must(b.registry.Register(t.Context(), registry.Registration{
				Source: registry.SourceChart, Manifest: &capability.Manifest{Service: "example"}, Place: capability.Place{ProxyURL: "http://example", Workload: "example"},
			}))
			var out apitype.DeleteAnswer
			b.answer(http.MethodDelete, chartPath("example")+tc.query, nil, http.StatusOK, &out)
			want := apitype.DeleteAnswer{Name: "example", Resource: true, KeptValues: tc.kept, Removed: []string{"addon/example", "app/example"}}
			if diff := cmp.Diff(want, out); diff != "" {
				t.Error(diff)
			}
			a = b.addon("example")
			if a.DeletionTimestamp == nil || a.Annotations[v1alpha1.AnnotationKeepValues] != tc.want {
				t.Errorf("annotations %v, deleted %v", a.Annotations, a.DeletionTimestamp)
			}
			if slices.Contains(a.Finalizers, metav1.FinalizerDeleteDependents) {
				t.Error("deleted in the foreground")
			}
			// There before the deletion, however slow the operator is: or there would be nothing left to keep.
			if slices.Contains(a.Finalizers, v1alpha1.FinalizerValues) != tc.kept {
				t.Errorf("finalizers %v", a.Finalizers)
			}
			// The operator still works on it: the same again is fine, the opposite comes too late.
			b.answer(http.MethodDelete, chartPath("example")+fmt.Sprintf("?keepValues=%t", tc.kept), nil, http.StatusOK, &out)
			if len(out.Removed) != 0 || out.KeptValues != tc.kept {
				t.Errorf("answered %+v", out)
			}
			b.refused(http.MethodDelete, chartPath("example")+fmt.Sprintf("?keepValues=%t", !tc.kept), nil, http.StatusConflict, "being-deleted")
			b.refused(http.MethodPatch, chartPath("example"), `{"secretValues":{"a":"`+canary+`"}}`, http.StatusConflict, "being-deleted")
			b.refused(http.MethodPost, chartPath("example")+"/install", nil, http.StatusConflict, "being-deleted")
			b.refused(http.MethodPost, apitype.PathAddonCharts, `{"chart":"`+exampleRef+`:1.2.0","secretValues":{"a":"`+canary+`"}}`, http.StatusConflict, "being-deleted")
			a.Finalizers = nil
			b.must(b.cluster.Update(t.Context(), a))
			b.refused(http.MethodDelete, chartPath("example"), nil, http.StatusNotFound, "not-found")
		})
	}
}

func TestDeleteRemovesRowsWhoseResourceIsGone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must(b.registry.Register(t.Context(), registry.Registration{
		Source: registry.SourceChart, Manifest: &capability.Manifest{Service: "example"}, Place: capability.Place{ProxyURL: "http://example", Workload: "example"},
	}))
	var out apitype.DeleteAnswer
	b.answer(http.MethodDelete, chartPath("example")+"?keepValues=true", nil, http.StatusOK, &out)
	if diff := cmp.Diff(apitype.DeleteAnswer{Name: "example", Removed: []string{"addon/example", "app/example"}}, out); diff != "" {
		t.Error(diff)
	}
}

func TestACommittedResourceWithABadNameCanBeSeenAndRemoved(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	name := "bad.name-" + strings.Repeat("x", 60)
	b.commit(name, v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
	var got apitype.AddonChart
	b.answer(http.MethodGet, chartPath(name), nil, http.StatusOK, &got)
	var out apitype.DeleteAnswer
	b.answer(http.MethodDelete, chartPath(name), nil, http.StatusOK, &out)
	err := b.cluster.Get(t.Context(), client.ObjectKey{Namespace: b.namespace, Name: name}, &v1alpha1.ZaentrumAddon{})
	if client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("still there: %v", err)
	}
}
