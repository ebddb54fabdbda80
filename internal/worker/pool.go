package worker

import (
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"time"

	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/render"
)

// Options configure a Pool. The zero value of a field is its default.
type Options struct {
	// Program is the file to run as a worker, this very program by default. It must call Serve when Requested
	// says so.
	Program string
	// Max is how many processes work at the same time, 2 by default. Who comes later waits its turn.
	Max int
	// Idle is how long a process without work is kept, a minute by default: an addon of which nothing changes
	// is not rendered, and a process that is not needed need not be there.
	Idle   time.Duration
	Limits Limits
	// Now is the clock by which refusals age; nil is time.Now.
	Now func() time.Time
}

const (
	defaultMax  = 2
	defaultIdle = time.Minute

	// maxKnown and maxKnownBytes bound what is remembered of charts and of jobs, each.
	maxKnown      = 1024
	maxKnownBytes = 16 << 20
	// overrunAge is how long an overrun is answered without another try: long enough that a hostile chart
	// costs next to nothing, short enough that a larger bound or a new program shows.
	overrunAge = 10 * time.Minute
)

// Pool runs jobs in worker processes. It is safe for use by several goroutines.
type Pool struct {
	o     Options
	slots chan struct{}

	mu     sync.Mutex
	live   map[*process]bool
	idle   []*process // the one used last is at the end
	closed bool
	counts Stats
	all    sync.WaitGroup

	inspected memo[*Chart]
	checked   memo[told] // of jobs that were rendered twice
	overruns  memo[overrun]
}

// told is what is found out about a job once.
type told struct {
	warnings   []string
	dependence *Dependence
}

func (t told) size() int {
	n := textSize(t.warnings)
	if d := t.dependence; d != nil {
		n += textSize(d.Texts) + textSize(d.Blind) + 8*len(d.Numbers)
		for path, text := range d.Others {
			n += len(path) + len(text)
		}
	}
	return n
}

type overrun struct {
	err *Overrun
	at  time.Time
}

// NewPool makes a pool. It starts no process before there is work. Close it when it is no longer needed.
func NewPool(o Options) (*Pool, error) {
	if o.Program == "" {
		var err error
		if o.Program, err = thisProgram(); err != nil {
			return nil, fault.New(fault.Internal, "render worker: this program's own file cannot be found").Because(err)
		}
	}
	if o.Max <= 0 {
		o.Max = defaultMax
	}
	if o.Idle <= 0 {
		o.Idle = defaultIdle
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Limits = o.Limits.withDefaults()
	return &Pool{o: o, slots: make(chan struct{}, o.Max), live: map[*process]bool{}, counts: Stats{Overruns: map[string]int64{}}}, nil
}

// thisProgram is the file that runs, also when another one has taken its place in the directory since.
func thisProgram() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}

// Close ends all workers and waits for them. Jobs under way fail.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	for w := range p.live {
		w.end()
	}
	for _, w := range p.idle {
		w.retire.Stop()
	}
	p.idle = nil
	p.mu.Unlock()
	p.all.Wait()
	return nil
}

// Inspect loads a chart and reads its schema. Faults are of the code Chart; a chart that needs too much is
// an *Overrun.
func (p *Pool) Inspect(ctx context.Context, a *chart.Archive) (*Chart, error) {
	if c, ok := p.inspected.get(a.Digest); ok && a.Digest != "" {
		return c, nil
	}
	r, err := p.ask(ctx, a, &request{Digest: a.Digest}, a.Digest)
	if err != nil {
		return nil, err
	}
	if r.Chart == nil {
		return nil, errBroken
	}
	p.inspected.put(a.Digest, r.Chart, r.Chart.weight())
	return r.Chart, nil
}

// Render merges the values, validates them and renders the chart: twice when this chart has not been rendered
// with these values yet, to find out what differs each time, and what depends on secrets where that is asked for. A chart that needs too much is an *Overrun.
func (p *Pool) Render(ctx context.Context, a *chart.Archive, j Job) (*Result, error) {
	text, err := sorted.Marshal(j)
	if err != nil {
		return nil, fault.New(fault.Invalid, "the values cannot be handed to the renderer").Because(err)
	}
	q := &request{Digest: a.Digest, Job: text}
	sum := sha256.Sum256(append([]byte(a.Digest+"\x00"), text...))
	key := string(sum[:]) // the same for jobs that come to the same
	before, known := p.checked.get(key)
	q.Twice = !known
	r, err := p.ask(ctx, a, q, key)
	if err != nil {
		return nil, err
	}
	if r.Result == nil {
		return nil, errBroken
	}
	if known {
		r.Result.Warnings, r.Result.Dependence = slices.Clone(before.warnings), before.dependence
	} else {
		first := told{slices.Clone(r.Result.Warnings), r.Result.Dependence}
		p.checked.put(key, first, first.size())
	}
	return r.Result, nil
}

