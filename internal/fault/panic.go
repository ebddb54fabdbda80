package fault

import (
	"fmt"
	"runtime/debug"
)

// Panic is a panic that was recovered: where it was, and not what it said, which may quote anything.
type Panic struct {
	Type  string // of the value
	Stack string // names of functions and lines; arguments only as addresses
}

// Error names the type.
func (p *Panic) Error() string { return "panic with a " + p.Type }

// Recovered makes an Internal fault of what recover answered, with a Panic as its cause. It must be called by the deferred
// function itself, or the stack is of elsewhere.
func Recovered(value any, format string, args ...any) *Fault {
	return New(Internal, format, args...).
		WithHint("this is a fault of zae itself; its log says where").
		Because(&Panic{Type: fmt.Sprintf("%T", value), Stack: string(debug.Stack())})
}
