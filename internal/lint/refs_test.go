package lint

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/manifest"
	"zaentrum.io/zae/internal/worker"
)

// referencesIn are the rules that objects break by what they say of each other, each with its severity and path.
func referencesIn(t *testing.T, text string) []string {
	t.Helper()
	docs, err := manifest.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var set manifest.Set
	for _, doc := range docs {
		tree, ok := doc.(map[string]any)
		if !ok {
			t.Fatal(doc)
		}
		set = append(set, manifest.Object{Tree: tree})
	}
	l := &linter{f: newFound(), chart: &worker.Chart{Facts: v1alpha1.PlanChart{Annotations: map[string]string{v1alpha1.ChartAnnotationPrimary: "web"}}}}
	l.references(set, otherPlatform(), static)
	out := []string{}
	for _, f := range l.f.list {
		out = append(out, fmt.Sprintf("%s %s %s", f.Severity, f.Rule, f.Path))
	}
	slices.Sort(out)
	return out
}

// podOf is a Deployment with these lines in its spec, its pod's spec and its one container.
func podOf(spec, pod, container string) string {
	indent := func(text string, n int) string {
		if text == "" {
			return ""
		}
		pad := strings.Repeat(" ", n)
		return pad + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+pad) + "\n"
	}
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  selector: {matchLabels: {app: web}}\n" + indent(spec, 2) +
		"  template:\n    metadata: {labels: {app: web}}\n    spec:\n" + indent(pod, 6) +
		"      containers:\n      - name: web\n        image: web:1\n" + indent(container, 8) + "---\n"
}

const (
	secretDoc = "apiVersion: v1\nkind: Secret\nmetadata: {name: env}\ndata: {a: YQ==}\nstringData: {b: b}\n---\n"
	configDoc = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cfg}\ndata: {c: c, app.yaml: x}\nbinaryData: {d: ZA==}\n---\n"
)

func claimDoc(modes string) string {
	return "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {accessModes: [" + modes + "]}\n---\n"
}

func serviceDoc(name, spec string) string {
	return "apiVersion: v1\nkind: Service\nmetadata: {name: " + name + "}\nspec: {" + spec + "}\n---\n"
}

