package portal_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/portal"
	"zaentrum.io/zae/internal/registry"
	"zaentrum.io/zae/internal/registry/capability"
)

const byAddress = `{"service":"example","version":"3","proxyKey":"ex","ui":{"app":{"title":"Example"},"space":{"key":"own","title":"Own","ord":4},
	"tiles":[{"key":"one","target":"#/one","ord":2}],"slots":[{"key":"row","slot":"player","url":"/go"}]},
	"components":[{"name":"web","workload":"my-addon","role":"primary"},{"name":"worker","workload":"my-worker","role":"optional","summary":"works","topics":["a"]}]}`

func TestAnAddonIsAddedFromItsAddressRefreshedAndRemoved(t *testing.T) {
	t.Parallel()
	p := newPrimary(t, byAddress)
	b := newLoneBench(t, resolving(map[string]*primary{"my-addon": p}))
	before := b.rows()
	var dry, got apitype.AddressAnswer
	b.answer(http.MethodPost, apitype.PathAddons, `{"proxyUrl":"http://my-addon/","dryRun":true}`, http.StatusOK, &dry)
	if b.rows() != before {
		t.Error("the dry run wrote")
	}
	want := apitype.AddressAnswer{
		Name: "example", Address: "http://my-addon", Version: "3", DryRun: true,
		App: apitype.App{Key: "example", Addon: "example", ProxyKey: "ex", BaseURL: "/portal/app/example", Title: "Example"},
		Tiles: []apitype.Tile{{Key: "addon.example.one", App: "example", Title: "Example", Target: "/portal/app/example/#/one",
			Space: &apitype.Space{Key: "own", Title: "Own", Ord: 4}, Ord: 2}},
		Slots: []apitype.Slot{{Key: "example.row", App: "example", Slot: "player", URL: "https://media.example.org/go"}},
		Components: []apitype.PartOfAddress{
			{Name: "web", Workload: "my-addon", Role: "primary"}, {Name: "worker", Workload: "my-worker", Role: "optional", Summary: "works", Topics: []string{"a"}},
		},
	}
	if diff := cmp.Diff(want, dry); diff != "" {
		t.Error(diff)
	}
	b.answer(http.MethodPost, apitype.PathAddons, `{"proxyUrl":"http://my-addon"}`, http.StatusAccepted, &got)
	want.DryRun = false
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	addon, err := b.registry.Addon(t.Context(), "example")
	b.must(err)
	if addon == nil || addon.Source != registry.SourceAddress || addon.Address != "http://my-addon" || addon.Version != "3" {
		t.Fatalf("%+v", addon)
	}
	if !p.hosts["my-addon"] || len(p.hosts) != 1 {
		t.Errorf("asked as %v", p.hosts)
	}
	var list apitype.Addons
	b.answer(http.MethodGet, apitype.PathAddons, nil, http.StatusOK, &list)
	if len(list.Addons) != 1 || list.Addons[0].Address != "http://my-addon" || !list.Addons[0].Registered || list.Addons[0].Chart != nil {
		t.Errorf("%+v", list)
	}

	// The same call reads the manifest again, and replaces.
	p.serve(`{"service":"example","version":"4","ui":{"console":true}}`)
	b.answer(http.MethodPost, apitype.PathAddons, `{"proxyUrl":"http://my-addon","space":"own"}`, http.StatusAccepted, &got)
	if !got.Replaced || got.Version != "4" || len(got.Slots) != 0 || len(got.Tiles) != 1 || got.Tiles[0].Space == nil || got.Tiles[0].Space.Title != "own" {
		t.Errorf("%+v", got)
	}
	if rows := b.rows(); strings.Contains(rows, "addon.example.one") || strings.Contains(rows, "my-worker") || !strings.Contains(rows, "{Key:own Title:own Ord:0}") {
		t.Error(rows)
	}

	var gone apitype.DeleteAnswer
	b.answer(http.MethodDelete, apitype.PathAddons+"/example", nil, http.StatusOK, &gone)
	if diff := cmp.Diff(apitype.DeleteAnswer{Name: "example", Removed: []string{"addon/example", "app/example", "tile/addon.example"}}, gone); diff != "" {
		t.Error(diff)
	}
	if b.rows() != before {
		t.Error("rows are left")
	}
	b.refused(http.MethodDelete, apitype.PathAddons+"/example", nil, http.StatusNotFound, "not-found")
}

