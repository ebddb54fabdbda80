package testbed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"zaentrum.io/zae/testbed/internal/server"
)

// stopGrace is how long a part may take to end before it is killed.
const stopGrace = 10 * time.Second

// Process is one named part of a Bed, which a test can take away and bring back: a program of the control plane, or a
// server inside this process (registry and OpenID provider). Its methods may be called from several goroutines.
type Process struct {
	name string
	log  string
	part part
}

// part is what a Process does it with.
type part interface {
	start(context.Context) error
	stop(grace time.Duration) error
	kill() error
	pause() error
	resume() error
	running() bool
	pid() int
}

// Name is what [Bed.Process] knows it by.
func (p *Process) Name() string { return p.name }

// Log is the path of the part's log file.
func (p *Process) Log() string { return p.log }

// Start starts the part again after Stop or Kill, with the same address and data, and returns once it serves. A running
// one is left alone.
func (p *Process) Start(ctx context.Context) error { return p.wrap("start", p.part.start(ctx)) }

// Stop ends the part in order, and kills it when that takes more than 10 seconds. Stopping a stopped part does nothing.
func (p *Process) Stop() error { return p.wrap("stop", p.part.stop(stopGrace)) }

// Kill ends the part at once (SIGKILL) and waits until it is gone.
func (p *Process) Kill() error { return p.wrap("kill", p.part.kill()) }

// Pause freezes the part (SIGSTOP): connections stay open, and nothing answers.
func (p *Process) Pause() error { return p.wrap("pause", p.part.pause()) }

// Resume ends a Pause.
func (p *Process) Resume() error { return p.wrap("resume", p.part.resume()) }

// Running says whether the part runs; a paused one does.
func (p *Process) Running() bool { return p.part.running() }

// PID is the process id, or 0 when the part does not run or is a server inside this process.
func (p *Process) PID() int { return p.part.pid() }

func (p *Process) wrap(verb string, err error) error {
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, p.name, err)
	}
	return nil
}

var errNotRunning = errors.New("not running")

// child is a part that is a program.
type child struct {
	spawner *spawner
	path    string
	args    []string
	env     []string // beside this process' own
	dir     string
	log     string
	ready   func(context.Context) error // one try; nil: ready once started

	op sync.Mutex // held by start and stop as a whole

	mu   sync.Mutex
	cmd  *exec.Cmd     // nil while not running
	done chan struct{} // closed when cmd was waited for
	exit error         // of the last run; valid once done is closed
}

func (c *child) start(ctx context.Context) error {
	c.op.Lock()
	defer c.op.Unlock()
	if c.running() {
		return nil
	}
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own copy
	from, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	cmd := exec.Command(c.path, c.args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.dir, log, log
	cmd.Env = append(os.Environ(), c.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setpgid:   true,            // an interrupt at the terminal is for us: children end in order
		Pdeathsig: syscall.SIGKILL, // and they never outlive us
	}
	if err := c.spawner.start(cmd); err != nil {
		return err
	}
	done := make(chan struct{})
	c.mu.Lock()
	c.cmd, c.done, c.exit = cmd, done, nil
	c.mu.Unlock()
	go func() {
		err := cmd.Wait()
		c.mu.Lock()
		c.cmd, c.exit = nil, err
		c.mu.Unlock()
		close(done)
	}()
	if err := c.waitReady(ctx, done, from); err != nil {
		return errors.Join(err, c.end(syscall.SIGKILL, 0))
	}
	return nil
}

// waitReady polls until the program serves, ends, or ctx is done.
func (c *child) waitReady(ctx context.Context, done chan struct{}, from int64) error {
	if c.ready == nil {
		return nil
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		try, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := c.ready(try)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-done:
			return &exitError{log: c.log, tail: tail(c.log, from), err: c.exit}
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w (%w), see %s", ctx.Err(), err, c.log)
		case <-tick.C:
		}
	}
}

