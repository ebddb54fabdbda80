package apply

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// trouble is what keeps a pod from running, in words of our own. The texts of the kubelet, the scheduler and the
// container runtime are recognised and never repeated: they quote what a chart, a registry or a container wrote. What
// is named are objects, keys, containers and images, as the pod itself names them.
type trouble struct {
	grade grade
	text  string
}

// grade is how bad it is. Of several troubles the worst is told.
type grade int

const (
	fine     grade = iota
	mild           // it may pass by itself, and explains why something takes long
	fails          // a Job's pod ended without success: the Job makes another one, until it gives up
	noNode         // from here on nobody but a person helps: no node can take it
	crashes        // it ends again and again
	noImage        // its image cannot be pulled
	unfit          // it cannot be started as it is configured
	rejected       // it cannot even be created
)

// stalls tells whether waiting does not help.
func (t trouble) stalls() bool { return t.grade >= noNode }

// worst is the worst trouble of pods, the same one whatever their order.
func worst(pods []*corev1.Pod) trouble {
	var w trouble
	for _, p := range pods {
		if t := troubleOf(p); cmp.Or(cmp.Compare(t.grade, w.grade), cmp.Compare(w.text, t.text)) > 0 {
			w = t
		}
	}
	return w
}

// troubleOf is what is wrong with a pod. One that is being deleted has no trouble any more.
func troubleOf(p *corev1.Pod) trouble {
	switch {
	case p.DeletionTimestamp != nil, p.Status.Phase == corev1.PodSucceeded:
		return trouble{}
	case p.Status.Phase == corev1.PodFailed:
		return failure(p)
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return unscheduled(c.Reason, c.Message)
		}
	}
	var w trouble
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range list {
			if t := containerTrouble(&list[i]); t.grade > w.grade {
				w = t
			}
		}
		if w.grade > mild {
			return w
		}
	}
	return w
}

// failure is why a pod ended without success.
func failure(p *corev1.Pod) trouble {
	of := mild
	if kind, _ := controller(p); kind == "Job" {
		of = fails
	}
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range list {
			if t := list[i].State.Terminated; t != nil && t.ExitCode != 0 {
				return trouble{of, "container " + list[i].Name + " " + exit(t)}
			}
		}
	}
	if reason := word(p.Status.Reason); reason != "" {
		return trouble{of, "its pod failed (" + reason + ")"}
	}
	return trouble{of, "its pod failed"}
}

// containerTrouble is what is wrong with one container of a pod that has a node.
func containerTrouble(c *corev1.ContainerStatus) trouble {
	who := "container " + c.Name
	last := c.LastTerminationState.Terminated
	switch s := c.State; {
	case s.Waiting != nil:
		return waiting(c, s.Waiting)
	case s.Terminated != nil && s.Terminated.ExitCode != 0:
		return crash(c, s.Terminated)
	// What was started again has yet to show that it stays up: else each restart would look like a recovery.
	case s.Running != nil && !c.Ready && c.RestartCount >= loops && last != nil:
		return crash(c, last)
	case s.Running != nil && !c.Ready:
		return trouble{mild, who + " runs and is not ready"}
	}
	return trouble{}
}

// waiting is why the kubelet does not start a container.
func waiting(c *corev1.ContainerStatus, w *corev1.ContainerStateWaiting) trouble {
	who := "container " + c.Name
	switch w.Reason {
	case "", "ContainerCreating", "PodInitializing":
		return trouble{mild, who + " is being created"}
	case "CrashLoopBackOff":
		if last := c.LastTerminationState.Terminated; last != nil {
			return crash(c, last)
		}
		return trouble{mild, who + " is started again"}
	case "InvalidImageName":
		return trouble{noImage, "InvalidImageName: " + c.Image + " is no name of an image"}
	case "ErrImageNeverPull":
		return trouble{noImage, "ErrImageNeverPull: image " + c.Image + " is not on the node, and may not be pulled"}
	case "ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "ImageInspectError", "SignatureValidationFailed":
		// The kubelet goes back and forth between the first two: that is one trouble.
		return trouble{noImage, "ImagePullBackOff: " + unpulled(c.Image, w.Message)}
	case "CreateContainerConfigError":
		return trouble{unfit, w.Reason + ": " + who + ": " + misconfigured(w.Message)}
	case "RunContainerError", "StartError":
		return trouble{unfit, unstarted(who, w.Message)}
	case "CreateContainerError", "PreCreateHookError", "PreStartHookError", "PostStartHookError":
		return trouble{unfit, w.Reason + ": " + who + " cannot be started: see the events of its pod"}
	}
	if reason := word(w.Reason); reason != "" {
		return trouble{mild, who + " waits (" + reason + ")"}
	}
	return trouble{mild, who + " waits"}
}

