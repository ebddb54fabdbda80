package plan

import (
	"math"
	"slices"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/manifest"
)

// isWorkload tells whether the object is a Deployment or a Job. The kind decides, not the API version: a
// plan shows a workload in a version that the guardrails refuse, too.
func isWorkload(o manifest.Object) bool {
	kind := o.ID().Kind
	return kind == "Deployment" || kind == "Job"
}

func workload(o manifest.Object) v1alpha1.Workload {
	id := o.ID()
	w := v1alpha1.Workload{Kind: id.Kind, Name: id.Name}
	for _, c := range containers(o) {
		if c.image != "" && !slices.Contains(w.Images, c.image) {
			w.Images = append(w.Images, c.image)
		}
		for _, p := range c.ports {
			if !slices.Contains(w.Ports, p) {
				w.Ports = append(w.Ports, p)
			}
		}
	}
	return w
}

type container struct {
	name, image string
	ports       []int32
}

// containers are the init containers, then the containers. What has the wrong type is left out: saying so is
// the guardrails' business.
func containers(o manifest.Object) []container {
	spec := field(field(field(o.Tree, "spec"), "template"), "spec")
	var out []container
	for _, list := range []string{"initContainers", "containers"} {
		for _, item := range items(spec, list) {
			c := container{}
			c.name, _ = item["name"].(string)
			c.image, _ = item["image"].(string)
			for _, p := range items(item, "ports") {
				if n, ok := p["containerPort"].(int64); ok && n > 0 && n <= math.MaxInt32 {
					c.ports = append(c.ports, int32(n))
				}
			}
			out = append(out, c)
		}
	}
	return out
}

func field(tree map[string]any, name string) map[string]any {
	m, _ := tree[name].(map[string]any)
	return m
}

func items(tree map[string]any, name string) []map[string]any {
	list, _ := tree[name].([]any)
	var out []map[string]any
	for _, i := range list {
		if m, ok := i.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}
