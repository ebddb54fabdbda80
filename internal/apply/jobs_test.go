package apply_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apply"
	"zaentrum.io/zae/internal/manifest"
)

// job is a live Job.
func job(name, spec, status string) string {
	return "{apiVersion: batch/v1, kind: Job, metadata: {name: " + name + ", uid: uid-of-controller, creationTimestamp: '2026-01-01T00:00:00Z', annotations: {zaentrum.io/run: run-" + name + "}}, spec: {" + spec + "}, status: {" + status + "}}\n---\n"
}

const (
	complete = `completionTime: '2026-01-01T00:01:00Z', succeeded: 1, conditions: [{type: SuccessCriteriaMet, status: "True"}, {type: Complete, status: "True", reason: CompletionsReached, lastTransitionTime: '2026-01-01T00:01:00Z'}]`
	gaveUp   = `failed: 3, conditions: [{type: FailureTarget, status: "True"}, {type: Failed, status: "True", reason: BackoffLimitExceeded, message: c4n4ry, lastTransitionTime: '2026-01-01T00:01:00Z'}]`
)

func at1(minute int) *metav1.Time {
	return &metav1.Time{Time: time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC)}
}

func TestJobs(t *testing.T) {
	failedPod := podOf(t, "Job", "j", "phase: Failed\ncontainerStatuses: [{name: w, state: {terminated: {exitCode: 3, message: c4n4ry}}}]")
	run := func(state v1alpha1.JobState, reason string, finish *metav1.Time) []v1alpha1.JobRun {
		return []v1alpha1.JobRun{{Name: "j", State: state, Reason: reason, StartTime: at1(0), FinishTime: finish, Run: "run-j"}}
	}
	deleted := func(state v1alpha1.JobState, reason string) []v1alpha1.JobRun {
		r := run(state, reason, at1(1))
		r[0].Deleted = true
		return r
	}
	for name, tc := range map[string]struct {
		live       string
		pods       []*corev1.Pod
		remembered []v1alpha1.JobRun
		state      apply.State
		reason     string
		jobs       []v1alpha1.JobRun
	}{
		"a Job that runs does not count":          {live: job("j", "", "active: 1, failed: 3"), jobs: run(v1alpha1.JobRunning, "", nil)},
		"a Job that was just created":             {live: job("j", "", ""), jobs: run(v1alpha1.JobRunning, "", nil)},
		"a Job that is suspended by the chart":    {live: job("j", "suspend: true", ""), jobs: run(v1alpha1.JobSuspended, "", nil)},
		"a Job that did its work":                 {live: job("j", "", complete), jobs: run(v1alpha1.JobComplete, "", at1(1))},
		"a Job that is about to be complete runs": {live: job("j", "", `conditions: [{type: SuccessCriteriaMet, status: "True"}]`), jobs: run(v1alpha1.JobRunning, "", nil)},
		"a Job whose pods fail tries again": {
			live: job("j", "", "failed: 1"), pods: []*corev1.Pod{failedPod}, jobs: run(v1alpha1.JobRunning, "container w ends with exit code 3", nil),
		},
		"a Job whose pods crash tries again": {
			live: job("j", "", "active: 1"), pods: []*corev1.Pod{podOf(t, "Job", "j", "containerStatuses: [{name: w, restartCount: 2, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 3}}}]")},
			jobs: run(v1alpha1.JobRunning, "CrashLoopBackOff: container w ends with exit code 3 again and again: see its log", nil),
		},
		"a Job whose image cannot be pulled gets nowhere": {
			live: job("j", "", "active: 1"), pods: []*corev1.Pod{podOf(t, "Job", "j", wait("ErrImagePull", "not found"))},
			state: apply.Degraded, reason: "Job/j: ImagePullBackOff: image example/w:1 not found: check its name and tag",
			jobs: run(v1alpha1.JobRunning, "ImagePullBackOff: image example/w:1 not found: check its name and tag", nil),
		},
		"another Job's pods do not count": {
			live: job("j", "", "active: 1"), pods: []*corev1.Pod{podOf(t, "Job", "k", wait("ErrImagePull", ""))}, jobs: run(v1alpha1.JobRunning, "", nil),
		},
		"a Job that failed": {
			live: job("j", "", gaveUp), state: apply.Degraded, reason: "Job/j failed (BackoffLimitExceeded)", jobs: run(v1alpha1.JobFailed, "BackoffLimitExceeded", at1(1)),
		},
		"a Job that failed, with its pod": {
			live: job("j", "", gaveUp), pods: []*corev1.Pod{failedPod}, state: apply.Degraded, reason: "Job/j failed (BackoffLimitExceeded: container w ends with exit code 3)",
			jobs: run(v1alpha1.JobFailed, "BackoffLimitExceeded: container w ends with exit code 3", at1(1)),
		},
		"a Job that failed, its pod gone since": {
			live: job("j", "", gaveUp), remembered: run(v1alpha1.JobFailed, "BackoffLimitExceeded: container w ends with exit code 3", at1(1)),
			state: apply.Degraded, reason: "Job/j failed (BackoffLimitExceeded: container w ends with exit code 3)",
			jobs: run(v1alpha1.JobFailed, "BackoffLimitExceeded: container w ends with exit code 3", at1(1)),
		},
		"a Job that did its work and was deleted": {remembered: run(v1alpha1.JobComplete, "", at1(1)), jobs: deleted(v1alpha1.JobComplete, "")},
		"a Job that failed and was deleted": {
			remembered: run(v1alpha1.JobFailed, "BackoffLimitExceeded", at1(1)), state: apply.Degraded,
			reason: "Job/j failed (BackoffLimitExceeded) and was deleted; it runs again when it changes", jobs: deleted(v1alpha1.JobFailed, "BackoffLimitExceeded"),
		},
		"a Job that is there anew":              {live: job("j", "", ""), remembered: deleted(v1alpha1.JobFailed, "BackoffLimitExceeded"), jobs: run(v1alpha1.JobRunning, "", nil)},
		"a Job of another group does not count": {live: "{apiVersion: example.org/v1, kind: Job, metadata: {name: j}}"},
		"fields of the wrong type count as missing": {
			live: "{apiVersion: batch/v1, kind: Job, metadata: {name: j, annotations: {zaentrum.io/run: run-j}, creationTimestamp: '2026-01-01T00:00:00Z'}, spec: {suspend: x}, status: {conditions: [{type: Complete, status: 3}, {type: Failed, lastTransitionTime: x}]}}",
			jobs: run(v1alpha1.JobRunning, "", nil),
		},
	} {
		t.Run(name, func(t *testing.T) {
			live := manifest.Set{}
			if tc.live != "" {
				live = parse(t, tc.live)
			}
			want := apply.Health{State: tc.state, Reason: tc.reason, Jobs: tc.jobs}
			if d := cmp.Diff(want, apply.Assess(live, tc.pods, tc.remembered)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestWhatMakesAJobAnotherRun(t *testing.T) {
	run := func(text string, change func(*apply.Marks)) string {
		m := marksOf(exampleOwner)
		if change != nil {
			change(&m)
		}
		o := parse(t, text)[0]
		got := apply.Run(o, m)
		if applied := apply.Decorate(manifest.Set{o}, m)[0]; apply.Run(applied, m) != got || applied.Unstructured().GetAnnotations()[v1alpha1.AnnotationRun] != got || got == "" {
			t.Errorf("rendered and applied are two runs: %s", got)
		}
		return got
	}
	was := run(jobText, nil)
	for name, tc := range map[string]struct {
		old, new string
		marks    func(*apply.Marks)
		same     bool
	}{
		"nothing":                     {"", "", nil, true},
		"a label":                     {"l: a", "l: b", nil, true},
		"a field that can change":     {"parallelism: 1", "parallelism: 2, backoffLimit: 3, activeDeadlineSeconds: 60", nil, true},
		"a lifetime that is not used": {"parallelism: 1", "parallelism: 1\n  ttlSecondsAfterFinished: 60", nil, true},
		"a null field":                {"parallelism: 1", "completions: null", nil, true},
		"who else is part of it":      {"", "", func(m *apply.Marks) { m.Labels[v1alpha1.LabelPartOf] = "x" }, true},
		"an image":                    {"setup:1", "setup:2", nil, false},
		"a variable":                  {"value: a", "value: c", nil, false},
		"how often it has to succeed": {"parallelism: 1", "completions: 2", nil, false},
		"its name":                    {"name: setup,", "name: other,", nil, false},
		"a value":                     {"", "", func(m *apply.Marks) { m.Checksum = "c0ffee2" }, false},
		"the owner":                   {"", "", func(m *apply.Marks) { m.Owner.UID = "another" }, false},
	} {
		text := jobText
		if tc.old != "" {
			text = strings.Replace(text, tc.old, tc.new, 1)
			if strings.Contains(tc.new, ", backoffLimit") {
				text = strings.ReplaceAll(text, ", backoffLimit: 3, activeDeadlineSeconds: 60", "\n  backoffLimit: 3\n  activeDeadlineSeconds: 60")
			}
		}
		if got := run(text, tc.marks); (got == was) != tc.same {
			t.Errorf("%s: %s, and %s", name, was, got)
		}
	}
}

func TestWhichJobsRest(t *testing.T) {
	m := marksOf(exampleOwner)
	rendered := parse(t, jobText+"---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: setup}}")
	run := apply.Run(rendered[0], m)
	over := func(state v1alpha1.JobState, run string) []v1alpha1.JobRun {
		return []v1alpha1.JobRun{{Name: "setup", State: state, Run: run}}
	}
	live := func(leaving, status string) manifest.Set {
		return parse(t, "{apiVersion: batch/v1, kind: Job, metadata: {name: setup, "+leaving+"annotations: {zaentrum.io/run: "+run+"}}, status: {"+status+"}}")
	}
	const leaving = "deletionTimestamp: '2026-01-01T00:00:00Z', "
	for name, tc := range map[string]struct {
		before []v1alpha1.JobRun
		owned  manifest.Set
		rests  bool
	}{
		"nothing is known of it":               {nil, nil, false},
		"it ran and is gone":                   {over(v1alpha1.JobComplete, run), nil, true},
		"it failed and is gone":                {over(v1alpha1.JobFailed, run), nil, true},
		"it was at work and is gone":           {over(v1alpha1.JobRunning, run), nil, false},
		"it waited":                            {over(v1alpha1.JobWaiting, ""), nil, false},
		"it ran as something else":             {over(v1alpha1.JobComplete, "another"), nil, false},
		"it ran and is there":                  {over(v1alpha1.JobComplete, run), live("", complete), false},
		"it ran and is going":                  {over(v1alpha1.JobComplete, run), live(leaving, complete), true},
		"it ran, is going, and nobody noticed": {nil, live(leaving, complete), true},
		"it failed, is going, nobody noticed":  {nil, live(leaving, gaveUp), true},
		"it is at work and going":              {nil, live(leaving, "active: 1"), false},
	} {
		got := apply.Resting(rendered, m, tc.before, tc.owned)
		if rests := slices.Equal(names(got), []string{"Job/setup"}); rests != tc.rests || len(got) > 1 {
			t.Errorf("%s: %v", name, got)
		}
	}
	changed := parse(t, strings.Replace(jobText, "setup:1", "setup:2", 1))
	if got := apply.Resting(changed, m, nil, live(leaving, complete)); len(got) > 0 {
		t.Errorf("it ran as something else and is going: %v", got)
	}
}

func TestWhichRunsAreRemembered(t *testing.T) {
	runs := []v1alpha1.JobRun{
		{Name: "a", State: v1alpha1.JobComplete, Run: "1"}, {Name: "b", State: v1alpha1.JobFailed, Run: "2", Deleted: true},
		{Name: "c", State: v1alpha1.JobRunning, Run: "3"}, {Name: "d", State: v1alpha1.JobWaiting}, {Name: "e", State: v1alpha1.JobComplete},
	}
	if d := cmp.Diff(runs[:2], apply.Remembered(runs, nil)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(runs[1:2], apply.Remembered(runs, func(run string) bool { return run == "2" })); d != "" {
		t.Error(d)
	}
}

func TestWaitingJobsAreTold(t *testing.T) {
	h := apply.Health{Jobs: []v1alpha1.JobRun{{Name: "b", State: v1alpha1.JobComplete}, {Name: "c", State: v1alpha1.JobComplete}}}
	h.Wait([]manifest.ID{id("batch/v1", "Job", "b"), id("v1", "Service", "s"), id("batch/v1", "Job", "a")})
	var got []string
	for _, j := range h.Jobs {
		got = append(got, j.Name+" "+string(j.State))
	}
	if want := []string{"a Waiting", "b Waiting", "c Complete"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
