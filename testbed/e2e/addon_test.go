package e2e

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"zaentrum.io/zae/testbed/stack"
)

// add is the command line of the main job.
func (h *house) add(extra ...string) []string {
	return append([]string{"addon", "add", h.ref("example"), "--version", "1.2.0",
		"--set", "worker.replicas=2", "--set-secret", "database.url=env:DATABASE_URL"}, extra...)
}

func TestMainJob(t *testing.T) {
	h := newHouse(t)
	h.login()

	r := h.zae(0, h.add("--yes", "--wait")...)
	for _, want := range []string{"Deployment/example", "Deployment/example-worker", "Job/example-migrate", "plan: ", "database.url"} {
		if !strings.Contains(r.Stdout+r.Stderr, want) {
			t.Errorf("the plan does not show %q:\n%s", want, r)
		}
	}
	h.phase("example", "Ready")
	status := h.api(200, "admin", http.MethodGet, "/api/portal/addon-charts/example", nil)
	if status["registered"] != true || status["phase"] != "Ready" {
		t.Errorf("not Ready and registered: %v", status)
	}
	if got := h.get("deploy/example-worker", ".spec.replicas"); got != "2" {
		t.Errorf("worker.replicas: %s", got)
	}
	if got := h.get("secret/example-env", ".data.database-url"); got != base64.StdEncoding.EncodeToString([]byte(h.canary)) {
		t.Error("the secret input did not reach the chart's Secret")
	}
	h.decorated()
	key := h.get("secret/zaentrum-addon-example-generated", ".data.config\\.key")
	if raw, err := base64.StdEncoding.DecodeString(key); err != nil || len(raw) < 32 {
		t.Errorf("the generated value is missing")
	}

	r = h.zae(0, "addon", "status", "example")
	if !strings.Contains(r.Stdout, "Ready") {
		t.Error(r)
	}
	r = h.zae(0, "addon", "list", "-o", "json")
	if !json.Valid([]byte(r.Stdout)) || !strings.Contains(r.Stdout, `"example"`) {
		t.Error(r)
	}

	r = h.zae(0, "addon", "upgrade", "example", "--version", "1.3.0", "--yes", "--wait")
	for _, want := range []string{"ConfigMap/example-features", "ConfigMap/example-legacy", "4.1.0", "4.2.0"} {
		if !strings.Contains(r.Stdout+r.Stderr, want) {
			t.Errorf("the upgrade's plan does not show %q:\n%s", want, r)
		}
	}
	h.phase("example", "Ready")
	if got := h.get("cm/example-legacy", ".metadata.name"); got != "" {
		t.Error("the object that 1.3.0 no longer renders is still there")
	}
	if got := h.get("cm/example-features", ".metadata.name"); got == "" {
		t.Error("the object that 1.3.0 adds is missing")
	}
	if got := h.get("zaddon/example", ".status.lastAppliedChart.version"); got != "1.3.0" {
		t.Errorf("lastAppliedChart.version: %s", got)
	}
	if again := h.get("secret/zaentrum-addon-example-generated", ".data.config\\.key"); again != key {
		t.Error("the generated value changed with the upgrade")
	}

	h.zae(0, "addon", "remove", "example", "--keep-values", "--yes")
	h.eventually("all the chart created is gone", func() bool { return len(h.owned("example")) == 0 })
	kept := h.kubectl("get", "secret", "-l", "zaentrum.io/addon=example,zaentrum.io/keep=true", "-o", "name")
	if n := len(strings.Fields(kept)); n != 2 {
		t.Errorf("kept Secrets: %q, want the values Secret and the generated one", kept)
	}
	if owners := h.kubectl("get", "secret", "-l", "zaentrum.io/keep=true", "-o", "jsonpath={.items[*].metadata.ownerReferences}"); owners != "" {
		t.Errorf("kept Secrets still have owners: %s", owners)
	}
	addons := h.api(200, "admin", http.MethodGet, "/api/portal/addons", nil)
	if list, _ := addons["addons"].([]any); len(list) != 0 {
		t.Errorf("still listed: %v", list)
	}

	// A new addon of the same name uses the kept values again.
	var values string
	for _, name := range strings.Fields(kept) {
		if strings.Contains(name, "-values-") {
			values = strings.TrimPrefix(name, "secret/")
		}
	}
	h.zae(0, "addon", "add", h.ref("example"), "--version", "1.3.0", "--secret-ref", "database.url="+values, "--yes", "--wait")
	if again := h.get("secret/zaentrum-addon-example-generated", ".data.config\\.key"); again != key {
		t.Error("the kept generated value was not used again")
	}
	if got := h.get("secret/example-env", ".data.config-key"); got != key {
		t.Error("the chart did not get the kept generated value")
	}
}

