package cli

import (
	"errors"
	"io"
	"strings"
	"testing"
)

func TestAnUnseenLineCanBeCorrected(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]struct {
		text string
		err  error
	}{
		"abc\rdef":         {"abc", nil},
		"abc\n":            {"abc", nil},
		"abd\x7fc\r":       {"abc", nil},
		"aä\bb\r":          {"ab", nil},
		"\x7f\x7fab\r":     {"ab", nil},
		"wrong\x15right\r": {"right", nil},
		"a b\tc\x04\r":     {"a b\tc", nil},
		"\r":               {"", nil},
		"\x04":             {"", io.EOF},
		"ab\x15\x04":       {"", io.EOF},
		"ab\x03":           {"", errCtrlC},
		"ab":               {"", io.EOF},
		"":                 {"", io.EOF},
	} {
		if got, err := unseen(strings.NewReader(typed)); got != want.text || !errors.Is(err, want.err) {
			t.Errorf("%q: got %q, %v", typed, got, err)
		}
	}
	if _, err := unseen(strings.NewReader(strings.Repeat("a", maxLine+1))); !errors.Is(err, errTooLong) {
		t.Errorf("got %v", err)
	}
}
