// Command apiload says what the API costs where there are many addons: how long its answers take at a given rate and at
// most, with many event streams open, and its memory.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"zaentrum.io/zae/testbed"
	"zaentrum.io/zae/testbed/stack"
)

func main() {
	zae := flag.String("zae", "", "path of the zae binary")
	addons := flag.Int("addons", 1000, "addons that there are")
	streams := flag.Int("streams", 200, "event streams that are open")
	rate := flag.Int("rate", 50, "requests a second")
	lasts := flag.Duration("for", 30*time.Second, "how long each kind of request is made")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, *zae, *addons, *streams, *rate, *lasts)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "apiload:", err)
		os.Exit(1)
	}
}

const (
	namespace = "apiload"
	// secret is the value that each addon's secret input has.
	secret = "c4n4ry-apiload-value"
	charts = "/api/portal/addon-charts"
)

func run(ctx context.Context, zae string, n, streams, rate int, lasts time.Duration) (err error) {
	if zae == "" {
		return errors.New("-zae is missing: run make load-api")
	}
	o := testbed.Full()
	o.Progress = os.Stdout
	bed, err := testbed.Start(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bed.Stop()) }()
	s, err := stack.Start(ctx, stack.Options{
		Bed: bed, Zae: zae, Namespace: namespace, Progress: os.Stdout,
		APIArgs: []string{"--writes-per-second", "1000", "--write-burst", "1000", "--event-streams-per-caller", strconv.Itoa(streams)},
	})
	if err != nil {
		return err
	}
	if _, _, err := s.PushChart(ctx, "examples/example/1.2.0", "example", "1.2.0"); err != nil {
		return err
	}
	token, err := bed.Token("admin", "zae")
	if err != nil {
		return err
	}
	l := &load{stack: s, token: token, n: n, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	if err := l.create(ctx); err != nil {
		return err
	}
	held, err := testbed.PeakMemory(s.API.PID())
	if err != nil {
		return err
	}
	fmt.Printf("  memory of the API, peak       %d MiB\n", held>>20)
	closed, err := l.streams(ctx, streams)
	if err != nil {
		return err
	}
	for _, what := range []struct {
		name string
		path func(i int) string
	}{
		{"GET /api/portal/addons", func(int) string { return "/api/portal/addons" }},
		{"GET /api/portal/addon-charts/{name}", func(i int) string { return charts + "/" + name(i%n) }},
	} {
		paced, err := l.paced(ctx, what.path, rate, lasts)
		if err != nil {
			return err
		}
		fmt.Printf("%s\n  at %d requests a second      %s\n", what.name, rate, paced)
		most, perSecond, err := l.atMost(ctx, what.path, lasts/3)
		if err != nil {
			return err
		}
		fmt.Printf("  8 callers, one after another  %.0f requests a second, %s\n", perSecond, most)
	}
	told := l.told.Load()
	if err := closed(); err != nil {
		return err
	}
	fmt.Printf("event streams: %d open, %d events\n", streams, told)
	if held, err = testbed.PeakMemory(s.API.PID()); err != nil {
		return err
	}
	fmt.Printf("  memory of the API, peak       %d MiB\n", held>>20)
	return l.canary()
}

func name(i int) string { return fmt.Sprintf("load-%04d", i) }

type load struct {
	stack  *stack.Stack
	token  string
	n      int
	client *http.Client
	told   atomic.Int64
}

