package operator_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/api/v1alpha1"
)

// setupJob renders a Job while .Values.job is true.
const setupJob = `{{- if .Values.job }}
apiVersion: batch/v1
kind: Job
metadata:
  name: setup
  labels: {note: "{{ .Chart.Version }}"}
spec:
  ttlSecondsAfterFinished: 1
  template:
    spec:
      restartPolicy: Never
      containers: [{name: setup, image: "example/setup:{{ .Values.tag }}"}]
{{- end }}
`

// jobAddon is an addon with a Job that runs, and what changes its values.
func (h *house) jobAddon() (values func(string)) {
	h.Helper()
	h.chart("jobs", "1.0.0", setupJob)
	h.chart("jobs", "1.0.1", setupJob)
	a := h.addon("jobs", "jobs", "1.0.0")
	a.Spec.Values = &runtime.RawExtension{Raw: []byte(`{"job":true,"tag":1}`)}
	h.create(a, v1alpha1.PhaseReady)
	h.job("Running", false)
	return func(values string) {
		h.Helper()
		h.change("jobs", func(a *v1alpha1.ZaentrumAddon) { a.Spec.Values = &runtime.RawExtension{Raw: []byte(values)} })
	}
}

// job waits for what the status says about the Job, and answers with it; an empty state is for no Job.
func (h *house) job(state v1alpha1.JobState, deleted bool) v1alpha1.JobRun {
	h.Helper()
	var found v1alpha1.JobRun
	h.eventually(func() string {
		a := &v1alpha1.ZaentrumAddon{}
		h.must(h.Get(h.Context(), h.key("jobs"), a))
		found = v1alpha1.JobRun{}
		if len(a.Status.Jobs) > 0 {
			found = a.Status.Jobs[0]
		}
		if found.State == state && found.Deleted == deleted && a.Status.ObservedGeneration == a.Generation && len(a.Status.Jobs) < 2 {
			return ""
		}
		return fmt.Sprintf("generation %d of %d, jobs %+v, %s: %s", a.Status.ObservedGeneration, a.Generation, a.Status.Jobs, a.Status.Phase, a.Status.Message)
	})
	return found
}

// uid is the Job's; empty while there is none.
func (h *house) uid() string {
	h.Helper()
	j := &batchv1.Job{}
	if h.exists(j, "setup") {
		return string(j.UID)
	}
	return ""
}

// anotherJob waits for a Job that is not this one.
func (h *house) anotherJob(but string) string {
	h.Helper()
	var uid string
	h.eventually(func() string {
		if uid = h.uid(); uid == "" || uid == but {
			return "no Job was created"
		}
		return ""
	})
	h.job(v1alpha1.JobRunning, false)
	return uid
}

// finish plays the Job controller and the garbage collector, which do not run here.
func (h *house) finish(how batchv1.JobConditionType) string {
	h.Helper()
	j := &batchv1.Job{}
	h.must(h.Get(h.Context(), h.key("setup"), j))
	if j.Spec.TTLSecondsAfterFinished != nil {
		h.Error("the Job would not stay")
	}
	now := metav1.Now().Rfc3339Copy()
	before, reason := batchv1.JobFailureTarget, "BackoffLimitExceeded"
	j.Status = batchv1.JobStatus{StartTime: &now, Failed: 1}
	if how == batchv1.JobComplete {
		before, reason = batchv1.JobSuccessCriteriaMet, "CompletionsReached"
		j.Status = batchv1.JobStatus{StartTime: &now, CompletionTime: &now, Succeeded: 1}
	}
	j.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	for _, c := range []batchv1.JobConditionType{before, how} {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: c, Status: corev1.ConditionTrue, Reason: reason, Message: "of the controller", LastTransitionTime: now})
	}
	h.must(h.Status().Update(h.Context(), j))
	h.job(v1alpha1.JobState(how), false)
	return string(j.UID)
}

func (h *house) deleteJob() {
	h.Helper()
	h.must(h.Delete(h.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "setup"}}, client.PropagationPolicy(metav1.DeletePropagationBackground)))
}

// looked has the addon reconciled the whole way, and waits until that is done.
func (h *house) looked() {
	h.Helper()
	before := h.counting.renders.Load()
	h.change("jobs", func(a *v1alpha1.ZaentrumAddon) {
		if a.Annotations == nil {
			a.Annotations = map[string]string{}
		}
		a.Annotations["look"] = fmt.Sprint(time.Now().UnixNano())
	})
	h.eventually(func() string {
		if h.counting.renders.Load() == before {
			return "not rendered"
		}
		return ""
	})
	// One more, so that the first has written what it had to.
	again := h.counting.fetches.Load()
	h.change("jobs", func(a *v1alpha1.ZaentrumAddon) { a.Annotations["look"] = fmt.Sprint(time.Now().UnixNano()) })
	h.eventually(func() string {
		if h.counting.fetches.Load() == again {
			return "not looked at"
		}
		return ""
	})
}

