package apply_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/internal/apply"
)

// noValue fails the test when a rehearsal shows the canary.
func noValue(t *testing.T, r *apply.Rehearsal) {
	t.Helper()
	if text := fmt.Sprintf("%+v %v", r.Changes, r.Refused); strings.Contains(strings.ToLower(text), "c4n4ry") {
		t.Errorf("a value shows: %s", text)
	}
}

func refusals(r *apply.Rehearsal) []string {
	var out []string
	for _, x := range r.Refused {
		out = append(out, x.String())
	}
	return out
}

func TestARehearsalTellsWhichFieldsChange(t *testing.T) {
	b := newBench(t)
	b.mustApply(example)
	for name, tc := range map[string]struct {
		change []string
		want   []apply.Change
	}{
		"nothing": {[]string{"", ""}, nil},
		"an image, a variable and the replicas of a Deployment": {
			[]string{"example/example:1", "example/c4n4ry:2", `{name: A, value: "2"}`, `{name: A, value: c4n4ry}`, "replicas: 2", "replicas: 3"},
			[]apply.Change{{ID: id("apps/v1", "Deployment", "example"), Fields: []string{
				"spec.replicas", "spec.template.spec.containers[example].env[A].value", "spec.template.spec.containers[example].image",
			}}},
		},
		"a variable that goes": {
			[]string{`{name: B, value: ""}, `, ""},
			[]apply.Change{{ID: id("apps/v1", "Deployment", "example"), Fields: []string{"spec.template.spec.containers[example].env[B]"}}},
		},
		"keys of a ConfigMap": {
			[]string{`a: "1", b: "2"`, `a: c4n4ry, c.yaml: c4n4ry`},
			[]apply.Change{{ID: id("v1", "ConfigMap", "config"), Fields: []string{"data.a", "data.b", "data[c.yaml]"}}},
		},
		"keys of a Secret": {
			[]string{`url: "postgres://c4n4ry"`, `url: "postgres://c4n4ry-2", new: c4n4ry`},
			[]apply.Change{{ID: id("v1", "Secret", "env"), Fields: []string{"data.new", "data.url"}}},
		},
		"a Service's port": {
			[]string{"port: 80, targetPort: http", "port: 80, targetPort: 8081", "{name: dns-tcp, port: 53}", "{name: c4n4ry, port: 54}"},
			[]apply.Change{{ID: id("v1", "Service", "example"), Fields: []string{"spec.ports[53]", "spec.ports[54]", "spec.ports[80].targetPort"}}},
		},
		"a label": {
			[]string{"metadata: {name: data}", "metadata: {name: data, labels: {l: c4n4ry}}"},
			[]apply.Change{{ID: id("v1", "PersistentVolumeClaim", "data"), Fields: []string{"metadata.labels.l"}}},
		},
		"a Job's image": {
			[]string{"setup:1", "setup:c4n4ry"},
			[]apply.Change{{ID: id("batch/v1", "Job", "setup"), Rerun: true, Fields: []string{"spec.template.spec.containers[setup].image"}}},
		},
		"another word for the same": {[]string{"cpu: 1000m, memory: 0.5Gi", "cpu: 1, memory: 512Mi"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b.requests.reset()
			r := b.rehearse(strings.NewReplacer(tc.change...).Replace(example), true)
			if d := cmp.Diff(tc.want, r.Changes); d != "" {
				t.Error(d)
			}
			if !r.Accepted() {
				t.Errorf("refused: %q", refusals(r))
			}
			if w := b.requests.writes(); len(w) > 0 {
				t.Errorf("wrote %q", w)
			}
			noValue(t, r)
		})
	}
}

// What somebody else changed by hand is taken back, and so it is a change.
func TestARehearsalTellsWhatIsTakenBack(t *testing.T) {
	b := newBench(t)
	b.mustApply(example)
	b.patch(b.get("apps/v1", "Deployment", "example"), `{"spec":{"replicas":5,"revisionHistoryLimit":3}}`)
	r := b.rehearse(example, true)
	if d := cmp.Diff([]apply.Change{{ID: id("apps/v1", "Deployment", "example"), Fields: []string{"spec.replicas"}}}, r.Changes); d != "" {
		t.Error(d)
	}
}

func TestARehearsalTellsWhatTheClusterRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		empty  bool // nothing was applied before
		change []string
		want   []string
	}{
		"a selector that changes": {
			change: []string{"{matchLabels: {app: example}}", "{matchLabels: {app: other}}", "metadata: {labels: {app: example}}", "metadata: {labels: {app: other}}"},
			want:   []string{"Deployment/example: spec.selector cannot be changed on the existing object"},
		},
		"a claim that shrinks": {
			change: []string{"1024Mi", "512Mi"},
			want:   []string{"PersistentVolumeClaim/data: spec cannot be changed on the existing object"},
		},
		"one object alone": {
			change: []string{"type: Opaque", "type: example.org/c4n4ry"},
			want:   []string{"Secret/env: type cannot be changed on the existing object"},
		},
		"a new object": {
			change: []string{"metadata: {name: setup}", "metadata: {name: new, labels: {x: c4n4ry c4n4ry}}"},
			want:   []string{"Job/new: metadata.labels not accepted by the cluster (Invalid)"},
		},
		"new objects, every one that is wrong": {
			empty:  true,
			change: []string{"port: 80,", "port: 80000,", "replicas: 2", "replicas: c4n4ry"},
			want: []string{
				"Service/example: spec.ports[0].port not accepted by the cluster (Invalid)",
				"Deployment/example: spec.replicas not accepted by the cluster (Malformed)",
			},
		},
		"a Job that could not be created anew": {
			change: []string{"restartPolicy: Never", "restartPolicy: Always"},
			want:   []string{"Job/setup: spec.template.spec.restartPolicy not accepted by the cluster (Invalid)"},
		},
		"what a quota has no room for": {
			empty:  true,
			change: []string{"metadata: {name: config}", "metadata: {name: over-quota}"},
			want:   []string{"ConfigMap/over-quota: not accepted by the cluster (Forbidden)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			if !tc.empty {
				b.mustApply(example)
			}
			if strings.Contains(tc.change[len(tc.change)-1], "over-quota") {
				b.full("configmaps")
			}
			b.requests.reset()
			text := strings.NewReplacer(tc.change...).Replace(example)
			r := b.rehearse(text, true)
			if d := cmp.Diff(tc.want, refusals(r)); d != "" {
				t.Error(d)
			}
			noValue(t, r)
			report, err := b.cluster.Apply(b.ctx, b.owner, r)
			if err != nil || report.Complete() || len(report.Applied)+len(report.Rerun) > 0 {
				t.Errorf("applied: %+v, %v", report, err)
			}
			if w := b.requests.writes(); len(w) > 0 {
				t.Errorf("wrote %q", w)
			}
		})
	}
}

// The Job that goes makes room for the one that comes.
func TestAFullQuotaDoesNotKeepAJobFromRunningAgain(t *testing.T) {
	b := newBench(t)
	b.mustApply(jobText)
	b.full("jobs.batch")
	text := strings.Replace(jobText, "setup:1", "setup:2", 1)
	if r := b.rehearse(text, true); len(r.Changes) != 1 || !r.Changes[0].Rerun || !r.Accepted() {
		t.Errorf("%+v, refused %q", r.Changes, refusals(r))
	}
	if r := b.rehearse(strings.Replace(text, "name: setup,", "name: second,", 1), true); len(r.Refused) != 1 {
		t.Errorf("there is room for another one: %q", refusals(r))
	}
}

