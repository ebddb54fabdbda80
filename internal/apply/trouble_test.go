package apply_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apply"
)

// pod is a pod of Deployment d, of the ReplicaSet that is rolled out, with a status.
func pod(t *testing.T, status string) *corev1.Pod {
	t.Helper()
	return podOf(t, "ReplicaSet", "d-1", status)
}

func podOf(t *testing.T, kind, controller, status string) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{}
	if err := yaml.UnmarshalStrict([]byte(status), &p.Status); err != nil {
		t.Fatalf("%v: %s", err, status)
	}
	p.Name, p.UID = controller+"-x", "uid-of-a-pod"
	p.Labels = map[string]string{v1alpha1.LabelAddon: "example", v1alpha1.LabelComponent: "d", "app": "c4n4ry"}
	p.Annotations = map[string]string{"note": "c4n4ry"}
	yes := true
	p.OwnerReferences = []metav1.OwnerReference{
		{Kind: "Other", Name: "other"},
		{APIVersion: "x", Kind: kind, Name: controller, UID: "uid-of-" + "controller", Controller: &yes},
	}
	p.Spec.Containers = []corev1.Container{{Name: "w", Image: "example/w:1", Env: []corev1.EnvVar{{Name: "KEY", Value: "c4n4ry"}}}}
	return p
}

// rolling is a Deployment whose ReplicaSet d-1 is rolled out and has no pod that is available.
const rolling = `observedGeneration: 2, replicas: 1, updatedReplicas: 1, conditions: [{type: Progressing, status: "True", reason: ReplicaSetUpdated, message: 'ReplicaSet "d-1" is progressing.'}]`

// wait is a container that the kubelet does not start.
func wait(reason, message string) string {
	return fmt.Sprintf("containerStatuses: [{name: w, image: 'example/w:1', ready: false, restartCount: 0, state: {waiting: {reason: %s, message: %q}}}]", reason, message)
}

// unplaced is a pod that the scheduler finds no node for.
func unplaced(message string) string {
	return fmt.Sprintf("phase: Pending\nconditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, message: %q}]", message)
}

