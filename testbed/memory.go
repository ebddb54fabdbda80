package testbed

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
)

var highWater = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// PeakMemory is the most memory that a living process has held, in bytes (VmHWM in proc(5)).
func PeakMemory(pid int) (int64, error) {
	file := fmt.Sprintf("/proc/%d/status", pid)
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	m := highWater.FindSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("%s tells no memory", file)
	}
	kib, err := strconv.ParseInt(string(m[1]), 10, 64)
	return kib << 10, err
}
