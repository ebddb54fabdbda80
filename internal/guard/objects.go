package guard

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"zaentrum.io/zae/api/v1alpha1"
)

// Rules about objects of every kind.

func allowedKind(_ *scope, o *object) []hit {
	version := allowedVersion(o.id.Kind)
	switch {
	case o.id.Kind == "":
		return []hit{o.root.at("kind").hit("no kind")}
	case version == "":
		return []hit{{what: "kind not allowed"}}
	case o.id.APIVersion != version:
		return []hit{o.root.at("apiVersion").hit("only allowed in apiVersion %s", version)}
	}
	return nil
}

// validName asks of a name what the API server asks, and that the name of a workload also fits the
// label which the operator or the Job controller makes of it.
func validName(_ *scope, o *object) []hit {
	var hits []hit
	meta := o.root.at("metadata")
	if g := meta.at("generateName"); !g.blank() {
		hits = append(hits, g.hit("generateName not allowed"))
	}
	name := meta.at("name")
	if o.id.Name == "" {
		return append(hits, name.hit("no name"))
	}
	var problems []string
	switch o.id.Kind {
	case kindService:
		problems = validation.IsDNS1123Label(o.id.Name)
	case kindDeployment, kindJob:
		problems = append(validation.IsDNS1123Subdomain(o.id.Name), validation.IsValidLabelValue(o.id.Name)...)
	case kindServiceAccount, kindSecret, kindConfigMap, kindClaim:
		problems = validation.IsDNS1123Subdomain(o.id.Name)
	}
	if len(problems) > 0 {
		hits = append(hits, name.hit("not a valid name for a %s", o.id.Kind))
	}
	return hits
}

func ownNamespace(s *scope, o *object) []hit {
	var hits []hit
	for _, meta := range []value{o.root.at("metadata"), o.template().at("metadata")} {
		if ns := meta.at("namespace"); !ns.blank() && !ns.is(s.Namespace) {
			hits = append(hits, ns.hit("a namespace other than the addon's"))
		}
	}
	return hits
}

func uniqueObject(_ *scope, o *object) []hit {
	if !o.again {
		return nil
	}
	return []hit{{what: "rendered twice"}}
}

func reservedName(_ *scope, o *object) []hit {
	if !strings.HasPrefix(o.id.Name, v1alpha1.ReservedPrefix) {
		return nil
	}
	return []hit{o.root.at("metadata", "name").hit("names starting with %s are reserved", v1alpha1.ReservedPrefix)}
}

// othersName refuses the names under which the cluster, Helm and the platform look for what is theirs.
func othersName(s *scope, o *object) []hit {
	theirs := func(whose string) []hit {
		return []hit{o.root.at("metadata", "name").hit("the name of %s", whose)}
	}
	switch name := o.id.Name; {
	case name == "":
		return nil
	case o.id.Kind == kindServiceAccount && name == "default",
		o.id.Kind == kindConfigMap && (name == "kube-root-ca.crt" || name == "openshift-service-ca.crt"),
		o.id.Kind == kindService && name == "kubernetes":
		return theirs("the cluster's own")
	case o.id.Kind == kindService && name == "localhost":
		return theirs("each pod itself")
	case o.id.Kind == kindClaim && name == s.MediaClaim:
		return theirs("the platform's media claim")
	case o.id.Kind == kindSecret && (name == s.EventsTLSSecret || slices.Contains(s.ImagePullSecrets, name)):
		return theirs("a Secret of the platform")
	case o.id.Kind != kindSecret && o.id.Kind != kindConfigMap:
		return nil
	case strings.HasPrefix(name, "sh.helm.release."):
		return theirs("a release of Helm")
	}
	var hits []hit
	labels := o.root.at("metadata", "labels")
	for _, k := range labels.keys() {
		if v := labels.at(k); strings.EqualFold(k, "owner") && (strings.EqualFold(v.text(), "helm") || strings.EqualFold(v.text(), "tiller")) {
			hits = append(hits, v.hit("the mark of a release of Helm"))
		}
	}
	return hits
}

// noOwnerReferences looks at pod templates too, where they do nothing.
func noOwnerReferences(_ *scope, o *object) []hit {
	return filled("ownerReferences not allowed",
		o.root.at("metadata", "ownerReferences"), o.template().at("metadata", "ownerReferences"))
}

// noFinalizers looks at pod templates too: their finalizers are copied to the pods.
func noFinalizers(_ *scope, o *object) []hit {
	return filled("finalizers not allowed",
		o.root.at("metadata", "finalizers"), o.template().at("metadata", "finalizers"))
}

func noServiceAccountAnnotation(_ *scope, o *object) []hit {
	var hits []hit
	annotations := o.root.at("metadata", "annotations")
	for _, k := range annotations.keys() {
		if k == "kubernetes.io/service-account.name" || k == "kubernetes.io/service-account.uid" {
			hits = append(hits, annotations.at(k).hit("annotation not allowed"))
		}
	}
	return hits
}

func noServerMetadata(_ *scope, o *object) []hit {
	meta := o.root.at("metadata")
	var hits []hit
	for _, k := range []string{"uid", "resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields"} {
		hits = append(hits, filled(k+" not allowed", meta.at(k))...)
	}
	return hits
}

