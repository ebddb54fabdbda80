package worker

// Processes are the process ids of a pool's workers.
func Processes(p *Pool) []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	var pids []int
	for w := range p.live {
		pids = append(pids, w.cmd.Process.Pid)
	}
	return pids
}

// Slow is how much slower everything is in this build.
func Slow() int {
	if raceDetector {
		return 5
	}
	return 1
}

// Peak is the most memory that this process has used so far.
func Peak() int64 { return peak() }
