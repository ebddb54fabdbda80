package testbed

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// TestBed uses one testbed for everything: a start takes seconds.
func TestBed(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	before := goleak.IgnoreCurrent()
	o := Full()
	o.Nodes = 2
	o.Progress = testWriter{t}
	b, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Stop(); err != nil {
			t.Error(err)
		}
	})
	config, err := b.RestConfig()
	if err != nil {
		t.Fatal(err)
	}
	// A transport of its own, to close its connections in the end.
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(config)

	t.Run("cluster", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T, *Bed, kubernetes.Interface){
			"a deployment rolls out and its claim is bound":     testRollout,
			"jobs complete or fail":                             testJobs,
			"fault image-pull":                                  testFault(FaultImagePull, corev1.PodPending, "ImagePullBackOff", 0),
			"fault crash-loop":                                  testFault(FaultCrashLoop, corev1.PodRunning, "CrashLoopBackOff", 3),
			"fault root-image":                                  testFault(FaultRootImage, corev1.PodPending, "CreateContainerConfigError", 0),
			"fault missing-key":                                 testFault(FaultMissingKey, corev1.PodPending, "CreateContainerConfigError", 0),
			"fault never-ready":                                 testFault(FaultNeverReady, corev1.PodRunning, "", 0),
			"a running pod can be made to fail":                 testFaultOnRunning,
			"a namespace can be deleted":                        testNamespaceDeletion,
			"a service account's kubeconfig has only its roles": testKubeconfigFor,
			"the audit log tells who did what":                  testAuditLog,
			"tokens are those of the provider":                  testToken,
			"a proxy sees every request and can lose it":        testProxy,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, b, client)
			})
		}
	})
	t.Run("parts can be taken away and brought back", func(t *testing.T) { testProcesses(t, b, client) })

	var pids []int
	for _, p := range b.Processes() {
		if pid := p.PID(); pid != 0 {
			pids = append(pids, pid)
		}
	}
	if len(pids) != 6 {
		t.Errorf("%d processes, want 6", len(pids))
	}
	start := time.Now()
	if err := b.Stop(); err != nil {
		t.Error(err)
	}
	t.Logf("stopped in %s", time.Since(start))
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
			t.Errorf("process %d is still there: %v", pid, err)
		}
	}
	if _, err := os.Stat(b.Dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", b.Dir, err)
	}
	if err := b.Stop(); err != nil {
		t.Errorf("second Stop: %v", err)
	}
	httpClient.CloseIdleConnections()
	http.DefaultClient.CloseIdleConnections()
	goleak.VerifyNone(t, before)
}

func testProxy(t *testing.T, b *Bed, client kubernetes.Interface) {
	ns := namespace(t, client)
	if _, err := client.CoreV1().ServiceAccounts(ns).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "proxied"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := b.KubeconfigFor(t.Context(), ns, "proxied")
	if err != nil {
		t.Fatal(err)
	}
	credential, err := CredentialID(kubeconfig)
	if err != nil || !strings.HasPrefix(credential, "JTI=") {
		t.Errorf("credential %q, %v", credential, err)
	}
	var seen atomic.Int64
	var lose atomic.Bool
	url, err := b.ProxyAPIServer("proxy-of-a-test", func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen.Add(1)
			if lose.Load() {
				panic(http.ErrAbortHandler)
			}
			next.ServeHTTP(w, r)
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, b.Process("proxy-of-a-test").Stop()) })
	must(t, Redirect(kubeconfig, url))
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return closing{next} }) // so that none is left
	proxied := kubernetes.NewForConfigOrDie(config)
	who := func() error {
		review, err := proxied.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err == nil && review.Status.UserInfo.Username != "system:serviceaccount:"+ns+":proxied" {
			t.Errorf("to the API server it is %s", review.Status.UserInfo.Username)
		}
		return err
	}
	must(t, who())
	if seen.Load() == 0 {
		t.Error("nothing came by")
	}
	lose.Store(true)
	if who() == nil {
		t.Error("a lost request was answered")
	}
}

