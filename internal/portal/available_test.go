package portal_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/portal"
)

// One test, as an API server of its own takes a while: no resource kind, then there is one, then it goes.
func TestAClusterWithoutTheResourceIsUnavailableUntilItHasIt(t *testing.T) {
	t.Parallel()
	needServer(t)
	env := &envtest.Environment{}
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	scheme, err := portal.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	p := newPrimary(t, exampleManifest)
	b := &bench{t: t, namespace: "default", cluster: c, wire: &wire{}}
	b.start(func(o *portal.Options) { o.Client, o.Namespace = c, b.namespace }, resolving(map[string]*primary{"example": p}))
	b.run()

	available := func() apitype.Availability {
		var out apitype.Availability
		b.answer(http.MethodGet, apitype.PathAddonCharts, nil, http.StatusOK, &out)
		return out
	}
	if out := available(); out.Available || !strings.Contains(out.Note, "no ZaentrumAddon resource") {
		t.Errorf("%+v", out)
	}
	body := `{"chart":"` + exampleRef + `:1.2.0","secretValues":{"a":"` + canary + `"}}`
	if p := b.problem(b.do(http.MethodPost, apitype.PathAddonCharts, body), http.StatusServiceUnavailable, "unavailable"); !strings.Contains(p.Note, "no ZaentrumAddon resource") {
		t.Errorf("note %q", p.Note)
	}
	var secrets corev1.SecretList
	b.must(c.List(t.Context(), &secrets, client.InNamespace(b.namespace)))
	if len(secrets.Items) != 0 {
		t.Errorf("%d Secrets", len(secrets.Items))
	}

	crds, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{filepath.Join("..", "..", "deploy", "crds")}})
	b.must(err)
	b.eventually("it recovers by itself", func() error {
		if out := available(); !out.Available {
			return fmt.Errorf("%+v", out)
		}
		return nil
	})
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
	b.operate("example", running)
	deadline, cancel := context.WithTimeout(t.Context(), time.Minute) // the watch backs off while there is nothing to watch
	defer cancel()
	for {
		var got apitype.AddonChart
		b.answer(http.MethodGet, chartPath("example"), nil, http.StatusOK, &got)
		if got.Registered {
			break
		}
		if deadline.Err() != nil {
			t.Fatalf("never registered: %+v\n%s", got, b.log)
		}
		time.Sleep(100 * time.Millisecond)
	}

	b.must(envtest.UninstallCRDs(config, envtest.CRDInstallOptions{CRDs: crds}))
	b.eventually("it is unavailable again", func() error {
		r := b.do(http.MethodGet, chartPath("example"), nil)
		if r.status != http.StatusServiceUnavailable {
			return fmt.Errorf("got %s", r)
		}
		return nil
	})
	b.eventually("an addon without a resource is unregistered", func() error {
		if addon, err := b.registry.Addon(t.Context(), "example"); addon != nil || err != nil {
			return fmt.Errorf("%+v, %w", addon, err)
		}
		return nil
	})
}
