package portal

import (
	"net/http"

	"zaentrum.io/zae/internal/fault"
)

// front stands before all routes: it refuses what nothing answers, and sends calls to apps their way. They do not go by
// the mux, which decodes and cleans paths: an app's path is taken as it was sent.
func (s *Server) front(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.unwelcome(r); err != nil {
			drain(r)
			s.problem(w, r, err)
			return
		}
		if _, _, _, proxied := splitProxied(r.URL.EscapedPath()); proxied {
			s.proxy.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// unwelcome says why a request is refused whatever it asks for; nil when it is not.
func (s *Server) unwelcome(r *http.Request) error {
	if r.Method == http.MethodConnect || r.Method == http.MethodTrace {
		return notAllowed("every other method")
	}
	if err := s.crossOrigin.Check(r); err != nil {
		return crossOriginFault()
	}
	return nil
}

// crossOriginFault refuses a call that the page of another site makes.
func crossOriginFault() error {
	return fault.New(fault.Forbidden, "the page of another site asks for this").
		WithHint("call from the portal's own pages, or from a program, which sends neither Origin nor Sec-Fetch-Site")
}
