package operator_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/telemetry/otlptest"
)

// metric is the value of a series: of a counter, of a gauge, or how often a histogram was told something. Labels are
// name=value; the others may be anything, and are summed up.
func (h *house) metric(name string, labels ...string) float64 {
	h.Helper()
	families, err := h.metrics.Gather()
	h.must(err)
	sum := 0.0
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			if hasLabels(m, labels) {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}

func hasLabels(m *dto.Metric, labels []string) bool {
	for _, l := range labels {
		if !slices.ContainsFunc(m.GetLabel(), func(p *dto.LabelPair) bool { return p.GetName()+"="+p.GetValue() == l }) {
			return false
		}
	}
	return true
}

// eventsOf are an addon's events, of a reason, in the order in which they were made.
func (h *house) eventsOf(addon, reason string) []eventsv1.Event {
	h.Helper()
	var list eventsv1.EventList
	h.must(h.List(h.Context(), &list, client.InNamespace(h.namespace)))
	list.Items = slices.DeleteFunc(list.Items, func(e eventsv1.Event) bool {
		return e.Regarding.Name != addon || reason != "" && e.Reason != reason
	})
	slices.SortStableFunc(list.Items, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	return list.Items
}

// lines are the log's lines with this message.
func (h *house) lines(message string) []map[string]any {
	h.Helper()
	var out []map[string]any
	for text := range strings.Lines(h.log.String()) {
		line := map[string]any{}
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			h.Fatalf("the log has a line that is no JSON: %s", text)
		}
		if line["msg"] == message {
			out = append(out, line)
		}
	}
	return out
}

// edit changes an object of an addon as somebody would by hand.
func (h *house) edit(o client.Object, name, patch string) {
	h.Helper()
	h.must(h.Get(h.Context(), h.key(name), o))
	h.must(h.Patch(h.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("kubectl-edit")))
}

// corrected waits until that many objects were put back.
func (h *house) corrected(n float64) {
	h.Helper()
	h.eventually(func() string {
		if got := h.metric("zae_drift_corrections_total"); got != n {
			return fmt.Sprintf("%v objects were put back, not %v", got, n)
		}
		return ""
	})
}

// ready brings the example addon to Ready.
func (h *house) ready(a *v1alpha1.ZaentrumAddon) {
	h.Helper()
	h.create(a, v1alpha1.PhaseInstalling)
	h.rollout("example", 1, 1)
	h.rollout("example-worker", 2, 2)
	h.phase("example", v1alpha1.PhaseReady)
}

func TestAHandEditIsPutBackAndTold(t *testing.T) {
	h := newHouse(t)
	h.ready(h.example())
	h.edit(&appsv1.Deployment{}, "example-worker", `{"spec":{"replicas":4,"template":{"spec":{"automountServiceAccountToken":null}}}}`)
	h.corrected(1)
	var event eventsv1.Event
	h.eventually(func() string {
		list := h.eventsOf("example", "DriftCorrected")
		if len(list) != 1 {
			return fmt.Sprintf("%d events: %v", len(list), list)
		}
		event = list[0]
		return ""
	})
	want := "put back what others changed: Deployment/example-worker spec.replicas (by kubectl-edit), spec.template.spec.automountServiceAccountToken (removed)"
	if event.Note != want || event.Type != corev1.EventTypeWarning || event.Related == nil || event.Related.Name != "example-worker" || event.Related.Kind != "Deployment" {
		t.Errorf("got %s %q about %v, want %q", event.Type, event.Note, event.Related, want)
	}
	if lines := h.lines("drift corrected"); len(lines) != 1 || lines[0]["reason"] != want || lines[0]["level"] != "WARN" ||
		lines[0]["addon"] != "example" || lines[0]["namespace"] != h.namespace || lines[0]["generation"] != 1.0 {
		t.Errorf("the log says %v", lines)
	}
	if got := h.metric("zae_drift_corrections_total", "kind=Deployment"); got != 1 {
		t.Errorf("%v Deployments were put back", got)
	}
	d := &appsv1.Deployment{}
	h.must(h.Get(t.Context(), h.key("example-worker"), d))
	if *d.Spec.Replicas != 2 {
		t.Errorf("%d replicas", *d.Spec.Replicas)
	}
}

func TestAnObjectThatWasDeletedByHandIsThereAgainAndTold(t *testing.T) {
	h := newHouse(t)
	h.ready(h.example())
	if n := h.metric("zae_drift_corrections_total"); n != 0 {
		t.Errorf("an install put %v objects back", n)
	}
	service := &corev1.Service{}
	h.must(h.Get(t.Context(), h.key("example"), service))
	h.must(h.Delete(t.Context(), service))
	h.corrected(1)
	h.eventually(func() string {
		list := h.eventsOf("example", "DriftCorrected")
		if len(list) != 1 || list[0].Note != "put back what others changed: Service/example (deleted)" {
			return fmt.Sprint(list)
		}
		return ""
	})
	// What an upgrade makes anew was deleted by nobody.
	h.change("example", func(a *v1alpha1.ZaentrumAddon) { a.Spec.Chart.Version = "1.3.0" })
	h.phase("example", v1alpha1.PhaseInstalling)
	if n := h.metric("zae_drift_corrections_total"); n != 1 || !h.exists(&corev1.ConfigMap{}, "example-features") {
		t.Errorf("after an upgrade %v objects were put back", n)
	}
}

// Somebody who sets a field whenever it is put back makes no loop with the operator, which wins in the end.
func TestAFightIsNoLoop(t *testing.T) {
	h := newHouse(t)
	h.ready(h.example())
	h.chart("witness", "1.0.0", configMap("witness"))
	start, n := time.Now(), 0
	for time.Since(start) < 9*time.Second {
		d := &appsv1.Deployment{}
		h.must(h.Get(t.Context(), h.key("example-worker"), d))
		if *d.Spec.Replicas == 2 {
			n++
			h.edit(d, "example-worker", fmt.Sprintf(`{"spec":{"replicas":%d}}`, 10+n))
		}
		time.Sleep(5 * time.Millisecond)
	}
	puts := h.metric("zae_drift_corrections_total")
	if most := 20 + time.Since(start).Seconds()/2 + 1; puts > most || puts < 20 {
		t.Errorf("put back %v times in %s, at most %v", puts, time.Since(start), most)
	}
	// Others are not kept waiting by it.
	start = time.Now()
	h.create(h.addon("witness", "witness", "1.0.0"), v1alpha1.PhaseReady)
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("another addon took %s", took)
	}
	h.eventually(func() string {
		d := &appsv1.Deployment{}
		h.must(h.Get(t.Context(), h.key("example-worker"), d))
		if *d.Spec.Replicas != 2 {
			return "not put back in the end"
		}
		return ""
	})
	// What the resource says now does not wait.
	h.change("example", func(a *v1alpha1.ZaentrumAddon) { a.Spec.Suspend = true })
	h.phase("example", v1alpha1.PhasePlanned)
}

