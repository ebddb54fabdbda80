package apply

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"zaentrum.io/zae/api/v1alpha1"
)

// maxPath is the longest path of a field in bytes. The names in it are the chart's.
const maxPath = 512

// changedFields are the paths at which two answers of the API server about one object differ, sorted and each
// once, never with a value. What only the API server sets, the status and our own digests do not count.
//
// A list that Kubernetes merges by key shows the item by its key, as in spec.template.spec.containers[worker].image;
// another one shows it by index while both are equally long, else the list. What comes or goes as a whole is one path,
// but for the entries of free maps (data, labels, annotations), which show each.
func changedFields(live, next map[string]any) []string {
	var d differ
	for _, key := range keys(live, next) {
		switch key {
		case "apiVersion", "kind", "status":
		case "metadata":
			d.metadata(asMap(live[key]), asMap(next[key]))
		case "data":
			a, b := live[key], next[key]
			if isSecret(live) && isSecret(next) {
				a, b = digests(live), digests(next)
			}
			d.compare(key, key, a, b)
		default:
			d.compare(key, key, live[key], next[key])
		}
	}
	slices.Sort(d.paths)
	return slices.Compact(d.paths)
}

type differ struct{ paths []string }

// metadata compares what of an object's metadata somebody else than the API server sets.
func (d *differ) metadata(live, next map[string]any) {
	for _, key := range []string{"labels", "annotations", "ownerReferences", "finalizers"} {
		a, b := live[key], next[key]
		if key == "annotations" {
			a, b = withoutMarks(a), withoutMarks(b)
		}
		d.compare("metadata."+key, key, a, b)
	}
}

// free are the maps whose keys are anybody's, so that each entry is a field of its own.
var free = []string{"data", "binaryData", "labels", "annotations", "matchLabels", "nodeSelector", "limits", "requests"}

// compare notes where a and b differ. name is the last step of the path.
func (d *differ) compare(path, name string, a, b any) {
	if reflect.DeepEqual(a, b) {
		return
	}
	am, aIsMap := a.(map[string]any)
	bm, bIsMap := b.(map[string]any)
	if aIsMap && bIsMap || slices.Contains(free, name) && (a == nil && bIsMap || b == nil && aIsMap) {
		for _, key := range keys(am, bm) {
			d.compare(fieldAt(path, key), key, am[key], bm[key])
		}
		return
	}
	al, aIsList := a.([]any)
	bl, bIsList := b.([]any)
	switch {
	case (aIsList || a == nil) && (bIsList || b == nil) && d.keyed(path, name, al, bl):
	case aIsList && bIsList && len(al) == len(bl) && areMaps(al) && areMaps(bl):
		for i := range al {
			d.compare(fmt.Sprintf("%s[%d]", path, i), "", al[i], bl[i])
		}
	default:
		d.note(path)
	}
}

// keyed compares two lists item by item, if they are ones that are merged by key.
func (d *differ) keyed(path, list string, a, b []any) bool {
	before, ok := byKey(list, a)
	if !ok {
		return false
	}
	after, ok := byKey(list, b)
	if !ok {
		return false
	}
	n := len(d.paths)
	for _, key := range keys(before, after) {
		d.compare(item(path, key), "", before[key], after[key])
	}
	if len(d.paths) == n { // only the order differs
		d.note(path)
	}
	return true
}

func (d *differ) note(path string) {
	d.paths = append(d.paths, shortened(path))
}

// mergeKeys are the lists that the API server merges by key, and their keys; ports are a case of their own.
var mergeKeys = map[string][]string{
	"containers":                {"name"},
	"initContainers":            {"name"},
	"ephemeralContainers":       {"name"},
	"env":                       {"name"},
	"volumes":                   {"name"},
	"imagePullSecrets":          {"name"},
	"secrets":                   {"name"},
	"resourceClaims":            {"name"},
	"schedulingGates":           {"name"},
	"ownerReferences":           {"name"},
	"volumeMounts":              {"mountPath"},
	"volumeDevices":             {"devicePath"},
	"hostAliases":               {"ip"},
	"topologySpreadConstraints": {"topologyKey", "whenUnsatisfiable"},
}

// byKey are the items of a list that is merged by key. It is false when the list is none, or holds what has no
// key or one that another item has.
func byKey(list string, items []any) (map[string]any, bool) {
	out := make(map[string]any, len(items))
	for _, i := range items {
		key, ok := mergeKey(list, asMap(i))
		if _, twice := out[key]; !ok || twice {
			return nil, false
		}
		out[key] = i
	}
	return out, list == "ports" || mergeKeys[list] != nil
}

func mergeKey(list string, item map[string]any) (string, bool) {
	if list == "ports" {
		return portKey(item)
	}
	var parts []string
	for _, name := range mergeKeys[list] {
		part, ok := item[name].(string)
		if !ok {
			return "", false
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "/"), len(parts) > 0
}

// portKey is the number of a container's or a Service's port, with its protocol when that is not the usual one.
func portKey(port map[string]any) (string, bool) {
	n, ok := port["containerPort"].(int64)
	if !ok {
		if n, ok = port["port"].(int64); !ok {
			return "", false
		}
	}
	key := fmt.Sprint(n)
	if protocol, _ := port["protocol"].(string); protocol != "" && protocol != "TCP" {
		key += "/" + protocol
	}
	return key, true
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// fieldAt is the path of a field below another one. A name that a dot could be mistaken in stands in brackets.
func fieldAt(path, name string) string {
	if !plainName.MatchString(name) {
		return item(path, name)
	}
	return path + "." + name
}

func item(path, key string) string { return path + "[" + key + "]" }

func keys(a, b map[string]any) []string {
	all := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(all)
	return slices.Compact(all)
}

func asMap(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// withoutMarks are an object's annotations without our own digests and kubectl's copy; nil for none.
func withoutMarks(annotations any) any {
	out := maps.Clone(asMap(annotations))
	for _, mark := range []string{v1alpha1.AnnotationApplied, v1alpha1.AnnotationRun, lastApplied} {
		delete(out, mark)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func areMaps(list []any) bool {
	return !slices.ContainsFunc(list, func(v any) bool { _, ok := v.(map[string]any); return !ok })
}

// jobLabels are what the API server puts on a Job's pods when the Job is created.
var jobLabels = []string{"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"}

// asCreated is a copy of a Job without what differs each time it is created.
func asCreated(job map[string]any) map[string]any {
	out := maps.Clone(job)
	meta := maps.Clone(asMap(job["metadata"]))
	spec := maps.Clone(asMap(job["spec"]))
	delete(meta, "finalizers")
	delete(spec, "selector")
	template := maps.Clone(asMap(spec["template"]))
	podMeta := maps.Clone(asMap(template["metadata"]))
	for _, m := range []map[string]any{meta, podMeta} {
		labels := maps.Clone(asMap(m["labels"]))
		for _, l := range jobLabels {
			delete(labels, l)
		}
		if m != nil {
			m["labels"] = labels
		}
	}
	if template != nil {
		template["metadata"] = podMeta
		spec["template"] = template
	}
	out["metadata"], out["spec"] = meta, spec
	return out
}
