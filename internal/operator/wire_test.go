package operator_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
)

// wire is what the operators of a house send to the API server.
type wire struct {
	mu     sync.Mutex
	seen   []request
	before func(*http.Request) *http.Response
	lost   func(*http.Request) bool
}

// request is one that was sent.
type request struct {
	verb   string // GET, PATCH, …
	path   string // below the namespace: secrets/x
	dryRun bool
	accept string
}

// hook has a function called with each request before it is sent, which may answer in place of the API server.
func (r *wire) hook(before func(*http.Request) *http.Response) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.before = before
}

// lose has a function called with each request that is not answered by a hook, which tells whether the answer gets lost.
func (r *wire) lose(lost func(*http.Request) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost = lost
}

func (r *wire) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		r.mu.Lock()
		r.seen = append(r.seen, request{req.Method, below(req), req.URL.Query().Has("dryRun"), req.Header.Get("Accept")})
		before := r.before
		loses := r.lost != nil && r.lost(req)
		r.mu.Unlock()
		if before != nil {
			if answer := before(req); answer != nil {
				if req.Body != nil {
					_ = req.Body.Close()
				}
				answer.Request = req
				return answer, nil
			}
		}
		answer, err := next.RoundTrip(req)
		if loses && err == nil {
			_ = answer.Body.Close()
			return nil, errLost
		}
		return answer, err
	})
}

var errLost = errors.New("the connection was cut")

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// below is what a path names inside of its namespace.
func below(r *http.Request) string {
	_, rest, ok := strings.Cut(r.URL.Path, "/namespaces/")
	if !ok {
		return ""
	}
	_, rest, _ = strings.Cut(rest, "/")
	return rest
}

// writes tells whether the API server would do something for it.
func writes(r *http.Request) bool {
	return r.Method != http.MethodGet && !r.URL.Query().Has("dryRun")
}

// of are the requests so far about one object, as secrets/x.
func (r *wire) of(path string) []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []request
	for _, s := range r.seen {
		if s.path == path {
			out = append(out, s)
		}
	}
	return out
}

// status is an answer of the API server.
func status(code int, reason string) *http.Response {
	text := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"` + reason + `"}`
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text)),
	}
}
