package apply

import (
	"cmp"
	"fmt"

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

// Health is the state of a set, and what keeps it from Ready: one line, empty when it is.
type Health struct {
	State  State
	Reason string
}

// Assess reads the health of live objects off their Deployments and Jobs; other kinds do not count. A Job counts
// only when it failed. The worst object decides, the first one of these in apply order gives the reason.
func Assess(live manifest.Set) Health {
	var h Health
	for _, o := range live.InApplyOrder() {
		var of Health
		switch {
		case isDeployment(o):
			of.State, of.Reason = rolloutOf(o.Unstructured()).state()
			if of.State != Ready {
				of.Reason = o.ID().String() + ": " + of.Reason
			}
		case isJob(o):
			if f, ok := condition(o.Unstructured(), "Failed"); ok && f.status == "True" {
				of = Health{Degraded, o.ID().String() + " failed"}
				if f.reason != "" {
					of.Reason += " (" + f.reason + ")"
				}
			}
		}
		if of.State > h.State {
			h = of
		}
	}
	return h
}

// Components are the live Deployments of a set, in apply order.
func Components(live manifest.Set) []v1alpha1.Component {
	var out []v1alpha1.Component
	for _, o := range live.InApplyOrder() {
		if !isDeployment(o) {
			continue
		}
		r := rolloutOf(o.Unstructured())
		_, reason := r.state()
		id := o.ID()
		out = append(out, v1alpha1.Component{
			Name: id.Name, Kind: id.Kind, Ready: int32(r.ready), Desired: int32(r.desired), Reason: reason,
		})
	}
	return out
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
	r.progressing, _ = condition(u, "Progressing")
	r.failing, _ = condition(u, "ReplicaFailure")
	return r
}

// state is the Deployment's state and what keeps it from Ready.
func (r rollout) state() (State, string) {
	if !r.observed {
		return Installing, "the rollout has not started"
	}
	missing := r.missing()
	switch {
	case missing == "":
		return Ready, ""
	case r.progressing.status == "False":
		return Degraded, cmp.Or(r.progressing.reason, missing)
	case r.progressing.reason == "DeploymentPaused":
		return Degraded, r.progressing.reason
	case r.failing.status == "True":
		missing = cmp.Or(r.failing.reason, missing)
	}
	// The controller sets this reason when the generation's rollout is complete, keeps it when pods fail
	// afterwards, and, for a moment, when a new rollout begins: then pods of the new template are missing.
	if r.progressing.reason == "NewReplicaSetAvailable" && r.updated == r.total && r.updated >= r.desired {
		return Degraded, missing
	}
	return Installing, missing
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

type cond struct{ status, reason string }

// condition reads a condition; a reason that is no single word is dropped.
func condition(u *unstructured.Unstructured, kind string) (cond, bool) {
	list, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
	if err != nil {
		return cond{}, false
	}
	for _, m := range mapItems(list) {
		if m["type"] != kind {
			continue
		}
		var c cond
		c.status, _ = m["status"].(string)
		reason, _ := m["reason"].(string)
		c.reason = word(reason)
		return c, true
	}
	return cond{}, false
}
