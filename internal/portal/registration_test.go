package portal_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/portal"
	"zaentrum.io/zae/internal/registry"
	"zaentrum.io/zae/internal/registry/capability"
)

// primary is the server behind an addon's primary Service.
type primary struct {
	server *httptest.Server
	mu     sync.Mutex
	answer http.HandlerFunc
	hosts  map[string]bool
	reads  int
}

func newPrimary(t *testing.T, manifest string) *primary {
	t.Helper()
	p := &primary{hosts: map[string]bool{}}
	p.serve(manifest)
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		answer := p.answer
		p.hosts[r.Host] = true
		p.reads++
		p.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(p.server.Close)
	return p
}

func (p *primary) address() string { return strings.TrimPrefix(p.server.URL, "http://") }

// serve makes the primary answer a manifest.
func (p *primary) serve(manifest string) {
	p.serveWith(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != capability.WellKnownPath || r.Method != http.MethodGet || r.Header.Get("Authorization") != "" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		_, _ = w.Write([]byte(manifest))
	})
}

func (p *primary) serveWith(answer http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = answer
}

func (p *primary) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reads
}

// resolving makes portal-api reach primaries by name, and retry at once.
func resolving(primaries map[string]*primary) func(*portal.Options) {
	return func(o *portal.Options) {
		o.Resolve = map[string]string{}
		for name, p := range primaries {
			o.Resolve[name] = p.address()
		}
		o.RetryInterval = 20 * time.Millisecond
		o.RefreshInterval = time.Hour
	}
}

// shows waits until the API says this about an addon.
func (b *bench) shows(name string, registered bool, message string) {
	b.t.Helper()
	b.eventually("registration of "+name, func() error {
		var got apitype.AddonChart
		b.answer(http.MethodGet, chartPath(name), nil, http.StatusOK, &got)
		if got.Registered != registered || (message == "") != (got.RegistrationError == "") || !strings.Contains(got.RegistrationError, message) {
			return fmt.Errorf("registered %t: %q", got.Registered, got.RegistrationError)
		}
		return nil
	})
}

const exampleManifest = `{"service":"example","kind":"addon","version":"1","ui":{"console":true,"app":{"title":"Example"}}}`

