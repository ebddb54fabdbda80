package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// reply is what the API said to one call.
type reply struct {
	status int
	header http.Header
	doc    map[string]any
	text   string
}

func (a reply) code() string { return fmt.Sprint(a.doc["code"]) }

// request makes one call; token is the bearer, empty for none.
func (h *house) request(token, method, path, body string, headers ...string) reply {
	h.Helper()
	out, err := h.attempt(http.DefaultClient, token, method, path, body, headers...)
	if err != nil {
		h.Fatal(err)
	}
	return out
}

// attempt makes one call that may find nobody who answers.
func (h *house) attempt(by *http.Client, token, method, path, body string, headers ...string) (reply, error) {
	h.Helper()
	req, err := http.NewRequestWithContext(h.ctx, method, h.URL+path, strings.NewReader(body))
	if err != nil {
		h.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := by.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return reply{}, err
	}
	h.note(string(text), fmt.Sprint(resp.Header))
	out := reply{status: resp.StatusCode, header: resp.Header, text: string(text), doc: map[string]any{}}
	if strings.Contains(resp.Header.Get("Content-Type"), "json") {
		if err := json.Unmarshal(text, &out.doc); err != nil {
			h.Fatalf("%s %s: %v: %s", method, path, err, text)
		}
	}
	return out, nil
}

func (h *house) token(user, client string) string {
	h.Helper()
	token, err := bed.Token(user, client)
	if err != nil {
		h.Fatal(err)
	}
	return token
}

// standing is everything that a call could have written: what resources ask for, all Secrets, and the registry's rows.
func (h *house) standing(token string) string {
	h.Helper()
	resources := h.kubectl("get", "zaddon", "-o", `jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.metadata.generation} {.metadata.deletionTimestamp} {.spec}{"\n"}{end}`)
	secrets := h.kubectl("get", "secret", "-o", `jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.metadata.resourceVersion}{"\n"}{end}`)
	var rows []string
	for _, path := range []string{"/api/portal/apps", "/api/portal/tiles", "/api/portal/slots", "/api/portal/cli/discovery"} {
		rows = append(rows, h.request(token, http.MethodGet, path, "").text)
	}
	return resources + secrets + strings.Join(rows, "")
}

// refusal is a call that must be refused.
type refusal struct {
	method, path, body string
	status             int
	code               string
	headers            []string
	token              *string // nil: the admin's
}

// refused makes calls that are refused, one after the other, and wants that nothing was written by any.
func (h *house) refused(token string, calls map[string]refusal) {
	h.Helper()
	before := h.standing(token)
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		c := calls[name]
		bearer := token
		if c.token != nil {
			bearer = *c.token
		}
		got := h.request(bearer, c.method, c.path, c.body, c.headers...)
		if got.status != c.status || got.code() != c.code {
			h.Errorf("%s: %d %s, want %d %s: %s", name, got.status, got.code(), c.status, c.code, got.text)
		}
		if got.header.Get("Content-Type") != "application/problem+json" || got.doc["detail"] == "" || got.doc["title"] == "" || got.doc["status"] != float64(c.status) {
			h.Errorf("%s: no problem document: %v %s", name, got.header, got.text)
		}
		if c.status == http.StatusUnauthorized || c.status == http.StatusForbidden {
			if !strings.HasPrefix(got.header.Get("WWW-Authenticate"), "Bearer") {
				h.Errorf("%s: WWW-Authenticate is %q", name, got.header.Get("WWW-Authenticate"))
			}
		}
	}
	if after := h.standing(token); after != before {
		h.Errorf("refused calls wrote something:\nbefore:\n%s\nafter:\n%s", before, after)
	}
}

// hasKeys wants a document to have these fields, and no other but the optional ones.
func (h *house) hasKeys(what string, doc map[string]any, keys, optional string) {
	h.Helper()
	for _, key := range strings.Fields(keys) {
		if _, ok := doc[key]; !ok {
			h.Errorf("%s lacks %s: %v", what, key, doc)
		}
	}
	known := strings.Fields(keys + " " + optional)
	for key := range doc {
		if !slices.Contains(known, key) {
			h.Errorf("%s has an unknown field %s", what, key)
		}
	}
}

