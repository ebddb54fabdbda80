package guard

import (
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

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
	// Refers are the objects of the namespace that its pods name, whether they are there or not: kind and name.
	Refers [][2]string
}

// CheckNeighbours are the rules about what an addon and others do to each other: traffic that goes astray, pods that
// are kept off nodes, objects that somebody else names. The objects are as they would be applied, and only those of
// which something of this is new: what runs already was judged before it did.
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

// Apart is what the object says about the pods that may not run where its own do.
func Apart(o manifest.Object) []any {
	of := &object{id: o.ID(), root: value{raw: o.Tree}}
	var out []any
	for _, t := range of.repelled() {
		out = append(out, t.raw)
	}
	return out
}

// References are the objects of the namespace that the pods of a Deployment or Job name, kind and name, each once and
// sorted.
func References(o manifest.Object) [][2]string {
	of := &object{id: o.ID(), root: value{raw: o.Tree}}
	var out [][2]string
	add := func(kind string, name value) {
		if text := name.text(); text != "" {
			out = append(out, [2]string{kind, text})
		}
	}
	pod := of.pod()
	add(kindServiceAccount, pod.at("serviceAccountName"))
	for _, e := range pod.at("imagePullSecrets").items() {
		add(kindSecret, e.at("name"))
	}
	for _, v := range pod.at("volumes").items() {
		add(kindSecret, v.at("secret", "secretName"))
		add(kindConfigMap, v.at("configMap", "name"))
		add(kindClaim, v.at("persistentVolumeClaim", "claimName"))
		for _, p := range v.at("projected", "sources").items() {
			add(kindSecret, p.at("secret", "name"))
			add(kindConfigMap, p.at("configMap", "name"))
		}
	}
	for _, c := range of.containers() {
		for _, e := range c.at("envFrom").items() {
			add(kindSecret, e.at("secretRef", "name"))
			add(kindConfigMap, e.at("configMapRef", "name"))
		}
		for _, e := range c.at("env").items() {
			add(kindSecret, e.at("valueFrom", "secretKeyRef", "name"))
			add(kindConfigMap, e.at("valueFrom", "configMapKeyRef", "name"))
		}
	}
	slices.SortFunc(out, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	return slices.Compact(out)
}

// NewTraffic are the wanted objects of which something may concern others, and that is not there yet on what runs: a
// selector, a label of pods, an anti-affinity, or the whole object where others can name it.
func NewTraffic(wanted, live manifest.Set) manifest.Set {
	runs := map[manifest.ID]manifest.Object{}
	for _, o := range live {
		runs[o.ID()] = o
	}
	return slices.DeleteFunc(slices.Clone(wanted), func(o manifest.Object) bool {
		is := Selector(o)
		was, ok := runs[o.ID()]
		switch kind := o.ID().Kind; {
		case kind == kindServiceAccount, kind == kindSecret, kind == kindConfigMap, kind == kindClaim:
			return ok
		case len(is)+len(Apart(o)) == 0:
			return true
		case kind == kindService: // fewer keys select more
			return ok && maps.Equal(is, Selector(was))
		default: // others may add labels to pods, which stay
			return ok && (len(is) == 0 || fits(is, Selector(was))) && reflect.DeepEqual(Apart(o), Apart(was))
		}
	})
}

func noForeignTraffic(n Neighbours, o *object) []hit {
	pods := o.template().at("metadata", "labels")
	var hits []hit
	for _, s := range n.Services {
		if fits(s.Labels, texted(pods)) {
			hits = append(hits, pods.hit("its pods would get traffic of %s/%s", clean(s.Kind, maxKind), clean(s.Name, maxName)))
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

func noForeignRepelled(n Neighbours, o *object) []hit {
	var hits []hit
	for _, t := range o.repelled() {
		selector := t.at("labelSelector")
		want, err := selector.selector()
		if selector.raw == nil || err != nil {
			continue
		}
		told := map[[2]string]bool{}
		for _, w := range n.Workloads {
			if id := [2]string{w.Kind, w.Name}; !told[id] && want.Matches(labels.Set(w.Labels)) {
				told[id] = true
				hits = append(hits, selector.hit("keeps pods of %s/%s away", clean(w.Kind, maxKind), clean(w.Name, maxName)))
			}
		}
	}
	return hits
}

func noAwaitedName(n Neighbours, o *object) []hit {
	for _, w := range n.Workloads {
		if slices.Contains(w.Refers, [2]string{o.id.Kind, o.id.Name}) {
			return []hit{o.root.at("metadata", "name").hit("%s/%s names an object like this, and would take this one for it", clean(w.Kind, maxKind), clean(w.Name, maxName))}
		}
	}
	return nil
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
