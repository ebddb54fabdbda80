package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// auditLog is what the API server's audit log says about one house, read as far as it is written.
type auditLog struct {
	mu        sync.Mutex
	offset    int64
	operators []operatorRequest
	apis      []operatorRequest
	created   map[string]int // resource/name → how often
}

// operatorRequest is a request of an operator, or of the API, once it was answered.
type operatorRequest struct {
	Verb           string
	RequestURI     string
	Stage          string
	StageTimestamp time.Time
	User           struct {
		Username string
		Extra    map[string][]string
	}
	ObjectRef      struct{ Resource, Namespace, Name, Subresource string }
	ResponseStatus struct{ Code int }
}

func (r operatorRequest) credential() string {
	return strings.Join(r.User.Extra["authentication.kubernetes.io/credential-id"], "")
}

func (r operatorRequest) String() string {
	return strings.TrimSuffix(r.Verb+" "+r.ObjectRef.Resource+"/"+r.ObjectRef.Name+"/"+r.ObjectRef.Subresource, "/")
}

func (r operatorRequest) dryRun() bool { return strings.Contains(r.RequestURI, "dryRun=") }

// writes tells whether the API server did something for it.
func (r operatorRequest) writes() bool {
	switch r.Verb {
	case "get", "list", "watch":
		return false
	}
	switch r.ObjectRef.Resource {
	case "leases", "selfsubjectaccessreviews":
		return false
	case "events": // who leads
		if strings.HasPrefix(r.ObjectRef.Name, "zae-operator.") {
			return false
		}
	}
	return !r.dryRun() && r.ResponseStatus.Code < 300
}

// read reads on.
func (a *auditLog) read(namespace string) error {
	f, err := os.Open(bed.AuditLog)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Seek(a.offset, io.SeekStart); err != nil {
		return err
	}
	if a.created == nil {
		a.created = map[string]int{}
	}
	lines := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // half a line is read again
		}
		if err != nil {
			return err
		}
		a.offset += int64(len(line))
		if !bytes.Contains(line, []byte(namespace)) {
			continue
		}
		var r operatorRequest
		if json.Unmarshal(line, &r) != nil || r.Stage != "ResponseComplete" {
			continue
		}
		if r.User.Username == "system:serviceaccount:"+namespace+":zae-operator" {
			a.operators = append(a.operators, r)
		}
		if r.User.Username == "system:serviceaccount:"+namespace+":zae-api" {
			a.apis = append(a.apis, r)
		}
		if r.ObjectRef.Namespace == namespace && r.ObjectRef.Subresource == "" && r.ResponseStatus.Code == 201 && !r.dryRun() {
			a.created[r.ObjectRef.Resource+"/"+r.ObjectRef.Name]++
		}
	}
}

// requestsOf are the requests with one of these credentials, in the order of their answers.
func (h *house) requestsOf(credentials ...string) []operatorRequest {
	h.Helper()
	h.audit.mu.Lock()
	defer h.audit.mu.Unlock()
	if err := h.audit.read(h.Namespace); err != nil {
		h.Fatal(err)
	}
	var out []operatorRequest
	for _, r := range h.audit.operators {
		if slices.Contains(credentials, r.credential()) {
			out = append(out, r)
		}
	}
	return out
}

// apiRequests are the requests of the API, in the order of their answers.
func (h *house) apiRequests() []operatorRequest {
	h.Helper()
	h.audit.mu.Lock()
	defer h.audit.mu.Unlock()
	if err := h.audit.read(h.Namespace); err != nil {
		h.Fatal(err)
	}
	return slices.Clone(h.audit.apis)
}

// operatorWrites are the first operator's writes that the API server did.
func (h *house) operatorWrites() []operatorRequest {
	h.Helper()
	return slices.DeleteFunc(h.requestsOf(h.Credential), func(r operatorRequest) bool { return !r.writes() })
}

// creations is how often an object was created, as jobs/x.
func (h *house) creations(object string) int {
	h.Helper()
	return h.creationsLike(func(o string) bool { return o == object })
}

func (h *house) creationsLike(fits func(object string) bool) int {
	h.Helper()
	h.audit.mu.Lock()
	defer h.audit.mu.Unlock()
	if err := h.audit.read(h.Namespace); err != nil {
		h.Fatal(err)
	}
	n := 0
	for object, times := range h.audit.created {
		if fits(object) {
			n += times
		}
	}
	return n
}
