package portal

import (
	"context"
	"encoding/json"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/registry"
)

// chart answers GET /api/portal/addon-charts/{name}.
func (s *Server) chart(c *call, _ none) (apitype.AddonChart, error) {
	r, err := s.read(c.mayWait, c.name)
	if err != nil {
		return apitype.AddonChart{}, err
	}
	registered, err := s.registrationOf(c.mayWait, c.name)
	if err != nil {
		return apitype.AddonChart{}, err
	}
	c.header.Set("ETag", planTag(&r.addon))
	return chartDocument(&r.addon, registered)
}

// chartDocument is an addon as the API shows it.
func chartDocument(a *v1alpha1.ZaentrumAddon, registered registration) (apitype.AddonChart, error) {
	out := apitype.AddonChart{
		Name: a.Name, Chart: wireChart(a.Spec.Chart), Suspended: a.Spec.Suspend, Deleting: a.DeletionTimestamp != nil,
		Phase: a.Status.Phase, Message: a.Status.Message,
		Generation: a.Generation, ObservedGeneration: a.Status.ObservedGeneration,
		Plan: a.Status.Plan, Components: components(a.Status.Components), Jobs: jobs(a.Status.Jobs), LastAppliedChart: a.Status.LastAppliedChart,
		Values: map[string]any{}, Inputs: chartInputs(a.Status.Plan), SecretKeys: secretKeys(a.Spec.ValuesFrom), SecretRefs: secretRefs(a.Spec.ValuesFrom),
		Registered: registered.is, RegistrationError: registered.failure,
	}
	if a.Spec.Values != nil {
		tree, err := plain(json.RawMessage(a.Spec.Values.Raw))
		if err != nil {
			return out, fault.New(fault.Cluster, "the values of addon %s cannot be read", a.Name)
		}
		if object, ok := tree.(map[string]any); ok && object != nil {
			out.Values = object
		}
	}
	return out, nil
}

// registration is what the registry says about a chart addon.
type registration struct {
	is      bool
	failure string // why it could not be registered the last time that was tried
}

func (s *Server) registrationOf(ctx context.Context, name string) (registration, error) {
	owner, err := s.o.Registry.Owner(ctx, name)
	if err != nil {
		return registration{}, err
	}
	failure, err := s.o.Registry.Failure(ctx, name)
	if err != nil || failure == nil {
		return registration{is: owner == registry.OwnedByChart}, err
	}
	return registration{is: owner == registry.OwnedByChart, failure: failure.Message}, nil
}

// components is a list that is never null.
func components(list []v1alpha1.Component) []v1alpha1.Component {
	if list == nil {
		return []v1alpha1.Component{}
	}
	return list
}

// jobs is a list that is never null.
func jobs(list []v1alpha1.JobRun) []v1alpha1.JobRun {
	if list == nil {
		return []v1alpha1.JobRun{}
	}
	return list
}

// deleteChart answers DELETE /api/portal/addon-charts/{name}.
func (s *Server) deleteChart(c *call, _ none) (apitype.DeleteAnswer, error) {
	out := apitype.DeleteAnswer{Name: c.name, Removed: []string{}}
	keep, err := keepValues(c)
	if err != nil {
		return out, err
	}
	if out.Resource, err = s.deleteResource(c.mustEnd, c.audit, c.name, keep); err != nil {
		return out, err
	}
	out.KeptValues = out.Resource && keep
	c.audit.gone(out.KeptValues)
	if out.Removed, err = s.o.Registry.Remove(c.mustEnd, c.name, registry.SourceChart); err != nil {
		return out, err
	}
	if !out.Resource && len(out.Removed) == 0 {
		return out, noAddon(c.name)
	}
	return out, nil
}

// keepValues reads the query. It is strict: a parameter that is misspelt would lose the values.
func keepValues(c *call) (bool, error) {
	query := c.request.URL.Query()
	given := query["keepValues"]
	for name := range query {
		if name != "keepValues" {
			return false, malformed("unknown parameter %s", shown(name)).WithHint("keepValues is the only one")
		}
	}
	switch {
	case len(given) == 0:
		return false, nil
	case len(given) == 1 && (given[0] == "true" || given[0] == "false"):
		return given[0] == "true", nil
	}
	return false, malformed("keepValues must be true or false")
}

// deleteResource says on the resource whether its values are kept, and deletes that very resource. It is false
// when there is none.
func (s *Server) deleteResource(ctx context.Context, audit *audited, name string, keep bool) (bool, error) {
	doing := "delete addon " + name
	var first types.UID
	for attempt := range maxAttempts {
		if err := pause(ctx, attempt); err != nil {
			return false, clusterFault(err, doing)
		}
		r, err := s.read(ctx, name)
		if fault.CodeOf(err) == fault.NotFound {
			if first != "" && keep { // somebody else deleted it just now, and did not say to keep anything
				return false, fault.New(fault.Conflict, "addon %s was deleted meanwhile", name)
			}
			return first != "", nil
		}
		if err != nil {
			return false, err
		}
		audit.was(&r.addon)
		uid := r.object.GetUID()
		if first != "" && uid != first {
			return false, fault.New(fault.Conflict, "addon %s was deleted and made anew meanwhile", name)
		}
		first = uid
		kept := r.object.GetAnnotations()[v1alpha1.AnnotationKeepValues] == "true"
		if r.addon.DeletionTimestamp != nil {
			// It may be too late to keep what the first call gave up, and too early to give up what it kept.
			if kept != keep {
				return false, fault.New(fault.Deleting, "addon %s is being deleted with keepValues=%t", name, kept)
			}
			return true, nil
		}
		// The finalizer goes with the annotation in one write: the operator, which has its own look at the
		// resource, could come too late to set it before the deletion below.
		held := controllerutil.ContainsFinalizer(r.object, v1alpha1.FinalizerValues)
		if kept != keep || held != keep {
			annotations := r.object.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[v1alpha1.AnnotationKeepValues] = strconv.FormatBool(keep)
			r.object.SetAnnotations(annotations)
			r.mark(ctx) // the deletion makes another generation
			if keep {
				controllerutil.AddFinalizer(r.object, v1alpha1.FinalizerValues)
			} else {
				controllerutil.RemoveFinalizer(r.object, v1alpha1.FinalizerValues)
			}
			if err := s.send(ctx, r); outrun(err) {
				continue
			} else if err != nil {
				return false, s.refusal(ctx, err, doing)
			}
		}
		// Only the version that says what was asked for: nobody may change the annotation in between.
		version := r.object.GetResourceVersion()
		err = s.o.Client.Delete(ctx, r.object, client.Preconditions{UID: &uid, ResourceVersion: &version},
			// Not in the foreground: what the addon owns must not go before its values are safe.
			&client.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)})
		switch {
		case err == nil:
			s.own.note(r.object, true)
			return true, nil
		case apierrors.IsConflict(err), apierrors.IsNotFound(err) && !kindMissing(err):
			continue
		}
		return false, s.refusal(ctx, err, doing)
	}
	return false, fault.New(fault.Conflict, "addon %s changed again and again meanwhile", name)
}