// call makes one request and reads its answer.
func (l *load) call(ctx context.Context, method, path, body string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, l.stack.URL+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+l.token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := l.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// create adds all addons, suspended, each with a secret of its own, and waits until the last one is planned.
func (l *load) create(ctx context.Context) error {
	start := time.Now()
	var took []time.Duration
	for i := range l.n {
		body := fmt.Sprintf(`{"name":%q,"chart":"oci://%s/charts/example","version":"1.2.0","secretValues":{"database.url":%q}}`, name(i), l.stack.Bed.Registry, secret)
		at := time.Now()
		status, answer, err := l.call(ctx, http.MethodPost, charts, body)
		if err != nil {
			return err
		}
		if status != http.StatusAccepted {
			return fmt.Errorf("POST %s: %d %s", name(i), status, answer)
		}
		took = append(took, time.Since(at))
	}
	fmt.Printf("%d addons created in %.0f s; POST %s\n", l.n, time.Since(start).Seconds(), spread(took))
	for {
		_, answer, err := l.call(ctx, http.MethodGet, "/api/portal/addons", "")
		if err != nil {
			return err
		}
		if n := bytes.Count(answer, []byte(`"phase":"Plan`)); n == l.n {
			break
		}
		select {
		case <-time.After(2 * time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	fmt.Printf("all planned after %.0f s\n", time.Since(start).Seconds())
	return nil
}

// streams opens event streams and waits for the first event of each. What it answers with closes them, and tells whether
// one had ended before.
func (l *load) streams(ctx context.Context, n int) (func() error, error) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	var ended atomic.Int64
	first := make(chan error, n)
	start := time.Now()
	for i := range n {
		running.Go(func() {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.stack.URL+charts+"/"+name(i%l.n)+"/events", nil)
			if err != nil {
				first <- err
				return
			}
			req.Header.Set("Authorization", "Bearer "+l.token)
			resp, err := (&http.Client{}).Do(req)
			if err != nil {
				first <- err
				return
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				first <- errors.New(resp.Status)
				return
			}
			lines, greeted := bufio.NewScanner(resp.Body), false
			lines.Buffer(nil, 4<<20)
			for lines.Scan() {
				if !strings.HasPrefix(lines.Text(), "data:") {
					continue
				}
				l.told.Add(1)
				if !greeted {
					greeted = true
					first <- nil
				}
			}
			if ctx.Err() == nil {
				ended.Add(1)
			}
			if !greeted {
				first <- errors.New("a stream ended before its first event")
			}
		})
	}
	for range n {
		if err := <-first; err != nil {
			cancel()
			return nil, err
		}
	}
	fmt.Printf("%d event streams open after %.1f s\n", n, time.Since(start).Seconds())
	return func() error {
		early := ended.Load()
		cancel()
		running.Wait()
		if early > 0 {
			return fmt.Errorf("%d event streams ended by themselves", early)
		}
		return nil
	}, nil
}

// paced makes requests at a rate, however long the answers take: a late answer holds up no request after it.
func (l *load) paced(ctx context.Context, path func(int) string, rate int, lasts time.Duration) (string, error) {
	total := int(lasts.Seconds() * float64(rate))
	took := make([]time.Duration, total)
	errs := make(chan error, total)
	var running sync.WaitGroup
	ticker := time.NewTicker(time.Second / time.Duration(rate))
	defer ticker.Stop()
	for i := range total {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return "", ctx.Err()
		}
		running.Go(func() {
			at := time.Now()
			status, _, err := l.call(ctx, http.MethodGet, path(i), "")
			took[i] = time.Since(at)
			if err == nil && status != http.StatusOK {
				err = fmt.Errorf("GET %s: %d", path(i), status)
			}
			if err != nil {
				errs <- err
			}
		})
	}
	running.Wait()
	close(errs)
	return spread(took), <-errs
}

// atMost has eight callers make requests one after another.
func (l *load) atMost(ctx context.Context, path func(int) string, lasts time.Duration) (string, float64, error) {
	start := time.Now()
	var mu sync.Mutex
	var took []time.Duration
	var failed error
	var running sync.WaitGroup
	for w := range 8 {
		running.Go(func() {
			for i := w; time.Since(start) < lasts && ctx.Err() == nil; i += 8 {
				at := time.Now()
				status, _, err := l.call(ctx, http.MethodGet, path(i), "")
				mu.Lock()
				took = append(took, time.Since(at))
				if err == nil && status != http.StatusOK {
					err = fmt.Errorf("GET %s: %d", path(i), status)
				}
				if err != nil {
					failed = err
				}
				mu.Unlock()
			}
		})
	}
	running.Wait()
	return spread(took), float64(len(took)) / time.Since(start).Seconds(), failed
}

// spread tells how long things took.
func spread(took []time.Duration) string {
	slices.Sort(took)
	at := func(q float64) time.Duration {
		return took[min(int(q*float64(len(took))), len(took)-1)].Round(100 * time.Microsecond)
	}
	return fmt.Sprintf("p50 %s, p99 %s, longest %s, of %d", at(0.5), at(0.99), at(1), len(took))
}

// canary looks for the secret inputs' value in what the API said and wrote.
func (l *load) canary() error {
	log, err := os.ReadFile(l.stack.API.Log())
	if err != nil {
		return err
	}
	_, list, err := l.call(context.Background(), http.MethodGet, "/api/portal/addons", "")
	if err != nil {
		return err
	}
	_, one, err := l.call(context.Background(), http.MethodGet, charts+"/"+name(0), "")
	if err != nil {
		return err
	}
	var doc struct{ SecretKeys []string }
	if err := json.Unmarshal(one, &doc); err != nil || len(doc.SecretKeys) != 1 {
		return fmt.Errorf("not the addon that was made: %s", one)
	}
	for _, text := range [][]byte{log, list, one} {
		if bytes.Contains(text, []byte(secret)) {
			return errors.New("the secret input was shown")
		}
	}
	return nil
}