// full leaves no room for another object of a kind.
func (b *bench) full(resource string) {
	b.t.Helper()
	quota := b.create(fmt.Sprintf("{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {count/%s: \"0\"}}}", resource))
	quota.Object["status"] = map[string]any{
		"hard": map[string]any{"count/" + resource: "0"}, "used": map[string]any{"count/" + resource: "0"},
	}
	if err := b.other.Status().Update(b.ctx, quota); err != nil {
		b.t.Fatal(err)
	}
	for range 500 { // the API server's own cache of quotas may be behind
		probe := parse(b.t, fmt.Sprintf("{apiVersion: %s, metadata: {name: probe}}", map[string]string{
			"configmaps": "v1, kind: ConfigMap",
			"jobs.batch": "batch/v1, kind: Job, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: c}]}}}",
		}[resource]))[0].Unstructured()
		probe.SetNamespace(b.owner.Namespace)
		err := b.other.Create(b.ctx, probe, client.DryRunAll)
		if apierrors.IsForbidden(err) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.t.Fatal("the quota does not count")
}

func TestNothingIsRehearsedWhenNothingDiffers(t *testing.T) {
	b := newBench(t)
	b.mustApply(example)
	b.requests.reset()
	for _, recall := range []bool{true, false} {
		if r := b.rehearse(example, recall); len(r.Changes) > 0 || !r.Accepted() {
			t.Errorf("%+v", r)
		}
	}
	if got := b.requests.all(); slices.ContainsFunc(got, func(line string) bool { return !strings.HasPrefix(line, "GET ") }) {
		t.Errorf("sent %q", got)
	}
}

func TestAnApplyIsRehearsedOnce(t *testing.T) {
	b := newBench(t)
	b.requests.reset()
	b.mustApply(example)
	if n := len(b.requests.dryRuns()); n != len(everything) {
		t.Errorf("%d dry runs for %d new objects: %q", n, len(everything), b.requests.dryRuns())
	}
	b.requests.reset()
	b.mustApply(strings.Replace(example, "postgres://c4n4ry", "postgres://other", 1))
	if got := b.requests.dryRuns(); len(got) != 1 || len(b.requests.writes()) != 1 {
		t.Errorf("%q, and wrote %q", got, b.requests.writes())
	}
}

func TestWhatWasAcceptedIsNotRehearsedAgain(t *testing.T) {
	b := newBench(t)
	b.mustApply(example)
	text := strings.NewReplacer("example/example:1", "example/example:2", "setup:1", "setup:2", "postgres://c4n4ry", "postgres://other").Replace(example) +
		"\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: new}}\n"
	first := b.rehearse(text, true)
	again := func(text string, recall bool, want int, why string) *apply.Rehearsal {
		t.Helper()
		b.requests.reset()
		r := b.rehearse(text, recall)
		if got := b.requests.dryRuns(); len(got) != want {
			t.Errorf("%s: %d dry runs, want %d: %q", why, len(got), want, got)
		}
		return r
	}
	if d := cmp.Diff(first.Changes, again(text, true, 0, "the same").Changes); d != "" || len(first.Changes) != 3 {
		t.Errorf("%d changes; recalled otherwise: %s", len(first.Changes), d)
	}
	again(text, false, 5, "asked anew, the Job twice")
	again(strings.Replace(text, "postgres://other", "postgres://third", 1), true, 1, "a Secret's data alone differs")
	again(text, true, 1, "and differs again")

	b.patch(b.get("apps/v1", "Deployment", "example"), `{"metadata":{"annotations":{"theirs":"1"}}}`)
	again(text, true, 1, "a live object moved")

	bad := strings.Replace(text, "port: 80,", "port: 80000,", 1)
	for range 2 {
		if r := again(bad, true, 1, "a refusal is asked about every time"); len(r.Refused) != 1 {
			t.Errorf("refused: %q", refusals(r))
		}
	}
	again(text, true, 0, "the others are remembered meanwhile")

	b.cluster.Forget(b.owner.UID)
	again(text, true, 5, "forgotten with the owner")

	b.mustApply(example) // has nothing to write, and forgets
	again(text, true, 5, "forgotten with a rehearsal of something else")
}

// A Job that is on its way out is no secret.
func TestAnObjectThatIsLeavingIsTold(t *testing.T) {
	b := newBench(t)
	b.mustApply(jobText)
	b.patch(b.get("batch/v1", "Job", "setup"), `{"metadata":{"finalizers":["example.org/x"]}}`)
	text := strings.Replace(jobText, "setup:1", "setup:2", 1)
	b.apply(text)
	b.requests.reset()
	r := b.rehearse(text, true)
	if d := cmp.Diff([]apply.Change{{ID: id("batch/v1", "Job", "setup"), Leaving: true, Rerun: true}}, r.Changes); d != "" || len(b.requests.dryRuns()) > 0 {
		t.Error(d, b.requests.dryRuns())
	}
	b.patch(b.get("batch/v1", "Job", "setup"), `{"metadata":{"finalizers":null}}`)
}

func TestAClusterWithoutDryRunsSaysSo(t *testing.T) {
	b := newBench(t)
	b.mustApply(example)
	b.cluster = b.restarted(undecided{b.cluster.Client})
	r := b.rehearse(strings.Replace(example, "example/example:1", "example/example:2", 1), true)
	if d := cmp.Diff([]apply.Change{{ID: id("apps/v1", "Deployment", "example"), Unknown: true}}, r.Changes); d != "" || !r.Accepted() {
		t.Error(d, refusals(r))
	}
}
