package operator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apply"
	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/charttest"
	"zaentrum.io/zae/internal/operator"
	"zaentrum.io/zae/internal/telemetry"
	"zaentrum.io/zae/internal/worker"
)

// granted is one right of a shipped role.
type granted struct{ verb, resource string }

func (g granted) String() string { return g.verb + " " + g.resource }

// inFile are the objects of one kind in a file of deploy/.
func inFile[T any](t *testing.T, file, kind string) []T {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", file))
	if err != nil {
		t.Fatal(err)
	}
	var out []T
	for doc := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var head metav1.TypeMeta
		if err := yaml.Unmarshal(doc, &head); err != nil {
			t.Fatal(err)
		}
		if head.Kind != kind {
			continue
		}
		var object T
		if err := yaml.UnmarshalStrict(doc, &object); err != nil {
			t.Fatal(err)
		}
		out = append(out, object)
	}
	if len(out) == 0 {
		t.Fatalf("%s has no %s", file, kind)
	}
	return out
}

// rightsOf are the single rights of rules, in their order.
func rightsOf(rules []rbacv1.PolicyRule) []granted {
	var out []granted
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					out = append(out, granted{verb, apply.ResourceName(group, resource)})
				}
			}
		}
	}
	return out
}

// without are the rules less one right.
func without(rules []rbacv1.PolicyRule, less granted) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				one := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: rule.ResourceNames}
				for _, verb := range rule.Verbs {
					if (granted{verb, apply.ResourceName(group, resource)}) != less {
						one.Verbs = append(one.Verbs, verb)
					}
				}
				if len(one.Verbs) > 0 {
					out = append(out, one)
				}
			}
		}
	}
	return out
}

// serviceAccount makes a service account, and answers with how it reaches the API server.
func (c *crew) serviceAccount(h *house) *rest.Config {
	h.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "zae-operator"}}
	h.must(h.Create(h.Context(), account))
	token := &authenticationv1.TokenRequest{}
	h.must(h.SubResource("token").Create(h.Context(), account, token))
	config := rest.AnonymousClientConfig(c.config)
	config.BearerToken = token.Status.Token
	return config
}

// requests is a transport that keeps what was asked, and which rights the API server said were missing. What is
// asked about rights themselves it leaves out.
type requests struct {
	next http.RoundTripper
	// lists: the API server is one that does not stream lists into watches, as before Kubernetes 1.32.
	lists bool

	mu     sync.Mutex
	asked  []string // "GET /api/v1/…?…"
	denied []apply.Right
}

func (r *requests) RoundTrip(req *http.Request) (*http.Response, error) {
	if r.lists && req.URL.Query().Has("sendInitialEvents") {
		return noStream(req), nil
	}
	resp, err := r.next.RoundTrip(req)
	if err != nil || strings.HasSuffix(req.URL.Path, "/selfsubjectaccessreviews") {
		return resp, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, req.Method+" "+req.URL.RequestURI())
	if resp.StatusCode != http.StatusForbidden {
		return resp, nil
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if answer, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil); err == nil {
		if status, ok := answer.(*metav1.Status); ok {
			if right, ok := apply.Denied(apierrors.FromObject(status)); ok {
				r.denied = append(r.denied, right)
			}
		}
	}
	return resp, nil
}

// all are the requests so far, and whether any was denied.
func (r *requests) all() (asked []string, denied bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.asked), len(r.denied) > 0
}

// noStream is how an API server answers that knows no such option of a watch.
func noStream(req *http.Request) *http.Response {
	status := apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", field.ErrorList{
		field.Forbidden(field.NewPath("sendInitialEvents"), "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"),
	}).Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	body, err := json.Marshal(status)
	if err != nil {
		panic(err)
	}
	return &http.Response{
		StatusCode: http.StatusUnprocessableEntity, Request: req, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": []string{"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
	}
}

// wasDenied tells whether a request, and not only a question, was answered with this right missing.
func (r *requests) wasDenied(g granted) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.denied, func(right apply.Right) bool {
		return right.Verb == g.verb && (right.Resource == g.resource ||
			right.Resource == apply.OwnerFinalizers && strings.HasSuffix(g.resource, "/finalizers"))
	})
}

// limited is an operator with the rights of a role, in a namespace of its own.
type limited struct {
	*house
	requests *requests
	probes   string // address
}

// crew is what operators of this test share.
type crew struct {
	config   *rest.Config // of a cluster's admin
	registry *charttest.Registry
	fetcher  *chart.Fetcher
	pool     *worker.Pool
}

