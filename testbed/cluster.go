package testbed

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"os"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// FaultAnnotation on a pod makes it fail in one of the ways below. On a running pod it takes effect at once, and
// removing it heals the pod.
const FaultAnnotation = "testbed.zaentrum.io/fault"

// The values of [FaultAnnotation]. Any other value is no fault.
const (
	FaultImagePull  = "image-pull"  // Pending, containers waiting in ImagePullBackOff
	FaultCrashLoop  = "crash-loop"  // Running but not ready, containers waiting in CrashLoopBackOff after 3 restarts
	FaultNeverReady = "never-ready" // Running but not ready
	FaultRootImage  = "root-image"  // Pending, containers waiting in CreateContainerConfigError as their image runs as root
	FaultMissingKey = "missing-key" // Pending, containers waiting in CreateContainerConfigError for a key of a Secret
	FaultFail       = "fail"        // pods of a Job: Failed with exit code 1 after a second
)

// nodeIP is the address of every simulated node (TEST-NET-1).
const nodeIP = "192.0.2.1"

//go:embed stages/*.yaml
var stages embed.FS

// writeStages puts all stages into the one file kwok reads.
func (b *Bed) writeStages(path string) error {
	entries, err := stages.ReadDir("stages")
	if err != nil {
		return err
	}
	var all bytes.Buffer
	for _, e := range entries {
		data, err := stages.ReadFile("stages/" + e.Name())
		if err != nil {
			return err
		}
		all.WriteString("---\n")
		all.Write(data)
	}
	return os.WriteFile(path, all.Bytes(), 0o644)
}

// fillCluster creates the nodes and the storage class, and waits until pods could be scheduled.
func (b *Bed) fillCluster(ctx context.Context, nodes int) error {
	config, err := b.RestConfig()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfigAndClient(config, b.admin)
	if err != nil {
		return err
	}
	for i := range nodes {
		if _, err := client.CoreV1().Nodes().Create(ctx, node(i), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create node: %w", err)
		}
	}
	binding := storagev1.VolumeBindingImmediate
	if _, err := client.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "testbed",
			Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		Provisioner:       "testbed.zaentrum.io/volumes",
		VolumeBindingMode: &binding,
	}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create storage class: %w", err)
	}

	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var missing string
	err = wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		missing, err = b.notReady(ctx, client)
		return missing == "", err
	})
	if err != nil {
		return fmt.Errorf("wait for the cluster: %w; %s, see %s", err, missing, b.LogDir)
	}
	return nil
}

// notReady says what is still missing; an error is a part that ended, which no waiting helps.
func (b *Bed) notReady(ctx context.Context, client kubernetes.Interface) (string, error) {
	for _, p := range b.Processes() {
		if !p.Running() {
			return "", fmt.Errorf("%s ended, see %s", p.Name(), p.Log())
		}
	}
	return missing(ctx, client), nil
}

// missing is what the API server does not have yet, or why it does not tell; empty once everything is there.
func missing(ctx context.Context, client kubernetes.Interface) string {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	for _, n := range nodes.Items {
		if !nodeReady(&n) {
			return "node " + n.Name + " is not ready"
		}
		if len(n.Spec.Taints) > 0 {
			return "node " + n.Name + " has a taint"
		}
	}
	_, err = client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "there is no default service account"
	}
	if err != nil {
		return err.Error()
	}
	// The admission plugin that guards it needs the bundle in every namespace before a pod can be created.
	_, err = client.CoreV1().ConfigMaps("default").Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
	if err != nil {
		return "there is no kube-root-ca.crt in namespace default"
	}
	return ""
}

func nodeReady(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func node(i int) *corev1.Node {
	name := "node-" + strconv.Itoa(i)
	room := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("1000"),
		corev1.ResourceMemory:           resource.MustParse("1Ti"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
		corev1.ResourcePods:             resource.MustParse("1000"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				corev1.LabelHostname:   name,
				corev1.LabelOSStable:   "linux",
				corev1.LabelArchStable: "amd64",
			},
		},
		Status: corev1.NodeStatus{
			Capacity:    room,
			Allocatable: room,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: nodeIP},
				{Type: corev1.NodeHostName, Address: name},
			},
			NodeInfo: corev1.NodeSystemInfo{
				OperatingSystem: "linux", Architecture: "amd64",
				KubeletVersion: "testbed", ContainerRuntimeVersion: "testbed://1",
			},
		},
	}
}
