package e2e

import (
	"context"
	"testing"
	"time"

	"zaentrum.io/zae/testbed/stack"
)

// replica is one of two operators.
type replica struct {
	*stack.Operator
	gate *gate
}

// pair is a world with two operators, one of which leads.
type pair struct {
	*world
	replicas [2]*replica
}

// lead is the one that leads, and the other, once somebody does.
func (p *pair) lead() (leader, other *replica) {
	p.Helper()
	var last operatorRequest
	p.eventually("somebody leads", func() bool {
		for _, r := range p.requestsOf(p.replicas[0].Credential, p.replicas[1].Credential) {
			if r.ObjectRef.Resource == "leases" && (r.Verb == "update" || r.Verb == "create") && r.ResponseStatus.Code < 300 {
				last = r
			}
		}
		return time.Since(last.StageTimestamp) < 5*time.Second
	})
	if last.credential() == p.replicas[0].Credential {
		return p.replicas[0], p.replicas[1]
	}
	return p.replicas[1], p.replicas[0]
}

// leads waits until this one leads.
func (p *pair) leads(r *replica) {
	p.Helper()
	p.eventually("the other one leads", func() bool {
		now, _ := p.lead()
		return now == r
	})
}

func (p *pair) start(r *replica) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, time.Minute)
	defer cancel()
	if err := r.Start(ctx); err != nil {
		p.Fatal(err)
	}
}

func (p *pair) stepAll() {
	p.Helper()
	for _, m := range p.members {
		p.Log(p.step(m))
	}
}

// TestFaultTwoOperators moves the leadership between two operators: by killing the leader in its work, by freezing it there
// for longer than its lease, and in order. Nothing may be done twice, and one that comes back from being frozen must write
// nothing.
func TestFaultTwoOperators(t *testing.T) {
	moves := 1
	if chaos() {
		moves = 8
	}
	first := &gate{}
	h := openHouse(t, opening{gate: first.wrap, within: time.Duration(moves)*6*time.Minute + 2*time.Minute})
	second := &gate{}
	other, err := h.AnotherOperator(h.ctx, stack.OperatorOptions{Name: "zae-operator-2-" + h.Namespace, Gate: second.wrap})
	if err != nil {
		t.Fatal(err)
	}
	p := &pair{world: newWorld(h, []string{"two-a", "two-b"}, seed(t))}
	// What a leader that ends or is frozen had under way may be done without a line in the audit log that says so.
	p.lossy = true
	p.replicas[0] = &replica{&stack.Operator{Process: h.Operator, MetricsURL: h.MetricsURL, Credential: h.Credential}, first}
	p.replicas[1] = &replica{other, second}
	p.stepAll()
	p.settle()
	for range moves {
		p.killed()
		p.frozen()
		p.stopped()
	}
}

// killed kills the leader in its work.
func (p *pair) killed() {
	p.Helper()
	leader, other := p.lead()
	at := &point{writes: true, n: p.random.IntN(20), after: p.random.IntN(2) == 0, fired: make(chan struct{}), act: func() {
		if err := leader.Kill(); err != nil {
			p.Error(err)
		}
	}}
	leader.gate.set(at)
	p.stepAll()
	p.reach(leader, at)
	p.settle()
	p.leads(other) // steps that need no operator were done before
	p.start(leader)
}

// reach waits until a point is reached, and has more steps taken until it is.
func (p *pair) reach(leader *replica, at *point) {
	p.Helper()
	for {
		select {
		case <-at.fired:
			return
		case <-p.ctx.Done():
			p.Fatal(p.ctx.Err())
		case <-time.After(300 * time.Millisecond):
		}
		if p.unsettled() == "" && leader.gate.waits(at) {
			p.stepAll()
		}
	}
}

// frozen freezes the leader in its work until the other one leads and has gone on, and lets it go on then.
func (p *pair) frozen() {
	p.Helper()
	leader, other := p.lead()
	at := &point{writes: true, n: p.random.IntN(20), after: true, goesOn: true, fired: make(chan struct{}), act: func() {
		if err := leader.Pause(); err != nil {
			p.Error(err)
		}
	}}
	leader.gate.set(at)
	p.stepAll()
	p.reach(leader, at)
	p.leads(other)
	p.settle()
	p.stepAll()
	p.settle()
	thawed := time.Now()
	if err := leader.Resume(); err != nil {
		p.Fatal(err)
	}
	// It learns that it does not lead any more, and ends; a kubelet would start it again.
	p.eventually("the former leader has ended", func() bool { return !leader.Running() })
	var wrote []string
	for _, r := range p.requestsOf(leader.Credential) {
		if r.writes() && r.StageTimestamp.After(thawed) {
			wrote = append(wrote, r.String())
		}
	}
	if len(wrote) > 0 {
		p.Errorf("a leader that was frozen for longer than its lease wrote: %v", wrote)
	}
	p.settle()
	p.start(leader)
}

// stopped stops the leader in order.
func (p *pair) stopped() {
	p.Helper()
	leader, other := p.lead()
	p.stepAll()
	time.Sleep(time.Duration(p.random.IntN(1000)) * time.Millisecond)
	stopping := time.Now()
	if err := leader.Stop(); err != nil {
		p.Fatal(err)
	}
	p.leads(other)
	p.settle()
	p.Logf("all is well %s after the leader was asked to stop", time.Since(stopping).Round(100*time.Millisecond))
	p.start(leader)
}