// decorated checks what the operator adds to every object it applies (contract §3).
func (h *house) decorated() {
	h.Helper()
	uid := h.get("zaddon/example", ".metadata.uid")
	for _, object := range h.owned("example") {
		var o struct {
			Kind     string
			Metadata struct {
				Name            string
				Labels          map[string]string
				OwnerReferences []struct {
					UID        string
					Controller bool
				}
			}
			Spec struct {
				Template struct {
					Metadata struct{ Labels, Annotations map[string]string }
					Spec     struct {
						AutomountServiceAccountToken *bool
					}
				}
			}
		}
		if err := json.Unmarshal([]byte(h.kubectl("get", object, "-o", "json")), &o); err != nil {
			h.Fatal(err)
		}
		if len(o.Metadata.OwnerReferences) != 1 || o.Metadata.OwnerReferences[0].UID != uid || !o.Metadata.OwnerReferences[0].Controller {
			h.Errorf("%s: owner references %+v", object, o.Metadata.OwnerReferences)
		}
		for label, want := range map[string]string{
			"zaentrum.io/addon": "example", "app.kubernetes.io/managed-by": "zaentrum-operator",
			"app.kubernetes.io/instance": "example", "app.kubernetes.io/part-of": h.Namespace + "-addons",
		} {
			if o.Metadata.Labels[label] != want {
				h.Errorf("%s: label %s=%q, want %q", object, label, o.Metadata.Labels[label], want)
			}
		}
		if o.Kind != "Deployment" && o.Kind != "Job" {
			continue
		}
		if len(o.Spec.Template.Metadata.Annotations["zaentrum.io/values-checksum"]) != 64 {
			h.Errorf("%s: no values checksum", object)
		}
		if a := o.Spec.Template.Spec.AutomountServiceAccountToken; a == nil || *a {
			h.Errorf("%s: mounts a service account token", object)
		}
		if o.Kind == "Deployment" && o.Spec.Template.Metadata.Labels["zaentrum.io/component"] != o.Metadata.Name {
			h.Errorf("%s: no component label on its pods", object)
		}
	}
}

func TestAPlanWithAViolationIsNotInstalled(t *testing.T) {
	h := newHouse(t)
	h.login()
	r := h.zae(1, "addon", "add", h.ref("violation"), "--version", "1.0.0", "--yes")
	if !strings.Contains(r.Stdout+r.Stderr, "hostPath") {
		t.Errorf("the refusal does not say what is refused:\n%s", r)
	}
	h.phase("violation", "PlanFailed")
	if got := h.owned("violation"); len(got) != 0 {
		t.Errorf("applied: %v", got)
	}
	h.api(409, "admin", http.MethodPost, "/api/portal/addon-charts/violation/install", nil)
	if got := h.get("zaddon/violation", ".spec.suspend"); got != "true" {
		t.Errorf("suspend: %q", got)
	}
}

func TestAMissingRequiredInputIsNotInstalled(t *testing.T) {
	h := newHouse(t)
	h.login()
	r := h.zae(1, "addon", "add", h.ref("example"), "--version", "1.2.0", "--yes")
	if !strings.Contains(r.Stdout+r.Stderr, "database.url") || !strings.Contains(r.Stdout+r.Stderr, "--set-secret database.url") {
		t.Errorf("the refusal does not say how to give the input:\n%s", r)
	}
	h.phase("example", "PlanFailed")
	if got := h.owned("example"); len(got) != 0 {
		t.Errorf("applied: %v", got)
	}
}