// wrote wants the answer of a write: 202 with the generation that it made, which the resource has.
func (h *house) wrote(a reply, name string) {
	h.Helper()
	if a.status != http.StatusAccepted {
		h.Fatalf("%d: %s", a.status, a.text)
	}
	h.hasKeys("the answer to a write", a.doc, "name generation observedGeneration chart", "")
	if got := h.get("zaddon/"+name, ".metadata.generation"); got != fmt.Sprint(a.doc["generation"]) || a.doc["name"] != name {
		h.Errorf("answered %s, and the generation is %s", a.text, got)
	}
}

// stream follows the events of an addon until its stream ends.
type stream struct {
	mu     sync.Mutex
	kinds  []string
	ids    []string
	phases []string
	done   chan struct{}
}

func (h *house) stream(ctx context.Context, token, name string) *stream {
	h.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.URL+"/api/portal/addon-charts/"+name+"/events", nil)
	if err != nil {
		h.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req) //nolint:bodyclose // it is, where it is read
	if err != nil {
		h.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("X-Accel-Buffering") != "no" {
		h.Fatalf("%s: %v", resp.Status, resp.Header)
	}
	s := &stream{done: make(chan struct{})}
	go func() {
		defer close(s.done)
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 4<<20)
		for lines.Scan() {
			h.note(lines.Text())
			key, value, _ := strings.Cut(lines.Text(), ": ")
			s.mu.Lock()
			switch key {
			case "id":
				s.ids = append(s.ids, value)
			case "event":
				s.kinds = append(s.kinds, value)
			case "data":
				var doc struct{ Phase string }
				if json.Unmarshal([]byte(value), &doc) == nil && doc.Phase != "" && (len(s.phases) == 0 || s.phases[len(s.phases)-1] != doc.Phase) {
					s.phases = append(s.phases, doc.Phase)
				}
			}
			s.mu.Unlock()
		}
	}()
	return s
}

