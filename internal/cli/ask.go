package cli

import (
	"context"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"zaentrum.io/zae/internal/fault"
)

// Questions are plain lines: no prompt library opens the terminal by itself or asks it for its colours.

const maxLine = 64 << 10

// lines reads what a person types, one line per question.
type lines struct{ r io.Reader }

// next reads up to the end of a line, byte by byte: what follows belongs to the next question, or to
// the terminal.
func (l *lines) next() (string, error) {
	var text []byte
	one := make([]byte, 1)
	for {
		n, err := l.r.Read(one)
		if n == 1 {
			if one[0] == '\n' {
				return strings.TrimSuffix(string(text), "\r"), nil
			}
			if text = append(text, one[0]); len(text) > maxLine {
				return "", errTooLong
			}
		}
		if err != nil {
			if err == io.EOF && len(text) > 0 {
				return string(text), nil
			}
			return "", err
		}
	}
}

type reply struct {
	text string
	err  error
}

// ask shows a question and waits for one answer or for the context. A read that nobody answers stays
// behind until the process ends, soon after.
func (a *app) ask(ctx context.Context, question string, read func() (string, error)) (string, error) {
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	a.err.printf("%s ", question)
	got := make(chan reply, 1)
	go func() {
		text, err := read()
		got <- reply{text, err}
	}()
	select {
	case <-ctx.Done():
		a.err.raw("\n")
		return "", context.Cause(ctx)
	case g := <-got:
		if g.err != nil {
			a.err.raw("\n")
			return "", fault.New(fault.Declined, "no answer").Because(g.err)
		}
		return g.text, nil
	}
}

// confirm asks a question whose default is no. It is nil for yes and fault.Declined for anything else.
func (a *app) confirm(ctx context.Context, question string) error {
	text, err := a.ask(ctx, question+" [y/N]", a.answers.next)
	if err != nil {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "y", "yes":
		return nil
	default:
		return fault.New(fault.Declined, "declined")
	}
}

// askLine asks for a line.
func (a *app) askLine(ctx context.Context, question string) (string, error) {
	return a.ask(ctx, question, a.answers.next)
}

// askSecret asks for a line that is not shown while it is typed.
func (a *app) askSecret(ctx context.Context, question string) (string, error) {
	f, ok := a.p.Stdin.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return "", fault.New(fault.Usage, "there is no terminal to ask for a secret on")
	}
	fd := int(f.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", fault.New(fault.Usage, "the terminal cannot hide what is typed").Because(err)
	}
	text, err := a.ask(ctx, question, func() (string, error) {
		t, err := term.ReadPassword(fd)
		return string(t), err
	})
	if err != nil {
		_ = term.Restore(fd, before) // the read that was given up would leave the echo off
		return "", err
	}
	a.err.raw("\n")
	a.err.hidden.add(text)
	return text, nil
}
