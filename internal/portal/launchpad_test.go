package portal_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/registry"
	"zaentrum.io/zae/internal/registry/capability"
)

// register registers an addon from an address, as it stands in the registry.
func (b *bench) register(text string) {
	b.t.Helper()
	m, err := capability.Parse([]byte(text))
	b.must(err)
	b.must(b.registry.Register(b.t.Context(), registry.Registration{
		Source: registry.SourceAddress, Manifest: m,
		Place: capability.Place{ProxyURL: "http://" + m.Service, Workload: m.Service, PublicOrigin: "https://media.example.org"},
	}))
}

// viewer is a bearer that is nobody's who administers, of a client that may not either.
func (b *bench) viewer() string {
	return b.issuer.token(map[string]any{"sub": "viewer", "azp": "media-player", "preferred_username": "viewer", "realm_access": nil})
}

func newLaunchpad(t *testing.T) *bench {
	b := newLoneBench(t)
	b.register(`{"service":"zeta","proxyKey":"z","ui":{"app":{"title":"Zeta","description":"d","icon":"puzzle"},"space":{"key":"media","title":"Media","ord":2},
		"tiles":[{"key":"b","ord":1,"target":"#/b"},{"key":"a","ord":1},{"key":"c","ord":-1,"title":"C","icon":"i","description":"x"}],
		"slots":[{"key":"one","slot":"title.actions","kind":"link","label":"One","icon":"i","url":"/go","ord":2},{"key":"two","slot":"title.actions","url":"https://example.org/","ord":1},
		{"key":"three","slot":"player"}]}}`)
	b.register(`{"service":"alpha","ui":{"console":true,"slots":[{"key":"x","slot":"title.actions","ord":2}]}}`)
	b.register(`{"service":"early","ui":{"console":true,"space":{"key":"first","ord":-1}}}`)
	b.must(b.registry.PutApp(t.Context(), capability.App{Key: "byhand", ProxyURL: "http://secret-inside:8080", Title: "By hand"}))
	return b
}

func TestTheLaunchpadReadsAppsTilesAndSlotsInOrder(t *testing.T) {
	t.Parallel()
	b := newLaunchpad(t)
	b.token = b.viewer()
	media := &apitype.Space{Key: "media", Title: "Media", Ord: 2}
	one := apitype.Slot{Key: "zeta.one", App: "zeta", Slot: "title.actions", Kind: "link", Label: "One", Icon: "i", URL: "https://media.example.org/go", Ord: 2}
	two := apitype.Slot{Key: "zeta.two", App: "zeta", Slot: "title.actions", URL: "https://example.org/", Ord: 1}
	x := apitype.Slot{Key: "alpha.x", App: "alpha", Slot: "title.actions", Ord: 2}
	three := apitype.Slot{Key: "zeta.three", App: "zeta", Slot: "player"}
	for path, want := range map[string]any{
		apitype.PathApps: apitype.Apps{Apps: []apitype.App{
			{Key: "alpha", Addon: "alpha", ProxyKey: "alpha", BaseURL: "/portal/app/alpha", Title: "alpha"},
			{Key: "byhand", ProxyKey: "byhand", BaseURL: "/portal/app/byhand", Title: "By hand"},
			{Key: "early", Addon: "early", ProxyKey: "early", BaseURL: "/portal/app/early", Title: "early"},
			{Key: "zeta", Addon: "zeta", ProxyKey: "z", BaseURL: "/portal/app/zeta", Title: "Zeta", Description: "d", Icon: "puzzle"},
		}},
		apitype.PathTiles: apitype.Tiles{Tiles: []apitype.Tile{
			{Key: "addon.early", App: "early", Title: "early", Target: "/portal/app/early", Space: &apitype.Space{Key: "first", Ord: -1}},
			{Key: "addon.alpha", App: "alpha", Title: "alpha", Target: "/portal/app/alpha"},
			{Key: "addon.zeta.c", App: "zeta", Title: "C", Description: "x", Icon: "i", Target: "/portal/app/zeta", Space: media, Ord: -1},
			{Key: "addon.zeta.a", App: "zeta", Title: "Zeta", Icon: "puzzle", Target: "/portal/app/zeta", Space: media, Ord: 1},
			{Key: "addon.zeta.b", App: "zeta", Title: "Zeta", Icon: "puzzle", Target: "/portal/app/zeta/#/b", Space: media, Ord: 1},
		}},
		apitype.PathSlots:                         apitype.Slots{Slots: []apitype.Slot{three, two, x, one}},
		apitype.PathSlots + "?slot=title.actions": apitype.Slots{Slots: []apitype.Slot{two, x, one}},
		apitype.PathSlots + "?slot=player":        apitype.Slots{Slots: []apitype.Slot{three}},
		apitype.PathSlots + "?slot=nowhere":       apitype.Slots{Slots: []apitype.Slot{}},
	} {
		wanted, err := json.Marshal(want)
		b.must(err)
		var got, same any
		b.answer(http.MethodGet, path, nil, http.StatusOK, &got)
		b.must(json.Unmarshal(wanted, &same))
		if diff := cmp.Diff(same, got); diff != "" {
			t.Errorf("%s:\n%s", path, diff)
		}
	}
}

