package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"
)

// send calls the API as the admin, with a condition when there is one, and answers status, ETag and document.
func (h *house) send(method, path, ifMatch string) (int, string, map[string]any) {
	h.Helper()
	req, err := http.NewRequestWithContext(h.ctx, method, h.URL+path, nil)
	if err != nil {
		h.Fatal(err)
	}
	token, err := bed.Token("admin", "zae")
	if err != nil {
		h.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if ifMatch != "" {
		req.Header.Set("If-Match", ifMatch)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		h.Fatal(err)
	}
	h.note(string(answer))
	doc := map[string]any{}
	if err := json.Unmarshal(answer, &doc); err != nil {
		h.Fatalf("%s %s: %v: %s", method, path, err, answer)
	}
	return resp.StatusCode, resp.Header.Get("ETag"), doc
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