func TestAReadyAddonIsRegisteredAgainWhenItChangesAndUnregisteredWhenItIsGone(t *testing.T) {
	t.Parallel()
	p := newPrimary(t, exampleManifest)
	b := newBench(t, resolving(map[string]*primary{"example": p}))
	stop := b.run()
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
	b.operate("example", func(a *v1alpha1.ZaentrumAddon) { planned(a); a.Status.Phase = v1alpha1.PhaseInstalling })
	b.operate("example", running)
	b.shows("example", true, "")
	addon, err := b.registry.Addon(t.Context(), "example")
	b.must(err)
	want := &registry.Addon{
		Key: "example", Source: registry.SourceChart, Chart: registry.Chart{Ref: exampleRef, Version: "1.2.0", Digest: digestA},
		Title: "Example", Version: "1", Manifest: []byte(`{"service":"example","kind":"addon","version":"1","ui":{"app":{"title":"Example"},"console":true}}`),
		Components: []capability.Component{{Name: "example", Workload: "example", Role: "primary"}}, RegisteredAt: addon.RegisteredAt,
	}
	if diff := cmp.Diff(want, addon); diff != "" {
		t.Error(diff)
	}
	apps, err := b.registry.Apps(t.Context())
	b.must(err)
	if len(apps) != 1 || apps[0].ProxyURL != "http://example" || apps[0].BaseURL != "/portal/app/example" || apps[0].Addon != "example" {
		t.Errorf("apps %+v", apps)
	}
	if !p.hosts["example"] || len(p.hosts) != 1 {
		t.Errorf("asked as %v", p.hosts)
	}

	// A status that says nothing new is not worth a request; one that does is.
	reads := p.count()
	b.operate("example", func(a *v1alpha1.ZaentrumAddon) { a.Status.Components[0].Desired = 2 })
	b.eventually("the manifest is read again", func() error {
		if p.count() == reads {
			return errors.New("not yet")
		}
		return nil
	})

	// Suspended for an upgrade, and not well for a moment: still registered, as it was.
	p.serve(`{"service":"example","version":"2"}`)
	for _, phase := range []v1alpha1.Phase{v1alpha1.PhasePlanned, v1alpha1.PhaseDegraded, v1alpha1.PhaseInstalling, v1alpha1.PhaseFailed} {
		b.operate("example", func(a *v1alpha1.ZaentrumAddon) { a.Status.Phase = phase })
	}
	time.Sleep(300 * time.Millisecond)
	if addon, err = b.registry.Addon(t.Context(), "example"); err != nil || addon == nil || addon.Version != "1" {
		t.Errorf("%+v, %v", addon, err)
	}

	// Ready, while the plan is of another chart than the one that runs: its annotations may name another primary.
	b.operate("example", func(a *v1alpha1.ZaentrumAddon) { running(a); a.Status.Plan.Chart.Digest = digestB })
	time.Sleep(300 * time.Millisecond)
	if addon, err = b.registry.Addon(t.Context(), "example"); err != nil || addon == nil || addon.Version != "1" {
		t.Errorf("%+v, %v", addon, err)
	}

	// Upgraded.
	b.operate("example", func(a *v1alpha1.ZaentrumAddon) {
		running(a)
		a.Status.Plan.Chart.Digest, a.Status.LastAppliedChart.Digest = digestB, digestB
	})
	b.eventually("the new version is registered", func() error {
		addon, err := b.registry.Addon(t.Context(), "example")
		if err != nil || addon == nil || addon.Version != "2" || addon.Chart.Digest != digestB {
			return fmt.Errorf("%+v, %w", addon, err)
		}
		return nil
	})

	b.must(b.cluster.Delete(t.Context(), b.addon("example")))
	b.eventually("it is unregistered", func() error {
		if addon, err := b.registry.Addon(t.Context(), "example"); addon != nil || err != nil {
			return fmt.Errorf("%+v, %w", addon, err)
		}
		return nil
	})
	stop()
}

func TestAnAddonThatWentWhileNobodyWatchedIsUnregistered(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, source := range map[string]registry.Source{"gone": registry.SourceChart, "byaddress": registry.SourceAddress} {
		b.must(b.registry.Register(t.Context(), registry.Registration{
			Source: source, Manifest: &capability.Manifest{Service: name}, Place: capability.Place{ProxyURL: "http://" + name, Workload: name},
		}))
	}
	b.must(b.registry.Fail(t.Context(), "never-was", "unreachable", time.Now()))
	b.run()
	b.eventually("what is gone is unregistered", func() error {
		all, err := b.registry.Addons(t.Context())
		failures, err2 := b.registry.Failures(t.Context())
		if err != nil || err2 != nil || len(all) != 1 || all[0].Key != "byaddress" || len(failures) != 0 {
			return fmt.Errorf("%v, %v", all, failures)
		}
		return nil
	})
}

