package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/manifest"
	"zaentrum.io/zae/internal/plan"
)

func set(t *testing.T, text string) manifest.Set {
	t.Helper()
	docs, err := manifest.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	out := manifest.Set{}
	for _, d := range docs {
		out = append(out, manifest.Object{Tree: d.(map[string]any)})
	}
	return out
}

const worker = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: worker}
spec:
  template:
    spec:
      initContainers:
      - {name: migrate, image: example/worker:2}
      - {name: wait, image: example/wait:1}
      containers:
      - name: worker
        image: example/worker:2
        ports: [{containerPort: 8080}, {containerPort: 9090}]
      - name: proxy
        image: example/proxy:1
        ports: [{containerPort: 8080, protocol: UDP}, {containerPort: 53}]
---
`

func TestCompute(t *testing.T) {
	ref := func(kind, name string) v1alpha1.ObjectRef { return v1alpha1.ObjectRef{Kind: kind, Name: name} }
	workerPlanned := v1alpha1.Workload{
		Kind: "Deployment", Name: "worker",
		Images: []string{"example/worker:2", "example/wait:1", "example/proxy:1"},
		Ports:  []int32{8080, 9090, 53},
	}
	for name, tc := range map[string]struct {
		wanted, owned string
		errors        []string
		violations    []string
		unrendered    bool
		want          v1alpha1.Plan
	}{
		"everything is added at first, in apply order": {
			wanted: worker + `
apiVersion: v1
kind: Service
metadata: {name: worker}
---
apiVersion: batch/v1
kind: Job
metadata: {name: setup}
spec: {template: {spec: {containers: [{name: setup, image: "example/setup:1"}]}}}
---
apiVersion: v1
kind: Secret
metadata: {name: env}
`,
			want: v1alpha1.Plan{
				Objects: []v1alpha1.ObjectRef{ref("Secret", "env"), ref("Service", "worker"), ref("Deployment", "worker"), ref("Job", "setup")},
				Workloads: []v1alpha1.Workload{
					workerPlanned,
					{Kind: "Job", Name: "setup", Images: []string{"example/setup:1"}},
				},
				Changes: v1alpha1.Changes{
					Added: []v1alpha1.ObjectRef{ref("Secret", "env"), ref("Service", "worker"), ref("Deployment", "worker"), ref("Job", "setup")},
				},
			},
		},
		"what runs and is not wanted is removed, values Secrets aside": {
			wanted: "{}",
			owned: `
apiVersion: v1
kind: Secret
metadata: {name: zaentrum-addon-example-generated}
---
apiVersion: example.org/v1
kind: Widget
metadata: {name: w}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: old}
`,
			want: v1alpha1.Plan{
				Objects: []v1alpha1.ObjectRef{{}},
				Changes: v1alpha1.Changes{
					Added:   []v1alpha1.ObjectRef{{}},
					Removed: []v1alpha1.ObjectRef{ref("ConfigMap", "old"), ref("Widget", "w")},
				},
			},
		},
		"images are compared by container name, init containers included": {
			wanted: worker,
			owned: `
apiVersion: apps/v1
kind: Deployment
metadata: {name: worker}
spec:
  template:
    spec:
      initContainers:
      - {name: migrate, image: example/worker:1}
      - {name: gone, image: example/gone:1}
      containers:
      - {name: worker, image: example/worker:1}
      - {name: wait, image: example/wait:1}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: proxy}
