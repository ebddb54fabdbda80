package apply_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/fault"
)

// example has every kind, and what the API server fills in, normalizes or keys lists by.
const example = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: example}
imagePullSecrets: [{name: a}, {name: b}]
---
apiVersion: v1
kind: Secret
metadata: {name: env}
type: Opaque
stringData: {url: "postgres://c4n4ry", key: k}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: config}
data: {a: "1", b: "2"}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1024Mi}}
---
apiVersion: v1
kind: Service
metadata: {name: example}
spec:
  selector: {app: example}
  ports: [{name: http, port: 80, targetPort: http}, {name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: example}
spec:
  replicas: 2
  strategy: null
  selector: {matchLabels: {app: example}}
  template:
    metadata: {labels: {app: example}}
    spec:
      initContainers: [{name: init, image: example/init, resources: {limits: {cpu: 1000m, memory: 0.5Gi}}}]
      containers:
      - name: example
        image: example/example:1
        env: [{name: A, value: "1"}, {name: B, value: ""}, {name: A, value: "2"}]
        ports: [{name: http, containerPort: 8080}, {containerPort: 8080, protocol: UDP}]
        livenessProbe: {httpGet: {path: /, port: http}}
        volumeMounts: [{name: tmp, mountPath: /tmp}]
      volumes: [{name: tmp, emptyDir: null}, {name: config, configMap: {name: config}}]
      tolerations: [{key: x, operator: Exists}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: setup}
spec:
  ttlSecondsAfterFinished: 10
  template:
    spec:
      restartPolicy: Never
      containers: [{name: setup, image: "example/setup:1", resources: {requests: {cpu: 0.1}}}]
`

var everything = []string{
	"ServiceAccount/example", "Secret/env", "ConfigMap/config", "PersistentVolumeClaim/data", "Service/example", "Deployment/example", "Job/setup",
}

func TestFirstApplyCreatesEverythingOwned(t *testing.T) {
	b := newBench(t)
	r := b.mustApply(example)
	if d := cmp.Diff(everything, names(r.Applied)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(everything, names(r.Live.IDs())); d != "" {
		t.Error(d)
	}
	if n := len(b.requests.writes()); n != len(everything) {
		t.Errorf("%d writes for %d objects: %q", n, len(everything), b.requests.writes())
	}
	for _, o := range r.Live {
		u := o.Unstructured()
		refs := u.GetOwnerReferences()
		if len(refs) != 1 || refs[0].UID != b.owner.UID || !*refs[0].Controller || !*refs[0].BlockOwnerDeletion {
			t.Errorf("%s: owner references %v", o.ID(), refs)
		}
		for k, v := range marksOf(b.owner).Labels {
			if u.GetLabels()[k] != v {
				t.Errorf("%s: label %s is %q", o.ID(), k, u.GetLabels()[k])
			}
		}
		if m := u.GetManagedFields(); len(m) != 1 || m[0].Manager != v1alpha1.FieldManager || m[0].Operation != "Apply" {
			t.Errorf("%s: managed fields %v", o.ID(), m)
		}
		if u.GetResourceVersion() == "" || u.GetUID() == "" {
			t.Errorf("%s is not as the API server has it", o.ID())
		}
	}
	pod := b.get("apps/v1", "Deployment", "example")
	if got := at(t, pod, "spec", "template", "spec", "containers").([]any)[0].(map[string]any)["env"]; !cmp.Equal(got, []any{
		map[string]any{"name": "B"}, map[string]any{"name": "A", "value": "2"},
	}) {
		t.Errorf("env %v", got)
	}
	if got := at(t, b.get("batch/v1", "Job", "setup"), "spec", "ttlSecondsAfterFinished"); got != nil {
		t.Errorf("a finished Job would go: %v", got)
	}
}

func TestAnUnchangedSetMakesNoWrite(t *testing.T) {
	b := newBench(t)
	b.mustApply(example)
	check := func(t *testing.T) {
		t.Helper()
		b.requests.reset()
		r := b.mustApply(example)
		if d := cmp.Diff(everything, names(r.Unchanged)); d != "" {
			t.Error(d)
		}
		for _, line := range b.requests.all() {
			if !strings.HasPrefix(line, "GET ") {
				t.Errorf("sent %s", line)
			}
		}
	}
	check(t)

	b.cluster = b.restarted(b.cluster.Client) // as after a restart of the process
	check(t)

	// Somebody else's fields, and controllers' statuses, are no change of ours.
	b.patch(b.get("apps/v1", "Deployment", "example"), `{"metadata":{"annotations":{"theirs":"1"}},"spec":{"revisionHistoryLimit":3}}`)
	b.patch(b.get("v1", "Secret", "env"), `{"data":{"theirs":"eA=="}}`)
	d := b.get("apps/v1", "Deployment", "example")
	d.Object["status"] = map[string]any{"observedGeneration": int64(1), "replicas": int64(2)}
	if err := b.other.Status().Update(b.ctx, d); err != nil {
		t.Fatal(err)
	}
	check(t)
	if got := at(t, b.get("apps/v1", "Deployment", "example"), "spec", "revisionHistoryLimit"); got != int64(3) {
		t.Errorf("a foreign field was changed to %v", got)
	}
}

// handEdits change what the owner applied.
var handEdits = map[string]struct {
	apiVersion, kind, name, patch string
	path                          []string
	want                          any
}{
	"a changed value":       {"apps/v1", "Deployment", "example", `{"spec":{"replicas":5}}`, []string{"spec", "replicas"}, int64(2)},
	"a removed value":       {"v1", "ConfigMap", "config", `{"data":{"a":null}}`, []string{"data", "a"}, "1"},
	"a changed secret":      {"v1", "Secret", "env", `{"data":{"key":"eA=="}}`, []string{"data", "key"}, "aw=="},
	"a removed secret":      {"v1", "Secret", "env", `{"data":null}`, []string{"data", "key"}, "aw=="},
	"a label":               {"v1", "Service", "example", `{"metadata":{"labels":{"app.kubernetes.io/part-of":"x"}}}`, []string{"metadata", "labels", "app.kubernetes.io/part-of"}, "zaentrum-addons"},
	"the addon label":       {"v1", "Service", "example", `{"metadata":{"labels":{"zaentrum.io/addon":null}}}`, []string{"metadata", "labels", "zaentrum.io/addon"}, "example"},
	"the digest annotation": {"batch/v1", "Job", "setup", `{"metadata":{"annotations":{"zaentrum.io/applied":"x"}}}`, nil, nil},
	"the pod's security": {"apps/v1", "Deployment", "example", `{"spec":{"template":{"spec":{"securityContext":{"runAsNonRoot":false}}}}}`,
		[]string{"spec", "template", "spec", "securityContext", "runAsNonRoot"}, true},
	"the owner's record of fields": {"v1", "ConfigMap", "config", `{"metadata":{"managedFields":[{}]}}`, nil, nil},
}

func TestAHandEditOfAnOwnedFieldIsTakenBack(t *testing.T) {
	for name, tc := range handEdits {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.mustApply(example)
			u := b.get(tc.apiVersion, tc.kind, tc.name)
			b.patch(u, tc.patch)
			b.requests.reset()
			r := b.mustApply(example)
			if d := cmp.Diff([]string{tc.kind + "/" + tc.name}, names(r.Applied)); d != "" {
				t.Error(d)
			}
			if len(tc.path) > 0 {
				if got := at(t, b.get(tc.apiVersion, tc.kind, tc.name), tc.path...); got != tc.want {
					t.Errorf("got %v, want %v", got, tc.want)
				}
			}
			wantWrites := 1
			if name == "the owner's record of fields" {
				wantWrites = 2 // the cluster credits nobody in particular with what was there, which is taken over
			}
			if n := len(b.requests.writes()); n != wantWrites {
				t.Errorf("%d writes: %q", n, b.requests.writes())
			}
			b.requests.reset()
			b.mustApply(example)
			if got := b.requests.writes(); len(got) > 0 {
				t.Errorf("still writing: %q", got)
			}
		})
	}
}

func TestFieldsThatAreNoLongerRenderedDisappear(t *testing.T) {
	b := newBench(t)
	b.mustApply(`
{apiVersion: v1, kind: Secret, metadata: {name: env}, stringData: {a: x, b: z}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: config, labels: {l: x}}, data: {a: x, b: z}}
`)
	b.patch(b.get("v1", "ConfigMap", "config"), `{"data":{"theirs":"1"}}`)
	b.mustApply(`
{apiVersion: v1, kind: Secret, metadata: {name: env}, stringData: {b: z}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: config}, data: {b: z}}
`)
	if d := cmp.Diff(map[string]any{"b": "eg=="}, at(t, b.get("v1", "Secret", "env"), "data")); d != "" {
		t.Error(d)
	}
	config := b.get("v1", "ConfigMap", "config")
	if d := cmp.Diff(map[string]any{"b": "z", "theirs": "1"}, at(t, config, "data")); d != "" {
		t.Error(d)
	}
	if _, ok := config.GetLabels()["l"]; ok {
		t.Error("the label is still there")
	}
}

func TestOnlyWhatChangedIsWritten(t *testing.T) {
	b := newBench(t)
	b.mustApply(example)
	b.requests.reset()
	r := b.mustApply(strings.Replace(example, "postgres://c4n4ry", "postgres://other", 1))
	if d := cmp.Diff([]string{"Secret/env"}, names(r.Applied)); d != "" {
		t.Error(d)
	}
	if n := len(b.requests.writes()); n != 1 {
		t.Errorf("%d writes: %q", n, b.requests.writes())
	}
}

// An object that appears, or is replaced, between the look and the write is not overwritten.
func TestTheWriteIsGuardedAgainstRaces(t *testing.T) {
	const wantedText = `{apiVersion: v1, kind: ConfigMap, metadata: {name: config}, data: {a: ours}}`
	const foreign = `{apiVersion: v1, kind: ConfigMap, metadata: {name: config}, data: {a: theirs}}`
	const two = wantedText + "\n---\n{apiVersion: v1, kind: Secret, metadata: {name: first}}"

	for name, tc := range map[string]struct {
		text    string
		existed bool
	}{
		"one appears":              {wantedText, false},
		"one of several appears":   {two, false},
		"one is replaced":          {wantedText, true},
		"one of several is, later": {two, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			if tc.existed {
				b.mustApply(wantedText)
			}
			wanted := b.decorate(strings.Replace(tc.text, "ours", "newer", 1))
			obs := b.observe(wanted)
			if tc.existed {
				if err := b.other.Delete(b.ctx, b.get("v1", "ConfigMap", "config")); err != nil {
					t.Fatal(err)
				}
			}
			b.create(foreign)
			r, err := b.applied(b.ctx, wanted, obs)
			if fault.CodeOf(err) != fault.Conflict {
				t.Errorf("got %v and %+v, want a conflict", err, r)
			}
			if got := at(t, b.get("v1", "ConfigMap", "config"), "data", "a"); got != "theirs" {
				t.Errorf("overwritten: %v", got)
			}
		})
	}

	t.Run("one is gone", func(t *testing.T) {
		b := newBench(t)
		b.mustApply(wantedText)
		wanted := b.decorate(strings.Replace(wantedText, "ours", "newer", 1))
		obs := b.observe(wanted)
		if err := b.other.Delete(b.ctx, b.get("v1", "ConfigMap", "config")); err != nil {
			t.Fatal(err)
		}
		if _, err := b.applied(b.ctx, wanted, obs); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("got %v, want a conflict", err)
		}
		b.mustApply(wantedText)
	})

	t.Run("one appears after the dry run", func(t *testing.T) {
		b := newBench(t)
		wanted := b.decorate(two)
		obs := b.observe(wanted)
		done := false
		b.requests.before = func(req *http.Request) {
			if !done && req.Method == http.MethodPatch && !req.URL.Query().Has("dryRun") {
				done = true
				b.create(foreign)
			}
		}
		r, err := b.applied(b.ctx, wanted, obs)
		if fault.CodeOf(err) != fault.Conflict || !slices.Equal(names(r.Applied), []string{"Secret/first"}) {
			t.Errorf("got %v and %+v", err, r)
		}
		if got := at(t, b.get("v1", "ConfigMap", "config"), "data", "a"); got != "theirs" {
			t.Errorf("overwritten: %v", got)
		}
	})
}

func TestWhatTheClusterRefusesIsWrittenNowhere(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(string) string
		want   []string
	}{
		"a selector that changes": {
			func(s string) string {
				return strings.NewReplacer("{matchLabels: {app: example}}", "{matchLabels: {app: other}}",
					"metadata: {labels: {app: example}}", "metadata: {labels: {app: other}}", "postgres://c4n4ry", "new").Replace(s)
			},
			[]string{"Deployment/example: spec.selector cannot be changed on the existing object"},
		},
		"a claim that shrinks and a service that is wrong": {
			func(s string) string {
				return strings.NewReplacer("1024Mi", "512Mi", "port: 80,", "port: 80000,", "postgres://c4n4ry", "new").Replace(s)
			},
			[]string{
				"PersistentVolumeClaim/data: spec cannot be changed on the existing object",
				"Service/example: spec.ports[0].port not accepted by the cluster (Invalid)",
			},
		},
		"a Secret's type": {
			func(s string) string {
				return strings.NewReplacer("type: Opaque", "type: example.org/c4n4ry", "example/example:1", "example/example:2").Replace(s)
			},
			[]string{"Secret/env: type cannot be changed on the existing object"},
		},
		"a value of the wrong type": {
			func(s string) string { return strings.Replace(s, "replicas: 2", "replicas: c4n4ry", 1) },
			[]string{"Deployment/example: spec.replicas not accepted by the cluster (Malformed)"},
		},
		"a field that does not exist": {
			func(s string) string { return strings.Replace(s, "replicas: 2", "replicaz: c4n4ry", 1) },
			[]string{"Deployment/example: spec.replicaz not accepted by the cluster (Malformed)"},
		},
		"two ports that are one to server-side apply": {
			func(s string) string {
				return strings.Replace(s, "{containerPort: 8080, protocol: UDP}", "{containerPort: 8080, name: c4n4ry}", 1)
			},
			[]string{"Deployment/example: spec.template.spec.containers[*].ports not accepted by the cluster (Malformed)"},
		},
		"a name that no object has": {
			func(s string) string {
				return s + "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: C4N4RY}}\n"
			},
			[]string{"ConfigMap/C4N4RY: metadata.name not accepted by the cluster (Invalid)"},
		},
		"a label that is no label": {
			func(s string) string {
				return strings.Replace(s, "metadata: {name: data}", "metadata: {name: data, labels: {x: c4n4ry c4n4ry}}", 1)
			},
			[]string{"PersistentVolumeClaim/data: metadata.labels not accepted by the cluster (Invalid)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.mustApply(example)
			b.requests.reset()
			r := b.apply(tc.change(example))
			var got []string
			for _, x := range r.Refused {
				got = append(got, x.String())
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
			if w := b.requests.writes(); len(w) > 0 {
				t.Errorf("wrote %q", w)
			}
			if strings.Contains(fmt.Sprint(got), "c4n4ry") {
				t.Errorf("the refusal quotes a value: %q", got)
			}
			if r.Complete() || len(r.Applied) > 0 {
				t.Errorf("complete %v, applied %v", r.Complete(), r.Applied)
			}
			if d := cmp.Diff(everything, names(r.Live.IDs())); d != "" && !strings.HasPrefix(name, "a name") {
				t.Errorf("what runs is not reported: %s", d)
			}
			b.requests.reset()
			b.mustApply(example)
			if w := b.requests.writes(); len(w) > 0 {
				t.Errorf("something had been written: %q", w)
			}
		})
	}
}

func TestWhatIsNotForTheOwnerIsNeverWritten(t *testing.T) {
	b := newBench(t)
	set := b.decorate(`
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: x}}
---
{apiVersion: v1, kind: Secret, metadata: {name: zaentrum-addon-example-values-1}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: fine}}
`)
	set = append(set, parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: bare}}`)...)
	r, err := b.applied(b.ctx, set, b.observe(set))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range r.Refused {
		got = append(got, x.String())
	}
	if d := cmp.Diff([]string{
		"Secret/zaentrum-addon-example-values-1: not accepted by the cluster (NameReserved)",
		"ClusterRole/x: not accepted by the cluster (KindNotAllowed)",
		"ConfigMap/bare: not accepted by the cluster (NotOwned)",
	}, got); d != "" || len(b.requests.writes()) > 0 {
		t.Error(d, b.requests.writes())
	}
}

// No text of the API server's reaches an error.
func TestAClusterThatFailsIsAnErrorWithoutItsText(t *testing.T) {
	b := newBench(t)
	wanted := b.decorate(example)
	obs := b.observe(wanted)
	c := *b
	c.cluster = b.restarted(failing{b.cluster.Client, apierrors.NewInternalError(io.ErrUnexpectedEOF)})
	_, err := c.applied(b.ctx, wanted, obs)
	if fault.CodeOf(err) != fault.Cluster || err.Error() != "the cluster failed to dry-run ServiceAccount/example: InternalError" {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	if _, err := b.applied(ctx, wanted, obs); fault.CodeOf(err) != fault.Cluster {
		t.Errorf("got %v", err)
	}
	if _, err := b.cluster.Observe(ctx, b.owner, nil); fault.CodeOf(err) != fault.Cluster {
		t.Errorf("got %v", err)
	}
}
