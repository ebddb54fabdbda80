package portal_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/portal"
	"zaentrum.io/zae/internal/postgrestest"
	"zaentrum.io/zae/internal/registry"
)

// audit is what the API tells of the audit, the newest first.
func (b *bench) audit(query string) apitype.Audit {
	b.t.Helper()
	var out apitype.Audit
	b.answer(http.MethodGet, apitype.PathAudit+query, nil, http.StatusOK, &out)
	return out
}

// audited is the newest entry, of which there must be so many more than before.
func (b *bench) audited(more int, before apitype.Audit) apitype.AuditEntry {
	b.t.Helper()
	now := b.audit("?limit=1000")
	if len(now.Entries) != len(before.Entries)+more {
		b.t.Fatalf("%d entries more, and %d are wanted: %+v", len(now.Entries)-len(before.Entries), more, now.Entries)
	}
	if len(now.Entries) == 0 {
		return apitype.AuditEntry{}
	}
	return now.Entries[0]
}

func TestEveryWriteIsAuditedWhateverComesOfIt(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *portal.Options) { o.WritesPerSecond = 1e6 })
	writes := 0
	for _, c := range b.portal.Calls() {
		method, path, id := c[0], strings.ReplaceAll(c[1], "{name}", "missing"), c[2]
		if method == http.MethodGet {
			continue
		}
		writes++
		// As an admin: refused for what it asks for.
		before := b.audit("?limit=1000")
		r := b.do(method, path, `{"nonsense":"`+canary+`"}`)
		var p apitype.Problem
		b.must(json.Unmarshal(r.body, &p))
		e := b.audited(1, before)
		if e.Verb != id || e.Subject != "5f0c" || e.Client != "zae" || e.User != "admin" || e.Outcome != "refused" || e.Code != p.Code || e.Status != r.status || e.Trace != p.Trace || e.Trace == "" {
			t.Errorf("%s %s: %+v, and the answer is %s", method, path, e, r)
		}
		if strings.Contains(path, "missing") && e.Addon != "missing" {
			t.Errorf("%s %s is about %q", method, path, e.Addon)
		}
		// As somebody who may not.
		before = b.audit("?limit=1000")
		b.refused(method, path, `{}`, http.StatusForbidden, "forbidden", bearer(b.viewer()))
		if e := b.audited(1, before); e.Verb != id || e.Subject != "viewer" || e.Client != "media-player" || e.Outcome != "forbidden" || e.Code != "forbidden" || e.Status != http.StatusForbidden {
			t.Errorf("%s %s: %+v", method, path, e)
		}
		// As nobody, who could fill the registry.
		before = b.audit("?limit=1000")
		b.refused(method, path, `{}`, http.StatusUnauthorized, "no-bearer", func(r *http.Request) { r.Header.Del("Authorization") })
		b.audited(0, before)
		if n := strings.Count(b.log.String(), "msg=audit verb="+id+" "); n != 2 {
			t.Errorf("%d lines of %s in the log", n, id)
		}
	}
	if writes < 6 {
		t.Errorf("%d writes", writes)
	}
	// Reading is not audited, and the audit is for admins.
	before := b.audit("?limit=1000")
	b.do(http.MethodGet, apitype.PathAddons, nil)
	b.audited(0, before)
	b.problem(b.do(http.MethodGet, apitype.PathAudit, nil, bearer(b.viewer())), http.StatusForbidden, "forbidden")
}

