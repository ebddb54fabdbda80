package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// sent makes a call that may find the API killed; false when there was no answer.
func (h *house) sent(token, method, path, body, key string) (reply, bool) {
	h.Helper()
	var headers []string
	if key != "" {
		headers = []string{"Idempotency-Key", key}
	}
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	out, err := h.attempt(c, token, method, path, body, headers...)
	return out, err == nil
}

// killedIn makes a write in the course of which the API is killed: before its n-th request that writes, or after the API
// server has done that and before the API knows. The API is started again, and the same write made again, as a client does whose
// answer was lost: under the same key, which is somebody else's for half a minute, or under none. It answers with what that
// said, and whether the write came to that point.
func (h *house) killedIn(g *gate, token, method, path, body string, n int, after, keyed bool) (reply, bool) {
	h.Helper()
	key := ""
	if keyed {
		key = fmt.Sprintf("%s-%s-%d-%t-%d", method, strings.ReplaceAll(path, "/", "-"), n, after, time.Now().UnixNano())
	}
	p := &point{n: n, writes: true, after: after, fired: make(chan struct{}), act: func() {
		if err := h.API.Kill(); err != nil {
			h.Error(err)
		}
	}}
	g.set(p)
	first, answered := h.sent(token, method, path, body, key)
	if g.drop(p) {
		if !answered {
			h.Fatalf("%s %s was not answered, and nobody was killed", method, path)
		}
		return first, false
	}
	<-p.fired
	for h.API.Running() {
		time.Sleep(time.Millisecond) // the kill is about to be through
	}
	if err := h.API.Start(h.ctx); err != nil {
		h.Fatal(err)
	}
	var again reply
	h.eventually("the write is answered when it is made again", func() bool {
		again, answered = h.sent(token, method, path, body, key)
		return answered && again.doc["code"] != "in-flight" && again.status < 500
	})
	return again, true
}

// TestFaultKilledAPI kills the API (SIGKILL) at each of its own requests that write, before it and after it, in the course of
// each kind of write. Made again under its key, a write has happened once: one Secret, one resource; nothing set earlier is lost.
func TestFaultKilledAPI(t *testing.T) {
	g := &gate{}
	h := openHouse(t, opening{apiGate: g.wrap, within: 10 * time.Minute})
	token := h.token("admin", "zae")
	secret, err := json.Marshal(h.canary)
	if err != nil {
		t.Fatal(err)
	}
	const charts = "/api/portal/addon-charts"
	secretsOf := func(name string) []string {
		return strings.Fields(h.kubectl("get", "secret", "-l", "zaentrum.io/addon="+name, "-o", "jsonpath={.items[*].metadata.name}"))
	}
	referred := func(name string) []string {
		names := strings.Fields(h.get("zaddon/"+name, ".spec.valuesFrom[*].name"))
		slices.Sort(names)
		return slices.Compact(names)
	}
	kills := map[string]int{}
	for _, after := range []bool{false, true} {
		for n := range 3 {
			name := fmt.Sprintf("killed-%d-%t", n, after)
			one := charts + "/" + name
			// Add.
			got, killed := h.killedIn(g, token, http.MethodPost, charts,
				fmt.Sprintf(`{"name":%q,"chart":%q,"version":"1.2.0","secretValues":{"database.url":%s}}`, name, h.ref("example"), secret), n, after, n == 1)
			if got.status != http.StatusAccepted {
				t.Fatalf("%s: add: %d %s", name, got.status, got.text)
			}
			count(kills, "add", killed)
			if made, used := secretsOf(name), referred(name); len(used) != 1 || n == 1 && !slices.Equal(without(made, "generated"), used) {
				t.Errorf("%s: after adding there are the Secrets %v, and %v are used", name, made, used)
			}
			h.phase(name, "Planned")
			// Another secret: the one set earlier stays.
			got, killed = h.killedIn(g, token, http.MethodPatch, one, fmt.Sprintf(`{"secretValues":{"config.key":%s}}`, secret), n, after, false)
			if got.status != http.StatusAccepted {
				t.Fatalf("%s: patch: %d %s", name, got.status, got.text)
			}
			count(kills, "patch", killed)
			shown := h.request(token, http.MethodGet, one, "")
			if keys := fmt.Sprint(shown.doc["secretKeys"]); keys != "[config.key database.url]" || len(referred(name)) != 2 {
				t.Errorf("%s: after a patch the secrets %s are set, in %v", name, keys, referred(name))
			}
			h.phase(name, "Planned")
			// Install.
			got, killed = h.killedIn(g, token, http.MethodPost, one+"/install", "", n, after, false)
			// Without a key, one that happened is another install, of what is about to be planned again.
			happened := killed && got.code() == "no-current-plan"
			if got.status != http.StatusAccepted && !happened || h.get("zaddon/"+name, ".spec.suspend") == "true" {
				t.Fatalf("%s: install: %d %s", name, got.status, got.text)
			}
			count(kills, "install", killed)
			// Remove, and keep the values.
			kept := referred(name)
			got, killed = h.killedIn(g, token, http.MethodDelete, one+"?keepValues=true", "", n, after, false)
			if got.status != http.StatusOK && (got.status != http.StatusNotFound || !killed) {
				t.Fatalf("%s: remove: %d %s", name, got.status, got.text)
			}
			count(kills, "remove", killed)
			h.eventually(name+" is gone, and what it applied", func() bool { // the next one's objects have the same names
				return h.get("zaddon/"+name, ".metadata.name") == "" && len(h.owned(name)) == 0
			})
			for _, secret := range kept {
				if h.get("secret/"+secret, ".metadata.labels.zaentrum\\.io/keep") != "true" {
					t.Errorf("%s: the values in %s are lost", name, secret)
				}
			}
		}
	}
	t.Logf("killed in the course of %v", kills)
	for what, least := range map[string]int{"add": 4, "patch": 4, "install": 2, "remove": 4} {
		if kills[what] < least {
			t.Errorf("killed %d times in %s, not %d", kills[what], what, least)
		}
	}
}

func count(kills map[string]int, what string, killed bool) {
	if killed {
		kills[what]++
	}
}

// without leaves out names that end so.
func without(names []string, suffix string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return strings.HasSuffix(n, suffix) })
}