func TestAnObjectThatIsNotOursStaysUntouched(t *testing.T) {
	h := newHouse(t)
	h.login()
	h.kubectl("create", "configmap", "example-settings", "--from-literal=mine=yes")
	before := h.get("cm/example-settings", ".metadata.resourceVersion")
	r := h.zae(1, h.add("--yes")...)
	if !strings.Contains(r.Stdout+r.Stderr, "ConfigMap/example-settings") {
		t.Errorf("the refusal does not name the object:\n%s", r)
	}
	h.phase("example", "PlanFailed")
	// Not even when the resource is applied without a plan.
	h.kubectl("patch", "zaddon", "example", "--type=merge", "-p", `{"spec":{"suspend":false}}`)
	h.phase("example", "Failed")
	if after := h.get("cm/example-settings", ".metadata.resourceVersion"); after != before {
		t.Error("the object was written to")
	}
	if got := h.owned("example"); len(got) != 0 {
		t.Errorf("applied: %v", got)
	}
	// With the obstacle gone the addon goes on by itself.
	h.kubectl("delete", "cm", "example-settings")
	h.kubectl("annotate", "zaddon", "example", "look=again")
	h.phase("example", "Ready")
}

func TestAHandEditIsReverted(t *testing.T) {
	h := newHouse(t)
	h.login()
	h.zae(0, h.add("--yes", "--wait")...)
	h.kubectl("patch", "deploy", "example-worker", "--type=merge", "-p", `{"spec":{"replicas":3},"metadata":{"annotations":{"mine":"stays"}}}`)
	h.eventually("replicas are 2 again", func() bool { return h.get("deploy/example-worker", ".spec.replicas") == "2" })
	if got := h.get("deploy/example-worker", ".metadata.annotations.mine"); got != "stays" {
		t.Errorf("a field of somebody else's was taken: %q", got)
	}
	h.kubectl("delete", "svc", "example")
	h.eventually("the Service is back", func() bool { return h.get("svc/example", ".metadata.name") == "example" })
	h.kubectl("patch", "secret", "example-env", "--type=merge", "-p", `{"data":{"config-key":"bm8="}}`)
	h.eventually("the Secret is as rendered", func() bool {
		return h.get("secret/example-env", ".data.config-key") == h.get("secret/zaentrum-addon-example-generated", ".data.config\\.key")
	})
}

func TestDeletingTheResourceDeletesAllItMade(t *testing.T) {
	h := newHouse(t)
	h.login()
	h.zae(0, h.add("--yes", "--wait")...)
	if n := len(h.owned("example")); n < 8 {
		t.Fatalf("only %d objects", n)
	}
	h.kubectl("delete", "zaddon", "example")
	h.eventually("nothing is left", func() bool {
		return h.kubectl("get", allKinds+",pod", "-l", "zaentrum.io/addon=example", "-o", "name") == ""
	})
	h.eventually("the addon is unregistered", func() bool {
		list, _ := h.api(200, "admin", http.MethodGet, "/api/portal/addons", nil)["addons"].([]any)
		return len(list) == 0
	})
}

func TestADeletionInTheForegroundKeepsValues(t *testing.T) {
	h := newHouse(t)
	h.login()
	h.zae(0, h.add("--yes", "--wait")...)
	h.kubectl("annotate", "zaddon", "example", "zaentrum.io/keep-values=true")
	h.eventually("the operator lets go of the values", func() bool {
		return h.get("zaddon/example", ".metadata.finalizers") != "" &&
			h.get("secret/zaentrum-addon-example-generated", ".metadata.ownerReferences") == ""
	})
	h.kubectl("delete", "zaddon", "example", "--cascade=foreground")
	h.eventually("all the chart created is gone", func() bool { return len(h.owned("example")) == 0 })
	kept := strings.Fields(h.kubectl("get", "secret", "-l", "zaentrum.io/addon=example,zaentrum.io/keep=true", "-o", "name"))
	if len(kept) != 2 {
		t.Errorf("kept: %v", kept)
	}
}