func TestAFightIsToldOnceInAWhile(t *testing.T) {
	h := newHouse(t)
	h.ready(h.example())
	for i := range 5 {
		h.edit(&appsv1.Deployment{}, "example-worker", fmt.Sprintf(`{"spec":{"replicas":%d}}`, 10+i))
		h.corrected(float64(i + 1))
	}
	// Another object has its own first event.
	h.edit(&corev1.Service{}, "example", `{"spec":{"selector":{"app":"other"}}}`)
	h.corrected(6)
	notes := func(want ...string) {
		t.Helper()
		h.eventually(func() string {
			var got []string
			for _, e := range h.eventsOf("example", "DriftCorrected") {
				got = append(got, e.Note)
				if e.Series != nil {
					got = append(got, "again")
				}
			}
			if len(got) != len(want) {
				return fmt.Sprintf("got %q", got)
			}
			for i := range want {
				if !strings.Contains(got[i], want[i]) {
					return fmt.Sprintf("got %q", got)
				}
			}
			return ""
		})
	}
	notes("Deployment/example-worker spec.replicas (by kubectl-edit)", "Service/example spec.selector (by kubectl-edit)")
	h.clock.step(11 * time.Minute)
	h.edit(&appsv1.Deployment{}, "example-worker", `{"spec":{"replicas":20}}`)
	h.corrected(7)
	notes("Deployment/example-worker", "Service/example", "Deployment/example-worker spec.replicas (by kubectl-edit), 4 more times since ")
	if lines := h.lines("drift corrected"); len(lines) != 3 {
		t.Errorf("the log has %d lines: %v", len(lines), lines)
	}
}

