package cli

import (
	"encoding/base64"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/rogpeppe/go-internal/testscript"
)

// nowhere TEXT [FILE …] checks that nothing the program has printed in this script, and none of the files, has the text in
// it, as it is or as base64.
func cmdNowhere(ts *testscript.TestScript, _ bool, args []string) {
	all := ts.Value(shownKey).(*shown)
	look := func(where, text string) {
		for _, form := range []string{args[0], base64.StdEncoding.EncodeToString([]byte(args[0]))} {
			if strings.Contains(text, form) {
				ts.Fatalf("%s has %s in it", where, form)
			}
		}
	}
	look("standard output", all.out.String())
	look("standard error", all.err.String())
	if all.out.Len()+all.err.Len() == 0 {
		ts.Fatalf("nothing was looked at")
	}
	for _, file := range args[1:] {
		look(file, ts.ReadFile(file))
	}
}

// offline checks that the instance was asked nothing.
func cmdOffline(ts *testscript.TestScript, _ bool, _ []string) {
	if asked := portalOf(ts).requests(""); len(asked) > 0 {
		ts.Fatalf("the instance was asked %q", asked)
	}
}

// registry [USER PASSWORD] starts a registry on loopback, $REGISTRY, that lets only this user write.
func cmdRegistry(ts *testscript.TestScript, _ bool, args []string) {
	next := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if len(args) == 2 && (user != args[0] || password != args[1]) && wantsToWrite(r) {
			w.Header().Set("WWW-Authenticate", `Basic realm="charts"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	}))
	ts.Defer(server.Close)
	ts.Setenv("REGISTRY", strings.TrimPrefix(server.URL, "http://"))
}

// wantsToWrite tells a push from a fetch. A client asks for its challenge at /v2/, before it says what it wants: there, an
// author says who they are, and who fetches does not.
func wantsToWrite(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead
}

// config FILE USER PASSWORD writes docker's configuration with credentials for $REGISTRY.
func cmdConfig(ts *testscript.TestScript, _ bool, args []string) {
	auth := base64.StdEncoding.EncodeToString([]byte(args[1] + ":" + args[2]))
	text := `{"auths": {"` + ts.Getenv("REGISTRY") + `": {"auth": "` + auth + `"}}}`
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}
