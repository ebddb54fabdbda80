package engine

import (
	"context"

	"zaentrum.io/zae/internal/apply"
	"zaentrum.io/zae/internal/manifest"
)

// Converged is the outcome of Converge.
type Converged struct {
	*Previewed
	// Applied tells whether the whole set is applied and the rest pruned. It is false when the plan is
	// blocked, when the cluster refused to write what it had accepted, while an object waits for its
	// predecessor to go, and when the request asked for calm.
	Applied bool
	Report  apply.Report
	// Pruned is what the chart no longer renders and was deleted.
	Pruned []manifest.ID
	// Live is what the cluster holds of the addon now; Health is how that does.
	Live manifest.Set
}

// Converge makes the cluster hold what the chart says, unless the plan is blocked or the request asks for calm.
func (e *Engine) Converge(ctx context.Context, r Request, owner apply.Owner) (*Converged, error) {
	previewed, err := e.preview(ctx, r, owner, false)
	if err != nil {
		return nil, err
	}
	out := &Converged{Previewed: previewed, Live: previewed.Observed.Owned}
	if !previewed.Blocked() && !previewed.Calm {
		if err := e.converge(ctx, r, owner, out); err != nil {
			return nil, err
		}
	}
	out.Health = e.Cluster.Health(owner, out.Live, out.remembered(r, owner))
	out.Health.Wait(out.Report.Waiting)
	return out, nil
}

func (e *Engine) converge(ctx context.Context, r Request, owner apply.Owner, out *Converged) error {
	var err error
	end := e.step(ctx, StepApply)
	out.Report, err = e.Cluster.Apply(ctx, owner, out.Rehearsal)
	end(err)
	if r.Did != nil {
		r.Did(out.Report)
	}
	if err != nil {
		return err
	}
	if len(out.Report.Refused) > 0 {
		return nil
	}
	out.Live = out.Report.Live
	if !out.Report.Complete() {
		return nil
	}
	end = e.step(ctx, StepPrune)
	out.Pruned, err = e.Cluster.Prune(ctx, owner, out.Wanted.IDs(), out.Observed)
	end(err)
	if err != nil {
		return err
	}
	out.Applied = true
	return nil
}
