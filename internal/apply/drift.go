package apply

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/manifest"
)

// Drift is an object that somebody had changed, and that was put back: it is wanted as it was applied last.
type Drift struct {
	ID manifest.ID
	// Fields are what had been changed, sorted by path, each once and never with a value.
	Fields []Strayed
}

// Strayed is a field that was not ours any more.
type Strayed struct {
	Path string
	// Manager is the field manager that has it now; empty when the field, or who holds it, was removed.
	Manager string
}

// drift is what others did to a live object since it was applied; nil when it differs because something else is
// wanted now.
//
// A field that somebody changes or removes is not ours any more: who changed it has it, and nobody has what is
// gone. So the fields that we would have are held against those that we have. Without our mark on the object, or
// with another one, the fields of other managers are all that can be told from what is wanted anew.
func (c *Cluster) drift(want manifest.Object, live *unstructured.Unstructured) *Drift {
	wanted, err := c.fields(want)
	if err != nil {
		return nil
	}
	mark := want.Unstructured().GetAnnotations()[v1alpha1.AnnotationApplied]
	unmoved := mark != "" && mark == live.GetAnnotations()[v1alpha1.AnnotationApplied]
	mine, ok := ownedFields(live, c.FieldManager, want.ID().APIVersion)
	if !ok {
		if unmoved && !slices.ContainsFunc(entries(live), c.ours) {
			return &Drift{ID: want.ID(), Fields: []Strayed{{Path: "metadata.managedFields"}}}
		}
		return nil // applied in another version of the API
	}
	lost := wanted.Difference(mine)
	annotation := fieldpath.MakePathOrDie("metadata", "annotations", v1alpha1.AnnotationApplied)
	if !unmoved && !lost.Has(annotation) {
		return nil
	}
	others := c.others(live)
	found := map[string]string{}
	lost.Iterate(func(p fieldpath.Path) {
		who := holder(others, p)
		if within(lost, p) || p.Equals(annotation) && lost.Size() > 1 || who == "" && !unmoved {
			return
		}
		if path := pathOf(p); found[path] == "" {
			found[path] = who
		}
	})
	if len(found) == 0 {
		return nil
	}
	d := &Drift{ID: want.ID()}
	for path, who := range found {
		d.Fields = append(d.Fields, Strayed{Path: path, Manager: who})
	}
	slices.SortFunc(d.Fields, func(a, b Strayed) int { return strings.Compare(a.Path, b.Path) })
	return d
}

// ours tells whether an entry holds what our applies hold.
func (c *Cluster) ours(e entry) bool { return e.appliedBy(c.FieldManager) }

// held are the fields of one manager.
type held struct {
	manager string
	at      string
	fields  *fieldpath.Set
}

// others are the fields that other managers hold, those that wrote last first.
func (c *Cluster) others(live *unstructured.Unstructured) []held {
	var out []held
	for _, e := range entries(live) {
		if c.ours(e) {
			continue
		}
		if set, ok := e.set(); ok {
			out = append(out, held{e.manager, e.time, set})
		}
	}
	slices.SortStableFunc(out, func(a, b held) int { return strings.Compare(b.at, a.at) })
	return out
}

// holder is who has a field.
func holder(others []held, p fieldpath.Path) string {
	for _, o := range others {
		if o.fields.Has(p) {
			return o.manager
		}
	}
	return ""
}

// within tells whether a path is inside of another one in the set, such as an item of a list.
func within(s *fieldpath.Set, p fieldpath.Path) bool {
	for n := 1; n < len(p); n++ {
		if s.Has(p[:n]) {
			return true
		}
	}
	return false
}

// pathOf is a path of a field as a plan shows it. An item of a set is shown as the set: the item is a value.
func pathOf(p fieldpath.Path) string {
	path, list := "", ""
	for _, e := range p {
		switch {
		case e.FieldName != nil && path == "":
			path, list = *e.FieldName, *e.FieldName
		case e.FieldName != nil:
			path, list = fieldAt(path, *e.FieldName), *e.FieldName
		case e.Key != nil:
			fields := map[string]any{}
			var all []string
			for _, f := range *e.Key {
				fields[f.Name] = f.Value.Unstructured()
				all = append(all, fmt.Sprint(f.Value.Unstructured()))
			}
			key, ok := mergeKey(list, fields)
			if !ok {
				key = strings.Join(all, "/")
			}
			path, list = item(path, key), ""
		case e.Index != nil:
			path, list = fmt.Sprintf("%s[%d]", path, *e.Index), ""
		default:
			return shortened(path)
		}
	}
	return shortened(path)
}

// shortened keeps a path within bounds.
func shortened(path string) string {
	if len(path) > maxPath {
		return strings.ToValidUTF8(path[:maxPath], "") + "…"
	}
	return path
}
