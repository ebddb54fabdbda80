package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestWhatTheGuardrailsAcceptTheClusterAccepts plans, and then installs, charts of random objects of all allowed
// kinds. The operator asks the cluster in dry runs under its own Role: an object that the guardrails let pass and the
// cluster does not take is a failure.
func TestWhatTheGuardrailsAcceptTheClusterAccepts(t *testing.T) {
	h := newHouse(t)
	const sets = 45
	fields, objects, accepted := map[string]bool{}, 0, 0
	for seed := range uint64(sets) {
		name := fmt.Sprintf("set%d", seed)
		all := randomObjects(seed, name)
		objects += len(all)
		var text strings.Builder
		for _, o := range all {
			b, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			text.Write(b)
			text.WriteString("\n---\n")
			note(fields, fmt.Sprint(o["kind"]), o)
		}
		archive := tarball(t, addonChart(name), tarEntry{name: name + "/templates/all.yaml", text: text.String()})
		if _, _, err := h.PushArchive(h.ctx, archive, name, "1.0.0"); err != nil {
			t.Fatal(err)
		}
		h.apply(addonYAML(h, name, true))
	}
	wait := func(name string, phases ...string) string {
		var got []string
		h.eventually(name+" is "+strings.Join(phases, " or "), func() bool {
			got = strings.Fields(h.get("zaddon/"+name, ".metadata.generation} {.status.observedGeneration} {.status.phase"))
			return len(got) == 3 && got[0] == got[1] && strings.Contains(strings.Join(phases, " "), got[2])
		})
		return got[2]
	}
	for seed := range sets {
		name := fmt.Sprintf("set%d", seed)
		if wait(name, "Planned", "PlanFailed") == "Planned" {
			accepted++
			continue
		}
		told := h.get("zaddon/"+name, ".status.message} {.status.plan.violations} {.status.plan.valuesErrors")
		if strings.Contains(told, "not accepted by the cluster") {
			t.Errorf("%s: %s", name, told)
		} else {
			t.Logf("%s is no set that the guardrails accept: %s", name, told)
		}
	}
	if accepted < 40 {
		t.Errorf("only %d of %d sets were accepted", accepted, sets)
	}
	for seed := range sets {
		h.apply(addonYAML(h, fmt.Sprintf("set%d", seed), false))
	}
	for seed := range sets {
		name := fmt.Sprintf("set%d", seed)
		if wait(name, "Ready", "Installing", "Degraded", "Failed") == "Failed" {
			t.Errorf("%s is planned and not applied: %s", name, h.get("zaddon/"+name, ".status.message"))
		}
	}
	if len(fields) < 200 {
		t.Errorf("only %d fields were tried", len(fields))
	}
	t.Logf("%d sets of %d objects with %d different fields: %d accepted", sets, objects, len(fields), accepted)
}

// note collects the paths of fields.
func note(seen map[string]bool, path string, v any) {
	switch v := v.(type) {
	case object:
		for k, e := range v {
			note(seen, path+"."+k, e)
		}
	case []any:
		for _, e := range v {
			note(seen, path+"[]", e)
		}
	default:
		seen[path] = true
	}
}

func addonYAML(h *house, name string, suspend bool) string {
	return fmt.Sprintf("apiVersion: zaentrum.io/v1alpha1\nkind: ZaentrumAddon\nmetadata: {name: %s}\nspec:\n  chart: {ref: %q, version: 1.0.0}\n  suspend: %v\n", name, h.ref(name), suspend)
}

