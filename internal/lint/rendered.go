package lint

import (
	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/manifest"
)

// rendered is one set of objects as those see it that refer to each other.
type rendered struct {
	// keys are those of Secrets and ConfigMaps, by Kind/name; of what the platform hands over, too.
	keys     map[string]map[string]bool
	secrets  map[string]spot
	claims   map[string]spot
	services []manifest.Object
	pods     []workload
	// handed tells which of the Secrets are the platform's.
	handed map[string]bool
}

// workload is a Deployment or Job.
type workload struct {
	manifest.Object
	pod    spot
	labels map[string]any
}

// tlsKeys are the keys of zaentrum.events.tlsSecret (contract §1).
var tlsKeys = []string{"user.crt", "user.key", "ca.crt"}

func newRendered(set manifest.Set, platform map[string]any) *rendered {
	r := &rendered{keys: map[string]map[string]bool{}, secrets: map[string]spot{}, claims: map[string]spot{}, handed: map[string]bool{}}
	if name := text(platform, "events", "tlsSecret"); name != "" {
		keys := map[string]bool{}
		for _, key := range tlsKeys {
			keys[key] = true
		}
		r.keys["Secret/"+name], r.handed["Secret/"+name] = keys, true
	}
	for _, o := range set {
		id, root := o.ID(), spotOf(o)
		switch id.APIVersion + " " + id.Kind {
		case "v1 Secret":
			r.keys[id.String()], r.handed[id.String()] = keysOf(root, "data", "stringData"), false
			r.secrets[id.Name] = root
		case "v1 ConfigMap":
			r.keys[id.String()] = keysOf(root, "data", "binaryData")
		case "v1 PersistentVolumeClaim":
			r.claims[id.Name] = root
		case "v1 Service":
			r.services = append(r.services, o)
		case "apps/v1 Deployment", "batch/v1 Job":
			r.pods = append(r.pods, workload{o, root.at("spec", "template", "spec"), podLabels(root, id)})
		}
	}
	return r
}

// podLabels are the labels of a workload's pods, with the one that the operator adds.
func podLabels(root spot, id manifest.ID) map[string]any {
	out := map[string]any{}
	for key, v := range root.at("spec", "template", "metadata", "labels").fields() {
		out[key] = v
	}
	if id.Kind == "Deployment" {
		out[v1alpha1.LabelComponent] = id.Name
	}
	return out
}

func keysOf(root spot, parts ...string) map[string]bool {
	out := map[string]bool{}
	for _, part := range parts {
		for key, v := range root.at(part).fields() {
			if v != nil {
				out[key] = true
			}
		}
	}
	return out
}

// selected are the workloads whose pods fit a selector that says something.
func (r *rendered) selected(selector map[string]any) []workload {
	var out []workload
	for _, w := range r.pods {
		fits := len(selector) > 0
		for key, v := range selector {
			fits = fits && w.labels[key] == v && v != nil
		}
		if fits {
			out = append(out, w)
		}
	}
	return out
}

// containers are those that run, the ones before the others first.
func (w workload) containers() []spot {
	return append(w.pod.at("initContainers").items(), w.pod.at("containers").items()...)
}

// serving are the containers that run as long as the pod does, whose ports Services find.
func (w workload) serving() []spot {
	var out []spot
	for _, c := range w.pod.at("initContainers").items() {
		if c.at("restartPolicy").text() == "Always" {
			out = append(out, c)
		}
	}
	return append(out, w.pod.at("containers").items()...)
}
