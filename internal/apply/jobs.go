package apply

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/manifest"
)

// mutable are the fields of a Job's spec that can change while it exists, so that it does not run again.
var mutable = []string{
	"activeDeadlineSeconds", "backoffLimit", "maxFailedIndexes", "parallelism", "podReplacementPolicy", "suspend", "ttlSecondsAfterFinished",
}

// Run is the mark that a rendered Job gets when it is applied: a digest of all that makes it run again when it
// changes, the values behind the checksum included. It differs from owner to owner.
func Run(job manifest.Object, m Marks) string {
	o := job.Clone()
	decorate(o, m)
	return o.Unstructured().GetAnnotations()[v1alpha1.AnnotationRun]
}

func runOf(job manifest.Object, owner Owner) string {
	spec := maps.Clone(asMap(job.Tree["spec"]))
	for _, field := range mutable {
		delete(spec, field)
	}
	text, err := json.Marshal([]any{owner.UID, job.ID().Name, spec}) // maps are written in key order
	if err != nil {
		return "" // a tree of JSON types has an encoding
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// Finished tells whether a run is over, well or not.
func Finished(j v1alpha1.JobRun) bool {
	return j.State == v1alpha1.JobComplete || j.State == v1alpha1.JobFailed
}

// Resting are the Jobs of a rendered set that have run, are gone or going because somebody deleted them, and are
// not to run again since nothing about them changed. before is what is remembered of the owner's Jobs, and owned
// what it has now.
func Resting(rendered manifest.Set, m Marks, before []v1alpha1.JobRun, owned manifest.Set) []manifest.ID {
	var out []manifest.ID
	for _, o := range rendered {
		live, exists := owned.Find(o.ID())
		leaving := exists && live.Unstructured().GetDeletionTimestamp() != nil
		if !isJob(o) || exists && !leaving || !leaving && len(before) == 0 {
			continue
		}
		run := Run(o, m)
		over := slices.ContainsFunc(before, func(j v1alpha1.JobRun) bool { return j.Run == run && Finished(j) })
		if leaving { // it may have finished unseen
			last := jobOf(live, nil).JobRun
			over = over || last.Run == run && Finished(last)
		}
		if over {
			out = append(out, o.ID())
		}
	}
	return out
}

// Remembered are those of the runs that are over and that keep wants, the others are forgotten. A nil keep keeps
// all.
func Remembered(before []v1alpha1.JobRun, keep func(run string) bool) []v1alpha1.JobRun {
	var out []v1alpha1.JobRun
	for _, j := range before {
		if Finished(j) && j.Run != "" && (keep == nil || keep(j.Run)) {
			out = append(out, j)
		}
	}
	return out
}

// job is one run and what it means.
type job struct {
	v1alpha1.JobRun
	// stuck tells that it will not end by itself.
	stuck bool
}

// jobs are the runs of the live Jobs, and those that are remembered of Jobs that are no more, by name.
func jobs(live manifest.Set, pods []*corev1.Pod, remembered []v1alpha1.JobRun) []job {
	var out []job
	for _, o := range live {
		if isJob(o) {
			out = append(out, jobOf(o, pods).recalled(remembered))
		}
	}
	for _, r := range remembered {
		if !slices.ContainsFunc(out, func(now job) bool { return now.Name == r.Name || now.Run == r.Run }) {
			r.Deleted = true
			out = append(out, job{JobRun: r})
		}
	}
	slices.SortStableFunc(out, func(a, b job) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// jobOf is what a live Job and its pods say about its run.
func jobOf(o manifest.Object, pods []*corev1.Pod) job {
	u := o.Unstructured()
	j := job{JobRun: v1alpha1.JobRun{
		Name: u.GetName(), State: v1alpha1.JobRunning, Run: u.GetAnnotations()[v1alpha1.AnnotationRun],
		StartTime: moment(u.GetCreationTimestamp()),
	}}
	trouble := worst(slices.DeleteFunc(podsOfJob(pods, j.Name), func(p *corev1.Pod) bool {
		return metav1.GetControllerOfNoCopy(p).UID != u.GetUID()
	}))
	complete := condition(u, "Complete")
	failed := condition(u, "Failed")
	suspended, _, _ := unstructured.NestedBool(u.Object, "spec", "suspend")
	switch {
	case complete.status == "True":
		j.State, j.FinishTime = v1alpha1.JobComplete, complete.since
	case failed.status == "True":
		j.State, j.FinishTime, j.Reason = v1alpha1.JobFailed, failed.since, failed.reason
		if trouble.grade == fails {
			j.Reason = cmp.Or(j.Reason, "Failed") + ": " + trouble.text
		}
	case suspended:
		j.State = v1alpha1.JobSuspended
	case trouble.grade > mild:
		j.Reason = trouble.text
		// One whose pods fail or crash tries again until it gives up by itself.
		j.stuck = trouble.stalls() && trouble.grade != crashes
	}
	return j
}

// recalled is the run with what was known of how it failed, when the pods that told are gone.
func (j job) recalled(remembered []v1alpha1.JobRun) job {
	for _, r := range remembered {
		if r.Run == j.Run && r.State == j.State && strings.HasPrefix(r.Reason, j.Reason) {
			j.Reason = r.Reason
		}
	}
	return j
}

// health is what a run means for its owner: one that failed, or gets nowhere, is a fault; one under way is none.
func (j job) health() (State, string) {
	text := "Job/" + j.Name
	switch {
	case j.State == v1alpha1.JobFailed:
		text += " failed"
		if j.Reason != "" {
			text += " (" + j.Reason + ")"
		}
		if j.Deleted {
			text += " and was deleted; it runs again when it changes"
		}
		return Degraded, text
	case j.stuck:
		return Degraded, text + ": " + j.Reason
	}
	return Ready, ""
}

func moment(t metav1.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
