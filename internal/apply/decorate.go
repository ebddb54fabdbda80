package apply

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/manifest"
)

// Marks are what every object of an owner gets.
type Marks struct {
	Owner Owner
	// Labels go on every object, over those it has.
	Labels map[string]string
	// ComponentLabel is the key of the label that names the Deployment, on Deployments and on their pods.
	// Empty for none.
	ComponentLabel string
	// LabelPrefix is what the keys of labels begin with that nobody but the owner's controller sets: others of them are
	// dropped, from objects and pod templates. Empty for none.
	LabelPrefix string
	// PodLabel is the key of the one of Labels that pods get too. Empty for none.
	PodLabel string
	// ChecksumAnnotation with the value Checksum goes on pod templates, so that a change of the checksum rolls
	// the pods. Either empty for none.
	ChecksumAnnotation, Checksum string
}

// Decorate returns a copy of the set in apply order, as it is to be applied (contract §3):
//
//   - the owner's namespace, the owner as the only owner reference, the labels;
//   - no other label that only the owner's controller sets;
//   - on pod templates the pod label, the component label (Deployments), the checksum, and safe defaults where the
//     pod leaves them unset;
//   - a finished Job stays (no ttlSecondsAfterFinished), and tells which run it is;
//   - what server-side apply trips over is gone: null fields, environment variables given twice (the last one
//     counts, as in Kubernetes), a Secret's stringData (folded into data, or a key that is removed from it
//     would stay for ever), and what the cluster alone sets, such as status;
//   - an annotation with the digest of all that.
//
// The set must have passed the guardrails: what has the wrong type is left for the API server to refuse.
func Decorate(set manifest.Set, m Marks) manifest.Set {
	out := set.Clone().InApplyOrder()
	for _, o := range out {
		decorate(o, m)
	}
	return out
}

// setByServer are the fields of metadata that only the API server sets. Some of them are preconditions in an
// apply, and those are ours to set.
var setByServer = []string{
	"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields",
}

func decorate(o manifest.Object, m Marks) {
	tree := o.Tree
	dropNulls(tree)
	id := o.ID()
	group := id.GVK().Group

	meta := child(tree, "metadata")
	for _, field := range setByServer {
		delete(meta, field)
	}
	meta["namespace"] = m.Owner.Namespace
	meta["ownerReferences"] = []any{map[string]any{
		"apiVersion":         m.Owner.APIVersion,
		"kind":               m.Owner.Kind,
		"name":               m.Owner.Name,
		"uid":                string(m.Owner.UID),
		"controller":         true,
		"blockOwnerDeletion": true,
	}}
	labels := child(meta, "labels")
	m.dropReserved(labels)
	for k, v := range m.Labels {
		labels[k] = v
	}
	annotations := child(meta, "annotations")

	switch {
	case group == "" && id.Kind == "Secret":
		foldStringData(tree)
	case group == "" && (id.Kind == "Service" || id.Kind == "PersistentVolumeClaim"):
		delete(tree, "status")
	case group == "apps" && id.Kind == "Deployment":
		delete(tree, "status")
		template := child(child(tree, "spec"), "template")
		m.dropReserved(child(child(template, "metadata"), "labels"))
		if m.ComponentLabel != "" {
			labels[m.ComponentLabel] = id.Name
			child(child(template, "metadata"), "labels")[m.ComponentLabel] = id.Name
		}
		decorateTemplate(template, m)
	case group == "batch" && id.Kind == "Job":
		delete(tree, "status")
		spec := child(tree, "spec")
		delete(spec, "ttlSecondsAfterFinished")
		m.dropReserved(child(child(child(spec, "template"), "metadata"), "labels"))
		decorateTemplate(child(spec, "template"), m)
		annotations[v1alpha1.AnnotationRun] = runOf(o, m.Owner)
	}

	delete(annotations, v1alpha1.AnnotationApplied)
	annotations[v1alpha1.AnnotationApplied] = digest(tree)
}

func (m Marks) dropReserved(labels map[string]any) {
	maps.DeleteFunc(labels, func(k string, _ any) bool { return m.LabelPrefix != "" && strings.HasPrefix(k, m.LabelPrefix) })
}

func decorateTemplate(template map[string]any, m Marks) {
	if label, ok := m.Labels[m.PodLabel]; ok {
		child(child(template, "metadata"), "labels")[m.PodLabel] = label
	}
	if m.ChecksumAnnotation != "" && m.Checksum != "" {
		child(child(template, "metadata"), "annotations")[m.ChecksumAnnotation] = m.Checksum
	}
	podDefaults(child(template, "spec"))
}

// child is the map under key, made when there is none. When there is something else, it stays, and the result
// is a map that belongs to nothing.
func child(tree map[string]any, key string) map[string]any {
	switch v := tree[key].(type) {
	case map[string]any:
		return v
	case nil:
		m := map[string]any{}
		tree[key] = m
		return m
	default:
		return map[string]any{}
	}
}

// dropNulls removes null fields, which server-side apply would own and the API server would not keep.
func dropNulls(node any) {
	switch n := node.(type) {
	case map[string]any:
		for k, v := range n {
			if v == nil {
				delete(n, k)
				continue
			}
			dropNulls(v)
		}
	case []any:
		for _, v := range n {
			dropNulls(v)
		}
	}
}

// foldStringData does what the API server does with stringData: its keys win over those of data.
func foldStringData(tree map[string]any) {
	text, ok := tree["stringData"].(map[string]any)
	if !ok {
		return
	}
	for _, v := range text {
		if _, ok := v.(string); !ok {
			return
		}
	}
	delete(tree, "stringData")
	if len(text) == 0 {
		return
	}
	data := child(tree, "data")
	for k, v := range text {
		data[k] = base64.StdEncoding.EncodeToString([]byte(v.(string)))
	}
}

// digest is of the tree's canonical JSON. Of a Secret's data only the keys are in it: with the data it would be a
// hash of a secret that everybody with a look at the object's metadata could test guesses against.
func digest(tree map[string]any) string {
	if isSecret(tree) {
		rest := make(map[string]any, len(tree))
		for k, v := range tree {
			if k != "data" && k != "stringData" {
				rest[k] = v
			}
		}
		for _, k := range []string{"data", "stringData"} {
			if m, ok := tree[k].(map[string]any); ok {
				rest[k] = slices.Sorted(maps.Keys(m))
			}
		}
		tree = rest
	}
	text, err := json.Marshal(tree) // maps are written in key order
	if err != nil {
		return "" // a tree of JSON types has an encoding; no digest is never the same
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func isSecret(tree map[string]any) bool {
	id := manifest.Object{Tree: tree}.ID()
	return id.Kind == "Secret" && id.GVK().Group == ""
}
