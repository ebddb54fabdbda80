package portal

import (
	"context"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"zaentrum.io/zae/internal/apitype"
)

// readyTimeout bounds one look at what portal-api depends on.
const readyTimeout = 5 * time.Second

// Development are the settings in use that are for development only, and are never to be left on where others sign in:
// sorted, without their values.
func (s *Server) Development() []string { return development(s.o) }

func development(o Options) []string {
	var out []string
	if len(o.Resolve) > 0 {
		out = append(out, "resolve: Services are reached elsewhere: "+strings.Join(slices.Sorted(maps.Keys(o.Resolve)), ", "))
	}
	if inTheClear(o.Auth.Issuer) {
		out = append(out, "issuer: its keys are read over http")
	}
	if inTheClear(o.PublicOrigin) {
		out = append(out, "public-origin: bearers are sent over http")
	}
	slices.Sort(out)
	return out
}

// inTheClear tells whether an address is reached over http, and is not on this machine.
func inTheClear(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" {
		return false
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return false
	}
	addr, err := netip.ParseAddr(host)
	return err != nil || !addr.Unmap().IsLoopback()
}

// ready tells whether requests can be served. Only the database counts: without it no call can be answered, and another
// replica may have it. The cluster and the issuer are everybody's: a replica taken out of service because one of them is
// away would leave nobody to say so, and what needs neither, such as the launchpad, works without. How they are is told to
// those who ask with ?verbose, or for JSON.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	asJSON := wantsJSON(r)
	out := apitype.Readiness{Checks: map[string]apitype.Check{}, Development: s.Development()}
	if err := s.o.Registry.Ping(ctx); err != nil {
		s.log.Error("registry cannot be read", "error", err)
		out.Checks["database"] = apitype.Check{Note: "the registry cannot be read"}
	} else {
		out.Ready = true
		out.Checks["database"] = apitype.Check{OK: true}
	}
	if asJSON || r.URL.Query().Has("verbose") {
		out.Checks["cluster"], out.Checks["issuer"] = s.clusterCheck(ctx), s.issuerCheck(ctx)
	}
	status := http.StatusOK
	if !out.Ready {
		status = http.StatusServiceUnavailable
	}
	if asJSON {
		writeJSON(w, status, "application/json", out)
		return
	}
	writeText(w, status, readyText(out))
}

// wantsJSON tells whether a caller asks for JSON by name.
func wantsJSON(r *http.Request) bool {
	for accepted := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		if media, _, err := mime.ParseMediaType(accepted); err == nil && media == "application/json" {
			return true
		}
	}
	return false
}

func readyText(r apitype.Readiness) string {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(r.Checks)) {
		switch check := r.Checks[name]; {
		case !check.OK:
			fmt.Fprintf(&out, "%s: %s\n", name, check.Note)
		case len(r.Checks) > 1:
			fmt.Fprintf(&out, "%s: ok\n", name)
		}
	}
	for _, what := range r.Development {
		fmt.Fprintf(&out, "development only: %s\n", what)
	}
	if r.Ready {
		out.WriteString("ok\n")
	}
	return out.String()
}

func (s *Server) clusterCheck(ctx context.Context) apitype.Check {
	switch note, err := s.available.get(ctx); {
	case err != nil:
		return apitype.Check{Note: "the cluster does not answer, or not as it should"}
	case note == noteOutside:
		return apitype.Check{OK: true, Note: note}
	case note != "":
		return apitype.Check{Note: note}
	}
	return apitype.Check{OK: true}
}

func (s *Server) issuerCheck(ctx context.Context) apitype.Check {
	switch {
	case s.auth.auth.Issuer == "":
		return apitype.Check{Note: "no issuer is configured, so nobody can sign in"}
	case s.auth.issuer.find(ctx) == nil:
		return apitype.Check{Note: "the issuer cannot be reached"}
	case s.auth.issuer.unread():
		return apitype.Check{Note: "the issuer's keys could not be read"}
	}
	return apitype.Check{OK: true}
}
