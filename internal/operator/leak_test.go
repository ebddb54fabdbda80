package operator_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"zaentrum.io/zae/api/v1alpha1"
)

func rawValues(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }

// tellingWorker names everything it can after a secret input.
const tellingWorker = `apiVersion: apps/v1
kind: Deployment
metadata: {name: "w-{{ .Values.s }}"}
spec:
  selector: {matchLabels: {app: w}}
  template:
    metadata: {labels: {app: w}}
    spec:
      containers: [{name: c, image: "reg/x:{{ .Values.s }}", env: [{name: "E_{{ .Values.s }}", value: x}]}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: fixed}
spec:
  selector: {matchLabels: {app: f}}
  template:
    metadata: {labels: {app: f}}
    spec:
      containers:
        - name: c
          image: "reg/x:{{ .Values.s }}"
          env:
            - {name: "E_{{ .Values.s }}", value: x}
            - {name: "{{ repeat 450 "P" }}{{ .Values.s }}", value: "{{ .Values.n }}"}
`

func (h *house) valuesFrom(secret string) []v1alpha1.ValuesSource {
	return []v1alpha1.ValuesSource{{Kind: v1alpha1.ValuesFromSecret, Name: secret, ValuesKey: "s", TargetPath: "s"}}
}

// The value that was used before shows as little as the one that is used now, and neither does where nothing can
// be planned.
func TestFormerSecretsDoNotShow(t *testing.T) {
	h := newHouse(t)
	h.chart("old", "1.0.0", tellingWorker)
	h.secret("zaentrum-addon-old-values-a", "old", map[string]string{"s": "old-s3cret-word"})
	h.secret("zaentrum-addon-old-values-b", "old", map[string]string{"s": "new-s3cret-word"})
	shows := func(when string) {
		t.Helper()
		if text := fmt.Sprintf("%+v %+v", h.addonNow("old").Status, h.addonNow("old").Status.Plan); strings.Contains(text, "s3cret") {
			at := strings.Index(text, "s3cret")
			t.Errorf("%s: …%s…", when, text[max(0, at-100):min(len(text), at+30)])
		}
	}
	a := h.addon("old", "old", "1.0.0")
	a.Spec.Values = rawValues(`{"n":1}`)
	a.Spec.ValuesFrom = h.valuesFrom("zaentrum-addon-old-values-a")
	h.must(h.Create(h.Context(), a))
	h.eventually(func() string {
		if h.addonNow("old").Status.LastAppliedChart == nil {
			return "not applied"
		}
		return ""
	})
	shows("applied")
	h.change("old", func(a *v1alpha1.ZaentrumAddon) {
		a.Spec.Suspend = true
		a.Spec.Values = rawValues(`{"n":2}`)
		a.Spec.ValuesFrom = h.valuesFrom("zaentrum-addon-old-values-b")
	})
	if got := h.phase("old", v1alpha1.PhasePlanned); len(got.Status.Plan.Changes.Images) == 0 || len(got.Status.Plan.Changes.Modified) == 0 {
		t.Errorf("no changes: %+v", got.Status.Plan.Changes)
	}
	shows("planned with another")
	h.must(h.Delete(h.Context(), h.platform("platform")))
	h.phase("old", v1alpha1.PhaseFailed)
	shows("without a platform")
}

// derivingWorker names everything it can after what it makes of a secret input, and of a part of it.
const derivingWorker = `{{ $part := .Values.s | splitList ":" | last }}
apiVersion: apps/v1
kind: Deployment
metadata: {name: "w-{{ $part }}"}
spec:
  selector: {matchLabels: {app: w}}
  template:
    metadata: {labels: {app: w}}
    spec:
      containers:
        - name: c
          image: "reg/x:{{ printf "%x" $part }}"
          ports: [{containerPort: {{ add 20000 (len $part) }}}, {containerPort: {{ .Values.s | splitList ":" | first }}}]
          env: [{name: "E_{{ $part | swapcase }}", value: x}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: "{{ splitList "" $part | reverse | join "" }}"}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: "reg/x:{{ $part | sha256sum }}"{{ if .Values.refused }}, envFrom: [{secretRef: {name: "of-{{ $part }}"}}]{{ end }}}]}}}
`

