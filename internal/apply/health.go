package apply

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/manifest"
)

// State is how well what was applied runs.
type State int

// The states, from good to bad.
const (
	// Ready: every Deployment runs as it should, or there is none.
	Ready State = iota
	// Installing: a rollout is under way.
	Installing
	// Degraded: what was rolled out does not run any more, a rollout is stuck, or a Job failed.
	Degraded
)

// Health is how the objects of an owner do.
type Health struct {
	State State
	// Reason is what keeps the state from Ready, in one line; empty when nothing does.
	Reason string
	// Components are the live Deployments, in apply order.
	Components []v1alpha1.Component
	// Jobs are the last runs of the Jobs, by name.
	Jobs []v1alpha1.JobRun
}

// Health reads how an owner's live objects do, its pods included where they may be seen. remembered are runs of Jobs
// that are over, of which the Job may be gone. It makes no request.
func (c *Cluster) Health(o Owner, live manifest.Set, remembered []v1alpha1.JobRun) Health {
	return Assess(live, c.pods(o), remembered)
}

// pods are the owner's, as far as they may be seen.
func (c *Cluster) pods(o Owner) []*corev1.Pod {
	if c.OwnPods == nil {
		return nil
	}
	return c.OwnPods(o.Namespace, o.Name)
}

// Assess reads the health of live objects off their Deployments, their Jobs and the pods of both; other kinds do
// not count. Without pods, the Deployments and Jobs speak alone. A Job counts only when it failed or cannot run. The
// worst object decides, the first one of these in apply order gives the reason.
func Assess(live manifest.Set, pods []*corev1.Pod, remembered []v1alpha1.JobRun) Health {
	var h Health
	for _, o := range live.InApplyOrder() {
		if !isDeployment(o) {
			continue
		}
		id := o.ID()
		r := rolloutOf(o.Unstructured())
		state, reason := r.state(worst(podsOf(pods, id.Name, r.set)))
		h.Components = append(h.Components, v1alpha1.Component{
			Name: id.Name, Kind: id.Kind, Ready: int32(r.ready), Desired: int32(r.desired), Reason: reason,
		})
		h.worsen(state, id.String()+": "+reason)
	}
	for _, j := range jobs(live, pods, remembered) {
		h.Jobs = append(h.Jobs, j.JobRun)
		h.worsen(j.health())
	}
	return h
}

// Wait adds the Jobs among objects that are created once their predecessors are gone.
func (h *Health) Wait(ids []manifest.ID) {
	for _, id := range ids {
		if id.Kind != "Job" || id.GVK().Group != "batch" {
			continue
		}
		h.Jobs = slices.DeleteFunc(h.Jobs, func(j v1alpha1.JobRun) bool { return j.Name == id.Name })
		h.Jobs = append(h.Jobs, v1alpha1.JobRun{Name: id.Name, State: v1alpha1.JobWaiting, Reason: "the one of before is not gone yet, or its pods are not"})
	}
	slices.SortStableFunc(h.Jobs, func(a, b v1alpha1.JobRun) int { return cmp.Compare(a.Name, b.Name) })
}

func (h *Health) worsen(state State, reason string) {
	if state > h.State {
		h.State, h.Reason = state, reason
	}
}

func isDeployment(o manifest.Object) bool {
	id := o.ID()
	return id.Kind == "Deployment" && id.GVK().Group == "apps"
}

func isJob(o manifest.Object) bool {
	id := o.ID()
	return id.Kind == "Job" && id.GVK().Group == "batch"
}

// rollout is what a Deployment says about its pods.
type rollout struct {
	desired, total, updated, ready, available int64

	observed    bool // the controller has seen this generation
	progressing cond
	failing     cond // ReplicaFailure

	set string // the name of the ReplicaSet that is rolled out; empty when the Deployment does not tell
}

func rolloutOf(u *unstructured.Unstructured) rollout {
	number := func(missing int64, fields ...string) int64 {
		n, ok, err := unstructured.NestedInt64(u.Object, fields...)
		if !ok || err != nil {
			return missing
		}
		return n
	}
	r := rollout{
		desired:   number(1, "spec", "replicas"),
		total:     number(0, "status", "replicas"),
		updated:   number(0, "status", "updatedReplicas"),
		ready:     number(0, "status", "readyReplicas"),
		available: number(0, "status", "availableReplicas"),
		observed:  number(0, "status", "observedGeneration") >= cmp.Or(u.GetGeneration(), 1),
	}
	r.progressing = condition(u, "Progressing")
	r.failing = condition(u, "ReplicaFailure")
	// The controller names the ReplicaSet in quotes, in each of its sentences about progress.
	if _, after, ok := strings.Cut(r.progressing.message, `"`); ok {
		name, _, _ := strings.Cut(after, `"`)
		if strings.HasPrefix(name, u.GetName()+"-") {
			r.set = name
		}
	}
	return r
}

// state is the Deployment's state and what keeps it from Ready. pods is what is wrong with the pods that are rolled
// out.
func (r rollout) state(pods trouble) (State, string) {
	if !r.observed {
		return Installing, "the rollout has not started"
	}
	missing := r.missing()
	switch {
	case missing == "":
		return Ready, ""
	case r.progressing.reason == "DeploymentPaused":
		return Degraded, "DeploymentPaused: somebody paused the rollout, " + missing
	case r.failing.status == "True":
		return Degraded, uncreated(r.failing.reason, r.failing.message).text
	case pods.stalls():
		return Degraded, pods.text
	case r.progressing.status == "False":
		return Degraded, cmp.Or(r.progressing.reason, "Stalled") + ": " + explained(missing, pods)
	}
	// The controller sets this reason when the generation's rollout is complete, keeps it when pods fail
	// afterwards, and, for a moment, when a new rollout begins: then pods of the new template are missing.
	if r.progressing.reason == "NewReplicaSetAvailable" && r.updated == r.total && r.updated >= r.desired {
		return Degraded, explained(missing, pods)
	}
	// Not explained: what passes by itself is not worth a write each time.
	return Installing, missing
}

func explained(missing string, pods trouble) string {
	if pods.text == "" {
		return missing
	}
	return missing + ", " + pods.text
}

// missing says in what the rollout is not complete: all pods are of the new template, all are available, and
// no pod of an older one is left.
func (r rollout) missing() string {
	switch {
	case r.updated < r.desired:
		return fmt.Sprintf("%d of %d pods updated", r.updated, r.desired)
	case r.available < r.desired:
		return fmt.Sprintf("%d of %d pods available", r.available, r.desired)
	case r.total > r.updated:
		return fmt.Sprintf("old pods left: %d", r.total-r.updated)
	case r.updated > r.desired:
		return fmt.Sprintf("pods too many: %d", r.updated-r.desired)
	}
	return ""
}

// cond is a condition as far as it is used. The message is recognised, and never repeated.
type cond struct {
	status, reason, message string
	since                   *metav1.Time
}

// condition reads a condition, empty for none; a reason that is no single word is dropped.
func condition(u *unstructured.Unstructured, kind string) cond {
	list, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
	if err != nil {
		return cond{}
	}
	for _, m := range mapItems(list) {
		if m["type"] != kind {
			continue
		}
		var c cond
		c.status, _ = m["status"].(string)
		reason, _ := m["reason"].(string)
		c.reason = word(reason)
		c.message, _ = m["message"].(string)
		since, _ := m["lastTransitionTime"].(string)
		if at, err := time.Parse(time.RFC3339, since); err == nil {
			c.since = moment(metav1.NewTime(at))
		}
		return c
	}
	return cond{}
}
