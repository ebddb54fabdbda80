package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/session/issuertest"
	"zaentrum.io/zae/internal/trace"
	"zaentrum.io/zae/internal/values"
)

// fakePortal stands in for portal-api and the operator behind it, as far as the contract describes what a
// client sees of them. It is a fake: it plans by looking a version up, and "rolls out" by playing statuses.
type fakePortal struct {
	srv *httptest.Server

	mu     sync.Mutex
	addons map[string]*fakeAddon
	// sends are how often each write was sent, by its key.
	sends  map[string]int
	cut    string              // the key of the write whose answers are lost
	plans  map[string]fakePlan // by version
	frames []apitype.AddonChart
	mode   string
	log    []string // "METHOD PATH[ BODY]"
	traces []trace.Context
	freed  chan struct{}
	issuer *issuertest.Issuer // nil: the instance names none
}

type fakePlan struct {
	Plan    v1alpha1.Plan  `json:"plan"`
	Phase   v1alpha1.Phase `json:"phase"`
	Message string         `json:"message"`
	// Needs are the paths that must be given, or the plan has values errors.
	Needs []string `json:"needs"`
}

type fakeAddon struct {
	apitype.AddonChart
	seen     int  // looks since the last write
	planned  int  // looks since the plan is current
	moved    bool // the content behind the version is another, planned at the same generation
	frame    int
	deleting int
}

func newFakePortal() *fakePortal {
	p := &fakePortal{addons: map[string]*fakeAddon{}, plans: map[string]fakePlan{}, sends: map[string]int{}, freed: make(chan struct{})}
	p.srv = httptest.NewServer(p)
	return p
}

func (p *fakePortal) close() {
	close(p.freed)
	p.srv.CloseClientConnections()
	p.srv.Close()
	if p.issuer != nil {
		p.issuer.CloseClientConnections()
		p.issuer.Close()
	}
}

// requests are the requests so far that contain the text.
func (p *fakePortal) requests(text string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for _, r := range p.log {
		if strings.Contains(r, text) {
			out = append(out, r)
		}
	}
	return out
}

func (p *fakePortal) writes() string {
	var b strings.Builder
	for _, r := range p.requests("") {
		if !strings.HasPrefix(r, "GET ") {
			b.WriteString(r + "\n")
		}
	}
	return b.String()
}

const fakeToken = "t0ken-c4n4ry"

func (p *fakePortal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	p.mu.Lock()
	key := r.Header.Get(apitype.HeaderIdempotencyKey)
	p.sends[key]++
	again := key != "" && p.sends[key] > 1 // a write that was sent before
	if !again {
		p.log = append(p.log, strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Method, r.URL.RequestURI(), body)))
	}
	here, _ := trace.Parse(r.Header.Get(trace.HeaderParent))
	p.traces = append(p.traces, here)
	mode := p.mode
	if m, only, ok := strings.Cut(mode, "@"); ok { // only for some requests
		mode = ""
		if strings.Contains(r.Method+" "+r.URL.Path, only) {
			mode = m
			switch {
			case m != "cut":
			case key == "":
				p.mode = ""
			case p.cut == "":
				p.cut = key
			case p.cut != key: // one write only, however often it is sent: net/http sends some again by itself
				mode, p.mode = "", ""
			}
		}
	}
	p.mu.Unlock()
	switch mode {
	case "html":
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<html>sign in</html>")
		return
	case "redirect":
		http.Redirect(w, r, "https://sso.example.org/login?token=x", http.StatusFound)
		return
	case "hang":
		select {
		case <-p.freed:
		case <-r.Context().Done():
		}
		return
	case "cut": // the write happens, its answer is lost
		if !again {
			p.mu.Lock()
			p.route(httptest.NewRecorder(), r, body)
			p.mu.Unlock()
		}
		panic(http.ErrAbortHandler)
	case "slow": // the write takes a moment
		time.Sleep(300 * time.Millisecond)
	case "unavailable":
		problem(w, fault.Unavailable, "chart addons are not available: the cluster has no ZaentrumAddon resource")
		return
	case "unput": // whoever wrote is no admin any more when it is to be put back
		if r.Method == "PATCH" {
			p.mu.Lock()
			p.mode = "forbidden@PATCH"
			p.mu.Unlock()
		}
	case "broken":
		w.Header().Set("Content-Type", apitype.ProblemType)
		w.WriteHeader(http.StatusInternalServerError)
		_ = json.NewEncoder(w).Encode(apitype.Problem{Status: 500, Detail: "something went wrong inside", Code: string(fault.Internal), Trace: here.ID()})
		return
	case "odd-trace":
		w.Header().Set("Content-Type", apitype.ProblemType)
		w.WriteHeader(http.StatusInternalServerError)
		_ = json.NewEncoder(w).Encode(apitype.Problem{Status: 500, Code: string(fault.Internal), Trace: "\x1b]0;owned\x07"})
		return
	case "forbidden":
		problem(w, fault.Forbidden, "the token has no admin role")
		return
	case "echo":
		problem(w, fault.Invalid, "bad: "+r.Header.Get("Authorization")+string(body)+"\x1b]0;owned\x07\nnext")
		return
	}
	if r.Method == "GET" && r.URL.Path == apitype.PathDiscovery {
		p.discovery(w)
		return
	}
	bearer := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if bearer != fakeToken && !strings.HasPrefix(bearer, "access-"+issuertest.Canary) {
		problem(w, fault.NoBearer, "the bearer is not valid")
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.route(w, r, body)
}

