package engine

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apply"
	"zaentrum.io/zae/internal/guard"
	"zaentrum.io/zae/internal/manifest"
)

// neighbourhood are the kinds between which traffic goes and that the operator may read. What others run besides is
// seen by its pods.
var neighbourhood = []schema.GroupVersionKind{
	{Version: "v1", Kind: "Service"},
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "batch", Version: "v1", Kind: "Job"},
}

// traffic holds what is new about an addon and can concern others against what they have in the namespace. Without
// anything new it asks nothing; with recall, neither about what was fine when it was asked last.
func (e *Engine) traffic(ctx context.Context, owner apply.Owner, wanted, live manifest.Set, recall bool) ([]guard.Finding, error) {
	fresh := guard.NewTraffic(wanted, live)
	if len(fresh) == 0 {
		return nil, nil
	}
	type said struct {
		ID     manifest.ID
		Labels map[string]string
		Apart  []any
	}
	var all []said
	for _, o := range fresh {
		all = append(all, said{o.ID(), guard.Selector(o), guard.Apart(o)})
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	if recall && e.Cluster.Settled(owner.UID, text) {
		return nil, nil
	}
	near, err := e.neighbours(ctx, owner, live)
	if err != nil {
		return nil, err
	}
	found := guard.CheckNeighbours(fresh, near)
	if len(found) == 0 {
		e.Cluster.Settle(owner.UID, text)
	}
	return found, nil
}

// neighbours are what others have in the namespace. Deployments and Jobs are seen also while they have no pods, all
// else while it has some.
func (e *Engine) neighbours(ctx context.Context, owner apply.Owner, live manifest.Set) (guard.Neighbours, error) {
	var near guard.Neighbours
	pods, err := e.Cluster.Pods(ctx, owner)
	if err != nil {
		return near, err
	}
	others, err := e.Cluster.Others(ctx, owner, neighbourhood...)
	if err != nil {
		return near, err
	}
	for _, o := range others {
		n := guard.Neighbour{Kind: o.ID().Kind, Name: o.ID().Name, Labels: guard.Selector(o), Refers: guard.References(o)}
		if n.Kind == "Service" {
			near.Services = append(near.Services, n)
		} else {
			near.Workloads = append(near.Workloads, n)
		}
	}
	own, theirs := known(live), known(others)
	for _, p := range pods {
		if own[p.Owner] || !theirs[p.Owner] && leftBehind(p) {
			continue
		}
		n := guard.Neighbour{Kind: p.Owner.Kind, Name: p.Owner.Name, Labels: p.Labels}
		if n.Kind == "" {
			n.Kind, n.Name = "Pod", p.Name
		}
		near.Workloads = append(near.Workloads, n)
	}
	return near, nil
}

func known(set manifest.Set) map[manifest.ID]bool {
	out := map[manifest.ID]bool{}
	for _, id := range set.IDs() {
		out[id] = true
	}
	return out
}

// leftBehind tells whether a pod whose owner is not there any more was an addon's Deployment's, or a Job's: then it
// will be gone in a moment, too.
func leftBehind(p apply.Pod) bool {
	switch p.Owner.Kind {
	case "Deployment":
		return p.Labels[v1alpha1.LabelComponent] == p.Owner.Name
	case "Job":
		return true
	}
	return false
}

// judged puts what the guardrails found into the plan.
func judged(p *v1alpha1.Plan, c *Checked) {
	p.Violations, p.Findings = nil, nil
	p.Warnings = append([]string(nil), c.Warnings...)
	for _, list := range [][]guard.Finding{c.Findings, c.Notices} {
		for _, f := range list {
			rule, _ := guard.RuleByID(f.Rule)
			level := v1alpha1.FindingWarns
			if refusal(f) {
				level = v1alpha1.FindingRefuses
				p.Violations = append(p.Violations, f.String())
			} else {
				p.Warnings = append(p.Warnings, f.String())
			}
			p.Findings = append(p.Findings, v1alpha1.Finding{
				ID: f.Rule, Level: level, Object: v1alpha1.ObjectRef{Kind: f.Kind, Name: f.Name}, Path: f.Path, Title: rule.Title,
			})
		}
	}
}
