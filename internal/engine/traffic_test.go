package engine_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apply"
	"zaentrum.io/zae/internal/clustertest"
	"zaentrum.io/zae/internal/engine"
	"zaentrum.io/zae/internal/guard"
	"zaentrum.io/zae/internal/manifest"
	"zaentrum.io/zae/internal/values"
)

// street is a namespace on an API server with an addon in it.
type street struct {
	*testing.T
	client client.Client // of whoever lives there, too
	engine *engine.Engine
	owner  apply.Owner
	asked  *asked
}

// asked are the lists and the dry runs that went to the API server.
type asked struct {
	mu   sync.Mutex
	seen []string
}

func (a *asked) RoundTrip(next http.RoundTripper) http.RoundTripper {
	return trip(func(r *http.Request) (*http.Response, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		q := r.URL.Query()
		_, resource, _ := strings.Cut(r.URL.Path, "/namespaces/")
		_, resource, _ = strings.Cut(resource, "/")
		if r.Method == http.MethodGet && resource != "" && !strings.Contains(resource, "/") &&
			(!q.Has("labelSelector") || strings.HasPrefix(q.Get("labelSelector"), "!")) { // not those of a cache
			what := "list " + resource
			if strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadataList") {
				what += " metadata"
			}
			a.seen = append(a.seen, what)
		}
		return next.RoundTrip(r)
	})
}

type trip func(*http.Request) (*http.Response, error)

func (t trip) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// since are the lists since the last call, sorted.
func (a *asked) since() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	seen := a.seen
	a.seen = nil
	slices.Sort(seen)
	return seen
}

var neighbourhood = []string{"list deployments", "list jobs", "list pods metadata", "list services"}

func newStreet(t *testing.T) *street {
	t.Helper()
	config := clustertest.Config(t)
	s := &street{T: t, asked: &asked{}}
	config.Wrap(s.asked.RoundTrip)
	var err error
	if s.client, err = client.New(config, client.Options{}); err != nil {
		t.Fatal(err)
	}
	s.owner = apply.Owner{
		APIVersion: "zaentrum.io/v1alpha1", Kind: "ZaentrumAddon", Name: "app", UID: types.UID("uid-" + t.Name()),
		Namespace: clustertest.Namespace(t, s.client),
	}
	s.engine = &engine.Engine{Worker: newPool(t), Cluster: &apply.Cluster{
		Cache: s.client, Live: s.client, Client: s.client, FieldManager: v1alpha1.FieldManager,
		Kinds: []schema.GroupVersionKind{
			{Version: "v1", Kind: "Service"}, {Version: "v1", Kind: "ConfigMap"},
			{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "batch", Version: "v1", Kind: "Job"},
		},
		OwnerLabel: v1alpha1.LabelAddon, PruneLabels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy},
		ReservedPrefix: v1alpha1.ReservedPrefix,
	}}
	return s
}

// has somebody else make an object.
func (s *street) has(text string) {
	s.Helper()
	docs, err := manifest.Decode([]byte(text))
	if err != nil {
		s.Fatal(err)
	}
	for _, d := range docs {
		u := &unstructured.Unstructured{Object: d.(map[string]any)}
		u.SetNamespace(s.owner.Namespace)
		if err := s.client.Create(s.Context(), u); err != nil {
			s.Fatal(err)
		}
	}
}

// request asks for a chart whose templates are this text.
func (s *street) request(templates string) engine.Request {
	s.Helper()
	src, fetcher := push(s.T, writeChart(s.T, "apiVersion: v2\nname: app\nversion: 1.0.0\nannotations: {zaentrum.io/addon: \"true\", zaentrum.io/primary: app}\n", templates))
	s.engine.Fetch = fetcher
	return engine.Request{Name: "app", Namespace: s.owner.Namespace, Chart: src, Platform: values.DefaultPlatform()}
}

// writeChart makes a chart of a Chart.yaml and of templates in one file.
func writeChart(t *testing.T, chart, templates string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "app")
	for name, text := range map[string]string{"Chart.yaml": chart, filepath.Join("templates", "all.yaml"): templates} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func (s *street) preview(r engine.Request) *engine.Previewed {
	s.Helper()
	out, err := s.engine.Preview(s.Context(), r, s.owner)
	if err != nil {
		s.Fatal(err)
	}
	return out
}

func (s *street) converge(r engine.Request) *engine.Converged {
	s.Helper()
	out, err := s.engine.Converge(s.Context(), r, s.owner)
	if err != nil {
		s.Fatal(err)
	}
	return out
}

