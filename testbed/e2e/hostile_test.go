package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"zaentrum.io/zae/testbed"
	"zaentrum.io/zae/testbed/stack"
)

// What the operator itself may take, at its peak, while charts that mean harm come and go; each of its render workers
// has the bound of --render-memory, and the kernel's a little above.
const (
	operatorMemory = 256 << 20
	workerMemory   = 704 << 20
)

// stopped is what is said of a chart that needs too much. Of what, memory, processor time or time, the machine decides
// when it is busy; internal/worker tells them apart.
const stopped = "rendering the chart was stopped"

// hostile is what each chart of examples/hostile ends with: words of its message, and the phase where it is not
// PlanFailed.
var hostile = map[string]struct{ says, phase string }{
	"aliases":            {says: "templates/config.yaml: line 6 of its output: aliases expand to too much"},
	"depth":              {says: "templates/config.yaml: line 6 of its output: nested deeper than 100 levels"},
	"fail-location":      {says: "template error at fail-location/templates/config.yaml"},
	"fail-secret":        {says: "template error at fail-secret/templates/config.yaml:1:4"},
	"functions":          {says: "finalizers"},
	"items":              {says: "the limit is 100000"},
	"memory":             {says: stopped},
	"memory-slowly":      {says: stopped},
	"objects":            {says: "the templates render 50001 objects, the limit is 500"},
	"output":             {says: "bytes, the limit is"},
	"random":             {says: "is planned", phase: "Planned"},
	"recursion-include":  {says: "template error at recursion-include/templates/config.yaml:6:11"},
	"recursion-template": {says: "template error at recursion-template/templates/_helpers.tpl"},
	"recursion-tpl":      {says: stopped},
	"schema-cycle":       {says: "schema"},
	"schema-pattern":     {says: "schema"},
	"schema-remote":      {says: "schema"},
	"secret-in-names":    {says: "hostNetwork"},
	"secret-in-yaml":     {says: "templates/config.yaml"},
	"time":               {says: stopped},
	"values-aliases":     {says: "aliases expand to too much"},
}

// TestHostileChartsFailAlone plans every chart that means harm, one after the other, while another addon is kept as it
// was rendered. It prints how long the slowest took, for which docs/performance.md has the bound.
func TestHostileChartsFailAlone(t *testing.T) {
	h := newHouse(t, "--resync", "2s")
	h.login()
	h.zae(0, h.add("--yes", "--wait")...)

	dirs, err := os.ReadDir(filepath.Join(stack.Root(), "examples", "hostile"))
	if err != nil {
		t.Fatal(err)
	}
	charts := map[string]struct{ says, phase string }{}
	for _, d := range dirs {
		if !d.IsDir() {
			continue
		}
		want, ok := hostile[d.Name()]
		if !ok {
			t.Errorf("nothing is said here about examples/hostile/%s", d.Name())
			continue
		}
		if _, _, err := h.PushChart(h.ctx, filepath.Join("examples", "hostile", d.Name()), d.Name(), "1.0.0"); err != nil {
			t.Fatal(err)
		}
		charts[d.Name()] = want
	}
	for name, a := range hostileArchives(t) {
		if _, _, err := h.PushArchive(h.ctx, a.archive, name, "1.0.0"); err != nil {
			t.Fatal(err)
		}
		charts[name] = struct{ says, phase string }{says: a.says}
	}
	if len(charts) < len(hostile)+8 {
		t.Fatalf("%d charts", len(charts))
	}

	names := make([]string, 0, len(charts))
	for name := range charts {
		names = append(names, name)
	}
	slices.Sort(names)
	var slowest, slowestEdit time.Duration
	for _, name := range names {
		want := charts[name]
		body := map[string]any{"chart": h.ref(name), "version": "1.0.0", "name": name}
		if strings.Contains(name, "secret") || name == "fail-location" {
			body["secretValues"] = map[string]string{"token": h.canary}
		}
		start := time.Now()
		h.api(202, "admin", http.MethodPost, "/api/portal/addon-charts", body)
		// Somebody's hand changes what another addon has, which only a reconcile puts right.
		h.kubectl("scale", "deploy/example-worker", "--replicas=3")
		edit := time.Now()
		edited := false
		for {
			if !edited && h.get("deploy/example-worker", ".spec.replicas") == "2" {
				edited = true
				slowestEdit = max(slowestEdit, time.Since(edit))
			}
			got := h.api(200, "admin", http.MethodGet, "/api/portal/addon-charts/"+name, nil)
			phase, message := fmt.Sprint(got["phase"]), fmt.Sprint(got["message"])
			if got["generation"] == got["observedGeneration"] && phase != "" && !strings.HasPrefix(message, "waiting") {
				took := time.Since(start)
				slowest = max(slowest, took)
				t.Logf("%-20s %-10s %6s  %s", name, phase, took.Round(time.Millisecond), message)
				if wanted := want.phase; phase != "PlanFailed" && phase != wanted {
					t.Errorf("%s: phase %s", name, phase)
				}
				if text := message + fmt.Sprint(got["plan"]); !strings.Contains(text, want.says) {
					t.Errorf("%s: %q does not say %q", name, message, want.says)
				}
				break
			}
			if time.Since(start) > time.Minute {
				t.Fatalf("%s: no plan: %v", name, got)
			}
			time.Sleep(50 * time.Millisecond)
		}
		h.eventually("the hand edit is gone", func() bool { return h.get("deploy/example-worker", ".spec.replicas") == "2" })
		slowestEdit = max(slowestEdit, map[bool]time.Duration{true: 0, false: time.Since(edit)}[edited])
	}
	if !h.Operator.Running() {
		t.Error("the operator does not run any more")
	}
	h.phase("example", "Ready")
	if warnings := h.get("zaddon/random", ".status.plan.warnings"); !strings.Contains(warnings, "Secret/random data.key") {
		t.Errorf("what is rendered otherwise each time is not warned of: %s", warnings)
	}
	own, workers := peak(h.Operator.PID()), 0
	for _, pid := range children(t, h.Operator.PID()) {
		workers = max(workers, peak(pid))
	}
	t.Logf("%d charts; slowest plan %s, slowest repair of the other addon %s; peak of the operator %d MiB, of a living worker %d MiB",
		len(charts), slowest.Round(time.Millisecond), slowestEdit.Round(time.Millisecond), own>>20, workers>>20)
	if own > operatorMemory || workers > workerMemory {
		t.Errorf("the operator took %d MiB, a worker %d MiB", own>>20, workers>>20)
	}
}

