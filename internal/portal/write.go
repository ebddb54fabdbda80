package portal

import (
	"cmp"
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/registry"
)

// maxAttempts is how often a write is done over because the resource changed under it.
const maxAttempts = 6

// write is a change of one resource. Its functions may be called more than once: each time on the resource as
// it then is.
type write struct {
	name   string
	create bool // make the resource when there is none
	inputs inputs
	// once is the standing of the request; nil without an idempotency key.
	once *once
	// audit is what is noted of the write.
	audit *audited
	// admit refuses the resource as it is; may be nil.
	admit func(*v1alpha1.ZaentrumAddon) error
	// change is what the request does to the spec, secret inputs apart.
	change func(*v1alpha1.ZaentrumAddonSpec) error
}

// createChart answers POST /api/portal/addon-charts.
func (s *Server) createChart(c *call, in apitype.CreateRequest) (apitype.WriteAnswer, error) {
	var nothing apitype.WriteAnswer
	if in.Chart == "" {
		return nothing, invalid("chart is missing").WithHint("name a chart: oci://… with a version, or https://… to an archive")
	}
	source, err := chart.Source(in.Chart, in.Version, in.Digest)
	if err != nil {
		return nothing, err
	}
	name := in.Name
	if name == "" {
		if name, err = chart.DefaultName(in.Chart); err != nil {
			return nothing, err
		}
	}
	if err := chart.CheckName(name); err != nil {
		return nothing, err
	}
	c.audit.about(name)
	tree, err := checkValues(in.Values)
	if err != nil {
		return nothing, err
	}
	secrets, err := newInputs(name, in.SecretValues, in.SecretRefs, nil)
	if err != nil {
		return nothing, err
	}
	if err := s.nameFree(c.mayWait, name); err != nil {
		return nothing, err
	}
	return s.write(c, write{
		name: name, create: true, inputs: secrets,
		admit: func(addon *v1alpha1.ZaentrumAddon) error { return noPlainSecrets(addon, source.Ref, in.Values) },
		change: func(spec *v1alpha1.ZaentrumAddonSpec) error {
			spec.Chart, spec.Values, spec.Suspend = source, tree, true
			return nil
		},
	})
}

// nameFree refuses a name that is no chart addon's to have.
func (s *Server) nameFree(ctx context.Context, name string) error {
	owner, err := s.o.Registry.Owner(ctx, name)
	if err != nil {
		return err
	}
	if owner != registry.OwnedByNobody && owner != registry.OwnedByChart {
		return fault.New(fault.NameTaken, "the name %s belongs to %s", name, owner).
			WithHint("remove that one first, or give the addon another name if its manifest allows")
	}
	return nil
}

// patchChart answers PATCH /api/portal/addon-charts/{name}.
func (s *Server) patchChart(c *call, in apitype.PatchRequest) (apitype.WriteAnswer, error) {
	var nothing apitype.WriteAnswer
	if in.Chart == nil && in.Version == nil && in.Digest == nil && in.Values == nil && in.Suspend == nil &&
		len(in.SecretValues) == 0 && len(in.SecretRefs) == 0 && len(in.ClearSecrets) == 0 {
		return nothing, invalid("the patch changes nothing").
			WithHint("give chart, version, digest, values, secretValues, secretRefs, clearSecrets or suspend")
	}
	w := write{name: c.name}
	var err error
	if w.inputs, err = newInputs(c.name, in.SecretValues, in.SecretRefs, in.ClearSecrets); err != nil {
		return nothing, err
	}
	w.change = func(spec *v1alpha1.ZaentrumAddonSpec) error {
		source, err := patchedSource(spec.Chart, in)
		if err != nil {
			return err
		}
		// What is planned must be seen before it replaces what runs.
		if source != spec.Chart {
			spec.Suspend = true
		}
		spec.Chart = source
		if in.Suspend != nil {
			spec.Suspend = *in.Suspend
		}
		return nil
	}
	if in.Values != nil {
		tree, err := checkValues(*in.Values)
		if err != nil {
			return nothing, err
		}
		w.admit = func(addon *v1alpha1.ZaentrumAddon) error {
			source, err := patchedSource(addon.Spec.Chart, in)
			if err != nil {
				return err
			}
			return noPlainSecrets(addon, source.Ref, *in.Values)
		}
		change := w.change
		w.change = func(spec *v1alpha1.ZaentrumAddonSpec) error {
			spec.Values = tree
			return change(spec)
		}
	}
	return s.write(c, w)
}

