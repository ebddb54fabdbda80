// Package postgrestest gives tests real PostgreSQL servers, from Debian's package: on a free port of the loopback
// interface, each with a data directory of its own, and ended by the test program. It is never part of the product.
package postgrestest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Password is every server's superuser's. Tests look for it where no password may be.
const Password = "c4nary-p@ss w%rd"

const (
	superuser    = "zae"
	startTimeout = time.Minute
	stopTimeout  = 30 * time.Second
)

// Server is one PostgreSQL server.
type Server struct {
	bin, dir string
	port     int
	as       *syscall.Credential // nil: who runs the tests

	mu       sync.Mutex
	process  *process
	database int
}

// process is a postgres that runs.
type process struct {
	cmd  *exec.Cmd
	log  *bytes.Buffer
	done chan struct{} // closed when it has ended
}

var shared struct {
	sync.Mutex
	server *Server
	err    error
}

// URL is the address of a new, empty database on the server that the tests of a package share. It is started for the
// first test that asks; a test that asks is skipped with -short.
func URL(tb testing.TB) string {
	tb.Helper()
	need(tb)
	shared.Lock()
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = start()
	}
	server, err := shared.server, shared.err
	shared.Unlock()
	if err != nil {
		tb.Fatal(err)
	}
	return server.URL(tb)
}

// Start starts a server for one test, which may stop it; it ends with the test.
func Start(tb testing.TB) *Server {
	tb.Helper()
	need(tb)
	s, err := start()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.remove(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// Run runs the tests, ends the shared server if there is one, and answers with the exit status. It is for a TestMain.
func Run(m *testing.M) int {
	code := m.Run()
	shared.Lock()
	defer shared.Unlock()
	if shared.server != nil {
		if err := shared.server.remove(); err != nil {
			fmt.Fprintln(os.Stderr, "end PostgreSQL:", err)
			code = max(code, 1)
		}
	}
	return code
}

func need(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("needs PostgreSQL: left out with -short")
	}
}

// URL is the address of a new, empty database on the server.
func (s *Server) URL(tb testing.TB) string {
	tb.Helper()
	s.mu.Lock()
	s.database++
	name := fmt.Sprintf("test%d", s.database)
	s.mu.Unlock()
	// Text sorted by a language's rules, not by bytes, as many servers have it.
	s.Do(tb, "CREATE DATABASE "+name)
	return s.address(name)
}

// Do runs one statement as the superuser, in the server's own database.
func (s *Server) Do(tb testing.TB, statement string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), startTimeout)
	defer cancel()
	c, err := pgx.Connect(ctx, s.address("postgres"))
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = c.Close(ctx) }()
	if _, err := c.Exec(ctx, statement); err != nil {
		tb.Fatal(err)
	}
}

func (s *Server) address(database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(superuser, Password),
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)), Path: "/" + database, RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Stop ends the server as its package does: connections are cut, and what was committed is written.
func (s *Server) Stop(tb testing.TB) {
	tb.Helper()
	if err := s.end(syscall.SIGINT); err != nil {
		tb.Fatal(err)
	}
}

// Crash ends the server without a word to anybody, as a crash does.
func (s *Server) Crash(tb testing.TB) {
	tb.Helper()
	if err := s.end(syscall.SIGQUIT); err != nil {
		tb.Fatal(err)
	}
}

// Resume starts a server that was ended, on the same port and with the same data.
func (s *Server) Resume(tb testing.TB) {
	tb.Helper()
	if err := s.run(); err != nil {
		tb.Fatal(err)
	}
}

// start makes a data directory and starts a server in it.
func start() (*Server, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return nil, errors.New("needs PostgreSQL: run through make test, or install Debian's package postgresql")
	}
	slices.Sort(found)
	s := &Server{bin: filepath.Dir(found[len(found)-1])}
	if s.dir, err = os.MkdirTemp("", "postgrestest-"); err != nil {
		return nil, err
	}
	if err := s.init(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	for attempt := 0; ; attempt++ {
		if s.port, err = freePort(); err == nil {
			err = s.run()
		}
		if err == nil {
			return s, nil
		}
		if attempt == 2 { // somebody else may have taken the port
			return nil, errors.Join(err, os.RemoveAll(s.dir))
		}
	}
}

func (s *Server) init() error {
	if os.Geteuid() == 0 { // which PostgreSQL refuses
		owner, err := user.Lookup("postgres")
		if err != nil {
			return err
		}
		uid, err1 := strconv.ParseUint(owner.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(owner.Gid, 10, 32)
		if err := errors.Join(err1, err2, os.Chown(s.dir, int(uid), int(gid))); err != nil {
			return err
		}
		s.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	file := filepath.Join(s.dir, "password")
	if err := os.WriteFile(file, []byte(Password+"\n"), 0o644); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, "initdb"), "-D", s.data(), "-U", superuser, "--pwfile", file,
		"--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en", "--no-sync")
	s.prepare(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return os.Remove(file)
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) prepare(cmd *exec.Cmd) {
	cmd.Dir = s.dir
	cmd.Env = []string{"LC_ALL=C.UTF-8", "PATH=/usr/bin:/bin"}
	// In a group of its own, so that an interrupted test program ends it and not the terminal.
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as, Setpgid: true}
}

// run starts the server and waits until it answers.
func (s *Server) run() error {
	log := &bytes.Buffer{}
	cmd := exec.Command(filepath.Join(s.bin, "postgres"), "-D", s.data(), "-p", strconv.Itoa(s.port), //nolint:noctx // outlives the call
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "max_connections=100",
		"-c", "shared_buffers=16MB", "-c", "log_statement=none")
	s.prepare(cmd)
	cmd.SysProcAttr.Pdeathsig = syscall.SIGQUIT
	cmd.Stdout, cmd.Stderr = log, log
	p := &process{cmd: cmd, log: log, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		defer close(p.done)
		// The server gets its signal when the thread ends that started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended, its log says
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	s.mu.Lock()
	s.process = p
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for {
		c, err := pgx.Connect(ctx, s.address("postgres"))
		if err == nil {
			return c.Close(ctx)
		}
		select {
		case <-p.done:
			return fmt.Errorf("PostgreSQL ended:\n%s", log)
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("PostgreSQL does not answer: %w", err), s.end(syscall.SIGQUIT))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// end ends the server and waits until it has ended.
func (s *Server) end(with syscall.Signal) error {
	s.mu.Lock()
	p := s.process
	s.process = nil
	s.mu.Unlock()
	if p == nil {
		return nil
	}
	if err := p.cmd.Process.Signal(with); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(stopTimeout):
		_ = p.cmd.Process.Kill() // what is left of it
		<-p.done
		return fmt.Errorf("PostgreSQL did not end:\n%s", strings.TrimSpace(p.log.String()))
	}
}

func (s *Server) remove() error { return errors.Join(s.end(syscall.SIGINT), os.RemoveAll(s.dir)) }

// freePort is a port of the loopback interface that nobody listens on just now.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed at once
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	address, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, errors.New("no TCP port")
	}
	return address.Port, nil
}
