package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/spf13/viper"

	"zaentrum.io/zae/internal/client"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/session"
	"zaentrum.io/zae/internal/trace"
)

// pace is how fast things are looked at and how long they may take to settle.
type pace struct {
	pollFirst, pollMost time.Duration // between two looks at an addon
	stall               time.Duration // how long Degraded must last before waiting is given up
	registration        time.Duration // how long a refused registration must last
	grace               time.Duration // for a write that is under way when the person interrupts
	undo                time.Duration // for putting back what was not installed
}

var usualPace = pace{
	pollFirst: 100 * time.Millisecond, pollMost: time.Second,
	stall: 5 * time.Second, registration: 30 * time.Second,
	grace: 5 * time.Second, undo: 30 * time.Second,
}

// app is what the commands share: the process, its streams and the instance.
type app struct {
	p    Process
	pace pace
	out  *printer // the answer
	err  *printer // the conversation

	flags struct {
		url     string
		debug   bool
		noColor bool
	}
	// started is true once cobra has accepted the command line.
	started bool
	// stdinTaken is true when a flag reads standard input, so that nobody can answer there.
	stdinTaken bool
	answers    *lines
	interrupt  func() // does what SIGINT does
	transport  *http.Transport
	tracedOnce sync.Once
	part       trace.Context
}

func newApp(p Process, pace pace) *app {
	a := &app{p: p, pace: pace}
	hidden := new(redactor)
	a.out = &printer{w: p.Stdout, hidden: hidden}
	a.err = &printer{w: p.Stderr, hidden: hidden}
	a.answers = &lines{r: p.Stdin}
	return a
}

// start decides what needs the flags.
func (a *app) start() {
	a.started = true
	plain := a.flags.noColor || a.env("NO_COLOR") != "" || a.env("TERM") == "dumb" || a.env("CI") != ""
	a.out.terminal(plain)
	a.err.terminal(plain)
}

func (a *app) close() {
	if a.transport != nil {
		a.transport.CloseIdleConnections()
	}
}

func (a *app) env(name string) string {
	v, _ := a.p.Env(name)
	return v
}

// token is the bearer of the environment, which comes before any stored session.
func (a *app) token() string { return strings.TrimSpace(a.env("ZAE_TOKEN")) }

// configDir is zae's own directory.
func (a *app) configDir() (string, error) {
	dir, err := a.p.ConfigDir()
	if err != nil {
		return "", fault.New(fault.Usage, "there is no directory for configuration: %s", err).Because(err).
			WithHint("set HOME, or give --url and ZAE_TOKEN")
	}
	return filepath.Join(dir, "zae"), nil
}

// setting is the instance's address: the flag, else ZAE_URL, else url in config.yaml.
func (a *app) setting() (string, error) {
	if a.flags.url != "" {
		return a.flags.url, nil
	}
	if u := a.env("ZAE_URL"); u != "" {
		return u, nil
	}
	dir, err := a.configDir()
	if err != nil {
		return "", err
	}
	v := viper.New() // flat settings only: it folds the case of keys
	v.SetConfigFile(filepath.Join(dir, "config.yaml"))
	if err := v.ReadInConfig(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fault.New(fault.Usage, "the config file %s cannot be read as YAML", v.ConfigFileUsed()).Because(err)
	}
	return v.GetString("url"), nil
}

// instance is the platform that is talked to.
func (a *app) instance() (client.Instance, error) {
	raw, err := a.setting()
	if err != nil {
		return client.Instance{}, err
	}
	if raw == "" {
		return client.Instance{}, fault.New(fault.Usage, "no instance is given").
			WithHint("give --url https://host, set ZAE_URL, or write url: https://host to the config file")
	}
	return client.ParseInstance(raw)
}

// instanceText is for hints only.
func (a *app) instanceText() string {
	if i, err := a.instance(); err == nil {
		return i.String()
	}
	return "https://…"
}

func (a *app) roundTripper() *http.Transport {
	if a.transport == nil {
		a.transport = client.NewTransport()
	}
	return a.transport
}

func (a *app) debugHook() func(string) {
	if !a.flags.debug {
		return nil
	}
	return func(line string) { a.err.printf("debug: %s\n", line) }
}

// trace is a new place in the one trace that all calls of this command are part of.
func (a *app) trace() trace.Context {
	a.tracedOnce.Do(func() { a.part, _ = trace.New(rand.Reader) }) // without one nothing is lost but the trace
	here, _ := a.part.Child(rand.Reader)
	return here
}

// anonymous is a client that sends no bearer.
func (a *app) anonymous(i client.Instance) *client.Client {
	return client.New(a.options(i))
}

func (a *app) options(i client.Instance) client.Options {
	return client.Options{
		Instance: i, Transport: a.roundTripper(), Debug: a.debugHook(), Trace: a.trace,
		UserAgent: "zae/" + build().Version + " (" + runtime.GOOS + "/" + runtime.GOARCH + ")",
	}
}

func (a *app) bearers() (session.Bearers, error) {
	dir, err := a.configDir()
	if err != nil {
		return session.Bearers{}, err
	}
	return session.Bearers{Store: session.NewStore(dir), Web: a.web(), Now: a.p.Now}, nil
}

func (a *app) web() session.Web {
	return session.Web{Transport: a.roundTripper(), Safe: client.SafeScheme, Debug: a.debugHook()}
}

// connect makes the client of the instance, and fails at once when there is no bearer for it, before
// anybody is asked for anything.
func (a *app) connect(ctx context.Context) (*client.Client, error) {
	i, err := a.instance()
	if err != nil {
		return nil, err
	}
	o := a.options(i)
	if token := a.token(); token != "" {
		a.err.hidden.add(token)
		o.Bearer = func(context.Context) (string, error) { return token, nil }
		return client.New(o), nil
	}
	b, err := a.bearers()
	if err != nil {
		return nil, err
	}
	o.Bearer = func(ctx context.Context) (string, error) { return b.Bearer(ctx, i.String()) }
	if _, err := o.Bearer(ctx); err != nil {
		return nil, err
	}
	return client.New(o), nil
}

// person tells whether there is somebody to ask.
func (a *app) person() bool {
	return !a.stdinTaken && isTerminal(a.p.Stdin) && isTerminal(a.p.Stderr)
}

// mayWrite refuses a write that nobody can be asked about.
func (a *app) mayWrite(yes bool) error {
	if yes || a.person() {
		return nil
	}
	why := "there is no terminal to ask on"
	if a.stdinTaken {
		why = "standard input is read for an input, so nobody can answer there"
	}
	return fault.New(fault.Usage, "nothing was sent: %s", why).WithHint("give --yes to go on without being asked")
}

// readFile reads a file that a flag names, "-" being standard input, up to a limit.
func (a *app) readFile(name string, limit int64) ([]byte, error) {
	if name == "-" {
		return readAll(a.p.Stdin, limit)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return readAll(f, limit)
}
