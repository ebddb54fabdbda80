package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/registry"
	"zaentrum.io/zae/internal/session/issuertest"
	"zaentrum.io/zae/internal/trace"
	"zaentrum.io/zae/internal/workertest"
)

var update = flag.Bool("update", false, "write the expected output of scripts anew")

// TestMain makes the test's own program the render worker too, as the product's is.
func TestMain(m *testing.M) {
	workertest.Serve()
	testscript.Main(leakChecked{m}, map[string]func(){"zae": testZae})
}

// leakChecked fails a test run that leaves goroutines.
type leakChecked struct{ m *testing.M }

func (l leakChecked) Run() int {
	code := l.m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

// testZae is the program with a quicker pace.
func testZae() {
	os.Exit(run(Process{
		Args: os.Args[1:], Env: os.LookupEnv, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		ConfigDir: os.UserConfigDir, Now: time.Now,
	}, pace{
		pollFirst: 2 * time.Millisecond, pollMost: 20 * time.Millisecond,
		stall: 50 * time.Millisecond, registration: 50 * time.Millisecond,
		grace: 2 * time.Second, undo: 5 * time.Second,
	}))
}

const (
	portalKey = "portal"
	shownKey  = "shown"
)

// shown is all that the program wrote in a script, to pipes.
type shown struct{ out, err bytes.Buffer }

func TestScripts(t *testing.T) {
	t.Parallel()
	p := scripts()
	p.Dir, p.UpdateScripts = filepath.Join("testdata", "script"), *update
	testscript.Run(t, p)
}

// scripts is what a script can use.
func scripts() testscript.Params {
	return testscript.Params{
		RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			p := newFakePortal()
			e.Defer(p.close)
			e.Values[portalKey] = p
			e.Values[shownKey] = new(shown)
			examples, err := filepath.Abs("../../examples")
			if err != nil {
				return err
			}
			e.Setenv("EXAMPLES", examples)
			e.Setenv("ZAE_URL", p.srv.URL)
			e.Setenv("ZAE_TOKEN", fakeToken)
			e.Setenv("XDG_CONFIG_HOME", filepath.Join(e.WorkDir, "config"))
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("TERM", "xterm")
			e.Setenv("GOCOVERDIR", os.Getenv("GOCOVERDIR"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":  cmdExits,
			"term":   cmdTerm,
			"portal": cmdPortal,
			"plan":   cmdPlan,
			"addon":  cmdAddon,
			"frames": cmdFrames,
			"writes": cmdWrites,
			"traced": cmdTraced,
			"mode":   cmdMode,
			"issuer": cmdIssuer,
			"spent":  cmdSpent,

			"config":   cmdConfig,
			"nowhere":  cmdNowhere,
			"offline":  cmdOffline,
			"registry": cmdRegistry,
			"database": cmdDatabase,
		},
	}
}

// database FILE makes an empty SQLite database of the API.
func cmdDatabase(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: database FILE")
	}
	store, err := registry.Open(context.Background(), ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(store.Close())
}

func portalOf(ts *testscript.TestScript) *fakePortal { return ts.Value(portalKey).(*fakePortal) }

// portal MODE makes the fake portal behave in a way, from now on.
func cmdPortal(ts *testscript.TestScript, _ bool, args []string) {
	p := portalOf(ts)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode = args[0]
}

// plan VERSION FILE is what the fake operator plans for a version.
func cmdPlan(ts *testscript.TestScript, _ bool, args []string) {
	var fp fakePlan
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[1])), &fp))
	if schema := args[2:]; len(schema) > 0 {
		fp.Plan.ValuesSchema = ts.ReadFile(schema[0])
	}
	p := portalOf(ts)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plans[args[0]] = fp
}

// addon FILE is an addon that is there already.
func cmdAddon(ts *testscript.TestScript, _ bool, args []string) {
	one := &fakeAddon{seen: 1}
	dec := json.NewDecoder(strings.NewReader(ts.ReadFile(args[0])))
	dec.UseNumber()
	ts.Check(dec.Decode(&one.AddonChart))
	if one.SecretRefs == nil {
		one.SecretRefs = map[string]apitype.SecretRef{}
	}
	p := portalOf(ts)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addons[one.Name] = one
}

// frames FILE are the statuses that follow an install, one per look, the last one staying.
func cmdFrames(ts *testscript.TestScript, _ bool, args []string) {
	p := portalOf(ts)
	p.mu.Lock()
	defer p.mu.Unlock()
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &p.frames))
}

// writes FILE compares the requests that were no GET with a file; without one there must be none.
func cmdWrites(ts *testscript.TestScript, _ bool, args []string) {
	got, want := portalOf(ts).writes(), ""
	if len(args) > 0 {
		if *update {
			ts.Check(os.WriteFile(ts.MkAbs("writes.got"), []byte(got), 0o600))
			ts.Logf("writes:\n%s", got)
		}
		want = ts.ReadFile(args[0])
	}
	if got != want {
		ts.Fatalf("writes are\n%s\nwant\n%s", got, want)
	}
}