func TestWhatKeepsPodsFromRunning(t *testing.T) {
	const (
		stuck   = apply.Degraded
		moves   = apply.Installing
		waits   = "0 of 1 pods available"
		ended   = "lastState: {terminated: {exitCode: 3, reason: Error, message: c4n4ry}}"
		never   = "lastState: {terminated: {exitCode: 128, reason: StartError, message: 'exec: \"c4n4ry\": executable file not found in $PATH'}}"
		crash   = "CrashLoopBackOff: container w ends with exit code 3 again and again: see its log"
		noStart = "RunContainerError: container w cannot be started: its command is not in the image"
		pull    = "ImagePullBackOff: image example/w:1 "
	)
	for name, tc := range map[string]struct {
		status string
		state  apply.State
		reason string
	}{
		"an image that is not there": {wait("ErrImagePull", `rpc error: code = NotFound desc = failed to pull "c4n4ry": example/w:1: not found`), stuck, pull + "not found: check its name and tag"},
		"the same, told another way": {wait("ImagePullBackOff", `Back-off pulling image "example/w:1": ErrImagePull: manifest unknown`), stuck, pull + "not found: check its name and tag"},
		"an image that is private":   {wait("ErrImagePull", "pull access denied, repository does not exist or may require authorization"), stuck, pull + "may not be pulled without a pull secret of the platform (spec.imagePullSecrets)"},
		"a registry out of reach":    {wait("ErrImagePull", "dial tcp: lookup c4n4ry: no such host"), stuck, pull + "cannot be pulled: the node does not reach the registry"},
		"a registry that limits":     {wait("ErrImagePull", "429 Too Many Requests"), stuck, pull + "cannot be pulled: the registry allows no more pulls for now"},
		"an unknown certificate":     {wait("ErrImagePull", "x509: certificate signed by unknown authority"), stuck, pull + "cannot be pulled: the node does not trust the registry's certificate"},
		"another architecture":       {wait("ErrImagePull", "no match for platform in manifest: not found"), stuck, pull + "is not built for the node's architecture"},
		"an image, why is not said":  {wait("ImagePullBackOff", "c4n4ry"), stuck, pull + "cannot be pulled"},
		"an image with a telling name": {
			`containerStatuses: [{name: w, image: 'example/unauthorized:1', state: {waiting: {reason: ErrImagePull, message: 'example/unauthorized:1: not found'}}}]`, stuck,
			"ImagePullBackOff: image example/unauthorized:1 not found: check its name and tag",
		},
		"no name of an image":           {wait("InvalidImageName", "c4n4ry"), stuck, "InvalidImageName: example/w:1 is no name of an image"},
		"an image that may not be had":  {wait("ErrImageNeverPull", "c4n4ry"), stuck, "ErrImageNeverPull: image example/w:1 is not on the node, and may not be pulled"},
		"an image that runs as root":    {wait("CreateContainerConfigError", `container has runAsNonRoot and image will run as root (pod: "d-1-x_ns(uid)", container: w)`), stuck, "CreateContainerConfigError: container w: its image runs as root, which is refused: build it with a USER that is not root, or set runAsUser"},
		"an image with a user's name":   {wait("CreateContainerConfigError", `container has runAsNonRoot and image has non-numeric user (c4n4ry), cannot verify user is non-root (pod: "x", container: w)`), stuck, "CreateContainerConfigError: container w: its image names its user, so that nobody can tell whether that is root: build it with a numeric USER, or set runAsUser"},
		"a user that is root":           {wait("CreateContainerConfigError", `container's runAsUser breaks non-root policy (pod: "x", container: w)`), stuck, "CreateContainerConfigError: container w: it asks to run as root, which is refused"},
		"a key that is missing":         {wait("CreateContainerConfigError", "couldn't find key database-url in Secret ns/example-env"), stuck, "CreateContainerConfigError: container w: Secret example-env has no key database-url"},
		"a key of a ConfigMap":          {wait("CreateContainerConfigError", "couldn't find key a.yaml in ConfigMap ns/example"), stuck, "CreateContainerConfigError: container w: ConfigMap example has no key a.yaml"},
		"a Secret that is missing":      {wait("CreateContainerConfigError", `secret "example-env" not found`), stuck, "CreateContainerConfigError: container w: there is no Secret example-env"},
		"a ConfigMap that is missing":   {wait("CreateContainerConfigError", `configmap "example" not found`), stuck, "CreateContainerConfigError: container w: there is no ConfigMap example"},
		"names that are no names":       {wait("CreateContainerConfigError", `couldn't find key c4n4ry/+? in Secret "c4n4ry"`), stuck, "CreateContainerConfigError: container w: it is not configured as it needs to be: see the events of its pod"},
		"a runtime that fails":          {wait("CreateContainerError", "c4n4ry"), stuck, "CreateContainerError: container w cannot be started: see the events of its pod"},
		"a command that is missing":     {wait("RunContainerError", `exec: "c4n4ry": executable file not found in $PATH`), stuck, noStart},
		"the same, between two starts":  {"containerStatuses: [{name: w, restartCount: 2, state: {waiting: {reason: CrashLoopBackOff}}, " + never + "}]", stuck, noStart},
		"a crash loop":                  {"containerStatuses: [{name: w, restartCount: 2, state: {waiting: {reason: CrashLoopBackOff, message: c4n4ry}}, " + ended + "}]", stuck, crash},
		"a crash loop, just crashed":    {"containerStatuses: [{name: w, restartCount: 4, state: {terminated: {exitCode: 3}}}]", stuck, crash},
		"a crash loop, just restarted":  {"containerStatuses: [{name: w, restartCount: 2, state: {running: {}}, " + ended + "}]", stuck, crash},
		"out of memory":                 {"containerStatuses: [{name: w, restartCount: 4, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 137, reason: OOMKilled}}}]", stuck, "CrashLoopBackOff: container w runs out of its memory limit (OOMKilled) again and again: see its log"},
		"killed":                        {"containerStatuses: [{name: w, restartCount: 4, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 137, reason: Error}}}]", stuck, "CrashLoopBackOff: container w ends with exit code 137 (signal 9) again and again: see its log"},
		"an init container comes first": {"initContainerStatuses: [{name: init, restartCount: 3, state: {waiting: {reason: CrashLoopBackOff}}, " + ended + "}]\ncontainerStatuses: [{name: w, state: {waiting: {reason: PodInitializing}}}]", stuck, "CrashLoopBackOff: container init ends with exit code 3 again and again: see its log"},
		"the worst container speaks":    {"containerStatuses: [{name: a, restartCount: 3, state: {waiting: {reason: CrashLoopBackOff}}, " + ended + "}, {name: w, image: 'example/w:1', state: {waiting: {reason: ErrImagePull}}}]", stuck, pull + "cannot be pulled"},

		"no room on any node":                  {unplaced("0/3 nodes are available: 2 Insufficient memory, 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod."), stuck, "Unschedulable: no node can take its pod: not enough cpu, memory"},
		"no node that it wants":                {unplaced("0/3 nodes are available: 1 node(s) had untolerated taint {c4n4ry: }, 2 node(s) didn't match Pod's node affinity/selector."), stuck, "Unschedulable: no node can take its pod: its node selector or affinity fits no node; the nodes have taints that it does not tolerate"},
		"a claim that is missing":              {unplaced(`persistentvolumeclaim "media" not found`), stuck, "Unschedulable: no node can take its pod: there is no claim media"},
		"no node, why is not said":             {unplaced("c4n4ry"), stuck, "Unschedulable: no node can take its pod"},
		"a claim that is not bound yet passes": {unplaced("0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."), moves, waits},
		"a gate passes":                        {"conditions: [{type: PodScheduled, status: 'False', reason: SchedulingGated, message: c4n4ry}]", moves, waits},

		"being created passes":              {wait("ContainerCreating", ""), moves, waits},
		"a reason that nobody knows passes": {wait("SomethingNew", "c4n4ry"), moves, waits},
		"one crash passes":                  {"containerStatuses: [{name: w, restartCount: 0, state: {terminated: {exitCode: 3}}}]", moves, waits},
		"two crashes pass":                  {"containerStatuses: [{name: w, restartCount: 1, state: {waiting: {reason: CrashLoopBackOff}}, " + ended + "}]", moves, waits},
		"a crash loop of unknown kind":      {"containerStatuses: [{name: w, restartCount: 4, state: {waiting: {reason: CrashLoopBackOff}}}]", moves, waits},
		"one restart passes":                {"containerStatuses: [{name: w, restartCount: 1, state: {running: {}}, " + ended + "}]", moves, waits},
		"not ready passes":                  {"containerStatuses: [{name: w, state: {running: {}}}]", moves, waits},
		"a pod that failed is replaced":     {"phase: Failed\nreason: Evicted", moves, waits},
		"no status passes":                  {"{}", moves, waits},
	} {
		t.Run(name, func(t *testing.T) {
			live := parse(t, deployment("d", "replicas: 1", rolling))
			p := pod(t, tc.status)
			for which, p := range map[string]*corev1.Pod{"as it is": p, "slim": apply.SlimPod(p), "slim twice": apply.SlimPod(apply.SlimPod(p))} {
				h := apply.Assess(live, []*corev1.Pod{p}, nil)
				if h.State != tc.state || h.Reason != "Deployment/d: "+tc.reason || h.Components[0].Reason != tc.reason {
					t.Errorf("%s: %v, %s, want %v, %s", which, h.State, h.Reason, tc.state, tc.reason)
				}
				if strings.Contains(fmt.Sprint(h), "c4n4ry") {
					t.Errorf("%s: a text of others shows: %v", which, h)
				}
			}
			p.DeletionTimestamp = &metav1.Time{}
			if h := apply.Assess(live, []*corev1.Pod{p}, nil); h.State != moves || h.Reason != "Deployment/d: "+waits {
				t.Errorf("being deleted: %v, %s", h.State, h.Reason)
			}
		})
	}
}