func newCrew(t *testing.T, config *rest.Config) *crew {
	t.Helper()
	c := &crew{config: config, registry: charttest.Serve(t)}
	for _, dir := range []string{"example/1.2.0", "tiny"} {
		c.registry.Push(filepath.Join("..", "..", "examples", dir))
	}
	var err error
	if c.fetcher, err = chart.NewFetcher(chart.FetcherOptions{CacheDir: t.TempDir(), AllowLoopback: []string{c.registry.Host}}); err != nil {
		t.Fatal(err)
	}
	if c.pool, err = worker.NewPool(worker.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.pool.Close(); err != nil {
			t.Error(err)
		}
		if err := c.fetcher.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// house makes a namespace with a platform.
func (c *crew) house(t *testing.T) *house {
	t.Helper()
	admin, err := client.New(c.config, client.Options{Scheme: operator.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	h := &house{T: t, Client: admin, registry: c.registry, log: &lockedBuffer{}, clock: &clock{}}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "rights-"}}
	h.must(admin.Create(t.Context(), ns))
	h.namespace = ns.Name
	h.must(admin.Create(t.Context(), h.platform("platform")))
	return h
}

// operate runs an operator until the test ends, and answers with what it asks and where its probes are.
func (c *crew) operate(h *house, config *rest.Config, lists bool, o operator.Options) *limited {
	h.Helper()
	l := &limited{house: h, requests: &requests{lists: lists}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		l.requests.mu.Lock()
		defer l.requests.mu.Unlock()
		l.requests.next = next
		return l.requests
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	h.must(err)
	l.probes = listener.Addr().String()
	h.must(listener.Close())
	o.Config, o.Fetcher, o.Worker = config, c.fetcher, c.pool
	o.MetricsAddr, o.ProbeAddr, o.AnyName, o.Now = "0", l.probes, true, h.clock.now
	o.Log = slog.New(slog.NewJSONHandler(h.log, nil))
	h.metrics = prometheus.NewRegistry()
	o.Telemetry, err = telemetry.NewOperator(telemetry.OperatorOptions{Registerer: h.metrics})
	h.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- operator.Run(ctx, o) }()
	h.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			h.Error(err)
		}
		h.noCanary()
		if h.Failed() {
			h.Log(h.log.String())
		}
	})
	return l
}

// grant has a namespace's role hold these rules.
func (h *house) grant(rules []rbacv1.PolicyRule) {
	h.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "zae-operator"}, Rules: rules}
	err := h.Create(h.Context(), role)
	if apierrors.IsAlreadyExists(err) {
		err = h.Update(h.Context(), role)
	}
	h.must(err)
}

// ready is what /readyz says, and whether that is that all is well.
func (l *limited) ready() (string, bool) {
	resp, err := http.Get("http://" + l.probes + "/readyz") //nolint:noctx // a test's own server
	if err != nil {
		return err.Error(), false
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	l.must(err)
	return string(body), resp.StatusCode == http.StatusOK
}

// logged tells whether the log says that a right is lacking.
func (h *house) logged(right string) bool {
	for line := range strings.Lines(h.log.String()) {
		var entry struct{ Msg, Right string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "the operator lacks a right" && entry.Right == right {
			return true
		}
	}
	return false
}

// condition is what the condition Planned of an addon says when a right is lacking.
func (h *house) condition(name string) string {
	h.Helper()
	a := &v1alpha1.ZaentrumAddon{}
	if err := h.Get(h.Context(), h.key(name), a); apierrors.IsNotFound(err) {
		return ""
	} else if err != nil {
		h.Fatal(err)
	}
	c := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionPlanned)
	if c == nil || c.Reason != "RightsLacking" || c.Status != metav1.ConditionFalse || a.Status.Message != c.Message {
		return ""
	}
	return c.Message
}

// event is what an event of the namespace says when a right is lacking.
func (h *house) event() string {
	h.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("events.k8s.io/v1")
	list.SetKind("EventList")
	h.must(h.List(h.Context(), list, client.InNamespace(h.namespace)))
	for _, e := range list.Items {
		if reason, _, _ := unstructured.NestedString(e.Object, "reason"); reason == "RightsLacking" {
			note, _, _ := unstructured.NestedString(e.Object, "note")
			return note
		}
	}
	return ""
}

// leads tells whether there is a Lease in the namespace that somebody holds.
func (h *house) leads() bool {
	h.Helper()
	lease := &coordinationv1.Lease{}
	err := h.Get(h.Context(), h.key(operator.LeaderElectionID), lease)
	if apierrors.IsNotFound(err) {
		return false
	}
	h.must(err)
	return ptr.Deref(lease.Spec.HolderIdentity, "") != ""
}

// waitOrTold waits until something is done, or it was told why not.
func (h *house) waitOrTold(what string, told func() bool, done func() bool) bool {
	h.Helper()
	deadline := time.Now().Add(40 * time.Second)
	for {
		if told() {
			return true
		}
		if done() {
			return told()
		}
		if time.Now().After(deadline) {
			a := &v1alpha1.ZaentrumAddon{}
			err := h.Get(h.Context(), h.key("example"), a)
			h.Fatalf("%s: neither done nor told: %v %s: %s", what, err, a.Status.Phase, a.Status.Message)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
