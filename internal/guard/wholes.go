package guard

import (
	"encoding/base64"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// wholes are what the API server asks of several fields of a type together.
func wholes() map[reflect.Type]form {
	out := map[reflect.Type]form{}
	for _, w := range []struct {
		of  any
		ask form
	}{
		{metav1.LabelSelectorRequirement{}, valuesFitOperator},
		{corev1.Secret{}, secretKeys},
		{corev1.ConfigMap{}, configMapKeys},
		{corev1.PersistentVolumeClaimSpec{}, claimSize},
		{corev1.ServiceSpec{}, servicePorts},
		{appsv1.DeploymentSpec{}, deploymentSpec},
		{appsv1.DeploymentStrategy{}, rollout},
		{batchv1.JobSpec{}, jobSpec},
		{batchv1.PodFailurePolicyRule{}, exactlyOne("onExitCodes", "onPodConditions")},
		{batchv1.PodFailurePolicyOnExitCodesRequirement{}, exitCodes},
		{corev1.PodSpec{}, podSpec},
		{corev1.Container{}, containerSpec},
		{corev1.EnvVar{}, valueOrFrom},
		{corev1.EnvVarSource{}, exactlyOne("fieldRef", "resourceFieldRef", "secretKeyRef", "configMapKeyRef", "fileKeyRef")},
		{corev1.EnvFromSource{}, exactlyOne("secretRef", "configMapRef")},
		{corev1.DownwardAPIVolumeFile{}, downwardFile},
		{corev1.ResourceFieldSelector{}, resourceField},
		{corev1.Probe{}, exactlyOne("exec", "httpGet", "tcpSocket", "grpc")},
		{corev1.LifecycleHandler{}, exactlyOne("exec", "httpGet", "tcpSocket", "sleep")},
		{corev1.VolumeMount{}, mount},
		{corev1.ProjectedVolumeSource{}, projectedPaths},
		{corev1.ClusterTrustBundleProjection{}, exactlyOne("name", "signerName")},
		{corev1.ResourceRequirements{}, resources},
		{corev1.SeccompProfile{}, localhostProfile},
		{corev1.AppArmorProfile{}, localhostProfile},
		{corev1.NodeSelectorRequirement{}, valuesFitOperator},
		{corev1.Toleration{}, toleration},
		{corev1.TopologySpreadConstraint{}, spread},
	} {
		out[reflect.TypeOf(w.of)] = w.ask
	}
	return out
}

// exactlyOne wants one of these fields and no second.
func exactlyOne(fields ...string) form {
	what := "must have one of " + strings.Join(fields[:len(fields)-1], ", ") + " and " + fields[len(fields)-1]
	return func(v value) []hit {
		n := 0
		for _, k := range fields {
			if field := v.at(k); !field.absent() {
				n++
			}
		}
		if n == 1 {
			return nil
		}
		return []hit{v.hit("%s", what)}
	}
}

func valuesFitOperator(v value) []hit {
	n := len(v.at("values").items())
	switch operator := v.at("operator").text(); {
	case (operator == "In" || operator == "NotIn") && n == 0:
		return []hit{v.at("values").hit("missing: In and NotIn want values")}
	case (operator == "Exists" || operator == "DoesNotExist") && n > 0:
		return []hit{v.at("values").hit("Exists and DoesNotExist take no values")}
	case (operator == "Gt" || operator == "Lt") && n != 1:
		return []hit{v.at("values").hit("Gt and Lt want one value")}
	}
	return nil
}

// maxData is how much a Secret or a ConfigMap may hold, in bytes.
const maxData = 1 << 20

// secretKeys wants the keys that go with the Secret's type, wherever they are.
func secretKeys(v value) []hit {
	data, text := v.at("data"), v.at("stringData")
	has := func(key string) bool { return data.at(key).raw != nil || text.at(key).raw != nil }
	var hits []hit
	want := func(key string) {
		if !has(key) {
			hits = append(hits, data.at(key).hit("missing: Secrets of this type have it"))
		}
	}
	switch v.at("type").text() {
	case "kubernetes.io/tls":
		want("tls.crt")
		want("tls.key")
	case "kubernetes.io/dockerconfigjson":
		want(".dockerconfigjson")
	case "kubernetes.io/basic-auth":
		if !has("password") {
			want("username")
		}
	case "kubernetes.io/ssh-auth":
		if key := "ssh-privatekey"; text.at(key).text() == "" && (text.at(key).raw != nil || data.at(key).text() == "") {
			hits = append(hits, data.at(key).hit("missing or empty: Secrets of this type have it"))
		}
	}
	size := 0
	for _, k := range data.keys() {
		if text.at(k).raw == nil {
			size += decoded(data.at(k))
		}
	}
	for _, k := range text.keys() {
		size += len(text.at(k).text())
	}
	return append(hits, tooMuch(data, size)...)
}

func decoded(v value) int {
	return base64.StdEncoding.DecodedLen(len(v.text())) - strings.Count(v.text(), "=")
}

func tooMuch(at value, size int) []hit {
	if size > maxData {
		return []hit{at.hit("more than 1 MiB")}
	}
	return nil
}

func configMapKeys(v value) []hit {
	data, binary := v.at("data"), v.at("binaryData")
	var hits []hit
	size := 0
	for _, k := range data.keys() {
		size += len(data.at(k).text())
		if binary.at(k).raw != nil {
			hits = append(hits, binary.at(k).hit("the key is in data, too"))
		}
	}
	for _, k := range binary.keys() {
		size += decoded(binary.at(k))
	}
	return append(hits, tooMuch(data, size)...)
}

func claimSize(v value) []hit {
	var hits []hit
	storage := v.at("resources", "requests", "storage")
	switch q, ok := storage.quantity(); {
	case storage.raw == nil:
		hits = append(hits, storage.hit("missing"))
	case ok && q.Sign() <= 0:
		hits = append(hits, storage.hit("must be more than 0"))
	}
	modes := v.at("accessModes").items()
	alone := func(m value) bool { return m.is("ReadWriteOncePod") }
	if slices.ContainsFunc(modes, alone) && slices.ContainsFunc(modes, func(m value) bool { return !alone(m) }) {
		hits = append(hits, v.at("accessModes").hit("ReadWriteOncePod takes no other mode beside it"))
	}
	return hits
}

func servicePorts(v value) []hit {
	var hits []hit
	ports := v.at("ports")
	headless := v.at("clusterIP").is("None")
	if len(ports.items()) == 0 && !headless && v.at("type").anyOf("ClusterIP") {
		hits = append(hits, ports.hit("missing"))
	}
	names := map[string]bool{}
	for _, p := range ports.items() {
		name := p.at("name")
		switch n := name.text(); {
		case n == "" && len(ports.items()) > 1:
			hits = append(hits, name.hit("missing: ports are told apart by their names"))
		case n != "" && names[n]:
			hits = append(hits, name.hit("same name as a port before it"))
		default:
			names[n] = true
		}
		if node := p.at("nodePort"); node.raw != nil && !node.zero() {
			hits = append(hits, node.hit("goes with other types of Service"))
		}
	}
	for _, k := range []string{"externalTrafficPolicy", "healthCheckNodePort", "allocateLoadBalancerNodePorts"} {
		if field := v.at(k); !field.absent() && !field.zero() {
			hits = append(hits, field.hit("goes with other types of Service"))
		}
	}
	families := map[string]bool{}
	for _, f := range v.at("ipFamilies").items() {
		if families[f.text()] {
			hits = append(hits, f.hit("there before"))
		}
		families[f.text()] = true
	}
	if v.at("sessionAffinity").is("ClientIP") { // beside another one it is dropped
		hits = append(hits, between(1, 86400)(v.at("sessionAffinityConfig", "clientIP", "timeoutSeconds"))...)
	}
	return hits
}