// What stands in the way may pass by itself; once the Deployment says that it did not, it is the explanation.
func TestPastItsDeadlineARolloutIsExplained(t *testing.T) {
	past := strings.NewReplacer(`"True"`, `"False"`, "ReplicaSetUpdated", "ProgressDeadlineExceeded").Replace(rolling)
	h := apply.Assess(parse(t, deployment("d", "replicas: 1", past)), []*corev1.Pod{pod(t, "containerStatuses: [{name: w, state: {running: {}}}]")}, nil)
	if want := "Deployment/d: ProgressDeadlineExceeded: 0 of 1 pods available, container w runs and is not ready"; h.Reason != want || h.State != apply.Degraded {
		t.Errorf("%v, %s", h.State, h.Reason)
	}
}

func TestOnlyPodsThatAreRolledOutCount(t *testing.T) {
	broken := wait("ImagePullBackOff", "")
	for name, p := range map[string]*corev1.Pod{
		"an older ReplicaSet's":   podOf(t, "ReplicaSet", "d-0", broken),
		"another Deployment's":    podOf(t, "ReplicaSet", "e-1", broken),
		"a Job's":                 podOf(t, "Job", "d-1", broken),
		"one that nobody manages": {Status: pod(t, broken).Status},
	} {
		h := apply.Assess(parse(t, deployment("d", "replicas: 1", rolling)), []*corev1.Pod{p}, nil)
		if h.State != apply.Installing {
			t.Errorf("%s: %v, %s", name, h.State, h.Reason)
		}
	}
	unnamed := strings.Replace(rolling, `"d-1"`, "it", 1)
	if h := apply.Assess(parse(t, deployment("d", "replicas: 1", unnamed)), []*corev1.Pod{podOf(t, "ReplicaSet", "d-0", broken)}, nil); h.State != apply.Degraded {
		t.Errorf("a Deployment that does not name its ReplicaSet: %v, %s", h.State, h.Reason)
	}
	ready := "observedGeneration: 2, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1"
	if h := apply.Assess(parse(t, deployment("d", "replicas: 1", ready)), []*corev1.Pod{pod(t, broken)}, nil); h.State != apply.Ready {
		t.Errorf("all available, and one pod too many: %v, %s", h.State, h.Reason)
	}
}