func (c *child) stop(grace time.Duration) error {
	c.op.Lock()
	defer c.op.Unlock()
	return c.end(syscall.SIGTERM, grace)
}

func (c *child) kill() error {
	// Not after a start or stop in progress: a kill is for now.
	return c.end(syscall.SIGKILL, 0)
}

// end signals the program and waits until it is gone, with a SIGKILL after grace.
func (c *child) end(sig syscall.Signal, grace time.Duration) error {
	c.mu.Lock()
	cmd, done := c.cmd, c.done
	c.mu.Unlock()
	if cmd == nil {
		return nil
	}
	if err := cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	if sig != syscall.SIGKILL {
		_ = cmd.Process.Signal(syscall.SIGCONT) // a paused one would never see the first; one that has ended needs none
		select {
		case <-done:
			return nil
		case <-time.After(grace):
			if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
				return err
			}
		}
	}
	<-done
	return nil
}

func (c *child) pause() error  { return c.signal(syscall.SIGSTOP) }
func (c *child) resume() error { return c.signal(syscall.SIGCONT) }

func (c *child) signal(sig syscall.Signal) error {
	c.mu.Lock()
	cmd := c.cmd
	c.mu.Unlock()
	if cmd == nil {
		return errNotRunning
	}
	return cmd.Process.Signal(sig)
}

func (c *child) running() bool { return c.pid() != 0 }

func (c *child) pid() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cmd == nil {
		return 0
	}
	return c.cmd.Process.Pid
}

// exitError is a program that ended before it was ready.
type exitError struct {
	log  string
	tail []byte
	err  error
}

func (e *exitError) Error() string {
	status := "exit status 0"
	if e.err != nil {
		status = e.err.Error()
	}
	return fmt.Sprintf("ended before it was ready (%s), see %s:\n%s", status, e.log, e.tail)
}

// addressInUse says whether another process took the program's port between the choice and the use.
func (e *exitError) addressInUse() bool {
	return bytes.Contains(e.tail, []byte("address already in use"))
}

// tail is the end of what was logged after from.
func tail(path string, from int64) []byte {
	const most = 4 << 10
	data, err := os.ReadFile(path)
	if err != nil || int64(len(data)) < from {
		return nil
	}
	data = data[from:]
	if len(data) > most {
		data = data[len(data)-most:]
	}
	return bytes.TrimSpace(data)
}

// spawner starts programs from one OS thread that lives as long as they do: the kernel sends the parent-death signal
// when the thread that forked ends, and Go ends threads as it likes.
type spawner struct {
	requests chan func()
	quit     chan struct{}
	ended    chan struct{}
}

func newSpawner() *spawner {
	s := &spawner{requests: make(chan func()), quit: make(chan struct{}), ended: make(chan struct{})}
	go s.run()
	return s
}

func (s *spawner) run() {
	defer close(s.ended)
	runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
	for {
		select {
		case f := <-s.requests:
			f()
		case <-s.quit:
			return
		}
	}
}

func (s *spawner) start(cmd *exec.Cmd) error {
	err := make(chan error, 1)
	select {
	case s.requests <- func() { err <- cmd.Start() }:
		return <-err
	case <-s.ended:
		return errors.New("the testbed was stopped")
	}
}

// stop ends the thread, and with it every child that is left.
func (s *spawner) stop() {
	close(s.quit)
	<-s.ended
}

// inProcess is a part that is a server in this process.
type inProcess struct{ *server.Server }

func (p inProcess) start(context.Context) error    { return p.Start() }
func (p inProcess) stop(grace time.Duration) error { return p.Stop(grace) }
func (p inProcess) kill() error                    { return p.Kill() }
func (p inProcess) running() bool                  { return p.Running() }
func (p inProcess) pid() int                       { return 0 }

func (p inProcess) pause() error {
	p.Pause()
	return nil
}

func (p inProcess) resume() error {
	p.Resume()
	return nil
}