func TestAFinishedJobThatSomebodyDeletesIsNotRunAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		how   batchv1.JobConditionType
		phase v1alpha1.Phase
		says  string
	}{
		"one that did its work": {batchv1.JobComplete, v1alpha1.PhaseReady, "components are ready"},
		"one that failed":       {batchv1.JobFailed, v1alpha1.PhaseDegraded, "Job/setup failed (BackoffLimitExceeded) and was deleted; it runs again when it changes"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			values := h.jobAddon()
			first := h.finish(tc.how)
			h.deleteJob()
			run := h.job(v1alpha1.JobState(tc.how), true)
			if run.Name != "setup" || run.Run == "" || run.StartTime == nil || run.FinishTime == nil {
				t.Errorf("got %+v", run)
			}
			h.says("jobs", tc.phase, tc.says)
			still := func(when string) {
				t.Helper()
				h.looked()
				if uid := h.uid(); uid != "" {
					t.Errorf("%s it runs again", when)
				}
				h.job(v1alpha1.JobState(tc.how), true)
				h.says("jobs", tc.phase, tc.says)
			}
			still("at the next look")
			h.stop()
			h.start()
			still("after a restart")
			h.change("jobs", func(a *v1alpha1.ZaentrumAddon) { a.Spec.Chart.Version = "1.0.1" })
			h.eventually(func() string {
				a := &v1alpha1.ZaentrumAddon{}
				h.must(h.Get(t.Context(), h.key("jobs"), a))
				if l := a.Status.LastAppliedChart; l == nil || l.Version != "1.0.1" {
					return "not upgraded"
				}
				return ""
			})
			still("with another label")

			// A plan does not count it among what comes, and leaves it remembered.
			h.change("jobs", func(a *v1alpha1.ZaentrumAddon) { a.Spec.Suspend = true })
			a := h.phase("jobs", v1alpha1.PhasePlanned)
			if added := a.Status.Plan.Changes.Added; len(added) > 0 {
				t.Errorf("the plan adds %v", added)
			}
			values(`{"job":false,"tag":1}`)
			h.phase("jobs", v1alpha1.PhasePlanned)
			values(`{"job":true,"tag":1}`)
			h.phase("jobs", v1alpha1.PhasePlanned)
			h.change("jobs", func(a *v1alpha1.ZaentrumAddon) { a.Spec.Suspend = false })
			h.phase("jobs", tc.phase)
			still("after a plan without it")

			h.change("jobs", func(a *v1alpha1.ZaentrumAddon) { a.Spec.Suspend = true })
			values(`{"job":true,"tag":2}`)
			p := h.phase("jobs", v1alpha1.PhasePlanned).Status.Plan
			if want := "Job/setup runs again: it changes, and the one that ran was deleted"; len(p.Changes.Added) != 1 || !slices.Contains(p.Effects, want) {
				t.Errorf("a Job that comes back: %v, %q", p.Changes.Added, p.Effects)
			}
			h.change("jobs", func(a *v1alpha1.ZaentrumAddon) { a.Spec.Suspend = false })
			second := h.anotherJob(first)
			h.finish(batchv1.JobComplete)
			// What is rendered no more is forgotten, and starts anew when it is back.
			values(`{"job":false,"tag":2}`)
			h.job("", false)
			values(`{"job":true,"tag":2}`)
			h.anotherJob(second)
		})
	}
}

func TestAJobThatIsDeletedWhileItRunsIsRunAgain(t *testing.T) {
	h := newHouse(t)
	h.jobAddon()
	first := h.uid()
	h.deleteJob()
	h.anotherJob(first)
}

// A finalizer shows a Job that somebody deletes for a while: one that ran does not come back, and nothing waits
// for it.
func TestAFinishedJobThatIsGoingIsNotWaitedFor(t *testing.T) {
	h := newHouse(t)
	h.jobAddon()
	h.finish(batchv1.JobComplete)
	finalizers := func(list ...string) {
		j := &batchv1.Job{}
		h.must(h.Get(t.Context(), h.key("setup"), j))
		before := j.DeepCopy()
		j.Finalizers = list
		h.must(h.Patch(t.Context(), j, client.MergeFrom(before)))
	}
	finalizers("example.org/wait")
	h.deleteJob()
	h.looked()
	h.says("jobs", v1alpha1.PhaseReady, "components are ready")
	finalizers()
	h.job(v1alpha1.JobComplete, true)
	h.looked()
	if h.uid() != "" {
		t.Error("it runs again")
	}
}

func TestAJobOfAnAddonThatIsAddedAnewRuns(t *testing.T) {
	h := newHouse(t)
	h.jobAddon()
	first := h.finish(batchv1.JobComplete)
	former := h.addonNow("jobs")
	h.must(h.Delete(t.Context(), former))
	h.deleteJob()
	h.collect(former.UID, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "jobs"}}, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "setup"}})
	a := h.addon("jobs", "jobs", "1.0.0")
	a.Spec.Values = &runtime.RawExtension{Raw: []byte(`{"job":true,"tag":1}`)}
	h.create(a, v1alpha1.PhaseReady)
	h.anotherJob(first)
}

// A Job that changes while its predecessor does not go is waited for, and told.
func TestAJobThatWaitsIsTold(t *testing.T) {
	h := newHouse(t)
	values := h.jobAddon()
	j := &batchv1.Job{}
	h.must(h.Get(t.Context(), h.key("setup"), j))
	before := j.DeepCopy()
	j.Finalizers = []string{"example.org/wait"}
	h.must(h.Patch(t.Context(), j, client.MergeFrom(before)))
	values(`{"job":true,"tag":2}`)
	run := h.job(v1alpha1.JobWaiting, false)
	if !strings.Contains(run.Reason, "not gone yet") {
		t.Errorf("got %+v", run)
	}
	h.says("jobs", v1alpha1.PhaseInstalling, "waiting for the old Job/setup to be gone")
	if h.uid() != "" {
		t.Error("two at once")
	}
	h.must(h.Get(t.Context(), h.key("setup"), j))
	before = j.DeepCopy()
	j.Finalizers = nil
	h.must(h.Patch(t.Context(), j, client.MergeFrom(before)))
	h.anotherJob(string(j.UID))
}
