package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"zaentrum.io/zae/internal/fault"
)

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

// lineByLine asks with plain lines, where ? is a request for help if there is any, and writes no escape byte: for terminals that are not to be drawn on.
type lineByLine struct {
	p     *printer
	in    *lines
	stdin io.Reader
}

// ask shows a question and waits for one answer or for the context. A read that nobody answers stays
// behind until the process ends, soon after.
func (l *lineByLine) ask(ctx context.Context, title string, read func() (string, error)) (string, error) {
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	l.p.printf("%s ", title)
	got := make(chan reply, 1)
	go func() {
		text, err := read()
		got <- reply{text, err}
	}()
	select {
	case <-ctx.Done():
		l.p.raw("\n")
		return "", context.Cause(ctx)
	case g := <-got:
		if g.err != nil {
			l.p.raw("\n")
			return "", noAnswer(g.err)
		}
		return g.text, nil
	}
}

func (l *lineByLine) keys() string { return "end with Ctrl-C, ? explains" }

func (l *lineByLine) confirm(ctx context.Context, title string) (bool, error) {
	text, err := l.ask(ctx, title+" [y/N]", l.in.next)
	if err != nil {
		return false, err
	}
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "y", "yes":
		return true, nil
	default:
		return false, nil
	}
}

func (l *lineByLine) text(ctx context.Context, q question) (string, error) {
	for {
		text, err := l.one(ctx, q)
		if err != nil {
			return "", err
		}
		if q.help != "" && text == "?" {
			l.p.printf("    %s\n", q.help)
			continue
		}
		if q.judge == nil {
			return text, nil
		}
		if err := q.judge(text); err != nil {
			l.p.printf("    %s\n", err)
			continue
		}
		return text, nil
	}
}

func (l *lineByLine) one(ctx context.Context, q question) (string, error) {
	if q.secret {
		return l.hidden(ctx, q.label)
	}
	return l.ask(ctx, q.label, l.in.next)
}

// hidden asks for a line with the terminal's echo off.
func (l *lineByLine) hidden(ctx context.Context, label string) (string, error) {
	f, ok := l.stdin.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return "", fault.New(fault.Usage, "there is no terminal to ask for a secret on")
	}
	fd := int(f.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", fault.New(fault.Usage, "the terminal cannot hide what is typed").Because(err)
	}
	text, err := l.ask(ctx, label, func() (string, error) {
		t, err := term.ReadPassword(fd)
		return string(t), err
	})
	if err != nil {
		_ = term.Restore(fd, before) // the read that was given up would leave the echo off
		return "", err
	}
	l.p.raw("\n")
	return text, nil
}

func (l *lineByLine) choose(ctx context.Context, q question, options []string) (int, error) {
	q.judge = func(text string) error {
		switch {
		case text == "":
			return errRequired
		case !slices.Contains(options, text):
			return errors.New("it is one of " + strings.Join(options, ", "))
		default:
			return nil
		}
	}
	text, err := l.text(ctx, q)
	return slices.Index(options, text), err
}
