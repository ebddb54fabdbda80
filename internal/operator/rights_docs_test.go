package operator

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"zaentrum.io/zae/internal/apply"
)

var update = flag.Bool("update", false, "write the table of docs/operating.md anew")

// TestDocumentedRights holds the table of docs/operating.md against the rights that the operator asks for.
func TestDocumentedRights(t *testing.T) {
	type row struct{ verb, what, without string }
	var order []row
	resources := map[row][]string{}
	for _, n := range needs(true) {
		r := row{n.verb, n.what, n.without}
		if resources[r] == nil {
			order = append(order, r)
		}
		resources[r] = append(resources[r], "`"+apply.ResourceName(n.group, n.resource)+"`")
	}
	var b strings.Builder
	b.WriteString("| resource | verb | what for | without it |\n|---|---|---|---|\n")
	for _, r := range order {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", strings.Join(resources[r], " "), r.verb, r.what, r.without)
	}

	const file, begin, end = "../../docs/operating.md", "<!-- rights: begin -->\n", "<!-- rights: end -->\n"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	is, tail, ok2 := strings.Cut(rest, end)
	switch {
	case !ok || !ok2:
		t.Fatal("no marks of the table")
	case is == b.String():
	case *update:
		if err := os.WriteFile(file, []byte(head+begin+b.String()+end+tail), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s does not have the table: go test ./internal/operator -run Documented -update", file)
	}
}

// deployed are the objects of a file of deploy/ by kind, each kind once.
func deployed(t *testing.T, file string) map[string][]byte {
	t.Helper()
	text, err := os.ReadFile("../../deploy/" + file)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		var head metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(doc), &head); err != nil {
			t.Fatal(err)
		}
		if out[head.Kind] != nil {
			t.Fatalf("%s has two of kind %s", file, head.Kind)
		}
		out[head.Kind] = []byte(doc)
	}
	return out
}

func decode[T any](t *testing.T, doc []byte) T {
	t.Helper()
	var out T
	if err := yaml.UnmarshalStrict(doc, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// rules are the rights of rules, each as text.
func rules(list []rbacv1.PolicyRule) map[string]bool {
	out := map[string]bool{}
	for _, r := range list {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					out[strings.TrimSpace(verb+" "+apply.ResourceName(group, resource)+" "+strings.Join(r.ResourceNames, " "))] = true
				}
			}
		}
	}
	return out
}

// TestTheShippedRolesHoldWhatIsNeeded wants the roles to grant what the operator asks for, and nothing else.
func TestTheShippedRolesHoldWhatIsNeeded(t *testing.T) {
	home, inside, all := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, n := range needs(true) {
		text := strings.TrimSpace(n.String() + " " + n.name)
		all[text] = true
		if n.home {
			home[text] = true
		}
		if n.inside {
			inside[text] = true
		}
	}
	here := deployed(t, "operator.yaml")
	if diff := cmp.Diff(all, rules(decode[rbacv1.Role](t, here["Role"]).Rules)); diff != "" {
		t.Errorf("operator.yaml: %s", diff)
	}
	everywhere := deployed(t, "operator-all-namespaces.yaml")
	if diff := cmp.Diff(home, rules(decode[rbacv1.Role](t, everywhere["Role"]).Rules)); diff != "" {
		t.Errorf("operator-all-namespaces.yaml, Role: %s", diff)
	}
	maps.DeleteFunc(all, func(text string, _ bool) bool { return home[text] || inside[text] })
	if diff := cmp.Diff(all, rules(decode[rbacv1.ClusterRole](t, everywhere["ClusterRole"]).Rules)); diff != "" {
		t.Errorf("operator-all-namespaces.yaml, ClusterRole: %s", diff)
	}

	// The two run the same program, and differ in what it watches.
	one, many := decode[appsv1.Deployment](t, here["Deployment"]), decode[appsv1.Deployment](t, everywhere["Deployment"])
	args := many.Spec.Template.Spec.Containers[0].Args
	if i := slices.Index(args, "--leader-elect-namespace=$(POD_NAMESPACE)"); i < 0 {
		t.Errorf("the operator of all namespaces is started with %q", args)
	} else {
		args[i] = "--watch-namespace=$(POD_NAMESPACE)"
	}
	if diff := cmp.Diff(one, many); diff != "" {
		t.Errorf("the Deployments differ: %s", diff)
	}
}