// neverStarted tells whether the reason of an end says that the container's own program did not run.
func neverStarted(reason string) bool {
	return reason == "StartError" || reason == "ContainerCannotRun"
}

// loops is how often a container must have been started again to be one that crashes again and again: many end once
// or twice while what they need is not there yet.
const loops = 2

// crash is a container that ended when it was to go on.
func crash(c *corev1.ContainerStatus, last *corev1.ContainerStateTerminated) trouble {
	who := "container " + c.Name
	switch {
	case neverStarted(last.Reason):
		return trouble{unfit, unstarted(who, last.Message)}
	case c.RestartCount < loops:
		return trouble{mild, who + " " + exit(last)}
	}
	return trouble{crashes, "CrashLoopBackOff: " + who + " " + exit(last) + " again and again: see its log"}
}

// exit says how a container ended.
func exit(t *corev1.ContainerStateTerminated) string {
	switch {
	case t.Reason == "OOMKilled":
		return "runs out of its memory limit (OOMKilled)"
	case t.ExitCode > 128 && t.ExitCode < 160:
		return fmt.Sprintf("ends with exit code %d (signal %d)", t.ExitCode, t.ExitCode-128)
	default:
		return fmt.Sprintf("ends with exit code %d", t.ExitCode)
	}
}

// phrase recognises a text by any of some words in lower case.
type phrase struct {
	words []string
	says  string
}

func recognise(list []phrase, text string) string {
	text = strings.ToLower(text)
	for _, p := range list {
		if slices.ContainsFunc(p.words, func(w string) bool { return strings.Contains(text, w) }) {
			return p.says
		}
	}
	return ""
}

var pullPhrases = []phrase{
	{[]string{"unauthorized", "authentication required", "access denied", "authorization failed", "forbidden", "denied:"}, "may not be pulled without a pull secret of the platform (spec.imagePullSecrets)"},
	{[]string{"no match for platform", "no matching manifest"}, "is not built for the node's architecture"},
	{[]string{"manifest unknown", "name unknown", "not found"}, "not found: check its name and tag"},
	{[]string{"too many requests", "toomanyrequests"}, "cannot be pulled: the registry allows no more pulls for now"},
	{[]string{"x509", "certificate"}, "cannot be pulled: the node does not trust the registry's certificate"},
	{[]string{"no such host", "connection refused", "timeout", "deadline exceeded", "unreachable", "no route to host"}, "cannot be pulled: the node does not reach the registry"},
	{[]string{"no space left"}, "cannot be pulled: the node's disk is full"},
	{[]string{"signature"}, "cannot be pulled: the node refuses its signature"},
}

func unpulled(image, text string) string {
	says := recognise(pullPhrases, strings.ReplaceAll(text, image, ""))
	return "image " + image + " " + cmp.Or(says, "cannot be pulled")
}

// The names are those of objects, which have no other letters, and of keys.
var (
	missingKey    = regexp.MustCompile(`couldn't find key ([-._a-zA-Z0-9]{1,253}) in (Secret|ConfigMap) (?:[-a-z0-9]{1,63}/)?([-.a-z0-9]{1,253})`)
	missingObject = regexp.MustCompile(`(secret|configmap)s? "([-.a-z0-9]{1,253})" not found`)
)

// misconfigured says what in its configuration keeps a container from being created.
func misconfigured(text string) string {
	switch {
	case strings.Contains(text, "image will run as root"):
		return "its image runs as root, which is refused: build it with a USER that is not root, or set runAsUser"
	case strings.Contains(text, "non-numeric user"):
		return "its image names its user, so that nobody can tell whether that is root: build it with a numeric USER, or set runAsUser"
	case strings.Contains(text, "breaks non-root policy"):
		return "it asks to run as root, which is refused"
	}
	if m := missingKey.FindStringSubmatch(text); m != nil {
		return m[2] + " " + m[3] + " has no key " + m[1]
	}
	if m := missingObject.FindStringSubmatch(text); m != nil {
		kind := "Secret"
		if m[1] == "configmap" {
			kind = "ConfigMap"
		}
		return "there is no " + kind + " " + m[2]
	}
	return "it is not configured as it needs to be: see the events of its pod"
}

var startPhrases = []phrase{
	{[]string{"executable file not found", "no such file or directory"}, "its command is not in the image"},
	{[]string{"permission denied"}, "its user may not run its command"},
	{[]string{"exec format error"}, "its image is not built for the node's architecture"},
	{[]string{"mount"}, "a volume cannot be mounted where it is to be"},
}

