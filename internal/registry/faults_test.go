package registry_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/postgrestest"
	"zaentrum.io/zae/internal/registry"
	"zaentrum.io/zae/internal/registry/capability"
)

// childEnv makes the test program register addons in that database until it is killed.
const childEnv = "REGISTRY_TEST_WRITES_TO"

// manyRows is a manifest with a row of each kind, and several of some.
func manyRows(service string) string {
	return strings.NewReplacer("example", service).Replace(full)
}

// registerForever registers addons and removes them again, and tells of each step when it is done.
func registerForever(where string) int {
	ctx := context.Background()
	s, err := registry.Open(ctx, where)
	if err != nil {
		fmt.Println("open:", err)
		return 1
	}
	for i := 0; ; i++ {
		m, err := capability.Parse([]byte(manyRows(fmt.Sprintf("addon-%d", i))))
		if err == nil {
			err = s.Register(ctx, registry.Registration{
				Source: registry.SourceChart, Manifest: m, At: time.Now(),
				Place: capability.Place{ProxyURL: "http://" + m.Service, Workload: m.Service},
			})
		}
		if err == nil && i%3 == 2 {
			_, err = s.Remove(ctx, fmt.Sprintf("addon-%d", i-1), registry.SourceChart)
		}
		if err != nil {
			fmt.Println("write:", err)
			return 1
		}
		fmt.Println("done", i)
	}
}