func (p *fakePortal) discovery(w http.ResponseWriter) {
	d := apitype.Discovery{CapabilityVersion: 1, Services: []map[string]any{}}
	if p.issuer != nil {
		d.Auth = &apitype.DiscoveryAuth{Issuer: p.issuer.URL, ClientID: "zae"}
	}
	answer(w, http.StatusOK, d)
}

func (p *fakePortal) route(w http.ResponseWriter, r *http.Request, body []byte) {
	rest, isChart := strings.CutPrefix(r.URL.Path, apitype.PathAddonCharts)
	name, install := strings.CutSuffix(strings.TrimPrefix(rest, "/"), "/install")
	one := p.addons[name]
	switch {
	case r.Method == "GET" && r.URL.Path == apitype.PathAddons:
		answer(w, http.StatusOK, p.list())
	case !isChart:
		problem(w, fault.NotFound, "no such path")
	case r.Method == "POST" && name == "":
		p.create(w, body)
	case one == nil:
		problem(w, fault.NotFound, "addon "+name+" not found")
	case r.Method == "GET":
		p.get(w, one)
	case r.Method == "POST" && install:
		p.install(w, r, one)
	case r.Method == "PATCH":
		p.patch(w, one, body)
	case r.Method == "DELETE":
		one.deleting = 1
		answer(w, http.StatusOK, apitype.DeleteAnswer{
			Name: name, Resource: true, KeptValues: r.URL.Query().Get("keepValues") == "true",
			Removed: []string{"app/" + name, "tile/addon." + name},
		})
	default:
		problem(w, fault.Malformed, "no such call")
	}
}

// understand reads a body without making other numbers of those in it.
func understand(body []byte, req any) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	return dec.Decode(req)
}

func (p *fakePortal) create(w http.ResponseWriter, body []byte) {
	var req apitype.CreateRequest
	if err := understand(body, &req); err != nil {
		problem(w, fault.Malformed, "not understood")
		return
	}
	name := req.Name
	if name == "" {
		name, _ = chart.DefaultName(req.Chart)
	}
	if name == "taken" {
		problem(w, fault.NameTaken, "the name taken belongs to an addon installed from an address")
		return
	}
	one := p.addons[name]
	if one == nil {
		one = &fakeAddon{AddonChart: apitype.AddonChart{Name: name, Components: []v1alpha1.Component{}, SecretKeys: []string{}, SecretRefs: map[string]apitype.SecretRef{}}}
		p.addons[name] = one
	}
	one.Chart = apitype.Chart{Ref: req.Chart, Version: req.Version, Digest: req.Digest}
	one.Values = req.Values
	one.Suspended = true
	one.secrets(req.SecretValues, req.SecretRefs, nil)
	one.changed()
	written(w, one)
}

