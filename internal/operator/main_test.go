package operator_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/charttest"
	"zaentrum.io/zae/internal/operator"
	"zaentrum.io/zae/internal/telemetry"
	"zaentrum.io/zae/internal/worker"
	"zaentrum.io/zae/internal/workertest"
)

// The API server that tests share; each has a namespace and an operator of its own. No controller manager runs:
// nothing rolls out, and nothing is collected.
var server struct {
	sync.Once
	env    *envtest.Environment
	config *rest.Config
	err    error
}

func TestMain(m *testing.M) {
	workertest.Serve()
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	code := m.Run()
	if server.config != nil {
		if err := server.env.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the API server:", err)
			code = max(code, 1)
		}
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func apiServer(t *testing.T) *rest.Config {
	t.Helper()
	if testing.Short() {
		t.Skip("needs an API server: left out with -short")
	}
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Fatal("needs an API server: run through make test, or set KUBEBUILDER_ASSETS to a directory with etcd and kube-apiserver")
	}
	server.Do(func() {
		server.env = environment()
		server.config, server.err = server.env.Start()
	})
	if server.err != nil {
		t.Fatal(server.err)
	}
	return server.config
}

// environment is a control plane to start.
func environment() *envtest.Environment {
	env := &envtest.Environment{
		ControlPlaneStartTimeout: 2 * time.Minute, ControlPlaneStopTimeout: time.Minute,
		CRDDirectoryPaths: []string{filepath.Join("..", "..", "deploy", "crds")}, ErrorIfCRDPathMissing: true,
	}
	// Some clusters ask for more rights than others.
	env.ControlPlane.GetAPIServer().Configure().Append("enable-admission-plugins", "OwnerReferencesPermissionEnforcement")
	return env
}

// clock is one that tests move.
type clock struct {
	mu    sync.Mutex
	ahead time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

func (c *clock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
}

// house is one test's namespace, registry and operator.
type house struct {
	*testing.T
	client.Client
	namespace string
	registry  *charttest.Registry
	slow      string // host:port of a registry that takes connections and never answers
	clock     *clock
	cacheDir  string
	log       *lockedBuffer
	counting  *counting // of the operator that was started last
	as        string    // who the operators are; empty: one who may do everything
	wire      *wire
	metrics   *prometheus.Registry // of the operator that was started last
	collector string               // where spans go; empty for nowhere
	stop      func()
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// canary is the value of the secret input in every test. It must show nowhere.
const canary = "c4n4ry-value"

// newHouse makes a namespace with a platform and starts an operator in it.
func newHouse(t *testing.T) *house {
	t.Helper()
	config := apiServer(t)
	c, err := client.New(config, client.Options{Scheme: operator.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	h := &house{
		T: t, Client: c, registry: charttest.Serve(t), cacheDir: t.TempDir(), log: &lockedBuffer{},
		clock: &clock{}, wire: &wire{},
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	h.slow = silent.Addr().String()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "addons-"}}
	h.must(c.Create(t.Context(), ns))
	h.namespace = ns.Name
	h.must(c.Create(t.Context(), h.platform("platform")))
	for _, dir := range []string{"example/1.2.0", "example/1.3.0", "tiny", "refused/violation"} {
		h.registry.Push(filepath.Join("..", "..", "examples", dir))
	}
	h.start()
	t.Cleanup(func() {
		h.wire.hook(nil)
		h.wire.lose(nil)
		h.stop()
		h.noCanary()
		if t.Failed() {
			t.Log(h.log.String())
		}
	})
	return h
}

func (h *house) platform(name string) *v1alpha1.Zaentrum {
	return &v1alpha1.Zaentrum{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: name},
		Spec:       v1alpha1.ZaentrumSpec{Hostname: "media.example.org"},
	}
}

// start starts an operator; stop ends it and waits.
func (h *house) start() {
	h.Helper()
	h.stop = h.operator(h.cacheDir)
}

// operator starts one, and answers with what ends it and waits.
func (h *house) operator(cacheDir string) (stop func()) {
	h.Helper()
	config := rest.CopyConfig(server.config)
	config.Impersonate.UserName = h.as
	config.Wrap(h.wire.wrap)
	ctx, cancel := context.WithCancel(context.Background())
	fetcher, err := chart.NewFetcher(chart.FetcherOptions{CacheDir: cacheDir, AllowLoopback: []string{h.registry.Host, h.slow}})
	h.must(err)
	pool, err := worker.NewPool(worker.Options{})
	h.must(err)
	counted := &counting{Worker: pool, Fetcher: fetcher}
	h.counting = counted
	logger := telemetry.NewLog(h.log, false)
	var tracing *telemetry.Tracing
	if h.collector != "" {
		tracing, err = telemetry.NewTracing(ctx, telemetry.TracingOptions{Endpoint: h.collector, Service: "zae-operator", Log: logger})
		h.must(err)
	}
	h.metrics = prometheus.NewRegistry()
	told, err := telemetry.NewOperator(telemetry.OperatorOptions{Registerer: h.metrics, Tracing: tracing, Chart: fetcher.Stats, Worker: pool.Stats})
	h.must(err)
	done := make(chan error, 1)
	go func() {
		done <- operator.Run(ctx, operator.Options{
			Config: config, Namespaces: []string{h.namespace}, Fetcher: counted, Worker: counted,
			MetricsAddr: "0", ProbeAddr: "0", Now: h.clock.now,
			Log: logger, Telemetry: told,
			// Two operators in one process would register the same controller names.
			AnyName: true,
		})
	}()
	var once sync.Once
	return func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				h.Error(err)
			}
			tracing.Close()
			if err := pool.Close(); err != nil {
				h.Error(err)
			}
			if err := fetcher.Close(); err != nil {
				h.Error(err)
			}
		})
	}
}

