// Package trace names a piece of work across processes, as W3C Trace Context does (https://www.w3.org/TR/trace-context/):
// one id from the command line over the API to the operator's reconciles, in headers, logs, an annotation and spans.
//
// A context holds hexadecimal digits and nothing else, whatever was sent.
package trace

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
)

// Names of HTTP headers.
const (
	// HeaderParent of a request says what it is part of.
	HeaderParent = "Traceparent"
	// HeaderResponse of an answer says what the request was part of, in the form of HeaderParent.
	HeaderResponse = "Traceresponse"
)

// Context is a place in a trace. The zero value is none.
type Context struct {
	// Trace is the id of the whole, and Span of the part.
	Trace [16]byte
	Span  [8]byte
	// Sampled tells that the caller keeps its part of the trace.
	Sampled bool
}

// length of a context of version 00: 2 digits of version, 32, 16 and 2 of flags, with dashes between them.
const length = 2 + 1 + 32 + 1 + 16 + 1 + 2

// Parse reads the value of a traceparent header. It is false for what is none. A later version than 00 is read as the
// specification asks for: by the parts that 00 has.
func Parse(text string) (Context, bool) {
	if len(text) < length {
		return Context{}, false
	}
	head, rest := text[:length], text[length:]
	if strings.ToLower(head) != head || head[2] != '-' || head[35] != '-' || head[52] != '-' {
		return Context{}, false
	}
	var version, flags [1]byte
	var c Context
	for _, part := range []struct {
		into []byte
		text string
	}{{version[:], head[:2]}, {c.Trace[:], head[3:35]}, {c.Span[:], head[36:52]}, {flags[:], head[53:]}} {
		if _, err := hex.Decode(part.into, []byte(part.text)); err != nil {
			return Context{}, false
		}
	}
	switch {
	case version[0] == 0xff, version[0] == 0 && rest != "", rest != "" && rest[0] != '-', !c.Valid():
		return Context{}, false
	}
	c.Sampled = flags[0]&1 != 0
	return c, true
}

// Valid tells whether c is a place in a trace.
func (c Context) Valid() bool { return c.Trace != [16]byte{} && c.Span != [8]byte{} }

// String is c as the value of a header; empty for none.
func (c Context) String() string {
	if !c.Valid() {
		return ""
	}
	flags := 0
	if c.Sampled {
		flags = 1
	}
	return fmt.Sprintf("00-%x-%x-%02x", c.Trace, c.Span, flags)
}

// ID is the id of the trace, 32 hexadecimal digits; empty for none.
func (c Context) ID() string {
	if !c.Valid() {
		return ""
	}
	return hex.EncodeToString(c.Trace[:])
}

// New starts a trace, which is sampled.
func New(random io.Reader) (Context, error) {
	c := Context{Sampled: true}
	if _, err := io.ReadFull(random, c.Trace[:]); err != nil {
		return Context{}, err
	}
	return c.Child(random)
}

// Child is another place in the same trace.
func (c Context) Child(random io.Reader) (Context, error) {
	if _, err := io.ReadFull(random, c.Span[:]); err != nil {
		return Context{}, err
	}
	if !c.Valid() { // a source that gives zeros only
		return Context{}, io.ErrNoProgress
	}
	return c, nil
}

type key struct{}

// With is a context that carries c.
func With(ctx context.Context, c Context) context.Context { return context.WithValue(ctx, key{}, c) }

// From is what a context carries; the zero Context when that is nothing.
func From(ctx context.Context) Context {
	c, _ := ctx.Value(key{}).(Context)
	return c
}
