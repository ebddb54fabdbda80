package operator_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/operator"
)

// toldIn says where else, besides the log, a right that is lacking is told: on the addon by default.
var toldIn = map[granted]string{
	{"list", "zaentrumaddons.zaentrum.io"}:         "readyz",
	{"get", "zaentrumaddons.zaentrum.io"}:          "readyz",
	{"patch", "zaentrumaddons.zaentrum.io/status"}: "event",
	{"create", "events"}:                           "log",
	{"watch", "pods"}:                              "log",
	{"watch", "namespaces"}:                        "log",
	{"create", "events.events.k8s.io"}:             "log",
	{"get", "leases.coordination.k8s.io"}:          "readyz",
	{"create", "leases.coordination.k8s.io"}:       "readyz",
	{"update", "leases.coordination.k8s.io"}:       "readyz",
}

// TestEachRightIsNeededAndMissed takes one right after the other away from the shipped role, and has the operator
// add an addon, change it, tidy up and remove it. The cluster must deny a request for lack of that right: no right
// is shipped without need. And the operator must say so, in the log, at /readyz, and on the addon.
func TestEachRightIsNeededAndMissed(t *testing.T) {
	c := newCrew(t, apiServer(t))
	role := inFile[rbacv1.Role](t, "operator.yaml", "Role")[0]
	for _, right := range rightsOf(role.Rules) {
		t.Run(strings.ReplaceAll(right.String(), "/", "."), func(t *testing.T) {
			t.Parallel()
			h := c.house(t)
			config := c.serviceAccount(h)
			h.grant(without(role.Rules, right))
			h.bind(h.namespace)
			l := c.operate(h, config, right.verb == "list", operator.Options{Namespaces: []string{h.namespace}, LeaderElection: true})
			if !l.live(right) {
				t.Errorf("an addon lives without the right to %s: is it needed?", right)
			}
			l.mustTell(right)
		})
	}
}

// live goes through an addon's life until the cluster has denied a request for lack of a right and the operator has
// said so, and tells whether they did.
func (l *limited) live(right granted) bool {
	l.Helper()
	text := right.String() + " in namespace " + l.namespace
	told := func() bool {
		if !l.requests.wasDenied(right) {
			return false
		}
		switch toldIn[right] {
		case "":
			return strings.Contains(l.condition("example"), text)
		case "event":
			return strings.Contains(l.event(), text)
		case "readyz":
			said, _ := l.ready()
			return strings.Contains(said, text)
		default:
			return l.logged(text)
		}
	}
	phase := func(ref string) func() bool {
		return func() bool {
			a := &v1alpha1.ZaentrumAddon{}
			l.must(l.Get(l.Context(), l.key("example"), a))
			applied := a.Status.LastAppliedChart
			return a.Status.Phase == v1alpha1.PhaseInstalling && applied != nil && strings.HasSuffix(applied.Ref, ref)
		}
	}
	a := l.example()
	a.Annotations = map[string]string{v1alpha1.AnnotationKeepValues: "true"}
	l.must(l.Create(l.Context(), a))
	if l.waitOrTold("add", told, phase("/example")) {
		return true
	}
	l.change("example", func(a *v1alpha1.ZaentrumAddon) {
		tiny := l.addon("example", "tiny", "0.1.0")
		a.Spec.Chart, a.Spec.Values = tiny.Spec.Chart, nil
	})
	if l.waitOrTold("change", told, phase("/tiny")) {
		return true
	}
	old := l.secret("zaentrum-addon-example-values-old", "example", map[string]string{"x": "unreferenced"})
	if l.waitOrTold("tidy up", told, func() bool {
		l.clock.step(6 * time.Minute)
		if !l.exists(&corev1.Secret{}, old.Name) {
			return true
		}
		l.poke(old)
		return false
	}) {
		return true
	}
	l.must(l.Delete(l.Context(), l.addon("example", "tiny", "0.1.0")))
	return l.waitOrTold("remove", told, func() bool {
		return apierrors.IsNotFound(l.Get(l.Context(), l.key("example"), &v1alpha1.ZaentrumAddon{}))
	})
}

// poke has the janitor look.
func (h *house) poke(s *corev1.Secret) {
	h.Helper()
	before := s.DeepCopy()
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, "example.org/poke", time.Now().String())
	h.must(client.IgnoreNotFound(h.Patch(h.Context(), s, client.MergeFrom(before))))
}

// mustTell wants a right that is lacking in the log and, unless it is one that can be spared, at /readyz.
func (l *limited) mustTell(right granted) {
	l.Helper()
	text := right.String() + " in namespace " + l.namespace
	if !l.logged(text) {
		l.Errorf("the log does not name the right to %s", text)
	}
	said, ready := l.ready()
	if counted := l.metric("zae_operator_rights_lacking", "namespace="+l.namespace); counted > 0 == ready {
		l.Errorf("%v rights are counted as lacking, and readyz says %t: %s", counted, ready, said)
	}
	spares := []granted{{"watch", "pods"}, {"watch", "namespaces"}}
	if spare := strings.HasPrefix(right.resource, "events") || slices.Contains(spares, right); spare != ready {
		l.Errorf("readyz, without the right to %s, says %t: %s", text, ready, said)
	} else if !spare && !strings.Contains(said, text) {
		l.Errorf("readyz does not name the right to %s: %s", text, said)
	}
}
