package apply_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/internal/fault"
)

const jobText = `
apiVersion: batch/v1
kind: Job
metadata: {name: setup, labels: {l: a}}
spec:
  parallelism: 1
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: setup, image: "example/setup:1", resources: {requests: {cpu: 1000m}}, env: [{name: A, value: a}, {name: B, value: b}]}
`

func TestAJobWhosePodTemplateChangesRunsAgain(t *testing.T) {
	for name, change := range map[string][]string{
		"a new image":                {"setup:1", "setup:2"},
		"a variable that goes":       {", {name: B, value: b}", ""},
		"a field that cannot change": {"parallelism: 1", "completionMode: Indexed\n  completions: 2"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.mustApply(jobText)
			first := b.get("batch/v1", "Job", "setup").GetUID()

			b.requests.reset()
			text := strings.NewReplacer(change...).Replace(jobText)
			r := b.apply(text)
			if !slices.Equal(names(r.Rerun), []string{"Job/setup"}) || !slices.Equal(names(r.Waiting), []string{"Job/setup"}) || r.Complete() || len(r.Live) > 0 {
				t.Errorf("got %+v", r)
			}
			if _, err := b.find("batch/v1", "Job", "setup"); !apierrors.IsNotFound(err) {
				t.Errorf("still there, or: %v", err)
			}
			r = b.mustApply(text)
			if !slices.Equal(names(r.Applied), []string{"Job/setup"}) {
				t.Errorf("got %+v", r)
			}
			if second := b.get("batch/v1", "Job", "setup").GetUID(); second == first {
				t.Error("it is the same Job")
			}
			if w := b.requests.writes(); len(w) != 2 || !strings.HasPrefix(w[0], "DELETE ") || !strings.HasPrefix(w[1], "PATCH ") {
				t.Errorf("wrote %q", w)
			}
			b.requests.reset()
			b.mustApply(text)
			if w := b.requests.writes(); len(w) > 0 {
				t.Errorf("wrote %q", w)
			}
		})
	}
}

func TestAJobThatStaysTheSameStays(t *testing.T) {
	for name, change := range map[string][]string{
		"a label":                        {"l: a", "l: c"},
		"a field that can change":        {"parallelism: 1", "parallelism: 2"},
		"another word for the same":      {"1000m", "1"},
		"a list's order that is no list": {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.mustApply(jobText)
			job := b.get("batch/v1", "Job", "setup")
			first := job.GetUID()
			job.Object["status"] = map[string]any{
				"startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:01:00Z", "succeeded": int64(1),
				"uncountedTerminatedPods": map[string]any{},
				"conditions": []any{
					map[string]any{"type": "SuccessCriteriaMet", "status": "True", "reason": "CompletionsReached"},
					map[string]any{"type": "Complete", "status": "True", "reason": "CompletionsReached"},
				},
			}
			if err := b.other.Status().Update(b.ctx, job); err != nil {
				t.Fatal(err)
			}
			if change[0] == "" {
				b.requests.reset()
			}
			r := b.mustApply(strings.NewReplacer(change...).Replace(jobText))
			if second := b.get("batch/v1", "Job", "setup").GetUID(); second != first || len(r.Rerun) > 0 {
				t.Errorf("it runs again: %+v", r)
			}
		})
	}
}

func TestAJobThatCannotBeCreatedAnewIsNotDeleted(t *testing.T) {
	b := newBench(t)
	b.mustApply(jobText)
	b.requests.reset()
	r := b.apply(strings.Replace(jobText, "restartPolicy: Never", "restartPolicy: Always", 1))
	if len(r.Refused) != 1 || r.Refused[0].String() != "Job/setup: spec.template.spec.restartPolicy not accepted by the cluster (Invalid)" {
		t.Errorf("got %q", r.Refused)
	}
	if w := b.requests.writes(); len(w) > 0 {
		t.Errorf("wrote %q", w)
	}
	b.get("batch/v1", "Job", "setup")
}

func TestAJobIsNotDeletedWhenAnotherObjectIsRefused(t *testing.T) {
	b := newBench(t)
	b.mustApply(example)
	b.requests.reset()
	r := b.apply(strings.NewReplacer("setup:1", "setup:2", "port: 80,", "port: 80000,").Replace(example))
	if len(r.Refused) != 1 || len(r.Rerun) > 0 {
		t.Errorf("got %+v", r)
	}
	if w := b.requests.writes(); len(w) > 0 {
		t.Errorf("wrote %q", w)
	}
}