func TestTheReasonDoesNotDependOnTheOrderOfPods(t *testing.T) {
	pods := []*corev1.Pod{
		pod(t, wait("CreateContainerConfigError", `secret "b" not found`)), pod(t, wait("CreateContainerConfigError", `secret "a" not found`)),
		pod(t, wait("ErrImagePull", "")), pod(t, "containerStatuses: [{name: w, state: {running: {}}}]"), pod(t, "{}"),
	}
	live := parse(t, deployment("d", "replicas: 1", rolling))
	want := apply.Assess(live, pods, nil)
	if want.Reason != "Deployment/d: CreateContainerConfigError: container w: there is no Secret a" {
		t.Errorf("the worst is not told: %s", want.Reason)
	}
	slices.Reverse(pods)
	if d := cmp.Diff(want, apply.Assess(live, pods, nil)); d != "" {
		t.Error(d)
	}
}

func TestASlimPodHoldsNoMoreThanItMust(t *testing.T) {
	long := strings.Repeat("x", 5000)
	p := pod(t, "podIP: 192.0.2.1\nmessage: c4n4ry\nphase: Running\nconditions: [{type: PodScheduled, status: 'True', message: c4n4ry}]\ncontainerStatuses: [{name: w, imageID: c4n4ry, containerID: c4n4ry, state: {waiting: {reason: ErrImagePull, message: "+long+"}}, lastState: {terminated: {exitCode: 1, message: c4n4ry}}}]")
	slim := apply.SlimPod(p)
	text, err := yaml.Marshal(slim)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 2500 || strings.Contains(string(text), "c4n4ry") || strings.Contains(string(text), "192.0.2.1") {
		t.Errorf("%d bytes:\n%s", len(text), text)
	}
	if slim.Name != p.Name || slim.UID != p.UID || slim.Labels[v1alpha1.LabelAddon] != "example" || len(slim.OwnerReferences) != 1 || slim.OwnerReferences[0].UID != "uid-of-controller" {
		t.Errorf("whose it is, is lost: %+v", slim.ObjectMeta)
	}
}

// Pods that come, run and end are told of by what controls them. Their own events count when they say more.
func TestWhichEventsOfPodsCount(t *testing.T) {
	deleted := func(p *corev1.Pod) *corev1.Pod {
		p = p.DeepCopy()
		p.DeletionTimestamp = &metav1.Time{}
		return p
	}
	creating, running, pulling := pod(t, wait("ContainerCreating", "")), pod(t, "phase: Running"), pod(t, wait("ErrImagePull", ""))
	works, did, did3 := podOf(t, "Job", "j", "phase: Running"), podOf(t, "Job", "j", "phase: Succeeded"), podOf(t, "Job", "j", "phase: Failed\ncontainerStatuses: [{name: w, state: {terminated: {exitCode: 3}}}]")
	for name, tc := range map[string]struct {
		before, after *corev1.Pod
		counts        bool
	}{
		"a new pod":                              {nil, creating, false},
		"a pod that runs":                        {creating, running, false},
		"a pod that goes":                        {running, nil, false},
		"a pod that gets stuck":                  {creating, pulling, true},
		"stuck in the same":                      {pulling, pod(t, wait("ImagePullBackOff", "")), false},
		"stuck, and then not":                    {pulling, running, true},
		"stuck, and gone":                        {pulling, nil, true},
		"new and stuck":                          {nil, pulling, true},
		"stuck, and being deleted":               {pulling, deleted(pulling), true},
		"a new pod of a Job":                     {nil, works, false},
		"a pod of a Job that did its work":       {works, did, false},
		"a pod of a Job that failed":             {works, did3, true},
		"a pod of a Job that is gone":            {works, nil, true},
		"a pod of a Job that is gone, all done":  {did, nil, false},
		"a pod of a Job that is told to go":      {works, deleted(works), false},
		"a pod of a Job that ends as it is told": {deleted(works), deleted(did), true},
	} {
		if got := apply.PodChanged(tc.before, tc.after); got != tc.counts {
			t.Errorf("%s: %t", name, got)
		}
	}
}
