package portal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	kjson "sigs.k8s.io/json"

	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/registry"
	"zaentrum.io/zae/internal/telemetry"
	"zaentrum.io/zae/internal/trace"
)

// maxBody is the largest request body (decisions §8).
const maxBody = 1 << 20

// access says who may call an endpoint, and what must be there for it to make sense.
type access int

const (
	anybody    access = iota
	signedIn          // any valid bearer
	admin             // an admin's bearer
	chartAdmin        // an admin's bearer, on an instance that can manage chart addons
)

// call is one request, for the function that answers it.
type call struct {
	request *http.Request
	// caller is who it is from; nobody where anybody may call.
	caller caller
	// name is the addon in the path.
	name string
	// header is of the answer; a problem has it too.
	header http.Header
	// audit is what is noted of a write; nil for what is none.
	audit *audited
	// once is the request's standing among those with an Idempotency-Key; nil without one.
	once *once
	// mayWait is the request's own context: it ends when the caller goes away.
	mayWait context.Context
	// mustEnd goes on when the caller goes away, so that a write is not left half done.
	mustEnd context.Context
}

// none is the body of a request that has none.
type none struct{}

// handle makes a handler of a function: it checks the bearer, reads the body, and writes what the function
// answers, or the problem. Every answer of the API goes through here.
func handle[In, Out any](s *Server, who access, status int, do func(*call, In) (Out, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		out, err := answer(s, who, w, r, do)
		if err != nil {
			drain(r)
			s.problem(w, r, err)
			return
		}
		writeJSON(w, status, "application/json", out)
	}
}

func answer[In, Out any](s *Server, who access, w http.ResponseWriter, r *http.Request, do func(*call, In) (Out, error)) (out Out, err error) {
	mayWait, cancel := context.WithTimeout(r.Context(), s.o.RequestTimeout)
	defer cancel()
	mustEnd, cancelEnd := context.WithTimeout(context.WithoutCancel(r.Context()), s.o.RequestTimeout)
	defer cancelEnd()
	from, err := s.admit(mayWait, who, r)
	if err != nil {
		if writes(r.Method) {
			s.audit.refused(r, from, err)
		}
		return out, err
	}
	c := &call{request: r, caller: from, name: r.PathValue("name"), header: w.Header(), mayWait: mayWait, mustEnd: mustEnd}
	if writes(r.Method) { // every one, whatever becomes of it
		c.audit = s.audit.begin(r, from)
		ended := false
		defer func() {
			came := err
			if !ended { // a panic is on its way
				came = fault.New(fault.Internal, "panic")
			}
			s.audit.end(r, c.audit, w.Header().Get(apitype.HeaderReplayed) != "", came)
		}()
		out, err = perform(s, c, w, do)
		ended = true
		return out, err
	}
	return perform(s, c, w, do)
}

// perform reads the body of a request that is admitted, and does what it asks for.
func perform[In, Out any](s *Server, c *call, w http.ResponseWriter, do func(*call, In) (Out, error)) (out Out, _ error) {
	r := c.request
	var in In
	if err := decodeBody(w, r, &in); err != nil {
		return out, err
	}
	if c.name != "" && !possibleName(c.name) {
		return out, noAddon(c.name)
	}
	if r.Method != http.MethodPost && r.Method != http.MethodPatch {
		return do(c, in)
	}
	return onlyOnce(s, c, in, do)
}

// admit is who a request is from, if they may call and what they call is there.
func (s *Server) admit(ctx context.Context, who access, r *http.Request) (from caller, err error) {
	switch who {
	case anybody:
		return from, nil
	case signedIn:
		return s.auth.requireValid(ctx, r)
	}
	if from, err = s.auth.requireAdmin(ctx, r); err != nil {
		return from, err
	}
	if writes(r.Method) {
		if err := s.rates.take(from); err != nil {
			return from, err
		}
	}
	if who == chartAdmin {
		return from, s.available.require(ctx)
	}
	return from, nil
}

// drain throws away what is left of a body that is not much too large: a caller that is still sending would
// find the connection broken instead of the answer. One that waits to be asked for the body is not asked.
func drain(r *http.Request) {
	if r.Header.Get("Expect") == "" {
		_, _ = io.CopyN(io.Discard, r.Body, maxBody) // whatever comes of it, the answer is the same
	}
}

