package operator

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apply"
)

// Reasons of the conditions.
const (
	reasonClean       = "Clean"               // Planned: nothing stands in the way
	reasonViolations  = "Violations"          // Planned: guardrails refused something
	reasonValues      = "ValuesErrors"        // Planned: values or rendering are wrong
	reasonChart       = "ChartUnavailable"    // Planned: the chart cannot be fetched or loaded
	reasonName        = "InvalidName"         // Planned: the addon's name is invalid
	reasonPlatform    = "PlatformUnavailable" // Planned: no platform, several, or underivable values
	reasonCluster     = "ClusterFailed"       // Planned or Ready: the cluster did not do its part
	reasonRefused     = "Refused"             // Planned or Ready: the cluster refused an object
	reasonReady       = "AllReady"            // Ready: every component is ready
	reasonProgressing = "Progressing"         // Ready: a rollout is on its way
	reasonDegraded    = "Degraded"            // Ready: a component is not ready, or its rollout stalled
	reasonNotApplied  = "NotApplied"          // Ready: nothing was applied
	reasonNotPlanned  = "NotPlanned"          // Ready: planning failed, nothing was applied
	reasonRights      = "RightsLacking"       // Planned: the operator may not do what it takes
)

// outcome is what a reconcile found, from which the status is made.
type outcome struct {
	// waiting, when not empty, is what is waited for: the message then says so, and all else stays as it is.
	waiting string

	phase   v1alpha1.Phase
	message string

	planned, ready condition

	plan *v1alpha1.Plan
	// components and jobs are nil when they could not be read: then those known stay.
	components []v1alpha1.Component
	jobs       []v1alpha1.JobRun
	// applied is what was applied just now; nil leaves what is known.
	applied *v1alpha1.AppliedChart
	// reviewed is the content of a plan that was made while the addon was suspended.
	reviewed *v1alpha1.AppliedChart
	// moved is content that was published again; nil when it was not, or when that is not known.
	moved *moved
	// again is when to look again at what nothing tells of; 0 for at the next resync.
	again time.Duration
	// known are the secret values that must not show.
	known *secrets
	// idle, when not nil, is what was found to be as it should be; cutShort tells that the status does not say all.
	idle     *atRest
	cutShort bool
}

type condition struct {
	status  metav1.ConditionStatus
	reason  string
	message string
}

// found takes over how what runs does. None is a finding too.
func (o *outcome) found(h apply.Health) {
	o.components = append([]v1alpha1.Component{}, h.Components...)
	o.jobs = append([]v1alpha1.JobRun{}, h.Jobs...)
}

// running makes how what was applied does the outcome.
func (o *outcome) running(h apply.Health) {
	o.found(h)
	o.ready = readiness(h)
	switch h.State {
	case apply.Ready:
		o.phase = v1alpha1.PhaseReady
	case apply.Installing:
		o.phase = v1alpha1.PhaseInstalling
	default:
		o.phase = v1alpha1.PhaseDegraded
	}
	o.message = o.ready.message
}

// suspended takes over how what was applied before does, while the addon is suspended.
func (o *outcome) suspended(a *v1alpha1.ZaentrumAddon, h apply.Health) {
	o.found(h)
	o.ready = condition{metav1.ConditionFalse, reasonNotApplied, "nothing was applied"}
	if a.Status.LastAppliedChart != nil {
		o.ready = readiness(h)
	}
}

// status is the status a resource should have.
func (o *outcome) status(a *v1alpha1.ZaentrumAddon, now metav1.Time) v1alpha1.ZaentrumAddonStatus {
	s := *a.Status.DeepCopy()
	if o.waiting != "" {
		s.Message = o.waiting
		return s
	}
	s.Phase = o.phase
	s.Message = o.message
	s.ObservedGeneration = a.Generation
	s.Plan = o.plan
	if o.reviewed != nil {
		s.Reviewed = o.reviewed
	}
	if o.components != nil {
		s.Components, s.Jobs = o.components, o.jobs
	}
	if o.applied != nil {
		s.LastAppliedChart = o.applied
	}
	for kind, c := range map[string]condition{v1alpha1.ConditionPlanned: o.planned, v1alpha1.ConditionReady: o.ready} {
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: kind, Status: c.status, Reason: c.reason, Message: c.message,
			ObservedGeneration: a.Generation, LastTransitionTime: now,
		})
	}
	sortConditions(s.Conditions)
	return s
}

