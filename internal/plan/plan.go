// Package plan says what installing an addon as asked for would do: the objects, the workloads, and the
// changes against what runs.
//
// It is pure: it compares two sets it is given and never asks a cluster. A plan holds names, images and
// ports, never a value of an input or of a Secret. It is not cut to a size here: that is the business of
// whoever stores it.
package plan

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/manifest"
)

// Input is what a plan is made of.
type Input struct {
	Chart        v1alpha1.PlanChart
	Schema       string   // the chart's values.schema.json, or empty
	ValuesErrors []string // in report order
	Violations   []string // in report order
	// Wanted is what the chart renders, in any order. Nil when nothing was rendered, which is not the same as
	// a chart that renders no object.
	Wanted manifest.Set
	// Owned is what runs: the live objects that are controlled by this addon.
	Owned manifest.Set
}

// Compute makes the plan. With values errors, or without a rendered set, it names no objects, workloads and
// changes: what would be applied is not known.
func Compute(in Input) *v1alpha1.Plan {
	p := &v1alpha1.Plan{
		Chart:        in.Chart,
		ValuesSchema: in.Schema,
		ValuesErrors: in.ValuesErrors,
		Violations:   in.Violations,
	}
	if len(in.ValuesErrors) > 0 || in.Wanted == nil {
		return p
	}
	wanted := in.Wanted.InApplyOrder()
	for _, o := range wanted {
		p.Objects = append(p.Objects, ref(o))
		if isWorkload(o) {
			p.Workloads = append(p.Workloads, workload(o))
		}
	}
	p.Changes = changes(wanted, owned(in.Owned))
	return p
}

// owned are the live objects that a chart can have applied: values objects are the addon's too, but no
// chart renders them.
func owned(live manifest.Set) manifest.Set {
	out := manifest.Set{}
	for _, o := range live.InApplyOrder() {
		if !strings.HasPrefix(o.ID().Name, v1alpha1.ReservedPrefix) {
			out = append(out, o)
		}
	}
	return out
}

// key is what makes two objects the same one: the version of an API does not.
type key struct {
	kind schema.GroupKind
	name string
}

func keyOf(o manifest.Object) key {
	id := o.ID()
	return key{id.GVK().GroupKind(), id.Name}
}

func index(set manifest.Set) map[key]manifest.Object {
	out := make(map[key]manifest.Object, len(set))
	for _, o := range set {
		if k := keyOf(o); out[k].Tree == nil {
			out[k] = o
		}
	}
	return out
}

func changes(wanted, owned manifest.Set) v1alpha1.Changes {
	var c v1alpha1.Changes
	before, after := index(owned), index(wanted)
	seen := map[key]bool{}
	for _, o := range wanted {
		k := keyOf(o)
		if seen[k] { // rendered twice: a violation, and one change
			continue
		}
		seen[k] = true
		live, ok := before[k]
		if !ok {
			c.Added = append(c.Added, ref(o))
			continue
		}
		c.Images = append(c.Images, imageChanges(live, o)...)
	}
	for _, o := range owned {
		if _, ok := after[keyOf(o)]; !ok {
			c.Removed = append(c.Removed, ref(o))
		}
	}
	return c
}

// imageChanges are the containers that both have, by name, and whose image differs. A container that comes
// or goes is no image change: the workloads show it.
func imageChanges(live, wanted manifest.Object) []v1alpha1.ImageChange {
	if !isWorkload(wanted) {
		return nil
	}
	from := map[string]string{}
	for _, c := range containers(live) {
		from[c.name] = c.image
	}
	var out []v1alpha1.ImageChange
	for _, c := range containers(wanted) {
		if old, ok := from[c.name]; ok && old != c.image {
			r := ref(wanted)
			out = append(out, v1alpha1.ImageChange{Kind: r.Kind, Name: r.Name, Container: c.name, From: old, To: c.image})
		}
	}
	return out
}

func ref(o manifest.Object) v1alpha1.ObjectRef {
	id := o.ID()
	return v1alpha1.ObjectRef{Kind: id.Kind, Name: id.Name}
}