func TestTheAuditHasTheLifeOfAnAddonWithoutAValue(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	chart := func(version string) *apitype.Chart { return &apitype.Chart{Ref: exampleRef, Version: version} }
	var write apitype.WriteAnswer
	var gone apitype.DeleteAnswer
	b.answer(http.MethodPost, apitype.PathAddonCharts, `{"chart":"`+exampleRef+`:1.2.0","values":{"worker":{"replicas":2,"level":"`+"debug"+`"},"list":[1],"empty":{}},"secretValues":{"b.url":"`+canary+`","a.key":"`+canary+`"}}`, http.StatusAccepted, &write)
	first := &apitype.AuditState{Chart: chart("1.2.0"), Suspended: true, Inputs: []string{"empty", "list", "worker.level", "worker.replicas"}, SecretInputs: []string{"a.key", "b.url"}}
	b.answer(http.MethodPatch, chartPath("example"), `{"version":"1.3.0","values":{"worker":{"replicas":3,"level":"debug"},"new":true},"secretValues":{"a.key":"`+canary+`2"},"clearSecrets":["b.url"]}`, http.StatusAccepted, &write)
	second := &apitype.AuditState{Chart: chart("1.3.0"), Suspended: true, Inputs: []string{"new", "worker.level", "worker.replicas"}, SecretInputs: []string{"a.key"}}
	b.operate("example", planned)
	b.answer(http.MethodPost, chartPath("example")+"/install", nil, http.StatusAccepted, &write)
	third := *second
	third.Suspended = false
	b.problem(b.do(http.MethodPost, apitype.PathAddonCharts, `{"chart":"`+exampleRef+`:9.9.9","secretRefs":{"a":{"name":"platform-credentials"}}}`), http.StatusBadRequest, "invalid")
	b.wire.intercept(func(r *http.Request) *http.Response {
		if isWrite(r) && r.Method == http.MethodPut {
			return failure(http.StatusInternalServerError, metav1.StatusReasonInternalError)
		}
		return nil
	})
	b.problem(b.do(http.MethodPatch, chartPath("example"), `{"suspend":true}`), http.StatusBadGateway, "cluster-failed")
	b.wire.intercept(nil)
	b.answer(http.MethodDelete, chartPath("example")+"?keepValues=true", nil, http.StatusOK, &gone)
	got := b.audit("?addon=example")
	entry := func(verb, outcome, code string, status int, before, after *apitype.AuditState, changed ...string) apitype.AuditEntry {
		return apitype.AuditEntry{
			Subject: "5f0c", Client: "zae", User: "admin", Verb: verb, Addon: "example", Outcome: outcome, Code: code, Status: status,
			AuditChanges: apitype.AuditChanges{Before: before, After: after, Changed: changed},
		}
	}
	want := []apitype.AuditEntry{
		entry("deleteAddonChart", "done", "", 200, &third, &apitype.AuditState{KeptValues: true}),
		entry("patchAddonChart", "failed", "cluster-failed", 502, &third, nil),
		entry("createAddonChart", "refused", "invalid", 400, nil, nil),
		entry("installAddonChart", "done", "", 202, second, &third),
		entry("patchAddonChart", "done", "", 202, first, second, "a.key", "b.url", "empty", "list", "new", "worker.replicas"),
		entry("createAddonChart", "done", "", 202, nil, first, "a.key", "b.url", "empty", "list", "worker.level", "worker.replicas"),
	}
	if diff := cmp.Diff(want, got.Entries, cmpopts.IgnoreFields(apitype.AuditEntry{}, "ID", "Time", "Trace")); diff != "" {
		t.Error(diff)
	}
	for i, e := range got.Entries {
		if e.Time.IsZero() || time.Since(e.Time.Time) > time.Hour || len(e.Trace) != 32 || i > 0 && e.ID >= got.Entries[i-1].ID {
			t.Errorf("%+v", e)
		}
	}
	if log := b.log.String(); strings.Count(log, "msg=audit") != 6 || !strings.Contains(log, "outcome=failed") || !strings.Contains(log, "changed=\"[a.key b.url") {
		t.Errorf("log:\n%s", log)
	}
}

func TestAWriteThatIsCutOffInTheMiddleLeavesATrace(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
	var then []registry.AuditEntry
	b.wire.intercept(func(r *http.Request) *http.Response {
		if isWrite(r) { // as a process that is killed here leaves it
			var err error
			if then, err = b.registry.Audit(t.Context(), registry.AuditQuery{Limit: 10}); err != nil {
				t.Error(err)
			}
		}
		return nil
	})
	var write apitype.WriteAnswer
	b.answer(http.MethodPatch, chartPath("example"), `{"suspend":true}`, http.StatusAccepted, &write)
	if len(then) != 1 || then[0].Outcome != registry.AuditBegun || then[0].Verb != "patchAddonChart" || then[0].Addon != "example" || then[0].Subject != "5f0c" {
		t.Errorf("%+v", then)
	}
	if e := b.audit(""); len(e.Entries) != 1 || e.Entries[0].Outcome != "done" {
		t.Errorf("%+v", e)
	}
}

