package portal

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"zaentrum.io/zae/internal/fault"
)

// conditional is an endpoint that is read often and changes seldom: its answers carry an entity tag of their bytes, and who
// has them already is told so (RFC 9110, §13.1.2).
func conditional[In, Out any](s *Server, r route, do func(*call, In) (Out, error)) route {
	r.in, r.out = bodyType[In](), bodyType[Out]()
	r.header = []parameter{{"If-None-Match", "ETags of answers that the caller has."}}
	r.tells = []parameter{{"ETag", "Stands for the answer."}}
	r.also = map[int]string{http.StatusNotModified: "The caller has this answer already."}
	r.codes = []fault.Code{fault.Malformed}
	r.handler = func(w http.ResponseWriter, req *http.Request) {
		out, err := answer(s, r.who, w, req, do)
		if err != nil {
			drain(req)
			s.problem(w, req, err)
			return
		}
		body := &bytes.Buffer{}
		_ = json.NewEncoder(body).Encode(out) // documents of ours are such that JSON can hold; a buffer takes all
		sum := sha256.Sum256(body.Bytes())
		tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:]) + `"`
		// The caller may keep the answer, for itself, and must ask each time whether it is still right.
		w.Header().Set("Cache-Control", "private, no-cache")
		w.Header().Set("Vary", "Authorization")
		w.Header().Set("ETag", tag)
		if noneMatch(req.Header, tag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(r.status)
		_, _ = w.Write(body.Bytes()) // a caller that has gone misses nothing
	}
	return r
}

// noneMatch tells whether If-None-Match names the tag, compared weakly. A header that cannot be read asks for nothing.
func noneMatch(header http.Header, tag string) bool {
	list := strings.Trim(strings.Join(header.Values("If-None-Match"), ","), " \t")
	if list == "*" {
		return true
	}
	if !tagList.MatchString(list) {
		return false
	}
	return slices.ContainsFunc(oneTag.FindAllString(list, -1), func(given string) bool { return strings.TrimPrefix(given, "W/") == tag })
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
