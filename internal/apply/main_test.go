package apply_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apply"
	"zaentrum.io/zae/internal/manifest"
)

// The API server that all tests share; each has a namespace of its own.
var server struct {
	sync.Once
	env    *envtest.Environment
	config *rest.Config
	err    error
}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if server.config != nil {
		if err := server.env.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the API server:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

func apiServer(t testing.TB) *rest.Config {
	t.Helper()
	if testing.Short() {
		t.Skip("needs an API server: left out with -short")
	}
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Fatal("needs an API server: run through make test, or set KUBEBUILDER_ASSETS to a directory with etcd and kube-apiserver")
	}
	server.Do(func() {
		server.env = &envtest.Environment{ControlPlaneStartTimeout: 2 * time.Minute, ControlPlaneStopTimeout: time.Minute}
		server.config, server.err = server.env.Start()
	})
	if server.err != nil {
		t.Fatal(server.err)
	}
	return server.config
}

// requests counts what is sent to the API server.
type requests struct {
	mu   sync.Mutex
	seen []string
	// before, when set, is called with each request before it is sent.
	before func(*http.Request)
}

func (r *requests) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		line := req.Method + " " + req.URL.Path
		if req.URL.Query().Has("dryRun") {
			line += " (dry run)"
		}
		r.mu.Lock()
		r.seen = append(r.seen, line)
		before := r.before
		r.mu.Unlock()
		if before != nil {
			before(req)
		}
		return next.RoundTrip(req)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (r *requests) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = nil
}

// all are the requests since the last reset, without those for the API's own description.
func (r *requests) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, line := range r.seen {
		if strings.Contains(line, "/namespaces/") {
			out = append(out, line)
		}
	}
	return out
}

// dryRuns are the dry runs since the last reset.
func (r *requests) dryRuns() []string {
	return slices.DeleteFunc(r.all(), func(line string) bool { return !strings.HasSuffix(line, "(dry run)") })
}

func (r *requests) writes() []string {
	var out []string
	for _, line := range r.all() {
		if !strings.HasPrefix(line, "GET ") && !strings.HasSuffix(line, "(dry run)") {
			out = append(out, line)
		}
	}
	return out
}

var kinds = []schema.GroupVersionKind{
	{Version: "v1", Kind: "ServiceAccount"},
	{Version: "v1", Kind: "Secret"},
	{Version: "v1", Kind: "ConfigMap"},
	{Version: "v1", Kind: "PersistentVolumeClaim"},
	{Version: "v1", Kind: "Service"},
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "batch", Version: "v1", Kind: "Job"},
}

// bench is one owner in a namespace of its own.
type bench struct {
	t        *testing.T
	ctx      context.Context
	owner    apply.Owner
	cluster  *apply.Cluster
	requests *requests
	// other writes as somebody else would, uncounted.
	other client.Client
}

func newBench(t *testing.T) *bench {
	t.Helper()
	config := apiServer(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)

	other, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "apply-"}}
	if err := other.Create(ctx, ns); err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, ctx: ctx, other: other, requests: &requests{}}
	b.owner = exampleOwner
	b.owner.Namespace = ns.Name
	b.owner.UID = types.UID("uid-of-" + ns.Name)

	counted := rest.CopyConfig(config)
	counted.QPS, counted.Burst = -1, -1
	counted.Wrap(b.requests.wrap)
	c, err := client.New(counted, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b.cluster = b.restarted(c)
	return b
}

// restarted is a Cluster that remembers nothing. Its reader is no cache: it never lags. But it compacts, as one does.
func (b *bench) restarted(c client.Client) *apply.Cluster {
	return &apply.Cluster{
		Cache: compacting{c}, Live: c, Client: c,
		FieldManager:   v1alpha1.FieldManager,
		Kinds:          kinds,
		OwnerLabel:     v1alpha1.LabelAddon,
		PruneLabels:    map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy},
		ReservedPrefix: v1alpha1.ReservedPrefix,
	}
}

