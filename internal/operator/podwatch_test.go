package operator_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/api/v1alpha1"
)

// pod plays a ReplicaSet's or a Job's controller: it creates a pod of a workload.
func (h *house) pod(name, kind, controller string, uid types.UID, template corev1.PodTemplateSpec) *corev1.Pod {
	h.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: h.namespace, Name: name, Labels: template.Labels, Annotations: template.Annotations,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: kind, Name: controller, UID: uid, Controller: ptr.To(true)}},
		},
		Spec: template.Spec,
	}
	// No service account controller runs here.
	p.Spec.ServiceAccountName = "default"
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "default"}}
	h.must(client.IgnoreAlreadyExists(h.Create(h.Context(), account)))
	h.must(h.Create(h.Context(), p))
	return p
}

// waits has the kubelet not start a pod's container, empty for a pod that runs.
func (h *house) waits(p *corev1.Pod, reason, message string) {
	h.Helper()
	c := corev1.ContainerStatus{Name: p.Spec.Containers[0].Name, Image: p.Spec.Containers[0].Image}
	p.Status.Phase = corev1.PodPending
	if reason != "" {
		c.State.Waiting = &corev1.ContainerStateWaiting{Reason: reason, Message: message}
	} else {
		p.Status.Phase = corev1.PodRunning
		c.State.Running = &corev1.ContainerStateRunning{}
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{c}
	h.must(h.Status().Update(h.Context(), p))
}

// rolling is a Deployment whose first rollout is under way.
func (h *house) rolling(name string) *appsv1.Deployment {
	h.Helper()
	d := &appsv1.Deployment{}
	h.must(h.Get(h.Context(), h.key(name), d))
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, UnavailableReplicas: 1,
		Conditions: []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "ReplicaSetUpdated", Message: fmt.Sprintf("ReplicaSet %q is progressing.", name+"-1"),
		}},
	}
	h.must(h.Status().Update(h.Context(), d))
	return d
}

// component waits until a component has a reason.
func (h *house) component(name string, phase v1alpha1.Phase, reason string) {
	h.Helper()
	h.eventually(func() string {
		a := &v1alpha1.ZaentrumAddon{}
		h.must(h.Get(h.Context(), h.key("example"), a))
		if a.Status.Phase == phase && slices.ContainsFunc(a.Status.Components, func(c v1alpha1.Component) bool { return c.Name == name && c.Reason == reason }) {
			return ""
		}
		return fmt.Sprintf("%s is not %s because of %q: %s, %+v", name, phase, reason, a.Status.Phase, a.Status.Components)
	})
}

const notFound = "ImagePullBackOff: image ghcr.io/example/example:4.1.0 not found: check its name and tag"

func TestPodsTellWhatTheirDeploymentDoesNot(t *testing.T) {
	h := newHouse(t)
	h.create(h.example(), v1alpha1.PhaseInstalling)
	d := h.rolling("example")
	h.component("example", v1alpha1.PhaseInstalling, "0 of 1 pods available")
	h.quiet("example-worker")
	before := h.counting.renders.Load()

	p := h.pod("example-1-a", "ReplicaSet", "example-1", "u", d.Spec.Template)
	h.waits(p, "ErrImagePull", `failed to pull "`+canary+`": not found`)
	h.component("example", v1alpha1.PhaseDegraded, notFound)
	h.waits(p, "CreateContainerConfigError", "container has runAsNonRoot and image will run as root (pod: x, container: y)")
	h.component("example", v1alpha1.PhaseDegraded, "CreateContainerConfigError: container primary: its image runs as root, which is refused: build it with a USER that is not root, or set runAsUser")

	h.waits(p, "", "")
	h.component("example", v1alpha1.PhaseInstalling, "0 of 1 pods available")
	h.waits(p, "ErrImagePull", "not found")
	h.component("example", v1alpha1.PhaseDegraded, notFound)
	h.must(h.Delete(t.Context(), p, client.GracePeriodSeconds(0)))
	h.component("example", v1alpha1.PhaseInstalling, "0 of 1 pods available")
	if n := h.counting.renders.Load() - before; n > 0 {
		t.Errorf("rendered %d times for pods", n)
	}

	// An operator that starts knows the pods before it says anything.
	p = h.pod("example-1-b", "ReplicaSet", "example-1", "u", d.Spec.Template)
	h.waits(p, "ErrImagePull", "not found")
	h.component("example", v1alpha1.PhaseDegraded, notFound)
	h.stop()
	transitions := h.phaseEvents()
	h.wire.hook(func(r *http.Request) *http.Response {
		if strings.HasSuffix(r.URL.Path, "/pods") { // all else is there before them
			time.Sleep(time.Second)
		}
		return nil
	})
	h.start()
	h.quiet("example-worker")
	h.component("example", v1alpha1.PhaseDegraded, notFound)
	if now := h.phaseEvents(); now != transitions || now == 0 {
		t.Errorf("%d phases were told after a restart", now-transitions)
	}
}

// phaseEvents is how often a change of phase was told.
func (h *house) phaseEvents() int32 {
	h.Helper()
	var events corev1.EventList
	h.must(h.List(h.Context(), &events, client.InNamespace(h.namespace)))
	var n int32
	for _, e := range events.Items {
		if e.InvolvedObject.Kind == v1alpha1.KindZaentrumAddon && (e.Reason == "Degraded" || e.Reason == "Installing" || e.Reason == "Ready") {
			n += max(e.Count, 1)
		}
	}
	return n
}