func TestARestartTellsNothingAgain(t *testing.T) {
	h := newHouse(t)
	h.ready(h.example())
	h.create(h.addon("violating", "violation", "1.0.0"), v1alpha1.PhaseFailed)
	h.edit(&corev1.Service{}, "example", `{"spec":{"selector":{"app":"other"}}}`)
	h.corrected(1)
	var before []eventsv1.Event
	h.eventually(func() string {
		if before = append(h.eventsOf("example", ""), h.eventsOf("violating", "")...); len(before) != 4 {
			return fmt.Sprintf("%d events", len(before))
		}
		return ""
	})
	said := len(h.lines("phase changed"))
	if said != 3 { // each is there before its event
		t.Errorf("%d changes of phase are in the log: %v", said, h.lines("phase changed"))
	}
	h.stop()
	h.start()
	h.eventually(func() string {
		if h.metric("zae_step_duration_seconds", "step=render") < 2 || h.metric("zae_addons", "phase=Ready") != 1 {
			return "the addons were not looked at"
		}
		return ""
	})
	h.stop() // which waits for what is under way
	after := append(h.eventsOf("example", ""), h.eventsOf("violating", "")...)
	if len(after) != len(before) || len(h.lines("phase changed")) != said || len(h.lines("drift corrected")) != 1 {
		t.Errorf("%d events became %d, %d lines became %d", len(before), len(after), said, len(h.lines("phase changed")))
	}
	for _, e := range after {
		if e.Series != nil {
			t.Errorf("%s was repeated: %v", e.Reason, e.Series)
		}
	}
}

func TestMetricsTellOfAddonsAndOfWorkDone(t *testing.T) {
	h := newHouse(t)
	h.ready(h.example())
	h.create(h.addon("violating", "violation", "1.0.0"), v1alpha1.PhaseFailed)
	a := h.addon("unset", "example", "1.2.0")
	a.Spec.Suspend = true
	h.create(a, v1alpha1.PhasePlanFailed)
	h.create(h.addon("absent", "nothing", "1.0.0"), v1alpha1.PhaseFailed)
	const ns = "namespace="
	for _, want := range []struct {
		name   string
		labels []string
		value  float64
	}{
		{"zae_operator_leading", nil, 1},
		{"zae_addons", []string{"phase=Ready"}, 1},
		{"zae_addons", []string{"phase=Failed"}, 2},
		{"zae_addons", []string{"phase=PlanFailed"}, 1},
		{"zae_addons", nil, 4},
		{"zae_addon_phase", []string{ns + h.namespace, "name=example", "phase=Ready"}, 1},
		{"zae_addon_phase", nil, 4},
		{"zae_plan_violations", []string{"rule=no-host-path"}, 1},
		{"zae_plan_violations", nil, 2},
		{"zae_plan_values_errors", nil, 1},
		{"zae_objects_applied_total", nil, 9},
		{"zae_objects_applied_total", []string{"kind=Deployment"}, 2},
		{"zae_chart_fetches_total", []string{"result=downloaded"}, 2},
		{"zae_chart_cache_archives", nil, 2},
		{"zae_step_duration_seconds", []string{"step=apply", "result=failed"}, 0},
		{"zae_render_overruns_total", nil, 0},
		{"zae_drift_corrections_total", nil, 0},
	} {
		if got := h.metric(want.name, want.labels...); got != want.value {
			t.Errorf("%s%v is %v, want %v", want.name, want.labels, got, want.value)
		}
	}
	for _, some := range [][]string{
		{"zae_chart_fetches_total", "result=failed"}, {"zae_chart_downloaded_bytes_total"}, {"zae_chart_cache_bytes"},
		{"zae_step_duration_seconds", "step=fetch", "result=ok"}, {"zae_step_duration_seconds", "step=fetch", "result=failed"},
		{"zae_step_duration_seconds", "step=render", "result=ok"}, {"zae_step_duration_seconds", "step=apply", "result=ok"},
		{"zae_render_jobs_total"}, {"zae_render_worker_starts_total"}, {"zae_apply_requests_saved_total"}, {"zae_status_writes_total"},
	} {
		if h.metric(some[0], some[1:]...) == 0 {
			t.Errorf("%v is 0", some)
		}
	}
	// An operator that does not work any more counts nothing.
	h.stop()
	if h.metric("zae_apply_requests_saved_total") == 0 {
		t.Error("what was counted is gone")
	}
}

func TestAPanicTellsWhereAndNotWhat(t *testing.T) {
	h := newHouse(t)
	bad := "bad"
	h.counting.failing.Store(&bad)
	h.must(h.Create(t.Context(), h.addon(bad, "tiny", "0.1.0")))
	h.eventually(func() string {
		for _, line := range h.lines("panic") {
			if line["level"] == "ERROR" && line["addon"] == bad && line["type"] == "string" && strings.Contains(fmt.Sprint(line["stack"]), "settled_test.go") {
				return ""
			}
		}
		return "the log has no line of a panic"
	})
	// Others are worked on, and it is tried again.
	h.create(h.addon("tiny", "tiny", "0.1.0"), v1alpha1.PhaseInstalling)
	h.counting.failing.Store(nil)
	h.phase(bad, v1alpha1.PhaseFailed) // its objects are tiny's
}