// What a chart makes of a secret shows as little as the secret: not in the plan of what is installed or refused, nor
// where nothing can be planned any more.
func TestWhatIsMadeOfASecretDoesNotShow(t *testing.T) {
	h := newHouse(t)
	h.chart("made", "1.0.0", derivingWorker)
	h.secret("zaentrum-addon-made-values-a", "made", map[string]string{"s": "24681:pass:hunter77word"})
	shows := func(when string) {
		t.Helper()
		status := h.addonNow("made").Status
		text := fmt.Sprintf("%+v %+v", status, status.Plan)
		for _, made := range []string{"hunter77word", "HUNTER77WORD", "drow77retnuh", "68756e7465723737776f7264", "24681", fmt.Sprintf("%x", sha256.Sum256([]byte("hunter77word")))} {
			if at := strings.Index(text, made); at >= 0 {
				t.Errorf("%s: …%s…", when, text[max(0, at-100):min(len(text), at+30)])
			}
		}
	}
	a := h.addon("made", "made", "1.0.0")
	a.Spec.Values = rawValues(`{"refused":true}`)
	a.Spec.ValuesFrom = h.valuesFrom("zaentrum-addon-made-values-a")
	h.must(h.Create(h.Context(), a))
	if got := h.phase("made", v1alpha1.PhaseFailed); len(got.Status.Plan.Violations) != 1 {
		t.Errorf("violations: %v", got.Status.Plan.Violations)
	}
	shows("refused")
	h.change("made", func(a *v1alpha1.ZaentrumAddon) { a.Spec.Values = rawValues(`{"refused":false}`) })
	h.eventually(func() string {
		if now := h.addonNow("made"); now.Status.LastAppliedChart == nil || len(now.Status.Plan.Workloads) != 2 {
			return "not applied"
		}
		return ""
	})
	shows("applied")
	h.change("made", func(a *v1alpha1.ZaentrumAddon) { a.Spec.ValuesFrom[0].ValuesKey = "nothing" })
	h.phase("made", v1alpha1.PhaseFailed)
	shows("without a value")
	h.must(h.Delete(h.Context(), h.platform("platform")))
	h.says("made", v1alpha1.PhaseFailed, "no Zaentrum platform")
	shows("without a platform")
}

// What was reviewed is what is applied, also when a plan could not be made in between.
func TestAFailureBetweenPlanAndInstallLosesNoReview(t *testing.T) {
	h := newHouse(t)
	h.chart("moving", "1.0.0", configMap("moving-a"))
	a := h.addon("moving", "moving", "1.0.0")
	a.Spec.Suspend = true
	first := h.create(a, v1alpha1.PhasePlanned).Status.Plan.Chart.Digest
	h.must(h.Delete(h.Context(), h.platform("platform")))
	h.phase("moving", v1alpha1.PhaseFailed)
	h.change("moving", func(a *v1alpha1.ZaentrumAddon) { a.Spec.Suspend = false })
	h.phase("moving", v1alpha1.PhaseFailed)
	h.chart("moving", "1.0.0", configMap("moving-evil"))
	h.must(h.Create(h.Context(), h.platform("platform")))
	got := h.phase("moving", v1alpha1.PhaseReady)
	if got.Status.LastAppliedChart.Digest != first || h.exists(&corev1.ConfigMap{}, "moving-evil") {
		t.Errorf("content was installed that nobody planned: %s", got.Status.Message)
	}
	h.says("moving", v1alpha1.PhaseReady, "published again")
}

// Generated values that the cluster does not take are told, and not silently tried again and again.
func TestGeneratedValuesThatCannotBeKeptAreTold(t *testing.T) {
	h := newHouse(t)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "no-more"}}
	quota.Spec.Hard = corev1.ResourceList{"count/secrets": resource.MustParse("1")}
	quota.Status.Hard = quota.Spec.Hard
	a := h.example()
	h.must(h.Create(h.Context(), quota))
	quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: corev1.ResourceList{"count/secrets": resource.MustParse("1")}}
	h.must(h.Status().Update(h.Context(), quota))
	h.must(h.Create(h.Context(), a))
	h.says("example", v1alpha1.PhaseFailed, "generated values: cannot be kept in Secret zaentrum-addon-example-generated: Forbidden")
	h.must(h.Delete(h.Context(), quota))
	h.says("example", v1alpha1.PhaseInstalling, "")
}