func testRollout(t *testing.T, _ *Bed, client kubernetes.Interface) {
	ns := namespace(t, client)
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")}},
		},
	}
	if _, err := client.CoreV1().PersistentVolumeClaims(ns).Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	d := deployment("web", 3, "")
	d.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "init:1"}}
	d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}}}
	create(t, client, ns, d)
	until(t, "rolled out", func(ctx context.Context) (string, bool) {
		d, err := client.AppsV1().Deployments(ns).Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err.Error(), false
		}
		return fmt.Sprintf("%+v", d.Status), d.Status.AvailableReplicas == 3
	})
	for _, p := range pods(t, client, ns) {
		if p.Status.PodIP == "" || p.Status.InitContainerStatuses[0].State.Terminated == nil {
			t.Errorf("pod %s: %+v", p.Name, p.Status)
		}
	}
}

func testJobs(t *testing.T, _ *Bed, client kubernetes.Interface) {
	ns := namespace(t, client)
	for name, fault := range map[string]string{"good": "", "bad": FaultFail} {
		none := int32(0)
		job := &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       batchv1.JobSpec{BackoffLimit: &none, Template: podTemplate(name, fault)},
		}
		job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		if _, err := client.BatchV1().Jobs(ns).Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]batchv1.JobConditionType{"good": batchv1.JobComplete, "bad": batchv1.JobFailed} {
		until(t, "job "+name+" "+string(want), func(ctx context.Context) (string, bool) {
			job, err := client.BatchV1().Jobs(ns).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err.Error(), false
			}
			for _, c := range job.Status.Conditions {
				if c.Type == want && c.Status == corev1.ConditionTrue {
					return "", true
				}
			}
			return fmt.Sprintf("%+v", job.Status), false
		})
	}
}

func testFault(fault string, phase corev1.PodPhase, waiting string, restarts int32) func(*testing.T, *Bed, kubernetes.Interface) {
	return func(t *testing.T, _ *Bed, client kubernetes.Interface) {
		ns := namespace(t, client)
		create(t, client, ns, deployment("web", 1, fault))
		var name string
		failing := func(context.Context) (string, bool) {
			list := pods(t, client, ns)
			if len(list) != 1 || len(list[0].Status.ContainerStatuses) != 1 {
				return "no status", false
			}
			name = list[0].Name
			s := list[0].Status
			c := s.ContainerStatuses[0]
			reason := ""
			if c.State.Waiting != nil {
				reason = c.State.Waiting.Reason
			}
			return fmt.Sprintf("%+v", s), s.Phase == phase && reason == waiting && c.RestartCount == restarts &&
				!c.Ready && condition(&list[0], corev1.PodReady) == corev1.ConditionFalse
		}
		until(t, "failing", failing)
		// It stays like that: no stage undoes another's work.
		time.Sleep(300 * time.Millisecond)
		if s, ok := failing(t.Context()); !ok {
			t.Errorf("no longer failing: %s", s)
		}
		annotate(t, client, ns, name, nil)
		until(t, "healed", readiness(client, ns, name, corev1.ConditionTrue))
	}
}

func testFaultOnRunning(t *testing.T, _ *Bed, client kubernetes.Interface) {
	ns := namespace(t, client)
	create(t, client, ns, deployment("web", 1, ""))
	var name string
	until(t, "a pod", func(context.Context) (string, bool) {
		list := pods(t, client, ns)
		if len(list) == 0 {
			return "none", false
		}
		name = list[0].Name
		return "not ready", condition(&list[0], corev1.PodReady) == corev1.ConditionTrue
	})
	fault := FaultNeverReady
	annotate(t, client, ns, name, &fault)
	until(t, "not ready", readiness(client, ns, name, corev1.ConditionFalse))
	annotate(t, client, ns, name, nil)
	until(t, "ready", readiness(client, ns, name, corev1.ConditionTrue))
}

