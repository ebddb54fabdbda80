package e2e

import (
	"strings"
	"testing"
	"time"

	"zaentrum.io/zae/testbed/stack"
)

// terminates deletes the house's namespace, and waits until it is gone.
func (h *house) terminates(what string) {
	h.Helper()
	start := time.Now()
	h.kubectl("delete", "namespace", h.Namespace, "--wait=false")
	h.isGone(what)
	h.Logf("%s: gone after %s", what, time.Since(start).Round(100*time.Millisecond))
}

func (h *house) isGone(what string) {
	h.Helper()
	deadline := time.Now().Add(90 * time.Second)
	for h.namespacePhase() != "" {
		if time.Now().After(deadline) {
			h.Fatalf("%s: the namespace is not gone after 90 s: %s", what, h.kubectl("get", "namespace", h.Namespace, "-o", "jsonpath={.status.conditions}"))
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func (h *house) namespacePhase() string {
	h.Helper()
	return strings.TrimSpace(h.kubectl("get", "namespace", h.Namespace, "--ignore-not-found", "-o", "jsonpath={.status.phase}"))
}

// With the operator stopped the namespace can be deleted: nothing of an addon's waits for it.
func TestANamespaceEndsWithTheOperatorStopped(t *testing.T) {
	h := newHouse(t)
	h.login()
	h.zae(0, h.add("--yes", "--wait")...)
	if err := h.Operator.Stop(); err != nil {
		t.Fatal(err)
	}
	h.terminates("the operator is stopped")
}

// Without an operator a namespace waits for values to be kept: the finalizer is the contract's. It ends as soon as one is
// back whose rights did not go with the namespace; and it lets go of the finalizer only, for nobody is left to keep for.
func TestANamespaceWithValuesToKeepWaitsForAnOperator(t *testing.T) {
	h := newHouse(t)
	h.login()
	h.zae(0, h.add("--yes", "--wait")...)
	h.kubectl("annotate", "zaddon", "example", "zaentrum.io/keep-values=true")
	h.eventually("the finalizer is there", func() bool { return h.get("zaddon/example", ".metadata.finalizers") != "" })
	if err := h.Operator.Stop(); err != nil {
		t.Fatal(err)
	}
	h.kubectl("delete", "namespace", h.Namespace, "--wait=false")
	h.eventually("all but the addon is gone", func() bool {
		return strings.Contains(h.kubectl("get", "namespace", h.Namespace, "-o", "jsonpath={.status.conditions}"), "zaentrumaddons.zaentrum.io has 1 resource instances") &&
			h.kubectl("get", allKinds+",pod,rolebinding", "-o", "name") == ""
	})
	back := time.Now()
	if _, err := h.AnotherOperator(h.ctx, stack.OperatorOptions{
		Name: "zae-operator-back-" + h.Namespace, Args: []string{"--leader-elect=false"}, Admin: true,
	}); err != nil {
		t.Fatal(err)
	}
	h.isGone("an operator is back")
	t.Logf("gone %s after the operator was back", time.Since(back).Round(100*time.Millisecond))
}

// TestKeepValuesSurvivesEveryDeletion deletes with kubectl, in each way that there is.
func TestKeepValuesSurvivesEveryDeletion(t *testing.T) {
	h := newHouse(t)
	h.login()
	for _, cascade := range []string{"background", "foreground", "orphan"} {
		h.zae(0, h.add("--yes", "--wait")...)
		values := h.get("zaddon/example", ".spec.valuesFrom[0].name")
		key := h.get("secret/zaentrum-addon-example-generated", ".data.config\\.key")
		h.kubectl("annotate", "zaddon", "example", "zaentrum.io/keep-values=true")
		h.eventually("the finalizer is there", func() bool { return h.get("zaddon/example", ".metadata.finalizers") != "" })
		h.kubectl("delete", "zaddon", "example", "--cascade="+cascade, "--timeout=60s")
		left := h.owned("example")
		if cascade == "orphan" {
			if len(left) < 8 {
				t.Errorf("orphan: only %v are left", left)
			}
			h.kubectl("delete", allKinds, "-l", "zaentrum.io/addon=example,app.kubernetes.io/managed-by=zaentrum-operator", "--timeout=60s")
		} else {
			h.eventually("all the chart created is gone", func() bool { return len(h.owned("example")) == 0 })
		}
		for _, name := range []string{values, "zaentrum-addon-example-generated"} {
			if got := h.get("secret/"+name, ".metadata.labels.zaentrum\\.io/keep} {.metadata.ownerReferences"); got != "true" {
				t.Errorf("%s: Secret %s: %s", cascade, name, got)
			}
		}
		if got := h.get("secret/zaentrum-addon-example-generated", ".data.config\\.key"); got != key || key == "" {
			t.Errorf("%s: the generated value is another one", cascade)
		}
		h.kubectl("delete", "secret", "-l", "zaentrum.io/keep=true")
	}
}

// With values to keep, the operator's finalizer is on the resource. An operator whose rights are in the namespace lets go
// before they go with it.
func TestANamespaceWithValuesToKeepEnds(t *testing.T) {
	h := newHouse(t)
	h.login()
	h.zae(0, h.add("--yes", "--wait")...)
	h.kubectl("annotate", "zaddon", "example", "zaentrum.io/keep-values=true")
	h.eventually("the finalizer is there", func() bool { return h.get("zaddon/example", ".metadata.finalizers") != "" })
	h.terminates("the operator runs")
}