// patchedSource is the chart after a patch. A new chart or version drops the digest unless the patch has one.
func patchedSource(was v1alpha1.ChartSource, in apitype.PatchRequest) (v1alpha1.ChartSource, error) {
	if in.Chart == nil && in.Version == nil && in.Digest == nil {
		return was, nil // what is there is not judged again
	}
	ref, version := was.Ref, was.Version
	if in.Chart != nil {
		ref = *in.Chart
		parsed, err := chart.ParseReference(ref)
		if err != nil {
			return was, err
		}
		old, err := chart.ParseReference(was.Ref)
		// A tag says which version, and another archive is another version: the old one says nothing.
		if parsed.Tag != "" || err != nil || parsed.Scheme != old.Scheme ||
			parsed.Scheme == chart.SchemeHTTPS && parsed.String() != old.String() {
			version = ""
		}
	}
	if in.Version != nil {
		version = *in.Version
	}
	now, err := chart.Source(ref, version, "")
	if err != nil {
		return was, err
	}
	if same, err := chart.Source(was.Ref, was.Version, ""); err == nil && same == now {
		now.Ref, now.Version = was.Ref, was.Version // the same, written in another way
	}
	digest := was.Digest
	if now.Ref != was.Ref || now.Version != was.Version {
		digest = ""
	}
	if in.Digest != nil {
		if _, err := chart.Source(ref, version, *in.Digest); err != nil {
			return was, err
		}
		digest = *in.Digest
	}
	now.Digest = digest
	return now, nil
}

// installChart answers POST /api/portal/addon-charts/{name}/install. The write holds the version of the resource
// whose plan was checked here, its status included: a plan made in between is checked anew.
func (s *Server) installChart(c *call, in apitype.InstallRequest) (apitype.WriteAnswer, error) {
	wanted, err := ifMatch(c.request.Header)
	if err != nil {
		return apitype.WriteAnswer{}, err
	}
	if in.Generation != nil && *in.Generation < 1 {
		return apitype.WriteAnswer{}, invalid("generation is less than 1").WithHint("send the generation that the plan was read with")
	}
	var seen int64 // the generation whose plan is installed
	return s.write(c, write{
		name: c.name,
		admit: func(addon *v1alpha1.ZaentrumAddon) error {
			if seen != 0 && addon.Generation != seen {
				return fault.New(fault.Conflict, "addon %s changed while it was about to be installed", addon.Name).
					WithHint("look at the new plan first")
			}
			seen = addon.Generation
			if in.Generation != nil && *in.Generation != addon.Generation {
				return fault.New(fault.Conflict, "addon %s is of generation %d, not %d", addon.Name, addon.Generation, *in.Generation).
					WithHint("read it again, and install the plan that it has now")
			}
			if !wanted.matches(planTag(addon)) {
				return fault.New(fault.Conflict, "the plan of addon %s changed since it was read", addon.Name).
					WithHint("read it again, and install it with the ETag that comes with it")
			}
			return installable(addon)
		},
		change: func(spec *v1alpha1.ZaentrumAddonSpec) error {
			spec.Suspend = false
			return nil
		},
	})
}

// installable refuses an addon without a plan that may be installed.
func installable(a *v1alpha1.ZaentrumAddon) error {
	status := a.Status
	if status.ObservedGeneration < a.Generation || status.Phase == "" {
		return fault.New(fault.NoPlan, "addon %s is not planned yet", a.Name).
			WithHint("wait until observedGeneration reaches %d", a.Generation)
	}
	if status.Plan.Blocked() {
		return fault.New(fault.PlanBlocked, "the plan of addon %s has %s and %s", a.Name,
			count(len(status.Plan.Violations), "violation", "violations"),
			count(len(status.Plan.ValuesErrors), "values error", "values errors")).
			WithHint("zae addon status %s shows them", a.Name)
	}
	planned := true
	for _, condition := range status.Conditions {
		if condition.Type == v1alpha1.ConditionPlanned {
			planned = condition.Status == metav1.ConditionTrue
		}
	}
	if status.Plan == nil || !planned || status.Phase == v1alpha1.PhasePlanFailed {
		return fault.New(fault.NoPlan, "there is no plan of addon %s as it is asked for", a.Name).
			WithHint("zae addon status %s says why", a.Name)
	}
	return nil
}

