package operator

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apply"
)

// Reconcile takes one addon through its steps as far as the operator has the rights, and says where it has not.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if clear, lacking := r.sight.clear(); lacking != nil {
		return r.rightless(ctx, req, *lacking)
	} else if !clear {
		return ctrl.Result{RequeueAfter: afterEmptyCache}, nil
	}
	result, err := r.reconcile(ctx, req)
	if right, denied := apply.Denied(err); denied {
		return r.rightless(ctx, req, right)
	}
	return result, err
}

// rightless tells an addon's reader which right the operator lacks for it: in the status, or in an event where it
// is the status that may not be written.
func (r *reconciler) rightless(ctx context.Context, req ctrl.Request, right apply.Right) (ctrl.Result, error) {
	again := ctrl.Result{RequeueAfter: askAgainMost}
	if !r.sight.addons.HasSynced() {
		return again, nil
	}
	a := &v1alpha1.ZaentrumAddon{}
	if err := r.client.Get(ctx, req.NamespacedName, a); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if r.writes.behind(a) {
		return ctrl.Result{RequeueAfter: afterStaleCache}, nil
	}
	o := r.lacking(right)
	if a.Spec.Suspend {
		o.phase = v1alpha1.PhasePlanFailed
	}
	o.known = &secrets{plain: a.Name} // nothing was rendered
	_, err := r.writeStatus(ctx, a, o)
	if denied, ok := apply.Denied(err); ok {
		if right, _ = r.sight.access.named(denied); r.toldOf.first(a, right.String()) {
			r.events.Eventf(a, nil, corev1.EventTypeWarning, reasonRights, "Reconcile", "%s", cannot(right))
		}
		return again, nil
	}
	return requeueOnConflict(again, err)
}

// lacking is the outcome where the operator lacks a right.
func (r *reconciler) lacking(right apply.Right) *outcome {
	right, _ = r.sight.access.named(right)
	return failed(reasonRights, cannot(right))
}
