package portal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/trace"
)

// fieldManager is the owner of the fields that portal-api writes.
const fieldManager = client.FieldOwner("portal-api")

// possibleName tells whether a resource can have the name. It is wider than what portal-api gives: a
// committed resource with a bad name must be seen, and removed.
func possibleName(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }

// resource is one ZaentrumAddon: as the cluster holds it, so that fields this release does not know survive
// a write, and as a typed view of it.
type resource struct {
	object *unstructured.Unstructured
	addon  v1alpha1.ZaentrumAddon
}

func newResource(namespace, name string) *resource {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.KindZaentrumAddon))
	object.SetNamespace(namespace)
	object.SetName(name)
	return &resource{object: object}
}

// see fills the typed view from the object.
func (r *resource) see() error {
	raw, err := json.Marshal(r.object.Object)
	if err != nil {
		return fmt.Errorf("resource %s: %w", r.object.GetName(), err)
	}
	r.addon = v1alpha1.ZaentrumAddon{}
	if err := json.Unmarshal(raw, &r.addon); err != nil {
		return fault.New(fault.Cluster, "the resource %s cannot be read as a ZaentrumAddon", r.object.GetName()).Because(err)
	}
	return nil
}

// read is the resource as the cluster has it now. It is a NotFound fault when there is none, and Unavailable
// when the cluster has no such kind.
func (s *Server) read(ctx context.Context, name string) (*resource, error) {
	r := newResource(s.o.Namespace, name)
	if err := s.o.Client.Get(ctx, client.ObjectKeyFromObject(r.object), r.object); err != nil {
		if apierrors.IsNotFound(err) && !kindMissing(err) {
			return nil, noAddon(name)
		}
		return nil, s.refusal(ctx, err, "read addon "+name)
	}
	return r, r.see()
}

// put writes the difference between the typed view and spec into the object. It tells whether there is one.
func (r *resource) put(spec v1alpha1.ZaentrumAddonSpec) (bool, error) {
	was := r.addon.Spec
	fields := map[string]any{}
	for field, value := range map[string][2]string{
		"chart.ref":     {was.Chart.Ref, spec.Chart.Ref},
		"chart.version": {was.Chart.Version, spec.Chart.Version},
		"chart.digest":  {was.Chart.Digest, spec.Chart.Digest},
	} {
		if value[0] != value[1] {
			fields[field] = value[1]
		}
	}
	if was.Suspend != spec.Suspend {
		fields["suspend"] = spec.Suspend
	}
	if !reflect.DeepEqual(was.Values, spec.Values) {
		fields["values"] = nil
		if spec.Values != nil {
			fields["values"] = json.RawMessage(spec.Values.Raw)
		}
	}
	if !slices.Equal(was.ValuesFrom, spec.ValuesFrom) {
		fields["valuesFrom"] = nil
		if len(spec.ValuesFrom) > 0 {
			fields["valuesFrom"] = spec.ValuesFrom
		}
	}
	for field, value := range fields {
		path := append([]string{"spec"}, strings.Split(field, ".")...)
		if value == nil || value == "" {
			unstructured.RemoveNestedField(r.object.Object, path...)
			continue
		}
		tree, err := plain(value)
		if err != nil {
			return false, err
		}
		if err := unstructured.SetNestedField(r.object.Object, tree, path...); err != nil {
			return false, fault.New(fault.Cluster, "the resource's spec has another shape than expected")
		}
	}
	return len(fields) > 0, nil
}

// mark notes on the resource in which trace its next generation is made; nothing outside of one.
func (r *resource) mark(ctx context.Context) {
	here := trace.From(ctx)
	if !here.Valid() {
		return
	}
	annotations := r.object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.AnnotationTraceparent] = here.String()
	annotations[v1alpha1.AnnotationTracedGeneration] = strconv.FormatInt(r.object.GetGeneration()+1, 10)
	r.object.SetAnnotations(annotations)
}

// plain is a value as a tree of maps, lists and scalars, with integers as int64.
func plain(value any) (any, error) {
	raw, err := json.Marshal(map[string]any{"v": value})
	if err != nil {
		return nil, errors.New("not JSON")
	}
	tree := map[string]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &tree); err != nil {
		return nil, errors.New("not JSON")
	}
	return tree["v"], nil
}

// kindMissing tells whether the cluster does not know the kind, rather than the object.
func kindMissing(err error) bool {
	if meta.IsNoMatchError(err) || runtime.IsNotRegisteredError(err) {
		return true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsNotFound(err) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == ""
}

// refusal is clusterFault, and when the cluster forbade something or has lost the kind, what availability
// says now: then the instance cannot manage chart addons at all.
func (s *Server) refusal(ctx context.Context, err error, doing string) error {
	if apierrors.IsForbidden(err) || kindMissing(err) {
		s.available.forget()
		if missing := s.available.require(ctx); missing != nil {
			return missing
		}
	}
	return clusterFault(err, doing)
}

// clusterFault says what an error of the API server means, in our words: its own may quote what was sent.
func clusterFault(err error, doing string) error {
	switch {
	case kindMissing(err):
		return unavailable(noteNoKind)
	case errors.Is(err, context.DeadlineExceeded), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err):
		return fault.New(fault.Cluster, "the cluster did not answer in time: cannot %s", doing).Because(err)
	case errors.Is(err, context.Canceled):
		return fault.New(fault.Cluster, "the request ended before the cluster answered: cannot %s", doing).Because(err)
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return fault.New(fault.Conflict, "the resource changed meanwhile: cannot %s", doing).Because(err)
	case apierrors.IsRequestEntityTooLargeError(err):
		return fault.New(fault.TooLarge, "the cluster finds it too large: cannot %s", doing).Because(err)
	case apierrors.IsForbidden(err):
		return fault.New(fault.Refused, "the cluster does not admit it: cannot %s (%s)", doing, apierrors.ReasonForError(err)).
			WithHint("a quota, a policy or a namespace on its way out may be in the way").Because(err)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return fault.New(fault.Refused, "the cluster refuses it: cannot %s (%s)", doing, refusedFields(err)).Because(err)
	}
	reason := apierrors.ReasonForError(err)
	if reason == metav1.StatusReasonUnknown {
		return fault.New(fault.Cluster, "the cluster cannot be reached: cannot %s", doing).Because(err)
	}
	return fault.New(fault.Cluster, "the cluster failed: cannot %s (%s)", doing, reason).Because(err)
}

// refusedFields are the reason and the fields an API server names, without what it says about them.
func refusedFields(err error) string {
	out := string(apierrors.ReasonForError(err))
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return out
	}
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		if cause.Field != "" && cause.Field != "<nil>" {
			fields = append(fields, shown(cause.Field))
		}
	}
	slices.Sort(fields)
	if fields = slices.Compact(fields); len(fields) > 0 {
		out += ": " + strings.Join(fields, ", ")
	}
	return out
}