func TestARefusedRegistrationSaysWhyAndTheRestGoesOn(t *testing.T) {
	t.Parallel()
	elsewhere := newPrimary(t, exampleManifest)
	for name, tc := range map[string]struct {
		answer  http.HandlerFunc
		before  func(b *bench)
		operate func(*v1alpha1.ZaentrumAddon)
		want    string
	}{
		"another service": {answer: text(`{"service":"other"}`), want: "service is other"},
		"no manifest":     {answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }, want: "answers 404"},
		"no JSON":         {answer: text("<html>" + canary), want: "not JSON"},
		"too large":       {answer: text(`{"service":"example","version":"` + strings.Repeat("x", 256<<10) + `"}`), want: "larger than 256 KiB"},
		"an invalid field": {
			answer: text(`{"service":"example","ui":{"tiles":[{"key":"a","target":"https://` + canary + `"}]}}`), want: "ui.tiles[0].target",
		},
		"sent elsewhere": {answer: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+elsewhere.address()+capability.WellKnownPath, http.StatusFound)
		}, want: "redirects elsewhere"},
		"sent round in circles": {answer: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/again", http.StatusFound)
		}, want: "redirects elsewhere"},
		"no answer in time": {answer: func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		}, want: "did not answer in time"},
		"a platform service as workload": {
			answer: text(`{"service":"example","components":[{"name":"a","workload":"kafka","role":"primary"}]}`), want: "kafka is a platform service",
		},
		"another addon's workload, declared": {
			answer: text(`{"service":"example","components":[{"name":"a","workload":"other-web","role":"primary"}]}`),
			before: func(b *bench) {
				b.must(b.registry.Register(b.t.Context(), registry.Registration{
					Source: registry.SourceAddress, Manifest: &capability.Manifest{Service: "other"}, Place: capability.Place{ProxyURL: "http://other-web", Workload: "other-web"},
				}))
			},
			want: "other-web belongs to addon other",
		},
		"another addon's workload, applied": {
			answer: text(`{"service":"example","components":[{"name":"a","workload":"neighbour","role":"primary"}]}`),
			before: func(b *bench) {
				b.commit("neighbour", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
				b.operate("neighbour", func(a *v1alpha1.ZaentrumAddon) {
					planned(a)
					a.Status.Components = []v1alpha1.Component{{Name: "neighbour", Kind: "Deployment"}}
				})
			},
			want: "neighbour belongs to addon neighbour",
		},
		"a name that is an address addon's": {
			answer: text(exampleManifest),
			before: func(b *bench) {
				b.must(b.registry.Register(b.t.Context(), registry.Registration{
					Source: registry.SourceAddress, Manifest: &capability.Manifest{Service: "example"}, Place: capability.Place{ProxyURL: "http://elsewhere", Workload: "elsewhere"},
				}))
			},
			want: "belongs to an addon installed from an address",
		},
		"a primary that is the platform's": {
			operate: func(a *v1alpha1.ZaentrumAddon) {
				running(a)
				a.Status.Plan.Chart.Annotations[v1alpha1.ChartAnnotationPrimary] = "portal-api"
			},
			want: "portal-api is a platform service",
		},
		"a primary that is no name": {
			operate: func(a *v1alpha1.ZaentrumAddon) {
				running(a)
				a.Status.Plan.Chart.Annotations[v1alpha1.ChartAnnotationPrimary] = "169.254.169.254"
			},
			want: "names no Service",
		},
		"a primary that nobody knows": {
			operate: func(a *v1alpha1.ZaentrumAddon) {
				running(a)
				a.Status.Plan.Chart.Annotations[v1alpha1.ChartAnnotationPrimary] = "no-such-service-anywhere"
			},
			want: "http://no-such-service-anywhere",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPrimary(t, exampleManifest)
			if tc.answer != nil {
				p.serveWith(tc.answer)
			}
			b := newBench(t, resolving(map[string]*primary{"example": p}))
			if tc.before != nil {
				tc.before(b)
			}
			b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
			operate := tc.operate
			if operate == nil {
				operate = running
			}
			b.operate("example", operate)
			b.run()
			b.shows("example", false, tc.want)
			if strings.Contains(name, "sent elsewhere") && elsewhere.count() != 0 {
				t.Error("it went there")
			}
			if tc.before != nil || tc.operate != nil {
				return
			}
			// It is tried again by itself, and the error goes with success.
			p.serve(exampleManifest)
			b.shows("example", true, "")
		})
	}
}

// text answers a text.
func text(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }
}

func TestAFailedRefreshKeepsTheRows(t *testing.T) {
	t.Parallel()
	p := newPrimary(t, exampleManifest)
	b := newBench(t, resolving(map[string]*primary{"example": p}), func(o *portal.Options) { o.RefreshInterval = 50 * time.Millisecond })
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
	b.operate("example", running)
	b.run()
	b.shows("example", true, "")
	p.serve(`{"service":"other"}`)
	b.shows("example", true, "service is other")
	p.serve(`{"service":"example","version":"7"}`)
	b.shows("example", true, "")
	b.eventually("the new manifest is registered", func() error {
		if addon, err := b.registry.Addon(t.Context(), "example"); err != nil || addon == nil || addon.Version != "7" {
			return fmt.Errorf("%+v, %w", addon, err)
		}
		return nil
	})
}

func TestASlowAddonDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	slow := newPrimary(t, "")
	slow.serveWith(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	quick := newPrimary(t, `{"service":"quick"}`)
	b := newBench(t, resolving(map[string]*primary{"slow": slow, "quick": quick}))
	for _, name := range []string{"slow", "quick"} {
		b.commit(name, v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
		b.operate(name, running)
	}
	start := time.Now()
	b.run()
	b.shows("quick", true, "")
	if took := time.Since(start); took > 4*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestAnAddonThatIsBeingDeletedIsNotRegisteredAgain(t *testing.T) {
	t.Parallel()
	p := newPrimary(t, exampleManifest)
	b := newBench(t, resolving(map[string]*primary{"example": p}))
	a := b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
	a.Finalizers = []string{"example.org/hold"}
	b.must(b.cluster.Update(t.Context(), a))
	b.operate("example", running)
	b.run()
	b.shows("example", true, "")
	var out apitype.DeleteAnswer
	b.answer(http.MethodDelete, chartPath("example"), nil, http.StatusOK, &out)
	if len(out.Removed) != 3 {
		t.Errorf("removed %v", out.Removed)
	}
	b.operate("example", func(a *v1alpha1.ZaentrumAddon) { a.Status.Message = "on its way out" })
	time.Sleep(300 * time.Millisecond)
	if addon, err := b.registry.Addon(t.Context(), "example"); addon != nil || err != nil {
		t.Errorf("%+v, %v", addon, err)
	}
}

func TestTheListHasChartAddonsNextToThoseFromAnAddress(t *testing.T) {
	t.Parallel()
	p := newPrimary(t, `{"service":"zeta","ui":{"app":{"title":"Zeta"}}}`)
	b := newBench(t, resolving(map[string]*primary{"zeta": p}))
	b.must(b.registry.Register(t.Context(), registry.Registration{
		Source: registry.SourceAddress, Manifest: &capability.Manifest{Service: "beta"}, Place: capability.Place{ProxyURL: "http://beta", Workload: "beta"},
	}))
	b.commit("zeta", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
	zeta := b.operate("zeta", running)
	b.commit("beta", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
	beta := b.operate("beta", running)
	b.commit("alpha", v1alpha1.ZaentrumAddonSpec{Chart: v1alpha1.ChartSource{Ref: exampleRef, Version: "1.0.0", Digest: digestB}, Suspend: true})
	b.run()
	b.shows("zeta", true, "")
	b.shows("beta", false, "beta")
	var got apitype.Addons
	b.answer(http.MethodGet, apitype.PathAddons, nil, http.StatusOK, &got)
	asked := func(a *v1alpha1.ZaentrumAddon) *apitype.AddonListChart {
		return &apitype.AddonListChart{Ref: exampleRef, Version: "1.2.0", LastApplied: a.Status.LastAppliedChart}
	}
	want := []apitype.Addon{
		{Name: "alpha", Chart: &apitype.AddonListChart{Ref: exampleRef, Version: "1.0.0", Digest: digestB}, Suspended: true, Components: []v1alpha1.Component{}},
		{Name: "beta", Title: "beta", Address: "http://beta", Registered: true, Components: []v1alpha1.Component{}},
		{Name: "beta", Title: "Example", Chart: asked(beta), Phase: v1alpha1.PhaseReady, Components: beta.Status.Components},
		{Name: "zeta", Title: "Zeta", Chart: asked(zeta), Phase: v1alpha1.PhaseReady, Registered: true, Components: zeta.Status.Components},
	}
	for i := range got.Addons {
		if got.Addons[i].Chart != nil && got.Addons[i].Name == "beta" {
			if got.Addons[i].RegistrationError == "" {
				t.Error("no registration error of beta")
			}
			got.Addons[i].RegistrationError = ""
		}
	}
	if diff := cmp.Diff(want, got.Addons); diff != "" {
		t.Error(diff)
	}
}
