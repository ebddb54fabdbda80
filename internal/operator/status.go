package operator

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/api/v1alpha1"
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
)

// outcome is what a reconcile found, from which the status is made.
type outcome struct {
	// waiting, when not empty, is what is waited for: the message then says so, and all else stays as it is.
	waiting string

	phase   v1alpha1.Phase
	message string

	planned, ready condition

	plan *v1alpha1.Plan
	// components are nil when they could not be read: then those known stay.
	components []v1alpha1.Component
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
}

type condition struct {
	status  metav1.ConditionStatus
	reason  string
	message string
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
		s.Components = o.components
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

// writeStatus writes the outcome, as one patch, and only when it differs from what is there.
func (r *reconciler) writeStatus(ctx context.Context, a *v1alpha1.ZaentrumAddon, o *outcome) error {
	want := o.status(a, metav1.NewTime(r.now()))
	o.known.clean(&want)
	fit(&want)
	if equality.Semantic.DeepEqual(a.Status, want) {
		return nil
	}
	before := a.Status
	patched := a.DeepCopy()
	patched.Status = want
	// The lock refuses a status computed from a resource that is no longer there as it was read.
	patch := client.MergeFromWithOptions(a, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, patched, patch); err != nil {
		return fmt.Errorf("status: %w", err)
	}
	r.writes.wrote(patched)
	r.transition(patched, before.Phase)
	r.tellMoved(patched, &before, o.moved)
	return nil
}