func testNamespaceDeletion(t *testing.T, _ *Bed, client kubernetes.Interface) {
	ns := namespace(t, client)
	d := deployment("web", 1, "")
	// The namespace controller comes back after half of the longest grace period it saw.
	second := int64(1)
	d.Spec.Template.Spec.TerminationGracePeriodSeconds = &second
	create(t, client, ns, d)
	until(t, "a pod", func(context.Context) (string, bool) { return "none", len(pods(t, client, ns)) > 0 })
	if err := client.CoreV1().Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "gone", func(ctx context.Context) (string, bool) {
		n, err := client.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{})
		if err != nil {
			return err.Error(), apierrors.IsNotFound(err)
		}
		return fmt.Sprintf("%+v", n.Status), false
	})
}

func testKubeconfigFor(t *testing.T, b *Bed, client kubernetes.Interface) {
	ns := namespace(t, client)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}
	if _, err := client.CoreV1().ServiceAccounts(ns).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	path, err := b.KubeconfigFor(t.Context(), ns, "robot")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v, want mode 0600", info.Mode(), err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	// The admin's transport closes in the end; this one never keeps a connection.
	config.WrapTransport = func(rt http.RoundTripper) http.RoundTripper { return closing{rt} }
	robot := kubernetes.NewForConfigOrDie(config)
	_, err = robot.CoreV1().Secrets(ns).List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "system:serviceaccount:"+ns+":robot") {
		t.Errorf("got %v, want forbidden to the service account", err)
	}
	if _, err := b.KubeconfigFor(t.Context(), ns, "nobody"); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want not found", err)
	}
}

func testAuditLog(t *testing.T, b *Bed, client kubernetes.Interface) {
	ns := namespace(t, client)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, StringData: map[string]string{"k": "hunter2hunter2"}}
	if _, err := client.CoreV1().Secrets(ns).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(b.AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	found := false
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct {
			Level, Stage, Verb string
			ObjectRef          struct{ Namespace, Resource string }
		}
		// The last line may be half written by another request.
		if json.Unmarshal(lines.Bytes(), &event) != nil {
			continue
		}
		if strings.Contains(lines.Text(), "hunter2") {
			t.Error("a secret is in the audit log")
		}
		if event.Level != "Metadata" || (event.Stage != "ResponseComplete" && event.Stage != "Panic") {
			t.Errorf("level %s, stage %s", event.Level, event.Stage)
		}
		if event.Verb == "create" && event.ObjectRef.Namespace == ns && event.ObjectRef.Resource == "secrets" {
			found = true
		}
	}
	if !found {
		t.Error("the secret's creation is not in the audit log")
	}
}

func testToken(t *testing.T, b *Bed, _ kubernetes.Interface) {
	token, err := b.Token("admin", "zae")
	if err != nil {
		t.Fatal(err)
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, b.Issuer+"/userinfo", nil)
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Error(resp.Status)
	}
	if err := b.ApproveDevice(t.Context(), "XXXX-XXXX", "admin"); err == nil {
		t.Error("an unknown user code was approved")
	}
}