// wants compares what was asked since the last look.
func (s *street) wants(when string, want []string) {
	s.Helper()
	if d := cmp.Diff(want, s.asked.since()); d != "" {
		s.Errorf("%s: asked (-want +got):\n%s", when, d)
	}
}

// app is an addon whose Service has this selector, and whose pods have these labels.
func app(selector, labels string) string {
	return `apiVersion: v1
kind: Service
metadata: {name: app}
spec: {selector: ` + selector + `, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec:
  selector: {matchLabels: {own: app}}
  template:
    metadata: {labels: ` + labels + `}
    spec: {containers: [{name: c, image: x}]}
`
}

// A suspended addon is planned again and again. About selectors and labels that were fine, nobody is asked twice,
// unless they change or are about to be applied.
func TestTheNeighboursOfASuspendedAddonAreAskedAboutOnce(t *testing.T) {
	s := newStreet(t)
	s.has("{apiVersion: v1, kind: Service, metadata: {name: portal}, spec: {selector: {app: portal}, ports: [{port: 80}]}}")
	request := s.request(app("{own: app}", "{own: app}"))
	s.asked.since()

	if got := s.preview(request); got.Blocked() {
		t.Fatalf("blocked: %v", got.Plan.Violations)
	}
	s.wants("the first plan", neighbourhood)
	s.preview(request)
	s.wants("the same plan again", nil)
	if got := s.converge(request); !got.Applied {
		t.Fatalf("not applied: %v", got.Plan.Violations)
	}
	s.wants("the install", neighbourhood)
	s.preview(request)
	s.converge(request)
	s.wants("an addon that runs", nil)

	more := s.request(app("{own: app}", "{own: app, tier: web}"))
	s.asked.since()
	s.preview(more)
	s.wants("a plan with another label", neighbourhood)
	s.preview(more)
	s.wants("that plan again", nil)

	s.engine.Cluster.Forget(s.owner.UID)
	s.preview(more)
	s.wants("after a restart", neighbourhood)
}

// What meets the traffic of others is asked about each time: it may have gone.
func TestAnAddonInTheWayIsAskedAboutAgain(t *testing.T) {
	s := newStreet(t)
	s.has("{apiVersion: v1, kind: Service, metadata: {name: portal}, spec: {selector: {app: portal}, ports: [{port: 80}]}}")
	request := s.request(app("{own: app}", "{own: app, app: portal}"))
	for range 2 {
		s.asked.since()
		got := s.preview(request)
		s.wants("a plan that is refused", neighbourhood)
		want := []string{"Deployment/app: its pods would get traffic of Service/portal (spec.template.metadata.labels)"}
		if d := cmp.Diff(want, got.Plan.Violations); d != "" || !got.Blocked() || len(got.Wanted) > 0 {
			t.Errorf("violations: %s", d)
		}
		rule, _ := guard.RuleByID("no-foreign-traffic")
		found := slices.DeleteFunc(slices.Clone(got.Plan.Findings), func(f v1alpha1.Finding) bool { return f.Level == v1alpha1.FindingWarns })
		if d := cmp.Diff([]v1alpha1.Finding{{
			ID: rule.ID, Level: v1alpha1.FindingRefuses, Object: v1alpha1.ObjectRef{Kind: "Deployment", Name: "app"},
			Path: "spec.template.metadata.labels", Title: rule.Title,
		}}, found); d != "" {
			t.Errorf("findings: %s", d)
		}
	}
	if got := s.converge(request); got.Applied || len(got.Live) > 0 {
		t.Error("applied all the same")
	}
	portal := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "portal", "namespace": s.owner.Namespace}}}
	if err := s.client.Delete(t.Context(), portal); err != nil {
		t.Fatal(err)
	}
	if got := s.preview(request); got.Blocked() {
		t.Errorf("still blocked: %v", got.Plan.Violations)
	}
}

// pod is one of somebody's.
func pod(name, labels, owner string) string {
	references := ""
	if owner != "" {
		references = ", ownerReferences: [" + owner + "]"
	}
	return "{apiVersion: v1, kind: Pod, metadata: {name: " + name + ", labels: " + labels + references + "}, spec: {containers: [{name: c, image: x}]}}\n---\n"
}

func controller(apiVersion, kind, name string) string {
	return "{apiVersion: " + apiVersion + ", kind: " + kind + ", name: " + name + ", uid: u-" + name + ", controller: true}"
}