func TestADatabaseThatIsAwayLosesNoLineOfTheAudit(t *testing.T) {
	t.Parallel()
	db := postgrestest.Start(t)
	store, err := registry.Open(t.Context(), db.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	b := newBench(t, func(o *portal.Options) { o.Registry = store })
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
	db.Stop(t)
	var write apitype.WriteAnswer
	b.answer(http.MethodPatch, chartPath("example"), `{"suspend":true}`, http.StatusAccepted, &write)
	if log := b.log.String(); strings.Count(log, "msg=audit verb=patchAddonChart addon=example subject=5f0c") != 1 || !strings.Contains(log, "outcome=done") ||
		!strings.Contains(log, "an audit entry is not kept") || strings.Contains(log, postgrestest.Password) {
		t.Errorf("log:\n%s", log)
	}
	b.problem(b.do(http.MethodGet, apitype.PathAudit, nil), http.StatusServiceUnavailable, "database-failed")
	db.Resume(t)
	b.answer(http.MethodPatch, chartPath("example"), `{"suspend":false}`, http.StatusAccepted, &write)
	if e := b.audit(""); len(e.Entries) != 1 || e.Entries[0].Outcome != "done" || e.Entries[0].Before == nil || !e.Entries[0].Before.Suspended {
		t.Errorf("%+v", e)
	}
}

func TestTheAuditOfAddonsFromAddressesHasTheAddress(t *testing.T) {
	t.Parallel()
	p := newPrimary(t, `{"service":"example"}`)
	b := newLoneBench(t, resolving(map[string]*primary{"one": p, "two": p}))
	var out apitype.AddressAnswer
	var gone apitype.DeleteAnswer
	b.answer(http.MethodPost, apitype.PathAddons, `{"proxyUrl":"http://one","dryRun":true}`, http.StatusOK, &out)
	b.answer(http.MethodPost, apitype.PathAddons, `{"proxyUrl":"http://one"}`, http.StatusAccepted, &out)
	b.refused(http.MethodPost, apitype.PathAddons, `{"proxyUrl":"http://two"}`, http.StatusConflict, "name-taken")
	b.answer(http.MethodPost, apitype.PathAddons, `{"proxyUrl":"http://two","replaceAddress":true}`, http.StatusAccepted, &out)
	b.answer(http.MethodDelete, apitype.PathAddons+"/example", nil, http.StatusOK, &gone)
	var got []string
	for _, e := range b.audit("?addon=example").Entries {
		text := e.Verb + " " + e.Outcome
		if e.Before != nil {
			text += " from " + e.Before.Address
		}
		if e.After != nil {
			text += " to " + e.After.Address
		}
		got = append(got, text)
	}
	want := []string{
		"removeAddon done from http://two", "addAddon done from http://one to http://two", "addAddon refused from http://one to http://one",
		"addAddon done to http://one", "addAddon dry-run",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTheAuditIsReadInPages(t *testing.T) {
	t.Parallel()
	b := newLoneBench(t)
	for i := range 7 {
		_, err := b.registry.AddAudit(t.Context(), registry.AuditEntry{At: time.Now(), Verb: fmt.Sprint(i), Addon: []string{"example", "other"}[i%2], Outcome: registry.AuditDone})
		b.must(err)
	}
	var verbs []string
	query := "?limit=3"
	for {
		page := b.audit(query)
		for _, e := range page.Entries {
			verbs = append(verbs, e.Verb)
		}
		if page.Next == 0 {
			break
		}
		query = fmt.Sprintf("?limit=3&before=%d", page.Next)
	}
	if !slices.Equal(verbs, []string{"6", "5", "4", "3", "2", "1", "0"}) {
		t.Errorf("%v", verbs)
	}
	if page := b.audit("?addon=other&limit=3"); len(page.Entries) != 3 || page.Next != 0 {
		t.Errorf("%+v", page)
	}
	for _, query := range []string{"?limit=0", "?limit=1001", "?limit=x", "?limit=1&limit=2", "?before=-1", "?before=0", "?before=01", "?addon=", "?addon=A b", "?x=1"} {
		b.problem(b.do(http.MethodGet, apitype.PathAudit+strings.ReplaceAll(query, " ", "%20"), nil), http.StatusBadRequest, "malformed")
	}
}

func TestTheAuditIsBounded(t *testing.T) {
	t.Parallel()
	b := newLoneBench(t, func(o *portal.Options) { o.Audit = portal.AuditLimits{Age: time.Hour, Entries: 5} })
	for i := range 20 {
		at := time.Now()
		if i == 19 {
			at = at.Add(-2 * time.Hour)
		}
		_, err := b.registry.AddAudit(t.Context(), registry.AuditEntry{At: at, Verb: "v", Outcome: registry.AuditDone})
		b.must(err)
	}
	b.refused(http.MethodDelete, apitype.PathAddons+"/missing", nil, http.StatusNotFound, "not-found")
	got := b.audit("?limit=1000")
	if len(got.Entries) != 5 || got.Entries[0].Verb != "removeAddon" {
		t.Errorf("%+v", got.Entries)
	}
	for _, e := range got.Entries {
		if time.Since(e.Time.Time) > time.Hour {
			t.Errorf("%+v", e)
		}
	}
}
