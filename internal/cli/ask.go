package cli

import (
	"context"
	"errors"
	"os"

	"golang.org/x/term"

	"zaentrum.io/zae/internal/fault"
)

// prompter asks a person. It is made only where there is one, on a terminal.
//
// An answer that is given up (Ctrl-D, Esc) is fault.Declined; an interruption is the context's cause.
type prompter interface {
	// confirm asks a question that is answered with no unless somebody says yes.
	confirm(ctx context.Context, title string) (bool, error)
	// text asks for a line.
	text(ctx context.Context, q question) (string, error)
	// choose asks for one of the options, and is its index.
	choose(ctx context.Context, q question, options []string) (int, error)
	// keys says how to get help and how to get out.
	keys() string
}

// question is one thing to be known. Its texts may be anybody's.
type question struct {
	label  string
	help   string
	secret bool // not shown while it is typed
	// judge refuses an answer, which is then asked for again; nil takes any.
	judge func(text string) error
}

// prompts is how this person is asked: with forms where the terminal may be drawn on, else line by line.
func (a *app) prompts() prompter {
	in, inOK := a.p.Stdin.(*os.File)
	out, outOK := a.p.Stderr.(*os.File)
	if !inOK || !outOK || !a.err.live || !term.IsTerminal(int(in.Fd())) || !a.drawable() {
		return &lineByLine{p: a.err, in: a.answers, stdin: a.p.Stdin, interrupt: a.interrupt}
	}
	return &forms{p: a.err, in: in, out: out, term: a.env("TERM"), interrupt: a.interrupt}
}

// drawable tells whether the environment names a terminal that forms can be drawn on. TEA_TRACE would have
// their library write what is typed to a file.
func (a *app) drawable() bool { return a.env("TERM") != "" && a.env("TEA_TRACE") == "" }

// confirm asks a question whose default is no. It is nil for yes and fault.Declined for anything else.
func (a *app) confirm(ctx context.Context, title string) error {
	yes, err := a.prompts().confirm(ctx, title)
	switch {
	case err != nil:
		return err
	case !yes:
		return fault.New(fault.Declined, "declined")
	default:
		return nil
	}
}

// askSecret asks for a line that is not shown while it is typed, nor afterwards.
func (a *app) askSecret(ctx context.Context, q question) (string, error) {
	q.secret = true
	text, err := a.prompts().text(ctx, q)
	if err != nil {
		return "", err
	}
	a.err.hidden.add(text)
	return text, nil
}

func noAnswer(because error) error {
	return fault.New(fault.Declined, "no answer").Because(because)
}

var errRequired = errors.New("it is required")