func TestAWriterThatIsKilledLeavesNothingHalfDoneAndLosesNothing(t *testing.T) {
	eachDatabase(t, func(t *testing.T, where string) {
		for round := range 8 {
			last := killedWriter(t, where, 1+3*round)
			s := open(t, where)
			addons, err := s.Addons(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			there := map[string]bool{}
			for _, a := range addons {
				there[a.Key] = true
				if len(a.Components) != 2 {
					t.Errorf("%s has %d components", a.Key, len(a.Components))
				}
			}
			for i := range last + 1 {
				if want := i%3 != 1 || i == last; there[fmt.Sprintf("addon-%d", i)] != want {
					t.Errorf("round %d: addon-%d of %d: there %t, want %t", round, i, last, !want, want)
				}
			}
			wholeAddons(t, s, addons)
			for _, a := range addons {
				if _, err := s.Remove(t.Context(), a.Key, registry.SourceChart); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// killedWriter kills a process in the middle of its writes, and answers the last step that it had told to be done.
func killedWriter(t *testing.T, where string, after int) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+where)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	last := -1
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, err := fmt.Sscanf(lines.Text(), "done %d", &last); err != nil {
			t.Error(lines.Text())
		}
		if last == after {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait() // it was killed
	if last < after {
		t.Fatalf("it ended after %d", last)
	}
	return last
}

// wholeAddons checks that every addon has all of its rows, and that there are no others.
func wholeAddons(t *testing.T, s registry.Store, addons []registry.Addon) {
	t.Helper()
	apps, err1 := s.Apps(t.Context())
	tiles, err2 := s.Tiles(t.Context())
	slots, err3 := s.Slots(t.Context())
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	if n := len(addons); len(apps) != n || len(tiles) != 2*n || len(slots) != n {
		t.Errorf("%d addons, and %d apps, %d tiles, %d slots", n, len(apps), len(tiles), len(slots))
	}
}

func TestTwoProcessesCannotBothHaveAKey(t *testing.T) {
	eachDatabase(t, func(t *testing.T, where string) {
		stores := []registry.Store{open(t, where), open(t, where)}
		const rounds, writers = 15, 6
		for round := range rounds {
			var group sync.WaitGroup
			errs := make([]error, writers)
			for w := range writers {
				// All want one key, some in the proxy, some as their name: no unique index sees across the two.
				text := fmt.Sprintf(`{"service":"w%d-%d","proxyKey":"key-%d","ui":{"console":true}}`, w, round, round)
				if w%2 == 0 {
					text = fmt.Sprintf(`{"service":"key-%d","proxyKey":"p%d-%d"}`, round, w, round)
				}
				r := registration(t, text)
				if w%4 == 0 {
					r.Source = registry.SourceAddress
				}
				group.Go(func() { errs[w] = stores[w%2].Register(t.Context(), r) })
			}
			group.Wait()
			owners, taken := 0, 0
			for w, err := range errs {
				switch {
				case err == nil && w%2 == 1:
					owners++
				case err == nil:
				case fault.CodeOf(err) == fault.NameTaken:
					taken++
				default:
					t.Errorf("writer %d: %v", w, err)
				}
			}
			apps, err := stores[0].Apps(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			have := 0
			for _, a := range apps {
				if key := fmt.Sprintf("key-%d", round); a.Key == key || a.ProxyKey == key {
					have++
				}
			}
			if have != 1 || owners > 1 || taken == 0 {
				t.Errorf("round %d: %d apps have the key, %d owners, %d refused", round, have, owners, taken)
			}
		}
	})
}

func TestTheDatabaseGoesAndComesBack(t *testing.T) {
	server := postgrestest.Start(t)
	where := server.URL(t)
	s := open(t, where)
	if err := s.Register(t.Context(), registration(t, full)); err != nil {
		t.Fatal(err)
	}
	before := dump(t, s)
	// Several connections are open when it goes.
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() { _, _ = s.Addons(t.Context()) })
	}
	group.Wait()
	for name, end := range map[string]func(testing.TB){"stopped": server.Stop, "crashed": server.Crash} {
		end(t)
		for call, err := range map[string]error{
			"ping":     s.Ping(t.Context()),
			"register": s.Register(t.Context(), registration(t, `{"service":"other"}`)),
			"addons":   second(s.Addons(t.Context())),
			"apps":     second(s.Apps(t.Context())),
			"owner":    second(s.Owner(t.Context(), "example")),
			"failures": second(s.Failures(t.Context())),
			"remove":   second(s.Remove(t.Context(), "example", registry.SourceChart)),
		} {
			if fault.CodeOf(err) != fault.Database || err.Error() != "the registry's database cannot be reached" || registry.Cause(err) == "" {
				t.Errorf("%s, %s: %v (%s)", name, call, err, registry.Cause(err))
			}
			noPassword(t, err)
		}
		server.Resume(t)
		// The connections of before are dead, and nobody is told.
		if diff := before != dump(t, s); diff {
			t.Errorf("%s: other rows", name)
		}
		if err := s.Register(t.Context(), registration(t, full)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestAServerThatRestartsUnderWritersLosesNothing(t *testing.T) {
	server := postgrestest.Start(t)
	s := open(t, server.URL(t))
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	written := make([]atomic.Int64, 4)
	for w := range written {
		group.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				m := manifest(t, manyRows(fmt.Sprintf("w%d-%d", w, i)))
				err := s.Register(t.Context(), registry.Registration{
					Source: registry.SourceChart, Manifest: m, Place: capability.Place{ProxyURL: "http://" + m.Service, Workload: m.Service},
				})
				if code := fault.CodeOf(err); err != nil && code != fault.Database {
					t.Errorf("w%d-%d: %v", w, i, err)
				}
				if err != nil {
					i-- // the same once more: it may have happened
					continue
				}
				written[w].Store(int64(i + 1))
			}
		})
	}
	// progress waits until every writer has written some more.
	progress := func() {
		deadline := time.Now().Add(time.Minute)
		for w := range written {
			for before := written[w].Load(); written[w].Load() < before+5; time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("writer %d does not go on", w)
				}
			}
		}
	}
	for range 3 {
		progress()
		server.Crash(t)
		server.Resume(t)
	}
	progress()
	cancel()
	group.Wait()
	addons, err := s.Addons(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for w := range written {
		total += int(written[w].Load())
	}
	if len(addons) < total || len(addons) > total+len(written) {
		t.Errorf("%d addons are there, and %d were written", len(addons), total)
	}
	wholeAddons(t, s, addons)
}

func TestNoErrorHasThePassword(t *testing.T) {
	good := postgrestest.URL(t)
	u, err := url.Parse(good)
	if err != nil {
		t.Fatal(err)
	}
	edit := func(change func(*url.URL)) string {
		v := *u
		change(&v)
		return v.String()
	}
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := nobody.Close(); err != nil {
		t.Fatal(err)
	}
	const other = "c4nary-other"
	for name, tc := range map[string]struct {
		where string
		code  fault.Code
		want  string
	}{
		"a wrong password":   {edit(func(u *url.URL) { u.User = url.UserPassword("zae", other) }), fault.Database, "28P01"},
		"nobody there":       {edit(func(u *url.URL) { u.Host = nobody.Addr().String() }), fault.Database, "refused"},
		"no such host":       {edit(func(u *url.URL) { u.Host = "no-such-host.invalid:5432" }), fault.Database, "no-such-host.invalid"},
		"no such database":   {edit(func(u *url.URL) { u.Path = "/missing" }), fault.Database, "3D000"},
		"no TLS there":       {edit(func(u *url.URL) { u.RawQuery = "sslmode=require" }), fault.Database, "TLS"},
		"a port that is not": {"postgres://zae:" + other + "@db:no/name", fault.Usage, "cannot be read"},
		"a bad escape":       {"postgres://zae:" + other + "%@db/name", fault.Usage, "cannot be read"},
		"an unknown mode":    {"postgres://zae:" + other + "@db/name?sslmode=" + other, fault.Usage, "cannot be read"},
		"a password as a parameter": {
			"postgres://db/name?sslmode=disable&connect_timeout=x&password=" + other, fault.Usage, "cannot be read",
		},
		"keywords":         {"host=db user=zae password=" + other, fault.Usage, "keywords"},
		"another database": {"mysql://zae:" + other + "@db/name", fault.Usage, "of that kind"},
		"nothing":          {"", fault.Usage, "not named"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := registry.Open(t.Context(), tc.where)
			if err == nil {
				_ = s.Close()
				t.Fatal("opened")
			}
			if fault.CodeOf(err) != tc.code || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %s: %v", fault.CodeOf(err), err)
			}
			noPassword(t, err)
		})
	}
	if left, _ := filepath.Glob("*c4nary*"); len(left) > 0 {
		t.Errorf("made %v", left)
	}
}

// noPassword looks for the canary in everything that an error says, on all its levels.
func noPassword(t *testing.T, err error) {
	t.Helper()
	for ; err != nil; err = errors.Unwrap(err) {
		if text := fmt.Sprintf("%v %+v %s %s", err, err, fault.From(err).Hint, registry.Cause(err)); strings.Contains(text, "c4nary") {
			t.Errorf("the password is in %s", text)
		}
	}
}

func TestAFileThatIsNoDatabaseIsSaidSo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registry.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("not a database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := registry.Open(t.Context(), path)
	if err == nil {
		_ = s.Close()
		t.Fatal("opened")
	}
	if fault.CodeOf(err) != fault.Database || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "not a database") {
		t.Errorf("got %v", err)
	}
	if _, err := registry.Open(t.Context(), filepath.Join(path, "below", "a file")); fault.CodeOf(err) != fault.Database {
		t.Errorf("got %v", err)
	}
}

func TestACallEndsWithItsContext(t *testing.T) {
	each(t, func(t *testing.T, s registry.Store) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Register(ctx, registration(t, full)); fault.CodeOf(err) != fault.Database {
			t.Errorf("got %v", err)
		}
		if _, err := s.Addons(ctx); fault.CodeOf(err) != fault.Database {
			t.Errorf("got %v", err)
		}
		if all, err := s.Addons(t.Context()); err != nil || len(all) != 0 {
			t.Errorf("%v, %v", all, err)
		}
	})
}