// decodeBody reads a body of exactly one JSON object with known fields only.
func decodeBody(w http.ResponseWriter, r *http.Request, into any) error {
	if r.Method == http.MethodGet || r.Method == http.MethodDelete || r.Method == http.MethodHead {
		return nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return fault.New(fault.TooLarge, "the body is larger than %d KiB", maxBody>>10)
		}
		return fault.New(fault.Malformed, "the body could not be read")
	}
	switch into.(type) {
	case *none, *apitype.InstallRequest: // which need none
		if len(body) == 0 {
			return nil
		}
	}
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if charset := strings.ToLower(params["charset"]); err != nil || media != "application/json" || charset != "" && charset != "utf-8" {
		return fault.New(fault.NotJSON, "the body is not declared as JSON").
			WithHint("send Content-Type: application/json")
	}
	return decodeStrict(body, into)
}

// decodeStrict decodes one JSON object. Names of fields are taken to the letter, unknown and repeated ones are
// refused by name: a typo in secretValues must not be lost silently. Nothing else of the body is quoted.
func decodeStrict(body []byte, into any) error {
	switch trimmed := bytes.TrimSpace(body); {
	case len(trimmed) == 0:
		return fault.New(fault.Malformed, "the body is empty")
	case !utf8.Valid(body):
		return fault.New(fault.Malformed, "the body is not UTF-8 text")
	case trimmed[0] != '{':
		return fault.New(fault.Malformed, "the body is not a JSON object")
	}
	strict, err := kjson.UnmarshalStrict(body, into)
	if err != nil {
		if is, at := kjson.SyntaxErrorOffset(err); is {
			return fault.New(fault.Malformed, "the body is not JSON: wrong at byte %d", at)
		}
		if typed, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && typed.Field != "" {
			return fault.New(fault.Malformed, "%s has the wrong type", shown(typed.Field))
		}
		return fault.New(fault.Malformed, "the body has a field of the wrong type")
	}
	if len(strict) == 0 {
		return nil
	}
	var what []string
	for _, e := range strict {
		what = append(what, shown(e.Error()))
	}
	slices.Sort(what)
	return fault.New(fault.Malformed, "%s", strings.Join(slices.Compact(what), "; ")).
		WithHint("field names are taken to the letter, upper and lower case included")
}

// shown is a piece of a request that an answer repeats: cut, and without control characters.
func shown(s string) string {
	const most = 200
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return '?'
		}
		return r
	}, s)
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// httpFault is a fault that this door answers in a way of its own.
type httpFault struct {
	*fault.Fault
	status int
	header http.Header
}

func (f *httpFault) Unwrap() error { return f.Fault }

// problem answers an error (RFC 9457).
func (s *Server) problem(w http.ResponseWriter, r *http.Request, err error) {
	f := fault.From(err)
	meaning := f.Code.Means()
	p := apitype.Problem{
		Type: "about:blank", Title: meaning.Title, Status: meaning.HTTP, Detail: f.Error(), Code: string(f.Code), Hint: f.Hint,
		Trace: trace.From(r.Context()).ID(),
	}
	if own, ok := errors.AsType[*httpFault](err); ok {
		if own.status != 0 {
			p.Status = own.status
			p.Title = strings.ToLower(http.StatusText(own.status))
		}
		for name, values := range own.header {
			w.Header()[name] = values
		}
	}
	switch f.Code {
	case fault.Internal:
		// What went wrong inside is for those who run this, not for those who call it.
		s.log.ErrorContext(r.Context(), "internal error", telemetry.KeyTrace, p.Trace, "route", r.Pattern, telemetry.KeyError, err)
		p.Detail, p.Hint = "something went wrong inside portal-api; its log says what", ""
	case fault.Database:
		s.log.ErrorContext(r.Context(), "registry failed", telemetry.KeyTrace, p.Trace, "route", r.Pattern, telemetry.KeyError, registry.Cause(err))
	case fault.Unavailable:
		p.Note = f.Error()
	}
	if p.Status == http.StatusServiceUnavailable && w.Header().Get("Retry-After") == "" {
		w.Header().Set("Retry-After", "5")
	}
	if o, ok := w.(*observer); ok {
		o.code = p.Code
	}
	writeJSON(w, p.Status, apitype.ProblemType, p)
}

func writeJSON(w http.ResponseWriter, status int, media string, body any) {
	out, err := json.Marshal(body)
	if err != nil { // only a document that JSON cannot hold, and none of ours is one
		status, out = http.StatusInternalServerError, []byte("{}")
	}
	w.Header().Set("Content-Type", media)
	w.WriteHeader(status)
	_, _ = w.Write(append(out, '\n')) // a caller that has gone misses nothing
}

func noAddon(name string) error {
	return fault.New(fault.NotFound, "there is no chart addon %s", shown(name)).WithHint("zae addon list shows those there are")
}

func malformed(format string, args ...any) *fault.Fault {
	return fault.New(fault.Malformed, format, args...)
}

func invalid(format string, args ...any) *fault.Fault {
	return fault.New(fault.Invalid, format, args...)
}

// count is a number with the word it counts.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