spec: {template: {spec: {containers: [{name: proxy, image: "example/proxy:0"}]}}}
`,
			want: v1alpha1.Plan{
				Objects:   []v1alpha1.ObjectRef{ref("Deployment", "worker")},
				Workloads: []v1alpha1.Workload{workerPlanned},
				Changes: v1alpha1.Changes{
					Removed: []v1alpha1.ObjectRef{ref("Deployment", "proxy")},
					Images: []v1alpha1.ImageChange{
						{Kind: "Deployment", Name: "worker", Container: "migrate", From: "example/worker:1", To: "example/worker:2"},
						{Kind: "Deployment", Name: "worker", Container: "worker", From: "example/worker:1", To: "example/worker:2"},
					},
				},
			},
		},
		"another version of the same kind is the same object": {
			wanted: "{apiVersion: apps/v1beta1, kind: Deployment, metadata: {name: worker}}",
			owned:  "{apiVersion: apps/v1, kind: Deployment, metadata: {name: worker}}",
			want: v1alpha1.Plan{
				Objects:   []v1alpha1.ObjectRef{ref("Deployment", "worker")},
				Workloads: []v1alpha1.Workload{{Kind: "Deployment", Name: "worker"}},
			},
		},
		"the same kind of another group is another object": {
			wanted: "{apiVersion: v1, kind: Service, metadata: {name: a}}",
			owned:  "{apiVersion: serving.example.org/v1, kind: Service, metadata: {name: a}}",
			want: v1alpha1.Plan{
				Objects: []v1alpha1.ObjectRef{ref("Service", "a")},
				Changes: v1alpha1.Changes{
					Added:   []v1alpha1.ObjectRef{ref("Service", "a")},
					Removed: []v1alpha1.ObjectRef{ref("Service", "a")},
				},
			},
		},
		"violations leave the objects in the plan": {
			wanted:     "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
			violations: []string{"ConfigMap/a: rendered twice"},
			want: v1alpha1.Plan{
				Violations: []string{"ConfigMap/a: rendered twice"},
				Objects:    []v1alpha1.ObjectRef{ref("ConfigMap", "a"), ref("ConfigMap", "a")},
				Changes:    v1alpha1.Changes{Added: []v1alpha1.ObjectRef{ref("ConfigMap", "a")}},
			},
		},
		"values errors leave no objects in the plan": {
			wanted: worker,
			owned:  worker,
			errors: []string{"database: url is missing"},
			want:   v1alpha1.Plan{ValuesErrors: []string{"database: url is missing"}},
		},
		"nothing rendered is nothing known": {
			unrendered: true,
			owned:      worker,
			want:       v1alpha1.Plan{},
		},
		"no object rendered removes everything": {
			owned: worker,
			want:  v1alpha1.Plan{Changes: v1alpha1.Changes{Removed: []v1alpha1.ObjectRef{ref("Deployment", "worker")}}},
		},
		"fields of the wrong type are left out": {
			wanted: `
apiVersion: batch/v1
kind: Job
metadata: {name: j}
spec:
  template:
    spec:
      initContainers: x
      containers:
      - x
      - {name: 1, image: 2, ports: [{containerPort: http}, {containerPort: 3000000000}, {containerPort: -1}, {containerPort: 1.5}, 4]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec: {template: []}
`,
			want: v1alpha1.Plan{
				Objects:   []v1alpha1.ObjectRef{ref("Deployment", "d"), ref("Job", "j")},
				Workloads: []v1alpha1.Workload{{Kind: "Deployment", Name: "d"}, {Kind: "Job", Name: "j"}},
				Changes:   v1alpha1.Changes{Added: []v1alpha1.ObjectRef{ref("Deployment", "d"), ref("Job", "j")}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := plan.Input{ValuesErrors: tc.errors, Violations: tc.violations, Wanted: set(t, tc.wanted), Owned: set(t, tc.owned)}
			if tc.unrendered {
				in.Wanted = nil
			}
			if d := cmp.Diff(&tc.want, plan.Compute(in)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestComputeCarriesTheChart(t *testing.T) {
	chart := v1alpha1.PlanChart{Name: "example", Version: "1.2.0", Annotations: map[string]string{"a": "b"}}
	want := &v1alpha1.Plan{Chart: chart, ValuesSchema: "{}"}
	if d := cmp.Diff(want, plan.Compute(plan.Input{Chart: chart, Schema: "{}"})); d != "" {
		t.Error(d)
	}
}

func TestComputeDoesNotReorderItsInput(t *testing.T) {
	wanted := set(t, "{apiVersion: v1, kind: Service, metadata: {name: b}}\n---\n{apiVersion: v1, kind: Secret, metadata: {name: a}}")
	before := wanted.Clone()
	plan.Compute(plan.Input{Wanted: wanted, Owned: wanted})
	if d := cmp.Diff(before, wanted); d != "" {
		t.Error(d)
	}
}
