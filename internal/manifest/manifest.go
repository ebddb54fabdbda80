// Package manifest is about objects that are not yet in a cluster: their identity, ordered sets of
// them, strict decoding from YAML, and the order in which they are applied.
//
// It knows objects, not the kinds an addon may have: which kinds are allowed is the guardrails' business.
// It never talks to a cluster and never drops what it does not know.
package manifest

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ID identifies an object inside the namespace it is for.
type ID struct {
	APIVersion string
	Kind       string
	Name       string
}

// String is Kind/name.
func (id ID) String() string { return id.Kind + "/" + id.Name }

// GVK is the group, version and kind. A malformed apiVersion yields an empty group and version.
func (id ID) GVK() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(id.APIVersion, id.Kind)
}

// Object is one object as a raw tree: map[string]any, []any, string, bool, int64, float64 and nil, as
// unstructured objects hold it. The tree is what is checked and what is applied; nothing in between.
type Object struct {
	// Source is the chart-relative file the object was rendered from, such as templates/worker.yaml.
	Source string
	Tree   map[string]any
}

// ID reads the identity off the tree; parts that are missing or not strings are empty.
func (o Object) ID() ID {
	id := ID{}
	id.APIVersion, _ = o.Tree["apiVersion"].(string)
	id.Kind, _ = o.Tree["kind"].(string)
	if m, ok := o.Tree["metadata"].(map[string]any); ok {
		id.Name, _ = m["name"].(string)
	}
	return id
}

// Clone is a deep copy.
func (o Object) Clone() Object {
	return Object{Source: o.Source, Tree: runtime.DeepCopyJSON(o.Tree)}
}

// Unstructured is a view of the tree, not a copy.
func (o Object) Unstructured() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: o.Tree}
}

// Set is an ordered list of objects.
type Set []Object

// Clone is a deep copy.
func (s Set) Clone() Set {
	out := make(Set, len(s))
	for i, o := range s {
		out[i] = o.Clone()
	}
	return out
}

// Find returns the first object with this identity.
func (s Set) Find(id ID) (Object, bool) {
	for _, o := range s {
		if o.ID() == id {
			return o, true
		}
	}
	return Object{}, false
}

// IDs are the identities in the set's order.
func (s Set) IDs() []ID {
	ids := make([]ID, len(s))
	for i, o := range s {
		ids[i] = o.ID()
	}
	return ids
}

// applyOrder is what must exist before what refers to it (decisions §4).
var applyOrder = map[string]int{
	"ServiceAccount":        1,
	"Secret":                2,
	"ConfigMap":             3,
	"PersistentVolumeClaim": 4,
	"Service":               5,
	"Deployment":            6,
	"Job":                   7,
}

// CompareIDs orders identities as they are applied: by kind in apply order (kinds without a place come
// last, by name of kind), then by name, then by apiVersion.
func CompareIDs(a, b ID) int {
	return cmp.Or(
		cmp.Compare(rank(a.Kind), rank(b.Kind)),
		cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.APIVersion, b.APIVersion),
	)
}

func rank(kind string) int {
	if r, ok := applyOrder[kind]; ok {
		return r
	}
	return len(applyOrder) + 1
}

// InApplyOrder returns the set sorted by CompareIDs; objects with the same identity keep their order.
func (s Set) InApplyOrder() Set {
	out := slices.Clone(s)
	slices.SortStableFunc(out, func(a, b Object) int { return CompareIDs(a.ID(), b.ID()) })
	return out
}
