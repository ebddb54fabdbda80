// Package e2e tries the product from outside: the real binary, on a real control plane, under its own shipped roles.
// Every test has a namespace with an operator and an API of its own, and ends by searching everything that a person or
// a program could read for the secret value it gave.
package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"zaentrum.io/zae/testbed"
	"zaentrum.io/zae/testbed/stack"
)

var (
	bed     *testbed.Bed
	zae     string
	primary string
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Minute)
	defer cancel()
	options := testbed.Full()
	options.Progress = os.Stderr
	var err error
	if bed, err = testbed.Start(ctx, options); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := bed.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	if zae = os.Getenv("ZAE_BIN"); zae == "" {
		if zae, err = stack.BuildZae(ctx, bed.Dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	if primary, err = stack.BuildPrimary(ctx, bed.Dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, chart := range []struct{ dir, name, version string }{
		{"examples/example/1.2.0", "example", "1.2.0"},
		{"examples/example/1.3.0", "example", "1.3.0"},
		{"examples/refused/violation", "violation", "1.0.0"},
		{"examples/tiny", "tiny", "1.0.0"},
	} {
		s := &stack.Stack{Bed: bed}
		if _, _, err := s.PushChart(ctx, chart.dir, chart.name, chart.version); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}

// house is one test's product.
type house struct {
	*testing.T
	*stack.Stack
	ctx    context.Context
	canary string
	audit  auditLog

	mu   sync.Mutex
	seen strings.Builder // all that the command line and the API said
}

var houses atomic.Int32

var unfit = regexp.MustCompile(`[^a-z0-9]+`)

// newHouse starts the product in a namespace named after the test. When the test ends, everything readable is searched
// for the canary, and the product is stopped.
func newHouse(t *testing.T, operatorArgs ...string) *house {
	t.Helper()
	return openHouse(t, opening{args: operatorArgs})
}

// opening says how a house differs from others.
type opening struct {
	args []string // of the operator
	api  []string // arguments of the API
	// alone has no other test run meanwhile: for those that take the control plane away.
	alone bool
	// gate is put between the operator and the API server when set.
	gate func(http.Handler) http.Handler
	// apiGate is put between the API and the API server when set.
	apiGate func(http.Handler) http.Handler
	// within is how long the test may take; 0 means five minutes.
	within time.Duration
}

func openHouse(t *testing.T, o opening) *house {
	t.Helper()
	if !o.alone {
		t.Parallel()
	}
	if o.within == 0 {
		o.within = 5 * time.Minute
	}
	ctx, cancel := context.WithTimeout(context.Background(), o.within)
	t.Cleanup(cancel)
	// Numbered, so that a test can run again on the same control plane.
	name := fmt.Sprintf("%s-%d", strings.Trim(unfit.ReplaceAllString(strings.ToLower(t.Name()), "-"), "-"), houses.Add(1))
	s, err := stack.Start(ctx, stack.Options{
		Bed: bed, Zae: zae, Namespace: name, Primary: primary,
		OperatorArgs: o.args, APIArgs: o.api, Gate: o.gate, APIGate: o.apiGate,
	})
	if err != nil {
		t.Fatal(err)
	}
	h := &house{T: t, Stack: s, ctx: ctx, canary: "c4n4ry+/" + name + "?&=%s"}
	t.Cleanup(func() {
		h.noCanary()
		if t.Failed() {
			h.tell()
		}
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// tell prints what helps to understand a failure.
func (h *house) tell() {
	for _, p := range []*testbed.Process{h.Operator, h.API} {
		if text, err := os.ReadFile(p.Log()); err == nil {
			if len(text) > 8000 {
				text = text[len(text)-8000:]
			}
			h.Logf("%s:\n%s", p.Name(), text)
		}
	}
	out, _ := h.Kubectl(h.ctx, "", "get", "zaddon,deploy,job,pod,secret,events")
	h.Log(out)
}

func (h *house) ref(chart string) string { return "oci://" + bed.Registry + "/charts/" + chart }

// login signs the admin in.
func (h *house) login() {
	h.Helper()
	r, err := h.Login(h.ctx, "admin", nil)
	if err != nil {
		h.Fatal(err)
	}
	h.note(r.Stdout, r.Stderr)
	if r.Exit != 0 {
		h.Fatal(r)
	}
}

func (h *house) note(texts ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range texts {
		h.seen.WriteString(t)
		h.seen.WriteByte('\n')
	}
}

// zae runs the command line with the canary in DATABASE_URL, and wants an exit status.
func (h *house) zae(exit int, args ...string) stack.Result {
	h.Helper()
	r, err := h.Zae(h.ctx, stack.Call{Args: args, Env: []string{"DATABASE_URL=" + h.canary}})
	if err != nil {
		h.Fatal(err)
	}
	h.note(r.Stdout, r.Stderr)
	if r.Exit != exit {
		h.Fatalf("exit %d, want %d\n%s", r.Exit, exit, r)
	}
	return r
}

// api calls the API as a user's client does, and wants a status.
func (h *house) api(status int, user, method, path string, body any) map[string]any {
	h.Helper()
	text, ok := body.(string)
	if !ok && body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			h.Fatal(err)
		}
		text = string(b)
	}
	token := ""
	if user != "" {
		token = h.token(user, "zae")
	}
	r := h.request(token, method, path, text)
	if r.status != status {
		h.Fatalf("%s %s: %d, want %d: %s", method, path, r.status, status, r.text)
	}
	return r.doc
}

// kubectl runs kubectl as cluster-admin.
func (h *house) kubectl(args ...string) string {
	h.Helper()
	out, err := h.Kubectl(h.ctx, "", args...)
	if err != nil {
		h.Fatal(err)
	}
	return out
}

func (h *house) apply(yaml string) {
	h.Helper()
	if err := h.Apply(h.ctx, yaml); err != nil {
		h.Fatal(err)
	}
}

// get is one field of an object, by JSONPath, or empty.
func (h *house) get(object, path string) string {
	h.Helper()
	return strings.TrimSpace(h.kubectl("get", object, "--ignore-not-found", "-o", "jsonpath={"+path+"}"))
}

// eventually waits until a condition holds.
func (h *house) eventually(what string, holds func() bool) {
	h.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			h.Fatalf("not within 60 s: %s", what)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// phase waits for a phase of the resource's current generation.
func (h *house) phase(name, phase string) {
	h.Helper()
	h.eventually(name+" is "+phase, func() bool {
		got := h.get("zaddon/"+name, ".metadata.generation} {.status.observedGeneration} {.status.phase")
		f := strings.Fields(got)
		return len(f) == 3 && f[0] == f[1] && f[2] == phase
	})
}

// allKinds are the kinds an addon may own.
const allKinds = "deploy,job,svc,cm,pvc,sa,secret"

// owned are the objects that carry the addon's label, but for its values Secrets.
func (h *house) owned(name string) []string {
	h.Helper()
	var out []string
	for _, line := range strings.Fields(h.kubectl("get", allKinds, "-l", "zaentrum.io/addon="+name, "-o", "name")) {
		if !strings.HasPrefix(line, "secret/zaentrum-addon-") {
			out = append(out, line)
		}
	}
	return out
}

// forms are the shapes in which a secret could show: as it is, as JSON, URL-encoded, and inside base64 text at each of
// the three alignments.
func forms(secret string) [][]byte {
	quoted, _ := json.Marshal(secret)
	out := [][]byte{
		[]byte(secret), quoted[1 : len(quoted)-1],
		[]byte(url.QueryEscape(secret)), []byte(url.PathEscape(secret)),
	}
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		for pad := range 3 {
			text := encoding.EncodeToString([]byte(strings.Repeat("x", pad) + secret))
			// The ends mix with what stands around the secret.
			out = append(out, []byte(text[4:len(text)-4]))
		}
	}
	return out
}

// noCanary searches all logs, events, resources and answers for the secret value that the test gave.
func (h *house) noCanary() {
	h.Helper()
	texts := map[string][]byte{"the answers of zae and the API": []byte(h.seen.String())}
	err := filepath.WalkDir(bed.LogDir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		texts[path] = text
		return err
	})
	if err != nil {
		h.Error(err)
	}
	if text, err := os.ReadFile(bed.AuditLog); err == nil {
		texts[bed.AuditLog] = text
	}
	// Everything in the namespace but Secrets, which are where secrets belong.
	for _, kinds := range []string{"zaddon,zaentrum", "deploy,rs,pod,job,svc,cm,pvc,sa,lease", "events"} {
		out, err := h.Kubectl(context.Background(), "", "get", kinds, "-o", "json", "--show-managed-fields")
		if err != nil {
			h.Error(err)
		}
		texts[kinds] = []byte(out)
	}
	// Of Secrets, all but the data.
	out, err := h.Kubectl(context.Background(), "", "get", "secrets", "-o", "jsonpath={range .items[*]}{.metadata}{'\\n'}{end}")
	if err != nil {
		h.Error(err)
	}
	texts["metadata of Secrets"] = []byte(out)
	token, err := bed.Token("admin", "zae")
	if err != nil {
		h.Error(err)
	}
	for _, path := range []string{"/api/portal/addons", "/api/portal/addon-charts/example", "/api/portal/cli/discovery", "/metrics"} {
		texts[path] = read(h, h.URL+path, token)
	}
	// Of one that ended, its log has what it said; one whose namespace is gone ends by itself.
	if resp, err := http.Get(h.MetricsURL); err == nil { //nolint:noctx // the operator's own address
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil && h.Operator.Running() {
			h.Error(err)
		}
		texts["operator metrics"] = text
	}
	for where, text := range texts {
		for _, form := range forms(h.canary) {
			if at := bytes.Index(text, form); at >= 0 {
				from, to := max(0, at-80), min(len(text), at+len(form)+40)
				h.Errorf("the secret value shows in %s: …%s…", where, text[from:to])
			}
		}
	}
}

func read(h *house, url, token string) []byte {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	if err != nil {
		h.Error(err)
		return nil
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.Error(err)
		return nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		h.Error(err)
	}
	return text
}
