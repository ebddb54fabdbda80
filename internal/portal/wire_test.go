package portal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// wire is the connection between portal-api and the API server.
type wire struct {
	mu     sync.Mutex
	writes []string
	// watching are the watches that are open, and watched how many there were.
	watching []io.Closer
	watched  int
	// before, when set, sees each request before it is sent, and may answer in the API server's place.
	before func(*http.Request) *http.Response
	// lose, when set, tells whether the answer to a request is lost, after the API server has worked on it.
	lose func(*http.Request) bool
}

func (w *wire) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		w.mu.Lock()
		before, lose := w.before, w.lose
		w.mu.Unlock()
		if before != nil {
			if answer := before(r); answer != nil {
				if err := r.Context().Err(); err != nil {
					return nil, err
				}
				answer.Request = r
				return answer, nil
			}
		}
		if isWrite(r) {
			w.mu.Lock()
			w.writes = append(w.writes, r.Method+" "+r.URL.Path)
			w.mu.Unlock()
		}
		response, err := next.RoundTrip(r)
		if err == nil && lose != nil && lose(r) {
			_ = response.Body.Close() // nobody sees it
			return nil, errors.New("connection lost")
		}
		if err == nil && r.URL.Query().Has("watch") {
			w.mu.Lock()
			w.watching = append(w.watching, response.Body)
			w.watched++
			w.mu.Unlock()
		}
		return response, err
	})
}

// watches is how many watches were opened.
func (w *wire) watches() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.watched
}

// cut breaks off the watches that are open.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, body := range w.watching {
		_ = body.Close() // the watch finds out
	}
	w.watching = nil
}

func isWrite(r *http.Request) bool {
	return r.Method != http.MethodGet && !r.URL.Query().Has("dryRun") && !strings.HasSuffix(r.URL.Path, "selfsubjectaccessreviews")
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (w *wire) intercept(f func(*http.Request) *http.Response) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before = f
}

// losing makes answers get lost until it is called with nil.
func (w *wire) losing(f func(*http.Request) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lose = f
}

func (w *wire) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.writes
	w.writes = nil
	return out
}

// failure is an answer of a broken API server that quotes what it should not.
func failure(status int32, reason metav1.StatusReason) *http.Response {
	return answerStatus(metav1.Status{Code: status, Reason: reason})
}

func answerStatus(status metav1.Status) *http.Response {
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	status.Status, status.Message = metav1.StatusFailure, "broken, and it says "+canary
	body, err := json.Marshal(status)
	if err != nil {
		panic(err)
	}
	return &http.Response{
		StatusCode: int(status.Code), Status: http.StatusText(int(status.Code)), Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(body)),
	}
}
