package guard

import (
	"strings"

	"zaentrum.io/zae/api/v1alpha1"
)

// Rules about Secrets, Services, PersistentVolumeClaims and ServiceAccounts.

func secretType(_ *scope, o *object) []hit {
	t := o.root.at("type")
	if t.anyOf("Opaque", "kubernetes.io/tls", "kubernetes.io/dockerconfigjson", "kubernetes.io/basic-auth", "kubernetes.io/ssh-auth") {
		return nil
	}
	return []hit{t.hit("type of Secret not allowed")}
}

func serviceType(_ *scope, o *object) []hit {
	t := o.root.at("spec", "type")
	if t.anyOf("ClusterIP") {
		return nil
	}
	return []hit{t.hit("type of Service other than ClusterIP not allowed")}
}

func noExternalAddress(_ *scope, o *object) []hit {
	spec := o.root.at("spec")
	var hits []hit
	for _, k := range []string{"externalIPs", "externalName", "loadBalancerIP", "loadBalancerSourceRanges", "loadBalancerClass"} {
		hits = append(hits, filled(k+" not allowed", spec.at(k))...)
	}
	return hits
}

func noClusterAddress(_ *scope, o *object) []hit {
	spec := o.root.at("spec")
	var hits []hit
	for _, ip := range append([]value{spec.at("clusterIP")}, spec.at("clusterIPs").items()...) {
		if !ip.anyOf("None") {
			hits = append(hits, ip.hit("a chosen address not allowed"))
		}
	}
	return hits
}

// noExistingVolume looks at the class, too: an empty one is no class, and such a claim is bound to a volume that
// somebody made by hand. One that is left out is the cluster's default.
func noExistingVolume(_ *scope, o *object) []hit {
	spec := o.root.at("spec")
	var hits []hit
	for _, k := range []string{"volumeName", "dataSource", "dataSourceRef"} {
		hits = append(hits, filled(k+" not allowed", spec.at(k))...)
	}
	if class := spec.at("storageClassName"); class.is("") {
		hits = append(hits, class.hit("an empty storageClassName binds an existing volume"))
	}
	return hits
}

func claimSelector(_ *scope, o *object) []hit {
	return filled("selects an existing volume by its labels", o.root.at("spec", "selector"))
}

// manyObjects is the number of objects from which on not every Service is held against every workload.
const manyObjects = 1000

// serviceSelectsOwnPods warns of a selector that fits none of the chart's pods: it fits somebody else's,
// or nothing.
func serviceSelectsOwnPods(s *scope, o *object) []hit {
	selector := o.root.at("spec", "selector")
	if selector.blank() || len(s.objects) > manyObjects {
		return nil
	}
	for _, w := range s.objects {
		if w.template().raw != nil && selects(selector, w) {
			return nil
		}
	}
	return []hit{selector.hit("selects none of the chart's pods")}
}

// selects tells whether the pods of w, with the label that the operator adds to them, fit a selector.
func selects(selector value, w *object) bool {
	labels := w.template().at("metadata", "labels")
	for _, k := range selector.keys() {
		want := selector.at(k)
		fits := want.text() == labels.at(k).text() && labels.at(k).raw != nil
		if strings.HasPrefix(k, markPrefix) {
			fits = k == v1alpha1.LabelComponent && w.id.Kind == kindDeployment && want.is(w.id.Name)
		}
		if !fits {
			return false
		}
	}
	return true
}

func serviceAccountSecrets(s *scope, o *object) []hit {
	var hits []hit
	for _, list := range []string{"secrets", "imagePullSecrets"} {
		for _, e := range o.root.at(list).items() {
			hits = append(hits, s.foreignSecret(e.at("name"))...)
			if ns := e.at("namespace"); !ns.blank() && !ns.is(s.Namespace) {
				hits = append(hits, ns.hit("a namespace other than the addon's"))
			}
			if kind := e.at("kind"); !kind.anyOf("Secret") {
				hits = append(hits, kind.hit("must be Secret"))
			}
		}
	}
	return hits
}
