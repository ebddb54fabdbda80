package portal

import (
	"net/http"
	"reflect"
	"slices"
	"strings"

	"zaentrum.io/zae/internal/fault"
)

const textPlain = "text/plain; charset=utf-8"

// route is one call of the API: its address, what answers it, and what is said of it. The table of routes is the
// only place where a call is described.
type route struct {
	method, path string
	// id is the call's name, in camel case; no two calls have the same.
	id string
	// summary says in one sentence what the call does, and detail what else there is to know.
	summary, detail string
	who             access
	status          int // of success
	// also are other statuses that are no problem, and what they mean.
	also map[int]string
	// media is the answer's type; empty means application/json.
	media string
	// query and header are what the call takes beside path and body.
	query, header []parameter
	// tells are headers of the answer.
	tells []parameter
	// codes are the problems that the call has beyond those of every call of its kind; see problems.
	codes []fault.Code
	// in and out are the bodies; nil where there is none.
	in, out reflect.Type
	handler http.HandlerFunc
}

// parameter is one parameter of a query, or a header.
type parameter struct{ name, about string }

// problems are the codes of all problems that the call may answer, sorted.
func (r route) problems() []fault.Code {
	if r.path == "/healthz" || r.path == "/readyz" || r.path == "/metrics" {
		return r.codes
	}
	all := append([]fault.Code{fault.Internal}, r.codes...)
	if r.who != anybody {
		all = append(all, fault.NoBearer, fault.SignIn, fault.Database)
	}
	if r.who == admin || r.who == chartAdmin {
		all = append(all, fault.Forbidden, fault.Cluster)
	}
	if r.who == chartAdmin {
		all = append(all, fault.Unavailable)
	}
	if strings.Contains(r.path, "{name}") {
		all = append(all, fault.NotFound)
	}
	if writes(r.method) {
		all = append(all, fault.RateLimited, fault.Malformed)
	}
	if r.in != nil {
		all = append(all, fault.Malformed, fault.Invalid, fault.TooLarge, fault.NotJSON)
	}
	if r.once() {
		all = append(all, fault.KeyReused, fault.InFlight)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// once tells whether the call takes an Idempotency-Key.
func (r route) once() bool { return r.method == http.MethodPost || r.method == http.MethodPatch }

// endpoint is a route whose bodies are JSON, and whose every answer goes through handle.
func endpoint[In, Out any](s *Server, r route, do func(*call, In) (Out, error)) route {
	r.in, r.out = bodyType[In](), bodyType[Out]()
	r.handler = handle(s, r.who, r.status, do)
	return r
}

// bodyType is the type of a body; nil for none.
func bodyType[T any]() reflect.Type {
	if t := reflect.TypeFor[T](); t != reflect.TypeFor[none]() {
		return t
	}
	return nil
}

// mux serves the routes, and answers every other method and address with a problem instead of a line of text.
func (s *Server) mux(routes []route) *http.ServeMux {
	mux := http.NewServeMux()
	methods := map[string][]string{}
	for _, r := range routes {
		mux.HandleFunc(r.method+" "+r.path, r.handler)
		methods[r.path] = append(methods[r.path], r.method)
	}
	for path, methods := range methods {
		if slices.Contains(methods, http.MethodGet) {
			methods = append(methods, http.MethodHead)
		}
		slices.Sort(methods)
		allow := strings.Join(methods, ", ")
		mux.HandleFunc(path, func(w http.ResponseWriter, req *http.Request) {
			s.problem(w, req, &httpFault{
				Fault:  fault.New(fault.Malformed, "this address does not take this method").WithHint("it takes %s", allow),
				status: http.StatusMethodNotAllowed,
				header: http.Header{"Allow": {allow}},
			})
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
		s.problem(w, req, &httpFault{Fault: fault.New(fault.NotFound, "there is nothing at this address"), status: http.StatusNotFound})
	})
	return mux
}