func (h *house) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func (h *house) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: h.namespace, Name: name}
}

// addon is a resource that asks for a chart.
func (h *house) addon(name, chart, version string) *v1alpha1.ZaentrumAddon {
	return &v1alpha1.ZaentrumAddon{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: name},
		Spec: v1alpha1.ZaentrumAddonSpec{
			Chart: v1alpha1.ChartSource{Ref: "oci://" + h.registry.Host + "/charts/" + chart, Version: version},
		},
	}
}

// example is the example addon with its values Secret, which is created.
func (h *house) example() *v1alpha1.ZaentrumAddon {
	h.Helper()
	h.secret("zaentrum-addon-example-values-a", "example", map[string]string{"database.url": canary})
	a := h.addon("example", "example", "1.2.0")
	a.Spec.Values = &runtime.RawExtension{Raw: []byte(`{"worker":{"replicas":2}}`)}
	a.Spec.ValuesFrom = []v1alpha1.ValuesSource{h.from("zaentrum-addon-example-values-a")}
	return a
}

func (h *house) from(secret string) v1alpha1.ValuesSource {
	return v1alpha1.ValuesSource{Kind: v1alpha1.ValuesFromSecret, Name: secret, ValuesKey: "database.url", TargetPath: "database.url"}
}

func (h *house) secret(name, addon string, text map[string]string) *corev1.Secret {
	h.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: name}, StringData: text}
	if addon != "" {
		s.Labels = map[string]string{v1alpha1.LabelAddon: addon}
	}
	h.must(h.Create(h.Context(), s))
	return s
}

// create makes the resource and waits for its first phase.
func (h *house) create(a *v1alpha1.ZaentrumAddon, phase v1alpha1.Phase) *v1alpha1.ZaentrumAddon {
	h.Helper()
	h.must(h.Create(h.Context(), a))
	return h.phase(a.Name, phase)
}

// change updates the resource, whatever else happens to it.
func (h *house) change(name string, change func(*v1alpha1.ZaentrumAddon)) {
	h.Helper()
	a := &v1alpha1.ZaentrumAddon{}
	h.must(h.Get(h.Context(), h.key(name), a))
	before := a.DeepCopy()
	change(a)
	h.must(h.Patch(h.Context(), a, client.MergeFrom(before)))
}

// phase waits until the resource's current generation is in a phase.
func (h *house) phase(name string, phase v1alpha1.Phase) *v1alpha1.ZaentrumAddon {
	h.Helper()
	a := &v1alpha1.ZaentrumAddon{}
	h.eventually(func() string {
		h.must(h.Get(h.Context(), h.key(name), a))
		if a.Status.Phase == phase && a.Status.ObservedGeneration == a.Generation {
			return ""
		}
		return fmt.Sprintf("%s is %q at generation %d of %d, not %s: %s", name, a.Status.Phase, a.Status.ObservedGeneration, a.Generation, phase, a.Status.Message)
	})
	return a
}

// says waits until the resource is in a phase, with a message that has this in it.
func (h *house) says(name string, phase v1alpha1.Phase, text string) {
	h.Helper()
	h.eventually(func() string {
		a := &v1alpha1.ZaentrumAddon{}
		h.must(h.Get(h.Context(), h.key(name), a))
		if a.Status.Phase == phase && strings.Contains(a.Status.Message, text) {
			return ""
		}
		return fmt.Sprintf("%s is %s, not %s about %q: %s", name, a.Status.Phase, phase, text, a.Status.Message)
	})
}

// eventually waits until look has nothing to say.
func (h *house) eventually(look func() string) {
	h.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		problem := look()
		if problem == "" {
			return
		}
		if time.Now().After(deadline) {
			h.Fatal(problem)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// collect plays the garbage collector, which does not run here, until the test ends: what an addon owned that is gone
// is deleted, also when the operator, whose caches lag, puts it back once more.
func (h *house) collect(former types.UID, objects ...client.Object) {
	h.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	h.Cleanup(func() { stop(); <-done })
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			for _, o := range objects {
				o = o.DeepCopyObject().(client.Object)
				if err := h.Get(ctx, h.key(o.GetName()), o); err != nil {
					continue // not there, or the test has ended
				}
				for _, owner := range o.GetOwnerReferences() {
					if owner.UID == former {
						_ = h.Delete(ctx, o, client.Preconditions{UID: new(o.GetUID())}, client.PropagationPolicy(metav1.DeletePropagationBackground)) // again at the next turn
					}
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
}

// exists tells whether there is an object that is not on its way out.
func (h *house) exists(o client.Object, name string) bool {
	h.Helper()
	err := h.Get(h.Context(), h.key(name), o)
	if apierrors.IsNotFound(err) {
		return false
	}
	h.must(err)
	return o.GetDeletionTimestamp() == nil
}

// noCanary searches logs, resources and events.
func (h *house) noCanary() {
	h.Helper()
	texts := []string{h.log.String()}
	var addons v1alpha1.ZaentrumAddonList
	var events corev1.EventList
	for _, list := range []client.ObjectList{&addons, &events} {
		if err := h.List(context.Background(), list, client.InNamespace(h.namespace)); err != nil {
			h.Error(err)
		}
	}
	for i := range addons.Items {
		texts = append(texts, fmt.Sprintf("%+v", addons.Items[i]))
	}
	for i := range events.Items {
		texts = append(texts, fmt.Sprintf("%+v", events.Items[i]))
	}
	for _, text := range texts {
		if at := strings.Index(text, canary); at >= 0 {
			h.Errorf("the secret value shows: …%s…", text[max(0, at-80):at+len(canary)])
		}
	}
}
