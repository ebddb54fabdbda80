package cli

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// quiet is a terminal that can be drawn on and not asked anything. Text, colours, moves of the cursor and
// erasing go through; everything else that starts with an escape byte is dropped, and queries of the
// terminal are among it: an answer would come in between what the person types, or after the program's end.
type quiet struct {
	tty  *os.File
	held []byte // the start of a sequence that is not complete yet
}

// Write promises to have written all of b.
func (q *quiet) Write(b []byte) (int, error) {
	rest := slices.Concat(q.held, b)
	q.held = nil
	var out bytes.Buffer
	for len(rest) > 0 {
		n, draws := first(rest)
		if n == 0 {
			q.held = bytes.Clone(rest)
			break
		}
		if draws {
			out.Write(rest[:n])
		}
		rest = rest[n:]
	}
	if _, err := q.tty.Write(out.Bytes()); err != nil {
		return 0, err
	}
	return len(b), nil
}

// first is the length of the first character or sequence, 0 when it is not complete, and whether it only
// changes what is on the screen.
func first(b []byte) (n int, draws bool) {
	if b[0] != ansi.ESC {
		if !utf8.FullRune(b) {
			return 0, false
		}
		r, n := utf8.DecodeRune(b)
		return n, strings.ContainsRune("\b\t\n\r", r) || !unicode.IsControl(r) && (r != utf8.RuneError || n > 1)
	}
	p := ansi.GetParser()
	defer ansi.PutParser(p)
	seq, _, n, state := ansi.DecodeSequence(b, ansi.NormalState, p)
	if state != ansi.NormalState {
		return 0, false
	}
	switch string(seq) {
	case ansi.ReverseIndex, ansi.ShowCursor, ansi.HideCursor, ansi.SetModeBracketedPaste, ansi.ResetModeBracketedPaste:
		return n, true
	}
	cmd := ansi.Cmd(p.Command())
	return n, ansi.HasCsiPrefix(seq) && cmd.Prefix() == 0 && cmd.Intermediate() == 0 && strings.IndexByte(drawing, cmd.Final()) >= 0
}

// drawing are the last bytes of the control sequences that move, erase, insert, scroll and style.
const drawing = "@ABCDEFGHIJKLMPSTXZ`abdefm"

// Read, Close and Fd make it a terminal to those who look for one.
func (q *quiet) Read(b []byte) (int, error) { return q.tty.Read(b) }

// Close leaves the terminal open: it is not ours.
func (q *quiet) Close() error { return nil }

// Fd is the terminal's.
func (q *quiet) Fd() uintptr { return q.tty.Fd() }