// traced checks that all requests since the last time were different parts of one trace.
func cmdTraced(ts *testscript.TestScript, _ bool, _ []string) {
	p := portalOf(ts)
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := map[trace.Context]bool{}
	for _, here := range p.traces {
		if here.ID() != p.traces[0].ID() || !here.Valid() || !here.Sampled || seen[here] {
			ts.Fatalf("%s is no part of its own in the trace of %s", here, p.traces[0])
		}
		seen[here] = true
	}
	if len(seen) == 0 {
		ts.Fatalf("nothing was asked")
	}
	p.traces = nil
}

// issuer [FAIL] gives the instance an issuer, whose tokens live for 1 s, so that each command renews the
// session. FAIL is the error code that it answers.
func cmdIssuer(ts *testscript.TestScript, _ bool, args []string) {
	i := issuertest.New()
	i.Lifetime = time.Second
	if len(args) > 0 {
		i.Fail = args[0]
	}
	p := portalOf(ts)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.issuer = i
}

// spent REFRESHES REVOKED compares how many tokens were renewed and revoked.
func cmdSpent(ts *testscript.TestScript, _ bool, args []string) {
	i := portalOf(ts).issuer
	if got := fmt.Sprint(i.Refreshes(), len(i.Revoked())); got != strings.Join(args, " ") {
		ts.Fatalf("renewed and revoked %s, want %s", got, args)
	}
}

// mode FILE MODE checks the permissions of a file.
func cmdMode(ts *testscript.TestScript, _ bool, args []string) {
	info, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	if got := fmt.Sprintf("%o", info.Mode().Perm()); got != args[1] {
		ts.Fatalf("%s has mode %s, want %s", args[0], got, args[1])
	}
}

