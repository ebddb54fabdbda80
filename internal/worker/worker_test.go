package worker_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/worker"
)

const examples = "../../examples/"

func TestAWorkerSaysWhatThisProcessWouldSay(t *testing.T) {
	pool, direct := newPool(t, worker.Options{}), &worker.Direct{}
	for _, dir := range []string{"example/1.2.0", "example/1.3.0", "tiny", "refused/violation", "hostile/fail-secret", "hostile/functions"} {
		a, j := archive(t, examples+dir), job(t, "example")
		for range 2 { // cold and warm
			c, err := pool.Inspect(t.Context(), a)
			if err != nil {
				t.Fatal(err)
			}
			want, err := direct.Inspect(t.Context(), a)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, c); d != "" {
				t.Errorf("%s: what is known of the chart differs: %s", dir, d)
			}
			got, err := pool.Render(t.Context(), a, j)
			if err != nil {
				t.Fatal(err)
			}
			rendered, err := direct.Render(t.Context(), a, j)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(rendered, got); d != "" {
				t.Errorf("%s: what is rendered differs: %s", dir, d)
			}
		}
	}
}

// TestEveryHostileChartEndsAlone renders each chart that means harm, and after it a good one in the same pool.
func TestEveryHostileChartEndsAlone(t *testing.T) {
	for dir, want := range map[string]struct {
		inspect, render string // what must be said
		objects         int
		warnings        []string
	}{
		"aliases":            {render: "templates/config.yaml: line 6 of its output: aliases expand to too much"},
		"depth":              {render: "templates/config.yaml: line 6 of its output: nested deeper than 100 levels"},
		"fail-location":      {render: "template error at fail-location/templates/config.yaml"},
		"fail-secret":        {render: "template error at fail-secret/templates/config.yaml:1:4"},
		"functions":          {objects: 2},
		"items":              {render: "the limit is 100000"},
		"memory":             {render: "needs more memory than it may have"},
		"memory-slowly":      {render: "needs more memory than it may have"},
		"objects":            {render: "the templates render 50001 objects, the limit is 500"},
		"output":             {render: "bytes, the limit is"},
		"random":             {objects: 3, warnings: []string{"Secret/random data.key", "now"}},
		"recursion-include":  {render: "template error at recursion-include/templates/config.yaml:6:11"},
		"recursion-template": {render: "template error at recursion-template/templates/_helpers.tpl"},
		"recursion-tpl":      {render: "than it may have"},
		"schema-cycle":       {render: "schema"},
		"schema-pattern":     {render: "schema"},
		"schema-remote":      {render: "schema"},
		"secret-in-names":    {objects: 3},
		"secret-in-yaml":     {render: "templates/config.yaml"},
		"time":               {render: "needs more processor time than it may have"},
		"values-aliases":     {inspect: "aliases expand to too much"},
	} {
		t.Run(dir, func(t *testing.T) {
			pool := newPool(t, worker.Options{Max: 1, Limits: worker.Limits{
				CPU: 2 * time.Second * time.Duration(worker.Slow()), Wall: time.Minute,
			}})
			start := time.Now()
			said, got := tryAll(t, pool, archive(t, examples+"hostile/"+dir))
			took := time.Since(start)
			t.Logf("%s after %s", said, took.Round(time.Millisecond))
			if strings.Contains(strings.ToLower(said), canary) {
				t.Errorf("a secret shows: %s", said)
			}
			if !strings.Contains(said, want.inspect+want.render) || (said == "") != (want.inspect+want.render == "") {
				t.Errorf("got %q, want %q", said, want.inspect+want.render)
			}
			if got != nil {
				if len(got.Objects) != want.objects {
					t.Errorf("%d objects, want %d", len(got.Objects), want.objects)
				}
				all := strings.Join(got.Warnings, "\n")
				for _, w := range want.warnings {
					if !strings.Contains(all, w) {
						t.Errorf("no warning of %s in: %s", w, all)
					}
				}
			}
			if said, _ := tryAll(t, pool, archive(t, examples+"example/1.2.0")); said != "" {
				t.Errorf("the next chart cannot be rendered: %s", said)
			}
		})
	}
	entries, err := os.ReadDir(examples + "hostile")
	if err != nil || len(entries) < 20 {
		t.Fatalf("%d charts, %v", len(entries), err)
	}
}

// tryAll inspects and renders, and answers with what was said against it.
func tryAll(t *testing.T, pool *worker.Pool, a *chart.Archive) (string, *worker.Result) {
	t.Helper()
	if _, err := pool.Inspect(t.Context(), a); err != nil {
		return fault.From(err).Message, nil
	}
	r, err := pool.Render(t.Context(), a, job(t, "example"))
	var over *worker.Overrun
	switch {
	case errors.As(err, &over):
		return over.What, nil
	case err != nil:
		t.Fatal(err)
	}
	return strings.Join(r.ValuesErrors, "\n"), r
}