// write changes a resource: validate everything, dry-run it, create the Secret, write it. Whatever step fails,
// what was set earlier is still set. The Secret of a write that failed is referenced by nothing, and the
// operator deletes it.
func (s *Server) write(c *call, w write) (apitype.WriteAnswer, error) {
	var nothing apitype.WriteAnswer
	ctx := c.mustEnd
	w.once, w.audit = c.once, c.audit
	w.audit.about(w.name)
	if answer, err := s.written(ctx, w); err != nil || answer != nil {
		return *cmp.Or(answer, &nothing), err
	}
	doing := "write addon " + w.name
	secret, stored := w.inputs.secret(s.o.Namespace), false
	var first types.UID
	for attempt := range maxAttempts {
		if err := pause(ctx, attempt); err != nil {
			return nothing, clusterFault(err, doing)
		}
		if !stored {
			suffix, err := w.once.secretSuffix(s.o.Random)
			if err != nil {
				return nothing, err
			}
			secret.Name = v1alpha1.ValuesSecretPrefix(w.name) + suffix
		}
		r, changed, err := s.prepare(ctx, w, first, secret.Name)
		if err != nil {
			return nothing, err
		}
		first = r.object.GetUID()
		if !changed && first != "" {
			return w.answer(r)
		}
		if len(secret.Data) > 0 && !stored {
			err := s.send(ctx, &resource{object: r.object.DeepCopy()}, client.DryRunAll)
			if err == nil {
				w.once.writes()
				err = w.once.sameSecret(s.o.Client.Create(ctx, secret, fieldManager))
				doing = "create a values Secret"
			}
			switch {
			case err == nil:
				stored, doing = true, "write addon "+w.name
			case outrun(err):
				continue
			default:
				return nothing, s.refusal(ctx, err, doing)
			}
		}
		w.once.writes()
		err = s.send(ctx, r)
		switch {
		case err == nil:
			return w.answer(r)
		case outrun(err):
			continue
		}
		return nothing, s.refusal(ctx, err, doing)
	}
	return nothing, fault.New(fault.Conflict, "addon %s changed again and again meanwhile", w.name)
}

// pause waits a little longer before each attempt after the first.
func pause(ctx context.Context, attempt int) error {
	if attempt == 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(20 * time.Millisecond << attempt)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// outrun tells whether somebody else's write came first, so that doing this one over may help.
func outrun(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) && !kindMissing(err)
}

// prepare is the resource as it will be written, and whether that changes it. first is the resource's identity
// in an earlier attempt, secret the name of the Secret with the request's values.
func (s *Server) prepare(ctx context.Context, w write, first types.UID, secret string) (_ *resource, changed bool, _ error) {
	r, err := s.read(ctx, w.name)
	missing := fault.CodeOf(err) == fault.NotFound
	switch {
	case missing && first != "", err == nil && first != "" && r.object.GetUID() != first:
		return nil, false, fault.New(fault.Conflict, "addon %s was deleted meanwhile", w.name)
	case missing && w.create:
		r = newResource(s.o.Namespace, w.name)
	case err != nil:
		return nil, false, err
	case r.addon.DeletionTimestamp != nil:
		return nil, false, beingDeleted(w.name)
	}
	w.audit.was(&r.addon)
	if w.admit != nil {
		if err := w.admit(&r.addon); err != nil {
			return nil, false, err
		}
	}
	spec := *r.addon.Spec.DeepCopy()
	if err := w.change(&spec); err != nil {
		return nil, false, err
	}
	if spec.ValuesFrom, err = w.inputs.apply(spec.ValuesFrom, secret); err != nil {
		return nil, false, err
	}
	if changed, err = r.put(spec); changed {
		r.mark(ctx)
		w.once.mark(r)
	}
	return r, changed, err
}

func beingDeleted(name string) error {
	return fault.New(fault.Deleting, "addon %s is being deleted", name).WithHint("try again when it is gone")
}

// send writes the object. An update holds the identity and the version that were read, so that it changes
// nothing else than what was looked at.
func (s *Server) send(ctx context.Context, r *resource, dry ...dryRun) error {
	if r.object.GetUID() == "" {
		options := []client.CreateOption{fieldManager}
		for _, d := range dry {
			options = append(options, d)
		}
		return s.noted(r, dry, s.o.Client.Create(ctx, r.object, options...))
	}
	options := []client.UpdateOption{fieldManager}
	for _, d := range dry {
		options = append(options, d)
	}
	return s.noted(r, dry, s.o.Client.Update(ctx, r.object, options...))
}

// noted remembers a write that was done, and answers with its error.
func (s *Server) noted(r *resource, dry []dryRun, err error) error {
	if err == nil && len(dry) == 0 {
		s.own.note(r.object, false)
	}
	return err
}

// dryRun is client.DryRunAll, or nothing.
type dryRun interface {
	client.CreateOption
	client.UpdateOption
}

// answer is writeAnswer, and notes what there is now.
func (w write) answer(r *resource) (apitype.WriteAnswer, error) {
	answer, err := writeAnswer(r)
	if err == nil {
		w.audit.is(&r.addon, w.inputs.paths())
	}
	return answer, err
}

func writeAnswer(r *resource) (apitype.WriteAnswer, error) {
	if err := r.see(); err != nil {
		return apitype.WriteAnswer{}, err
	}
	a := r.addon
	return apitype.WriteAnswer{
		Name: a.Name, Generation: a.Generation, ObservedGeneration: a.Status.ObservedGeneration, Chart: wireChart(a.Spec.Chart),
	}, nil
}

func wireChart(c v1alpha1.ChartSource) apitype.Chart {
	return apitype.Chart{Ref: c.Ref, Version: c.Version, Digest: c.Digest}
}