func TestAnAddonsTilesGoIntoTheSpaceThatOthersHave(t *testing.T) {
	t.Parallel()
	p := newPrimary(t, `{"service":"example","ui":{"console":true}}`)
	b := newLoneBench(t, resolving(map[string]*primary{"my-addon": p}))
	b.register(`{"service":"other","ui":{"console":true,"space":{"key":"media","title":"Media","ord":7}}}`)
	var got apitype.AddressAnswer
	b.answer(http.MethodPost, apitype.PathAddons, `{"proxyUrl":"http://my-addon","space":"media"}`, http.StatusAccepted, &got)
	if diff := cmp.Diff(&apitype.Space{Key: "media", Title: "Media", Ord: 7}, got.Tiles[0].Space); diff != "" {
		t.Error(diff)
	}
}

func TestAnAddonMovesOnlyWhenThatIsWanted(t *testing.T) {
	t.Parallel()
	p := newPrimary(t, `{"service":"example"}`)
	b := newLoneBench(t, resolving(map[string]*primary{"one": p, "two": p}))
	var got apitype.AddressAnswer
	b.answer(http.MethodPost, apitype.PathAddons, `{"proxyUrl":"http://one"}`, http.StatusAccepted, &got)
	for _, dry := range []string{"false", "true"} {
		problem := b.refused(http.MethodPost, apitype.PathAddons, `{"proxyUrl":"http://two","dryRun":`+dry+`}`, http.StatusConflict, "name-taken")
		if !strings.Contains(problem.Detail, "http://one") || !strings.Contains(problem.Hint, "replaceAddress") {
			t.Errorf("%+v", problem)
		}
	}
	b.answer(http.MethodPost, apitype.PathAddons, `{"proxyUrl":"http://two","replaceAddress":true}`, http.StatusAccepted, &got)
	if addon, err := b.registry.Addon(t.Context(), "example"); err != nil || addon.Address != "http://two" || !got.Replaced {
		t.Errorf("%+v, %v", addon, err)
	}
}