// sortConditions puts Planned before Ready.
func sortConditions(c []metav1.Condition) {
	if len(c) == 2 && c[0].Type > c[1].Type {
		c[0], c[1] = c[1], c[0]
	}
}

// writeStatus writes the outcome, as one patch, and only when it differs from what is there. The resource is then
// as it was written. Where later is not 0, it is to be written then: it only counts how far a rollout is.
func (r *reconciler) writeStatus(ctx context.Context, a *v1alpha1.ZaentrumAddon, o *outcome) (later time.Duration, err error) {
	want := o.status(a, metav1.NewTime(r.now()))
	if clear, _ := r.sight.clear(); clear && o.waiting == "" { // the caches may not be filled, and must not be waited for
		if list, err := valuesSecrets(ctx, r.client, client.ObjectKeyFromObject(a), client.UnsafeDisableDeepCopy); err == nil {
			want.ValuesSecrets = tellSecrets(list, a.Name)
		} // else those known stay
	}
	o.known.clean(&want)
	o.cutShort = fit(&want)
	if equality.Semantic.DeepEqual(a.Status, want) {
		return 0, nil
	}
	if countsOnly(&a.Status, &want) {
		if later := countsAfter - r.writes.since(a, r.now()); later > 0 {
			return later, nil
		}
	}
	before := *a.Status.DeepCopy()
	patched := a.DeepCopy()
	patched.Status = want
	// The lock refuses a status computed from a resource that is no longer there as it was read.
	patch := client.MergeFromWithOptions(a, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, patched, patch); err != nil {
		return 0, fmt.Errorf("status: %w", err)
	}
	r.writes.wrote(patched, r.now())
	r.telemetry.StatusWritten(ctx)
	r.transition(ctx, patched, &before)
	r.tellMoved(ctx, patched, &before, o.moved)
	*a = *patched
	return 0, nil
}

const (
	// maxToldSecrets is the most values Secrets that a status lists, and maxToldKeys the most keys of all of them.
	maxToldSecrets = 32
	maxToldKeys    = 256
)

// tellSecrets are values Secrets as a status lists them: by name, without data. Of too many the newest are listed.
func tellSecrets(list []unstructured.Unstructured, addon string) []v1alpha1.ValuesSecret {
	var all []v1alpha1.ValuesSecret
	for i := range list {
		s := &list[i]
		if s.GetDeletionTimestamp() != nil {
			continue
		}
		data, _, _ := unstructured.NestedFieldNoCopy(s.Object, "data") // one without data has no keys
		keys, _ := data.(map[string]any)
		all = append(all, v1alpha1.ValuesSecret{
			Name: s.GetName(), Keys: slices.Sorted(maps.Keys(keys)), CreatedAt: s.GetCreationTimestamp(),
			Kept: kept(s), Generated: s.GetName() == v1alpha1.GeneratedSecretName(addon),
		})
	}
	slices.SortFunc(all, func(a, b v1alpha1.ValuesSecret) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt.Time), cmp.Compare(a.Name, b.Name))
	})
	all = all[:min(len(all), maxToldSecrets)]
	room := maxToldKeys
	for i := range all {
		all[i].Keys = all[i].Keys[:min(len(all[i].Keys), room)]
		room -= len(all[i].Keys)
	}
	slices.SortFunc(all, func(a, b v1alpha1.ValuesSecret) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// countsAfter is how long a rollout goes on before its status is written anew, unless it ends: each pod changes it
// several times.
const countsAfter = 2 * time.Second

// countsOnly tells whether a status differs from the one before only in how far a rollout is.
func countsOnly(before, want *v1alpha1.ZaentrumAddonStatus) bool {
	if before.Phase != v1alpha1.PhaseInstalling || want.Phase != before.Phase {
		return false
	}
	same := *want
	same.Message, same.Components = before.Message, before.Components
	same.Conditions = slices.Clone(want.Conditions)
	for i := range same.Conditions {
		if c := meta.FindStatusCondition(before.Conditions, same.Conditions[i].Type); c != nil {
			same.Conditions[i].Message = c.Message
		}
	}
	return equality.Semantic.DeepEqual(*before, same)
}
