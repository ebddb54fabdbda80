package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

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
	p         *printer
	in        *lines
	stdin     io.Reader
	interrupt func() // what Ctrl-C does while the terminal makes no signal of it
}

// ask shows a question and waits for one answer or for the context.
func (l *lineByLine) ask(ctx context.Context, title string, read func() (string, error)) (string, error) {
	text, err := l.wait(ctx, title, read)
	if err != nil {
		l.p.raw("\n") // the question stands there without an end
	}
	return text, err
}

// wait is ask without a line break. A read that nobody answers stays behind until the process ends, soon after.
func (l *lineByLine) wait(ctx context.Context, title string, read func() (string, error)) (string, error) {
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
		return "", context.Cause(ctx)
	case g := <-got:
		if g.err != nil {
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

// hidden asks for a line that is not shown. The terminal is raw meanwhile: one that only leaves out the echo cannot be
// told the end of input from a line that is not there yet.
func (l *lineByLine) hidden(ctx context.Context, label string) (string, error) {
	f, ok := l.stdin.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return "", fault.New(fault.Usage, "there is no terminal to ask for a secret on")
	}
	before, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return "", fault.New(fault.Usage, "the terminal cannot hide what is typed").Because(err)
	}
	text, err := l.wait(ctx, label, func() (string, error) { return unseen(f) })
	_ = term.Restore(int(f.Fd()), before)
	l.p.raw("\n")
	if errors.Is(err, errCtrlC) {
		l.interrupt()
		<-ctx.Done()
		return "", context.Cause(ctx)
	}
	return text, err
}

var errCtrlC = errors.New("interrupted at the keyboard")

// unseen reads a line from a raw terminal, byte by byte, with the keys that every terminal has for correcting one.
func unseen(r io.Reader) (string, error) {
	var text []byte
	one := make([]byte, 1)
	for len(text) <= maxLine {
		if n, err := r.Read(one); n == 0 {
			return "", errors.Join(err, io.EOF)
		}
		switch one[0] {
		case '\r', '\n':
			return string(text), nil
		case ctrlC:
			return "", errCtrlC
		case ctrlD:
			if len(text) == 0 {
				return "", io.EOF
			}
		case ctrlU:
			text = text[:0]
		case '\b', del:
			_, size := utf8.DecodeLastRune(text)
			text = text[:len(text)-size]
		default:
			text = append(text, one[0])
		}
	}
	return "", errTooLong
}

// What the keys send.
const (
	ctrlC = 'C' - '@'
	ctrlD = 'D' - '@'
	ctrlU = 'U' - '@'
	del   = 0x7f
)

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