func TestARefusedUpgradeLeavesWhatRunsAlone(t *testing.T) {
	h := newHouse(t)
	h.login()
	h.zae(0, h.add("--yes", "--wait")...)
	before := h.get("secret/example-env", ".data.database-url")
	pods := h.get("deploy/example", ".spec.template")
	r, err := h.Zae(h.ctx, stack.Call{
		Args: []string{"addon", "upgrade", "example", "--set", "worker.replicas=99", "--set-secret", "database.url=env:OTHER", "--yes"},
		Env:  []string{"OTHER=other-" + h.canary},
	})
	if err != nil {
		t.Fatal(err)
	}
	h.note(r.Stdout, r.Stderr)
	if r.Exit != 1 || !strings.Contains(r.Stderr, "worker.replicas") {
		t.Errorf("%s", r)
	}
	h.phase("example", "Ready")
	if got := h.get("secret/example-env", ".data.database-url"); got != before {
		t.Error("the secret input of a refused upgrade was applied")
	}
	if got := h.get("deploy/example", ".spec.template"); got != pods {
		t.Error("the pods rolled")
	}
	// A change of values alone shows what it will do.
	r = h.zae(0, "addon", "upgrade", "example", "--set", "worker.replicas=1", "--set", "worker.logLevel=debug", "--yes", "--wait")
	for _, want := range []string{"update  Deployment/example-worker", "re-run  Job/example-migrate"} {
		if !strings.Contains(r.Stdout+r.Stderr, want) {
			t.Errorf("the plan does not show %q:\n%s", want, r)
		}
	}
	// A secret among the plain values is refused, not installed.
	h.zae(2, "addon", "upgrade", "example", "--set", "database.url=plain", "--yes")
	h.phase("example", "Ready")
}

func TestRemovingAndAddingAtOnce(t *testing.T) {
	h := newHouse(t)
	h.login()
	h.zae(0, h.add("--yes", "--wait")...)
	key := h.get("secret/zaentrum-addon-example-generated", ".data.config\\.key")
	h.zae(0, "addon", "remove", "example", "--yes")
	h.zae(0, h.add("--yes", "--wait")...)
	if again := h.get("secret/zaentrum-addon-example-generated", ".data.config\\.key"); again == key || again == "" {
		t.Errorf("the generated value of the removed addon came back, or none was made")
	}
}

func TestACommittedResourceInstalls(t *testing.T) {
	h := newHouse(t)
	h.apply(`apiVersion: v1
kind: Secret
metadata:
  name: zaentrum-addon-example-values
  labels:
    zaentrum.io/addon: example
stringData:
  database.url: "` + h.canary + `"
---
apiVersion: v1
kind: Secret
metadata:
  name: zaentrum-addon-example-other
stringData:
  worker.logLevel: debug
---
apiVersion: zaentrum.io/v1alpha1
kind: ZaentrumAddon
metadata:
  name: example
spec:
  chart:
    ref: ` + h.ref("example") + `
    version: 1.2.0
  valuesFrom:
    - kind: Secret
      name: zaentrum-addon-example-values
      valuesKey: database.url
      targetPath: database.url
`)
	h.phase("example", "Ready")
	h.eventually("the addon is registered", func() bool {
		return h.api(200, "admin", http.MethodGet, "/api/portal/addon-charts/example", nil)["registered"] == true
	})
	if got := h.get("secret/zaentrum-addon-example-values", ".metadata.ownerReferences[0].name"); got != "example" {
		t.Errorf("the values Secret was not adopted: %q", got)
	}
	// A Secret without the label is refused unread, optional or not, and the running objects stay.
	h.kubectl("patch", "zaddon", "example", "--type=json", "-p",
		`[{"op":"add","path":"/spec/valuesFrom/-","value":{"kind":"Secret","name":"zaentrum-addon-example-other","valuesKey":"worker.logLevel","targetPath":"worker.logLevel","optional":true}}]`)
	h.phase("example", "Failed")
	if got := h.get("zaddon/example", ".status.plan.valuesErrors"); !strings.Contains(got, "zaentrum-addon-example-other") {
		t.Errorf("valuesErrors: %s", got)
	}
	if n := len(h.owned("example")); n < 8 {
		t.Errorf("only %d objects are left of what ran", n)
	}
}