// Every pod that runs is seen, whoever's it is, and told by its owner, once.
func TestPodsOfAnyOwnerAreSeen(t *testing.T) {
	s := newStreet(t)
	s.has(pod("db-0", "{app: db, tier: web, apps.kubernetes.io/pod-index: \"0\"}", controller("apps/v1", "StatefulSet", "db")) +
		pod("db-1", "{app: db, tier: web, apps.kubernetes.io/pod-index: \"1\"}", controller("apps/v1", "StatefulSet", "db")) +
		pod("agent-x", "{tier: web}", controller("apps/v1", "DaemonSet", "agent")) +
		pod("old-x", "{tier: web}", controller("apps/v1", "ReplicaSet", "old")) +
		pod("cache-x", "{tier: web}", controller("example.org/v1", "Cache", "cache")) +
		pod("portal-1-x", "{tier: web, pod-template-hash: \"1\"}", controller("apps/v1", "ReplicaSet", "portal-1")) +
		pod("shell", "{tier: web}", "") +
		pod("other", "{tier: other}", ""))
	got := s.preview(s.request(app("{tier: web}", "{own: app, tier: web}")))
	want := []string{
		"Service/app: selects pods of DaemonSet/agent (spec.selector)",
		"Service/app: selects pods of Cache/cache (spec.selector)",
		"Service/app: selects pods of StatefulSet/db (spec.selector)",
		"Service/app: selects pods of ReplicaSet/old (spec.selector)",
		"Service/app: selects pods of Deployment/portal (spec.selector)",
		"Service/app: selects pods of Pod/shell (spec.selector)",
	}
	if d := cmp.Diff(want, got.Plan.Violations); d != "" {
		t.Errorf("violations (-want +got):\n%s", d)
	}
}

// The addon's own pods are no neighbours, nor is what its predecessor, another addon or a Job left behind.
func TestPodsOfItsOwnAndPodsLeftBehindAreNoNeighbours(t *testing.T) {
	s := newStreet(t)
	if got := s.converge(s.request(app("{own: app}", "{own: app}"))); !got.Applied {
		t.Fatalf("not applied: %v", got.Plan.Violations)
	}
	s.has(pod("app-1-x", "{own: app, tier: web, zaentrum.io/component: app, pod-template-hash: \"1\"}", controller("apps/v1", "ReplicaSet", "app-1")) +
		pod("gone-2-x", "{tier: web, zaentrum.io/component: gone, pod-template-hash: \"2\"}", controller("apps/v1", "ReplicaSet", "gone-2")) +
		pod("import-x", "{tier: web}", controller("batch/v1", "Job", "import")))
	got := s.preview(s.request(app("{tier: web}", "{own: app, tier: web}")))
	if got.Blocked() {
		t.Errorf("blocked: %v", got.Plan.Violations)
	}
}

// A Deployment of the platform's names a ConfigMap that is not there yet, and its pods are kept away by an
// anti-affinity: both are seen in the plan, while the same names and selectors hurt nobody elsewhere.
func TestWhatOthersWaitForAndWhoIsKeptAwayIsRefused(t *testing.T) {
	s := newStreet(t)
	s.has(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: portal}, spec: {selector: {matchLabels: {app: portal}}, template: {metadata: {labels: {app: portal, tier: web}},
  spec: {containers: [{name: c, image: x, envFrom: [{configMapRef: {name: portal-extra, optional: true}}]}]}}}}`)
	away := strings.Replace(app("{own: app}", "{own: app, tier: web}"), "spec: {containers:", `spec:
      affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/os, labelSelector: {matchLabels: {tier: web}}}]}}
      containers:`, 1)
	away = strings.Replace(away, "image: x}]}", "image: x}]", 1)
	got := s.preview(s.request(away + "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: portal-extra}, data: {ADMIN: everybody}}\n"))
	want := []string{
		"ConfigMap/portal-extra: Deployment/portal names an object like this, and would take this one for it (metadata.name)",
		"Deployment/app: keeps pods of Deployment/portal away (spec.template.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector)",
	}
	if d := cmp.Diff(want, got.Plan.Violations); d != "" || len(got.Wanted) > 0 {
		t.Errorf("violations (-want +got):\n%s", d)
	}
	near := strings.ReplaceAll(away, "matchLabels: {tier: web}", "matchLabels: {own: app}") + "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: app-extra}}\n"
	request := s.request(near)
	if got := s.converge(request); got.Blocked() || !got.Applied {
		t.Fatalf("blocked: %v", got.Plan.Violations)
	}
	s.asked.since()
	s.preview(request)
	s.wants("an addon that runs", nil)
}