// TestTheContractOverHTTP walks the contract's table of calls over the whole life of an addon, with every refusal in its
// place. The API server's audit log tells in the end what the API did with Secrets: it created some, and nothing else.
func TestTheContractOverHTTP(t *testing.T) {
	h := newHouse(t)
	const charts, one = "/api/portal/addon-charts", "/api/portal/addon-charts/example"
	admin, viewer, media := h.token("admin", "zae"), h.token("viewer", "zae"), h.token("admin", "media-player")
	nobody, forged := "", "e30.e30.e30"
	post := func(more string) string {
		return fmt.Sprintf(`{"chart":%q,"version":"1.2.0","values":{"worker":{"replicas":2}}%s}`, h.ref("example"), more)
	}
	secretValue, err := json.Marshal(h.canary)
	if err != nil {
		t.Fatal(err)
	}

	// GET /addon-charts
	if got := h.request(admin, http.MethodGet, charts, ""); got.status != http.StatusOK || got.doc["available"] != true {
		t.Errorf("%d %s", got.status, got.text)
	}

	// Who is nobody, and who is no admin, may do nothing, whatever the call.
	calls := map[string]refusal{}
	for _, call := range []struct{ method, path, body string }{
		{"GET", charts, ""}, {"POST", charts, post("")}, {"GET", one, ""}, {"PATCH", one, `{"suspend":true}`}, {"DELETE", one, ""},
		{"POST", one + "/install", ""}, {"GET", one + "/events", ""}, {"GET", "/api/portal/addons", ""},
		{"POST", "/api/portal/addons", `{"proxyUrl":"http://my-addon"}`}, {"DELETE", "/api/portal/addons/example", ""},
	} {
		name := call.method + " " + call.path
		calls[name+" by nobody"] = refusal{call.method, call.path, call.body, 401, "no-bearer", nil, &nobody}
		calls[name+" with a forged token"] = refusal{call.method, call.path, call.body, 401, "no-bearer", nil, &forged}
		calls[name+" by a viewer"] = refusal{call.method, call.path, call.body, 403, "forbidden", nil, &viewer}
		calls[name+" with a player's token"] = refusal{call.method, call.path, call.body, 403, "forbidden", nil, &media}
	}
	h.refused(admin, calls)

	// POST /addon-charts: what is refused.
	long := strings.Repeat("a", 41)
	secretsOf := func(n int) string {
		m := map[string]string{}
		for i := range n {
			m[fmt.Sprintf("s%d", i)] = h.canary
		}
		text, _ := json.Marshal(m)
		return string(text)
	}
	bodies := map[string]struct {
		body   string
		status int
		code   string
	}{
		"no body":                         {"", 415, "not-json"},
		"no JSON":                         {"{", 400, "malformed"},
		"a list":                          {"[]", 400, "malformed"},
		"an unknown field":                {post(`,"secretvalues":{"database.url":` + string(secretValue) + `}`), 400, "malformed"},
		"a field twice":                   {post(`,"chart":"oci://x/y"`), 400, "malformed"},
		"a field of the wrong type":       {post(`,"name":1`), 400, "malformed"},
		"no chart":                        {`{"version":"1.0.0"}`, 400, "invalid"},
		"http":                            {`{"chart":"http://example.org/a.tgz"}`, 400, "invalid"},
		"a chart without a version":       {fmt.Sprintf(`{"chart":%q}`, h.ref("example")), 400, "invalid"},
		"a tag and another version":       {fmt.Sprintf(`{"chart":%q,"version":"1.3.0"}`, h.ref("example")+":1.2.0"), 400, "invalid"},
		"a digest in the reference":       {fmt.Sprintf(`{"chart":%q,"version":"1.2.0"}`, h.ref("example")+"@sha256:"+strings.Repeat("0", 64)), 400, "invalid"},
		"a password in the reference":     {`{"chart":"https://user:` + "hunter2" + `@example.org/a.tgz"}`, 400, "invalid"},
		"a digest that is none":           {post(`,"digest":"sha256:1"`), 400, "invalid"},
		"a name that is too long":         {post(`,"name":"` + long + `"`), 400, "invalid"},
		"a name that is none":             {post(`,"name":"A_b"`), 400, "invalid"},
		"values that are no object":       {fmt.Sprintf(`{"chart":%q,"version":"1.2.0","values":[1]}`, h.ref("example")), 400, "malformed"},
		"the reserved key in values":      {fmt.Sprintf(`{"chart":%q,"version":"1.2.0","values":{"zaentrum":{}}}`, h.ref("example")), 400, "invalid"},
		"the reserved key as a path":      {post(`,"secretValues":{"zaentrum.x":` + string(secretValue) + `}`), 400, "invalid"},
		"an empty secret":                 {post(`,"secretValues":{"database.url":""}`), 400, "invalid"},
		"a path with an empty part":       {post(`,"secretValues":{"database..url":` + string(secretValue) + `}`), 400, "invalid"},
		"a path given and referred to":    {post(`,"secretValues":{"database.url":` + string(secretValue) + `},"secretRefs":{"database.url":{"name":"zaentrum-addon-example-x"}}`), 400, "invalid"},
		"a reference to a foreign Secret": {post(`,"secretRefs":{"database.url":{"name":"postgres-admin"}}`), 400, "invalid"},
		"a reference to another addon's":  {post(`,"secretRefs":{"database.url":{"name":"zaentrum-addon-other-x"}}`), 400, "invalid"},
		"too many secrets":                {post(`,"secretValues":` + secretsOf(65)), 400, "invalid"},
		"a body over a mebibyte":          {post(`,"name":"` + strings.Repeat("x", 1<<20) + `"`), 413, "too-large"},
	}
	calls = map[string]refusal{
		"not declared as JSON":             {"POST", charts, post(""), 415, "not-json", []string{"Content-Type", "text/plain"}, nil},
		"from another site":                {"POST", charts, post(""), 403, "forbidden", []string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}, nil},
		"GET of no addon":                  {"GET", one, "", 404, "not-found", nil, nil},
		"PATCH of no addon":                {"PATCH", one, `{"suspend":true}`, 404, "not-found", nil, nil},
		"PATCH of nothing":                 {"PATCH", one, `{}`, 400, "invalid", nil, nil},
		"install of no addon":              {"POST", one + "/install", "", 404, "not-found", nil, nil},
		"DELETE of no addon":               {"DELETE", one, "", 404, "not-found", nil, nil},
		"events of no addon":               {"GET", one + "/events", "", 404, "not-found", nil, nil},
		"DELETE with a misspelt":           {"DELETE", one + "?keepvalues=true", "", 400, "malformed", nil, nil},
		"DELETE with a wrong":              {"DELETE", one + "?keepValues=yes", "", 400, "malformed", nil, nil},
		"a name that cannot be":            {"GET", charts + "/A_b", "", 404, "not-found", nil, nil},
		"no such address":                  {"GET", "/api/portal/nothing", "", 404, "not-found", nil, nil},
		"a method that is not":             {"PUT", charts, "{}", 405, "malformed", nil, nil},
		"an address by IP":                 {"POST", "/api/portal/addons", `{"proxyUrl":"http://10.0.0.1"}`, 400, "invalid", nil, nil},
		"an address of no Service":         {"POST", "/api/portal/addons", `{"proxyUrl":"http://example.org:8080/x"}`, 400, "invalid", nil, nil},
		"an address of a platform Service": {"POST", "/api/portal/addons", `{"proxyUrl":"http://portal-api"}`, 409, "name-taken", nil, nil},
	}
	for name, b := range bodies {
		calls["POST with "+name] = refusal{"POST", charts, b.body, b.status, b.code, nil, nil}
	}
	for _, name := range []string{"from another site"} { // which has nothing to do with the bearer
		c := calls[name]
		delete(calls, name)
		got := h.request(admin, c.method, c.path, c.body, c.headers...)
		if got.status != c.status || got.code() != c.code {
			t.Errorf("%s: %d %s", name, got.status, got.text)
		}
	}
	h.refused(admin, calls)

	// POST /addon-charts: created suspended, with a secret in a Secret of its own.
	body := post(`,"secretValues":{"database.url":` + string(secretValue) + `}`)
	created := h.request(admin, http.MethodPost, charts, body, "Idempotency-Key", "contract-1")
	h.wrote(created, "example")
	again := h.request(admin, http.MethodPost, charts, body, "Idempotency-Key", "contract-1")
	if again.status != created.status || again.text != created.text {
		t.Errorf("the same request again: %d %s, was %s", again.status, again.text, created.text)
	}
	if n := h.creationsLike(func(o string) bool { return strings.HasPrefix(o, "secrets/zaentrum-addon-example-values-") }); n != 1 {
		t.Errorf("%d Secrets were made", n)
	}
	events := h.stream(h.ctx, admin, "example")
	if got := h.get("zaddon/example", ".spec.suspend"); got != "true" {
		t.Errorf("suspend is %s", got)
	}
	h.phase("example", "Planned")
	shown := h.request(admin, http.MethodGet, one, "")
	h.hasKeys("GET of an addon", shown.doc, "name chart suspended phase message generation observedGeneration plan components values secretKeys secretRefs registered",
		"registrationError inputs jobs lastAppliedChart deleting")
	if fmt.Sprint(shown.doc["secretKeys"]) != "[database.url]" || shown.doc["suspended"] != true || shown.doc["registered"] != false {
		t.Errorf("GET: %s", shown.text)
	}
	if len(h.owned("example")) != 0 {
		t.Error("something was applied before the install")
	}

	// Install: only the plan that was read.
	h.refused(admin, map[string]refusal{
		"another generation": {"POST", one + "/install", `{"generation":99}`, 409, "conflict", nil, nil},
		"another plan":       {"POST", one + "/install", "", 409, "conflict", []string{"If-Match", `"other"`}, nil},
		"an unknown field":   {"POST", one + "/install", `{"force":true}`, 400, "malformed", nil, nil},
	})
	h.wrote(h.request(admin, http.MethodPost, one+"/install", fmt.Sprintf(`{"generation":%v}`, shown.doc["generation"]), "If-Match", shown.header.Get("ETag")), "example")
	h.phase("example", "Ready")
	h.eventually("it is registered", func() bool { return h.request(admin, http.MethodGet, one, "").doc["registered"] == true })

	// What the launchpad and the list read.
	list := h.request(admin, http.MethodGet, "/api/portal/addons", "")
	addons, _ := list.doc["addons"].([]any)
	if len(addons) != 1 {
		t.Fatalf("GET /addons: %s", list.text)
	}
	h.hasKeys("an addon of the list", addons[0].(map[string]any), "name chart phase suspended registered components", "title registrationError")
	for path, field := range map[string]string{"/api/portal/apps": "apps", "/api/portal/tiles": "tiles", "/api/portal/slots": "slots"} {
		got := h.request(viewer, http.MethodGet, path, "")
		if rows, ok := got.doc[field].([]any); got.status != http.StatusOK || !ok || field == "apps" && len(rows) != 1 {
			t.Errorf("GET %s by a viewer: %d %s", path, got.status, got.text)
		}
	}
	discovery := h.request("", http.MethodGet, "/api/portal/cli/discovery", "")
	h.hasKeys("discovery", discovery.doc, "capabilityVersion auth services", "")
	if services, _ := discovery.doc["services"].([]any); len(services) != 1 {
		t.Errorf("discovery: %s", discovery.text)
	}

	// One key, one owner: a chart addon's name is no address addon's.
	h.refused(admin, map[string]refusal{
		"an address with a chart addon's name": {"POST", "/api/portal/addons", `{"proxyUrl":"http://example"}`, 409, "name-taken", nil, nil},
		"a chart addon removed as an address":  {"DELETE", "/api/portal/addons/example", "", 409, "name-taken", nil, nil},
	})

	// PATCH: refusals, a new version that is planned first, one that is not, values that replace.
	h.refused(admin, map[string]refusal{
		"nothing":                 {"PATCH", one, `{}`, 400, "invalid", nil, nil},
		"an unknown field":        {"PATCH", one, `{"verzion":"1.3.0"}`, 400, "malformed", nil, nil},
		"a secret that is empty":  {"PATCH", one, `{"secretValues":{"database.url":""}}`, 400, "invalid", nil, nil},
		"a path in two":           {"PATCH", one, `{"secretValues":{"database.url":` + string(secretValue) + `},"clearSecrets":["database.url"]}`, 400, "invalid", nil, nil},
		"a secret as plain value": {"PATCH", one, `{"values":{"database":{"url":` + string(secretValue) + `}}}`, 400, "invalid", nil, nil},
		"a chart by http":         {"PATCH", one, `{"chart":"http://example.org/a.tgz"}`, 400, "invalid", nil, nil},
	})
	h.wrote(h.request(admin, http.MethodPatch, one, `{"version":"1.3.0"}`), "example")
	if got := h.get("zaddon/example", ".spec.suspend"); got != "true" {
		t.Errorf("a new version: suspend is %s", got)
	}
	h.phase("example", "Planned")
	h.wrote(h.request(admin, http.MethodPatch, one, `{"suspend":false}`), "example")
	h.phase("example", "Ready")
	h.wrote(h.request(admin, http.MethodPatch, one, `{"version":"1.2.0","suspend":false}`), "example")
	h.phase("example", "Ready")
	if got := h.get("zaddon/example", ".status.lastAppliedChart.version"); got != "1.2.0" {
		t.Errorf("%s runs", got)
	}
	h.wrote(h.request(admin, http.MethodPatch, one, `{"values":{}}`), "example")
	if got := h.get("zaddon/example", ".spec.values"); got != "{}" && got != "" {
		t.Errorf("values after they were replaced: %s", got)
	}
	h.phase("example", "Ready")
	// POST on the one that is there: suspended, values replaced, secrets stay.
	h.wrote(h.request(admin, http.MethodPost, charts, post("")), "example")
	h.phase("example", "Planned")
	if got := h.request(admin, http.MethodGet, one, ""); fmt.Sprint(got.doc["secretKeys"]) != "[database.url]" || got.doc["suspended"] != true {
		t.Errorf("after a POST: %s", got.text)
	}
	// Without its secret it cannot be planned, and is not installed.
	h.wrote(h.request(admin, http.MethodPatch, one, `{"clearSecrets":["database.url"]}`), "example")
	h.phase("example", "PlanFailed")
	h.refused(admin, map[string]refusal{"install of a blocked plan": {"POST", one + "/install", "", 409, "plan-blocked", nil, nil}})
	h.wrote(h.request(admin, http.MethodPatch, one, `{"secretValues":{"database.url":`+string(secretValue)+`},"suspend":false}`), "example")
	h.phase("example", "Ready")

	// DELETE, keeping values: they are listed, and a new addon refers to them.
	deleted := h.request(admin, http.MethodDelete, one+"?keepValues=true", "")
	h.hasKeys("the answer to DELETE", deleted.doc, "name resource keptValues removed", "")
	if rows, _ := deleted.doc["removed"].([]any); deleted.status != http.StatusOK || deleted.doc["resource"] != true || deleted.doc["keptValues"] != true || len(rows) < 2 {
		t.Errorf("DELETE: %d %s", deleted.status, deleted.text)
	}
	h.eventually("it is gone", func() bool { return h.get("zaddon/example", ".metadata.name") == "" })
	<-events.done
	if !slices.Contains(events.phases, "Planned") || !slices.Contains(events.phases, "Ready") || !slices.Contains(events.phases, "PlanFailed") || !slices.Contains(events.kinds, "end") && !slices.Contains(events.kinds, "deleted") {
		t.Errorf("the stream told phases %v and events %v", events.phases, slices.Compact(events.kinds))
	}
	if sorted := slices.Clone(events.ids); len(sorted) != len(slices.Compact(sorted)) {
		t.Error("two events have one id")
	}
	if len(h.owned("example")) != 0 {
		h.eventually("all that it applied is gone", func() bool { return len(h.owned("example")) == 0 })
	}
	kept := strings.Fields(h.kubectl("get", "secret", "-l", "zaentrum.io/addon=example,zaentrum.io/keep=true", "-o", "jsonpath={.items[*].metadata.name}"))
	var values string
	for _, name := range kept {
		if strings.Contains(name, "-values-") {
			values = name
		}
	}
	h.wrote(h.request(admin, http.MethodPost, charts, post(fmt.Sprintf(`,"secretRefs":{"database.url":{"name":%q}}`, values))), "example")
	h.phase("example", "Planned")
	if got := h.request(admin, http.MethodGet, one, ""); !strings.Contains(got.text, values) {
		t.Errorf("secretRefs do not name %s: %s", values, got.text)
	}
	if got := h.request(admin, http.MethodDelete, one, ""); got.status != http.StatusOK || got.doc["keptValues"] != false {
		t.Errorf("DELETE: %d %s", got.status, got.text)
	}

	// What the API did with Secrets, by the API server's word.
	verbs := map[string]int{}
	for _, r := range h.apiRequests() {
		if r.ObjectRef.Resource == "secrets" {
			verbs[r.Verb]++
		}
	}
	if len(verbs) != 1 || verbs["create"] == 0 {
		t.Errorf("requests about Secrets: %v", verbs)
	}
	t.Logf("requests of the API about Secrets: %v", verbs)
}