func TestTheLaunchpadIsNotForThoseWithoutABearer(t *testing.T) {
	t.Parallel()
	b := newLaunchpad(t)
	for _, path := range []string{apitype.PathApps, apitype.PathTiles, apitype.PathSlots} {
		b.problem(b.do(http.MethodGet, path, nil, func(r *http.Request) { r.Header.Del("Authorization") }), http.StatusUnauthorized, "no-bearer")
		b.problem(b.do(http.MethodGet, path, nil, bearer(b.issuer.token(map[string]any{"exp": 1}))), http.StatusUnauthorized, "no-bearer")
		b.problem(b.do(http.MethodGet, path, nil, bearer(b.issuer.token(map[string]any{"typ": "ID"}))), http.StatusUnauthorized, "no-bearer")
		for _, query := range []string{"?x=1", "?slot=a&slot=b", "?Slot=a", "?slot="} {
			b.problem(b.do(http.MethodGet, path+query, nil), http.StatusBadRequest, "malformed")
		}
	}
	// What only admins read stays theirs.
	b.problem(b.do(http.MethodGet, apitype.PathAddons, nil, bearer(b.viewer())), http.StatusForbidden, "forbidden")
}

func TestWhatTheLaunchpadHasAlreadyIsNotSentAgain(t *testing.T) {
	t.Parallel()
	b := newLaunchpad(t)
	have := func(tag string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("If-None-Match", tag) }
	}
	for _, path := range []string{apitype.PathApps, apitype.PathTiles, apitype.PathSlots} {
		first := b.do(http.MethodGet, path, nil)
		tag := first.header.Get("ETag")
		if tag == "" || first.header.Get("Cache-Control") != "private, no-cache" || first.header.Get("Vary") != "Authorization" {
			t.Errorf("%s: %v", path, first.header)
		}
		for _, given := range []string{tag, "W/" + tag, `"other", ` + tag, "*"} {
			again := b.do(http.MethodGet, path, nil, have(given))
			if again.status != http.StatusNotModified || len(again.body) != 0 || again.header.Get("ETag") != tag {
				t.Errorf("%s, %s: %s", path, given, again)
			}
		}
		for _, given := range []string{`"other"`, "nonsense", tag[1:]} {
			if again := b.do(http.MethodGet, path, nil, have(given)); again.status != http.StatusOK {
				t.Errorf("%s, %s: %s", path, given, again)
			}
		}
		// Nobody learns without a bearer whether something changed.
		b.problem(b.do(http.MethodGet, path, nil, have(tag), func(r *http.Request) { r.Header.Del("Authorization") }), http.StatusUnauthorized, "no-bearer")
		b.register(`{"service":"new","version":"` + path[len("/api/portal/"):] + `","ui":{"console":true,"slots":[{"key":"k","slot":"s","label":"` + path + `"}],"app":{"title":"` + path + `"}}}`)
		if again := b.do(http.MethodGet, path, nil, have(tag)); again.status != http.StatusOK || again.header.Get("ETag") == tag {
			t.Errorf("%s changed: %s", path, again)
		}
	}
}
