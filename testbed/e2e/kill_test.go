package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// How much of the faults there is: a little with all tests, all of it with make chaos.
func chaos() bool { return os.Getenv("CHAOS") != "" }

// setting is a number from the environment, or the default.
func setting(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// seed is SEED, or one of the clock; a test says it, and takes it again to do the same.
func seed(t *testing.T) uint64 {
	t.Helper()
	n := uint64(setting(t, "SEED", int(time.Now().UnixNano()%1e9)))
	t.Logf("seed: SEED=%d does the same again", n)
	return n
}

// gate stands between an operator and the API server and ends the operator at a point of its work.
type gate struct {
	mu    sync.Mutex
	point *point
	seen  int // requests since the point was set
	where map[string]int
	loses func(*http.Request) bool
}

// point is a request of the operator, counted from when it was set.
type point struct {
	n      int
	writes bool // count only those that write
	after  bool // the API server has done it, and the operator has no answer yet
	goesOn bool // the answer comes through in the end
	act    func()
	fired  chan struct{} // closed once act is done
}

func (g *gate) set(p *point) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.point, g.seen = p, 0
}

// waits tells whether a point was not reached.
func (g *gate) waits(p *point) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.point == p
}

// drop takes a point back that was not reached; false when it was.
func (g *gate) drop(p *point) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.point != p {
		return false
	}
	g.point = nil
	return true
}

// take tells whether this request is the point, which is over with that.
func (g *gate) take(r *http.Request) *point {
	if r.URL.Query().Get("watch") == "true" || strings.Contains(r.URL.Path, "/watch/") || strings.Contains(r.URL.Path, "/leases") ||
		strings.Contains(r.URL.Path, "accessreviews") {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.loses != nil && g.loses(r) {
		return &point{after: true, act: func() {}, fired: make(chan struct{})}
	}
	p := g.point
	if p == nil || p.writes && (r.Method == http.MethodGet || r.URL.Query().Has("dryRun")) {
		return nil
	}
	if g.seen++; g.seen <= p.n {
		return nil
	}
	g.point = nil
	if g.where == nil {
		g.where = map[string]int{}
	}
	g.where[map[bool]string{true: "after ", false: "before "}[p.after]+what(r)]++
	return p
}

// what is a request without names.
func what(r *http.Request) string {
	verb := r.Method
	if r.URL.Query().Has("dryRun") {
		verb = "dry run"
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	at := slices.Index(parts, "namespaces")
	if at < 0 || at+2 >= len(parts) {
		return verb + " of the cluster"
	}
	kind := parts[at+2]
	if at+4 < len(parts) {
		kind += "/" + parts[at+4]
	}
	return verb + " " + kind
}

func (g *gate) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := g.take(r)
		if p == nil {
			next.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		if p.after {
			next.ServeHTTP(answer, r.WithContext(context.WithoutCancel(r.Context())))
		}
		p.act()
		close(p.fired)
		if !p.goesOn {
			panic(http.ErrAbortHandler)
		}
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()) // or the operator does not want it any more
	})
}

// TestFaultKilledOperator kills the operator (SIGKILL) again and again while addons are added, upgraded, changed and
// removed: before a request of its own or when that is done and not yet answered, by the count, and at any time. Each time
// all must come out as if it had not been killed.
func TestFaultKilledOperator(t *testing.T) {
	kills := setting(t, "KILLS", 20)
	g := &gate{}
	// A lease that nobody gives back would be waited for after each kill: leaders have tests of their own.
	h := openHouse(t, opening{args: []string{"--leader-elect=false"}, gate: g.wrap, within: time.Duration(kills)*20*time.Second + 4*time.Minute})
	w := newWorld(h, []string{"kill-a", "kill-b", "kill-c"}, seed(t))
	k := &killer{world: w, gate: g, when: map[string]int{}}
	start := time.Now()
	rounds := 0
	for k.done < kills {
		rounds++
		k.round(min(1+w.random.IntN(3), kills-k.done))
	}
	h.noWorkerIsLeft()
	t.Logf("%d kills in %d rounds and %s\nsteps: %s\nkilled: %s\nof these %s", k.done, rounds, time.Since(start).Round(time.Second),
		counts(w.steps), counts(k.when), counts(g.where))
}

