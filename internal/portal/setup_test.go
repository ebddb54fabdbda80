package portal_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/client"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/registry"
	"zaentrum.io/zae/internal/registry/capability"
)

const setupManifest = `{"service":"example","setup":{"path":"/api/setup","sections":[
	{"key":"storage","title":"Storage","ord":2,"target":"#/storage"},
	{"key":"database","title":"Database","description":"Where it keeps things","required":true,"target":"/db","ord":1},
	{"key":"later","ord":3}]}}`

func (b *bench) registerManifest(text string) {
	b.t.Helper()
	m, err := capability.Parse([]byte(text))
	b.must(err)
	b.must(b.registry.Register(b.t.Context(), registry.Registration{
		Source: registry.SourceAddress, Manifest: m, Place: capability.Place{ProxyURL: "http://" + m.Service, Workload: m.Service},
	}))
}

func TestASetupChecklistIsReadFromTheAddon(t *testing.T) {
	t.Parallel()
	app := newBackend(t)
	b := newProxyBench(t, map[string]string{"example": app.address()})
	b.registerManifest(setupManifest)
	app.with(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"state":"needs-setup","more":1,"sections":[{"key":"storage","state":"ready","summary":"12 GB\u0000 \u001b[31m\u202e free\n\n<b>of 20</b>"},
			{"key":"database","state":"broken","summary":"`+strings.Repeat("é", 400)+`"},{"key":"storage","state":"degraded"},{"key":"undeclared","state":"ready"}]}`)
	})
	var got apitype.Setup
	b.answer("GET", "/api/portal/addons/example/setup", nil, 200, &got)
	want := apitype.Setup{Name: "example", State: "needs-setup", Sections: []apitype.SetupSection{
		{Key: "database", Title: "Database", Description: "Where it keeps things", Required: true, Target: "/portal/app/example/db", State: "unknown", Summary: strings.Repeat("é", 299) + "…"},
		{Key: "storage", Title: "Storage", Target: "/portal/app/example/#/storage", State: "ready", Summary: "12 GB [31m free <b>of 20</b>"},
		{Key: "later", Title: "later", Target: "/portal/app/example", State: "unknown"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if r := app.last(); r.RequestURI != "/api/setup" || r.Header.Get("Authorization") != "Bearer "+b.token || r.Header.Get("X-Forwarded-Prefix") != apiBase || r.Host != "example" {
		t.Errorf("the addon got %s %s %v", r.Host, r.RequestURI, r.Header)
	}
	instance, err := client.ParseInstance(b.url)
	b.must(err)
	c := client.New(client.Options{Instance: instance, Bearer: func(context.Context) (string, error) { return b.token, nil }})
	defer c.Close()
	answer, err := c.Setup(t.Context(), "example")
	b.must(err)
	if diff := cmp.Diff(want, answer.Doc); diff != "" {
		t.Error(diff)
	}
	if _, err := c.Setup(t.Context(), "nobody"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("%v", err)
	}
	viewer := b.issuer.token(map[string]any{"realm_access": nil})
	b.problem(b.do("GET", "/api/portal/addons/example/setup", nil, bearer(viewer)), 403, "forbidden")
	b.problem(b.do("GET", "/api/portal/addons/example/setup", nil, bearer("")), 401, "no-bearer")

	// A manifest without sections has those that the addon tells.
	b.registerManifest(`{"service":"example","setup":{"path":"/api/setup"}}`)
	got = apitype.Setup{}
	b.answer("GET", "/api/portal/addons/example/setup", nil, 200, &got)
	if len(got.Sections) != 3 || got.Sections[0].Key != "storage" || got.Sections[2].Key != "undeclared" {
		t.Errorf("%+v", got)
	}
	b.registerManifest(`{"service":"example"}`)
	b.problem(b.do("GET", "/api/portal/addons/example/setup", nil), 404, "not-found")
}

func TestAnAddonThatDoesNotTellItsSetupIsUnknown(t *testing.T) {
	t.Parallel()
	app := newBackend(t)
	b := newProxyBench(t, map[string]string{"example": app.address()})
	b.registerManifest(setupManifest)
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		note   string
	}{
		"an error":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500); _, _ = io.WriteString(w, canary) }, "answers 500 for its setup checklist"},
		"a redirect":  {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, "answers 302 for its setup checklist"},
		"no document": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>"+canary) }, "with something else"},
		"other shape": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"state":"ready","sections":"`+canary+`"}`)
		}, "with something else"},
		"other state": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"state":"`+canary+`","sections":[{"key":"storage","state":"ready"}]}`)
		}, "with a state that there is not"},
		"too much": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"state":"ready","x":"`+strings.Repeat("x", 65<<10)+`"}`)
		}, "with more than 64 KiB"},
		"broken off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "{")
		}, "broke off its setup checklist"},
		"silence": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "did not answer in time"},
	} {
		t.Run(name, func(t *testing.T) {
			b := *b
			b.t = t
			app.with(tc.answer)
			start := time.Now()
			var got apitype.Setup
			b.answer("GET", "/api/portal/addons/example/setup", nil, 200, &got)
			if got.State != "unknown" || len(got.Sections) != 3 || got.Sections[0].State != "unknown" || got.Sections[1].State != "unknown" ||
				!strings.HasPrefix(got.Note, "addon example ") || !strings.Contains(got.Note, tc.note) {
				t.Errorf("%+v", got)
			}
			if took := time.Since(start); took > 15*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
	app.server.Close()
	var got apitype.Setup
	b.answer("GET", "/api/portal/addons/example/setup", nil, 200, &got)
	if got.State != "unknown" || !strings.Contains(got.Note, "refuses the connection") {
		t.Errorf("%+v", got)
	}
}
