package operator

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/values"
)

// resolved is what spec.valuesFrom says.
type resolved struct {
	from []values.From
	// problems are values errors.
	problems []string
	// secrets are the values Secrets that were read.
	secrets []*unstructured.Unstructured
	// known gets the values that came from them.
	known *secrets
}

// resolve reads the values objects of an addon. An object that does not belong to the addon is refused
// unread, optional or not: by its name before any request, by its label before any data is loaded. The
// error is the cluster's.
func (r *reconciler) resolve(ctx context.Context, a *v1alpha1.ZaentrumAddon, known *secrets) (*resolved, error) {
	out := &resolved{known: known}
	read := map[string]*unstructured.Unstructured{}
	for i, src := range a.Spec.ValuesFrom {
		where := fmt.Sprintf("valuesFrom[%d]: %s/%s", i, src.Kind, src.Name)
		if !strings.HasPrefix(src.Name, v1alpha1.ValuesObjectPrefix(a.Name)) {
			out.refuse("%s refused: its name must start with %s", where, v1alpha1.ValuesObjectPrefix(a.Name))
			continue
		}
		id := string(src.Kind) + "/" + src.Name
		u, seen := read[id]
		if !seen {
			var problem string
			var err error
			if u, problem, err = r.valuesObject(ctx, a, src); err != nil {
				return nil, err
			}
			if problem != "" {
				out.refuse("%s %s", where, problem)
				continue
			}
			read[id] = u
			if u != nil && src.Kind == v1alpha1.ValuesFromSecret {
				out.secrets = append(out.secrets, u)
			}
		}
		out.add(where, src, u)
	}
	if known.tooMany() {
		out.refuse("valuesFrom: the addon's values Secrets hold more than %d values", maxSecrets)
	}
	slices.Sort(out.problems)
	return out, nil
}

func (o *resolved) refuse(format string, args ...any) {
	o.problems = append(o.problems, fmt.Sprintf(format, args...))
}

// add takes the entry's key from the object, which is nil when there is none.
func (o *resolved) add(where string, src v1alpha1.ValuesSource, u *unstructured.Unstructured) {
	if u == nil {
		if !src.Optional {
			o.refuse("%s not found", where)
		}
		return
	}
	text, found := data(u, src.Key())
	if !found {
		if !src.Optional {
			o.refuse("%s has no key %s", where, src.Key())
		}
		return
	}
	if src.TargetPath != "" {
		if _, err := values.ParsePath(src.TargetPath); err != nil {
			o.refuse("valuesFrom targetPath %s: %v", src.TargetPath, err)
			return
		}
		if src.Kind == v1alpha1.ValuesFromSecret {
			o.known.add(text)
		}
		o.from = append(o.from, values.From{TargetPath: src.TargetPath, Text: text, Secret: src.Kind == v1alpha1.ValuesFromSecret})
		return
	}
	document, err := values.Decode([]byte(text))
	if err != nil {
		o.refuse("%s key %s: %v", where, src.Key(), err)
		return
	}
	if src.Kind == v1alpha1.ValuesFromSecret {
		o.known.addTree(document)
	}
	o.from = append(o.from, values.From{Document: document})
}

// data is one key's text of a Secret or ConfigMap.
func data(u *unstructured.Unstructured, key string) (string, bool) {
	if s, ok, _ := unstructured.NestedString(u.Object, "data", key); ok {
		if u.GetKind() != string(v1alpha1.ValuesFromSecret) {
			return s, true
		}
		plain, err := base64.StdEncoding.DecodeString(s)
		return string(plain), err == nil
	}
	if s, ok, _ := unstructured.NestedString(u.Object, "binaryData", key); ok {
		plain, err := base64.StdEncoding.DecodeString(s)
		return string(plain), err == nil
	}
	return "", false
}

