package portal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/portal"
	"zaentrum.io/zae/internal/postgrestest"
	"zaentrum.io/zae/internal/registry"
)

// The API server that tests share; each has a namespace of its own, and a portal-api with the rights of the
// Role that is shipped.
var server struct {
	sync.Once
	env     *envtest.Environment
	admin   client.WithWatch
	limited *rest.Config
	mapper  meta.RESTMapper
	err     error
}

const limitedUser = "portal-api"

func TestMain(m *testing.M) {
	flag.Parse()
	ctrllog.SetLogger(logr.Discard())
	code := postgrestest.Run(m)
	if server.env != nil {
		if err := server.env.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the API server:", err)
			code = max(code, 1)
		}
	}
	if err := goleak.Find(
		goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"),
	); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func needServer(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs an API server: left out with -short")
	}
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Fatal("needs an API server: run through make test")
	}
	server.Do(func() { server.err = startServer() })
	if server.err != nil {
		t.Fatal(server.err)
	}
}

func startServer() error {
	scheme, err := portal.Scheme()
	if err != nil {
		return err
	}
	if err := rbacv1.AddToScheme(scheme); err != nil {
		return err
	}
	server.env = &envtest.Environment{CRDDirectoryPaths: []string{filepath.Join("..", "..", "deploy", "crds")}, ErrorIfCRDPathMissing: true}
	config, err := server.env.Start()
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 1000, 1000
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	if server.mapper, err = apiutil.NewDynamicRESTMapper(config, httpClient); err != nil {
		return err
	}
	if server.admin, err = client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: server.mapper}); err != nil {
		return err
	}
	user, err := server.env.AddUser(envtest.User{Name: limitedUser}, config)
	if err != nil {
		return err
	}
	server.limited = user.Config()
	return nil
}

// shippedRole are the rules of the Role that is shipped.
func shippedRole(t testing.TB) []rbacv1.PolicyRule {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "deploy", "api.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(raw), "\n---\n") {
		var role rbacv1.Role
		if err := yaml.Unmarshal([]byte(document), &role); err == nil && role.Kind == "Role" {
			return role.Rules
		}
	}
	t.Fatal("deploy/api.yaml has no Role")
	return nil
}

// canary is in every secret value of the tests, and must be in no answer and no log line.
const canary = "c4nary"

// syncBuffer is a log that may be written and read at the same time.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// bench is one portal-api, an admin of the cluster beside it, and an admin of the portal in front of it.
type bench struct {
	t         *testing.T
	namespace string
	cluster   client.Client // the cluster's admin
	wire      *wire
	limited   client.WithWatch // as portal-api reaches the cluster
	registry  registry.Store
	issuer    *testIssuer
	portal    *portal.Server
	url       string
	front     string // where the portal is; a test may look elsewhere
	token     string
	log       *syncBuffer
}

// newBench makes a bench with a namespace in the API server. adjust may change the options.
func newBench(t *testing.T, adjust ...func(*portal.Options)) *bench {
	t.Helper()
	needServer(t)
	b := &bench{t: t, cluster: server.admin, wire: &wire{}}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "portal-"}}
	b.must(b.cluster.Create(t.Context(), namespace))
	b.namespace = namespace.Name
	b.allow(shippedRole(t))
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "portal-api"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "portal-api"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: limitedUser}},
	}
	b.must(b.cluster.Create(t.Context(), binding))
	limited := b.clientOver(b.wire)
	b.limited = limited
	b.start(append([]func(*portal.Options){func(o *portal.Options) { o.Client, o.Namespace = limited, b.namespace }}, adjust...)...)
	b.eventually("the Role counts", func() error {
		var out apitype.Availability
		b.answer(http.MethodGet, apitype.PathAddonCharts, nil, http.StatusOK, &out)
		if !out.Available {
			return errors.New(out.Note)
		}
		return nil
	})
	b.wire.take()
	return b
}

// newLoneBench makes a bench without a cluster.
func newLoneBench(t *testing.T, adjust ...func(*portal.Options)) *bench {
	t.Helper()
	b := &bench{t: t, wire: &wire{}}
	b.start(adjust...)
	return b
}

// replica is another portal-api of the same cluster and issuer.
func (b *bench) replica(adjust ...func(*portal.Options)) *bench {
	b.t.Helper()
	other := *b
	other.serve(append([]func(*portal.Options){func(o *portal.Options) { o.Client, o.Namespace = b.limited, b.namespace }}, adjust...)...)
	return &other
}

func (b *bench) start(adjust ...func(*portal.Options)) {
	t := b.t
	t.Helper()
	b.log = &syncBuffer{}
	var err error
	b.registry, err = registry.Open(t.Context(), filepath.Join(t.TempDir(), "registry.db"))
	b.must(err)
	t.Cleanup(func() {
		if err := b.registry.Close(); err != nil {
			t.Error(err)
		}
	})
	b.issuer = newTestIssuer(t)
	b.token = b.issuer.token(nil)
	b.serve(adjust...)
	t.Cleanup(func() {
		if strings.Contains(b.log.String(), canary) {
			t.Errorf("a secret value is in the log:\n%s", b.log)
		}
		if strings.Contains(b.log.String(), b.token) {
			t.Error("a bearer is in the log")
		}
	})
}