func TestAnAddressIsRefusedAndNothingIsWritten(t *testing.T) {
	t.Parallel()
	elsewhere := newPrimary(t, `{"service":"example"}`)
	serves := func(manifest string) http.HandlerFunc { return text(manifest) }
	for name, tc := range map[string]struct {
		body   string
		answer http.HandlerFunc
		status int
		code   fault.Code
		want   string
	}{
		"no address":            {body: `{}`, status: 400, code: fault.Invalid, want: "proxyUrl: is required"},
		"an unknown field":      {body: `{"proxyURL":"http://my-addon"}`, status: 400, code: fault.Malformed, want: "proxyURL"},
		"no body":               {body: ``, status: 400, code: fault.Malformed, want: "empty"},
		"a dry run as text":     {body: `{"proxyUrl":"http://my-addon","dryRun":"yes"}`, status: 400, code: fault.Malformed, want: "dryRun"},
		"a space that is none":  {body: `{"proxyUrl":"http://my-addon","space":"a b"}`, status: 400, code: fault.Invalid, want: "space"},
		"an IP address":         {body: `{"proxyUrl":"http://169.254.169.254"}`, status: 400, code: fault.Invalid, want: "not an IP address"},
		"an IP as a number":     {body: `{"proxyUrl":"http://2852039166"}`, status: 400, code: fault.Invalid, want: "not an IP address"},
		"a name elsewhere":      {body: `{"proxyUrl":"http://example.org"}`, status: 400, code: fault.Invalid, want: "outside the cluster"},
		"credentials":           {body: `{"proxyUrl":"http://u:` + canary + `@my-addon"}`, status: 400, code: fault.Invalid, want: "credentials"},
		"the API server":        {body: `{"proxyUrl":"http://kubernetes.default.svc:443"}`, status: 400, code: fault.Invalid, want: "the cluster's own"},
		"a platform service":    {body: `{"proxyUrl":"http://kafka:9092"}`, status: 409, code: fault.NameTaken, want: "kafka is a platform service"},
		"portal-api itself":     {body: `{"proxyUrl":"http://PORTAL-API"}`, status: 409, code: fault.NameTaken, want: "portal-api is a platform service"},
		"nobody there":          {body: `{"proxyUrl":"http://no-such-service-anywhere"}`, status: 503, code: fault.AddonDown, want: "http://no-such-service-anywhere"},
		"no manifest":           {answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, status: 503, code: fault.AddonDown, want: "answers 404"},
		"no JSON":               {answer: serves("<html>" + canary), status: 422, code: fault.Manifest, want: "not JSON"},
		"too large":             {answer: serves(`{"service":"example","version":"` + strings.Repeat("x", 256<<10) + `"}`), status: 422, code: fault.Manifest, want: "256 KiB"},
		"an invalid field":      {answer: serves(`{"service":"example","ui":{"tiles":[{"key":"a","target":"//` + canary + `"}]}}`), status: 422, code: fault.Manifest, want: "ui.tiles[0].target"},
		"no answer in time":     {answer: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, status: 503, code: fault.AddonDown, want: "in time"},
		"a platform's workload": {answer: serves(`{"service":"example","components":[{"name":"a","workload":"kafka","role":"primary"}]}`), status: 409, code: fault.NameTaken, want: "workload kafka is a platform service"},
		"a platform's name":     {answer: serves(`{"service":"kafka"}`), status: 409, code: fault.NameTaken, want: "service kafka is a platform service"},
		"a platform's key":      {answer: serves(`{"service":"example","proxyKey":"portal-api"}`), status: 409, code: fault.NameTaken, want: "proxyKey portal-api is a platform service"},
		"sent elsewhere": {answer: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+elsewhere.address()+capability.WellKnownPath, http.StatusFound)
		}, status: 503, code: fault.AddonDown, want: "redirects elsewhere"},
		"another addon's name":     {answer: serves(`{"service":"charted"}`), status: 409, code: fault.NameTaken, want: "charted belongs to a chart addon"},
		"an app by hand's name":    {answer: serves(`{"service":"byhand"}`), status: 409, code: fault.NameTaken, want: "byhand belongs to an app registered by hand"},
		"another addon's key":      {answer: serves(`{"service":"example","proxyKey":"charted"}`), status: 409, code: fault.NameTaken, want: "app charted belongs to addon charted"},
		"another addon's workload": {answer: serves(`{"service":"example","components":[{"name":"a","workload":"charted-web","role":"primary"}]}`), status: 409, code: fault.NameTaken, want: "workload charted-web belongs to addon charted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPrimary(t, `{"service":"example"}`)
			if tc.answer != nil {
				p.serveWith(tc.answer)
			}
			b := newLoneBench(t, resolving(map[string]*primary{"my-addon": p}))
			m, err := capability.Parse([]byte(`{"service":"charted","components":[{"name":"a","workload":"charted-web","role":"primary"}]}`))
			b.must(err)
			b.must(b.registry.Register(t.Context(), registry.Registration{Source: registry.SourceChart, Manifest: m, Place: capability.Place{ProxyURL: "http://charted-web", Workload: "charted-web"}}))
			b.must(b.registry.PutApp(t.Context(), capability.App{Key: "byhand", ProxyURL: "http://x"}))
			bodies := []string{tc.body}
			if tc.answer != nil {
				bodies = []string{`{"proxyUrl":"http://my-addon"}`, `{"proxyUrl":"http://my-addon","dryRun":true}`}
			}
			for _, body := range bodies {
				problem := b.refused(http.MethodPost, apitype.PathAddons, body, tc.status, string(tc.code))
				if !strings.Contains(problem.Detail, tc.want) {
					t.Errorf("detail %q", problem.Detail)
				}
			}
			if name == "sent elsewhere" && elsewhere.count() != 0 {
				t.Error("it went there")
			}
		})
	}
}

func TestAddressAddonsAreForAdmins(t *testing.T) {
	t.Parallel()
	p := newPrimary(t, `{"service":"example"}`)
	b := newLoneBench(t, resolving(map[string]*primary{"my-addon": p}))
	b.register(`{"service":"there"}`)
	for _, c := range [][3]string{{http.MethodPost, apitype.PathAddons, `{"proxyUrl":"http://my-addon"}`}, {http.MethodDelete, apitype.PathAddons + "/there", ""}} {
		var body any
		if c[2] != "" {
			body = c[2]
		}
		b.refused(c[0], c[1], body, http.StatusForbidden, "forbidden", bearer(b.viewer()))
		b.refused(c[0], c[1], body, http.StatusUnauthorized, "no-bearer", func(r *http.Request) { r.Header.Del("Authorization") })
	}
	if p.count() != 0 {
		t.Error("the address was asked for somebody who may not")
	}
}