// The Job that is deleted is the one observed, never one that took its place.
func TestARerunIsGuardedAgainstRaces(t *testing.T) {
	b := newBench(t)
	b.mustApply(jobText)
	wanted := b.decorate(strings.Replace(jobText, "setup:1", "setup:2", 1))
	obs := b.observe(wanted)
	done := false
	b.requests.before = func(req *http.Request) {
		if req.Method == http.MethodDelete && !done {
			done = true
			if err := b.other.Delete(b.ctx, b.get("batch/v1", "Job", "setup"), client.PropagationPolicy("Background")); err != nil {
				t.Error(err)
			}
			b.create(jobText)
		}
	}
	if _, err := b.applied(b.ctx, wanted, obs); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("got %v, want a conflict", err)
	}
	b.get("batch/v1", "Job", "setup")
}

func TestAJobThatIsNotGoneYetIsWaitedFor(t *testing.T) {
	b := newBench(t)
	b.mustApply(jobText)
	b.patch(b.get("batch/v1", "Job", "setup"), `{"metadata":{"finalizers":["example.org/x"]}}`)
	text := strings.Replace(jobText, "setup:1", "setup:2", 1)
	if r := b.apply(text); len(r.Rerun) != 1 {
		t.Fatalf("got %+v", r)
	}
	b.requests.reset()
	r := b.apply(text)
	if len(r.Rerun) > 0 || !slices.Equal(names(r.Waiting), []string{"Job/setup"}) || r.Complete() {
		t.Errorf("got %+v", r)
	}
	if w := b.requests.writes(); len(w) > 0 {
		t.Errorf("wrote %q", w)
	}
	b.patch(b.get("batch/v1", "Job", "setup"), `{"metadata":{"finalizers":null}}`)
	if r := b.mustApply(text); !slices.Equal(names(r.Applied), []string{"Job/setup"}) {
		t.Errorf("got %+v", r)
	}
}

// Admission that cannot tell what it would do must not keep anything from being installed.
func TestWithoutDryRunsTheWritesThemselvesTell(t *testing.T) {
	b := newBench(t)
	c := b.restarted(undecided{b.cluster.Client})
	b.cluster = c
	if d := cmp.Diff(everything, names(b.mustApply(example).Applied)); d != "" {
		t.Error(d)
	}
	text := strings.NewReplacer("setup:1", "setup:2", "example:1", "example:2").Replace(example)
	if r := b.apply(text); len(r.Rerun) != 1 || len(r.Applied) != 1 {
		t.Errorf("got %+v", r)
	}
	b.mustApply(text)
	r := b.apply(strings.NewReplacer("setup:1", "setup:3", "restartPolicy: Never", "restartPolicy: Always").Replace(example))
	if len(r.Rerun) > 0 || len(r.Refused) != 1 {
		t.Errorf("got %+v", r)
	}
}

// undecided is a cluster with an admission webhook that does not support dry runs.
type undecided struct{ client.Client }

var errUndecided = apierrors.NewBadRequest(`admission webhook "x" does not support dry run`)

func (u undecided) Apply(ctx context.Context, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	if slices.Contains(opts, client.ApplyOption(client.DryRunAll)) {
		return errUndecided
	}
	return u.Client.Apply(ctx, o, opts...)
}

func (u undecided) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	if slices.Contains(opts, client.CreateOption(client.DryRunAll)) {
		return errUndecided
	}
	return u.Client.Create(ctx, o, opts...)
}

// A Job that is deleted is gone before its pods are.
func TestTheNextJobWaitsForThePodsOfTheOneBefore(t *testing.T) {
	b := newBench(t)
	b.mustApply(jobText)
	pods := []*corev1.Pod{podOf(t, "Job", "setup", "phase: Running"), podOf(t, "Job", "other", "phase: Running"), podOf(t, "ReplicaSet", "setup", "phase: Running")}
	b.cluster.OwnPods = func(namespace, owner string) []*corev1.Pod {
		if namespace != b.owner.Namespace || owner != b.owner.Name {
			t.Errorf("asked for pods of %s/%s", namespace, owner)
		}
		return pods
	}
	text := strings.Replace(jobText, "setup:1", "setup:2", 1)
	if r := b.apply(text); len(r.Rerun) != 1 {
		t.Fatalf("got %+v", r)
	}
	b.requests.reset()
	r := b.apply(text)
	if !slices.Equal(names(r.Waiting), []string{"Job/setup"}) || r.Complete() {
		t.Errorf("got %+v", r)
	}
	if sent := append(b.requests.writes(), b.requests.dryRuns()...); len(sent) > 0 {
		t.Errorf("sent %q", sent)
	}
	pods[0].Status.Phase = corev1.PodFailed
	if r := b.mustApply(text); !slices.Equal(names(r.Applied), []string{"Job/setup"}) {
		t.Errorf("got %+v", r)
	}
	// Its own pods are no reason to wait.
	pods[0].Status.Phase = corev1.PodRunning
	if r := b.mustApply(text); !slices.Equal(names(r.Unchanged), []string{"Job/setup"}) {
		t.Errorf("got %+v", r)
	}
}
