package guard

import (
	"slices"
	"strings"
)

// Rules about what other controllers would do for an object, which the guardrails never see.

// instructions are the annotations and labels by which well-known controllers act for an object: the beginnings of
// their keys, separated by spaces, and for which kinds.
var instructions = []struct {
	what     string
	kinds    []string
	prefixes string
}{
	{"has containers, volumes or variables added to pods", nil, "sidecar.istio.io/ inject.istio.io/ proxy.istio.io/ config.linkerd.io/ linkerd.io/inject " +
		"kuma.io/ consul.hashicorp.com/ dapr.io/ vault.hashicorp.com/ vault.security.banzaicloud.io/ " +
		"instrumentation.opentelemetry.io/ sidecar.opentelemetry.io/ sidecar.jaegertracing.io/ " +
		"admission.datadoghq.com/ dynatrace.com/inject oneagent.dynatrace.com/ istio.io/rev ambient.istio.io/ openservicemesh.io/ appmesh.k8s.aws/"},
	{attachesNetworks, nil, "networking.gke.io/ ipam.spidernet.io/ ipam.cilium.io/ vpc.amazonaws.com/ k8s.v1.cni.cncf.io/ v1.multus-cni.io/ " +
		"cni.projectcalico.org/ ovn.kubernetes.io/ k8s.ovn.org/ cni.cilium.io/"},
	{configuresRuntime, nil, "seccomp-profile.kubernetes.cri-o.io io.katacontainers. io.kubernetes.cri-o. io.kubernetes.cri. io.containers. run.oci. " +
		"cdi.k8s.io/ devices.nri.io/ cdi-devices.nri.io/ mounts.nri.io/ hooks.nri.io/"},
	{"has the content of other namespaces copied", []string{kindSecret, kindConfigMap}, "reflector.v1.k8s.emberstack.com/ replicator.v1.mittwald.de/ kubed.appscode.com/"},
	{"makes a Secret a deployment tool's credential", []string{kindSecret}, "argocd.argoproj.io/secret-type"},
	{"has Secrets made of what is kept elsewhere", nil, "operator.1password.io/"},
	{"has the images changed that the plan names", nil, "keel.sh/"},
	{"publishes the Service", []string{kindService}, "external-dns.alpha.kubernetes.io/ tailscale.com/ getambassador.io/ " +
		"service.cilium.io/ io.cilium/ mirror.linkerd.io/ cloud.google.com/"},
	{"has the addon reached from other clusters", nil, "skupper.io/"},
	{"has users sign in with the account", []string{kindServiceAccount}, "serviceaccounts.openshift.io/"},
}

const (
	attachesNetworks  = "attaches pods to other networks, or gives them chosen addresses"
	configuresRuntime = "configures the container runtime"
	clonesVolume      = "may clone or bind an existing volume"
)

// claimMarks are what annotations and labels of a claim may begin with, besides keys without a domain. Drivers of volumes
// are told by annotations what to make a volume of, each by its own.
var claimMarks = []string{
	"app.kubernetes.io/", "helm.sh/", "zaentrum.io/", "prometheus.io/", "backup.velero.io/", "k8up.io/",
	"volume.beta.kubernetes.io/storage-class", // which only chooses a class
}

// noInstructions refuses marks that make other controllers act. One that switches a controller off is fine.
func noInstructions(_ *scope, o *object) []hit {
	var hits []hit
	for _, marks := range o.marks() {
		for _, k := range marks.keys() {
			v := marks.at(k)
			what := instruction(o.id.Kind, k)
			// A network or a device can have any name.
			off := (v.is("false") || v.is("disabled")) && what != attachesNetworks && what != configuresRuntime && what != clonesVolume
			if what != "" && !off {
				hits = append(hits, v.hit("%s, which the guardrails do not see", what))
			}
		}
	}
	return append(hits, noOtherJobController(o)...)
}

// instruction is what somebody does for an object of this kind that has this mark; empty for nothing that is known.
func instruction(kind, key string) string {
	begins := func(with string) bool { return strings.HasPrefix(key, with) }
	if kind == kindClaim && strings.Contains(key, "/") && !slices.ContainsFunc(claimMarks, begins) {
		return clonesVolume
	}
	for _, i := range instructions {
		if i.kinds != nil && !slices.Contains(i.kinds, kind) {
			continue
		}
		for prefix := range strings.FieldsSeq(i.prefixes) {
			if strings.HasPrefix(key, prefix) {
				return i.what
			}
		}
	}
	return ""
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
