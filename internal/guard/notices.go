package guard

import (
	"regexp"
	"slices"
	"strings"
)

// Notices: what an admin should know before installing, and what forbids nothing. In them, what the platform
// itself hands over is named once more, since a chart that uses it has it in its hands.

// pinnedDigest tells of images that can change unseen.
func pinnedDigest(_ *scope, o *object) []hit {
	var hits []hit
	for _, c := range o.containers() {
		image := c.at("image")
		name, digest, pinned := strings.Cut(image.text(), "@")
		if name == "" || pinned && imageDigest.MatchString(digest) {
			continue
		}
		_, tag, _ := strings.Cut(name[strings.LastIndexByte(name, '/')+1:], ":")
		switch {
		case pinned:
			hits = append(hits, image.hit("the image's digest is none"))
		case tag == "":
			hits = append(hits, image.hit("the image has no tag and no digest"))
		case tag == "latest":
			hits = append(hits, image.hit("the image's tag is latest, and it has no digest"))
		default:
			hits = append(hits, image.hit("the image has no digest"))
		}
	}
	return hits
}

// imageDigest is what names one content.
var imageDigest = regexp.MustCompile(`^(?:sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128})$`)

// serviceAccountToken looks at pods only: the operator switches the token off where a pod says nothing,
// whatever its service account says.
func serviceAccountToken(_ *scope, o *object) []hit {
	var hits []hit
	if v := o.pod().at("automountServiceAccountToken"); v.unless(false) {
		hits = append(hits, v.hit("mounts a token of its service account"))
	}
	for _, v := range o.pod().at("volumes").items() {
		for _, p := range v.at("projected", "sources").items() {
			hits = append(hits, filled("mounts a token of its service account", p.at("serviceAccountToken"))...)
		}
	}
	return hits
}

func hostAliases(_ *scope, o *object) []hit {
	return filled("names are resolved as the chart says", o.pod().at("hostAliases"))
}

// mediaWritable looks for mounts, since a volume that nothing mounts writes nothing.
func mediaWritable(s *scope, o *object) []hit {
	media := map[string]bool{}
	for _, v := range o.pod().at("volumes").items() {
		claim := v.at("persistentVolumeClaim")
		name := claim.at("claimName").text()
		if name != "" && name == s.MediaClaim && !s.claims[name] && claim.at("readOnly").raw != true {
			media[v.at("name").text()] = true
		}
	}
	var hits []hit
	for _, c := range o.containers() {
		for _, m := range slices.Concat(c.at("volumeMounts").items(), c.at("volumeDevices").items()) {
			if media[m.at("name").text()] && m.at("readOnly").raw != true {
				hits = append(hits, m.hit("can write to the platform's media"))
			}
		}
	}
	return hits
}

// platformSecret tells of the Secret of the events; that of pull secrets is a mistake and has a rule of its own.
func platformSecret(s *scope, o *object) []hit {
	var hits []hit
	for _, name := range mountedSecrets(o) {
		if n := name.text(); n != "" && n == s.EventsTLSSecret && !s.secrets[n] {
			hits = append(hits, name.hit("reads the platform's credentials for its events"))
		}
	}
	return hits
}

// workloadIdentity knows the marks by which the large clouds give pods an identity of theirs.
func workloadIdentity(_ *scope, o *object) []hit {
	var hits []hit
	for _, marks := range o.marks() {
		for _, k := range marks.keys() {
			for _, cloud := range []string{"eks.amazonaws.com/", "iam.amazonaws.com/", "iam.gke.io/", "azure.workload.identity/", "aadpodidbinding", "pod-identity.alibabacloud.com/"} {
				if strings.HasPrefix(k, cloud) {
					hits = append(hits, marks.at(k).hit("asks for an identity in the cloud"))
				}
			}
		}
	}
	return hits
}

func runtimeClass(_ *scope, o *object) []hit {
	return filled("asks for a runtime class", o.pod().at("runtimeClassName"))
}

func schedulerName(_ *scope, o *object) []hit {
	v := o.pod().at("schedulerName")
	if v.anyOf("default-scheduler") {
		return nil
	}
	return []hit{v.hit("asks for a scheduler of its own")}
}

func rootGroup(_ *scope, o *object) []hit {
	return contextHits(o, func(sc value) []hit {
		var hits []hit
		for _, v := range append([]value{sc.at("runAsGroup"), sc.at("fsGroup")}, sc.at("supplementalGroups").items()...) {
			if v.zero() {
				hits = append(hits, v.hit("runs with group 0, which is root's"))
			}
		}
		return hits
	})
}

// resourceRequests is content with limits, which are requests too where there are none.
func resourceRequests(_ *scope, o *object) []hit {
	said := func(resources value) bool {
		return !resources.at("requests").blank() || !resources.at("limits").blank()
	}
	if said(o.pod().at("resources")) {
		return nil
	}
	var hits []hit
	for _, c := range o.containers() {
		if r := c.at("resources"); c.raw != nil && !said(r) {
			hits = append(hits, r.hit("no resource requests"))
		}
	}
	return hits
}

// primaryReadiness wants a probe on one container at least of the pods behind the primary Service.
func primaryReadiness(s *scope, o *object) []hit {
	selector := s.primaryObject().at("spec", "selector")
	containers := o.pod().at("containers")
	if selector.blank() || containers.blank() || !selects(selector, o) {
		return nil
	}
	for _, c := range containers.items() {
		if !c.at("readinessProbe").blank() {
			return nil
		}
	}
	return []hit{containers.hit("no readiness probe on the primary")}
}

func primaryReachable(s *scope, o *object) []hit {
	if s.primary() == "" || o.id.Name != s.primary() {
		return nil
	}
	spec := o.root.at("spec")
	var hits []hit
	if ip := spec.at("clusterIP"); ip.is("None") {
		hits = append(hits, ip.hit("the primary Service is headless"))
	}
	if selector := spec.at("selector"); selector.blank() {
		hits = append(hits, selector.hit("the primary Service selects nothing"))
	}
	return hits
}

// primaryObject is the Service that the chart's annotation names, or nothing.
func (s *scope) primaryObject() value {
	if s.primary() != "" {
		for _, o := range s.objects {
			if o.id.Kind == kindService && o.id.Name == s.primary() {
				return o.root
			}
		}
	}
	return value{}
}
