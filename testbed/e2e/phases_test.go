package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// What the charts of these tests render: a Deployment or a Job of the chart's name, beside the Service that every
// addon has and a Secret with the secret input.
const (
	faultyDeployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Chart.Name }}}
spec:
  replicas: {{ .Values.replicas }}
  progressDeadlineSeconds: {{ .Values.deadline }}
  selector: {matchLabels: {app: {{ .Chart.Name }}}}
  template:
    metadata:
      labels: {app: {{ .Chart.Name }}}
      annotations: { {{- with .Values.fault }}testbed.zaentrum.io/fault: {{ . }}{{ end -}} }
    spec:
      {{- with .Values.node }}
      nodeSelector: {example.org/disk: {{ . }}}
      {{- end }}
      containers:
      - name: web
        image: "example.org/web:{{ .Values.tag }}"
        env: [{name: DATABASE_URL, valueFrom: {secretKeyRef: {name: {{ .Chart.Name }}-env, key: database-url}}}]
        resources: {requests: {cpu: {{ .Values.cpu | quote }}, memory: 1Mi}}
`
	faultyJob = `{{- if .Values.job }}
apiVersion: batch/v1
kind: Job
metadata: {name: {{ .Chart.Name }}}
spec:
  backoffLimit: 0
  ttlSecondsAfterFinished: 1
  template:
    metadata:
      annotations: { {{- with .Values.fault }}testbed.zaentrum.io/fault: {{ . }}{{ end -}} }
    spec:
      restartPolicy: Never
      containers:
      - name: setup
        image: "example.org/setup:{{ .Values.tag }}"
        env: [{name: DATABASE_URL, valueFrom: {secretKeyRef: {name: {{ .Chart.Name }}-env, key: database-url}}}]
{{- end }}
`
)

// faulty commits an addon, as a GitOps pipeline does, with values beside the defaults: no fault, one replica, a
// deadline of ten minutes, and a Job that is wanted. Again, it changes the values.
func (h *house) faulty(name, template string, values ...string) {
	h.Helper()
	h.push(name, "1.0.0", map[string]string{
		"values.yaml":             "fault: \"\"\nnode: \"\"\nreplicas: 1\ndeadline: 600\ntag: 1\ncpu: 1m\njob: true\n",
		"values.schema.json":      `{"type":"object","properties":{"database":{"type":"object","properties":{"url":{"type":"string","writeOnly":true}}}}}`,
		"templates/service.yaml":  "apiVersion: v1\nkind: Service\nmetadata: {name: {{ .Chart.Name }}}\nspec: {selector: {app: {{ .Chart.Name }}}, ports: [{port: 80}]}\n",
		"templates/secret.yaml":   "apiVersion: v1\nkind: Secret\nmetadata: {name: {{ .Chart.Name }}-env}\nstringData: {database-url: {{ .Values.database.url | quote }}}\n",
		"templates/workload.yaml": template,
	})
	h.apply(fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata: {name: zaentrum-addon-%[1]s-values, labels: {zaentrum.io/addon: %[1]s}}
stringData: {database.url: %[2]q}
---
apiVersion: zaentrum.io/v1alpha1
kind: ZaentrumAddon
metadata: {name: %[1]s}
spec:
  chart: {ref: %[3]q, version: 1.0.0}
  values: {%[4]s}
  valuesFrom: [{kind: Secret, name: zaentrum-addon-%[1]s-values, valuesKey: database.url, targetPath: database.url}]
`, name, h.canary, h.ref(name), strings.Join(values, ", ")))
}

// heal takes the fault off an addon's pods.
func (h *house) heal(name string) {
	h.Helper()
	h.kubectl("annotate", "pod", "-l", "zaentrum.io/addon="+name, "testbed.zaentrum.io/fault-")
}

// because waits until an addon is in a phase and gives a reason, and wants a person to be told.
func (h *house) because(name, phase, reason string) {
	h.Helper()
	var got string
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if got = h.get("zaddon/"+name, ".status.phase}: {.status.message"); got == phase+": "+reason {
			break
		}
		if time.Now().After(deadline) {
			h.Fatalf("%s is not\n%s: %s, but\n%s", name, phase, reason, got)
		}
	}
	if r := h.zae(0, "addon", "status", name); !strings.Contains(r.Stdout, reason) {
		h.Errorf("a person is not told %q:\n%s", reason, r)
	}
}

