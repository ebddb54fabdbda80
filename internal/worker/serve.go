package worker

import (
	"bufio"
	"context"
	"io"
	"log"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"time"

	"zaentrum.io/zae/internal/chart"
)

// argument makes a program a worker: it is followed by the bounds of a job.
const argument = "render-worker"

// Requested tells whether a program was started to be a worker, by its arguments without its name.
func Requested(args []string) bool { return len(args) == 3 && args[0] == argument }

// Serve is the worker's program: it answers jobs from in on out until in ends, and is the exit status. It
// bounds the whole process, so it must be all that the process does.
func Serve(args []string, in io.Reader, out io.Writer) int {
	limits, ok := limitsOf(args)
	if !ok {
		return exitWire
	}
	log.SetOutput(io.Discard) // Helm logs values
	os.Stdout = os.Stderr     // what prints without being asked must not meet the answers
	debug.SetMaxStack(maxStack)
	debug.SetGCPercent(400) // a small heap that is thrown away with each job: the limit decides
	debug.SetMemoryLimit(limits.Memory / 4 * 3)
	confine(limits.Memory)
	s := &server{limits: limits, out: out}
	// Requests are read ahead, so that the end of the input ends a job that is under way.
	requests := make(chan *request)
	go func() {
		defer close(requests)
		r := bufio.NewReaderSize(in, 64<<10)
		for {
			q := &request{}
			err := receive(r, q)
			if err != nil {
				os.Exit(0)
			}
			requests <- q
		}
	}()
	for q := range requests {
		if !s.answer(q) {
			return exitWire
		}
	}
	return 0
}

func (l Limits) args() []string {
	return []string{argument, strconv.FormatInt(int64(l.CPU), 10), strconv.FormatInt(l.Memory, 10)}
}

func limitsOf(args []string) (Limits, bool) {
	if !Requested(args) {
		return Limits{}, false
	}
	cpu, err1 := strconv.ParseInt(args[1], 10, 64)
	memory, err2 := strconv.ParseInt(args[2], 10, 64)
	return Limits{CPU: time.Duration(cpu), Memory: memory}, err1 == nil && err2 == nil && cpu > 0 && memory > 0
}

type server struct {
	limits Limits
	out    io.Writer
	charts charts
}

// answer does one job. It is false when the answer could not be sent.
func (s *server) answer(q *request) bool {
	done := make(chan struct{})
	go s.watch(processorTime()+s.limits.CPU, done)
	before := allocated()
	r := s.do(q)
	if allocated()-before > uint64(s.limits.Memory)/2 && peak() > s.limits.Memory && !raceDetector {
		os.Exit(exitMemory) // it was done before the watchdog looked, as on a machine with much to do
	}
	r.Spent = inUse() > s.limits.Memory/3
	frame, err := encode(r)
	if err != nil {
		frame, err = encode(&response{Result: &Result{ValuesErrors: []string{"the templates render more than can be handed over"}}})
	}
	close(done)
	if err != nil {
		return false
	}
	_, err = s.out.Write(frame)
	return err == nil
}

func (s *server) do(q *request) *response {
	l, ok := s.charts.get(q.Digest)
	if !ok && q.Archive == nil {
		return &response{Need: true}
	}
	if !ok {
		var err error
		if l, err = s.charts.of(&chart.Archive{Bytes: q.Archive, Digest: q.Digest}); err != nil {
			return &response{Fault: toWire(err)}
		}
	}
	if q.Job == nil {
		return &response{Chart: l.describe()}
	}
	var j Job
	if decoding.Unmarshal(q.Job, &j) != nil {
		return &response{}
	}
	if q.Lint != "" {
		return &response{Lint: &linted{l.helmLint(q.Lint, j)}}
	}
	return &response{Result: l.render(context.Background(), j, q.Twice, s.limits.CPU/2)}
}

// pulse is how often the watchdog looks.
const pulse = 10 * time.Millisecond

// watch ends the process when the job under way needs more than until of processor time, or too much memory, before it
// is done: nothing in a template can be asked to stop. A worker without a job sleeps.
func (s *server) watch(until time.Duration, done <-chan struct{}) {
	ticker := time.NewTicker(pulse) // which ends with what waits for it
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
		}
		if processorTime() > until {
			os.Exit(exitCPU)
		}
		if inUse() > s.limits.Memory {
			os.Exit(exitMemory)
		}
	}
}

// allocated is all memory that was handed out on the heap so far.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// inUse is the memory that this process has from the system.
func inUse() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64() - sample[1].Value.Uint64())
}
