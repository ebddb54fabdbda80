package guard

import (
	"slices"
	"strings"

	"zaentrum.io/zae/api/v1alpha1"
)

// Rules about the nodes that pods may run on, and about the pods that they may choose.

// noNodeName refuses every way to choose a node by its name: the field that passes the scheduler by, the label that
// every node has, those that drivers of volumes give it, and the name itself. What leads away from a node is fine, and
// so is Exists, which is any.
func noNodeName(_ *scope, o *object) []hit {
	const what = "a node by its name not allowed"
	pod := o.pod()
	hits := filled("nodeName not allowed", pod.at("nodeName"))
	selector := pod.at("nodeSelector")
	for _, k := range selector.keys() {
		if namesNode(k) {
			hits = append(hits, filled(what, selector.at(k))...)
		}
	}
	for _, e := range nodeRequirements(pod) {
		if namesNode(e.at("key").text()) && !leadsAway(e) && !e.at("operator").is("Exists") {
			hits = append(hits, e.hit(what))
		}
	}
	return hits
}

// namesNode tells whether a label has another value on each node, or whether it is the field with the name.
func namesNode(key string) bool {
	if key == "metadata.name" {
		return true
	}
	domain, name, _ := strings.Cut(key, "/")
	switch name {
	case "hostname", "nodename", "node-name", "instance-id":
		return true
	case "node": // of drivers of volumes; others mean the kind of a node
		return strings.HasPrefix(domain, "topology.") || strings.Contains(domain, "csi")
	}
	return false
}

// nodeRequirements are all requirements that a pod has on its node, those that it only prefers included.
func nodeRequirements(pod value) []value {
	affinity := pod.at("affinity", "nodeAffinity")
	terms := affinity.at("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms").items()
	for _, p := range affinity.at("preferredDuringSchedulingIgnoredDuringExecution").items() {
		terms = append(terms, p.at("preference"))
	}
	var all []value
	for _, t := range terms {
		all = append(all, t.at("matchExpressions").items()...)
		all = append(all, t.at("matchFields").items()...)
	}
	return all
}

// leadsAway knows the operators by which a requirement on nodes keeps a pod off them.
func leadsAway(requirement value) bool {
	operator := requirement.at("operator")
	return operator.is("NotIn") || operator.is("DoesNotExist")
}

// controlPlane tells whether a label or taint marks control-plane nodes: today's name, the one before it,
// and those of distributions and installers.
func controlPlane(key string) bool {
	switch key {
	case "node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master",
		"node-role.kubernetes.io/controlplane", "node-role.kubernetes.io/etcd", "node-role.kubernetes.io/api-server",
		"CriticalAddonsOnly", "node.kubernetes.io/microk8s-controlplane", "node.kubernetes.io/exclude-from-external-load-balancers",
		"kops.k8s.io/kops-controller-pki", "minikube.k8s.io/primary":
		return true
	}
	return false
}