// A suspended addon is planned, and what runs of it is looked at all the same.
func TestPodsOfASuspendedAddonAreTold(t *testing.T) {
	h := newHouse(t)
	h.create(h.example(), v1alpha1.PhaseInstalling)
	h.change("example", func(a *v1alpha1.ZaentrumAddon) { a.Spec.Suspend = true })
	h.phase("example", v1alpha1.PhasePlanned)
	d := h.rolling("example")
	p := h.pod("example-1-a", "ReplicaSet", "example-1", "u", d.Spec.Template)
	h.waits(p, "ErrImagePull", "not found")
	h.component("example", v1alpha1.PhasePlanned, notFound)
	h.waits(p, "", "")
	h.component("example", v1alpha1.PhasePlanned, "0 of 1 pods available")
}

// The Job that comes waits for the pods of the one that went, and is created when the last one is gone.
func TestTheNextJobWaitsForPods(t *testing.T) {
	h := newHouse(t)
	values := h.jobAddon()
	j := &batchv1.Job{}
	h.must(h.Get(t.Context(), h.key("setup"), j))
	p := h.pod("setup-a", "Job", "setup", j.UID, j.Spec.Template)
	h.waits(p, "", "")
	values(`{"job":true,"tag":2}`)
	h.job(v1alpha1.JobWaiting, false)
	h.says("jobs", v1alpha1.PhaseInstalling, "waiting for the old Job/setup to be gone")
	h.looked()
	if h.uid() != "" {
		t.Error("two at once")
	}
	h.must(h.Delete(t.Context(), p, client.GracePeriodSeconds(0)))
	h.anotherJob(string(j.UID))
}

func TestWithoutTheRightToPodsAnOperatorGoesOn(t *testing.T) {
	h := newHouse(t)
	h.stop()
	rules := inFile[rbacv1.Role](t, "operator.yaml", "Role")[0].Rules
	h.grant(without(rules, granted{"watch", "pods"}))
	h.bind(h.namespace)
	h.as = "system:serviceaccount:" + h.namespace + ":zae-operator"
	h.start()
	h.create(h.example(), v1alpha1.PhaseInstalling)
	d := h.rolling("example")
	p := h.pod("example-1-a", "ReplicaSet", "example-1", "u", d.Spec.Template)
	h.waits(p, "ErrImagePull", "not found")
	h.component("example", v1alpha1.PhaseInstalling, "0 of 1 pods available")
	d.Status.Conditions[0].Status, d.Status.Conditions[0].Reason = corev1.ConditionFalse, "ProgressDeadlineExceeded"
	h.must(h.Status().Update(t.Context(), d))
	h.component("example", v1alpha1.PhaseDegraded, "ProgressDeadlineExceeded: 0 of 1 pods available")
	const lacks = "the operator lacks a right"
	if n := strings.Count(h.log.String(), lacks); n != 1 || !h.logged("watch pods in namespace "+h.namespace) {
		t.Errorf("said %d times", n)
	}

	h.grant(rules)
	h.component("example", v1alpha1.PhaseDegraded, notFound)
	if n := strings.Count(h.log.String(), lacks); n != 1 {
		t.Errorf("said %d times", n)
	}
}

// A reason names what a chart named, in which a secret may stand.
func TestASecretThatAChartPutsIntoAnImageDoesNotShowInAReason(t *testing.T) {
	h := newHouse(t)
	h.chart("leaky", "1.0.0", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: leaky}\nspec:\n  selector: {matchLabels: {app: leaky}}\n  template:\n"+
		"    metadata: {labels: {app: leaky}}\n    spec: {containers: [{name: \"{{ .Values.s }}\", image: \"x/{{ .Values.s }}:{{ .Values.s | b64enc }}\"}]}\n")
	h.secret("zaentrum-addon-leaky-values-a", "leaky", map[string]string{"s": canary})
	a := h.addon("leaky", "leaky", "1.0.0")
	a.Spec.ValuesFrom = []v1alpha1.ValuesSource{{Kind: v1alpha1.ValuesFromSecret, Name: "zaentrum-addon-leaky-values-a", ValuesKey: "s", TargetPath: "s"}}
	h.create(a, v1alpha1.PhaseInstalling)
	d := h.rolling("leaky")
	p := h.pod("leaky-1-a", "ReplicaSet", "leaky-1", "u", d.Spec.Template)
	for reason, want := range map[string]string{
		"ErrImagePull":               "ImagePullBackOff: image [redacted] cannot be pulled",
		"CreateContainerConfigError": "CreateContainerConfigError: container [redacted]: it is not configured as it needs to be: see the events of its pod",
	} {
		h.waits(p, reason, "")
		h.eventually(func() string {
			a := &v1alpha1.ZaentrumAddon{}
			h.must(h.Get(t.Context(), h.key("leaky"), a))
			if a.Status.Phase == v1alpha1.PhaseDegraded && a.Status.Components[0].Reason == want && a.Status.Message == "Deployment/leaky: "+want {
				return ""
			}
			return fmt.Sprintf("%s, %s, %+v", a.Status.Phase, a.Status.Message, a.Status.Components)
		})
	}
}
