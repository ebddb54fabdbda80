package portal_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/portal"
	"zaentrum.io/zae/internal/registry"
)

func keyed(key string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Idempotency-Key", key) }
}

const createExample = `{"chart":"` + exampleRef + `","version":"1.2.0","secretValues":{"database.url":"` + canary + `"}}`

func TestAKeyMakesOneWrite(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.do(http.MethodPost, apitype.PathAddonCharts, createExample, keyed("one"))
	if first.status != http.StatusAccepted || first.header.Get("Idempotent-Replayed") != "" {
		t.Fatalf("got %s", first)
	}
	state := b.state()
	b.wire.take()
	for name, body := range map[string]string{
		"the same":                       createExample,
		"the same, written differently":  strings.ReplaceAll(createExample, ",", " , "),
		"the same but for secret values": strings.ReplaceAll(createExample, canary, canary+" of another kind"),
	} {
		again := b.do(http.MethodPost, apitype.PathAddonCharts, body, keyed("one"))
		if again.String() != first.String() || again.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: got %s, first %s", name, again, first)
		}
	}
	for name, request := range map[string][3]string{
		"another version": {http.MethodPost, apitype.PathAddonCharts, strings.Replace(createExample, "1.2.0", "1.3.0", 1)},
		"other values":    {http.MethodPost, apitype.PathAddonCharts, strings.Replace(createExample, `"secret`, `"values":{"a":1},"secret`, 1)},
		"another secret":  {http.MethodPost, apitype.PathAddonCharts, strings.Replace(createExample, "database.url", "database.uri", 1)},
		"another call":    {http.MethodPatch, chartPath("example"), `{"version":"1.2.0"}`},
	} {
		p := b.problem(b.do(request[0], request[1], request[2], keyed("one")), http.StatusUnprocessableEntity, "key-reused")
		if p.Hint == "" {
			t.Errorf("%s: no hint", name)
		}
	}
	if writes := b.wire.take(); len(writes) > 0 || b.state() != state {
		t.Errorf("requests with the same key wrote %v", writes)
	}
	// Another key, and another caller's same key, are other requests.
	other := b.issuer.token(map[string]any{"sub": "somebody else"})
	for _, edit := range [][]func(*http.Request){
		{keyed("two")}, {keyed("one"), func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+other) }},
	} {
		if r := b.do(http.MethodPost, apitype.PathAddonCharts, createExample, edit...); r.status != http.StatusAccepted || r.header.Get("Idempotent-Replayed") != "" {
			t.Errorf("got %s", r)
		}
	}
	if n := len(b.secrets()); n != 3 {
		t.Errorf("%d Secrets, want 3", n)
	}
}

func TestKeysThatAreNone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, keys := range map[string][]string{
		"empty": {""}, "long": {strings.Repeat("k", 256)}, "two": {"a", "b"}, "odd": {"ä"},
	} {
		t.Run(name, func(t *testing.T) {
			b := *b
			b.t = t
			b.refused(http.MethodPost, apitype.PathAddonCharts, createExample, http.StatusBadRequest, "malformed",
				func(r *http.Request) { r.Header["Idempotency-Key"] = keys })
		})
	}
}

func TestARefusedRequestMayBePutRightUnderItsKey(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.refused(http.MethodPost, apitype.PathAddonCharts, `{"chart":"nonsense"}`, http.StatusBadRequest, "invalid", keyed("one"))
	if r := b.do(http.MethodPost, apitype.PathAddonCharts, createExample, keyed("one")); r.status != http.StatusAccepted {
		t.Errorf("got %s", r)
	}
}

// TestARetryAfterALostAnswerWritesOnce loses the answer of the API server to each write in turn.
func TestARetryAfterALostAnswerWritesOnce(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*http.Request) bool{
		"of the Secret":   func(r *http.Request) bool { return isWrite(r) && strings.HasSuffix(r.URL.Path, "/secrets") },
		"of the resource": func(r *http.Request) bool { return isWrite(r) && strings.Contains(r.URL.Path, "/zaentrumaddons") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.wire.losing(lose)
			b.problem(b.do(http.MethodPost, apitype.PathAddonCharts, createExample, keyed("one")), http.StatusBadGateway, "cluster-failed")
			b.wire.losing(nil)
			b.problem(b.do(http.MethodPost, apitype.PathAddonCharts, strings.Replace(createExample, "1.2.0", "1.3.0", 1), keyed("one")),
				http.StatusUnprocessableEntity, "key-reused")
			r := b.do(http.MethodPost, apitype.PathAddonCharts, createExample, keyed("one"))
			if r.status != http.StatusAccepted || !strings.Contains(string(r.body), `"generation":1,`) {
				t.Fatalf("got %s", r)
			}
			secrets, a := b.secrets(), b.addon("example")
			if len(secrets) != 1 || len(a.Spec.ValuesFrom) != 1 || a.Spec.ValuesFrom[0].Name != secrets[0].Name {
				t.Errorf("%d Secrets, and the addon reads %v", len(secrets), a.Spec.ValuesFrom)
			}
			if a.Generation != 1 {
				t.Errorf("generation %d", a.Generation)
			}
		})
	}
}