func serverSetField(_ *scope, o *object) []hit {
	meta := o.root.at("metadata")
	return filled("is set by the cluster, not by a chart",
		meta.at("generation"), meta.at("creationTimestamp"), meta.at("selfLink"), o.root.at("status"),
		o.template().at("metadata", "name"), o.template().at("metadata", "generateName"))
}

// markPrefix is what the labels begin with that the operator sets, and that it drops when a chart has others.
const markPrefix = "zaentrum.io/"

// reservedLabel warns of marks that the operator sets itself.
func reservedLabel(_ *scope, o *object) []hit {
	var hits []hit
	for _, meta := range []value{o.root.at("metadata"), o.template().at("metadata")} {
		labels := meta.at("labels")
		for _, k := range labels.keys() {
			if strings.HasPrefix(k, markPrefix) {
				hits = append(hits, labels.at(k).hit("zaentrum.io/ labels are set by the operator"))
			}
		}
		annotations := meta.at("annotations")
		for _, k := range annotations.keys() {
			if k == v1alpha1.AnnotationApplied || k == v1alpha1.AnnotationRun || k == v1alpha1.AnnotationValuesChecksum {
				hits = append(hits, annotations.at(k).hit("this annotation is set by the operator"))
			}
		}
	}
	return hits
}

func wrongType(_ *scope, o *object) []hit    { return o.faultHits(mistyped) }
func unknownField(_ *scope, o *object) []hit { return o.faultHits(unknown) }

// validObject asks, besides, that the credentials of a registry are what such credentials are.
func validObject(s *scope, o *object) []hit {
	hits := o.faultHits(invalid)
	if o.id.Kind != kindSecret || !o.root.at("type").is("kubernetes.io/dockerconfigjson") {
		return hits
	}
	const key = ".dockerconfigjson"
	config := o.root.at("stringData", key)
	text, ok := config.raw.(string)
	if config.raw == nil {
		config = o.root.at("data", key)
		decoded, err := base64.StdEncoding.DecodeString(config.text())
		text, ok = string(decoded), err == nil && config.raw != nil
	}
	if ok && (s.MadeUp == nil || !s.MadeUp(text)) && json.Unmarshal([]byte(text), &map[string]any{}) != nil {
		hits = append(hits, config.hit("must be a JSON object"))
	}
	return hits
}

func (o *object) faultHits(of faultKind) []hit {
	var hits []hit
	for _, f := range o.faults {
		if f.of == of {
			hits = append(hits, f.hit)
		}
	}
	return hits
}

// uniqueListEntry finds entries that the API tells apart by their keys and that have the same keys.
// Server-side apply refuses such lists, or merges them oddly. A pull secret that is named twice is not looked at: its
// name is all that it says, and the operator drops the second.
func uniqueListEntry(_ *scope, o *object) []hit {
	var hits []hit
	check := func(list value, keys ...string) {
		seen := map[string]bool{}
		for _, e := range list.items() {
			id, ok := entryID(e, keys)
			if ok && seen[id] {
				hits = append(hits, e.hit("same %s as an entry before it", strings.Join(keys, " and ")))
			}
			seen[id] = true
		}
	}
	if o.id.Kind == kindService {
		check(o.root.at("spec", "ports"), "port", "protocol")
	}
	if o.id.Kind == kindServiceAccount {
		check(o.root.at("secrets"), "name")
	}
	pod := o.pod()
	for _, list := range []string{"volumes", "initContainers", "containers", "resourceClaims", "schedulingGates", "evictionResponders"} {
		check(pod.at(list), "name")
	}
	check(pod.at("hostAliases"), "ip")
	check(pod.at("topologySpreadConstraints"), "topologyKey", "whenUnsatisfiable")
	for _, c := range o.containers() {
		check(c.at("env"), "name")
		check(c.at("ports"), "containerPort", "protocol")
		check(c.at("volumeMounts"), "mountPath")
		check(c.at("volumeDevices"), "devicePath")
		check(c.at("resizePolicy"), "resourceName")
	}
	return hits
}

// entryID is what identifies an entry among its neighbours; an entry without its first key has none.
func entryID(e value, keys []string) (string, bool) {
	parts := make([]string, len(keys))
	for i, k := range keys {
		v := e.at(k)
		switch {
		case v.raw == nil && i == 0:
			return "", false
		case v.raw == nil && k == "protocol":
			parts[i], _ = scalarText("TCP")
		default:
			text, ok := scalarText(v.raw)
			if !ok {
				return "", false
			}
			parts[i] = text
		}
	}
	return strings.Join(parts, "\x00"), true
}

// filled reports the places where anything is said at all.
func filled(what string, places ...value) []hit {
	var hits []hit
	for _, v := range places {
		if !v.blank() {
			hits = append(hits, v.hit("%s", what))
		}
	}
	return hits
}

// anyOf tells whether v says nothing, or one of these strings.
func (v value) anyOf(allowed ...string) bool {
	return v.blank() || slices.ContainsFunc(allowed, v.is)
}