// phases are the phases that an addon went through, as events tell.
func (h *house) phases(name string) []string {
	h.Helper()
	var out []string
	for line := range strings.Lines(h.kubectl("get", "events", "--sort-by=.eventTime", "-o",
		`jsonpath={range .items[*]}{.involvedObject.kind}/{.involvedObject.name} {.reason}{"\n"}{end}`)) {
		if phase, ok := strings.CutPrefix(strings.TrimSpace(line), "ZaentrumAddon/"+name+" "); ok {
			out = append(out, phase)
		}
	}
	return out
}

const allReady = "1 of 1 components are ready"

// TestAnInstallThatGoesWellIsNeverDegraded installs what has a claim, which no volume is bound to at first.
func TestAnInstallThatGoesWellIsNeverDegraded(t *testing.T) {
	h := newHouse(t)
	h.login()
	h.zae(0, h.add("--yes", "--wait")...)
	h.jobIs("example", "example-migrate Complete")
	h.phase("example", "Ready")
	if got := strings.Join(h.phases("example"), " "); got != "Planned Installing Ready" {
		t.Errorf("was %s", got)
	}
	if r := h.zae(0, "addon", "status", "example"); !strings.Contains(r.Stdout, "example-migrate  Complete") {
		t.Error(r)
	}
}

// TestAStalledRolloutSaysWhyAndHeals has a rollout stall in each way that does not pass by itself, all at once.
func TestAStalledRolloutSaysWhyAndHeals(t *testing.T) {
	h := newHouse(t)
	h.login()
	stalls := []struct{ name, value, reason, heals string }{
		{"stall-image-pull", "fault: image-pull", "ImagePullBackOff: image example.org/web:1 cannot be pulled", ""},
		{"stall-crash-loop", "fault: crash-loop", "CrashLoopBackOff: container web ends with exit code 1 again and again: see its log", ""},
		{"stall-root-image", "fault: root-image", "CreateContainerConfigError: container web: its image runs as root, which is refused: build it with a USER that is not root, or set runAsUser", ""},
		{"stall-missing-key", "fault: missing-key", "CreateContainerConfigError: container web: Secret stall-missing-key-env has no key database-url", ""},
		{"stall-node", "node: nowhere", "Unschedulable: no node can take its pod: its node selector or affinity fits no node", "node: ''"},
		{"stall-room", "cpu: '5000'", "Unschedulable: no node can take its pod: not enough cpu", "cpu: 1m"},
	}
	for _, s := range stalls {
		h.faulty(s.name, faultyDeployment, s.value)
	}
	for _, s := range stalls {
		h.because(s.name, "Degraded", "Deployment/"+s.name+": "+s.reason)
		if got := h.get("zaddon/"+s.name, ".status.components[0]['name','desired','reason']"); got != s.name+" 1 "+s.reason {
			t.Errorf("component: %s", got)
		}
	}
	for _, s := range stalls {
		if s.heals == "" {
			h.heal(s.name)
		} else {
			h.faulty(s.name, faultyDeployment, s.heals)
		}
	}
	for _, s := range stalls {
		h.because(s.name, "Ready", allReady)
		if got := h.get("zaddon/"+s.name, ".status.components[0].reason"); got != "" {
			t.Errorf("%s is ready because of %q", s.name, got)
		}
		// Told once, and Ready not before it was.
		if got := strings.Join(h.phases(s.name), " "); strings.Count(got, "Degraded") != 1 || strings.Count(got, "Ready") != 1 || !strings.HasSuffix(got, "Ready") {
			t.Errorf("%s was %s", s.name, got)
		}
	}
}

// TestAQuotaWithoutRoomIsToldAndHeals has a real quota let one pod of two be created.
func TestAQuotaWithoutRoomIsToldAndHeals(t *testing.T) {
	h := newHouse(t)
	h.login()
	quota := func(pods int) {
		h.apply(fmt.Sprintf("apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: house}\nspec: {hard: {pods: %d}}\n", pods))
	}
	quota(1)
	h.eventually("the quota is in force", func() bool { return h.get("quota/house", ".status.hard.pods") == "1" })
	h.faulty("stall-quota", faultyDeployment, "replicas: 2")
	h.because("stall-quota", "Degraded", "Deployment/stall-quota: FailedCreate: its pods cannot be created: quota house has no room (pods): raise it, or lower what is asked for")
	if got := h.get("zaddon/stall-quota", ".status.components[0]['ready','desired']"); got != "1 2" {
		t.Errorf("ready and desired: %s", got)
	}
	quota(2)
	h.because("stall-quota", "Ready", allReady)
}

