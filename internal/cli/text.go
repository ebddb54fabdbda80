package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// printer writes lines of our own format with text from anywhere: every argument that is text loses its
// control characters and the secrets this command was given.
type printer struct {
	w       io.Writer
	hidden  *redactor
	colours bool
	live    bool // the cursor may be moved
	width   int  // 0: lines are not cut
	fail    error
}

// terminal finds out what the stream can do; plain forbids every escape byte. The terminal itself is
// never asked.
func (p *printer) terminal(plain bool) {
	f, ok := p.w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return
	}
	if width, _, err := term.GetSize(int(f.Fd())); err == nil {
		p.width = width
	}
	p.colours = !plain
	p.live = !plain
}

func (p *printer) failed() error { return p.fail }

func (p *printer) printf(format string, args ...any) {
	clean := make([]any, len(args))
	for i, a := range args {
		clean[i] = p.safe(a)
	}
	p.raw(fmt.Sprintf(format, clean...))
}

func (p *printer) raw(text string) {
	if _, err := io.WriteString(p.w, text); err != nil && p.fail == nil {
		p.fail = err
	}
}

// safe makes an argument fit to be shown.
func (p *printer) safe(a any) any {
	switch v := a.(type) {
	case nil:
		return ""
	case styled:
		text := p.show(v.text)
		if !p.colours || v.role == ordinary || text == "" {
			return text
		}
		return v.role.style().Render(text)
	case error:
		return p.show(v.Error())
	case fmt.Stringer:
		return p.show(v.String())
	}
	if v := reflect.ValueOf(a); v.Kind() == reflect.String {
		return p.show(v.String())
	}
	return a
}

// show hides twice: characters that are dropped may have stood inside a secret.
func (p *printer) show(text string) string { return p.hidden.hide(printable(p.hidden.hide(text))) }

// printable is text without what could steer a terminal or hide what it says. Line breaks and tabs
// become spaces.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r' || r == '\u2028' || r == '\u2029':
			return ' '
		case steers(r):
			return -1
		default:
			return r
		}
	}, s)
}

// steers tells whether r is a control character, a line break or a mark that turns the direction of writing.
func steers(r rune) bool {
	switch {
	case unicode.IsControl(r), r == '\u2028', r == '\u2029', r == '\u061c', r == '\u200e', r == '\u200f', r == '\ufeff':
		return true
	default:
		return r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
	}
}

// table aligns rows in columns and cuts lines to the width.
type table struct {
	indent string
	rows   [][]any
}

func (t *table) row(cells ...any) { t.rows = append(t.rows, cells) }

func (t *table) print(p *printer) {
	var widths []int
	for _, row := range t.rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], cells(p.plain(c)))
		}
	}
	for _, row := range t.rows {
		last := len(row) - 1
		for last > 0 && p.plain(row[last]) == "" {
			last--
		}
		var line strings.Builder
		line.WriteString(t.indent)
		used := cells(t.indent)
		for i, c := range row[:last+1] {
			text := p.plain(c)
			if room := p.width - used; p.width > 0 && cells(text) > room {
				text = cut(text, room)
			}
			if text == "" && p.width > 0 && used >= p.width {
				break
			}
			if s, ok := c.(styled); ok {
				fmt.Fprint(&line, p.safe(styled{s.role, text}))
			} else {
				line.WriteString(text)
			}
			used += cells(text)
			if i < last {
				pad := widths[i] - cells(text) + 2
				line.WriteString(strings.Repeat(" ", max(pad, 0)))
				used += pad
			}
		}
		p.raw(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// plain is a cell's text without its style.
func (p *printer) plain(c any) string {
	if s, ok := c.(styled); ok {
		return p.show(s.text)
	}
	return fmt.Sprint(p.safe(c))
}

// redactor knows the secrets that this command was given.
type redactor struct {
	secrets []string // and their forms, the longest first
	whole   []string // what a chart makes of them, the longest first
	words   []string // the same, if it is so short that it is found only as a whole word
	numbers []int64
}

// hiddenText stands for a secret.
const hiddenText = "[secret]"

// shortest is the length from which a secret is looked for: replacing shorter ones would tear up every
// line, and say more about them than it hides.
const shortest = 4

// add keeps the longest first, so that no part of one is left beside another that was taken out of it.
func (r *redactor) add(secret string) { r.secrets = withText(r.secrets, secret) }

func withText(list []string, text string) []string {
	if len(text) < shortest || slices.Contains(list, text) {
		return list
	}
	at, _ := slices.BinarySearchFunc(list, text, func(a, b string) int { return len(b) - len(a) })
	return slices.Insert(list, at, text)
}

// given is the same without what the chart makes.
func (r *redactor) given() *redactor { return &redactor{secrets: r.secrets} }

// made keeps what a chart makes of a secret, however short.
func (r *redactor) made(text string) {
	if len(text) >= shortest || text == "" || slices.Contains(r.words, text) {
		r.whole = withText(r.whole, text)
		return
	}
	r.words = append(r.words, text)
}

func (r *redactor) hide(text string) string {
	for _, s := range r.whole {
		text = strings.ReplaceAll(text, s, hiddenText)
	}
	for _, word := range r.words {
		text = withoutWord(text, word)
	}
	for _, s := range r.secrets {
		text = strings.ReplaceAll(text, s, hiddenText)
	}
	return text
}

// withoutWord takes a text out where no letter or digit goes on before or after it.
func withoutWord(text, word string) string {
	goesOn := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, word)
		if !found {
			return out.String() + text
		}
		last, _ := utf8.DecodeLastRuneInString(before)
		first, _ := utf8.DecodeRuneInString(after)
		if out.WriteString(before); goesOn(last) || goesOn(first) {
			out.WriteString(word)
		} else {
			out.WriteString(hiddenText)
		}
		text = after
	}
}

func isTerminal(v any) bool {
	f, ok := v.(*os.File)
	return ok && f != nil && term.IsTerminal(int(f.Fd()))
}

var errTooLong = errors.New("is larger than the limit")

func readAll(r io.Reader, limit int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > limit {
		return nil, errTooLong
	}
	return text, nil
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
