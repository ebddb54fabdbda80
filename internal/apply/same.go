package apply

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/manifest"
)

// same tells whether applying want would change nothing that live says about it: it is what was applied last
// (by digest), every field of it is still ours and no other one is (a field that somebody else changed or
// removed is no longer ours), nobody is left who wrote one of them before, and a Secret's data, which the digest leaves
// out, is equal.
//
// It is never wrongly true; that it is wrongly false costs one write that changes nothing.
func (c *Cluster) same(want manifest.Object, live *unstructured.Unstructured) bool {
	mark := want.Unstructured().GetAnnotations()[v1alpha1.AnnotationApplied]
	if mark == "" || mark != live.GetAnnotations()[v1alpha1.AnnotationApplied] {
		return false
	}
	if isSecret(want.Tree) && !sameData(want.Tree, live.Object) {
		return false
	}
	mine, ok := ownedFields(live, c.FieldManager, want.ID().APIVersion)
	if !ok {
		return false
	}
	fields, err := c.fields(want)
	return err == nil && fields.Equals(mine) && !shared(live, mine)
}

// sameData compares the bytes behind the keys of want, or their digests; keys that others added are theirs.
func sameData(want, live map[string]any) bool {
	have := asMap(digests(live))
	for key, value := range asMap(digests(want)) {
		text, _ := value.(string)
		if !strings.HasPrefix(text, digestMark) || have[key] != value {
			return false
		}
	}
	return true
}

// ownedFields is the set of fields that a manager's applies hold, in the version of the API it applied them
// in. A set in another version does not count: applying anew moves it.
func ownedFields(live *unstructured.Unstructured, manager, apiVersion string) (*fieldpath.Set, bool) {
	var set *fieldpath.Set
	for _, e := range entries(live) {
		if !e.appliedBy(manager) {
			continue
		}
		if set != nil || e.apiVersion != apiVersion {
			return nil, false
		}
		var ok bool
		if set, ok = e.set(); !ok {
			return nil, false
		}
	}
	return set, set != nil
}

// fields is the set of fields that applying the object would own.
func (c *Cluster) fields(o manifest.Object) (*fieldpath.Set, error) {
	typed, err := c.types().ObjectToTyped(o.Unstructured())
	if err != nil {
		return nil, err
	}
	set, err := typed.ToFieldSet()
	if err != nil {
		return nil, err
	}
	return set.Difference(neverOwned()), nil
}

func (c *Cluster) types() managedfields.TypeConverter {
	if c.Types != nil {
		return c.Types
	}
	return applyconfigurations.NewTypeConverter(scheme.Scheme)
}

// neverOwned are the fields that the API server leaves out of every field set.
func neverOwned() *fieldpath.Set {
	return fieldpath.NewSet(
		fieldpath.MakePathOrDie("apiVersion"),
		fieldpath.MakePathOrDie("kind"),
		fieldpath.MakePathOrDie("metadata"),
		fieldpath.MakePathOrDie("metadata", "name"),
		fieldpath.MakePathOrDie("metadata", "namespace"),
		fieldpath.MakePathOrDie("metadata", "creationTimestamp"),
		fieldpath.MakePathOrDie("metadata", "selfLink"),
		fieldpath.MakePathOrDie("metadata", "uid"),
		fieldpath.MakePathOrDie("metadata", "clusterName"),
		fieldpath.MakePathOrDie("metadata", "generation"),
		fieldpath.MakePathOrDie("metadata", "managedFields"),
		fieldpath.MakePathOrDie("metadata", "resourceVersion"),
	)
}
