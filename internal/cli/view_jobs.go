package cli

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"zaentrum.io/zae/api/v1alpha1"
)

// printJobs is a table of the last runs of an addon's Jobs; nothing for an addon without Jobs.
func (a *app) printJobs(list []v1alpha1.JobRun) {
	if len(list) == 0 {
		return
	}
	a.out.printf("\n")
	var t table
	t.row("JOB", "STATE", "SINCE", "REASON")
	for _, j := range list {
		since := j.StartTime
		if j.FinishTime != nil {
			since = j.FinishTime
		}
		t.row(j.Name, jobStyle(j), orDash(a.since(since)), orDash(jobReason(j)))
	}
	t.print(a.out)
}

func jobStyle(j v1alpha1.JobRun) any {
	if j.State == v1alpha1.JobFailed {
		return style(bad, string(j.State))
	}
	return string(j.State)
}

// jobReason is why a Job is where it is, and what has become of it.
func jobReason(j v1alpha1.JobRun) string {
	parts := nonEmpty(j.Reason)
	if j.Deleted {
		parts = append(parts, "deleted since; it runs again when it changes")
	}
	return strings.Join(parts, "; ")
}

// jobText is a Job's state on one line, for people who wait.
func jobText(j v1alpha1.JobRun) string {
	return strings.Join(nonEmpty(string(j.State), jobReason(j)), ": ")
}

// since is a time that has been: relative on a terminal, RFC 3339 elsewhere; empty for none.
func (a *app) since(t *metav1.Time) string {
	if t.IsZero() {
		return ""
	}
	if a.out.width == 0 {
		return t.UTC().Format(time.RFC3339)
	}
	switch d := a.p.Now().Sub(t.Time); {
	case d < time.Second:
		return "now"
	case d < time.Minute:
		return d.Round(time.Second).String() + " ago"
	case d < 48*time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s") + " ago"
	default:
		return count(int(d.Hours()/24), "day") + " ago"
	}
}
