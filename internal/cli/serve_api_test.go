package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"zaentrum.io/zae/internal/portal"
	"zaentrum.io/zae/internal/registry"
	"zaentrum.io/zae/internal/registry/capability"
)

// logLines is a log whose lines can be waited for.
type logLines chan map[string]any

func (l logLines) Write(p []byte) (int, error) {
	var line map[string]any
	if err := json.Unmarshal(p, &line); err != nil {
		return 0, err
	}
	l <- line
	return len(p), nil
}

// until is the next line of that message.
func (l logLines) until(t *testing.T, message string) map[string]any {
	t.Helper()
	for {
		select {
		case line := <-l:
			if line["msg"] == message {
				return line
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("no line %q", message)
		}
	}
}

func TestTheAPIEndsWithItsRequestsFinishedAndItsStreamsTold(t *testing.T) {
	t.Parallel()
	began, release := make(chan struct{}, 2), make(chan struct{})
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			began <- struct{}{}
			<-release
			_, _ = io.WriteString(w, "finished")
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: first\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer app.Close()
	store, err := registry.Open(t.Context(), registry.InMemory)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	err = store.Register(t.Context(), registry.Registration{
		Source: registry.SourceAddress, Manifest: &capability.Manifest{Service: "example"}, Place: capability.Place{ProxyURL: "http://example", Workload: "example"},
	})
	if err != nil {
		t.Fatal(err)
	}
	log := make(logLines, 100)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- serveAPI(ctx, portal.Options{
			Registry: store, Resolve: map[string]string{"example": strings.TrimPrefix(app.URL, "http://")}, Log: slog.New(slog.NewJSONHandler(log, nil)),
		}, "127.0.0.1:0", "127.0.0.1:0")
	}()
	serving, metrics := log.until(t, "serving"), log.until(t, "serving metrics")
	for _, line := range []map[string]any{serving, metrics} {
		if flags, ok := line["development"].([]any); !ok || len(flags) != 1 || flags[0] != "resolve: Services are reached elsewhere: example" {
			t.Errorf("development settings are not said: %v", line)
		}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(address any, path string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address.(string)+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = response.Body.Close() })
		return response
	}
	if status := get(metrics["address"], "/metrics").StatusCode; status != http.StatusOK { //nolint:bodyclose // by get
		t.Errorf("metrics: %d", status)
	}
	if status := get(serving["address"], "/metrics").StatusCode; status != http.StatusNotFound { //nolint:bodyclose // by get
		t.Errorf("metrics are on --listen too: %d", status)
	}
	stream := bufio.NewReader(get(serving["address"], "/portal/app/example/events").Body) //nolint:bodyclose // by get
	if line, err := stream.ReadString('\n'); err != nil || line != "data: first\n" {
		t.Fatalf("%q %v", line, err)
	}
	slow := make(chan string, 1)
	go func() {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+serving["address"].(string)+"/portal/app/example/slow", nil)
		response, err := client.Do(r)
		if err != nil {
			slow <- err.Error()
			return
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			slow <- err.Error()
			return
		}
		slow <- string(body)
	}()
	<-began
	stop()
	if _, err := io.ReadAll(stream); err != nil {
		t.Errorf("the stream does not end well: %v", err)
	}
	close(release)
	if got := <-slow; got != "finished" {
		t.Errorf("a request under way: %s", got)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the API does not end")
	}
}