// TestAWorkerThatHoldsMuchDoesNoOtherJob renders what comes close to the bound, and then something else.
func TestAWorkerThatHoldsMuchDoesNoOtherJob(t *testing.T) {
	pool := newPool(t, worker.Options{Max: 1, Limits: worker.Limits{CPU: time.Minute, Wall: time.Minute}})
	good := archive(t, examples+"example/1.2.0")
	if said, _ := tryAll(t, pool, good); said != "" {
		t.Fatal(said)
	}
	before := worker.Processes(pool)
	if said, _ := tryAll(t, pool, archive(t, examples+"hostile/items")); said == "" {
		t.Fatal("it was accepted")
	}
	if said, _ := tryAll(t, pool, good); said != "" {
		t.Fatal(said)
	}
	if after := worker.Processes(pool); slices.Equal(before, after) {
		t.Errorf("the process lives on: %v", after)
	}
}

func TestWhatWaitsIsEndedByTheClock(t *testing.T) {
	pool := newPool(t, worker.Options{Limits: worker.Limits{CPU: time.Hour, Wall: 300 * time.Millisecond}})
	if said, _ := tryAll(t, pool, archive(t, examples+"hostile/time")); said != "it took longer than 300ms" {
		t.Error(said)
	}
}

func TestAnOverrunIsNotTriedAgainAtOnce(t *testing.T) {
	now := time.Unix(1e9, 0)
	var mu sync.Mutex
	pool := newPool(t, worker.Options{Limits: worker.Limits{CPU: 300 * time.Millisecond}, Now: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}})
	a := archive(t, examples+"hostile/time")
	tries := func(want int64) {
		t.Helper()
		if said, _ := tryAll(t, pool, a); !strings.Contains(said, "processor time") {
			t.Fatal(said)
		}
		if s := pool.Stats(); s.Overruns["processor"] != want || s.Working != 0 || s.Waiting != 0 {
			t.Errorf("after %d tries: %+v", want, s)
		}
	}
	tries(1)
	tries(1) // it is remembered
	mu.Lock()
	now = now.Add(time.Hour)
	mu.Unlock()
	tries(2)
}

func TestAnotherChartIsRenderedMeanwhile(t *testing.T) {
	pool := newPool(t, worker.Options{Max: 2})
	bad, good := archive(t, examples+"hostile/time"), archive(t, examples+"example/1.2.0")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := pool.Render(ctx, bad, job(t, "time"))
		done <- err
	}()
	for range 20 {
		if said, _ := tryAll(t, pool, good); said != "" {
			t.Fatal(said)
		}
	}
	select {
	case err := <-done:
		t.Fatalf("the hostile chart was done first: %v", err)
	default:
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestAKilledWorkerIsReplaced(t *testing.T) {
	pool := newPool(t, worker.Options{Max: 1})
	a := archive(t, examples+"example/1.2.0")
	for i := range 3 {
		if said, _ := tryAll(t, pool, a); said != "" {
			t.Fatalf("after %d kills: %s", i, said)
		}
		for _, pid := range worker.Processes(pool) {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	if s := pool.Stats(); s.Started < 3 || s.Jobs < 4 || len(s.Overruns) != 0 || s.Max != 1 {
		t.Errorf("three processes were killed between jobs, counted as %+v", s)
	}
}

func TestAnIdleWorkerEnds(t *testing.T) {
	pool := newPool(t, worker.Options{Idle: 50 * time.Millisecond})
	if said, _ := tryAll(t, pool, archive(t, examples+"example/1.2.0")); said != "" {
		t.Fatal(said)
	}
	for deadline := time.Now().Add(10 * time.Second); len(worker.Processes(pool)) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d processes are left", len(worker.Processes(pool)))
		}
	}
}

func TestAWorkerKnowsNothingOfItsCaller(t *testing.T) {
	t.Setenv("ZAE_TOKEN", canary)
	pool := newPool(t, worker.Options{Max: 1})
	if said, _ := tryAll(t, pool, archive(t, examples+"example/1.2.0")); said != "" {
		t.Fatal(said)
	}
	for _, pid := range worker.Processes(pool) {
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Split(strings.TrimRight(string(env), "\x00"), "\x00"); len(got) != 2 {
			t.Errorf("its environment is %q", got)
		}
	}
}

func TestAProgramThatIsNoWorker(t *testing.T) {
	for program, want := range map[string]string{"/bin/false": "did not answer", "/bin/echo": "did not answer", "/nowhere": "cannot be started"} {
		pool := newPool(t, worker.Options{Program: program})
		_, err := pool.Inspect(t.Context(), archive(t, examples+"tiny"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", program, err)
		}
	}
}

func TestAClosedPool(t *testing.T) {
	pool := newPool(t, worker.Options{})
	if err := pool.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Inspect(t.Context(), archive(t, examples+"tiny")); err == nil || !strings.Contains(err.Error(), "ending") {
		t.Errorf("got %v", err)
	}
}
