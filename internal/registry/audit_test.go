package registry_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"zaentrum.io/zae/internal/registry"
)

func TestAnAuditIsReadFromTheNewestOnInPages(t *testing.T) {
	eachDatabase(t, func(t *testing.T, where string) {
		stores := []registry.Store{open(t, where), open(t, where)}
		var want []registry.AuditEntry
		for i := range 7 {
			e := registry.AuditEntry{
				At: noon(), Subject: "s", Client: "zae", Username: "Ä", Verb: "patchAddonChart", Addon: []string{"example", "other"}[i%2],
				Outcome: registry.AuditBegun, Trace: "t",
			}
			// All in the same moment, by two replicas.
			id, err := stores[i%2].AddAudit(t.Context(), e)
			if err != nil {
				t.Fatal(err)
			}
			e.ID, e.Outcome, e.Code, e.Status, e.Changes = id, registry.AuditFailed, "conflict", 409, []byte(fmt.Sprintf(`{"before":{"inputs":["a%d"]}}`, i))
			if err := stores[(i+1)%2].EndAudit(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			want = append([]registry.AuditEntry{e}, want...)
		}
		read := func(q registry.AuditQuery) []registry.AuditEntry {
			t.Helper()
			got, err := stores[0].Audit(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		all := read(registry.AuditQuery{Limit: 100})
		ids := map[int64]bool{}
		for i, e := range all {
			ids[e.ID] = true
			if i > 0 && e.ID >= all[i-1].ID {
				t.Error("not from the newest on")
			}
		}
		if len(all) != 7 || len(ids) != 7 {
			t.Fatalf("%+v", all)
		}
		byID := map[int64]registry.AuditEntry{}
		for _, e := range want {
			byID[e.ID] = e
		}
		for _, e := range all {
			if diff := cmp.Diff(byID[e.ID], e); diff != "" {
				t.Error(diff)
			}
		}
		var pages []registry.AuditEntry
		for before := int64(0); ; before = pages[len(pages)-1].ID {
			page := read(registry.AuditQuery{Before: before, Limit: 3})
			if len(page) == 0 {
				break
			}
			pages = append(pages, page...)
		}
		if diff := cmp.Diff(all, pages); diff != "" {
			t.Error(diff)
		}
		if got := read(registry.AuditQuery{Addon: "example", Limit: 100}); len(got) != 4 || got[0].Addon != "example" {
			t.Errorf("%+v", got)
		}
	})
}

func TestAnAuditIsTrimmedByAgeAndNumberAndTheForbiddenPushNobodyOut(t *testing.T) {
	each(t, func(t *testing.T, s registry.Store) {
		add := func(n int, at time.Time, outcome registry.Outcome) {
			t.Helper()
			for range n {
				if _, err := s.AddAudit(t.Context(), registry.AuditEntry{At: at, Verb: "v", Outcome: outcome}); err != nil {
					t.Fatal(err)
				}
			}
		}
		count := func() map[registry.Outcome]int {
			t.Helper()
			all, err := s.Audit(t.Context(), registry.AuditQuery{Limit: 1000})
			if err != nil {
				t.Fatal(err)
			}
			n := map[registry.Outcome]int{}
			for _, e := range all {
				n[e.Outcome]++
			}
			return n
		}
		trim := func(before time.Time, most int) {
			t.Helper()
			if err := s.TrimAudit(t.Context(), before, most); err != nil {
				t.Fatal(err)
			}
		}
		add(3, noon(), registry.AuditDone)
		add(5, noon().Add(time.Hour), registry.AuditDone)
		add(40, noon().Add(2*time.Hour), registry.AuditForbidden)
		trim(noon(), 100)
		if diff := cmp.Diff(map[registry.Outcome]int{registry.AuditDone: 8, registry.AuditForbidden: 10}, count()); diff != "" {
			t.Error(diff)
		}
		trim(noon().Add(time.Minute), 100)
		if diff := cmp.Diff(map[registry.Outcome]int{registry.AuditDone: 5, registry.AuditForbidden: 10}, count()); diff != "" {
			t.Error(diff)
		}
		add(9, noon().Add(3*time.Hour), registry.AuditRefused)
		trim(noon(), 10)
		if diff := cmp.Diff(map[registry.Outcome]int{registry.AuditRefused: 9, registry.AuditForbidden: 1}, count()); diff != "" {
			t.Error(diff)
		}
		trim(noon(), 0)
		if diff := cmp.Diff(map[registry.Outcome]int{}, count()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestManyWriteTheAuditAtOnce(t *testing.T) {
	eachDatabase(t, func(t *testing.T, where string) {
		stores := []registry.Store{open(t, where), open(t, where)}
		var group sync.WaitGroup
		for w := range 8 {
			group.Go(func() {
				for range 10 {
					id, err := stores[w%2].AddAudit(t.Context(), registry.AuditEntry{At: noon(), Verb: "v", Outcome: registry.AuditBegun})
					if err == nil {
						err = stores[w%2].EndAudit(t.Context(), registry.AuditEntry{ID: id, Outcome: registry.AuditDone})
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		all, err := stores[0].Audit(t.Context(), registry.AuditQuery{Limit: 1000})
		if err != nil || len(all) != 80 {
			t.Errorf("%d, %v", len(all), err)
		}
		for _, e := range all {
			if e.Outcome != registry.AuditDone {
				t.Errorf("%+v", e)
			}
		}
	})
}
