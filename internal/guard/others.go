package guard

import (
	"slices"
	"strings"
)

// Rules about what other controllers would do for an object, which the guardrails never see.

// instructions are the annotations and labels by which well-known controllers add to pods, copy what belongs to
// others or bind existing volumes: the beginnings of their keys, and for which kinds.
var instructions = []struct {
	prefix string
	kinds  []string
	what   string
}{
	{"sidecar.istio.io/", nil, "has containers and volumes added to pods"},
	{"inject.istio.io/", nil, "has containers and volumes added to pods"},
	{"proxy.istio.io/", nil, "has containers and volumes added to pods"},
	{"config.linkerd.io/", nil, "has containers and volumes added to pods"},
	{"linkerd.io/inject", nil, "has containers and volumes added to pods"},
	{"vault.hashicorp.com/", nil, "has containers and volumes added to pods"},
	{"consul.hashicorp.com/", nil, "has containers and volumes added to pods"},
	{"instrumentation.opentelemetry.io/", nil, "has containers and volumes added to pods"},
	{"k8s.v1.cni.cncf.io/", nil, "attaches pods to other networks"},
	{"v1.multus-cni.io/", nil, "attaches pods to other networks"},
	{"io.katacontainers.", nil, "configures the container runtime"},
	{"io.kubernetes.cri-o.", nil, "configures the container runtime"},
	{"reflector.v1.k8s.emberstack.com/", []string{kindSecret, kindConfigMap}, "has the content of other namespaces copied"},
	{"replicator.v1.mittwald.de/", []string{kindSecret, kindConfigMap}, "has the content of other namespaces copied"},
	{"argocd.argoproj.io/secret-type", []string{kindSecret}, "makes a Secret a deployment tool's credential"},
	{"k8s.io/CloneRequest", []string{kindClaim}, "clones or binds an existing volume"},
	{"k8s.io/CloneOf", []string{kindClaim}, "clones or binds an existing volume"},
	{"pv.kubernetes.io/", []string{kindClaim}, "clones or binds an existing volume"},
	{"volume.kubernetes.io/", []string{kindClaim}, "clones or binds an existing volume"},
	{"volume.beta.kubernetes.io/", []string{kindClaim}, "clones or binds an existing volume"},
	{"external-dns.alpha.kubernetes.io/", []string{kindService}, "publishes a name"},
}

// noInstructions refuses marks that make other controllers act. One that switches a controller off is fine.
func noInstructions(_ *scope, o *object) []hit {
	var hits []hit
	for _, marks := range o.marks() {
		for _, k := range marks.keys() {
			v := marks.at(k)
			if v.is("false") || v.is("disabled") {
				continue
			}
			for _, i := range instructions {
				if strings.HasPrefix(k, i.prefix) && (i.kinds == nil || slices.Contains(i.kinds, o.id.Kind)) {
					hits = append(hits, v.hit("%s, which the guardrails do not see", i.what))
					break
				}
			}
		}
	}
	return append(hits, noOtherJobController(o)...)
}

// noOtherJobController is about the one field that does the same.
func noOtherJobController(o *object) []hit {
	by := o.root.at("spec", "managedBy")
	if o.id.Kind != kindJob || by.anyOf("kubernetes.io/job-controller") {
		return nil
	}
	return []hit{by.hit("hands the Job to another controller, which the guardrails do not see")}
}

// maxGrace is the longest that a pod may take to end, in seconds: a day.
const maxGrace = 86_400

// noEndlessEnd refuses pods that outlive the addon's removal for as long as they please.
func noEndlessEnd(_ *scope, o *object) []hit {
	var hits []hit
	long := func(v value) {
		if n, ok := v.raw.(int64); ok && n > maxGrace {
			hits = append(hits, v.hit("longer than a day not allowed"))
		}
	}
	long(o.pod().at("terminationGracePeriodSeconds"))
	for _, c := range o.containers() {
		for _, when := range []string{"preStop", "postStart"} {
			long(c.at("lifecycle", when, "sleep", "seconds"))
		}
		for _, probe := range []string{"livenessProbe", "startupProbe"} {
			long(c.at(probe, "terminationGracePeriodSeconds"))
		}
	}
	return hits
}