// worker tells whether a label marks the nodes that are not the control plane's.
func worker(key string) bool {
	switch key {
	case "node-role.kubernetes.io/worker", "node-role.kubernetes.io/agent", "node-role.kubernetes.io/node", "node-role.kubernetes.io/compute":
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
	for _, e := range nodeRequirements(pod) {
		if towardsControlPlane(e) {
			hits = append(hits, e.hit(what))
		}
	}
	for _, t := range pod.at("tolerations").items() {
		if key := t.at("key").text(); controlPlane(key) || controlPlaneRole(key, t.at("value")) || roleLabel(key) && t.at("operator").is("Exists") {
			hits = append(hits, t.hit("toleration for control-plane nodes not allowed"))
		}
	}
	return hits
}

// towardsControlPlane judges one requirement on nodes. Only the operators known to lead away are fine; away from the
// workers is towards it.
func towardsControlPlane(requirement value) bool {
	key := requirement.at("key").text()
	role := slices.ContainsFunc(requirement.at("values").items(), func(v value) bool { return controlPlaneRole(key, v) })
	if leadsAway(requirement) {
		return worker(key) || roleLabel(key) && !role
	}
	return role || controlPlane(key)
}

// controlPlaneRole is the form that some clusters use: one label whose value is the role.
func controlPlaneRole(key string, v value) bool {
	return roleLabel(key) && (v.is("master") || v.is("control-plane") || v.is("controller"))
}

func roleLabel(key string) bool {
	return key == "kubernetes.io/role" || key == "node.k0sproject.io/role"
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

// ownNamespaceAffinity keeps the terms about other pods in the namespace. An empty namespaceSelector is all of them.
func ownNamespaceAffinity(s *scope, o *object) []hit {
	var hits []hit
	for _, kind := range []string{"podAffinity", "podAntiAffinity"} {
		affinity := o.pod().at("affinity", kind)
		terms := affinity.at("requiredDuringSchedulingIgnoredDuringExecution").items()
		for _, p := range affinity.at("preferredDuringSchedulingIgnoredDuringExecution").items() {
			terms = append(terms, p.at("podAffinityTerm"))
		}
		for _, t := range terms {
			if all := t.at("namespaceSelector"); all.raw != nil {
				hits = append(hits, all.hit("namespaceSelector not allowed"))
			}
			for _, ns := range t.at("namespaces").items() {
				if !ns.is(s.Namespace) {
					hits = append(hits, ns.hit("a namespace other than the addon's"))
				}
			}
		}
	}
	return hits
}

// repelled are the terms about the pods that may not run where the pods of an object do, nor the other way round.
func (o *object) repelled() []value {
	return o.pod().at("affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution").items()
}

// ownAntiAffinity wants each of these terms held by a label that the addon's own pods have and, as far as can be told
// without the cluster, no others.
func ownAntiAffinity(s *scope, o *object) []hit {
	var hits []hit
	for _, t := range o.repelled() {
		selector := t.at("labelSelector")
		if selector.raw != nil && !s.ownPods(selector) { // none selects nothing
			hits = append(hits, selector.hit("must require a label that only the addon's own pods have"))
		}
	}
	return hits
}

// ownPods tells whether a selector requires a label to have a value that pods of this chart have, and one that is not
// there to be shared.
func (s *scope) ownPods(selector value) bool {
	anchored := func(key string, values []value) bool {
		if sharedLabel(key) || len(values) == 0 {
			return false
		}
		return !slices.ContainsFunc(values, func(v value) bool { return !s.ownLabel(key, v.text()) })
	}
	for _, k := range selector.at("matchLabels").keys() {
		if anchored(k, []value{selector.at("matchLabels", k)}) {
			return true
		}
	}
	return slices.ContainsFunc(selector.at("matchExpressions").items(), func(e value) bool {
		return e.at("operator").is("In") && anchored(e.at("key").text(), e.at("values").items())
	})
}

// sharedLabel knows the labels that say what an object has in common with others.
func sharedLabel(key string) bool {
	switch key {
	case "app.kubernetes.io/part-of", "app.kubernetes.io/managed-by", "app.kubernetes.io/version", "app.kubernetes.io/component":
		return true
	}
	return false
}

// ownLabel tells whether pods of this chart have a label, as they will be applied.
func (s *scope) ownLabel(key, text string) bool {
	if key == v1alpha1.LabelAddon {
		return text == s.Addon
	}
	return slices.ContainsFunc(s.objects, func(w *object) bool {
		if strings.HasPrefix(key, markPrefix) {
			return key == v1alpha1.LabelComponent && w.id.Kind == kindDeployment && w.id.Name == text
		}
		return w.template().at("metadata", "labels", key).is(text)
	})
}

// noSubdomain refuses the one field by which pods get names of more than one part.
func noSubdomain(_ *scope, o *object) []hit {
	return filled("subdomain not allowed", o.pod().at("subdomain"))
}

func noJobSelector(_ *scope, o *object) []hit {
	spec := o.root.at("spec")
	return append(filled("selector not allowed", spec.at("selector")),
		unlessBool(spec.at("manualSelector"), false, "manualSelector must not be true")...)
}