func TestReferencesBetweenObjects(t *testing.T) {
	t.Parallel()
	const pod = "spec.template.spec"
	mounted := "volumeMounts: [{name: v, mountPath: /v}]"
	claimed := "volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]"
	job := strings.NewReplacer("apps/v1", "batch/v1", "Deployment", "Job", "name: web}", "name: job}", "app: web", "app: job")
	for name, c := range map[string]struct {
		text string
		want string
	}{
		"keys of all parts are keys": {secretDoc + configDoc + podOf("", "volumes: [{name: v, configMap: {name: cfg, items: [{key: d, path: d}]}}]",
			mounted+"\nenv: [{name: A, valueFrom: {secretKeyRef: {name: env, key: a}}}, {name: B, valueFrom: {secretKeyRef: {name: env, key: b}}}, {name: C, valueFrom: {configMapKeyRef: {name: cfg, key: c}}}]"), ""},
		"a key that may be missing":           {secretDoc + podOf("", "", "env: [{name: A, valueFrom: {secretKeyRef: {name: env, key: x, optional: true}}}]"), ""},
		"a key that may be missing in part":   {secretDoc + podOf("", "", "env: [{name: A, valueFrom: {secretKeyRef: {name: env, key: x, optional: false}}}]"), "error missing-key " + pod + ".containers[0].env[0].valueFrom.secretKeyRef.key"},
		"a key of an init container":          {secretDoc + podOf("", "initContainers: [{name: i, image: i, env: [{name: A, valueFrom: {secretKeyRef: {name: env, key: x}}}]}]", ""), "error missing-key " + pod + ".initContainers[0].env[0].valueFrom.secretKeyRef.key"},
		"a key of somebody else's":            {podOf("", "", "env: [{name: A, valueFrom: {secretKeyRef: {name: theirs, key: x}}}]"), ""},
		"keys that the platform hands over":   {podOf("", "volumes: [{name: v, secret: {secretName: zs-other-tls, items: [{key: user.crt, path: a}, {key: ca.crt, path: b}]}}]", mounted), ""},
		"a key that the platform has not":     {podOf("", "volumes: [{name: v, secret: {secretName: zs-other-tls, items: [{key: tls.crt, path: a}]}}]", mounted), "error missing-key " + pod + ".volumes[0].secret.items[0].key"},
		"optional items":                      {secretDoc + podOf("", "volumes: [{name: v, secret: {secretName: env, optional: true, items: [{key: x, path: a}]}}]", mounted), ""},
		"a file by its key":                   {configDoc + podOf("", "volumes: [{name: v, configMap: {name: cfg}}]", "volumeMounts: [{name: v, mountPath: /v, subPath: ./app.yaml}]"), ""},
		"a file that is called otherwise":     {configDoc + podOf("", "volumes: [{name: v, configMap: {name: cfg, items: [{key: app.yaml, path: conf/app.yaml}]}}]", "volumeMounts: [{name: v, mountPath: /v, subPath: app.yaml}]"), "error missing-key " + pod + ".containers[0].volumeMounts[0].subPath"},
		"a directory of a volume":             {configDoc + podOf("", "volumes: [{name: v, configMap: {name: cfg, items: [{key: app.yaml, path: conf/app.yaml}]}}]", "volumeMounts: [{name: v, mountPath: /v, subPath: conf}]"), ""},
		"a file of one of several sources":    {configDoc + secretDoc + podOf("", "volumes: [{name: v, projected: {sources: [{secret: {name: env}}, {configMap: {name: cfg}}, {serviceAccountToken: {path: token}}, {downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}]}}]", "volumeMounts: [{name: v, mountPath: /a, subPath: a}, {name: v, mountPath: /c, subPath: c}, {name: v, mountPath: /t, subPath: token}, {name: v, mountPath: /l, subPath: labels}]"), ""},
		"a file in a directory of its own":    {podOf("", "volumes: [{name: v, emptyDir: {}}]", "volumeMounts: [{name: v, mountPath: /v, subPath: any}]"), ""},
		"a mount of nothing":                  {podOf("", "", "volumeMounts: [{name: v, mountPath: /v}]"), "error missing-volume " + pod + ".containers[0].volumeMounts[0].name"},
		"a volume that nothing mounts":        {podOf("", "volumes: [{name: v, emptyDir: {}}]", ""), "warning volume-unused " + pod + ".volumes[0].name"},
		"a volume for an init container":      {podOf("", "volumes: [{name: v, emptyDir: {}}]\ninitContainers: [{name: i, image: i, volumeMounts: [{name: v, mountPath: /v}]}]", ""), ""},
		"a port of another container":         {podOf("", "initContainers: [{name: i, image: i, restartPolicy: Always, ports: [{name: http, containerPort: 1}]}]", "readinessProbe: {httpGet: {port: http}}"), "error missing-port " + pod + ".containers[0].readinessProbe.httpGet.port"},
		"ports by number":                     {podOf("", "", "readinessProbe: {httpGet: {port: 8080}}\nlivenessProbe: {tcpSocket: {port: 9}}"), ""},
		"a Service of a sidecar's port":       {podOf("", "initContainers: [{name: i, image: i, restartPolicy: Always, ports: [{name: http, containerPort: 1}]}]", "") + serviceDoc("web", "selector: {app: web}, ports: [{port: 80, targetPort: http}]"), ""},
		"a Service of a port that has ended":  {podOf("", "initContainers: [{name: i, image: i, ports: [{name: http, containerPort: 1}]}]", "") + serviceDoc("web", "selector: {app: web}, ports: [{port: 80, targetPort: http}]"), "error missing-port spec.ports[0].targetPort"},
		"a port of another protocol":          {podOf("", "", "ports: [{name: dns, containerPort: 53}]") + serviceDoc("dns", "selector: {app: web}, ports: [{port: 53, protocol: UDP, targetPort: dns}]"), "error missing-port spec.ports[0].targetPort"},
		"a port that is nowhere declared":     {podOf("", "", "") + serviceDoc("web", "selector: {app: web}, ports: [{port: 80, targetPort: 8080}]"), ""},
		"the Service's own number":            {podOf("", "", "ports: [{containerPort: 8080}]") + serviceDoc("web", "selector: {app: web}, ports: [{port: 80}]"), "warning port-differs spec.ports[0].port"},
		"a headless Service's own number":     {podOf("", "", "ports: [{containerPort: 8080}]") + serviceDoc("peers", "clusterIP: None, selector: {app: web}, ports: [{port: 80}]"), ""},
		"the operator's label":                {podOf("", "", "ports: [{containerPort: 80}]") + serviceDoc("web", "selector: {zaentrum.io/component: web}, ports: [{port: 80}]"), ""},
		"a selector that fits in part":        {podOf("", "", "ports: [{containerPort: 80}]") + serviceDoc("web", "selector: {app: web, tier: x}, ports: [{port: 80}]"), "error service-without-pods spec.selector"},
		"a claim for one node":                {claimDoc("ReadWriteOnce") + podOf("replicas: 2\nstrategy: {type: Recreate}", claimed, mounted), "warning claim-shared spec.replicas"},
		"a claim for one node, put together":  {claimDoc("ReadWriteOnce") + podOf("replicas: 2\nstrategy: {type: Recreate}", claimed+"\naffinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname}]}}", mounted), ""},
		"a claim for one pod":                 {claimDoc("ReadWriteOncePod") + podOf("replicas: 2\nstrategy: {type: Recreate}", claimed, mounted), "error claim-shared spec.replicas"},
		"a claim for many":                    {claimDoc("ReadWriteOnce, ReadWriteMany") + podOf("replicas: 2", claimed, mounted), ""},
		"the media claim":                     {podOf("replicas: 2", claimed, mounted), ""},
		"a claim and a rolling update":        {claimDoc("ReadWriteOnce") + podOf("", claimed, mounted), "warning claim-rollout spec.strategy"},
		"a claim, and the old pod ends first": {claimDoc("ReadWriteOnce") + podOf("strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}", claimed, mounted), ""},
		"a claim, and the old pod may end":    {claimDoc("ReadWriteOnce") + podOf("strategy: {rollingUpdate: {maxUnavailable: 100%}}", claimed, mounted), ""},
		"a claim, and nothing runs":           {claimDoc("ReadWriteOnce") + podOf("replicas: 0", claimed, mounted), ""},
		"a Job at the claim of a Deployment":  {claimDoc("ReadWriteOncePod") + podOf("strategy: {type: Recreate}", claimed, mounted) + job.Replace(podOf("", claimed, mounted)), "error claim-shared " + pod + ".volumes[0].persistentVolumeClaim.claimName"},
		"a variable of a whole object":        {configDoc + podOf("", "", "envFrom: [{prefix: X_, configMapRef: {name: cfg}}]\nenv: [{name: A, value: $(X_C)}]"), "warning missing-variable " + pod + ".containers[0].env[0].value"},
		"variables of somebody else's":        {podOf("", "", "envFrom: [{configMapRef: {name: theirs}}]\nenv: [{name: A, value: $(B)}]"), ""},
		"a variable that refers to itself":    {podOf("", "", "env: [{name: PATH, value: '/opt:$(PATH)'}]"), "warning missing-variable " + pod + ".containers[0].env[0].value"},
		"variables of Services":               {podOf("", "", "env: [{name: A, value: '$(WEB_SERVICE_HOST):$(WEB_PORT_80_TCP_PORT)'}]"), ""},
		"variables of Services, switched off": {podOf("", "enableServiceLinks: false", "env: [{name: A, value: $(WEB_SERVICE_HOST)}]"), "warning missing-variable " + pod + ".containers[0].env[0].value"},
		"a script with brackets":              {podOf("", "", "args: ['-c', 'echo $(DATE); exit', '$(date)', '$$(DATE)', 'a$']"), ""},
		"a Secret that pulls":                 {strings.Replace(secretDoc, "\ndata:", "\ntype: kubernetes.io/dockerconfigjson\ndata:", 1) + podOf("", "imagePullSecrets: [{name: env}]", ""), ""},
		"what has the wrong type":             {podOf("replicas: x", "volumes: {}\nimagePullSecrets: a", "env: 1\nports: [a]\nvolumeMounts: [1]\nreadinessProbe: []"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := strings.Join(referencesIn(t, c.text), "\n"); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
