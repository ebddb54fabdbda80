package apply

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"zaentrum.io/zae/api/v1alpha1"
)

// podLabels are the labels of a pod that are looked at.
var podLabels = []string{v1alpha1.LabelAddon, v1alpha1.LabelComponent, labelJobName}

const labelJobName = "batch.kubernetes.io/job-name"

// maxPodText is how much of a text of the kubelet or the scheduler is kept, to be recognised. None is repeated.
const maxPodText = 1024

// SlimPod is what of a pod is needed to say how it does: whose it is, and its status. Nothing of what a chart wrote
// into it is left but names and images. A cache of pods holds these.
func SlimPod(p *corev1.Pod) *corev1.Pod {
	slim := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion,
			DeletionTimestamp: p.DeletionTimestamp,
		},
		Status: corev1.PodStatus{
			Phase: p.Status.Phase, Reason: p.Status.Reason,
			InitContainerStatuses: slimStatuses(p.Status.InitContainerStatuses),
			ContainerStatuses:     slimStatuses(p.Status.ContainerStatuses),
		},
	}
	for _, key := range podLabels {
		if v, ok := p.Labels[key]; ok {
			if slim.Labels == nil {
				slim.Labels = map[string]string{}
			}
			slim.Labels[key] = v
		}
	}
	if ref := metav1.GetControllerOfNoCopy(p); ref != nil {
		slim.OwnerReferences = []metav1.OwnerReference{{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name, UID: ref.UID, Controller: ref.Controller}}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			slim.Status.Conditions = append(slim.Status.Conditions, corev1.PodCondition{
				Type: c.Type, Status: c.Status, Reason: c.Reason, Message: start(c.Message),
			})
		}
	}
	return slim
}

func slimStatuses(list []corev1.ContainerStatus) []corev1.ContainerStatus {
	if len(list) == 0 {
		return nil
	}
	out := make([]corev1.ContainerStatus, 0, len(list))
	for _, c := range list {
		out = append(out, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: c.Ready, RestartCount: c.RestartCount,
			State: slimState(c.State), LastTerminationState: slimState(c.LastTerminationState),
		})
	}
	return out
}

func slimState(s corev1.ContainerState) corev1.ContainerState {
	switch {
	case s.Waiting != nil:
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: s.Waiting.Reason, Message: start(s.Waiting.Message)}}
	case s.Terminated != nil:
		t := &corev1.ContainerStateTerminated{ExitCode: s.Terminated.ExitCode, Reason: s.Terminated.Reason}
		if neverStarted(t.Reason) { // otherwise it is what the container itself wrote
			t.Message = start(s.Terminated.Message)
		}
		return corev1.ContainerState{Terminated: t}
	case s.Running != nil:
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	}
	return corev1.ContainerState{}
}

// start is the beginning of a text, in memory of its own.
func start(s string) string {
	return strings.Clone(s[:min(len(s), maxPodText)])
}

// controller is the kind and name of what controls a pod; empty for nothing.
func controller(p *corev1.Pod) (kind, name string) {
	ref := metav1.GetControllerOfNoCopy(p)
	if ref == nil {
		return "", ""
	}
	return ref.Kind, ref.Name
}

// ended tells whether a pod has run for the last time.
func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// podsOf are those of the pods that are of a Deployment's ReplicaSet. Without the name of one, they are those of
// all its ReplicaSets.
func podsOf(pods []*corev1.Pod, deployment, set string) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range pods {
		kind, name := controller(p)
		if kind == "ReplicaSet" && p.Labels[v1alpha1.LabelComponent] == deployment && (set == "" || name == set) {
			out = append(out, p)
		}
	}
	return out
}

// podsOfJob are those of the pods that are of a Job of this name, also of one that is gone.
func podsOfJob(pods []*corev1.Pod, job string) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range pods {
		if kind, name := controller(p); kind == "Job" && name == job {
			out = append(out, p)
		}
	}
	return out
}

// PodChanged tells whether there is anything new in how a pod does that says more than what controls it says by
// itself: the status of a Deployment or Job tells of pods that come, run and end. before is nil for a pod that is
// new, and after for one that is gone.
func PodChanged(before, after *corev1.Pod) bool {
	return serious(before) != serious(after) || atWork(before) && !atWork(after) && (after == nil || after.DeletionTimestamp != nil)
}

// serious is what is wrong with a pod, if that will not pass by itself or ended it.
func serious(p *corev1.Pod) trouble {
	if p == nil {
		return trouble{}
	}
	if t := troubleOf(p); t.grade > mild {
		return t
	}
	return trouble{}
}

// atWork tells whether a pod is a Job's and may still do something: the next Job waits for it.
func atWork(p *corev1.Pod) bool {
	if p == nil || ended(p) {
		return false
	}
	kind, _ := controller(p)
	return kind == "Job"
}