// serve starts a portal-api in front of what the bench has.
func (b *bench) serve(adjust ...func(*portal.Options)) {
	t := b.t
	t.Helper()
	var err error
	o := portal.Options{
		Registry: b.registry, Auth: portal.Auth{Issuer: b.issuer.url}, PublicOrigin: "https://media.example.org",
		PlatformServices: []string{"kafka", "portal-api"},
		Log:              slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, f := range adjust {
		f(&o)
	}
	b.portal, err = portal.New(o)
	b.must(err)
	front := httptest.NewUnstartedServer(nil)
	front.Config = b.portal.HTTPServer("")
	front.Start()
	b.url, b.front = front.URL, front.URL
	t.Cleanup(func() {
		front.Close()
		b.portal.Close()
	})
}

// clientOver is a client with the rights of the shipped Role, over a wire.
func (b *bench) clientOver(w *wire) client.WithWatch {
	b.t.Helper()
	config := rest.CopyConfig(server.limited)
	config.QPS, config.Burst = 1000, 1000
	config.Wrap(w.wrap)
	scheme, err := portal.Scheme()
	b.must(err)
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: server.mapper})
	b.must(err)
	return c
}

// run starts the registration loop; it ends with the test, or with the function that is answered.
func (b *bench) run() (stop func()) { return b.runs(b.portal) }

// runs starts the registration loop of a portal-api; it ends with the test, or with the function that is answered.
func (b *bench) runs(p *portal.Server) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.t.Context()))
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			select {
			case err := <-done:
				b.must(err)
			case <-time.After(20 * time.Second):
				b.t.Error("Run does not end")
			}
		})
	}
	b.t.Cleanup(stop)
	return stop
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// allow gives portal-api exactly these rights.
func (b *bench) allow(rules []rbacv1.PolicyRule) {
	b.t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "portal-api"}, Rules: rules}
	err := b.cluster.Update(b.t.Context(), role)
	if err != nil {
		err = b.cluster.Create(b.t.Context(), role)
	}
	b.must(err)
}

// reply is what portal-api answered.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func (r reply) String() string { return fmt.Sprintf("%d %s", r.status, r.body) }

// do sends a request as the portal's admin. body is JSON, a document to encode, or nil.
func (b *bench) do(method, path string, body any, edit ...func(*http.Request)) reply {
	b.t.Helper()
	var reader io.Reader
	var sent []byte
	switch body := body.(type) {
	case nil:
	case string:
		sent = []byte(body)
	default:
		raw, err := json.Marshal(body)
		b.must(err)
		sent = raw
	}
	if body != nil {
		reader = bytes.NewReader(sent)
	}
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, reader)
	b.must(err)
	r.Header.Set("Authorization", "Bearer "+b.token)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, f := range edit {
		f(r)
	}
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 60 * time.Second}
	response, err := c.Do(r)
	b.must(err)
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	b.must(err)
	if bytes.Contains(raw, []byte(canary)) {
		b.t.Errorf("a secret value is in the answer to %s %s:\n%s", method, path, raw)
	}
	out := reply{response.StatusCode, response.Header, raw}
	b.asDocumented(r, sent, out)
	return out
}

// answer sends a request that must get that status, and reads the answer strictly.
func (b *bench) answer(method, path string, body any, status int, into any) {
	b.t.Helper()
	r := b.do(method, path, body)
	if r.status != status {
		b.t.Fatalf("%s %s: got %s", method, path, r)
	}
	if got := r.header.Get("Content-Type"); got != "application/json" {
		b.t.Errorf("%s %s: content type %s", method, path, got)
	}
	decoder := json.NewDecoder(bytes.NewReader(r.body))
	decoder.DisallowUnknownFields()
	b.must(decoder.Decode(into))
}

// problem checks that a reply is a problem of that status and code, and answers it.
func (b *bench) problem(r reply, status int, code string) apitype.Problem {
	b.t.Helper()
	var p apitype.Problem
	if err := json.Unmarshal(r.body, &p); err != nil || r.status != status || p.Status != status || p.Code != code ||
		r.header.Get("Content-Type") != apitype.ProblemType || p.Title == "" || p.Detail == "" {
		b.t.Fatalf("wanted %d %s, got %s", status, code, r)
	}
	return p
}

// refused sends a request that must be refused, and checks that it wrote nothing.
func (b *bench) refused(method, path string, body any, status int, code string, edit ...func(*http.Request)) apitype.Problem {
	b.t.Helper()
	before := b.state()
	b.wire.take()
	p := b.problem(b.do(method, path, body, edit...), status, code)
	if writes := b.wire.take(); len(writes) > 0 {
		b.t.Errorf("%s %s was refused and wrote %v", method, path, writes)
	}
	if after := b.state(); after != before {
		b.t.Errorf("%s %s was refused and changed something:\n%s\n%s", method, path, before, after)
	}
	return p
}

