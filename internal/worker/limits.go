package worker

import "time"

// Limits bound one job. The zero value of a field is its default.
type Limits struct {
	// CPU is processor time, 3 s by default.
	CPU time.Duration
	// Wall is time, 6 s by default. It ends what waits instead of working.
	Wall time.Duration
	// Memory is bytes, 384 MiB by default: of the whole process, with the charts it keeps.
	Memory int64
}

// The defaults of Limits.
const (
	DefaultCPU    = 3 * time.Second
	DefaultWall   = 6 * time.Second
	DefaultMemory = 384 << 20
)

// maxStack ends runaway recursion of templates and of what reads them. Helm's own bound on includes and
// text/template's bound on nesting stay far below it.
const maxStack = 128 << 20

func (l Limits) withDefaults() Limits {
	if l.CPU <= 0 {
		l.CPU = DefaultCPU
	}
	if l.Wall <= 0 {
		l.Wall = DefaultWall
	}
	if l.Memory <= 0 {
		l.Memory = DefaultMemory
	}
	return l
}

// Exit statuses of a worker that ended itself.
const (
	exitCPU    = 81
	exitMemory = 82
	exitWire   = 83
)
