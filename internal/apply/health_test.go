package apply_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apply"
)

// deployment is a live Deployment of generation 2.
func deployment(name, replicas, status string) string {
	return fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s, generation: 2}, spec: {%s}, status: {%s}}\n---\n", name, replicas, status)
}

const (
	completeOnce = `, conditions: [{type: Progressing, status: "True", reason: NewReplicaSetAvailable}]`
	underway     = `, conditions: [{type: Progressing, status: "True", reason: ReplicaSetUpdated}]`
	pastDeadline = `, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: c4n4ry}]`
	noQuota      = `, conditions: [{type: Progressing, status: "True", reason: ReplicaSetUpdated}, {type: ReplicaFailure, status: "True", reason: FailedCreate, message: 'pods "d-1-" is forbidden: exceeded quota: compute, requested: pods=1,requests.cpu=100m, used: pods=2, limited: pods=2'}]`
	webhook      = `, conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: 'admission webhook "c4n4ry" denied the request: c4n4ry'}]`
	oddFailure   = `, conditions: [{type: ReplicaFailure, status: "True", reason: "c4n4ry!", message: c4n4ry}]`
	paused       = `, conditions: [{type: Progressing, status: Unknown, reason: DeploymentPaused}]`
	oddReason    = `, conditions: [{type: Progressing, status: "False", reason: "said c4n4ry!"}]`
)