// HelmLint runs Helm's own lint with values that Render has accepted, on the chart as render.UnpackForHelm left it at
// root. A chart that needs too much is an *Overrun.
func (p *Pool) HelmLint(ctx context.Context, a *chart.Archive, j Job, root string) ([]render.HelmFinding, error) {
	text, err := sorted.Marshal(j)
	if err != nil {
		return nil, fault.New(fault.Invalid, "the values cannot be handed to the renderer").Because(err)
	}
	r, err := p.ask(ctx, a, &request{Digest: a.Digest, Job: text, Lint: root}, "")
	if err != nil {
		return nil, err
	}
	if r.Lint == nil {
		return nil, errBroken
	}
	return r.Lint.Findings, nil
}

var (
	errBroken = fault.New(fault.Internal, "render worker: it did not answer in its language")
	errClosed = fault.New(fault.Internal, "render worker: the program is ending")
)

// ask has a worker answer. Key names the work, to remember that it is too much.
func (p *Pool) ask(ctx context.Context, a *chart.Archive, q *request, key string) (*response, error) {
	if o, ok := p.overruns.get(key); ok && p.o.Now().Sub(o.at) < overrunAge {
		return nil, o.err
	}
	p.counted(func(s *Stats) { s.Waiting++ })
	select {
	case p.slots <- struct{}{}:
		p.counted(func(s *Stats) { s.Waiting--; s.Working++ })
	case <-ctx.Done():
		p.counted(func(s *Stats) { s.Waiting-- })
		return nil, ctx.Err()
	}
	defer func() { <-p.slots }()
	r, err := p.work(ctx, a, q)
	var over *Overrun
	errors.As(err, &over)
	p.counted(func(s *Stats) {
		s.Working--
		s.Jobs++
		if over != nil {
			s.Overruns[over.Bound]++
		}
	})
	if over != nil && !over.Again && key != "" {
		p.overruns.put(key, overrun{over, p.o.Now()}, 256)
	}
	if err == nil && r.Fault != nil {
		return nil, r.Fault.fault()
	}
	return r, err
}

// work does one job in one process. When a process that had done others before was found dead, or ended for
// something that these may have brought about, the job is done again in a new one.
func (p *Pool) work(ctx context.Context, a *chart.Archive, q *request) (*response, error) {
	for again := false; ; again = true {
		w, fresh, err := p.take(again)
		if err != nil {
			return nil, err
		}
		r, err := w.answer(ctx, a, q, p.o.Limits.Wall)
		if err == nil {
			p.put(w, r.Spent)
			return r, nil
		}
		dead := w.bury()
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !fresh && (dead == nil || dead.stray):
			continue
		case dead == nil:
			return nil, errBroken
		}
		return nil, dead
	}
}

// take is a warm process, or a new one, or, when it must be, surely a new one.
func (p *Pool) take(mustBeNew bool) (w *process, fresh bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, false, errClosed
	}
	if n := len(p.idle); n > 0 && !mustBeNew {
		w, p.idle = p.idle[n-1], p.idle[:n-1]
		w.retire.Stop()
		return w, false, nil
	}
	w, err = start(exec.Command(p.o.Program, p.o.Limits.args()...)) //nolint:gosec,noctx // this program; it ends with the pool
	if err != nil {
		return nil, false, fault.New(fault.Internal, "render worker: it cannot be started").Because(err)
	}
	p.live[w] = true
	p.counts.Started++
	p.all.Go(func() {
		<-w.ended
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.live, w)
	})
	return w, true, nil
}

// put keeps a process warm for the next job, unless it is spent.
func (p *Pool) put(w *process, spent bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || spent {
		w.end()
		return
	}
	w.retire = time.AfterFunc(p.o.Idle, func() { p.dismiss(w) })
	p.idle = append(p.idle, w)
}

// dismiss ends a process that nobody needed for long.
func (p *Pool) dismiss(w *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.idle, w); i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
		w.end()
	}
}

// Stats count what a Pool did since it was made.
type Stats struct {
	// Jobs were given to a process and came to an end. What is remembered of former ones is no job.
	Jobs int64
	// Overruns are the jobs that needed too much, by bound.
	Overruns map[string]int64
	// Started counts processes: one that ends for whatever reason is started anew when it is needed.
	Started int64

	// Processes is how many there are now, Working how many jobs they do, and Waiting how many jobs wait for a
	// turn. Max is how many work at the same time.
	Processes, Working, Waiting, Max int64
}

// Stats answers at once.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.counts
	s.Overruns = maps.Clone(s.Overruns)
	s.Processes, s.Max = int64(len(p.live)), int64(p.o.Max)
	return s
}

func (p *Pool) counted(change func(*Stats)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.counts)
}

func textSize(list []string) int {
	n := 0
	for _, t := range list {
		n += 16 + len(t)
	}
	return n
}

// memo remembers, bounded in number and bytes. The zero value is empty.
type memo[T any] struct {
	mu    sync.Mutex
	held  map[string]T
	bytes int
}

func (m *memo[T]) get(key string) (T, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.held[key]
	return v, ok
}

// put remembers v. At a bound all is forgotten, which costs one job each.
func (m *memo[T]) put(key string, v T, bytes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held == nil || len(m.held) >= maxKnown || m.bytes+bytes > maxKnownBytes {
		m.held, m.bytes = make(map[string]T), 0
	}
	m.held[key] = v
	m.bytes += bytes
}
