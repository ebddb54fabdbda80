package apply_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestOthersAreThoseThatTheOwnerDoesNotControl(t *testing.T) {
	b := newBench(t)
	b.mustApply(example)
	b.create("{apiVersion: v1, kind: Service, metadata: {name: theirs}, spec: {selector: {app: theirs}, ports: [{port: 80}]}}")
	b.create("{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs}}")
	b.requests.reset()
	others, err := b.cluster.Others(b.ctx, b.owner,
		schema.GroupVersionKind{Version: "v1", Kind: "Service"},
		schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "NotServed"})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"Service/theirs"}, names(others.IDs())); d != "" {
		t.Error(d)
	}
	if got := b.requests.all(); len(got) != 2 {
		t.Errorf("asked %q", got)
	}
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