func TestHealth(t *testing.T) {
	const two = "replicas: 2"
	for name, tc := range map[string]struct {
		live   string
		state  apply.State
		reason string
		comps  []v1alpha1.Component
	}{
		"no Deployment is ready": {"", apply.Ready, "", nil},
		"all pods new and available": {
			deployment("d", two, "observedGeneration: 2, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2"+completeOnce), apply.Ready, "",
			[]v1alpha1.Component{{Name: "d", Kind: "Deployment", Ready: 2, Desired: 2}},
		},
		"replicas default to one": {
			deployment("d", "", "observedGeneration: 2, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1"), apply.Ready, "",
			[]v1alpha1.Component{{Name: "d", Kind: "Deployment", Ready: 1, Desired: 1}},
		},
		"zero replicas are ready": {
			deployment("d", "replicas: 0", "observedGeneration: 2"), apply.Ready, "",
			[]v1alpha1.Component{{Name: "d", Kind: "Deployment"}},
		},
		"zero replicas are not ready while pods are left": {
			deployment("d", "replicas: 0", "observedGeneration: 2, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1"), apply.Installing, "Deployment/d: pods too many: 1",
			[]v1alpha1.Component{{Name: "d", Kind: "Deployment", Ready: 1, Reason: "pods too many: 1"}},
		},
		"just created": {
			deployment("d", two, ""), apply.Installing, "Deployment/d: the rollout has not started",
			[]v1alpha1.Component{{Name: "d", Kind: "Deployment", Desired: 2, Reason: "the rollout has not started"}},
		},
		"a new generation that nobody has seen, with the old one complete": {
			deployment("d", two, "observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2"+completeOnce), apply.Installing, "Deployment/d: the rollout has not started",
			[]v1alpha1.Component{{Name: "d", Kind: "Deployment", Ready: 2, Desired: 2, Reason: "the rollout has not started"}},
		},
		"a first rollout is installing, not degraded": {
			deployment("d", two, "observedGeneration: 2, replicas: 2, updatedReplicas: 2"+underway), apply.Installing, "Deployment/d: 0 of 2 pods available",
			[]v1alpha1.Component{{Name: "d", Kind: "Deployment", Desired: 2, Reason: "0 of 2 pods available"}},
		},
		"an old pod that still serves does not make a rollout complete": {
			deployment("d", two, "observedGeneration: 2, replicas: 3, updatedReplicas: 2, readyReplicas: 3, availableReplicas: 3"+underway), apply.Installing, "Deployment/d: old pods left: 1",
			[]v1alpha1.Component{{Name: "d", Kind: "Deployment", Ready: 3, Desired: 2, Reason: "old pods left: 1"}},
		},
		"pods of the new template are missing": {
			deployment("d", two, "observedGeneration: 2, replicas: 2, updatedReplicas: 1, readyReplicas: 2, availableReplicas: 2"+underway), apply.Installing, "Deployment/d: 1 of 2 pods updated",
			[]v1alpha1.Component{{Name: "d", Kind: "Deployment", Ready: 2, Desired: 2, Reason: "1 of 2 pods updated"}},
		},
		"a pod that fails after the rollout is degraded": {
			deployment("d", two, "observedGeneration: 2, replicas: 2, updatedReplicas: 2, readyReplicas: 1, availableReplicas: 1"+completeOnce), apply.Degraded, "Deployment/d: 1 of 2 pods available",
			[]v1alpha1.Component{{Name: "d", Kind: "Deployment", Ready: 1, Desired: 2, Reason: "1 of 2 pods available"}},
		},
		"past its progress deadline is degraded": {
			deployment("d", two, "observedGeneration: 2, replicas: 2, updatedReplicas: 2"+pastDeadline), apply.Degraded, "Deployment/d: ProgressDeadlineExceeded: 0 of 2 pods available",
			[]v1alpha1.Component{{Name: "d", Kind: "Deployment", Desired: 2, Reason: "ProgressDeadlineExceeded: 0 of 2 pods available"}},
		},
		"past its deadline, and complete after all": {
			deployment("d", two, "observedGeneration: 2, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2"+pastDeadline), apply.Ready, "",
			[]v1alpha1.Component{{Name: "d", Kind: "Deployment", Ready: 2, Desired: 2}},
		},
		"pods that a quota has no room for": {
			deployment("d", two, "observedGeneration: 2"+noQuota), apply.Degraded, "Deployment/d: FailedCreate: its pods cannot be created: quota compute has no room (pods, requests.cpu): raise it, or lower what is asked for",
			[]v1alpha1.Component{{Name: "d", Kind: "Deployment", Desired: 2, Reason: "FailedCreate: its pods cannot be created: quota compute has no room (pods, requests.cpu): raise it, or lower what is asked for"}},
		},
		"pods that a webhook refuses": {
			deployment("d", two, "observedGeneration: 2"+webhook), apply.Degraded, "Deployment/d: FailedCreate: its pods cannot be created: an admission webhook refuses them",
			[]v1alpha1.Component{{Name: "d", Kind: "Deployment", Desired: 2, Reason: "FailedCreate: its pods cannot be created: an admission webhook refuses them"}},
		},
		"pods that cannot be created, why is not said": {
			deployment("d", two, "observedGeneration: 2"+oddFailure), apply.Degraded, "Deployment/d: FailedCreate: its pods cannot be created: see the events of its ReplicaSet",
			[]v1alpha1.Component{{Name: "d", Kind: "Deployment", Desired: 2, Reason: "FailedCreate: its pods cannot be created: see the events of its ReplicaSet"}},
		},
		"a paused rollout is stuck": {
			deployment("d", two, "observedGeneration: 2"+paused), apply.Degraded, "Deployment/d: DeploymentPaused: somebody paused the rollout, 0 of 2 pods updated",
			[]v1alpha1.Component{{Name: "d", Kind: "Deployment", Desired: 2, Reason: "DeploymentPaused: somebody paused the rollout, 0 of 2 pods updated"}},
		},
		"a reason that is no word is not repeated": {
			deployment("d", two, "observedGeneration: 2"+oddReason), apply.Degraded, "Deployment/d: Stalled: 0 of 2 pods updated",
			[]v1alpha1.Component{{Name: "d", Kind: "Deployment", Desired: 2, Reason: "Stalled: 0 of 2 pods updated"}},
		},
		"the worst decides, the first of them speaks": {
			deployment("c", two, "observedGeneration: 2"+pastDeadline) + deployment("a", two, "") + deployment("b", two, "observedGeneration: 2"+paused), apply.Degraded, "Deployment/b: DeploymentPaused: somebody paused the rollout, 0 of 2 pods updated",
			[]v1alpha1.Component{
				{Name: "a", Kind: "Deployment", Desired: 2, Reason: "the rollout has not started"},
				{Name: "b", Kind: "Deployment", Desired: 2, Reason: "DeploymentPaused: somebody paused the rollout, 0 of 2 pods updated"},
				{Name: "c", Kind: "Deployment", Desired: 2, Reason: "ProgressDeadlineExceeded: 0 of 2 pods updated"},
			},
		},
		"a Deployment of another group does not count": {
			"{apiVersion: example.org/v1, kind: Deployment, metadata: {name: d}}", apply.Ready, "", nil,
		},
		"fields of the wrong type count as missing": {
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: x}, status: {conditions: [x, {type: 3}], replicas: {}}}", apply.Installing, "Deployment/d: the rollout has not started",
			[]v1alpha1.Component{{Name: "d", Kind: "Deployment", Desired: 1, Reason: "the rollout has not started"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			live := parse(t, tc.live)
			want := apply.Health{State: tc.state, Reason: tc.reason, Components: tc.comps}
			if d := cmp.Diff(want, apply.Assess(live, nil, nil)); d != "" {
				t.Error(d)
			}
		})
	}
}
