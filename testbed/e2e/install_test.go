package e2e

import (
	"net/http"
	"testing"
)

// send calls the API as the admin, with a condition when there is one, and answers status, ETag and document.
func (h *house) send(method, path, ifMatch string) (int, string, map[string]any) {
	h.Helper()
	var headers []string
	if ifMatch != "" {
		headers = []string{"If-Match", ifMatch}
	}
	r := h.request(h.token("admin", "zae"), method, path, "", headers...)
	return r.status, r.header.Get("ETag"), r.doc
}

func TestInstallTakesThePlanThatWasRead(t *testing.T) {
	h := newHouse(t)
	h.login()
	const name, path = "moving-plan", "/api/portal/addon-charts/moving-plan"
	h.publish(name, "1.0.0", "one")
	h.api(http.StatusAccepted, "admin", http.MethodPost, "/api/portal/addon-charts", map[string]any{"chart": h.ref(name), "version": "1.0.0"})
	h.phase(name, "Planned")
	_, read, doc := h.send(http.MethodGet, path, "")
	if read == "" {
		t.Fatal("no ETag")
	}
	if _, again, _ := h.send(http.MethodGet, path, ""); again != read {
		t.Errorf("two looks at one plan: %s and %s", read, again)
	}

	// The tag moves, and a look that is due plans what is behind it now, at the same generation.
	two := h.publish(name, "1.0.0", "two")
	h.kubectl("annotate", "zaddon/"+name, "look=1")
	h.eventually("it is planned anew", func() bool { return h.get("zaddon/"+name, ".status.plan.chart.digest") == two })
	status, _, problem := h.send(http.MethodPost, path+"/install", read)
	if status != http.StatusConflict || problem["code"] != "conflict" {
		t.Errorf("installing what was read: %d %v", status, problem)
	}
	if got := h.get("zaddon/"+name, ".spec.suspend"); got != "true" {
		t.Error("the resource was written to")
	}

	_, now, newer := h.send(http.MethodGet, path, "")
	if newer["generation"] != doc["generation"] {
		t.Errorf("generations %v and %v", doc["generation"], newer["generation"])
	}
	if status, _, problem := h.send(http.MethodPost, path+"/install", now); status != http.StatusAccepted {
		t.Fatalf("installing what was read: %d %v", status, problem)
	}
	h.phase(name, "Ready")
	if got := h.mark(name); got != "two" {
		t.Errorf("%q runs", got)
	}
}