// TestTrafficOfOthersIsLeftAlone has a Service and a Deployment of somebody else in the namespace.
func TestTrafficOfOthersIsLeftAlone(t *testing.T) {
	h := newHouse(t)
	h.apply(`apiVersion: v1
kind: Service
metadata: {name: portal}
spec: {selector: {app: portal}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: portal}
spec:
  replicas: 0
  selector: {matchLabels: {app: portal}}
  template: {metadata: {labels: {app: portal, tier: web}}, spec: {containers: [{name: c, image: x}]}}
`)
	chart := func(name, version, selector, label string) {
		text := fmt.Sprintf(`apiVersion: v1
kind: Service
metadata: {name: %[1]s}
spec: {selector: %[2]s, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  selector: {matchLabels: {own: %[1]s}}
  template: {metadata: {labels: {own: %[1]s, app: %[3]s}}, spec: {containers: [{name: c, image: x}]}}
`, name, selector, label)
		if _, _, err := h.PushArchive(h.ctx, tarball(t, addonChart(name), tarEntry{name: name + "/templates/all.yaml", text: text}), name, version); err != nil {
			t.Fatal(err)
		}
	}
	chart("thief", "1.0.0", "{own: thief}", "portal")
	h.apply(addonYAML(h, "thief", false))
	h.phase("thief", "Failed")
	if got, want := h.get("zaddon/thief", ".status.plan.violations"), `["Deployment/thief: its pods would get traffic of Service/portal (spec.template.metadata.labels)"]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := h.get("zaddon/thief", `.status.plan.findings[?(@.level=="refuse")].id`); got != "no-foreign-traffic" {
		t.Errorf("findings: %q", got)
	}
	if left := h.owned("thief"); len(left) > 0 {
		t.Errorf("applied: %v", left)
	}

	chart("stray", "1.0.0", "{tier: web}", "stray")
	h.apply(addonYAML(h, "stray", true))
	h.phase("stray", "PlanFailed")
	if got, want := h.get("zaddon/stray", ".status.plan.violations"), `["Service/stray: selects pods of Deployment/portal (spec.selector)"]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}

	// Pods are seen whoever's they are.
	h.apply(`apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db, tier: data}}, spec: {containers: [{name: c, image: x}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: shell, labels: {tier: data}}
spec: {containers: [{name: c, image: x}]}
`)
	h.eventually("the StatefulSet has a pod", func() bool { return h.get("pods", ".items[?(@.metadata.name==\"db-0\")].metadata.name") != "" })
	chart("astray", "1.0.0", "{tier: data}", "astray")
	h.apply(addonYAML(h, "astray", true))
	h.phase("astray", "PlanFailed")
	if got, want := h.get("zaddon/astray", ".status.plan.violations"), `["Service/astray: selects pods of StatefulSet/db (spec.selector)","Service/astray: selects pods of Pod/shell (spec.selector)"]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}

	// An addon that runs asks nothing, also when a Service comes later that selects its pods.
	chart("calm", "1.0.0", "{own: calm}", "calm")
	h.apply(addonYAML(h, "calm", false))
	h.phase("calm", "Ready")
	h.apply("apiVersion: v1\nkind: Service\nmetadata: {name: late}\nspec: {selector: {app: calm}, ports: [{port: 80}]}\n")
	seen := len(h.requestsOf(h.Credential))
	h.kubectl("patch", "zaddon/calm", "--type=merge", `--patch={"spec":{"values":{"other":"one"}}}`)
	h.eventually("the change is seen", func() bool {
		got := strings.Fields(h.get("zaddon/calm", ".metadata.generation} {.status.observedGeneration"))
		return len(got) == 2 && got[0] == got[1]
	})
	for _, r := range h.requestsOf(h.Credential)[seen:] {
		if r.Verb == "list" && (r.ObjectRef.Resource == "services" || r.ObjectRef.Resource == "pods") {
			t.Errorf("an addon that runs asks about %s", r.ObjectRef.Resource)
		}
	}
	h.phase("calm", "Ready")
}

type object = map[string]any

// maker makes objects that are valid by the word of the API, with many optional fields.
type maker struct {
	*rand.Rand
	name                    string
	secrets, configs, claim []string
	accounts                []string
}

func randomObjects(seed uint64, name string) []object {
	m := &maker{Rand: rand.New(rand.NewPCG(seed, 11)), name: name}
	var out []object
	add := func(apiVersion, kind, n string, rest object) {
		rest["apiVersion"], rest["kind"] = apiVersion, kind
		rest["metadata"] = m.meta(n)
		out = append(out, rest)
	}
	for i := range 1 + m.IntN(3) {
		n := fmt.Sprintf("%s-secret-%d", name, i)
		m.secrets = append(m.secrets, n)
		add("v1", "Secret", n, m.secret())
	}
	for i := range 1 + m.IntN(2) {
		n := fmt.Sprintf("%s.config-%d", name, i)
		m.configs = append(m.configs, n)
		c := object{"data": object{"a.yaml": "x: y\n", "empty": ""}}
		m.maybe(c, "binaryData", object{"b": base64.StdEncoding.EncodeToString([]byte{0, 255})})
		m.maybe(c, "immutable", m.bool())
		add("v1", "ConfigMap", n, c)
	}
	for i := range m.IntN(3) {
		n := fmt.Sprintf("%s-claim-%d", name, i)
		m.claim = append(m.claim, n)
		spec := object{"accessModes": m.one([]any{"ReadWriteOnce"}, []any{"ReadWriteMany", "ReadOnlyMany"}, []any{"ReadWriteOncePod"}), "resources": object{"requests": object{"storage": m.one("1Gi", "500M", int64(1048576), "1e6")}}}
		m.maybe(spec, "storageClassName", m.one("fast.example", "standard"))
		m.maybe(spec, "volumeMode", "Filesystem")
		add("v1", "PersistentVolumeClaim", n, object{"spec": spec})
	}
	for i := range m.IntN(3) {
		n := fmt.Sprintf("%s-account-%d", name, i)
		m.accounts = append(m.accounts, n)
		a := object{}
		m.maybe(a, "automountServiceAccountToken", m.bool())
		m.maybe(a, "imagePullSecrets", []any{object{"name": m.secrets[0]}})
		m.maybe(a, "secrets", []any{object{"name": m.secrets[0]}})
		add("v1", "ServiceAccount", n, a)
	}
	add("v1", "Service", name, object{"spec": object{"selector": object{"app": name}, "ports": []any{object{"port": 80, "targetPort": m.one("http", 8080)}}}})
	for i := range m.IntN(3) {
		add("v1", "Service", fmt.Sprintf("%s-more-%d", name, i), object{"spec": m.service()})
	}
	for i := range 1 + m.IntN(2) {
		n := name
		if i > 0 {
			n = fmt.Sprintf("%s.d%d", name, i)
		}
		add("apps/v1", "Deployment", n, object{"spec": m.deployment(n)})
	}
	for i := range m.IntN(3) {
		add("batch/v1", "Job", fmt.Sprintf("%s-job-%d", name, i), object{"spec": m.job()})
	}
	return out
}

func (m *maker) bool() bool          { return m.IntN(2) == 0 }
func (m *maker) one(of ...any) any   { return of[m.IntN(len(of))] }
func (m *maker) some(l []string) any { return l[m.IntN(len(l))] }

// maybe sets a field half of the time.
func (m *maker) maybe(o object, key string, v any) {
	if m.bool() {
		o[key] = v
	}
}

func (m *maker) meta(name string) object {
	meta := object{"name": name}
	m.maybe(meta, "labels", object{"app.kubernetes.io/name": m.name, "x": m.one("", "y", "a_b.c-d")})
	m.maybe(meta, "annotations", object{"note": strings.Repeat("ä {} <>", m.IntN(20)), "helm.sh/hook": m.one("pre-install", "post-upgrade")})
	return meta
}

func (m *maker) secret() object {
	b64 := func(s string) any { return base64.StdEncoding.EncodeToString([]byte(s)) }
	s := m.one(
		object{"data": object{"a": b64("x")}, "stringData": object{"a": "over", "b": "y"}},
		object{"type": "Opaque", "stringData": object{"a": "", "c.d": "multi\nline"}},
		object{"type": "kubernetes.io/tls", "stringData": object{"tls.crt": "", "tls.key": ""}},
		object{"type": "kubernetes.io/dockerconfigjson", "stringData": object{".dockerconfigjson": `{"auths":{}}`}},
		object{"type": "kubernetes.io/basic-auth", "stringData": object{"username": "u", "password": "p"}},
		object{"type": "kubernetes.io/ssh-auth", "data": object{"ssh-privatekey": b64("k")}},
	).(object)
	m.maybe(s, "immutable", m.bool())
	return s
}

func (m *maker) service() object {
	spec := object{"ports": []any{object{"name": "a", "port": 80, "protocol": "TCP", "targetPort": m.one("http", 9)}, object{"name": "b", "port": 81, "protocol": m.one("TCP", "UDP", "SCTP"), "appProtocol": "kubernetes.io/h2c"}}}
	m.maybe(spec, "type", "ClusterIP")
	m.maybe(spec, "selector", object{"app": m.name, "x": "y"})
	m.maybe(spec, "publishNotReadyAddresses", m.bool())
	m.maybe(spec, "internalTrafficPolicy", m.one("Cluster", "Local"))
	m.maybe(spec, "ipFamilyPolicy", "SingleStack")
	m.maybe(spec, "ipFamilies", []any{"IPv4"})
	m.maybe(spec, "trafficDistribution", "PreferClose")
	if m.bool() {
		spec["sessionAffinity"], spec["sessionAffinityConfig"] = "ClientIP", object{"clientIP": object{"timeoutSeconds": 60}}
	} else {
		m.maybe(spec, "clusterIP", "None")
	}
	return spec
}

func (m *maker) deployment(name string) object {
	labels := object{"app": m.name, "part": name}
	spec := object{"selector": object{"matchLabels": labels}, "template": m.template(labels, "Always")}
	if m.bool() {
		spec["selector"] = object{"matchExpressions": []any{object{"key": "app", "operator": "In", "values": []any{m.name}}, object{"key": "part", "operator": "Exists"}}}
	}
	m.maybe(spec, "replicas", m.IntN(3))
	m.maybe(spec, "minReadySeconds", 1)
	m.maybe(spec, "revisionHistoryLimit", m.IntN(3))
	m.maybe(spec, "progressDeadlineSeconds", 120)
	m.maybe(spec, "strategy", m.one(object{"type": "Recreate"}, object{"type": "RollingUpdate", "rollingUpdate": object{"maxSurge": m.one(1, "25%"), "maxUnavailable": m.one(1, "50%")}}))
	return spec
}

func (m *maker) job() object {
	spec := object{"template": m.template(object{"job": m.name}, "Never")}
	m.maybe(spec, "backoffLimit", m.IntN(4))
	m.maybe(spec, "activeDeadlineSeconds", 600)
	m.maybe(spec, "ttlSecondsAfterFinished", 60)
	m.maybe(spec, "parallelism", 1+m.IntN(2))
	m.maybe(spec, "suspend", m.bool())
	m.maybe(spec, "podReplacementPolicy", "Failed")
	if m.bool() {
		spec["completionMode"], spec["completions"], spec["backoffLimitPerIndex"], spec["maxFailedIndexes"] = "Indexed", 2, 1, 1
		m.maybe(spec, "successPolicy", object{"rules": []any{object{"succeededCount": 1}}})
	} else {
		m.maybe(spec, "podFailurePolicy", object{"rules": []any{object{"action": "Ignore", "onPodConditions": []any{object{"type": "DisruptionTarget", "status": "True"}}}}})
	}
	return spec
}
