package engine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/guard"
)

// What the guardrails found is in the plan twice: as text for people, and once more for programs, in the same order,
// refusals and warnings together, the notices last.
func TestAPlansFindingsStandBesideItsTexts(t *testing.T) {
	dir := writeChart(t, "apiVersion: v2\nname: app\nversion: 1.0.0\nannotations: {zaentrum.io/addon: \"true\", zaentrum.io/primary: web}\n", `apiVersion: v1
kind: Service
metadata: {name: app, labels: {zaentrum.io/addon: other}}
spec: {type: NodePort, selector: {app: app}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: app, namespace: kube-system}
spec:
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec:
      hostPID: true
      containers:
      - {name: c, image: x:1, resources: {requests: {cpu: 1m}}, volumeMounts: [{name: v, mountPath: /v}]}
      volumes:
      - {name: v, hostPath: {path: /}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: app}
`)
	plan := checkChart(t, dir, nil).Plan(nil)

	type said struct{ id, kind, name, path, text string }
	want := []said{
		{"primary-service", "Chart", "", "", "Chart: no Service named web, which annotation zaentrum.io/primary names"},
		{"reserved-label", "Service", "app", "metadata.labels[zaentrum.io/addon]", "Service/app: zaentrum.io/ labels are set by the operator (metadata.labels[zaentrum.io/addon])"},
		{"service-type", "Service", "app", "spec.type", "Service/app: type of Service other than ClusterIP not allowed (spec.type)"},
		{"own-namespace", "Deployment", "app", "metadata.namespace", "Deployment/app: a namespace other than the addon's (metadata.namespace)"},
		{"no-host-pid", "Deployment", "app", "spec.template.spec.hostPID", "Deployment/app: hostPID not allowed (spec.template.spec.hostPID)"},
		{"no-host-path", "Deployment", "app", "spec.template.spec.volumes[0]", "Deployment/app: hostPath volume not allowed (spec.template.spec.volumes[0])"},
		{"allowed-kind", "Role", "app", "", "Role/app: kind not allowed"},
		{"pinned-digest", "Deployment", "app", "spec.template.spec.containers[0].image", "Deployment/app: the image has no digest (spec.template.spec.containers[0].image)"},
	}
	var findings []v1alpha1.Finding
	var violations, warnings []string
	for _, w := range want {
		rule, ok := guard.RuleByID(w.id)
		if !ok {
			t.Fatalf("no rule %s", w.id)
		}
		f := v1alpha1.Finding{
			ID: w.id, Level: v1alpha1.FindingRefuses, Object: v1alpha1.ObjectRef{Kind: w.kind, Name: w.name}, Path: w.path, Title: rule.Title,
		}
		if rule.Level == guard.Warn {
			f.Level = v1alpha1.FindingWarns
			warnings = append(warnings, w.text)
		} else {
			violations = append(violations, w.text)
		}
		findings = append(findings, f)
	}
	if d := cmp.Diff(findings, plan.Findings); d != "" {
		t.Errorf("findings (-want +got):\n%s", d)
	}
	if d := cmp.Diff(violations, plan.Violations); d != "" {
		t.Errorf("violations (-want +got):\n%s", d)
	}
	if d := cmp.Diff(warnings, plan.Warnings); d != "" {
		t.Errorf("warnings (-want +got):\n%s", d)
	}
}

// What others own is found in the cluster, and stands in the plan as what the chart says does.
func TestWhatOthersOwnIsAFinding(t *testing.T) {
	s := newStreet(t)
	s.has("{apiVersion: v1, kind: Service, metadata: {name: app}, spec: {ports: [{port: 80}]}}")
	got := s.preview(s.request(app("{own: app}", "{own: app}")))
	rule, _ := guard.RuleByID("ownership")
	want := v1alpha1.Finding{ID: "ownership", Level: v1alpha1.FindingRefuses, Object: v1alpha1.ObjectRef{Kind: "Service", Name: "app"}, Title: rule.Title}
	if len(got.Plan.Findings) == 0 || got.Plan.Findings[0] != want {
		t.Errorf("findings: %+v", got.Plan.Findings)
	}
	if d := cmp.Diff([]string{"Service/app: exists and is not controlled by this addon"}, got.Plan.Violations); d != "" {
		t.Errorf("violations: %s", d)
	}
}
