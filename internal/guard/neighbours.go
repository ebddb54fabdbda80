package guard

import (
	"maps"
	"slices"

	"zaentrum.io/zae/internal/manifest"
)

// Neighbours are what others have in the namespace, as far as the traffic between Services and pods goes.
type Neighbours struct {
	Services  []Neighbour // with their selectors
	Workloads []Neighbour // with the labels of their pods; one may be there several times
}

// Neighbour is one object of somebody else.
type Neighbour struct {
	Kind, Name string
	Labels     map[string]string
}

// CheckNeighbours are the rules about traffic that goes astray. The objects are as they would be applied, and
// only those whose selectors or pod labels are new: what runs already was judged before it did.
func CheckNeighbours(objects manifest.Set, n Neighbours) []Finding {
	return checkNeighbours(Rules(), objects, n)
}

func checkNeighbours(rules []Rule, objects manifest.Set, n Neighbours) []Finding {
	var found []Finding
	for _, m := range objects {
		o := &object{source: m.Source, id: m.ID(), root: value{raw: m.Tree}}
		for _, r := range rules {
			if r.neighbours == nil || !r.covers(o.id.Kind) {
				continue
			}
			for _, h := range r.neighbours(n, o) {
				found = append(found, r.finding(o.id.Kind, o.id.Name, o.source, h))
			}
		}
	}
	return found
}

// Selector is what the object says about traffic: the selector of a Service, the labels of a workload's pods.
// An object without says nothing.
func Selector(o manifest.Object) map[string]string {
	at := value{raw: o.Tree}
	switch o.ID().Kind {
	case kindService:
		at = at.at("spec", "selector")
	case kindDeployment, kindJob:
		at = at.at("spec", "template", "metadata", "labels")
	default:
		return nil
	}
	out := map[string]string{}
	for _, k := range at.keys() {
		out[k] = at.at(k).text()
	}
	return out
}

// NewTraffic are the wanted objects whose selector, or one of whose pod labels, is not there yet on what runs.
func NewTraffic(wanted, live manifest.Set) manifest.Set {
	runs := map[manifest.ID]map[string]string{}
	for _, o := range live {
		runs[o.ID()] = Selector(o)
	}
	return slices.DeleteFunc(slices.Clone(wanted), func(o manifest.Object) bool {
		is := Selector(o)
		was, ok := runs[o.ID()]
		switch {
		case len(is) == 0:
			return true
		case o.ID().Kind == kindService: // fewer keys select more
			return ok && maps.Equal(is, was)
		default: // others may add labels to pods, which stay
			return ok && fits(is, was)
		}
	})
}

func noForeignTraffic(n Neighbours, o *object) []hit {
	labels := o.template().at("metadata", "labels")
	var hits []hit
	for _, s := range n.Services {
		if fits(s.Labels, texted(labels)) {
			hits = append(hits, labels.hit("its pods would get traffic of %s/%s", clean(s.Kind, maxKind), clean(s.Name, maxName)))
		}
	}
	return hits
}

func noForeignPods(n Neighbours, o *object) []hit {
	selector := o.root.at("spec", "selector")
	var hits []hit
	told := map[[2]string]bool{} // a workload is there once for each of its pods
	for _, w := range n.Workloads {
		if id := [2]string{w.Kind, w.Name}; fits(texted(selector), w.Labels) && !told[id] {
			told[id] = true
			hits = append(hits, selector.hit("selects pods of %s/%s", clean(w.Kind, maxKind), clean(w.Name, maxName)))
		}
	}
	return hits
}

// fits tells whether a selector, which has to say something, fits labels.
func fits(selector, labels map[string]string) bool {
	for k, v := range selector {
		if is, ok := labels[k]; !ok || is != v {
			return false
		}
	}
	return len(selector) > 0
}

func texted(v value) map[string]string {
	out := map[string]string{}
	for _, k := range v.keys() {
		out[k] = v.at(k).text()
	}
	return out
}