// state identifies all Secrets and ZaentrumAddons of the namespace in their versions, and has all rows of the registry.
func (b *bench) state() string {
	b.t.Helper()
	var out strings.Builder
	out.WriteString(b.rows())
	if b.cluster == nil {
		return out.String()
	}
	for _, s := range b.secrets() {
		fmt.Fprintf(&out, "Secret %s %s\n", s.Name, s.ResourceVersion)
	}
	var list v1alpha1.ZaentrumAddonList
	b.must(b.cluster.List(b.t.Context(), &list, client.InNamespace(b.namespace)))
	for _, a := range list.Items {
		fmt.Fprintf(&out, "ZaentrumAddon %s %s\n", a.Name, a.ResourceVersion)
	}
	return out.String()
}

// rows are all rows of the registry.
func (b *bench) rows() string {
	b.t.Helper()
	ctx := b.t.Context()
	addons, err1 := b.registry.Addons(ctx)
	apps, err2 := b.registry.Apps(ctx)
	tiles, err3 := b.registry.Tiles(ctx)
	slots, err4 := b.registry.Slots(ctx)
	b.must(errors.Join(err1, err2, err3, err4))
	return fmt.Sprintf("%+v\n%+v\n%+v\n%+v\n", addons, apps, tiles, slots)
}

func (b *bench) secrets() []corev1.Secret {
	b.t.Helper()
	var list corev1.SecretList
	b.must(b.cluster.List(b.t.Context(), &list, client.InNamespace(b.namespace)))
	return list.Items
}

// addon is the resource as it is in the cluster.
func (b *bench) addon(name string) *v1alpha1.ZaentrumAddon {
	b.t.Helper()
	a := &v1alpha1.ZaentrumAddon{}
	b.must(b.cluster.Get(b.t.Context(), client.ObjectKey{Namespace: b.namespace, Name: name}, a))
	return a
}

// commit makes a resource as a deployment repository would.
func (b *bench) commit(name string, spec v1alpha1.ZaentrumAddonSpec) *v1alpha1.ZaentrumAddon {
	b.t.Helper()
	a := &v1alpha1.ZaentrumAddon{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}, Spec: spec}
	b.must(b.cluster.Create(b.t.Context(), a))
	return a
}

// operate writes a status as the operator would.
func (b *bench) operate(name string, change func(*v1alpha1.ZaentrumAddon)) *v1alpha1.ZaentrumAddon {
	b.t.Helper()
	for range 10 {
		a := b.addon(name)
		change(a)
		if err := b.cluster.Status().Update(b.t.Context(), a); err == nil {
			return a
		}
	}
	b.t.Fatalf("the status of %s cannot be written", name)
	return nil
}

// planned says that the operator has planned the resource as it is, and found nothing in the way.
func planned(a *v1alpha1.ZaentrumAddon) {
	a.Status.ObservedGeneration = a.Generation
	a.Status.Phase = v1alpha1.PhasePlanned
	a.Status.Plan = &v1alpha1.Plan{Chart: v1alpha1.PlanChart{
		Name: a.Name, Version: "1.2.0", Digest: "sha256:" + strings.Repeat("a", 64),
		Annotations: map[string]string{v1alpha1.ChartAnnotationPrimary: a.Name, v1alpha1.ChartAnnotationTitle: "Example"},
	}}
}

// running says that the addon is Ready, of the planned chart.
func running(a *v1alpha1.ZaentrumAddon) {
	planned(a)
	a.Status.Phase = v1alpha1.PhaseReady
	a.Status.LastAppliedChart = &v1alpha1.AppliedChart{Ref: a.Spec.Chart.Ref, Version: a.Spec.Chart.Version, Digest: a.Status.Plan.Chart.Digest}
	a.Status.Components = []v1alpha1.Component{{Name: a.Name, Kind: "Deployment", Ready: 1, Desired: 1}}
}

// eventually waits until a check passes.
func (b *bench) eventually(what string, check func() error) {
	b.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("%s: %v\n%s", what, err, b.log)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

const (
	exampleRef = "oci://charts.example.org/charts/example"
	digestA    = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	digestB    = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// valuesSecretName is the shape of the names of Secrets that portal-api makes.
var valuesSecretName = regexp.MustCompile(`^zaentrum-addon-example-values-[a-z0-9]{10}$`)

func exampleChart() v1alpha1.ChartSource {
	return v1alpha1.ChartSource{Ref: exampleRef, Version: "1.2.0"}
}

func chartPath(name string) string { return apitype.PathAddonCharts + "/" + name }

func secretEntry(secret, key, path string) v1alpha1.ValuesSource {
	return v1alpha1.ValuesSource{Kind: v1alpha1.ValuesFromSecret, Name: secret, ValuesKey: key, TargetPath: path}
}
