package lint

import (
	"math"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// mounts looks for mounts of volumes that the pod does not have, of files that a volume does not have, and for
// volumes that nothing mounts.
func (c *referring) mounts() {
	volumes, mounted := map[string]spot{}, map[string]bool{}
	for _, v := range c.pod.at("volumes").items() {
		volumes[v.at("name").text()] = v
	}
	for _, container := range c.containers() {
		for _, m := range slices.Concat(container.at("volumeMounts").items(), container.at("volumeDevices").items()) {
			name := m.at("name")
			volume, there := volumes[name.text()]
			mounted[name.text()] = true
			if name.text() == "" {
				continue
			}
			if !there {
				c.tell("missing-volume", name, "the pod has no volume %s", c.written(name.text(), "of this name"))
				continue
			}
			c.subPath(volume, m.at("subPath"))
		}
	}
	for _, v := range c.pod.at("volumes").items() {
		if name := v.at("name"); name.text() != "" && !mounted[name.text()] {
			c.tell("volume-unused", name, "no container mounts the volume %s", c.written(name.text(), "named here"))
		}
	}
}

// subPath looks for a file in volumes whose files are known. The kubelet makes a directory of one that is not there.
func (c *referring) subPath(volume, sub spot) {
	if sub.text() == "" {
		return
	}
	files, known := c.filesOf(volume)
	wanted := path.Clean(sub.text())
	if !known || slices.ContainsFunc(files, func(file string) bool {
		file = path.Clean(file)
		return file == wanted || strings.HasPrefix(file, wanted+"/")
	}) {
		return
	}
	c.tell("missing-key", sub, "the volume %s has no file %s", c.written(volume.at("name").text(), "named here"), c.written(sub.text(), "of this name"))
}

// filesOf are the files of a volume; known is false when they are not what the chart says.
func (c *referring) filesOf(volume spot) (files []string, known bool) {
	add := func(kind string, source spot, name string) bool {
		keys, rendered := c.keys[kind+"/"+source.at(name).text()]
		switch items := source.at("items"); {
		case !items.blank():
			files = append(files, paths(items)...)
		case !rendered:
			return false
		default:
			for key := range keys {
				files = append(files, key)
			}
		}
		return true
	}
	known = true
	source := func(s spot, secretName string) {
		switch {
		case s.at("secret").raw != nil:
			known = add("Secret", s.at("secret"), secretName) && known
		case s.at("configMap").raw != nil:
			known = add("ConfigMap", s.at("configMap"), "name") && known
		case s.at("downwardAPI").raw != nil:
			files = append(files, paths(s.at("downwardAPI", "items"))...)
		case s.at("serviceAccountToken").raw != nil:
			files = append(files, s.at("serviceAccountToken", "path").text())
		default:
			known = false
		}
	}
	if volume.at("projected").raw == nil {
		source(volume, "secretName")
		return files, known
	}
	for _, s := range volume.at("projected", "sources").items() {
		source(s, "name")
	}
	return files, known
}

func paths(items spot) []string {
	var out []string
	for _, item := range items.items() {
		out = append(out, item.at("path").text())
	}
	return out
}

// The access modes of a claim, as far as they bound who mounts it.
const (
	manyNodes = iota
	oneNode   // ReadWriteOnce: pods on one node
	onePod    // ReadWriteOncePod
)

// access is how a claim that the chart renders may be mounted. Nothing is known of others.
func (r *rendered) access(name string) int {
	claim, own := r.claims[name]
	if !own {
		return manyNodes
	}
	modes := map[string]bool{}
	for _, mode := range claim.at("spec", "accessModes").items() {
		modes[mode.text()] = true
	}
	switch {
	case modes["ReadWriteMany"] || modes["ReadOnlyMany"]:
		return manyNodes
	case modes["ReadWriteOncePod"]:
		return onePod
	case modes["ReadWriteOnce"]:
		return oneNode
	}
	return manyNodes
}

// claimed are the places where the pod names claims.
func (w workload) claimed() []spot {
	var out []spot
	for _, v := range w.pod.at("volumes").items() {
		if claim := v.at("persistentVolumeClaim", "claimName"); claim.text() != "" {
			out = append(out, claim)
		}
	}
	return out
}

// copies is how many pods there may be at a time.
func (w workload) copies() spot {
	if w.ID().Kind == "Job" {
		return spotOf(w.Object).at("spec", "parallelism")
	}
	return spotOf(w.Object).at("spec", "replicas")
}

// claimReferences looks for claims that the pods of one workload cannot all mount.
func (c *referring) claimReferences() {
	for _, claim := range c.claimed() {
		access := c.access(claim.text())
		copies := c.copies()
		if access == manyNodes || copies.number(1) == 0 {
			continue
		}
		named := c.written(claim.text(), "named here")
		switch {
		case copies.number(1) > 1 && access == onePod:
			c.severe("claim-shared", copies, Error, "several pods mount the claim %s, which is for one pod", named)
		case copies.number(1) > 1 && !c.together():
			c.tell("claim-shared", copies, "several pods mount the claim %s, which is for one node", named)
		}
		if !c.surges() {
			continue
		}
		severity := Warning
		if access == onePod {
			severity = Error
		}
		c.severe("claim-rollout", c.strategy(), severity, "a new pod waits for the claim %s, and the old one ends when the new one is ready", named)
	}
}

func (c *referring) strategy() spot { return spotOf(c.Object).at("spec", "strategy") }

// surges tells whether a rollout ends no old pod before a new one is ready.
func (c *referring) surges() bool {
	if t := c.strategy().at("type").text(); c.ID().Kind != "Deployment" || t != "" && t != "RollingUpdate" {
		return false
	}
	replicas := int(c.copies().number(1))
	rolling := c.strategy().at("rollingUpdate")
	surge, unavailable := share(rolling.at("maxSurge"), replicas, true), share(rolling.at("maxUnavailable"), replicas, false)
	return surge > 0 && unavailable == 0
}

// share is a number of pods, or a part of all of them, as a rollout counts: a quarter where nothing is said.
func share(s spot, replicas int, up bool) int {
	v := intstr.FromString("25%")
	switch raw := s.raw.(type) {
	case int64:
		v = intstr.FromInt32(int32(min(max(raw, 0), math.MaxInt32)))
	case string:
		v = intstr.FromString(raw)
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(&v, replicas, up)
	if err != nil {
		return 1
	}
	return n
}

// together tells whether the pods say where they want to run beside others.
func (w workload) together() bool {
	return !w.pod.at("affinity", "podAffinity", "requiredDuringSchedulingIgnoredDuringExecution").blank()
}

// sharedClaims looks for claims that several workloads mount, and only one can.
func (l *linter) sharedClaims(r *rendered, number int) {
	first := map[string]workload{}
	for _, w := range r.pods {
		if w.copies().number(1) == 0 {
			continue
		}
		for _, claim := range w.claimed() {
			access := r.access(claim.text())
			other, taken := first[claim.text()]
			if !taken {
				first[claim.text()] = w
				continue
			}
			c := &referring{linter: l, rendered: r, workload: w, row: number}
			switch {
			case other.ID() == w.ID() || access == manyNodes:
			case access == onePod:
				c.severe("claim-shared", claim, Error, "%s mounts the claim, too, which is for one pod", l.told(other.ID().Kind, other.ID().Name))
			case !w.together() && !other.together():
				c.tell("claim-shared", claim, "%s mounts the claim, too, which is for one node", l.told(other.ID().Kind, other.ID().Name))
			}
		}
	}
}
