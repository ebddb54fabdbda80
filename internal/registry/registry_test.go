package registry_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/postgrestest"
	"zaentrum.io/zae/internal/registry"
	"zaentrum.io/zae/internal/registry/capability"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if where := os.Getenv(childEnv); where != "" {
		os.Exit(registerForever(where))
	}
	code := postgrestest.Run(m)
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// eachDatabase runs a test with an empty database of each kind.
func eachDatabase(t *testing.T, test func(t *testing.T, where string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { test(t, filepath.Join(t.TempDir(), "a registry?#%20.db")) })
	t.Run("postgres", func(t *testing.T) { test(t, postgrestest.URL(t)) })
}

// each runs a test with an empty registry in each kind of database.
func each(t *testing.T, test func(t *testing.T, s registry.Store)) {
	t.Helper()
	eachDatabase(t, func(t *testing.T, where string) { test(t, open(t, where)) })
}

// noon is a moment of registration.
func noon() time.Time { return time.Date(2031, 5, 4, 12, 0, 0, 0, time.UTC) }

func open(t *testing.T, where string) registry.Store {
	t.Helper()
	s, err := registry.Open(t.Context(), where)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func manifest(t *testing.T, text string) *capability.Manifest {
	t.Helper()
	m, err := capability.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func registration(t *testing.T, text string) registry.Registration {
	t.Helper()
	m := manifest(t, text)
	return registry.Registration{
		Source:   registry.SourceChart,
		Chart:    registry.Chart{Ref: "oci://charts.example.org/" + m.Service, Version: "1.0.0", Digest: "sha256:00"},
		Place:    capability.Place{ProxyURL: "http://" + m.Service, Workload: m.Service, PublicOrigin: "https://media.example.org"},
		Manifest: m, At: noon(),
	}
}

const full = `{"service":"example","kind":"addon","version":"4.1.0","ui":{"app":{"title":"Example","icon":"puzzle"},
	"tiles":[{"key":"one","target":"#/one"},{"key":"two","target":"/two"}],
	"slots":[{"key":"row","slot":"title.actions","kind":"link","label":"Go","url":"/portal/app/example/go"}]},
	"components":[{"name":"web","workload":"example","role":"primary"},
	{"name":"worker","workload":"example-worker","role":"required","topics":["example.done"]}]}`

// dump is everything in the registry.
func dump(t *testing.T, s registry.Store) string {
	t.Helper()
	addons, err1 := s.Addons(t.Context())
	apps, err2 := s.Apps(t.Context())
	tiles, err3 := s.Tiles(t.Context())
	slots, err4 := s.Slots(t.Context())
	failures, err5 := s.Failures(t.Context())
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, a := range addons {
		fmt.Fprintf(&out, "addon %s\n", mustJSON(a))
	}
	for _, a := range apps {
		fmt.Fprintf(&out, "app %+v\n", a)
	}
	for _, r := range tiles {
		fmt.Fprintf(&out, "tile %+v\n", r)
	}
	for _, r := range slots {
		fmt.Fprintf(&out, "slot %+v\n", r)
	}
	fmt.Fprintf(&out, "failures %v\n", failures)
	return out.String()
}

func mustJSON(a registry.Addon) string {
	return fmt.Sprintf("%s %s %v %q %q %q %s %+v %s", a.Key, a.Source, a.Chart, a.Address, a.Title, a.Version, a.Manifest, a.Components, a.RegisteredAt)
}

func TestRegisteringAgainReplacesAndNeverMerges(t *testing.T) {
	each(t, func(t *testing.T, s registry.Store) {
		if err := s.Register(t.Context(), registration(t, full)); err != nil {
			t.Fatal(err)
		}
		first := dump(t, s)
		for _, want := range []string{"addon.example.one", "addon.example.two", "https://media.example.org/portal/app/example/go", "example-worker"} {
			if !strings.Contains(first, want) {
				t.Errorf("%s is missing in\n%s", want, first)
			}
		}
		if err := s.Register(t.Context(), registration(t, full)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, dump(t, s)); diff != "" {
			t.Errorf("the same registration made other rows:\n%s", diff)
		}
		if err := s.Register(t.Context(), registration(t, `{"service":"example","ui":{"console":true}}`)); err != nil {
			t.Fatal(err)
		}
		second := dump(t, s)
		for _, gone := range []string{"addon.example.one", "title.actions", "example-worker", "puzzle"} {
			if strings.Contains(second, gone) {
				t.Errorf("%s of the earlier registration is still there:\n%s", gone, second)
			}
		}
		if !strings.Contains(second, "tile {Key:addon.example App:example Title:example") {
			t.Errorf("no console tile in\n%s", second)
		}
	})
}

func TestRemoveAnswersTheKeysSorted(t *testing.T) {
	each(t, func(t *testing.T, s registry.Store) {
		if err := s.Register(t.Context(), registration(t, full)); err != nil {
			t.Fatal(err)
		}
		if err := s.Register(t.Context(), registration(t, `{"service":"other","ui":{"console":true}}`)); err != nil {
			t.Fatal(err)
		}
		got, err := s.Remove(t.Context(), "example", registry.SourceChart)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"addon/example", "app/example", "slot/example.row", "tile/addon.example.one", "tile/addon.example.two"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if rest := dump(t, s); strings.Contains(rest, "example-worker") || !strings.Contains(rest, "addon other") {
			t.Errorf("left: %s", rest)
		}
		got, err = s.Remove(t.Context(), "example", registry.SourceChart)
		if err != nil || got == nil || len(got) != 0 {
			t.Errorf("removing nothing: %v, %v", got, err)
		}
	})
}

func TestOneKeyHasOneOwner(t *testing.T) {
	ctx := context.Background()
	byAddress := func(r registry.Registration) registry.Registration {
		r.Source, r.Chart = registry.SourceAddress, registry.Chart{}
		return r
	}
	for name, tc := range map[string]struct {
		before func(t *testing.T, s registry.Store) error
		after  func(t *testing.T) registry.Registration
		owner  registry.Owner
	}{
		"an address addon's name refuses a chart addon": {
			before: func(t *testing.T, s registry.Store) error {
				return s.Register(ctx, byAddress(registration(t, `{"service":"example"}`)))
			},
			after: func(t *testing.T) registry.Registration { return registration(t, full) },
			owner: registry.OwnedByAddress,
		},
		"a chart addon's name refuses an address addon": {
			before: func(t *testing.T, s registry.Store) error { return s.Register(ctx, registration(t, full)) },
			after:  func(t *testing.T) registry.Registration { return byAddress(registration(t, full)) },
			owner:  registry.OwnedByChart,
		},
		"an app by hand refuses a chart addon": {
			before: func(t *testing.T, s registry.Store) error {
				return s.PutApp(ctx, capability.App{Key: "example", ProxyURL: "http://somewhere"})
			},
			after: func(t *testing.T) registry.Registration { return registration(t, full) },
			owner: registry.OwnedByHand,
		},
		"another addon's proxy key refuses a name": {
			before: func(t *testing.T, s registry.Store) error {
				return s.Register(ctx, registration(t, `{"service":"other","proxyKey":"example"}`))
			},
			after: func(t *testing.T) registry.Registration { return registration(t, full) },
			owner: registry.OwnedByProxy,
		},
		"another addon's name refuses a proxy key": {
			before: func(t *testing.T, s registry.Store) error {
				return s.Register(ctx, registration(t, `{"service":"other"}`))
			},
			after: func(t *testing.T) registry.Registration {
				return registration(t, `{"service":"example","proxyKey":"other"}`)
			},
		},
		"another addon's workload is refused": {
			before: func(t *testing.T, s registry.Store) error {
				return s.Register(ctx, registration(t, `{"service":"other","components":[
					{"name":"a","workload":"other","role":"primary"},{"name":"b","workload":"example-worker","role":"optional"}]}`))
			},
			after: func(t *testing.T) registry.Registration { return registration(t, full) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, s registry.Store) {
				if err := tc.before(t, s); err != nil {
					t.Fatal(err)
				}
				before := dump(t, s)
				if owner, err := s.Owner(ctx, "example"); err != nil || owner != tc.owner {
					t.Errorf("owner %q, %v", owner, err)
				}
				err := s.Register(ctx, tc.after(t))
				if fault.CodeOf(err) != fault.NameTaken {
					t.Errorf("got %v", err)
				}
				if diff := cmp.Diff(before, dump(t, s)); diff != "" {
					t.Errorf("a refused registration changed something:\n%s", diff)
				}
			})
		})
	}
}

