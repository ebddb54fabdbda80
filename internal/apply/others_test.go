package apply_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/internal/apply"
)

func TestOthersAreThoseThatTheOwnerDoesNotControl(t *testing.T) {
	var cached []string
	b := newBench(t)
	b.mustApply(example)
	b.create("{apiVersion: v1, kind: Service, metadata: {name: theirs}, spec: {selector: {app: theirs}, ports: [{port: 80}]}}")
	b.create("{apiVersion: v1, kind: Service, metadata: {name: another-addons, labels: {zaentrum.io/addon: another}}, spec: {selector: {app: another}, ports: [{port: 80}]}}")
	b.create("{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs}}")
	b.requests.reset()
	// Those with the label come from the cache.
	c := b.cluster.Cache
	b.cluster.Cache = seen{c, &cached}
	others, err := b.cluster.Others(b.ctx, b.owner,
		schema.GroupVersionKind{Version: "v1", Kind: "Service"},
		schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "NotServed"})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"Service/another-addons", "Service/theirs"}, names(others.IDs())); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"Service/another-addons", "Service/example", "Deployment/example"}, cached); d != "" {
		t.Errorf("in the cache: %s", d)
	}
}

// seen notes what a cache answers lists with.
type seen struct {
	client.Reader
	names *[]string
}

func (s seen) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := s.Reader.List(ctx, list, opts...); err != nil {
		return err
	}
	for _, u := range list.(*unstructured.UnstructuredList).Items {
		*s.names = append(*s.names, u.GetKind()+"/"+u.GetName())
	}
	return nil
}

// Pods are read whoever's they are, but for those of addons, and those that have ended or are about to.
func TestPodsAreToldWithTheirOwners(t *testing.T) {
	b := newBench(t)
	owned := func(name, labels, kind, owner string) *unstructured.Unstructured {
		return b.create(fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: %s, labels: %s, ownerReferences: [{apiVersion: apps/v1, kind: %s, name: %s, uid: u, controller: true}]}, spec: {containers: [{name: c, image: x}]}}",
			name, labels, kind, owner))
	}
	owned("a", "{app: a, pod-template-hash: h1}", "ReplicaSet", "web-h1")
	owned("b", "{app: b}", "ReplicaSet", "web-h1")
	owned("an-addons", "{app: x, zaentrum.io/addon: another, pod-template-hash: h1}", "ReplicaSet", "another-h1")
	owned("c", "{app: c, pod-template-hash: h1}", "StatefulSet", "db-h1")
	b.create("{apiVersion: v1, kind: Pod, metadata: {name: d}, spec: {containers: [{name: c, image: x}]}}")
	for i, phase := range []string{"Succeeded", "Failed"} {
		ended := owned(fmt.Sprintf("ended-%d", i), "{app: e}", "Job", "import")
		if err := b.other.Status().Patch(b.ctx, ended, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"phase":%q}}`, phase))); err != nil {
			t.Fatal(err)
		}
	}
	leaving := owned("leaving", "{app: f}", "StatefulSet", "db")
	b.patch(leaving, `{"metadata":{"finalizers":["example.org/stay"]}}`)
	if err := b.other.Delete(b.ctx, leaving); err != nil {
		t.Fatal(err)
	}
	b.requests.reset()
	pods, err := b.cluster.Pods(b.ctx, b.owner)
	if err != nil {
		t.Fatal(err)
	}
	want := []apply.Pod{
		{Name: "a", Labels: map[string]string{"app": "a", "pod-template-hash": "h1"}, Owner: id("apps/v1", "Deployment", "web")},
		{Name: "b", Labels: map[string]string{"app": "b"}, Owner: id("apps/v1", "ReplicaSet", "web-h1")},
		{Name: "c", Labels: map[string]string{"app": "c", "pod-template-hash": "h1"}, Owner: id("apps/v1", "StatefulSet", "db-h1")},
		{Name: "d"},
	}
	if d := cmp.Diff(want, pods); d != "" {
		t.Error(d)
	}
	if got := b.requests.all(); len(got) != 1 {
		t.Errorf("asked %q", got)
	}
	b.patch(leaving, `{"metadata":{"finalizers":null}}`)
}

func TestWhatWasSettledIsRememberedUntilForgotten(t *testing.T) {
	b := newBench(t)
	uid := b.owner.UID
	if b.cluster.Settled(uid, []byte("a")) {
		t.Error("settled from the beginning")
	}
	b.cluster.Settle(uid, []byte("a"))
	if !b.cluster.Settled(uid, []byte("a")) || b.cluster.Settled(uid, []byte("b")) || b.cluster.Settled("other", []byte("a")) {
		t.Error("not what was settled")
	}
	b.cluster.Settle(uid, []byte("b"))
	if b.cluster.Settled(uid, []byte("a")) {
		t.Error("what was settled before counts")
	}
	b.cluster.Forget(uid)
	if b.cluster.Settled(uid, []byte("b")) {
		t.Error("not forgotten")
	}
}