func TestARetryOfAnInstallThatHappened(t *testing.T) {
	t.Parallel()
	b := suspended(t)
	install := chartPath("example") + "/install"
	edits := []func(*http.Request){keyed("one"), ifMatch(b.readPlan())}
	b.wire.losing(isWrite)
	b.problem(b.do(http.MethodPost, install, nil, edits...), http.StatusBadGateway, "cluster-failed")
	b.wire.losing(nil)
	b.wire.take()
	r := b.do(http.MethodPost, install, nil, edits...)
	if r.status != http.StatusAccepted || !strings.Contains(string(r.body), `"generation":2,`) {
		t.Errorf("got %s", r)
	}
	if writes := b.wire.take(); len(writes) > 0 {
		t.Errorf("installed again: %v", writes)
	}
	// Who changes the addon then makes it another one's.
	b.do(http.MethodPatch, chartPath("example"), `{"suspend":true}`)
	if _, there := b.addon("example").Annotations[v1alpha1.AnnotationRequest]; there {
		t.Error("the request's name stays on the resource after another write")
	}
}

// TestAKeyHoldsOnEveryReplica has two replicas on one registry, the second after the first has been killed.
func TestAKeyHoldsOnEveryReplica(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "registry.db")
	shared := func(o *portal.Options) {
		store, err := registry.Open(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		o.Registry = store
	}
	a := newBench(t, shared)
	second := a.replica(shared)
	later := a.replica(shared, func(o *portal.Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Minute) }
	})
	stuck, release := make(chan struct{}), make(chan struct{})
	var held atomic.Bool
	a.wire.intercept(func(r *http.Request) *http.Response {
		if !isWrite(r) || !strings.HasSuffix(r.URL.Path, "/zaentrumaddons") || held.Swap(true) {
			return nil // the replicas share the connection
		}
		close(stuck)
		<-release
		return failure(http.StatusInternalServerError, metav1.StatusReasonInternalError)
	})
	var waiting sync.WaitGroup
	var first reply
	waiting.Go(func() { first = a.do(http.MethodPost, apitype.PathAddonCharts, createExample, keyed("one")) })
	<-stuck // the Secret is made, the resource is not
	r := second.do(http.MethodPost, apitype.PathAddonCharts, createExample, keyed("one"))
	second.problem(r, http.StatusConflict, "in-flight")
	if r.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	won := later.do(http.MethodPost, apitype.PathAddonCharts, createExample, keyed("one"))
	if won.status != http.StatusAccepted {
		t.Fatalf("got %s", won)
	}
	close(release)
	waiting.Wait()
	if first.status != http.StatusBadGateway {
		t.Errorf("the first got %s", first)
	}
	again := second.do(http.MethodPost, apitype.PathAddonCharts, createExample, keyed("one"))
	if again.String() != won.String() || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("got %s, want %s", again, won)
	}
	secrets, addon := a.secrets(), a.addon("example")
	if len(secrets) != 1 || addon.Spec.ValuesFrom[0].Name != secrets[0].Name {
		t.Errorf("%d Secrets, and the addon reads %v", len(secrets), addon.Spec.ValuesFrom)
	}
	tomorrow := a.replica(shared, func(o *portal.Options) {
		o.Now = func() time.Time { return time.Now().Add(25 * time.Hour) }
	})
	tomorrow.token = tomorrow.issuer.token(map[string]any{"exp": time.Now().Add(50 * time.Hour).Unix()})
	r = tomorrow.do(http.MethodPost, apitype.PathAddonCharts, createExample, keyed("one"))
	if r.status != http.StatusAccepted || r.header.Get("Idempotent-Replayed") != "" || len(a.secrets()) != 2 {
		t.Errorf("got %s, %d Secrets", r, len(a.secrets()))
	}
}

func TestManyAtOnceUnderOneKeyMakeOneSecret(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	answers := make([]reply, 8)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() { answers[i] = b.do(http.MethodPost, apitype.PathAddonCharts, createExample, keyed("one")) })
	}
	all.Wait()
	statuses := map[int]int{}
	for _, r := range answers {
		statuses[r.status]++
	}
	if statuses[http.StatusAccepted] == 0 || statuses[http.StatusAccepted]+statuses[http.StatusConflict] != len(answers) {
		t.Errorf("got %v", statuses)
	}
	if n := len(b.secrets()); n != 1 {
		t.Errorf("%d Secrets", n)
	}
}