func TestBadInputWritesNothing(t *testing.T) {
	h := newHouse(t)
	h.login()
	for _, tc := range []struct {
		exit int
		want string
		args []string
	}{
		{2, "--set-secret", []string{"addon", "add", h.ref("example"), "--version", "1.2.0", "--yes", "--set-secret", "database.url=" + h.canary}},
		{2, "--yes", []string{"addon", "add", h.ref("example"), "--version", "1.2.0"}},
		{2, "version", []string{"addon", "add", h.ref("example"), "--yes"}},
		{2, "zaentrum", []string{"addon", "add", h.ref("example"), "--version", "1.2.0", "--yes", "--set", "zaentrum.hostname=x"}},
		{2, "--sett", []string{"addon", "add", h.ref("example"), "--version", "1.2.0", "--yes", "--sett", "a=b"}},
		{2, "--set", []string{"addon", "add", h.ref("example"), "--version", "1.2.0", "--yes", "--set", "worker..replicas=2"}},
		{3, "example", []string{"addon", "status", "example"}},
		{3, "example", []string{"addon", "upgrade", "example", "--version", "1.3.0", "--yes"}},
		{3, "example", []string{"addon", "remove", "example", "--yes"}},
	} {
		r := h.zae(tc.exit, tc.args...)
		if !strings.Contains(r.Stderr, tc.want) {
			t.Errorf("the error does not name %q:\n%s", tc.want, r)
		}
	}
	charts := "/api/portal/addon-charts"
	for _, tc := range []struct {
		status int
		want   string
		body   string
	}{
		{400, "secretValue", `{"chart":"` + h.ref("example") + `","version":"1.2.0","secretValue":{"database.url":"` + h.canary + `"}}`},
		{400, "chart", `{"version":"1.2.0"}`},
		{400, "version", `{"chart":"` + h.ref("example") + `"}`},
		{400, "name", `{"name":"Not A Name","chart":"` + h.ref("example") + `","version":"1.2.0"}`},
		{400, "zaentrum", `{"chart":"` + h.ref("example") + `","version":"1.2.0","values":{"zaentrum":{}}}`},
		{400, "database.url", `{"chart":"` + h.ref("example") + `","version":"1.2.0","secretValues":{"database.url":"` + h.canary + `"},"secretRefs":{"database.url":{"name":"zaentrum-addon-example-values-x"}}}`},
		{400, "database.url", `{"chart":"` + h.ref("example") + `","version":"1.2.0","secretValues":{"database.url":""}}`},
		{400, "zaentrum-addon-example-", `{"chart":"` + h.ref("example") + `","version":"1.2.0","secretRefs":{"database.url":{"name":"platform-admin"}}}`},
		{400, "", `{"chart":`},
	} {
		problem := h.api(tc.status, "admin", http.MethodPost, charts, tc.body)
		detail, _ := problem["detail"].(string)
		hint, _ := problem["hint"].(string)
		if !strings.Contains(detail+"; "+hint, tc.want) {
			t.Errorf("%s\nthe error does not name %q: %v", tc.body, tc.want, problem)
		}
	}
	h.api(401, "", http.MethodPost, charts, `{}`)
	h.api(403, "viewer", http.MethodPost, charts, `{"chart":"`+h.ref("example")+`","version":"1.2.0"}`)
	if left := h.kubectl("get", "zaddon,secret", "-o", "name"); strings.TrimSpace(left) != "" {
		t.Errorf("written: %s", left)
	}
}

