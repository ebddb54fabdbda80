package guard

import "slices"

// Rules about the nodes that pods may run on.

func noNodeName(_ *scope, o *object) []hit {
	return filled("nodeName not allowed", o.pod().at("nodeName"))
}

// controlPlane tells whether a label or taint marks control-plane nodes: today's name, the one before it,
// and those of distributions.
func controlPlane(key string) bool {
	switch key {
	case "node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master",
		"node-role.kubernetes.io/controlplane", "node-role.kubernetes.io/etcd",
		"CriticalAddonsOnly", "node.kubernetes.io/microk8s-controlplane":
		return true
	}
	return false
}

// noControlPlane refuses what leads to control-plane nodes. What leads away from them is fine.
func noControlPlane(_ *scope, o *object) []hit {
	const what = "placement on control-plane nodes not allowed"
	pod := o.pod()
	var hits []hit
	selector := pod.at("nodeSelector")
	for _, k := range selector.keys() {
		if v := selector.at(k); controlPlane(k) || controlPlaneRole(k, v) {
			hits = append(hits, v.hit(what))
		}
	}
	affinity := pod.at("affinity", "nodeAffinity")
	terms := affinity.at("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms").items()
	for _, p := range affinity.at("preferredDuringSchedulingIgnoredDuringExecution").items() {
		terms = append(terms, p.at("preference"))
	}
	for _, t := range terms {
		for _, list := range []string{"matchExpressions", "matchFields"} {
			for _, e := range t.at(list).items() {
				if towardsControlPlane(e) {
					hits = append(hits, e.hit(what))
				}
			}
		}
	}
	for _, t := range pod.at("tolerations").items() {
		if controlPlane(t.at("key").text()) {
			hits = append(hits, t.hit("toleration for control-plane nodes not allowed"))
		}
	}
	return hits
}

// towardsControlPlane judges one requirement on nodes. Only the operators known to lead away are fine.
func towardsControlPlane(requirement value) bool {
	key, operator := requirement.at("key").text(), requirement.at("operator")
	if operator.is("NotIn") || operator.is("DoesNotExist") {
		return false
	}
	if controlPlane(key) {
		return true
	}
	return slices.ContainsFunc(requirement.at("values").items(), func(v value) bool { return controlPlaneRole(key, v) })
}

// controlPlaneRole is the form that some clusters use: one label whose value is the role.
func controlPlaneRole(key string, v value) bool {
	return key == "kubernetes.io/role" && (v.is("master") || v.is("control-plane"))
}

// noTolerateAll refuses tolerations without a key: they match every taint, or every taint of an effect.
func noTolerateAll(_ *scope, o *object) []hit {
	var hits []hit
	for _, t := range o.pod().at("tolerations").items() {
		if _, ok := t.raw.(map[string]any); ok && t.at("key").text() == "" {
			hits = append(hits, t.hit("toleration of every taint not allowed"))
		}
	}
	return hits
}
