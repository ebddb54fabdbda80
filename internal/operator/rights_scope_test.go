package operator_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/operator"
)

// bind gives a service account of another namespace, or of this one, the role of a house.
func (h *house) bind(namespace string) {
	h.Helper()
	binding := inFile[rbacv1.RoleBinding](h.T, "operator.yaml", "RoleBinding")[0]
	binding.Namespace, binding.Subjects[0].Namespace = h.namespace, namespace
	h.must(h.Create(h.Context(), &binding))
}

// installs wants an addon of a house to be installed.
func (h *house) installs() {
	h.Helper()
	h.create(h.example(), v1alpha1.PhaseInstalling)
}

// TestARightThatComesBackHeals takes a right from an operator, and gives it back.
func TestARightThatComesBackHeals(t *testing.T) {
	c := newCrew(t, apiServer(t))
	role := inFile[rbacv1.Role](t, "operator.yaml", "Role")[0]
	for _, right := range []granted{{"watch", "jobs.batch"}, {"patch", "secrets"}} {
		t.Run(right.String(), func(t *testing.T) {
			t.Parallel()
			h := c.house(t)
			config := c.serviceAccount(h)
			h.bind(h.namespace)
			h.grant(without(role.Rules, right))
			l := c.operate(h, config, false, operator.Options{Namespaces: []string{h.namespace}})
			h.must(h.Create(t.Context(), h.example()))
			h.eventually(func() string {
				if !strings.Contains(h.condition("example"), right.String()) {
					return "the addon does not say that the right is lacking"
				}
				return ""
			})
			h.grant(role.Rules)
			h.eventually(func() string {
				if said, ready := l.ready(); !ready {
					return said
				}
				return ""
			})
			h.change("example", func(a *v1alpha1.ZaentrumAddon) { metav1.SetMetaDataAnnotation(&a.ObjectMeta, "example.org/again", "1") })
			h.phase("example", v1alpha1.PhaseInstalling)
			if !strings.Contains(h.log.String(), "the operator has a right that it lacked") {
				t.Error("the log does not say that the right is there again")
			}
		})
	}
}

// TestListsAreNotMissedWhereTheyAreStreamed wants a kind whose objects are only cached to do without a list, where
// the API server streams it, and the operator to say all the same that the right is lacking.
func TestListsAreNotMissedWhereTheyAreStreamed(t *testing.T) {
	c := newCrew(t, apiServer(t))
	h := c.house(t)
	config := c.serviceAccount(h)
	h.bind(h.namespace)
	right := granted{"list", "configmaps"}
	h.grant(without(inFile[rbacv1.Role](t, "operator.yaml", "Role")[0].Rules, right))
	l := c.operate(h, config, false, operator.Options{Namespaces: []string{h.namespace}})
	h.installs()
	l.mustTell(right)
}

// TestSecretsAreOnlyListedByLabel has an addon live a whole life, and looks at every list and watch.
func TestSecretsAreOnlyListedByLabel(t *testing.T) {
	for name, lists := range map[string]bool{"streams": false, "lists": true} {
		t.Run(name, func(t *testing.T) {
			c := newCrew(t, apiServer(t))
			h := c.house(t)
			config := c.serviceAccount(h)
			h.bind(h.namespace)
			h.grant(inFile[rbacv1.Role](t, "operator.yaml", "Role")[0].Rules)
			foreign := h.secret("foreign", "", map[string]string{"x": "nobody's business"})
			l := c.operate(h, config, lists, operator.Options{Namespaces: []string{h.namespace}})
			l.live(granted{}) // nobody denies anything
			if said, ready := l.ready(); !ready {
				t.Error(said)
			}
			seen := 0
			requests, denied := l.requests.all()
			if denied {
				t.Error("something was denied")
			}
			for _, asked := range requests {
				method, target, _ := strings.Cut(asked, " ")
				u, err := url.Parse(target)
				h.must(err)
				if strings.HasSuffix(u.Path, "/"+foreign.Name) {
					t.Errorf("%s %s: nobody named it", method, u.Path)
				}
				if method != "GET" || !strings.HasSuffix(u.Path, "/secrets") {
					continue
				}
				seen++
				if selector := u.Query().Get("labelSelector"); selector != v1alpha1.LabelAddon && !strings.HasPrefix(selector, v1alpha1.LabelAddon+"=") {
					t.Errorf("%s: has the selector %q", u, selector)
				}
			}
			if seen < 2 { // the cache's, and the one before values are kept
				t.Errorf("%d lists and watches of Secrets were seen", seen)
			}
		})
	}
}