// peak is the most memory that a process has held; 0 for one that has ended.
func peak(pid int) int {
	held, err := testbed.PeakMemory(pid)
	if err != nil {
		return 0
	}
	return int(held)
}

// children are the processes that a process has started.
func children(t *testing.T, pid int) []int {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	var out []int
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for _, f := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(f); err == nil {
				out = append(out, child)
			}
		}
	}
	return out
}

type hostileArchive struct {
	archive []byte
	says    string
}

// hostileArchives are those that do their harm before a template is read.
func hostileArchives(t *testing.T) map[string]hostileArchive {
	chartYAML := func(name string) tarEntry {
		return tarEntry{name: name + "/Chart.yaml", text: "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\nannotations:\n  zaentrum.io/addon: \"true\"\n  zaentrum.io/primary: " + name + "\n"}
	}
	zeros := strings.Repeat("\x00", 30<<20)
	many := []tarEntry{chartYAML("entries")}
	for i := range 60000 {
		many = append(many, tarEntry{name: fmt.Sprintf("entries/f%d", i)})
	}
	deep := strings.Repeat(`{"not":`, 20000) + "{}" + strings.Repeat("}", 20000)
	inner := tarball(t, tarEntry{name: "inner/Chart.yaml", text: "apiVersion: v2\nname: inner\nversion: 1.0.0\n"}, tarEntry{name: "inner/templates/zeros", text: zeros})
	middle := tarball(t, tarEntry{name: "middle/Chart.yaml", text: "apiVersion: v2\nname: middle\nversion: 1.0.0\n"}, tarEntry{name: "middle/charts/inner-1.0.0.tgz", text: string(inner)})
	return map[string]hostileArchive{
		"bomb":         {tarball(t, chartYAML("bomb"), tarEntry{name: "bomb/templates/zeros", text: zeros}), "20"},
		"nested-bomb":  {tarball(t, chartYAML("nested-bomb"), tarEntry{name: "nested-bomb/charts/middle-1.0.0.tgz", text: string(middle)}), "20"},
		"entries":      {tarball(t, many...), "entries"},
		"traversal":    {tarball(t, chartYAML("traversal"), tarEntry{name: "traversal/../../etc/cron.d/x", text: "x"}), "path"},
		"absolute":     {tarball(t, chartYAML("absolute"), tarEntry{name: "/etc/cron.d/x", text: "x"}), "path"},
		"link":         {tarball(t, chartYAML("link"), tarEntry{name: "link/templates/passwd", link: "/etc/passwd"}), "link"},
		"deep-schema":  {tarball(t, chartYAML("deep-schema"), tarEntry{name: "deep-schema/values.schema.json", text: deep}), "schema"},
		"large-schema": {tarball(t, chartYAML("large-schema"), tarEntry{name: "large-schema/values.schema.json", text: `{"title":"` + strings.Repeat("x", 300<<10) + `"}`}), "256 KiB"},
		"crds":         {tarball(t, chartYAML("crds"), tarEntry{name: "crds/crds/x.yaml", text: "x: y\n"}), "crds"},
	}
}

type tarEntry struct{ name, text, link string }

func tarball(t *testing.T, entries ...tarEntry) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	archive := tar.NewWriter(zip)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Mode: 0o644, Size: int64(len(e.text)), Typeflag: tar.TypeReg}
		if e.link != "" {
			header.Typeflag, header.Linkname = tar.TypeSymlink, e.link
		}
		if err := archive.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(e.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
