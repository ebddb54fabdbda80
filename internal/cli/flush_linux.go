package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// forget drops what was typed before anything was asked: a key that was meant for something else must not
// become the answer to a question that nobody had seen yet.
func forget(tty *os.File) {
	_ = unix.IoctlSetInt(int(tty.Fd()), unix.TCFLSH, unix.TCIFLUSH)
}