// TestSeveralNamespacesAreEachOnTheirOwn has one operator work in two namespaces, with a Lease in each. What it may
// not do in a third one holds up nothing.
func TestSeveralNamespacesAreEachOnTheirOwn(t *testing.T) {
	c := newCrew(t, apiServer(t))
	rules := inFile[rbacv1.Role](t, "operator.yaml", "Role")[0].Rules
	first, second, third := c.house(t), c.house(t), c.house(t)
	config := c.serviceAccount(first)
	for _, h := range []*house{first, second, third} {
		h.bind(first.namespace)
		h.grant(rules)
	}
	right := granted{"watch", "secrets"}
	third.grant(without(rules, right))
	l := c.operate(first, config, false, operator.Options{
		Namespaces: []string{first.namespace, second.namespace, third.namespace}, LeaderElection: true,
	})
	first.installs()
	second.installs()
	third.must(third.Create(t.Context(), third.example()))
	third.eventually(func() string {
		if !strings.Contains(third.condition("example"), right.String()+" in namespace "+third.namespace) {
			return "the addon does not say that the right is lacking"
		}
		return ""
	})
	said, ready := l.ready()
	if ready || strings.Contains(said, first.namespace) || strings.Contains(said, second.namespace) || !strings.Contains(said, right.String()) {
		t.Errorf("readyz says %t: %s", ready, said)
	}
	for _, h := range []*house{first, second, third} {
		if !h.leads() {
			t.Errorf("nobody leads in %s", h.namespace)
		}
	}
	requests, _ := l.requests.all()
	for _, asked := range requests {
		if !strings.Contains(asked, "/namespaces/") && !kinds.MatchString(asked) {
			t.Errorf("%s: outside of the namespaces", asked)
		}
	}
}

// kinds is what anybody may ask: which kinds there are.
var kinds = regexp.MustCompile(`^GET /apis?(/[a-z0-9.]+){0,2}$`)

// TestOneOperatorForAllNamespaces has an operator with the shipped ClusterRole work for two platforms. It has an API
// server of its own, since it would work for the other tests' platforms too.
func TestOneOperatorForAllNamespaces(t *testing.T) {
	apiServer(t) // or skip
	env := environment()
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	const file = "operator-all-namespaces.yaml"
	c := newCrew(t, config)
	own, first, second := c.house(t), c.house(t), c.house(t)
	role, clusterRole := inFile[rbacv1.Role](t, file, "Role")[0], inFile[rbacv1.ClusterRole](t, file, "ClusterRole")[0]
	binding, clusterBinding := inFile[rbacv1.RoleBinding](t, file, "RoleBinding")[0], inFile[rbacv1.ClusterRoleBinding](t, file, "ClusterRoleBinding")[0]
	role.Namespace, binding.Namespace = own.namespace, own.namespace
	clusterBinding.Subjects[0].Namespace = own.namespace // which the file leaves to whoever applies it
	for _, o := range []client.Object{&role, &clusterRole, &binding, &clusterBinding} {
		own.must(own.Create(t.Context(), o))
	}
	l := c.operate(own, c.serviceAccount(own), false, operator.Options{LeaderElection: true, LeaderElectionNamespace: own.namespace})
	second.installs()
	l.house, first.clock = first, own.clock
	l.live(granted{})
	if _, denied := l.requests.all(); denied {
		t.Error("something was denied")
	}
	if said, ready := l.ready(); !ready {
		t.Error(said)
	}
	if !own.leads() || first.leads() || second.leads() {
		t.Errorf("leads: %t, and where it works %t %t", own.leads(), first.leads(), second.leads())
	}

	// A right that is lacking is lacking everywhere.
	right := granted{"patch", "deployments.apps"}
	clusterRole.Rules = without(clusterRole.Rules, right)
	own.must(own.Update(t.Context(), &clusterRole))
	second.change("example", func(a *v1alpha1.ZaentrumAddon) { a.Spec.Values = nil })
	second.eventually(func() string {
		if !strings.Contains(second.condition("example"), right.String()+" in all namespaces") {
			return "the addon does not say that the right is lacking"
		}
		return ""
	})
	if said, ready := l.ready(); ready || !strings.Contains(said, right.String()+" in all namespaces") {
		t.Errorf("readyz says %t: %s", ready, said)
	}
}