// TestAnIdleAddonIsNotWrittenTo reconciles many times with nothing changed, and counts what the operator asks of the API
// server: nothing, once its caches are warm, also after a restart; and it writes nothing from the start. With make chaos it is
// a pass as it is by default, of five minutes.
func TestAnIdleAddonIsNotWrittenTo(t *testing.T) {
	resync, watched, passes := 200*time.Millisecond, 5*time.Second, 10
	if chaos() {
		resync, watched, passes = 5*time.Minute, 6*time.Minute, 1
	}
	h := openHouse(t, opening{args: []string{"--resync", resync.String()}, within: 2*watched + 5*time.Minute})
	h.login()
	h.zae(0, h.add("--yes", "--wait")...)
	// The finished Job, the registration and the last events come in a moment later.
	h.eventually("the Job is done", func() bool { return h.get("job/example-migrate", ".status.succeeded") == "1" })
	h.quiet()
	h.idle("idle", watched, passes)

	before := len(h.operatorWrites())
	if err := h.Operator.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := h.Operator.Start(h.ctx); err != nil {
		t.Fatal(err)
	}
	h.eventually("it reconciles again", func() bool { return h.reconciles() > 0 })
	time.Sleep(2 * time.Second) // the first look at everything
	h.idle("idle after a restart", watched, passes)
	if wrote := h.operatorWrites()[before:]; len(wrote) > 0 {
		t.Errorf("a restart with nothing to do wrote %v", wrote)
	}
}

// idle watches the operator for a while, with at least so many reconciles, and wants no request.
func (h *house) idle(what string, watched time.Duration, passes int) {
	h.Helper()
	before, seen := h.reconciles(), len(h.requestsOf(h.Credential))
	time.Sleep(watched)
	done := h.reconciles() - before
	if done < passes {
		h.Fatalf("%s: only %d reconciles in %s", what, done, watched)
	}
	var requests []string
	for _, r := range h.requestsOf(h.Credential)[seen:] {
		if r.ObjectRef.Resource == "leases" || r.Verb == "watch" {
			continue
		}
		requests = append(requests, r.String())
	}
	if len(requests) > 0 {
		h.Errorf("%s: %d reconciles sent %d requests: %v", what, done, len(requests), requests[:min(len(requests), 10)])
	}
	h.Logf("%s: %d reconciles, %d requests", what, done, len(requests))
}

// reconciles is how often the operator has reconciled an addon.
func (h *house) reconciles() int {
	h.Helper()
	total := 0
	lines := bufio.NewScanner(strings.NewReader(string(read(h, h.MetricsURL, ""))))
	for lines.Scan() {
		if line := lines.Text(); strings.HasPrefix(line, `controller_runtime_reconcile_total{controller="addon"`) {
			var n float64
			if err := json.Unmarshal([]byte(line[strings.LastIndexByte(line, ' ')+1:]), &n); err != nil {
				h.Fatal(err)
			}
			total += int(n)
		}
	}
	return total
}

// TestThePlanIsThereSoon measures from POST until the plan is visible.
func TestThePlanIsThereSoon(t *testing.T) {
	h := newHouse(t)
	var took []time.Duration
	for i := range 15 {
		name := "example" + string(rune('a'+i))
		start := time.Now()
		answer := h.api(202, "admin", http.MethodPost, "/api/portal/addon-charts", map[string]any{
			"name": name, "chart": h.ref("example"), "version": "1.2.0",
			"secretValues": map[string]string{"database.url": h.canary},
		})
		generation, _ := answer["generation"].(float64)
		for {
			got := h.api(200, "admin", http.MethodGet, "/api/portal/addon-charts/"+name, nil)
			if observed, _ := got["observedGeneration"].(float64); observed >= generation && got["plan"] != nil {
				if got["phase"] != "Planned" && got["phase"] != "PlanFailed" {
					t.Fatalf("%v", got)
				}
				break
			}
			if time.Since(start) > 30*time.Second {
				t.Fatal("no plan within 30 s")
			}
			time.Sleep(5 * time.Millisecond)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	t.Logf("from POST to plan visible: median %v, fastest %v, slowest %v of %d", took[len(took)/2], took[0], took[len(took)-1], len(took))
}