// TestFaultLostAnswers has the API server do what the operator asks for, and cuts the connection before the answer, for a
// part of all its requests.
func TestFaultLostAnswers(t *testing.T) {
	rounds := 4
	if chaos() {
		rounds = 40
	}
	g := &gate{}
	h := openHouse(t, opening{gate: g.wrap, within: time.Duration(rounds)*time.Minute + 4*time.Minute})
	w := newWorld(h, []string{"lost-a", "lost-b", "lost-c"}, seed(t))
	lost := 0
	random := rand.New(rand.NewPCG(w.random.Uint64(), 1))
	for range rounds {
		g.setLoss(func(*http.Request) bool {
			loses := random.IntN(6) == 0
			if loses {
				lost++
			}
			return loses
		})
		for _, m := range w.members {
			t.Log(w.step(m))
		}
		w.eventually("answers were lost", func() bool {
			g.mu.Lock()
			defer g.mu.Unlock()
			return lost > 0
		})
		time.Sleep(time.Duration(w.random.IntN(4000)) * time.Millisecond)
		g.setLoss(nil)
		w.settle()
	}
	t.Logf("%d answers were lost in %d rounds; steps: %s", lost, rounds, counts(w.steps))
}

func (g *gate) setLoss(loses func(*http.Request) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.loses = loses
}

func counts(of map[string]int) string {
	var out []string
	for _, what := range slices.Sorted(maps.Keys(of)) {
		out = append(out, fmt.Sprintf("%s %d", what, of[what]))
	}
	return strings.Join(out, ", ")
}

type killer struct {
	*world
	gate *gate
	done int
	when map[string]int
}

// round has every addon take a step, kills the operator so many times in the course of it, and waits until all is well.
func (k *killer) round(kills int) {
	k.Helper()
	var steps []string
	points := make([]*point, kills)
	for i := range points {
		points[i] = k.newPoint()
	}
	// The first may come while the steps are taken, or while the addons are at rest, which they mostly were before.
	k.arm(points[0])
	for _, m := range k.members {
		steps = append(steps, k.step(m))
	}
	for i, p := range points {
		k.await(p)
		k.done++
		if i+1 < len(points) {
			k.arm(points[i+1])
		}
		k.restart()
	}
	k.Logf("kill %d: %s", k.done, strings.Join(steps, ", "))
	k.settle()
}

// newPoint is where the operator is killed next.
func (k *killer) newPoint() *point {
	p := &point{fired: make(chan struct{}), act: k.kill}
	switch k.random.IntN(5) {
	case 0: // at any time
		p.n = -1
	case 1:
		p.n = k.random.IntN(60)
	default:
		p.writes, p.n = true, k.random.IntN(12)
	}
	p.after = k.random.IntN(2) == 0
	return p
}

func (k *killer) arm(p *point) {
	if p.n >= 0 {
		k.gate.set(p)
		return
	}
	k.when["at any time"]++
	time.AfterFunc(time.Duration(k.random.IntN(2500))*time.Millisecond, func() {
		for !k.Operator.Running() && k.ctx.Err() == nil {
			time.Sleep(time.Millisecond) // it is about to be started again
		}
		p.act()
		close(p.fired)
	})
}

// await waits for the point, and takes the moment when all is done for one when the count is not reached before.
func (k *killer) await(p *point) {
	k.Helper()
	for {
		select {
		case <-p.fired:
			if p.n >= 0 {
				k.when["at a request"]++
			}
			return
		case <-k.ctx.Done():
			k.Fatal(k.ctx.Err())
		case <-time.After(500 * time.Millisecond):
		}
		if p.n < 0 || k.unsettled() != "" {
			continue
		}
		if k.gate.drop(p) {
			k.when["at rest"]++
			k.kill()
			return
		}
	}
}

func (k *killer) kill() {
	if err := k.Operator.Kill(); err != nil {
		k.Error(err)
	}
}

// restart starts the operator again, which may be killed before it serves.
func (k *killer) restart() {
	k.Helper()
	for k.Operator.Running() {
		time.Sleep(time.Millisecond) // the kill is about to be through
	}
	ctx, cancel := context.WithTimeout(k.ctx, time.Minute)
	defer cancel()
	if err := k.Operator.Start(ctx); err != nil && !strings.Contains(err.Error(), "signal: killed") {
		k.Fatal(err)
	}
}

// noWorkerIsLeft wants no render worker whose operator was killed.
func (h *house) noWorkerIsLeft() {
	h.Helper()
	h.eventually("the render workers of killed operators have ended", func() bool {
		return len(orphans(h)) == 0
	})
}

// orphans are processes of the product whose parent has ended.
func orphans(h *house) []string {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		h.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		exe, err := os.Readlink("/proc/" + e.Name() + "/exe")
		if err != nil || exe != h.Binary() {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		if f := strings.Fields(rest); len(f) > 1 && f[1] == "1" {
			out = append(out, e.Name())
		}
	}
	return out
}
