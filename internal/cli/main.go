// Package cli is the command line: flags and files in, calls of portal-api, plans and progress out.
//
// stdout is the answer, stderr the conversation. A person is asked only when standard input and standard
// error are terminals; without one, nothing is written without --yes. It must never print a token or a
// secret input, and shows no text from elsewhere without stripping its control characters.
package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/worker"
)

// Process is what the command line knows of the process it runs in.
type Process struct {
	Args   []string // without the program's name
	Env    func(string) (string, bool)
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// ConfigDir is the person's directory for configuration, under which zae has its own.
	ConfigDir func() (string, error)
	// CacheDir is the person's directory for what can be fetched again, under which zae has its own.
	CacheDir func() (string, error)
	Now      func() time.Time
}

// Main runs one command line and returns its exit status (decisions §7).
//
// SIGINT and SIGTERM cancel the command's context with fault.Interrupted and fault.Terminated as cause; a
// second signal ends the process at once.
//
// As a render worker, which package worker starts, the process does nothing else.
func Main(p Process) int {
	if worker.Requested(p.Args) {
		return worker.Serve(p.Args, p.Stdin, p.Stdout)
	}
	return run(p, usualPace)
}

func run(p Process, pace pace) int {
	ctx, interrupt, stop := withSignals(context.Background())
	defer stop()
	a := newApp(p, pace)
	a.interrupt = interrupt
	defer a.close()
	root := newRoot(a)
	root.SetArgs(p.Args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !a.started {
		err = asUsage(err) // cobra refused the line before any command ran
	}
	if err == nil && a.out.failed() != nil {
		err = fault.New(fault.Internal, "the answer could not be written").Because(a.out.failed())
	}
	if err == nil {
		return 0
	}
	return a.report(ctx, cmd, err)
}

// report tells of an error, once, and is the exit status it means. After an interruption that is the
// interruption's, whatever else it led to.
func (a *app) report(ctx context.Context, cmd *cobra.Command, err error) int {
	f := fault.From(err)
	exit := f.Code.Means().Exit
	if ctx.Err() != nil {
		cause := fault.From(context.Cause(ctx))
		exit = cause.Code.Means().Exit
		if errors.Is(err, context.Canceled) {
			f = cause
		}
	}
	a.tell(cmd, f, err)
	return exit
}

func (a *app) tell(cmd *cobra.Command, f *fault.Fault, err error) {
	a.err.printf("%s %s\n", style(bad, "error:"), f.Message)
	var d *detailed
	if errors.As(err, &d) {
		d.print(a.err)
	}
	if f.Code == fault.Usage && cmd != nil {
		a.err.printf("usage: %s\n", cmd.UseLine())
	}
	if hint := a.hint(f); hint != "" {
		a.err.printf("hint: %s\n", hint)
	}
	if f.Trace != "" && (f.Code == fault.Internal || f.Code == fault.Cluster) { // the server's log says more
		a.err.printf("trace: %s\n", f.Trace)
	}
}

// hint is the way out, also where the fault was made by a server that does not know this program.
func (a *app) hint(f *fault.Fault) string {
	switch {
	case f.Hint != "":
		return f.Hint
	case f.Code == fault.NoBearer && a.token() != "":
		return "ZAE_TOKEN is used as it is: set it to a valid admin bearer, or unset it and sign in with zae login"
	case f.Code == fault.NoBearer:
		return "zae login --url " + a.instanceText()
	case f.Code == fault.Forbidden:
		return "sign in as an admin: zae login --url " + a.instanceText()
	default:
		return ""
	}
}

// withSignals is a context that SIGINT and SIGTERM cancel, what does the same as SIGINT, and the end of it.
func withSignals(parent context.Context) (ctx context.Context, interrupt, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		select {
		case s := <-signals:
			signal.Stop(signals) // the next one ends the process
			if s == syscall.SIGTERM {
				cancel(fault.New(fault.Terminated, "terminated"))
			} else {
				cancel(fault.New(fault.Interrupted, "interrupted"))
			}
		case <-done:
		}
	}()
	interrupt = func() {
		select {
		case signals <- os.Interrupt:
		default: // one is on its way
		}
	}
	return ctx, interrupt, func() {
		signal.Stop(signals)
		close(done)
		<-finished
		cancel(nil)
	}
}

// detailed is a fault with lines under it.
type detailed struct {
	fault *fault.Fault
	lines []detail
}

// detail is one line under an error, and the way out of it.
type detail struct{ what, fix string }

func (d *detailed) Error() string { return d.fault.Error() }
func (d *detailed) Unwrap() error { return d.fault }

func (d *detailed) print(p *printer) {
	for _, l := range d.lines {
		p.printf("  %s\n", l.what)
		if l.fix != "" {
			p.printf("    %s\n", l.fix)
		}
	}
}
