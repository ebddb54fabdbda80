package worker

import (
	"bufio"
	"context"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"zaentrum.io/zae/internal/chart"
)

// process is a worker as its pool sees it.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr *head
	has    map[string]bool // digests of charts it was given
	retire *time.Timer     // nil while it works for the first time

	got    bool                    // a job, whole
	killed atomic.Pointer[Overrun] // why the pool killed it, if it did
	ended  chan struct{}
}

// start starts a worker. Its channel ended is closed when it has ended and nothing of it is left.
func start(cmd *exec.Cmd) (*process, error) {
	w := &process{cmd: cmd, stderr: &head{}, has: map[string]bool{}, ended: make(chan struct{})}
	cmd.Env = []string{"GOMAXPROCS=2", "GOTRACEBACK=none"} // nothing of ours: no tokens, no cluster
	cmd.Dir = string(filepath.Separator)
	cmd.Stderr = w.stderr
	apart(cmd)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.in, w.out = in, bufio.NewReaderSize(out, 64<<10)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = cmd.Wait() // its state says how it ended
		close(w.ended)
	}()
	return w, nil
}

// end ends the process without a word.
func (w *process) end() {
	_ = w.cmd.Process.Kill() // fails when it has ended, which is as good
}

// answer has the process do a job. After an error the process is of no use any more.
func (w *process) answer(ctx context.Context, a *chart.Archive, q *request, wall time.Duration) (*response, error) {
	late := time.AfterFunc(wall, func() {
		w.killed.Store(&Overrun{What: "it took longer than " + wall.String(), Bound: boundTime, Again: true})
		w.end()
	})
	defer late.Stop()
	stop := context.AfterFunc(ctx, w.end)
	defer stop()
	if !w.has[q.Digest] {
		q.Archive = a.Bytes
	}
	w.got = false
	r, err := w.exchange(q)
	if err == nil && r.Need {
		q.Archive = a.Bytes
		r, err = w.exchange(q)
	}
	if err != nil {
		return nil, err
	}
	w.has[q.Digest] = true
	q.Archive = nil
	return r, nil
}

func (w *process) exchange(q *request) (*response, error) {
	frame, err := encode(q)
	if err != nil {
		return nil, err
	}
	if _, err := w.in.Write(frame); err != nil {
		return nil, err
	}
	w.got = true
	r := &response{}
	if err := receive(w.out, r); err != nil {
		return nil, err
	}
	return r, nil
}

// bury ends the process and says what of the job it died of; nil when that was not the job's doing.
func (w *process) bury() *Overrun {
	// A process that is going down by itself says more with its own exit status than after a kill.
	select {
	case <-w.ended:
	case <-time.After(time.Second):
		w.end()
		<-w.ended
	}
	if o := w.killed.Load(); o != nil {
		return o
	}
	if !w.got {
		return nil
	}
	state := w.cmd.ProcessState
	switch state.ExitCode() {
	case exitCPU:
		return &Overrun{What: "it needs more processor time than it may have", Bound: boundProcessor}
	case exitMemory:
		return tooMuchMemory()
	case exitGo:
		text := w.stderr.String()
		says := func(what string) bool { return strings.Contains(text, what) }
		switch {
		case slices.ContainsFunc(stackWords, says):
			return &Overrun{What: "it recurses without end", Bound: boundRecursion}
		case slices.ContainsFunc(memoryWords, says):
			return tooMuchMemory()
		}
		return &Overrun{What: "it crashed the renderer", Bound: boundCrash, Again: true}
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGKILL {
		return &Overrun{What: "the renderer was killed by the system, as one that needs too much memory is", Bound: boundKilled, Again: true, stray: true}
	}
	return nil
}

// tooMuchMemory is what a process ends with that holds too much, some of which may be from former jobs.
func tooMuchMemory() *Overrun {
	return &Overrun{What: "it needs more memory than it may have", Bound: boundMemory, stray: true}
}

// exitGo is the exit status of a Go program that crashed.
const exitGo = 2

// What the Go runtime says when it ends a program. Without memory it may also fail to start a thread.
var (
	stackWords  = []string{"stack exceeds", "stack overflow"}
	memoryWords = []string{"out of memory", "cannot allocate memory", "pthread_create failed", "newosproc", "failed to create new OS thread"}
)

// head keeps the beginning of what is written to it, and swallows the rest. It may hold text of a chart: it is
// searched for what the runtime says, and never shown.
type head struct {
	mu   sync.Mutex
	text []byte
}

const maxHead = 4 << 10

func (h *head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text = append(h.text, p[:min(len(p), maxHead-len(h.text))]...)
	return len(p), nil
}

func (h *head) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return string(h.text)
}
