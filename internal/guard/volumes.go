package guard

import (
	"slices"
)

// Rules about volumes, and about the Secrets, ConfigMaps, claims and service accounts that pods name.

func noHostPath(_ *scope, o *object) []hit {
	var hits []hit
	for _, v := range o.pod().at("volumes").items() {
		if v.at("hostPath").raw != nil {
			hits = append(hits, v.hit("hostPath volume not allowed"))
		}
	}
	return hits
}

// allowedVolume lists what a volume may be. A volume that says nothing is an emptyDir, as in Kubernetes.
//
// A clusterTrustBundle is an object of the cluster's, but it holds only certificates that everybody is meant to
// trust. A podCertificate has a signer of the cluster's vouch for the pod to whoever trusts it, so it is not allowed.
func allowedVolume(_ *scope, o *object) []hit {
	var hits []hit
	for _, v := range o.pod().at("volumes").items() {
		for _, k := range sources(v) {
			switch k {
			case "configMap", "secret", "emptyDir", "projected", "downwardAPI", "persistentVolumeClaim":
			case "hostPath": // has a rule of its own
			default:
				hits = append(hits, v.hit("%s volume not allowed", clean(k, maxKind)))
			}
		}
		for _, p := range v.at("projected", "sources").items() {
			for _, k := range sources(p) {
				switch k {
				case "configMap", "secret", "downwardAPI", "serviceAccountToken", "clusterTrustBundle":
				default:
					hits = append(hits, p.hit("projected %s not allowed", clean(k, maxKind)))
				}
			}
		}
	}
	return hits
}

func oneVolumeSource(_ *scope, o *object) []hit {
	var hits []hit
	for _, v := range o.pod().at("volumes").items() {
		if len(sources(v)) > 1 {
			hits = append(hits, v.hit("more than one source in a volume"))
		}
		for _, p := range v.at("projected", "sources").items() {
			if len(sources(p)) > 1 {
				hits = append(hits, p.hit("more than one source in a projection"))
			}
		}
	}
	return hits
}

// sources are the fields that say where a volume's content is from: all but its name, unless null.
func sources(volume value) []string {
	return slices.DeleteFunc(volume.keys(), func(k string) bool {
		return k == "name" || volume.at(k).raw == nil
	})
}

func ownClaims(s *scope, o *object) []hit {
	var hits []hit
	for _, v := range o.pod().at("volumes").items() {
		claim := v.at("persistentVolumeClaim")
		if claim.raw == nil {
			continue
		}
		name := claim.at("claimName")
		if n := name.text(); n == "" || !s.claims[n] && n != s.MediaClaim {
			hits = append(hits, name.foreign("PersistentVolumeClaim"))
		}
	}
	return hits
}

func ownSecrets(s *scope, o *object) []hit {
	var hits []hit
	for _, name := range slices.Concat(mountedSecrets(o), pullSecrets(o)) {
		hits = append(hits, s.foreignSecret(name)...)
	}
	return hits
}

func ownConfigMaps(s *scope, o *object) []hit {
	var hits []hit
	for _, name := range references(o, "configMap", "name", "configMapKeyRef", "configMapRef") {
		if !s.configMaps[name.text()] {
			hits = append(hits, name.foreign("ConfigMap"))
		}
	}
	return hits
}

// ownServiceAccount looks at the field's older name too, which the API server still reads.
func ownServiceAccount(s *scope, o *object) []hit {
	var hits []hit
	for _, field := range []string{"serviceAccountName", "serviceAccount"} {
		name := o.pod().at(field)
		if !name.anyOf("default") && !s.serviceAccounts[name.text()] {
			hits = append(hits, name.foreign("ServiceAccount"))
		}
	}
	return hits
}

// pullSecretInPod warns of a platform's pull secret whose content a pod reads, rather than pulls with.
func pullSecretInPod(s *scope, o *object) []hit {
	var hits []hit
	for _, name := range mountedSecrets(o) {
		if n := name.text(); slices.Contains(s.ImagePullSecrets, n) && !s.secrets[n] {
			hits = append(hits, name.hit("reads a pull secret of the platform"))
		}
	}
	return hits
}

// mountedSecrets are the places where a pod names a Secret to read it.
func mountedSecrets(o *object) []value {
	return references(o, "secret", "secretName", "secretKeyRef", "secretRef")
}

// pullSecrets are the places where a pod names a Secret to pull its images with.
func pullSecrets(o *object) []value {
	var names []value
	for _, e := range o.pod().at("imagePullSecrets").items() {
		names = append(names, e.at("name"))
	}
	return names
}

// references are the names of Secrets or of ConfigMaps that a pod reads. Both are named in the same
// places, by fields of other names: as a volume's source, in a projection, and by a key or as a whole in
// a container's environment.
func references(o *object, source, volumeName, keyRef, wholeRef string) []value {
	var names []value
	add := func(ref value, field string) {
		if ref.raw != nil {
			names = append(names, ref.at(field))
		}
	}
	for _, v := range o.pod().at("volumes").items() {
		add(v.at(source), volumeName)
		for _, p := range v.at("projected", "sources").items() {
			add(p.at(source), "name")
		}
	}
	for _, c := range o.containers() {
		for _, e := range c.at("env").items() {
			add(e.at("valueFrom", keyRef), "name")
		}
		for _, e := range c.at("envFrom").items() {
			add(e.at(wholeRef), "name")
		}
	}
	return names
}

// foreignSecret is a finding unless the chart renders the Secret or the platform hands it over.
func (s *scope) foreignSecret(name value) []hit {
	n := name.text()
	if n != "" && (s.secrets[n] || n == s.EventsTLSSecret || slices.Contains(s.ImagePullSecrets, n)) {
		return nil
	}
	return []hit{name.foreign("Secret")}
}

// foreign says that the object named here is none of the chart's.
func (v value) foreign(kind string) hit {
	if v.text() == "" {
		return v.hit("names no %s", kind)
	}
	return v.hit("%s %s is not rendered by the chart", kind, clean(v.text(), maxName))
}
