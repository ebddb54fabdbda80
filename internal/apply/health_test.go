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
	noQuota      = `, conditions: [{type: Progressing, status: "True", reason: ReplicaSetUpdated}, {type: ReplicaFailure, status: "True", reason: FailedCreate}]`
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
			deployment("d", two, "observedGeneration: 2, replicas: 2, updatedReplicas: 2"+pastDeadline), apply.Degraded, "Deployment/d: ProgressDeadlineExceeded",
			[]v1alpha1.Component{{Name: "d", Kind: "Deployment", Desired: 2, Reason: "ProgressDeadlineExceeded"}},
		},
		"past its deadline, and complete after all": {
			deployment("d", two, "observedGeneration: 2, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2"+pastDeadline), apply.Ready, "",
			[]v1alpha1.Component{{Name: "d", Kind: "Deployment", Ready: 2, Desired: 2}},
		},
		"pods that cannot be created": {
			deployment("d", two, "observedGeneration: 2"+noQuota), apply.Installing, "Deployment/d: FailedCreate",
			[]v1alpha1.Component{{Name: "d", Kind: "Deployment", Desired: 2, Reason: "FailedCreate"}},
		},
		"a paused rollout is stuck": {
			deployment("d", two, "observedGeneration: 2"+paused), apply.Degraded, "Deployment/d: DeploymentPaused",
			[]v1alpha1.Component{{Name: "d", Kind: "Deployment", Desired: 2, Reason: "DeploymentPaused"}},
		},
		"a reason that is no word is not repeated": {
			deployment("d", two, "observedGeneration: 2"+oddReason), apply.Degraded, "Deployment/d: 0 of 2 pods updated",
			[]v1alpha1.Component{{Name: "d", Kind: "Deployment", Desired: 2, Reason: "0 of 2 pods updated"}},
		},
		"the worst decides, the first of them speaks": {
			deployment("c", two, "observedGeneration: 2"+pastDeadline) + deployment("a", two, "") + deployment("b", two, "observedGeneration: 2"+paused), apply.Degraded, "Deployment/b: DeploymentPaused",
			[]v1alpha1.Component{
				{Name: "a", Kind: "Deployment", Desired: 2, Reason: "the rollout has not started"},
				{Name: "b", Kind: "Deployment", Desired: 2, Reason: "DeploymentPaused"},
				{Name: "c", Kind: "Deployment", Desired: 2, Reason: "ProgressDeadlineExceeded"},
			},
		},
		"a Job that runs does not count": {
			"{apiVersion: batch/v1, kind: Job, metadata: {name: j}, status: {active: 1, failed: 3}}", apply.Ready, "", nil,
		},
		"a Job that failed is degraded": {
			`{apiVersion: batch/v1, kind: Job, metadata: {name: j}, status: {conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded, message: c4n4ry}]}}`,
			apply.Degraded, "Job/j failed (BackoffLimitExceeded)", nil,
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
			if d := cmp.Diff(apply.Health{State: tc.state, Reason: tc.reason}, apply.Assess(live)); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(tc.comps, apply.Components(live)); d != "" {
				t.Error(d)
			}
		})
	}
}