func testProcesses(t *testing.T, b *Bed, client kubernetes.Interface) {
	if b.Process("nothing") != nil {
		t.Error("there is a process named nothing")
	}
	version := func(timeout time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		_, err := client.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
		return err
	}
	api := b.Process("kube-apiserver")
	pid := api.PID()

	must(t, api.Pause())
	if err := version(300 * time.Millisecond); err == nil {
		t.Error("a paused API server answers")
	}
	must(t, api.Resume())
	must(t, version(10*time.Second))

	must(t, api.Kill())
	if api.Running() || api.PID() != 0 {
		t.Error("a killed API server runs")
	}
	if err := version(time.Second); err == nil {
		t.Error("a killed API server answers")
	}
	must(t, api.Start(t.Context()))
	must(t, version(10*time.Second))
	if api.PID() == pid {
		t.Error("the same process as before")
	}

	// The data outlives its store.
	etcd := b.Process("etcd")
	must(t, etcd.Kill())
	if err := version(time.Second); err == nil {
		t.Error("the API server answers without etcd")
	}
	must(t, etcd.Start(t.Context()))
	must(t, version(10*time.Second))

	for _, name := range []string{"registry", "oidc"} {
		p := b.Process(name)
		url := b.Issuer
		if name == "registry" {
			url = "http://" + b.Registry + "/v2/"
		}
		get := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
			resp, err := http.DefaultClient.Do(req)
			if err == nil {
				resp.Body.Close()
			}
			return err
		}
		must(t, get())
		must(t, p.Pause())
		if get() == nil {
			t.Errorf("a paused %s answers", name)
		}
		must(t, p.Resume())
		must(t, get())
		must(t, p.Stop())
		if get() == nil {
			t.Errorf("a stopped %s answers", name)
		}
		must(t, p.Start(t.Context()))
		must(t, get())
	}

	program := Program{
		Name: "sleeper", Path: "/bin/sh", Args: []string{"-c", "echo $MOOD; exec sleep 600"}, Env: []string{"MOOD=sleepy"},
		Ready: logHas(b.logPath("sleeper"), "sleepy"),
	}
	p, err := b.Run(t.Context(), program)
	if err != nil {
		t.Fatal(err)
	}
	if b.Process("sleeper") != p || !p.Running() {
		t.Error("not a part")
	}
	if _, err := b.Run(t.Context(), program); err == nil {
		t.Error("two of one name")
	}
	must(t, p.Stop())
	if _, err := b.Run(t.Context(), program); err != nil {
		t.Error(err)
	}

	// Stopping what is paused is what a test that failed halfway leaves behind.
	must(t, b.Process("kwok").Pause())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// until waits for a condition, for seconds.
func until(t *testing.T, what string, try func(context.Context) (state string, ok bool)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		state, ok := try(ctx)
		if ok {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("not %s in time: %s", what, state)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// namespace makes a namespace for a test, ready for pods.
func namespace(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	ns, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

func podTemplate(app, fault string) corev1.PodTemplateSpec {
	p := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "main:1"}}},
	}
	if fault != "" {
		p.Annotations = map[string]string{FaultAnnotation: fault}
	}
	return p
}

func deployment(name string, replicas int32, fault string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template: podTemplate(name, fault),
		},
	}
}

func create(t *testing.T, client kubernetes.Interface, ns string, d *appsv1.Deployment) {
	t.Helper()
	if _, err := client.AppsV1().Deployments(ns).Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func pods(t *testing.T, client kubernetes.Interface, ns string) []corev1.Pod {
	t.Helper()
	list, err := client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// annotate sets a pod's fault, or removes it.
func annotate(t *testing.T, client kubernetes.Interface, ns, pod string, fault *string) {
	t.Helper()
	patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]*string{FaultAnnotation: fault}}})
	if _, err := client.CoreV1().Pods(ns).Patch(t.Context(), pod, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func readiness(client kubernetes.Interface, ns, pod string, want corev1.ConditionStatus) func(context.Context) (string, bool) {
	return func(ctx context.Context) (string, bool) {
		p, err := client.CoreV1().Pods(ns).Get(ctx, pod, metav1.GetOptions{})
		if err != nil {
			return err.Error(), false
		}
		return fmt.Sprintf("%+v", p.Status), condition(p, corev1.PodReady) == want
	}
}

func condition(p *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
	for _, c := range p.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return ""
}

// closing sends every request on a connection of its own.
type closing struct{ http.RoundTripper }

func (c closing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Close = true
	return c.RoundTripper.RoundTrip(r)
}

// testWriter puts progress into a test's log.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}
