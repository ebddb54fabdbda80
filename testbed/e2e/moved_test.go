package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zaentrum.io/zae/testbed/registry"
)

// publish pushes a small chart that renders a ConfigMap with a mark in it, and answers with the archive's digest.
func (h *house) publish(name, version, mark string) string {
	h.Helper()
	return h.publishTo(bed.Registry, name, version, mark)
}

// publishTo pushes such a chart to a registry.
func (h *house) publishTo(host, name, version, mark string) string {
	h.Helper()
	return h.pushTo(host, name, version, map[string]string{
		"templates/service.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: " + name + "}\nspec: {selector: {app: " + name + "}, ports: [{port: 80}]}\n",
		"templates/mark.yaml":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {mark: " + mark + "}\n",
	})
}

// push pushes a chart with these files, whose primary has its name, and answers with the archive's digest.
func (h *house) push(name, version string, files map[string]string) string {
	h.Helper()
	return h.pushTo(bed.Registry, name, version, files)
}

// pushTo pushes such a chart to a registry.
func (h *house) pushTo(host, name, version string, files map[string]string) string {
	h.Helper()
	dir := h.TempDir()
	files["Chart.yaml"] = "apiVersion: v2\nname: " + name + "\nversion: " + version +
		"\nannotations: {zaentrum.io/addon: \"true\", zaentrum.io/primary: " + name + "}\n"
	for file, text := range files {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			h.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			h.Fatal(err)
		}
	}
	archive, err := registry.Package(dir)
	if err != nil {
		h.Fatal(err)
	}
	if _, err := registry.Push(h.ctx, host+"/charts/"+name+":"+version, archive); err != nil {
		h.Fatal(err)
	}
	return registry.Digest(archive)
}

func (h *house) mark(name string) string { return h.get("cm/"+name, ".data.mark") }

// contentChanged are the events about content that was published again.
func (h *house) contentChanged() []string {
	h.Helper()
	out := h.kubectl("get", "events", "-o", `jsonpath={range .items[?(@.reason=="ContentChanged")]}{.message}{"\n"}{end}`)
	return strings.FieldsFunc(out, func(r rune) bool { return r == '\n' })
}

func TestATagThatMovesWaitsWherePlansAreRead(t *testing.T) {
	h := newHouse(t)
	h.login()
	const name = "moving-read"
	one := h.publish(name, "1.0.0", "one")
	h.api(http.StatusAccepted, "admin", http.MethodPost, "/api/portal/addon-charts", map[string]any{"chart": h.ref(name), "version": "1.0.0"})
	h.phase(name, "Planned")

	// Between plan and install: what was planned is installed.
	two := h.publish(name, "1.0.0", "two")
	h.api(http.StatusAccepted, "admin", http.MethodPost, "/api/portal/addon-charts/"+name+"/install", nil)
	h.phase(name, "Ready")
	if got := h.mark(name); got != "one" {
		t.Errorf("%q was installed, which nobody planned", got)
	}
	h.eventually("an event tells of the new content", func() bool { return len(h.contentChanged()) > 0 })
	if told := h.contentChanged(); len(told) != 1 || !strings.Contains(told[0], one) || !strings.Contains(told[0], two) {
		t.Errorf("told: %q", told)
	}
	for _, field := range []string{".status.message", `.status.conditions[?(@.type=="Planned")].message`, ".status.plan.warnings"} {
		if got := h.get("zaddon/"+name, field); !strings.Contains(got, two) {
			t.Errorf("%s does not name the new content: %s", field, got)
		}
	}
	if r := h.zae(0, "addon", "status", name); !strings.Contains(r.Stdout+r.Stderr, "published again") {
		t.Error(r)
	}

	// Planned anew and installed, it is applied.
	h.api(http.StatusAccepted, "admin", http.MethodPatch, "/api/portal/addon-charts/"+name, map[string]any{"suspend": true})
	h.phase(name, "Planned")
	if got := h.get("zaddon/"+name, ".status.plan.chart.digest"); got != two {
		t.Errorf("planned is %s, not %s", got, two)
	}
	if got := h.mark(name); got != "one" {
		t.Errorf("%q runs while the plan waits", got)
	}
	h.api(http.StatusAccepted, "admin", http.MethodPost, "/api/portal/addon-charts/"+name+"/install", nil)
	h.phase(name, "Ready")
	h.eventually("the new content is applied", func() bool { return h.mark(name) == "two" })
	if told := h.contentChanged(); len(told) != 1 {
		t.Errorf("told: %q", told)
	}
}

func TestATagThatMovesIsRolledOutWhereNobodyReadsPlans(t *testing.T) {
	h := newHouse(t)
	const name = "moving-unread"
	one := h.publish(name, "1.0.0", "one")
	h.apply("apiVersion: zaentrum.io/v1alpha1\nkind: ZaentrumAddon\nmetadata: {name: " + name + "}\nspec: {chart: {ref: \"" + h.ref(name) + "\", version: 1.0.0}}\n")
	h.phase(name, "Ready")
	if got := h.get("zaddon/"+name, ".status.reviewed"); got != "" && got != "false" {
		t.Errorf("never suspended, and reviewed: %s", got)
	}
	two := h.publish(name, "1.0.0", "two")
	h.kubectl("annotate", "zaddon", name, "look=again")
	h.eventually("the new content is applied", func() bool { return h.mark(name) == "two" })
	h.eventually("an event tells of it", func() bool { return len(h.contentChanged()) > 0 })
	h.kubectl("annotate", "--overwrite", "zaddon", name, "look=once-more")
	h.phase(name, "Ready")
	if told := h.contentChanged(); len(told) != 1 || !strings.Contains(told[0], one) || !strings.Contains(told[0], two) {
		t.Errorf("told: %q", told)
	}
	if got := h.get("zaddon/"+name, ".status.lastAppliedChart.digest"); got != two {
		t.Errorf("lastAppliedChart is %s, not %s", got, two)
	}
}