func (p *fakePortal) patch(w http.ResponseWriter, one *fakeAddon, body []byte) {
	var req apitype.PatchRequest
	if err := understand(body, &req); err != nil {
		problem(w, fault.Malformed, "not understood")
		return
	}
	before := one.asked()
	if req.Chart != nil {
		one.Chart.Ref, one.Chart.Digest = *req.Chart, ""
	}
	if req.Version != nil {
		one.Chart.Version, one.Chart.Digest = *req.Version, ""
	}
	if req.Digest != nil {
		one.Chart.Digest = *req.Digest
	}
	if req.Values != nil {
		one.Values = *req.Values
	}
	if req.Chart != nil || req.Version != nil || req.Digest != nil {
		one.Suspended = true
	}
	if req.Suspend != nil {
		one.Suspended = *req.Suspend
	}
	one.secrets(req.SecretValues, req.SecretRefs, req.ClearSecrets)
	if len(req.SecretValues) > 0 || one.asked() != before {
		one.changed()
	}
	written(w, one)
}

// asked is all that is asked for: what makes a generation.
func (a *fakeAddon) asked() string {
	text, _ := json.Marshal([]any{a.Chart, a.Values, a.Suspended, a.SecretRefs})
	return string(text)
}

func (p *fakePortal) install(w http.ResponseWriter, r *http.Request, one *fakeAddon) {
	if p.mode == "moves-late" && !one.moved {
		one.moved = true
		p.plan(one)
	}
	if tag := r.Header.Get("If-Match"); tag != "" && tag != one.tag() {
		problem(w, fault.Conflict, "the plan changed since it was read")
		return
	}
	if !one.PlanCurrent() {
		problem(w, fault.NoPlan, "there is no plan of the current generation")
		return
	}
	one.Suspended = false
	one.changed()
	written(w, one)
}

func (a *fakeAddon) changed() { a.Generation++; a.seen, a.planned, a.frame = 0, 0, 0 }

// tag names the plan, as portal-api does.
func (a *fakeAddon) tag() string {
	text, _ := json.Marshal([]any{a.Generation, a.Plan})
	return fmt.Sprintf("%q", fmt.Sprintf("%x", sha256.Sum256(text)))
}

func (a *fakeAddon) secrets(set map[string]string, refs map[string]apitype.SecretRef, gone []string) {
	for path := range set {
		a.SecretRefs[path] = apitype.SecretRef{Name: "zaentrum-addon-" + a.Name + "-values-new", Key: path}
	}
	maps.Copy(a.SecretRefs, refs)
	for _, path := range gone {
		delete(a.SecretRefs, path)
	}
	a.SecretKeys = slices.Sorted(maps.Keys(a.SecretRefs))
}

// get lets the operator take its step: the first look after a write still finds the old status.
func (p *fakePortal) get(w http.ResponseWriter, one *fakeAddon) {
	if one.deleting > 0 {
		if one.deleting++; one.deleting > 3 && p.mode != "keeps" {
			delete(p.addons, one.Name)
			problem(w, fault.NotFound, "addon "+one.Name+" not found")
			return
		}
	}
	if one.seen++; one.seen > 1 && p.mode != "noplan" && one.deleting == 0 {
		if one.Suspended {
			p.plan(one)
		} else if len(p.frames) > 0 {
			p.roll(one)
		}
	}
	if p.mode != "tagless" {
		w.Header().Set("ETag", one.tag())
	}
	answer(w, http.StatusOK, one.AddonChart)
}

