package guard

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"zaentrum.io/zae/internal/manifest"
)

// limited are the kinds of which more than the types is asked.
var limited = map[string]any{
	kindSecret: corev1.Secret{}, kindConfigMap: corev1.ConfigMap{}, kindClaim: corev1.PersistentVolumeClaim{},
	kindService: corev1.Service{}, kindDeployment: appsv1.Deployment{}, kindJob: batchv1.Job{},
}

func limitedBy(limits map[reflect.Type]map[string]limit, wholes map[reflect.Type]form) *shapeBuilder {
	b := &shapeBuilder{done: map[reflect.Type]*shape{}, reviewed: reviewed(), limits: limits, wholes: wholes}
	for _, of := range limited {
		b.build(reflect.TypeOf(of))
	}
	return b
}

// invalids are the places where a tree has a value that is none.
func (b *shapeBuilder) invalids(tree map[string]any) []hit {
	of := limited[manifest.Object{Tree: tree}.ID().Kind]
	if of == nil {
		return nil
	}
	var c comparison
	c.compare(b.done[reflect.TypeOf(of)], value{raw: tree})
	var hits []hit
	for _, f := range c.found {
		if f.of == invalid {
			hits = append(hits, f.hit)
		}
	}
	return hits
}

// What is asked of a field that does not exist, or of a type that is part of no kind, is never asked.
func TestLimitsAreOfFieldsThatExist(t *testing.T) {
	t.Parallel()
	b := limitedBy(limits(), wholes())
	for of, fields := range limits() {
		if b.done[of] == nil {
			t.Errorf("%s is part of no kind", of)
		}
		have := map[string]bool{}
		for f := range jsonFields(of) {
			have[f.name] = true
		}
		for name := range fields {
			if !have[name] {
				t.Errorf("%s has no field %s", of, name)
			}
		}
	}
	for of := range wholes() {
		if b.done[of] == nil {
			t.Errorf("%s is part of no kind", of)
		}
	}
}

var fieldName = regexp.MustCompile(`[A-Za-z]+`)

// TestNoLimitGoesUnnoticed takes one entry at a time out of the tables of what the API server asks, and sees a
// fixture or a changed object judged otherwise. Those are what the API server is held against.
func TestNoLimitGoesUnnoticed(t *testing.T) {
	t.Parallel()
	var trees []map[string]any
	for _, i := range fixtures(t) {
		if i.rule == validity {
			for _, o := range i.facts.Objects {
				trees = append(trees, o.Tree)
			}
		}
	}
	for _, o := range fullFacts(t).Objects {
		for _, change := range changes(o.Tree) {
			changed := o.Clone()
			change.do(changed.Tree)
			trees = append(trees, changed.Tree)
		}
	}
	all := limitedBy(limits(), wholes())
	before := make([][]hit, len(trees))
	about := map[string][]int{} // name of a field → trees with a hit at or below it
	var hit []int               // trees with any
	for n, tree := range trees {
		if before[n] = all.invalids(tree); len(before[n]) > 0 {
			hit = append(hit, n)
		}
		for _, h := range before[n] {
			for _, name := range fieldName.FindAllString(h.path, -1) {
				if among := about[name]; len(among) == 0 || among[len(among)-1] != n {
					about[name] = append(about[name], n)
				}
			}
		}
	}
	checked := 0
	noticed := func(b *shapeBuilder, among []int) bool {
		checked++
		return slices.ContainsFunc(among, func(n int) bool { return !slices.Equal(before[n], b.invalids(trees[n])) })
	}
	for of, fields := range limits() {
		for name, l := range fields {
			for what, less := range map[string]limit{
				"!": {filled: l.filled, form: l.form}, "+": {required: l.required, form: l.form}, "form": {required: l.required, filled: l.filled},
			} {
				if what == "!" && !l.required || what == "+" && !l.filled || what == "form" && l.form == nil {
					continue
				}
				without := limits()
				without[of][name] = less
				if !noticed(limitedBy(without, wholes()), about[name]) {
					t.Errorf("%s.%s %s: nothing fails without it", of, name, what)
				}
			}
		}
	}
	for of := range wholes() {
		without := maps.Clone(wholes())
		delete(without, of)
		if !noticed(limitedBy(limits(), without), hit) {
			t.Errorf("%s as a whole: nothing fails without it", of)
		}
	}
	t.Logf("%d parts of the tables taken out, over %d objects", checked, len(trees))
}

// A text that stands for what an admin would give has no form to be judged. That it is there is judged all the same.
func TestMadeUpTextsHaveNoForm(t *testing.T) {
	t.Parallel()
	f := goodFacts()
	f.MadeUp = func(text string) bool { return strings.Contains(text, "Zs0Qx") }
	for _, o := range decodeText(t, `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: a}
spec: {accessModes: [ReadWriteOnce], storageClassName: Zs0Qx, resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Secret
metadata: {name: a}
type: kubernetes.io/dockerconfigjson
stringData: {.dockerconfigjson: Zs0Qx}
---
apiVersion: v1
kind: Secret
metadata: {name: b}
type: kubernetes.io/tls
stringData: {tls.crt: Zs0Qx}
`) {
		f.Objects = append(f.Objects, manifest.Object{Tree: o.(map[string]any)})
	}
	found := Refused(Check(f))
	if len(found) != 1 || found[0].Name != "b" {
		t.Errorf("findings: %v", found)
	}
	f.MadeUp = nil
	if found := Refused(Check(f)); len(found) != 3 {
		t.Errorf("of what an admin gave: %v", found)
	}
}
