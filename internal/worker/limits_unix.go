//go:build unix

package worker

import (
	"math"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// confine takes away what a worker does not need: writing files, opening more than a few, core dumps, and
// memory well over its bound, which the kernel then refuses at once, however fast it is asked for.
func confine(memory int64) {
	set := func(resource int, n uint64) {
		_ = unix.Setrlimit(resource, &unix.Rlimit{Cur: n, Max: n}) // what the system refuses, the watchdog still bounds
	}
	set(unix.RLIMIT_CORE, 0)
	set(unix.RLIMIT_FSIZE, 0)
	set(unix.RLIMIT_NOFILE, 16)
	if !raceDetector { // which keeps a shadow of all memory
		// The runtime keeps some memory of its own beside what it hands out.
		set(unix.RLIMIT_DATA, uint64(min(memory, math.MaxInt64/2))+192<<20)
	}
}

// apart keeps the keyboard's interrupt from a worker: who started it decides when it ends.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// processorTime is what this process has used so far.
func processorTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

var peakLine = regexp.MustCompile(`(?m)^VmHWM:\s*([0-9]+) kB$`)

// peak is the most memory that this process has used so far; 0 where the system does not tell. What getrusage knows
// counts the program that started this one, too.
func peak() int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	m := peakLine.FindSubmatch(text)
	if m == nil {
		return 0
	}
	n, _ := strconv.ParseInt(string(m[1]), 10, 64)
	return n << 10
}
