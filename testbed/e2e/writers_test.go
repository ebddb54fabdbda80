package e2e

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// rival is somebody else who writes to an addon's objects, again and again.
type rival struct {
	name string
	do   func(ctx context.Context, c kubernetes.Interface, namespace string, n int) error
}

// rivals of the example addon. Each change is one that must not last, but for what is the rival's own.
var rivals = []rival{
	{"an apply by force", func(ctx context.Context, c kubernetes.Interface, namespace string, n int) error {
		text := fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"example-worker","annotations":{"theirs":"stays"}},"spec":{"replicas":%d}}`, 3+n%2)
		_, err := c.AppsV1().Deployments(namespace).Patch(ctx, "example-worker", types.ApplyPatchType, []byte(text),
			metav1.PatchOptions{FieldManager: "somebody", Force: new(true)})
		return err
	}},
	{"an edit", func(ctx context.Context, c kubernetes.Interface, namespace string, n int) error {
		m, err := c.CoreV1().ConfigMaps(namespace).Get(ctx, "example-settings", metav1.GetOptions{})
		if err != nil {
			return err
		}
		m.Data["LOG_LEVEL"], m.Data["theirs"] = fmt.Sprint("edited-", n), "stays"
		_, err = c.CoreV1().ConfigMaps(namespace).Update(ctx, m, metav1.UpdateOptions{FieldManager: "kubectl-edit"})
		return err
	}},
	{"a removal of keys", func(ctx context.Context, c kubernetes.Interface, namespace string, _ int) error {
		_, err := c.CoreV1().Secrets(namespace).Patch(ctx, "example-env", types.MergePatchType, []byte(`{"data":null}`), metav1.PatchOptions{})
		return err
	}},
	{"a deletion of Services", func(ctx context.Context, c kubernetes.Interface, namespace string, _ int) error {
		return c.CoreV1().Services(namespace).Delete(ctx, "example", metav1.DeleteOptions{})
	}},
	{"a deletion of Deployments", func(ctx context.Context, c kubernetes.Interface, namespace string, n int) error {
		policy := []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground}[n%2]
		return c.AppsV1().Deployments(namespace).Delete(ctx, "example", metav1.DeleteOptions{PropagationPolicy: &policy})
	}},
	{"a removal of labels", func(ctx context.Context, c kubernetes.Interface, namespace string, _ int) error {
		_, err := c.CoreV1().ServiceAccounts(namespace).Patch(ctx, "example", types.MergePatchType, []byte(`{"metadata":{"labels":null}}`), metav1.PatchOptions{})
		return err
	}},
	{"annotations on the resource", func(ctx context.Context, c kubernetes.Interface, namespace string, n int) error {
		_, err := c.CoreV1().RESTClient().Patch(types.MergePatchType).AbsPath("/apis/zaentrum.io/v1alpha1/namespaces/" + namespace + "/zaentrumaddons/example").
			Body(fmt.Appendf(nil, `{"metadata":{"annotations":{"theirs":"%d"}}}`, n)).DoRaw(ctx)
		return err
	}},
}

// TestFaultRivals has others write to the addon's objects in loops. What they set of their own stays, all else is as
// rendered in the end, and the operator writes about as often as they do, not in a loop of its own.
func TestFaultRivals(t *testing.T) {
	long := 8 * time.Second
	if chaos() {
		long = 2 * time.Minute
	}
	h := openHouse(t, opening{within: long + 4*time.Minute})
	h.login()
	h.zae(0, h.add("--yes", "--wait")...)
	h.eventually("the Job is done", func() bool { return h.get("job/example-migrate", ".status.succeeded") == "1" })
	// What is compared afterwards: what the chart says, and what was generated.
	look := func() map[string]string {
		return map[string]string{
			"replicas":    h.get("deploy/example-worker", ".spec.replicas"),
			"log level":   h.get("cm/example-settings", ".data.LOG_LEVEL"),
			"secrets":     h.get("secret/example-env", ".data"),
			"service":     h.get("svc/example", ".spec.selector"),
			"labels":      h.get("sa/example", ".metadata.labels"),
			"pods":        h.get("deploy/example-worker", ".spec.template"),
			"primary":     h.get("deploy/example", ".spec.template"),
			"job":         h.get("job/example-migrate", ".metadata.uid"),
			"generated":   h.get("secret/zaentrum-addon-example-generated", ".data"),
			"generated's": h.get("secret/zaentrum-addon-example-generated", ".metadata.uid"),
		}
	}
	before := look()
	for what, is := range before {
		if is == "" {
			t.Fatalf("%s: nothing", what)
		}
	}
	config, err := bed.RestConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	earlier := len(h.operatorWrites())
	ctx, cancel := context.WithTimeout(h.ctx, long)
	defer cancel()
	var running sync.WaitGroup
	var theirs atomic.Int64
	for _, r := range rivals {
		running.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if err := r.do(ctx, c, h.Namespace, n); err == nil {
					theirs.Add(1)
				} // else it is not there just now, or was written to meanwhile
				select {
				case <-ctx.Done():
				case <-time.After(200 * time.Millisecond):
				}
			}
		})
	}
	running.Wait()
	h.eventually("all is as rendered", func() bool {
		after := look()
		for what, was := range before {
			if after[what] != was {
				return false
			}
		}
		return true
	})
	h.phase("example", "Ready")
	for what, is := range look() {
		if is != before[what] && what != "secrets" && what != "generated" {
			t.Errorf("%s: %s, was %s", what, is, before[what])
		}
	}
	if got := h.get("cm/example-settings", ".data.theirs") + h.get("deploy/example-worker", ".metadata.annotations.theirs"); got != "staysstays" {
		t.Errorf("what others added is gone: %q", got)
	}
	ours := h.operatorWrites()[earlier:]
	byKind := map[string]int{}
	for _, w := range ours {
		byKind[w.Verb+" "+w.ObjectRef.Resource]++
	}
	// One write for each of theirs, and one for what that makes of the status and of a Deployment's health.
	if int64(len(ours)) > 3*theirs.Load() {
		t.Errorf("the others wrote %d times, the operator %d times: %v", theirs.Load(), len(ours), byKind)
	}
	t.Logf("the others wrote %d times, the operator %d times: %s", theirs.Load(), len(ours), counts(byKind))
	// And then there is peace.
	h.quiet()
}

// quiet waits until the operator has stopped writing.
func (h *house) quiet() {
	h.Helper()
	last, since := len(h.operatorWrites()), time.Now()
	h.eventually("the operator writes nothing for two seconds", func() bool {
		if n := len(h.operatorWrites()); n != last {
			last, since = n, time.Now()
		}
		return time.Since(since) > 2*time.Second
	})
}