// environ is the script's environment as far as the program looks at it.
func environ(ts *testscript.TestScript) []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "XDG_CONFIG_HOME", "ZAE_URL", "ZAE_TOKEN", "TERM", "NO_COLOR", "CI", "GITHUB_WORKSPACE", "GOCOVERDIR", "SECRET"} {
		if v := ts.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

func command(ts *testscript.TestScript, args []string) *exec.Cmd {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = environ(ts)
	return cmd
}

// exits [-in FILE] [-out FILE] [-signal INT|TERM@TEXT] STATUS zae … runs the program without a terminal. The signal is
// sent once a request that contains the text has come.
func cmdExits(ts *testscript.TestScript, _ bool, args []string) {
	var stdin io.Reader
	all := ts.Value(shownKey).(*shown)
	stdout, stderr := io.MultiWriter(ts.Stdout(), &all.out), io.MultiWriter(ts.Stderr(), &all.err)
	var sig, at string
	for strings.HasPrefix(args[0], "-") {
		switch args[0] {
		case "-in":
			stdin = strings.NewReader(ts.ReadFile(args[1]))
		case "-out":
			f, err := os.Create(ts.MkAbs(args[1]))
			ts.Check(err)
			defer func() { _ = f.Close() }()
			stdout = f
		case "-signal":
			sig, at, _ = strings.Cut(args[1], "@")
		default:
			ts.Fatalf("unknown option %s", args[0])
		}
		args = args[2:]
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	cmd := command(ts, args[1:])
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	before := len(portalOf(ts).requests(at))
	ts.Check(cmd.Start())
	if sig != "" {
		signalAt(ts, cmd.Process, sig, at, before)
	}
	checkExit(ts, cmd.Wait(), want)
}

func signalAt(ts *testscript.TestScript, p *os.Process, sig, at string, before int) {
	s := syscall.SIGINT
	if sig == "TERM" {
		s = syscall.SIGTERM
	}
	portal := portalOf(ts)
	for range 2000 {
		if len(portal.requests(at)) > before {
			ts.Check(p.Signal(s))
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	_ = p.Kill()
	ts.Fatalf("no request with %q came", at)
}

func checkExit(ts *testscript.TestScript, err error, want int) {
	got := 0
	var ee *exec.ExitError
	if errors.As(err, &ee) {
		got = ee.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// term [-pipe] [-width N] STATUS DIALOGUE zae … runs the program on a terminal and follows a dialogue: lines
// "expect TEXT", "type TEXT" (with Enter), "paste TEXT" (\n being a line break), "key ctrl-c", "ahead KEYS" and "signal TERM".
// The terminal must never be asked anything, and be left as it was. What the terminal showed is stdout for what follows; with
// -pipe the program's standard output is a pipe, shown as stdout, and the terminal is stderr.
func cmdTerm(ts *testscript.TestScript, _ bool, args []string) {
	pipe, width := false, 200
	for strings.HasPrefix(args[0], "-") {
		if args[0] == "-pipe" {
			pipe = true
		} else {
			n, err := strconv.Atoi(args[1])
			ts.Check(err)
			width, args = n, args[1:]
		}
		args = args[1:]
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	master, slave, err := openTerminal(width)
	ts.Check(err)
	defer func() { _ = master.Close() }()
	before, err := unix.IoctlGetTermios(int(master.Fd()), unix.TCGETS)
	ts.Check(err)
	cmd := command(ts, args[2:])
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	screenTo := ts.Stdout()
	if pipe {
		cmd.Stdout, screenTo = ts.Stdout(), ts.Stderr()
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	ts.Check(cmd.Start())
	_ = slave.Close()
	s := &screen{changed: make(chan struct{}, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(s, master) // ends with an error once the program has closed its side
	}()
	problem := s.follow(master, cmd.Process, ts.ReadFile(args[1]))
	if problem != nil {
		_ = cmd.Process.Kill()
	}
	late := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
	err = cmd.Wait()
	late.Stop()
	<-done
	_, _ = screenTo.Write(s.text())
	if problem != nil {
		ts.Fatalf("%v", problem)
	}
	if asked := asksTerminal.Find(s.text()); asked != nil {
		ts.Fatalf("the terminal was asked %q", asked)
	}
	if after, err := unix.IoctlGetTermios(int(master.Fd()), unix.TCGETS); err == nil && *after != *before {
		ts.Fatalf("the terminal was left as %+v, and was %+v", *after, *before)
	}
	checkExit(ts, err, want)
}

// asksTerminal matches what a terminal answers: reports of attributes, status, modes, keyboard, window and
// size, everything in strings (colours, clipboard, capabilities), and ENQ.
var asksTerminal = regexp.MustCompile(`\x1b\[[<=>?]?[0-9;:]*(\$p|[cnqtux])|\x1b\[>[^m]*[a-z]|\x1b[\]PX^_Z]|\x05|\x9b`)

// screen collects what a terminal shows.
type screen struct {
	mu      sync.Mutex
	buf     bytes.Buffer
	changed chan struct{}
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf.Write(b)
	select {
	case s.changed <- struct{}{}:
	default:
	}
	return len(b), nil
}

// text is what was shown, with the line ends of a file.
func (s *screen) text() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.ReplaceAll(s.buf.Bytes(), []byte("\r\n"), []byte("\n"))
}

func (s *screen) follow(keyboard io.Writer, p *os.Process, dialogue string) error {
	from := 0
	for line := range strings.Lines(dialogue) {
		verb, what, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
		switch verb {
		case "expect":
			deadline := time.After(20 * time.Second)
			for {
				text := s.text()
				if i := bytes.Index(text[min(from, len(text)):], []byte(what)); i >= 0 {
					from += i + len(what)
					break
				}
				select {
				case <-s.changed:
				case <-deadline:
					return fmt.Errorf("%q was not shown", what)
				}
			}
		case "type":
			time.Sleep(30 * time.Millisecond) // the echo is switched off right after a question is shown
			if _, err := io.WriteString(keyboard, what+"\r"); err != nil {
				return err
			}
		case "ahead": // typed before the program has started to ask
			if _, err := io.WriteString(keyboard, what); err != nil {
				return err
			}
		case "paste":
			time.Sleep(30 * time.Millisecond)
			if _, err := io.WriteString(keyboard, "\x1b[200~"+strings.ReplaceAll(what, `\n`, "\r")+"\x1b[201~"); err != nil {
				return err
			}
		case "key":
			time.Sleep(30 * time.Millisecond)
			if _, err := io.WriteString(keyboard, keyCodes[what]); err != nil {
				return err
			}
		case "signal":
			if err := p.Signal(map[string]os.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT}[what]); err != nil {
				return err
			}
		case "":
		default:
			return fmt.Errorf("unknown step %q", verb)
		}
	}
	return nil
}

var keyCodes = map[string]string{
	"ctrl-c": "\x03", "ctrl-d": "\x04", "esc": "\x1b", "enter": "\r", "left": "\x1b[D", "down": "\x1b[B", "y": "y", "n": "n", "ctrl-u": "\x15",
}

// openTerminal makes a pseudo-terminal.
func openTerminal(width int) (master, slave *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	master = os.NewFile(uintptr(fd), "/dev/ptmx")
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, errors.Join(err, master.Close())
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, nil, errors.Join(err, master.Close())
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: uint16(width)}); err != nil {
		return nil, nil, errors.Join(err, master.Close())
	}
	slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, errors.Join(err, master.Close())
	}
	return master, slave, nil
}