func TestARefusedReplacementLeavesTheEarlierRows(t *testing.T) {
	each(t, func(t *testing.T, s registry.Store) {
		for _, text := range []string{full, `{"service":"other","components":[{"name":"a","workload":"shared","role":"primary"}]}`} {
			if err := s.Register(t.Context(), registration(t, text)); err != nil {
				t.Fatal(err)
			}
		}
		before := dump(t, s)
		err := s.Register(t.Context(), registration(t, `{"service":"example","components":[{"name":"a","workload":"shared","role":"primary"}]}`))
		if fault.CodeOf(err) != fault.NameTaken || !strings.Contains(err.Error(), "workload shared belongs to addon other") {
			t.Errorf("got %v", err)
		}
		if diff := cmp.Diff(before, dump(t, s)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestRemoveLeavesAnAddonOfTheOtherSource(t *testing.T) {
	each(t, func(t *testing.T, s registry.Store) {
		r := registration(t, full)
		r.Source = registry.SourceAddress
		if err := s.Register(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		got, err := s.Remove(t.Context(), "example", registry.SourceChart)
		if err != nil || len(got) != 0 {
			t.Errorf("removed %v, %v", got, err)
		}
		if a, err := s.Addon(t.Context(), "example"); err != nil || a == nil || a.Address != "http://example" {
			t.Errorf("%+v, %v", a, err)
		}
	})
}

func TestAnAppIsFoundByItsKeyAndByItsProxyKey(t *testing.T) {
	each(t, func(t *testing.T, s registry.Store) {
		if err := s.Register(t.Context(), registration(t, `{"service":"example","proxyKey":"short"}`)); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"example", "short"} {
			if a, err := s.App(t.Context(), key); err != nil || a == nil || a.Key != "example" || a.ProxyURL != "http://example" {
				t.Errorf("%s: %+v, %v", key, a, err)
			}
		}
		if a, err := s.App(t.Context(), "exampl"); err != nil || a != nil {
			t.Errorf("%+v, %v", a, err)
		}
	})
}

func TestAnAddonMovesOnlyWhenThatIsWanted(t *testing.T) {
	each(t, func(t *testing.T, s registry.Store) {
		at := func(address string, move bool) registry.Registration {
			r := registration(t, `{"service":"example"}`)
			r.Source, r.Place.ProxyURL, r.MayMove = registry.SourceAddress, address, move
			return r
		}
		if err := s.Register(t.Context(), at("http://one", false)); err != nil {
			t.Fatal(err)
		}
		before := dump(t, s)
		err := s.Register(t.Context(), at("http://two", false))
		if fault.CodeOf(err) != fault.NameTaken || !strings.Contains(err.Error(), "http://one") || dump(t, s) != before {
			t.Errorf("got %v", err)
		}
		for _, r := range []registry.Registration{at("http://one", false), at("http://two", true), at("http://two", false)} {
			if err := s.Register(t.Context(), r); err != nil {
				t.Errorf("%s: %v", r.Place.ProxyURL, err)
			}
		}
	})
}

func TestADryRunRefusesWhatIsRefusedAndWritesNothing(t *testing.T) {
	each(t, func(t *testing.T, s registry.Store) {
		if err := s.Fail(t.Context(), "example", "unreachable", noon()); err != nil {
			t.Fatal(err)
		}
		before := dump(t, s)
		r := registration(t, full)
		r.DryRun = true
		if err := s.Register(t.Context(), r); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(before, dump(t, s)); diff != "" {
			t.Error(diff)
		}
		if err := s.Register(t.Context(), registration(t, `{"service":"other","components":[{"name":"a","workload":"example-worker","role":"primary"}]}`)); err != nil {
			t.Fatal(err)
		}
		before = dump(t, s)
		if err := s.Register(t.Context(), r); fault.CodeOf(err) != fault.NameTaken {
			t.Errorf("got %v", err)
		}
		if diff := cmp.Diff(before, dump(t, s)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAnAppByHandIsNotTakenOverByAnAddonsKey(t *testing.T) {
	each(t, func(t *testing.T, s registry.Store) {
		if err := s.Register(t.Context(), registration(t, full)); err != nil {
			t.Fatal(err)
		}
		err := s.PutApp(t.Context(), capability.App{Key: "example", ProxyURL: "http://elsewhere"})
		if fault.CodeOf(err) != fault.NameTaken {
			t.Errorf("got %v", err)
		}
	})
}

func TestAFailureKeepsItsMomentUntilItChangesAndGoesWithSuccess(t *testing.T) {
	each(t, func(t *testing.T, s registry.Store) {
		ctx := t.Context()
		steps := []struct {
			message string
			at      time.Time
			since   time.Time
		}{
			{"unreachable", noon(), noon()},
			{"unreachable", noon().Add(time.Minute), noon()},
			{"invalid", noon().Add(2 * time.Minute), noon().Add(2 * time.Minute)},
		}
		for _, step := range steps {
			if err := s.Fail(ctx, "example", step.message, step.at); err != nil {
				t.Fatal(err)
			}
			f, err := s.Failure(ctx, "example")
			if err != nil || f == nil || f.Message != step.message || !f.Since.Equal(step.since) {
				t.Errorf("%+v: got %+v, %v", step, f, err)
			}
		}
		if err := s.Register(ctx, registration(t, full)); err != nil {
			t.Fatal(err)
		}
		if f, err := s.Failure(ctx, "example"); err != nil || f != nil {
			t.Errorf("after success: %+v, %v", f, err)
		}
		if err := s.Fail(ctx, "example", "unreachable", noon()); err != nil {
			t.Fatal(err)
		}
		if a, err := s.Addon(ctx, "example"); err != nil || a == nil {
			t.Errorf("a failure unregistered the addon: %v, %v", a, err)
		}
		if err := s.Clear(ctx, "example"); err != nil {
			t.Fatal(err)
		}
		if f, _ := s.Failure(ctx, "example"); f != nil {
			t.Errorf("cleared: %+v", f)
		}
	})
}

func TestRowsSurviveARestart(t *testing.T) {
	eachDatabase(t, func(t *testing.T, where string) {
		s, err := registry.Open(t.Context(), where)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Register(t.Context(), registration(t, full)); err != nil {
			t.Fatal(err)
		}
		before := dump(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, dump(t, open(t, where))); diff != "" {
			t.Error(diff)
		}
	})
}

func TestInMemoryKeepsRowsWhileItIsOpen(t *testing.T) {
	s, err := registry.Open(t.Context(), registry.InMemory)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if err := s.Register(t.Context(), registration(t, full)); err != nil {
		t.Fatal(err)
	}
	if all, err := s.Addons(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestWritersAtTheSameTimeWaitForEachOther(t *testing.T) {
	each(t, func(t *testing.T, s registry.Store) {
		const writers = 8
		var group sync.WaitGroup
		errs := make(chan error, writers*20)
		for w := range writers {
			r := registration(t, fmt.Sprintf(`{"service":"addon-%d","ui":{"console":true}}`, w))
			group.Go(func() {
				for range 10 {
					errs <- s.Register(t.Context(), r)
					_, err := s.Addons(t.Context())
					errs <- err
				}
			})
		}
		group.Wait()
		close(errs)
		for err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
		all, err := s.Addons(t.Context())
		if err != nil || len(all) != writers {
			t.Fatalf("%d addons, %v", len(all), err)
		}
		if !slices.IsSortedFunc(all, func(a, b registry.Addon) int { return strings.Compare(a.Key, b.Key) }) {
			t.Error("not sorted by key")
		}
	})
}
