package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"
)

func get(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

var label = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

func TestTheManifestKeepsItsRules(t *testing.T) {
	w := get(t, NewHandler(Options{Service: "example", Version: "4.1.0"}), manifestPath)
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" || w.Body.Len() > 256<<10 {
		t.Fatalf("%d %s", w.Code, w.Header().Get("Content-Type"))
	}
	var m Manifest
	if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil {
		t.Fatal(err)
	}
	if m.Service != "example" || m.Kind != "addon" || m.Version != "4.1.0" || !m.UI.Console || m.UI.App.Title == "" {
		t.Errorf("%+v", m)
	}
	primaries := 0
	for _, c := range m.Components {
		if c.Role == "primary" {
			primaries++
			if c.Workload != "example" {
				t.Errorf("the primary runs as %s", c.Workload)
			}
		}
		if !label.MatchString(c.Name) || !label.MatchString(c.Workload) || len(c.Summary) > 120 {
			t.Errorf("%+v", c)
		}
	}
	if primaries != 1 || len(m.Components) != 2 || m.Components[1].Workload != "example-worker" {
		t.Errorf("components %+v", m.Components)
	}
	if !strings.HasPrefix(m.Setup.Path, "/") || len(m.Setup.Sections) == 0 {
		t.Errorf("setup %+v", m.Setup)
	}
	for _, s := range m.Setup.Sections {
		if s.Title == "" || len(s.Title) > 60 || !strings.HasPrefix(s.Target, "#/") {
			t.Errorf("%+v", s)
		}
	}
}

func TestTheSetupStatusFollowsTheInputs(t *testing.T) {
	for name, tc := range map[string]struct {
		o    Options
		want string
	}{
		"all given":             {Options{DatabaseURL: "postgres://u:c4n4ry@db/x", ConfigKey: "c4n4ry", Data: t.TempDir()}, stateReady},
		"nothing given":         {Options{}, stateNeedsSetup},
		"a database of no kind": {Options{DatabaseURL: "c4n4ry", ConfigKey: "c4n4ry"}, stateNeedsSetup},
		"no place for files":    {Options{DatabaseURL: "postgres://u:c4n4ry@db/x", ConfigKey: "c4n4ry", Data: "/nowhere"}, stateDegraded},
	} {
		t.Run(name, func(t *testing.T) {
			tc.o.Service = "example"
			h := NewHandler(tc.o)
			w := get(t, h, setupPath)
			var s Status
			if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil {
				t.Fatal(err)
			}
			if s.State != tc.want || len(s.Sections) != 3 {
				t.Errorf("%+v", s)
			}
			for _, path := range []string{"/", setupPath, manifestPath} {
				if w := get(t, h, path); w.Code != http.StatusOK || strings.Contains(w.Body.String(), "c4n4ry") {
					t.Errorf("%s: %d, shows a secret: %t", path, w.Code, strings.Contains(w.Body.String(), "c4n4ry"))
				}
			}
		})
	}
}

func TestTheConsoleEscapesWhatItShows(t *testing.T) {
	w := get(t, NewHandler(Options{Service: "example", Version: "<script>"}), "/")
	if strings.Contains(w.Body.String(), "<script>") || w.Header().Get("Content-Security-Policy") == "" {
		t.Error("the version is not escaped or the policy is missing")
	}
	if w := get(t, NewHandler(Options{Service: "example"}), "/other"); w.Code != http.StatusNotFound {
		t.Errorf("/other answers %d", w.Code)
	}
}

func TestItServesUntilItIsTold(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	lines, stderr := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, []string{"-addr=127.0.0.1:0", "-version=4.2.0"}, func(string) string { return "" }, stderr)
		_ = stderr.Close()
	}()
	buf := make([]byte, 512)
	n, err := lines.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	_, addr, _ := strings.Cut(strings.TrimSpace(string(buf[:n])), "addr=")
	if err := run(ctx, []string{"-check=http://" + addr + manifestPath}, noEnv, io.Discard); err != nil {
		t.Error(err)
	}
	if err := run(ctx, []string{"-check=http://" + addr + manifestPath, "-service=other"}, noEnv, io.Discard); err == nil {
		t.Error("another service's manifest is accepted")
	}
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it does not end")
	}
}

func noEnv(string) string { return "" }

func TestMigratingNeedsADatabase(t *testing.T) {
	env := func(string) string { return "postgres://u:c4n4ry@db/x" }
	for range 2 {
		if err := run(context.Background(), []string{"-migrate"}, env, io.Discard); err != nil {
			t.Error(err)
		}
	}
	err := run(context.Background(), []string{"-migrate"}, func(string) string { return "c4n4ry" }, io.Discard)
	if err == nil || strings.Contains(err.Error(), "c4n4ry") {
		t.Errorf("%v", err)
	}
	if err := run(context.Background(), []string{"serve"}, noEnv, io.Discard); err == nil {
		t.Error("an argument is accepted")
	}
}