// compacting answers lists as a cache does that compacts what it keeps.
type compacting struct{ client.Reader }

func (c compacting) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := c.Reader.List(ctx, list, opts...); err != nil {
		return err
	}
	items := list.(*unstructured.UnstructuredList).Items
	for i := range items {
		if _, err := apply.Compact(v1alpha1.ReservedPrefix)(&items[i]); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) decorate(text string) manifest.Set {
	b.t.Helper()
	return apply.Decorate(parse(b.t, text), marksOf(b.owner))
}

func (b *bench) observe(wanted manifest.Set) *apply.Observation {
	b.t.Helper()
	obs, err := b.cluster.Observe(b.ctx, b.owner, wanted.IDs())
	if err != nil {
		b.t.Fatal(err)
	}
	return obs
}

// apply observes and applies, and fails the test on an error.
func (b *bench) apply(text string) apply.Report {
	b.t.Helper()
	wanted := b.decorate(text)
	r, err := b.applied(b.ctx, wanted, b.observe(wanted))
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// applied rehearses and applies what was observed before.
func (b *bench) applied(ctx context.Context, wanted manifest.Set, obs *apply.Observation) (apply.Report, error) {
	rehearsal, err := b.cluster.Rehearse(ctx, b.owner, wanted, obs, false)
	if err != nil {
		return apply.Report{}, err
	}
	return b.cluster.Apply(ctx, b.owner, rehearsal)
}

// rehearse observes and rehearses.
func (b *bench) rehearse(text string, recall bool) *apply.Rehearsal {
	b.t.Helper()
	wanted := b.decorate(text)
	r, err := b.cluster.Rehearse(b.ctx, b.owner, wanted, b.observe(wanted), recall)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// mustApply applies and fails the test unless everything is in the cluster afterwards.
func (b *bench) mustApply(text string) apply.Report {
	b.t.Helper()
	r := b.apply(text)
	if !r.Complete() {
		b.t.Fatalf("not complete: %+v", r)
	}
	return r
}

func (b *bench) prune(text string) []string {
	b.t.Helper()
	wanted := b.decorate(text)
	ids, err := b.cluster.Prune(b.ctx, b.owner, wanted.IDs(), b.observe(wanted))
	if err != nil {
		b.t.Fatal(err)
	}
	return names(ids)
}

// get reads an object as it is, "apps/v1 Deployment worker".
func (b *bench) get(apiVersion, kind, name string) *unstructured.Unstructured {
	b.t.Helper()
	u, err := b.find(apiVersion, kind, name)
	if err != nil {
		b.t.Fatal(err)
	}
	return u
}

func (b *bench) find(apiVersion, kind, name string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	return u, b.other.Get(b.ctx, client.ObjectKey{Namespace: b.owner.Namespace, Name: name}, u)
}

// create creates an object as somebody else would.
func (b *bench) create(text string) *unstructured.Unstructured {
	b.t.Helper()
	u := parse(b.t, text)[0].Unstructured()
	u.SetNamespace(b.owner.Namespace)
	if err := b.other.Create(b.ctx, u); err != nil {
		b.t.Fatal(err)
	}
	return u
}

// patch changes an object as somebody else would, with a JSON merge patch.
func (b *bench) patch(u *unstructured.Unstructured, json string) {
	b.t.Helper()
	if err := b.other.Patch(b.ctx, u, client.RawPatch(types.MergePatchType, []byte(json)), client.FieldOwner("somebody")); err != nil {
		b.t.Fatal(err)
	}
}

func names(ids []manifest.ID) []string {
	out := []string{}
	for _, id := range ids {
		out = append(out, id.String())
	}
	return out
}

func at(t testing.TB, u *unstructured.Unstructured, fields ...string) any {
	t.Helper()
	v, _, err := unstructured.NestedFieldNoCopy(u.Object, fields...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func id(apiVersion, kind, name string) manifest.ID {
	return manifest.ID{APIVersion: apiVersion, Kind: kind, Name: name}
}
