package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"

	"zaentrum.io/zae/testbed"
	"zaentrum.io/zae/testbed/stack"
)

// TestOneTraceLeadsFromTheCommandLineToTheReconcile follows an install through the logs, by the id that --debug shows.
func TestOneTraceLeadsFromTheCommandLineToTheReconcile(t *testing.T) {
	h := newHouse(t)
	h.login()
	r := h.zae(0, h.add("--yes", "--wait", "--debug")...)
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(`debug: (?:GET|POST|PATCH) /api/\S+ \d+ \S+ trace ([0-9a-f]{32})`).FindAllStringSubmatch(r.Stderr, -1) {
		ids[m[1]] = true
	}
	if len(ids) != 1 {
		t.Fatalf("the requests are of %d traces:\n%s", len(ids), r.Stderr)
	}
	var id string
	for id = range ids {
	}
	if got := h.get("zaddon/example", `.metadata.annotations.zaentrum\.io/traceparent`); !strings.Contains(got, id) {
		t.Errorf("the resource has %q", got)
	}
	asked := map[string]bool{}
	for _, line := range h.log(h.API, "request") {
		if line["trace"] == id {
			route, _ := line["route"].(string)
			asked[route] = true
		}
	}
	for _, route := range []string{"POST /api/portal/addon-charts", "POST /api/portal/addon-charts/{name}/install", "GET /api/portal/addon-charts/{name}"} {
		if !asked[route] {
			t.Errorf("the API's log does not have %s in the trace, but %v", route, asked)
		}
	}
	phases := map[string]bool{}
	for _, line := range h.log(h.Operator, "phase changed") {
		if line["trace"] != id {
			t.Errorf("the operator's log has a phase in another trace: %v", line)
		}
		phase, _ := line["phase"].(string)
		phases[phase] = true
	}
	if !phases["Planned"] || !phases["Ready"] {
		t.Errorf("the operator's log has the phases %v", phases)
	}
	if lines := h.log(h.API, "addon registered"); len(lines) == 0 || lines[0]["trace"] != id {
		t.Errorf("registered: %v", lines)
	}
}

// log are a program's lines with a message. Every line must be JSON.
func (h *house) log(p *testbed.Process, message string) []map[string]any {
	h.Helper()
	text, err := os.ReadFile(p.Log())
	if err != nil {
		h.Fatal(err)
	}
	var out []map[string]any
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := map[string]any{}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			h.Errorf("%s logs a line that is no JSON: %s", p.Name(), lines.Text())
			continue
		}
		if line["msg"] == message {
			out = append(out, line)
		}
	}
	return out
}

func TestAHandEditIsAnEventThatNamesFieldAndManager(t *testing.T) {
	h := newHouse(t)
	h.login()
	h.zae(0, h.add("--yes", "--wait")...)
	h.kubectl("scale", "deploy", "example-worker", "--replicas=5")
	h.eventually("an event tells of it", func() bool {
		notes := h.get("events", `range .items[?(@.reason=="DriftCorrected")]}{.message}{"\n"}{end`)
		return notes == "put back what others changed: Deployment/example-worker spec.replicas (by kubectl)"
	})
}

// TestDashboardAndAlertsAreAboutWhatIsMeasured reads all their queries with Prometheus' own parser, and looks for each
// metric in what the programs answer.
func TestDashboardAndAlertsAreAboutWhatIsMeasured(t *testing.T) {
	h := newHouse(t)
	h.login()
	h.zae(0, h.add("--yes", "--wait")...)
	h.zae(1, "addon", "add", h.ref("violation"), "--version", "1.0.0", "--name", "violating", "--yes")
	measured := map[string]bool{}
	for _, text := range [][]byte{read(h, h.MetricsURL, ""), read(h, h.URL+"/metrics", "")} {
		for line := range strings.Lines(string(text)) {
			if name := strings.FieldsFunc(line, func(r rune) bool { return r == '{' || r == ' ' })[0]; name != "#" {
				measured[name] = true
			}
		}
	}
	named := map[string]bool{}
	for where, query := range queries(t) {
		names, err := metricsOf(query)
		if err != nil {
			t.Errorf("%s: %v", where, err)
		}
		for _, name := range names {
			if named[name] = true; !measured[name] {
				t.Errorf("%s is about %s, which nobody measures", where, name)
			}
		}
	}
	for name := range measured {
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count"), "_sum")
		if strings.HasPrefix(name, "zae_") && !named[base] && !named[base+"_bucket"] && !named[base+"_count"] {
			t.Errorf("neither the dashboard nor an alert shows %s", name)
		}
	}
}

// queries are all queries of the dashboard and of the alerts, by where they stand.
func queries(t *testing.T) map[string]string {
	t.Helper()
	dir := filepath.Join(stack.Root(), "deploy", "monitoring")
	text, err := os.ReadFile(filepath.Join(dir, "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.UnmarshalStrict(text, &struct {
		Groups any `json:"groups"`
	}{}); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &rules); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	operating, err := os.ReadFile(filepath.Join(stack.Root(), "docs", "operating.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" || r.Labels["severity"] == "" {
				t.Errorf("an alert lacks something: %+v", r)
			}
			if !bytes.Contains(operating, []byte("| "+r.Alert+" |")) {
				t.Errorf("docs/operating.md does not say what to do about %s", r.Alert)
			}
			out["alert "+r.Alert] = r.Expr
		}
	}
	text, err = os.ReadFile(filepath.Join(dir, "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			ID      int
			Title   string
			Targets []struct{ RefID, Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	ids := map[int]bool{}
	for _, p := range dashboard.Panels {
		if ids[p.ID] || p.Title == "" || len(p.Targets) == 0 {
			t.Errorf("a panel lacks something: %+v", p)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			out["panel "+p.Title+" "+target.RefID] = target.Expr
		}
	}
	if len(out) < 30 {
		t.Fatalf("only %d queries were found", len(out))
	}
	return out
}

// variables are what Grafana puts in before Prometheus sees a query.
var variables = strings.NewReplacer("$__rate_interval", "5m", "$namespace", ".*")

func metricsOf(query string) ([]string, error) {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(variables.Replace(query))
	if err != nil {
		return nil, err
	}
	var names []string
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if s, ok := node.(*parser.VectorSelector); ok {
			names = append(names, s.Name)
		}
		return nil
	})
	return names, nil
}
