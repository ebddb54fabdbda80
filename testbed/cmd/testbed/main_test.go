package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestCommands runs a testbed as a script would, and every other command against it.
func TestCommands(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	dir := filepath.Join(t.TempDir(), "bed")
	envFile := filepath.Join(t.TempDir(), "env")
	ctx, cancel := context.WithCancel(t.Context())
	var out buffer
	done := make(chan error, 1)
	go func() { done <- run(ctx, []string{"up", "--dir", dir, "--env-file", envFile}, &out, io.Discard) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		for _, line := range []string{"testbed is up\n", "stopping\n", "stopped\n"} {
			if !strings.Contains(out.String(), line) {
				t.Errorf("never said %q:\n%s", line, out.String())
			}
		}
		if _, err := os.Stat(envFile); !os.IsNotExist(err) {
			t.Error("the environment's file is still there")
		}
	}()
	env := map[string]string{}
	for len(env) == 0 {
		select {
		case err := <-done:
			done <- err
			t.Fatalf("ended: %v\n%s", err, out.String())
		case <-time.After(100 * time.Millisecond):
		}
		data, _ := os.ReadFile(envFile)
		for line := range strings.Lines(string(data)) {
			k, v, _ := strings.Cut(strings.TrimSpace(line), "=")
			env[k] = v
		}
	}
	for _, k := range []string{"KUBECONFIG", "TESTBED_API_SERVER", "TESTBED_REGISTRY", "TESTBED_ISSUER", "TESTBED_AUDIT_LOG", "TESTBED_DIR", "TESTBED_LOGS", "KUBECTL"} {
		if env[k] == "" {
			t.Errorf("%s is missing", k)
		}
	}

	token := mustRun(t, "token", "--issuer", env["TESTBED_ISSUER"], "--user", "viewer", "--client", "media-player")
	if strings.Count(token, ".") != 2 {
		t.Errorf("not a token: %q", token)
	}
	form := strings.NewReader("client_id=zae&scope=openid")
	resp, err := http.Post(env["TESTBED_ISSUER"]+"/device_authorization", "application/x-www-form-urlencoded", form)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	_, rest, _ := strings.Cut(string(body), `"user_code":"`)
	code, _, _ := strings.Cut(rest, `"`)
	if got := mustRun(t, "approve", code, "--user", "viewer", "--issuer", env["TESTBED_ISSUER"]); got != "approved as viewer\n" {
		t.Error(got)
	}
	if err := run(t.Context(), []string{"approve", code, "--issuer", env["TESTBED_ISSUER"]}, io.Discard, io.Discard); err == nil {
		t.Error("approved twice")
	}

	file := filepath.Join(t.TempDir(), "kubeconfig")
	mustRun(t, "kubeconfig", "--dir", env["TESTBED_DIR"], "--namespace", "default", "--service-account", "default", "-o", file)
	if data, err := os.ReadFile(file); err != nil || !strings.Contains(string(data), "token:") {
		t.Errorf("%v\n%s", err, data)
	}

	chart := t.TempDir()
	if err := os.WriteFile(filepath.Join(chart, "Chart.yaml"), []byte("apiVersion: v2\nname: example\nversion: 1.0.0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "example-1.0.0.tgz")
	packaged := strings.Fields(mustRun(t, "package", chart, archive))
	pushed := strings.Fields(mustRun(t, "push", archive, env["TESTBED_REGISTRY"]+"/charts/example:1.0.0"))
	if len(packaged) != 2 || len(pushed) != 4 || pushed[3] != packaged[1] || pushed[1] == pushed[3] {
		t.Errorf("packaged %v, pushed %v", packaged, pushed)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"nonsense"}, {"build", "x"}, {"push", "x"}, {"kubeconfig"}} {
		if err := run(t.Context(), args, io.Discard, io.Discard); !errors.Is(err, errUsage) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestShellQuote(t *testing.T) {
	for in, want := range map[string]string{"/a/b:1": "/a/b:1", "/a b": "'/a b'", "it's": `'it'\''s'`} {
		if got := shellQuote(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), args, &out, io.Discard); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return out.String()
}

// buffer is a log one goroutine writes and another reads.
type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
