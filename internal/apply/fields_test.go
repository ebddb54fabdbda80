package apply

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"zaentrum.io/zae/internal/manifest"
)

func tree(t *testing.T, text string) map[string]any {
	t.Helper()
	docs, err := manifest.Decode([]byte(text))
	if err != nil || len(docs) != 1 {
		t.Fatal(len(docs), err)
	}
	return docs[0].(map[string]any)
}

func TestPathsOfWhatDiffers(t *testing.T) {
	for name, tc := range map[string]struct {
		live, next string
		want       []string
	}{
		"nothing": {`{spec: {a: 1}}`, `{spec: {a: 1}}`, nil},
		"what only the API server and ourselves set": {
			`{apiVersion: a, kind: A, metadata: {name: a, uid: a, resourceVersion: "1", generation: 1, creationTimestamp: a, managedFields: [{}], annotations: {zaentrum.io/applied: c4n4ry}}, status: {a: 1}}`,
			`{apiVersion: b, kind: B, metadata: {name: b, uid: b, resourceVersion: "2", generation: 2, creationTimestamp: b, managedFields: []}, status: {a: 2}}`,
			nil,
		},
		"labels and annotations": {
			`{metadata: {labels: {a: c4n4ry}, annotations: {zaentrum.io/applied: x}}}`, `{metadata: {labels: {a: b, b: c4n4ry}, annotations: {example.org/x: y}}}`,
			[]string{"metadata.annotations[example.org/x]", "metadata.labels.a", "metadata.labels.b"},
		},
		"the values checksum of pods": {
			`{spec: {template: {metadata: {annotations: {zaentrum.io/values-checksum: c4n4ry}}}}}`, `{spec: {template: {metadata: {annotations: {zaentrum.io/values-checksum: b}}}}}`,
			[]string{"spec.template.metadata.annotations[zaentrum.io/values-checksum]"},
		},
		"keys of data, all of them new": {`{}`, `{data: {database-url: c4n4ry, application.yaml: c4n4ry}}`, []string{"data.database-url", "data[application.yaml]"}},
		"keys of data that go":          {`{data: {a: c4n4ry, b: x}}`, `{data: {b: x}}`, []string{"data.a"}},
		"items by name": {
			`{spec: {containers: [{name: a, image: c4n4ry, env: [{name: A, value: c4n4ry}, {name: B}]}, {name: b}]}}`,
			`{spec: {containers: [{name: a, image: x, env: [{name: A, value: "1"}, {name: C}]}, {name: b, command: [c4n4ry]}, {name: c, image: c4n4ry}]}}`,
			[]string{"spec.containers[a].env[A].value", "spec.containers[a].env[B]", "spec.containers[a].env[C]", "spec.containers[a].image", "spec.containers[b].command", "spec.containers[c]"},
		},
		"items of a list that is new": {`{spec: {containers: [{name: a}]}}`, `{spec: {containers: [{name: a, env: [{name: A, value: c4n4ry}]}]}}`, []string{"spec.containers[a].env[A]"}},
		"ports by number and protocol": {
			`{spec: {ports: [{port: 80, targetPort: 1}, {port: 53, protocol: UDP}]}}`, `{spec: {ports: [{port: 80, targetPort: 2}, {port: 53, protocol: TCP}]}}`,
			[]string{"spec.ports[53/UDP]", "spec.ports[53]", "spec.ports[80].targetPort"},
		},
		"the order of items with keys":             {`{env: [{name: A}, {name: B}]}`, `{env: [{name: B}, {name: A}]}`, []string{"env"}},
		"items with a key twice, by index":         {`{env: [{name: A}, {name: A, value: c4n4ry}]}`, `{env: [{name: A}, {name: A, value: b}]}`, []string{"env[1].value"}},
		"items without keys, by index":             {`{tolerations: [{key: a}, {key: c4n4ry}]}`, `{tolerations: [{key: a}, {key: b}]}`, []string{"tolerations[1].key"}},
		"a list of another length, as a whole":     {`{tolerations: [{key: a}]}`, `{tolerations: [{key: a}, {key: c4n4ry}]}`, []string{"tolerations"}},
		"a list of texts, as a whole":              {`{spec: {args: [a]}}`, `{spec: {args: [c4n4ry]}}`, []string{"spec.args"}},
		"something that is of another type":        {`{spec: {a: {b: 1}}}`, `{spec: {a: [c4n4ry]}}`, []string{"spec.a"}},
		"an object that comes whole":               {`{spec: {}}`, `{spec: {probe: {http: {path: c4n4ry}}}}`, []string{"spec.probe"}},
		"a limit":                                  {`{resources: {}}`, `{resources: {limits: {cpu: c4n4ry}}}`, []string{"resources.limits.cpu"}},
		"a path that is too long, cut where it is": {`{}`, `{data: {` + strings.Repeat("k", 600) + `: c4n4ry}}`, []string{"data." + strings.Repeat("k", maxPath-5) + "…"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := changedFields(tree(t, tc.live), tree(t, tc.next))
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
			if strings.Contains(strings.Join(got, " "), "c4n4ry") {
				t.Errorf("a value shows: %q", got)
			}
		})
	}
}

func TestAJobIsComparedAsCreated(t *testing.T) {
	live := tree(t, `
metadata: {name: a, uid: x, labels: {l: a, job-name: a}, finalizers: [f]}
spec:
  selector: {matchLabels: {batch.kubernetes.io/controller-uid: x}}
  template:
    metadata: {labels: {l: a, controller-uid: x, batch.kubernetes.io/job-name: a}}
    spec: {containers: [{name: a, image: a}]}
`)
	next := tree(t, `
metadata: {generateName: a-, labels: {l: a}}
spec:
  selector: {matchLabels: {batch.kubernetes.io/controller-uid: y}}
  template:
    metadata: {labels: {l: a, controller-uid: y, batch.kubernetes.io/job-name: a-y}}
    spec: {containers: [{name: a, image: b}]}
`)
	if d := cmp.Diff([]string{"spec.template.spec.containers[a].image"}, changedFields(asCreated(live), asCreated(next))); d != "" {
		t.Error(d)
	}
	if live["spec"].(map[string]any)["selector"] == nil {
		t.Error("the live object was changed")
	}
	asCreated(map[string]any{}) // whatever is missing
}