func TestTheLogHasDocumentedKeysOnly(t *testing.T) {
	text, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## Logs\n")
	table, _, _ = strings.Cut(table, "\n## ")
	h := newHouse(t)
	h.ready(h.example())
	h.edit(&appsv1.Deployment{}, "example-worker", `{"spec":{"replicas":4}}`)
	h.corrected(1)
	h.create(h.addon("violating", "violation", "1.0.0"), v1alpha1.PhaseFailed)
	h.must(h.Delete(t.Context(), h.addon("violating", "violation", "1.0.0")))
	h.eventually(func() string {
		if len(h.lines("addon is gone")) == 0 {
			return "nothing tells that an addon is gone"
		}
		return ""
	})
	seen := 0
	for text := range strings.Lines(h.log.String()) {
		line := map[string]any{}
		h.must(json.Unmarshal([]byte(text), &line))
		if line["addon"] == nil { // a library's, about its own affairs
			continue
		}
		seen++
		for key := range line {
			if !strings.Contains(table, "`"+key+"`") {
				t.Errorf("%s is not in docs/operating.md: %s", key, text)
			}
		}
	}
	if seen < 6 {
		t.Errorf("only %d lines are about addons", seen)
	}
}

const traced = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestAReconcileIsPartOfTheTraceThatAskedForIt(t *testing.T) {
	h := newHouse(t)
	h.stop()
	collector := otlptest.Serve(t)
	h.collector = collector.URL
	h.start()
	a := h.example()
	a.Annotations = map[string]string{v1alpha1.AnnotationTraceparent: traced, v1alpha1.AnnotationTracedGeneration: "1"}
	h.ready(a)
	h.eventually(func() string {
		if n := len(h.lines("phase changed")); n != 2 {
			return fmt.Sprintf("%d lines tell of phases", n)
		}
		return ""
	})
	for _, line := range h.lines("phase changed") {
		if line["trace"] != "4bf92f3577b34da6a3ce929d0e0e4736" {
			t.Errorf("the log says %v", line)
		}
	}
	// Another generation is of no trace, or of its own.
	h.change("example", func(a *v1alpha1.ZaentrumAddon) { a.Spec.Suspend, a.Spec.Chart.Version = true, "1.3.0" })
	h.phase("example", v1alpha1.PhasePlanned)
	h.stop() // which sends what is left

	ids := map[string]string{} // of spans, and their names
	for _, s := range collector.Spans() {
		ids[s.ID] = s.Name
	}
	names := map[string]int{}
	for _, s := range collector.Spans() {
		ours := s.Trace == "4bf92f3577b34da6a3ce929d0e0e4736"
		switch {
		case s.Service != "zae-operator", s.EndNanos < s.StartNanos, s.Failed:
			t.Errorf("%+v", s)
		case s.Name == "reconcile" && ours:
			if s.Parent != "00f067aa0ba902b7" || s.Attributes["zae.addon"] != "example" || s.Attributes["k8s.namespace.name"] != h.namespace {
				t.Errorf("%+v", s)
			}
		case s.Name == "reconcile":
			if s.Parent != "" || s.Attributes["zae.phase"] != "Planned" {
				t.Errorf("%+v", s)
			}
		case ids[s.Parent] != "reconcile":
			t.Errorf("%+v is part of %s", s, ids[s.Parent])
		}
		names[fmt.Sprintf("%s %t", s.Name, ours)]++
	}
	for _, want := range []string{"fetch", "inspect", "render", "observe", "rehearse", "apply", "prune", "reconcile"} {
		if names[want+" true"] == 0 {
			t.Errorf("no span %s in %v", want, names)
		}
	}
	if names["render false"] == 0 || names["apply false"] != 0 {
		t.Errorf("a plan: %v", names)
	}
}

func TestAnIdleReconcileSendsNoSpan(t *testing.T) {
	h := newHouse(t)
	h.stop()
	collector := otlptest.Serve(t)
	h.collector = collector.URL
	h.start()
	h.ready(h.example())
	h.stop()
	before := len(collector.Spans())
	if before == 0 {
		t.Fatal("an install sends none")
	}
	h.start()
	h.eventually(func() string {
		if h.metric("zae_step_duration_seconds", "step=observe") == 0 {
			return "the addon was not looked at"
		}
		return ""
	})
	h.stop()
	if after := len(collector.Spans()); after != before {
		t.Errorf("a reconcile that does nothing sends %+v", collector.Spans()[before:])
	}
}