func TestOneKeyHasOneOwnerWhicheverWayItCame(t *testing.T) {
	t.Parallel()
	p := newPrimary(t, `{"service":"example"}`)
	worker := newPrimary(t, `{"service":"third","components":[{"name":"a","workload":"applied","role":"primary"}]}`)
	b := newBench(t, resolving(map[string]*primary{"my-addon": p, "third": worker}))
	// A chart addon that nothing is registered of yet has its name, and its workloads.
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart(), Suspend: true})
	b.operate("example", func(a *v1alpha1.ZaentrumAddon) {
		planned(a)
		a.Status.Components = []v1alpha1.Component{{Name: "applied", Kind: "Deployment"}}
	})
	for _, dry := range []string{"true", "false"} {
		problem := b.refused(http.MethodPost, apitype.PathAddons, `{"proxyUrl":"http://my-addon","dryRun":`+dry+`}`, http.StatusConflict, "name-taken")
		if problem.Detail != "example belongs to a chart addon" {
			t.Errorf("detail %q", problem.Detail)
		}
		problem = b.refused(http.MethodPost, apitype.PathAddons, `{"proxyUrl":"http://third","dryRun":`+dry+`}`, http.StatusConflict, "name-taken")
		if problem.Detail != "workload applied belongs to addon example" {
			t.Errorf("detail %q", problem.Detail)
		}
	}
	// A chart addon is not removed as if it were one from an address.
	m, err := capability.Parse([]byte(`{"service":"example"}`))
	b.must(err)
	b.must(b.registry.Register(t.Context(), registry.Registration{Source: registry.SourceChart, Manifest: m, Place: capability.Place{ProxyURL: "http://example", Workload: "example"}}))
	b.refused(http.MethodDelete, apitype.PathAddons+"/example", nil, http.StatusConflict, "name-taken")

	// And the other way round.
	p.serve(`{"service":"second"}`)
	var got apitype.AddressAnswer
	b.answer(http.MethodPost, apitype.PathAddons, `{"proxyUrl":"http://my-addon.`+b.namespace+`.svc.cluster.local"}`, http.StatusAccepted, &got)
	if got.Address != "http://my-addon" {
		t.Errorf("address %s", got.Address)
	}
	b.refused(http.MethodPost, apitype.PathAddonCharts, `{"name":"second","chart":"`+exampleRef+`:1.2.0","secretValues":{"a":"`+canary+`"}}`, http.StatusConflict, "name-taken")
	b.refused(http.MethodDelete, chartPath("second"), nil, http.StatusNotFound, "not-found")
}

func TestAChartAddonThatIsMadeMeanwhileKeepsItsName(t *testing.T) {
	t.Parallel()
	p := newPrimary(t, "")
	b := newBench(t, resolving(map[string]*primary{"my-addon": p}))
	looks := 0
	b.wire.intercept(func(r *http.Request) *http.Response {
		// Between the look for a chart addon of that name and the end of the registration.
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/zaentrumaddons/example") {
			if looks++; looks == 2 {
				b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
			}
		}
		return nil
	})
	p.serve(`{"service":"example"}`)
	before := b.rows()
	b.problem(b.do(http.MethodPost, apitype.PathAddons, `{"proxyUrl":"http://my-addon"}`), http.StatusConflict, "name-taken")
	if b.rows() != before || looks != 2 {
		t.Errorf("%d looks, rows:\n%s", looks, b.rows())
	}
}

func TestABrokenClusterRegistersNoAddress(t *testing.T) {
	t.Parallel()
	p := newPrimary(t, `{"service":"example"}`)
	b := newBench(t, resolving(map[string]*primary{"my-addon": p}), func(o *portal.Options) { o.RequestTimeout = 2 * time.Second })
	b.wire.intercept(func(r *http.Request) *http.Response {
		if strings.Contains(r.URL.Path, "/zaentrumaddons") {
			return failure(http.StatusInternalServerError, "InternalError")
		}
		return nil
	})
	b.refused(http.MethodPost, apitype.PathAddons, `{"proxyUrl":"http://my-addon"}`, http.StatusBadGateway, "cluster-failed")
}