// TestARolloutIsInstallingUntilItsDeadline has a rollout that no pod gives a reason for.
func TestARolloutIsInstallingUntilItsDeadline(t *testing.T) {
	h := newHouse(t)
	h.login()
	const name = "stall-deadline"
	h.faulty(name, faultyDeployment, "fault: never-ready", "deadline: 5")
	h.because(name, "Degraded", "Deployment/"+name+": ProgressDeadlineExceeded: 0 of 1 pods available, container web runs and is not ready")
	if got := strings.Join(h.phases(name), " "); got != "Installing Degraded" {
		t.Errorf("was %s", got)
	}
	h.heal(name)
	h.because(name, "Ready", allReady)
	h.faulty(name, faultyDeployment, "replicas: 0")
	h.eventually("it is scaled to nothing", func() bool { return h.get("zaddon/"+name, ".status.components[0].desired") == "0" })
	h.because(name, "Ready", allReady)
}

// TestAnOldPodThatServesCompletesNoRollout upgrades what runs to what does not.
func TestAnOldPodThatServesCompletesNoRollout(t *testing.T) {
	h := newHouse(t)
	h.login()
	const name = "stall-upgrade"
	h.faulty(name, faultyDeployment)
	h.because(name, "Ready", allReady)

	h.faulty(name, faultyDeployment, "fault: never-ready")
	h.because(name, "Installing", "Deployment/"+name+": old pods left: 1")
	if got := h.get("zaddon/"+name, ".status.components[0]['ready','desired']"); got != "1 1" {
		t.Errorf("ready and desired: %s", got)
	}
	// The old pod goes on serving, and what is wrong with the new one is told.
	h.faulty(name, faultyDeployment, "fault: image-pull", "tag: 2")
	h.because(name, "Degraded", "Deployment/"+name+": ImagePullBackOff: image example.org/web:2 cannot be pulled")
	if got := h.get("zaddon/"+name, ".status.components[0]['ready','desired']"); got != "1 1" {
		t.Errorf("ready and desired: %s", got)
	}
	// A pod of the rollout that is given up does not hold up the next one's success.
	h.faulty(name, faultyDeployment, "tag: 3")
	h.because(name, "Ready", allReady)
	if got := strings.Join(h.phases(name), " "); got != "Installing Ready Installing Degraded Installing Ready" {
		t.Errorf("was %s", got)
	}
}

// jobIs waits for what the status says about the one Job of an addon.
func (h *house) jobIs(name, want string) {
	h.Helper()
	var got string
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if got = h.get("zaddon/"+name, ".status.jobs[*]['name','state','deleted']"); got == want {
			return
		}
		if time.Now().After(deadline) {
			h.Fatalf("the Job is %q, not %q: %s", got, want, h.get("zaddon/"+name, ".status"))
		}
	}
}

func (h *house) uid(object string) string { return h.get(object, ".metadata.uid") }

// again waits for an object that is another one than this.
func (h *house) again(object, was string) string {
	h.Helper()
	var uid string
	h.eventually(object+" is there anew", func() bool {
		uid = h.uid(object)
		return uid != "" && uid != was
	})
	return uid
}

// TestAFinishedJobIsNotRunAgainWithoutReason deletes a finished Job by hand, and gives the operator every occasion to
// run it again that is none.
func TestAFinishedJobIsNotRunAgainWithoutReason(t *testing.T) {
	h := newHouse(t, "--resync", "200ms")
	h.login()
	const name = "job-once"
	h.faulty(name, faultyJob)
	h.jobIs(name, name+" Complete")
	h.phase(name, "Ready")
	first := h.uid("job/" + name)
	if got := h.get("zaddon/"+name, ".status.jobs[0].finishTime"); got != h.get("job/"+name, ".status.completionTime") || got == "" {
		t.Errorf("finished at %s", got)
	}

	h.kubectl("delete", "job", name)
	h.jobIs(name, name+" Complete true")
	if r := h.zae(0, "addon", "status", name); !strings.Contains(r.Stdout, "deleted since; it runs again when it changes") {
		t.Error(r)
	}
	h.kubectl("annotate", "zaddon", name, "look=again")
	h.phase(name, "Ready")
	if err := h.Operator.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := h.Operator.Start(h.ctx); err != nil {
		t.Fatal(err)
	}
	h.eventually("the operator works again", func() bool { return h.reconciles() > 5 })
	passes, seen := h.reconciles(), len(h.requestsOf(h.Credential))
	h.eventually("it looks again and again", func() bool { return h.reconciles() > passes+10 })
	for _, r := range h.requestsOf(h.Credential)[seen:] {
		if r.ObjectRef.Resource != "leases" && r.Verb != "watch" {
			t.Errorf("an idle addon with a deleted Job sends %s", r)
		}
	}
	if h.uid("job/"+name) != "" {
		t.Fatal("the Job runs again")
	}

	// It changes; the chart stops to render it, and renders it again; the addon is removed and added again.
	h.faulty(name, faultyJob, "tag: 2")
	second := h.again("job/"+name, first)
	h.jobIs(name, name+" Complete")
	h.faulty(name, faultyJob, "tag: 2", "job: false")
	h.jobIs(name, "")
	h.eventually("the Job is gone", func() bool { return h.uid("job/"+name) == "" })
	h.faulty(name, faultyJob, "tag: 2")
	third := h.again("job/"+name, second)
	h.jobIs(name, name+" Complete")
	h.kubectl("delete", "zaddon", name)
	h.eventually("all the chart created is gone", func() bool { return len(h.owned(name)) == 0 })
	h.faulty(name, faultyJob, "tag: 2")
	h.again("job/"+name, third)
	h.jobIs(name, name+" Complete")
}

