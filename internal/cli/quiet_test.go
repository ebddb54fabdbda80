package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// through is what comes through quiet, written in pieces of a size.
func through(t *testing.T, text string, size int) string {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "tty"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	q := &quiet{tty: f}
	for b := []byte(text); len(b) > 0; b = b[min(size, len(b)):] {
		if n, err := q.Write(b[:min(size, len(b))]); err != nil || n != min(size, len(b)) {
			t.Fatalf("wrote %d: %v", n, err)
		}
	}
	got, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}

func TestQuietDropsWhatATerminalAnswers(t *testing.T) {
	t.Parallel()
	for _, query := range []string{
		ansi.RequestBackgroundColor, ansi.RequestForegroundColor, ansi.RequestCursorColor, ansi.RequestNameVersion,
		ansi.RequestPrimaryDeviceAttributes, ansi.RequestSecondaryDeviceAttributes, ansi.RequestTertiaryDeviceAttributes,
		ansi.RequestKittyKeyboard, ansi.PushKittyKeyboard(1), ansi.PopKittyKeyboard(1), ansi.SetModifyOtherKeys2,
		ansi.RequestModeSynchronizedOutput, ansi.RequestModeUnicodeCore, ansi.RequestCursorPositionReport,
		ansi.RequestExtendedCursorPositionReport, ansi.RequestTermcap("RGB"), ansi.RequestSystemClipboard,
		ansi.SetModeFocusEvent, ansi.SetModeAltScreenSaveCursor, ansi.SetWindowTitle("x"), ansi.SetSystemClipboard("x"),
		"\x1b[14t", "\x1b[>q", "\x1bZ", "\x05", "\a", "\x9b", "\u009b", "\x1b_Gi=1,a=q;\x1b\\", "\x1b]52;c;?\x1b\\",
	} {
		for size := range 4 {
			if got := through(t, "a"+query+"b", size+1); got != "ab" {
				t.Errorf("%q in pieces of %d: %q came through", query, size+1, got)
			}
		}
	}
}

func TestQuietLetsThroughWhatDraws(t *testing.T) {
	t.Parallel()
	const drawn = "\x1b[?25l\x1b[?2004h\r\x1b[J\x1b[1;31mä 漢 🙂\x1b[m\r\n\x1b[2A\x1b[3C\x1b[K\x1b[4X\x1b[2;7H\x1bM\b\t\x1b[?2004l\x1b[?25h"
	for _, size := range []int{1, 2, 3, 5, 1000} {
		if got := through(t, drawn, size); got != drawn {
			t.Errorf("in pieces of %d: got %q", size, got)
		}
	}
}

// FuzzQuiet proves that nothing which a terminal answers comes through, however it is cut into pieces.
func FuzzQuiet(f *testing.F) {
	f.Add("\x1b[?u\x1b[31mred\x1b[m", 3)
	f.Add("\x1b]11;?\x1b\\x\x1b", 1)
	f.Add("\x1b[\x1b[c\x9b", 2)
	f.Fuzz(func(t *testing.T, text string, size int) {
		got := []byte(through(t, text, max(1, size%64)))
		if asked := asksTerminal.Find(got); asked != nil {
			t.Fatalf("%q let %q through in %q", text, asked, bytes.TrimSpace(got))
		}
	})
}