func unstarted(who, text string) string {
	return "RunContainerError: " + who + " cannot be started: " + cmp.Or(recognise(startPhrases, text), "see the events of its pod")
}

var (
	insufficient = regexp.MustCompile(`Insufficient ([-./a-zA-Z0-9]{0,252}[a-zA-Z0-9])`)
	missingClaim = regexp.MustCompile(`persistentvolumeclaim "([-.a-z0-9]{1,253})" not found`)
)

var nodePhrases = []phrase{
	{[]string{"no nodes available"}, "the cluster has no nodes"},
	{[]string{"too many pods"}, "the nodes are full of pods"},
	{[]string{"node affinity/selector", "node(s) didn't match node selector"}, "its node selector or affinity fits no node"},
	{[]string{"untolerated taint", "that the pod didn't tolerate"}, "the nodes have taints that it does not tolerate"},
	{[]string{"volume node affinity conflict", "available volume zone"}, "its volume is where no node can take it"},
	{[]string{"enough free storage"}, "the nodes have no room for its volumes"},
	{[]string{"max volume count"}, "the nodes have as many volumes as they can"},
	{[]string{"topology spread"}, "its spread over nodes leaves none"},
	{[]string{"pod affinity", "pod anti-affinity"}, "its affinity to other pods leaves no node"},
	{[]string{"free ports"}, "its ports are taken"},
	{[]string{"were unschedulable"}, "nodes are cordoned"},
}

// unscheduled is why a pod gets no node.
func unscheduled(reason, text string) trouble {
	if reason != corev1.PodReasonUnschedulable {
		return trouble{mild, "its pod waits for a node"}
	}
	// What preemption could do is said of the same nodes once more.
	text, _, _ = strings.Cut(text, "preemption:")
	var why, short []string
	if m := missingClaim.FindStringSubmatch(text); m != nil {
		why = append(why, "there is no claim "+m[1])
	}
	for _, m := range insufficient.FindAllStringSubmatch(text, -1) {
		short = append(short, m[1])
	}
	if len(short) > 0 {
		slices.Sort(short)
		why = append(why, "not enough "+strings.Join(slices.Compact(short), ", "))
	}
	for _, p := range nodePhrases {
		if says := recognise([]phrase{p}, text); says != "" {
			why = append(why, says)
		}
	}
	switch {
	case len(why) > 0:
		return trouble{noNode, "Unschedulable: no node can take its pod: " + strings.Join(why, "; ")}
	case strings.Contains(text, "unbound immediate PersistentVolumeClaims"): // for a moment, that is so with every new claim
		return trouble{mild, "its claim is not bound to a volume yet"}
	}
	return trouble{noNode, "Unschedulable: no node can take its pod"}
}

var (
	exceeded    = regexp.MustCompile(`exceeded quota: ([-.a-z0-9]{1,253}), requested: ([-./=,a-zA-Z0-9]+), used`)
	unspecified = regexp.MustCompile(`failed quota: ([-.a-z0-9]{1,253}): must specify`)
	noAccount   = regexp.MustCompile(`serviceaccount "([-.a-z0-9]{1,253})" not found`)
)

var createPhrases = []phrase{
	{[]string{"violates podsecurity"}, "the namespace's pod security standard refuses them: it asks for more than the addon's guardrails"},
	{[]string{"denied the request", "failed calling webhook"}, "an admission webhook refuses them"},
	{[]string{"usage per", "cpu max limit", "memory max limit"}, "a LimitRange of the namespace refuses them"},
	{[]string{"is being terminated"}, "the namespace is being deleted"},
}

// uncreated is why the cluster does not let a workload's pods be created.
func uncreated(reason, text string) trouble {
	says := recognise(createPhrases, text)
	if m := exceeded.FindStringSubmatch(text); m != nil {
		says = "quota " + m[1] + " has no room (" + strings.Join(resources(m[2]), ", ") + "): raise it, or lower what is asked for"
	} else if m := unspecified.FindStringSubmatch(text); m != nil {
		says = "quota " + m[1] + " wants requests and limits on every container"
	} else if m := noAccount.FindStringSubmatch(text); m != nil {
		says = "there is no ServiceAccount " + m[1]
	}
	return trouble{rejected, cmp.Or(reason, "FailedCreate") + ": its pods cannot be created: " + cmp.Or(says, "see the events of its ReplicaSet")}
}

// resources are the names in a list such as requests.cpu=1,pods=1.
func resources(list string) []string {
	var out []string
	for item := range strings.SplitSeq(list, ",") {
		name, _, _ := strings.Cut(item, "=")
		out = append(out, name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