// valuesObject finds one values object: in the cache, which holds only what is labelled as some addon's,
// else, since the cache may be behind, in the cluster, where its label is read before its data. A nil
// object without a problem does not exist.
func (r *reconciler) valuesObject(ctx context.Context, a *v1alpha1.ZaentrumAddon, src v1alpha1.ValuesSource) (*unstructured.Unstructured, string, error) {
	gvk := schema.GroupVersionKind{Version: "v1", Kind: string(src.Kind)}
	key := client.ObjectKey{Namespace: a.Namespace, Name: src.Name}
	mislabelled := fmt.Sprintf("refused: it must be labelled %s=%s", v1alpha1.LabelAddon, a.Name)

	u := object(gvk)
	err := r.client.Get(ctx, key, u)
	if err == nil {
		if u.GetLabels()[v1alpha1.LabelAddon] != a.Name {
			return nil, mislabelled, nil
		}
		return u, "", nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, "", err
	}
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(gvk)
	if err := r.live.Get(ctx, key, meta); err != nil {
		return nil, "", client.IgnoreNotFound(err)
	}
	if meta.GetLabels()[v1alpha1.LabelAddon] != a.Name {
		return nil, mislabelled, nil
	}
	u = object(gvk)
	if err := r.live.Get(ctx, key, u); err != nil {
		return nil, "", client.IgnoreNotFound(err)
	}
	if u.GetLabels()[v1alpha1.LabelAddon] != a.Name { // changed between the two reads
		return nil, mislabelled, nil
	}
	return u, "", nil
}

// own makes the addon an owner of its values Secrets, so that they go with it, and of none of them while its
// values are to be kept: a deletion in the foreground takes what the addon owns at once, before anybody could
// let go of it. A Secret that is kept already is not touched.
func (r *reconciler) own(ctx context.Context, a *v1alpha1.ZaentrumAddon, secrets []*unstructured.Unstructured) error {
	generated := object(corev1.SchemeGroupVersion.WithKind("Secret"))
	switch err := r.client.Get(ctx, client.ObjectKey{Namespace: a.Namespace, Name: v1alpha1.GeneratedSecretName(a.Name)}, generated); {
	case err == nil && isValuesSecret(generated, a.Name) && (ownedBy(generated, a) || len(generated.GetOwnerReferences()) == 0):
		secrets = append(slices.Clone(secrets), generated)
	case client.IgnoreNotFound(err) != nil:
		return err
	}
	for _, s := range secrets {
		if kept(s) || ownedBy(s, a) == !keepsValues(a) || s.GetDeletionTimestamp() != nil {
			continue
		}
		meta := metadataOf(s)
		before := client.MergeFromWithOptions(meta.DeepCopy(), client.MergeFromWithOptimisticLock{})
		if keepsValues(a) {
			meta.SetOwnerReferences(without(meta.GetOwnerReferences(), a))
		} else {
			meta.SetOwnerReferences(append(meta.GetOwnerReferences(), ownerReference(a)))
		}
		if err := r.client.Patch(ctx, meta, before); err != nil && !gone(err) {
			return fmt.Errorf("owner of Secret %s: %w", s.GetName(), err)
		}
	}
	return nil
}

// without are the owner references but for the addon's.
func without(refs []metav1.OwnerReference, a *v1alpha1.ZaentrumAddon) []metav1.OwnerReference {
	return slices.DeleteFunc(slices.Clone(refs), func(ref metav1.OwnerReference) bool { return ref.UID == a.UID })
}

// gone tells that an object is not there as it was read: the watch brings the next look.
func gone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }

func kept(o client.Object) bool { return o.GetLabels()[v1alpha1.LabelKeep] == "true" }

func ownedBy(o client.Object, a *v1alpha1.ZaentrumAddon) bool {
	return slices.ContainsFunc(o.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == a.UID })
}

// metadataOf is an object's metadata alone, to be patched without its data.
func metadataOf(o *unstructured.Unstructured) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(o.GroupVersionKind())
	m.SetNamespace(o.GetNamespace())
	m.SetName(o.GetName())
	m.SetUID(o.GetUID())
	m.SetResourceVersion(o.GetResourceVersion())
	m.SetLabels(o.GetLabels())
	m.SetAnnotations(o.GetAnnotations())
	m.SetOwnerReferences(o.GetOwnerReferences())
	return m
}