// TestAJobThatChangesWaitsForItsFormerPods changes a Job that runs, and holds up its pod.
func TestAJobThatChangesWaitsForItsFormerPods(t *testing.T) {
	h := newHouse(t)
	h.login()
	const name = "job-twice"
	pods := func() string {
		return h.kubectl("get", "pod", "-l", "zaentrum.io/addon="+name, "-o", "jsonpath={.items[*].spec.containers[0].image}")
	}
	hold := func(finalizers string) {
		pod := strings.TrimSpace(h.kubectl("get", "pod", "-l", "zaentrum.io/addon="+name, "-o", "name"))
		h.kubectl("patch", pod, "--type=json", "-p", finalizers)
	}
	h.faulty(name, faultyJob, "fault: never-ready")
	h.eventually("its pod runs", func() bool {
		return h.kubectl("get", "pod", "-l", "zaentrum.io/addon="+name, "-o", "jsonpath={.items[*].status.phase}") == "Running"
	})
	first := h.uid("job/" + name)
	hold(`[{"op": "add", "path": "/metadata/finalizers/-", "value": "example.org/hold"}]`)

	h.faulty(name, faultyJob, "fault: never-ready", "tag: 2")
	h.jobIs(name, name+" Waiting")
	h.because(name, "Installing", "waiting for the old Job/"+name+" to be gone")
	h.eventually("the old Job is gone", func() bool { return h.uid("job/"+name) == "" })
	h.eventually("its pod is on its way out", func() bool {
		return h.kubectl("get", "pod", "-l", "zaentrum.io/addon="+name, "-o", "jsonpath={.items[*].metadata.deletionTimestamp}") != ""
	})
	h.kubectl("annotate", "zaddon", name, "look=again")
	h.phase(name, "Installing")
	if got := pods(); got != "example.org/setup:1" {
		t.Errorf("pods: %s", got)
	}
	hold(`[{"op": "replace", "path": "/metadata/finalizers", "value": null}]`)
	h.again("job/"+name, first)
	h.jobIs(name, name+" Running")
	h.eventually("the new pod is there alone", func() bool { return pods() == "example.org/setup:2" })
	h.heal(name)
	h.jobIs(name, name+" Complete")
	h.phase(name, "Ready")
}

// TestAJobThatFailsOrCannotRunIsSeen has one Job fail and another one not start.
func TestAJobThatFailsOrCannotRunIsSeen(t *testing.T) {
	h := newHouse(t)
	h.login()
	const fails, stuck = "job-fails", "job-stuck"
	h.faulty(fails, faultyJob, "fault: fail")
	h.faulty(stuck, faultyJob, "fault: image-pull")
	const why = "Job/" + fails + " failed (BackoffLimitExceeded: container setup ends with exit code 1)"
	h.because(fails, "Degraded", why)
	h.jobIs(fails, fails+" Failed")
	h.because(stuck, "Degraded", "Job/"+stuck+": ImagePullBackOff: image example.org/setup:1 cannot be pulled")
	h.jobIs(stuck, stuck+" Running")
	h.heal(stuck)
	h.jobIs(stuck, stuck+" Complete")
	h.because(stuck, "Ready", "0 of 0 components are ready")

	h.kubectl("delete", "job", fails)
	h.because(fails, "Degraded", why+" and was deleted; it runs again when it changes")
	h.kubectl("annotate", "zaddon", fails, "look=again")
	h.phase(fails, "Degraded")
	if h.uid("job/"+fails) != "" {
		t.Error("it runs again")
	}
	h.faulty(fails, faultyJob, "tag: 2")
	h.jobIs(fails, fails+" Complete")
	h.because(fails, "Ready", "0 of 0 components are ready")
}