func (p *fakePortal) plan(one *fakeAddon) {
	one.ObservedGeneration = one.Generation
	if one.planned++; one.planned == 2 && p.mode == "meddle" {
		one.Generation++
	}
	one.moved = one.moved || one.planned == 2 && p.mode == "moves"
	version := one.Chart.Version
	if one.moved {
		version += "-moved"
	}
	fp, ok := p.plans[version]
	if !ok {
		one.Phase, one.Plan, one.Message = v1alpha1.PhasePlanFailed, nil, "chart "+one.Chart.Ref+" "+one.Chart.Version+" not found"
		return
	}
	plan := *fp.Plan.DeepCopy()
	if schema, err := inputs.Describe([]byte(plan.ValuesSchema)); err == nil && plan.Inputs == nil {
		defaults := map[string]any{"worker": map[string]any{"replicas": int64(1), "logLevel": "info"}}
		plan.Inputs = schema.States(defaults, func(path []string) (any, bool) {
			if slices.Contains(one.SecretKeys, strings.Join(path, ".")) {
				return "set", true
			}
			return values.Get(one.Values, path)
		})
	}
	for _, path := range fp.Needs {
		if !one.has(path) {
			plan.ValuesErrors = append(plan.ValuesErrors, path+": is required")
		}
	}
	one.Plan, one.Phase, one.Message = &plan, v1alpha1.PhasePlanned, fp.Message
	if plan.Blocked() {
		one.Phase = v1alpha1.PhasePlanFailed
	}
	if fp.Phase != "" {
		one.Phase = fp.Phase
	}
}

func (a *fakeAddon) has(path string) bool {
	var at any = a.Values
	for _, key := range strings.Split(path, ".") {
		m, _ := at.(map[string]any)
		at = m[key]
	}
	return at != nil || slices.ContainsFunc(a.SecretKeys, func(k string) bool { return k == path || strings.HasPrefix(k, path+".") })
}

func (p *fakePortal) roll(one *fakeAddon) {
	f := p.frames[min(one.frame, len(p.frames)-1)]
	one.frame++
	one.ObservedGeneration = one.Generation
	one.Phase, one.Message, one.Components, one.Jobs = f.Phase, f.Message, f.Components, f.Jobs
	one.Registered, one.RegistrationError = f.Registered, f.RegistrationError
	one.LastAppliedChart = &v1alpha1.AppliedChart{Ref: one.Chart.Ref, Version: one.Chart.Version}
}

func (p *fakePortal) list() apitype.Addons {
	out := apitype.Addons{Addons: []apitype.Addon{}}
	for _, name := range slices.Sorted(maps.Keys(p.addons)) {
		a := p.addons[name]
		one := apitype.Addon{Name: name, Phase: a.Phase, Suspended: a.Suspended, Registered: a.Registered, RegistrationError: a.RegistrationError, Components: a.Components}
		if strings.Contains(a.Chart.Ref, "://") && !strings.HasPrefix(a.Chart.Ref, "http://") {
			one.Chart = &apitype.AddonListChart{Ref: a.Chart.Ref, Version: a.Chart.Version, LastApplied: a.LastAppliedChart}
		} else {
			one.Address, one.Phase = a.Chart.Ref, ""
		}
		out.Addons = append(out.Addons, one)
	}
	return out
}

func written(w http.ResponseWriter, one *fakeAddon) {
	answer(w, http.StatusAccepted, apitype.WriteAnswer{
		Name: one.Name, Generation: one.Generation, ObservedGeneration: one.ObservedGeneration, Chart: one.Chart,
	})
}

func answer(w http.ResponseWriter, status int, doc any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(doc)
}

func problem(w http.ResponseWriter, code fault.Code, detail string) {
	m := code.Means()
	w.Header().Set("Content-Type", apitype.ProblemType)
	w.WriteHeader(m.HTTP)
	_ = json.NewEncoder(w).Encode(apitype.Problem{Type: "about:blank", Title: m.Title, Status: m.HTTP, Detail: detail, Code: string(code)})
}
