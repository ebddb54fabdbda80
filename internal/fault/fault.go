// Package fault holds the one error type that people and scripts meet, and the one table that says
// what each kind of fault means at every door: exit status, HTTP status and whether trying again helps.
//
// A fault is made once, where the remedy is known. It never carries a value of an input or of a Secret.
package fault

import (
	"errors"
	"fmt"
	"slices"
)

// Code is a stable, machine-readable kind of fault. Codes are part of the API and never change meaning.
type Code string

// The kinds of fault.
const (
	Internal     Code = "internal"            // our own fault
	Usage        Code = "usage"               // the command line is wrong
	Malformed    Code = "malformed"           // the request or document cannot be understood
	Invalid      Code = "invalid"             // understood, and not acceptable
	TooLarge     Code = "too-large"           // over a stated limit
	NotJSON      Code = "not-json"            // the body is not declared as JSON
	NoBearer     Code = "no-bearer"           // no valid bearer token
	Forbidden    Code = "forbidden"           // a valid bearer without the right
	NotFound     Code = "not-found"           // no such addon
	Conflict     Code = "conflict"            // changed meanwhile
	NameTaken    Code = "name-taken"          // the name belongs to something else
	NoPlan       Code = "no-current-plan"     // no plan for the current generation
	PlanBlocked  Code = "plan-blocked"        // the plan has violations or values errors
	Deleting     Code = "being-deleted"       // the resource is on its way out
	Refused      Code = "refused-by-cluster"  // the cluster refused the object
	Cluster      Code = "cluster-failed"      // the cluster misbehaved or cannot be reached
	Unavailable  Code = "unavailable"         // this instance cannot manage chart addons
	NotReady     Code = "not-ready"           // not Ready in time
	Declined     Code = "declined"            // the person said no
	Database     Code = "database-failed"     // the registry's database cannot be reached, or cannot work
	SignIn       Code = "sign-in-unavailable" // the issuer cannot be reached, so nobody can be recognized
	Unreachable  Code = "unreachable"         // the instance cannot be reached or speaks another language
	Chart        Code = "chart"               // the chart cannot be used
	Manifest     Code = "manifest"            // the addon's manifest cannot be used
	Overrun      Code = "chart-overrun"       // the chart needs more time or memory than it may have
	ChartMissing Code = "chart-not-found"     // there is no such chart or version
	Registry     Code = "registry"            // the chart's registry failed
	Digest       Code = "digest-mismatch"     // the archive is not the one asked for
	AddonDown    Code = "addon-unreachable"   // the addon's server cannot be reached, or takes no more
	AddonFailed  Code = "addon-failed"        // the addon's server misbehaved
	KeyReused    Code = "key-reused"          // an idempotency key that stands for another request
	InFlight     Code = "in-flight"           // the same request is being worked on
	RateLimited  Code = "rate-limited"        // too many requests
	Busy         Code = "busy"                // the instance has as much to do as it takes
	Interrupted  Code = "interrupted"         // SIGINT
	Terminated   Code = "terminated"          // SIGTERM
)

// Meaning is what a code means at the doors.
type Meaning struct {
	Exit  int    // exit status of zae (decisions §7)
	HTTP  int    // HTTP status of portal-api (decisions §6)
	Title string // short summary of the kind, the same for every occurrence (RFC 9457 title)
	Retry bool   // whether the same call may succeed later with nothing else changed
}

// table is the table: every code has one row.
var table = map[Code]Meaning{
	Internal:     {1, 500, "internal error", false},
	Usage:        {2, 400, "wrong usage", false},
	Malformed:    {1, 400, "malformed request", false},
	Invalid:      {1, 400, "invalid request", false},
	TooLarge:     {1, 413, "too large", false},
	NotJSON:      {1, 415, "not JSON", false},
	NoBearer:     {5, 401, "no valid bearer", false},
	Forbidden:    {5, 403, "not allowed", false},
	NotFound:     {3, 404, "no such addon", false},
	Conflict:     {1, 409, "changed meanwhile", true},
	NameTaken:    {1, 409, "name taken", false},
	NoPlan:       {1, 409, "no current plan", true},
	PlanBlocked:  {1, 409, "plan blocked", false},
	Deleting:     {1, 409, "being deleted", true},
	Refused:      {1, 422, "refused by the cluster", false},
	Cluster:      {1, 502, "cluster failed", true},
	Unavailable:  {3, 503, "chart addons not available", true},
	NotReady:     {1, 504, "not ready in time", true},
	Declined:     {1, 400, "declined", false},
	Database:     {1, 503, "database failed", true},
	SignIn:       {4, 503, "sign-in not available", true},
	Unreachable:  {4, 502, "unreachable", true},
	Chart:        {1, 422, "chart unusable", false},
	Manifest:     {1, 422, "manifest unusable", false},
	Overrun:      {1, 422, "chart needs too much", true},
	ChartMissing: {1, 422, "chart not found", true},
	Registry:     {1, 502, "chart registry failed", true},
	Digest:       {1, 422, "digest mismatch", false},
	AddonDown:    {1, 503, "addon unreachable", true},
	AddonFailed:  {1, 502, "addon failed", true},
	KeyReused:    {1, 422, "key stands for another request", false},
	InFlight:     {1, 409, "request in flight", true},
	RateLimited:  {1, 429, "too many requests", true},
	Busy:         {4, 503, "busy", true},
	Interrupted:  {130, 500, "interrupted", true},
	Terminated:   {143, 500, "terminated", true},
}

// Codes are all codes, sorted.
func Codes() []Code {
	codes := make([]Code, 0, len(table))
	for c := range table {
		codes = append(codes, c)
	}
	slices.Sort(codes)
	return codes
}

// Means is the table's row for c; a code that is in no row means Internal.
func (c Code) Means() Meaning {
	if m, ok := table[c]; ok {
		return m
	}
	return table[Internal]
}

// Fault says what went wrong, about which thing, and what to do.
type Fault struct {
	Code    Code
	Message string // lower case, without a final stop
	Hint    string // the way out; may be empty
	Trace   string // the id under which a server's log has it; may be empty
	cause   error  // for errors.Is and errors.As only; its text is never shown
}

// New makes a fault. The message must not carry a value of an input or a Secret.
func New(code Code, format string, args ...any) *Fault {
	return &Fault{Code: code, Message: fmt.Sprintf(format, args...)}
}

// WithHint returns f with the way out.
func (f *Fault) WithHint(format string, args ...any) *Fault {
	g := *f
	g.Hint = fmt.Sprintf(format, args...)
	return &g
}

// WithTrace returns f with the id under which a server's log has it.
func (f *Fault) WithTrace(id string) *Fault {
	g := *f
	g.Trace = id
	return &g
}

// Because returns f with a cause that errors.Is and errors.As see. The cause's text is not shown.
func (f *Fault) Because(err error) *Fault {
	g := *f
	g.cause = err
	return &g
}

// Error is the message, without the hint.
func (f *Fault) Error() string { return f.Message }

// Unwrap is the cause.
func (f *Fault) Unwrap() error { return f.cause }

// From finds the fault in err's chain. An error that is none becomes an Internal one with err's text.
// It is nil for a nil error.
func From(err error) *Fault {
	if err == nil {
		return nil
	}
	var f *Fault
	if errors.As(err, &f) {
		if text := err.Error(); text != f.Message { // wrapped by the noun being worked on
			g := *f
			g.Message = text
			return &g
		}
		return f
	}
	return &Fault{Code: Internal, Message: err.Error(), cause: err}
}

// CodeOf is the code of err; Internal when it carries none, empty for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	return From(err).Code
}
