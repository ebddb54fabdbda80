package cli

import (
	"context"
	"strings"

	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/client"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/values"
)

// change is one change of an addon on its way: written, planned, shown, asked about, installed. What was
// written and is then not installed is put back, or said to be left.
type change struct {
	a     *app
	c     *client.Client
	name  string
	flags goFlags
	given *given
	// before is the addon as it was before the first write; nil when there was none.
	before *apitype.AddonChart

	own       int64 // the generation our last write made; 0 when that is not known
	wrote     bool  // something was written, or may have been
	installed bool  // the install was accepted
	asking    bool  // the install was sent

	planned *apitype.AddonChart // as it was planned last; nil before that
}

// planFault is a plan that cannot be installed.
func planFault(format string, args ...any) *fault.Fault {
	return fault.New(fault.PlanBlocked, format, args...)
}

// write sends one write and keeps the generation it made.
func (ch *change) write(ctx context.Context, send func(context.Context) (*client.Answer[apitype.WriteAnswer], error)) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	steady, cancel := ch.a.steady(ctx)
	defer cancel()
	got, err := send(steady)
	if err != nil {
		if unsure(err) {
			ch.wrote, ch.own = true, 0
		}
		return err
	}
	ch.wrote, ch.own = true, got.Doc.Generation
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// unsure tells whether a write that failed may have happened all the same.
func unsure(err error) bool {
	switch fault.CodeOf(err) {
	case fault.Unreachable, fault.Internal, fault.Cluster, fault.Interrupted, fault.Terminated:
		return true
	default:
		return false
	}
}

// through takes the change from its first write to the end, and puts back what was not installed.
func (ch *change) through(ctx context.Context, first func(context.Context) (*client.Answer[apitype.WriteAnswer], error)) error {
	err := ch.write(ctx, first)
	if err == nil {
		err = ch.decide(ctx)
	}
	switch {
	case err == nil:
		return ch.after(ctx)
	case !ch.wrote:
		return ch.untouched(err)
	case !ch.installed:
		ch.settle(ctx)
	}
	return err
}

// decide shows the plan and installs it, or says why not. A plan that is made anew meanwhile, because the content
// behind a version or the cluster changed, is shown and asked about again.
func (ch *change) decide(ctx context.Context) error {
	moved := false
	for {
		got, err := ch.a.waitPlanned(ctx, ch.c, ch.name, ch.own, ch.flags.timeout)
		if err != nil {
			return err
		}
		v := newPlanView(&got.Doc, ch.before, ch.given)
		ch.planned = &got.Doc
		ch.show(v)
		if err := ch.given.astray(v.schema, "nothing was installed"); err != nil {
			return err
		}
		refusal := v.refusal()
		switch {
		case refusal == nil && moved && ch.flags.yes:
			return ch.notAsShown()
		case refusal == nil:
			if moved, err = ch.install(ctx, got.ETag); !moved || err != nil {
				return err
			}
			ch.a.err.printf("the plan changed since it was shown; this is the plan now:\n")
		case !v.onlyMissing() || !ch.a.person():
			return refusal
		default:
			if err := ch.complete(ctx, v); err != nil {
				return err
			}
		}
	}
}

// notAsShown is a plan that changed under a command that asks nobody: it was agreed to before it was there.
func (ch *change) notAsShown() error {
	f := fault.New(fault.Conflict, "the plan of addon %s changed since it was shown, and was not installed", ch.name)
	if ch.wrote && ch.before != nil {
		return f.WithHint("read the plan there is now, and give the command again")
	}
	return f.WithHint("read the plan there is now, then: zae addon install %s", ch.name)
}

// show prints the plan: it is the answer, unless a document is.
func (ch *change) show(v *planView) {
	to := ch.a.out
	if ch.flags.output != "" {
		if !ch.a.person() {
			return
		}
		to = ch.a.err
	}
	v.print(to)
	for _, note := range ch.given.notes(v.schema) {
		ch.a.err.printf("note: %s\n", note)
	}
}

// complete asks for the inputs that are missing and has the plan made again.
func (ch *change) complete(ctx context.Context, v *planView) error {
	ch.a.err.printf("the chart asks for more; %s\n", ch.a.prompts().keys())
	tree, err := plainValues(v.doc.Values)
	if err != nil {
		return err
	}
	secrets := map[string]string{}
	changed := false
	for _, in := range v.missingInputs() {
		q := newQuestion(in)
		if in.Secret {
			text, err := ch.a.askSecret(ctx, q)
			if err != nil {
				return err
			}
			secrets[in.Path] = text
			ch.given.secrets[in.Path] = text
			continue
		}
		value, err := ch.a.askValue(ctx, in, q)
		if err != nil {
			return err
		}
		values.Set(tree, strings.Split(in.Path, "."), value)
		changed = true
	}
	patch := apitype.PatchRequest{SecretValues: secrets}
	if changed {
		patch.Values = &tree
	}
	return ch.write(ctx, func(ctx context.Context) (*client.Answer[apitype.WriteAnswer], error) {
		return ch.c.Patch(ctx, ch.name, patch)
	})
}

// install asks and installs the plan that the tag names. It is true when there is another plan of the same
// generation, and nothing was installed.
func (ch *change) install(ctx context.Context, tag string) (moved bool, _ error) {
	if !ch.flags.yes {
		if err := ch.a.confirm(ctx, "Install this plan?"); err != nil {
			return false, err
		}
	}
	if moved, err := ch.another(ctx, tag); moved || err != nil {
		return moved, err
	}
	planned := ch.own
	ch.asking = true
	err := ch.write(ctx, func(ctx context.Context) (*client.Answer[apitype.WriteAnswer], error) {
		return ch.c.Install(ctx, ch.name, tag)
	})
	switch {
	case err != nil && ch.own == 0: // not known whether it was accepted
		ch.own = planned
		return false, err
	case err != nil && ch.own == planned: // refused
		ch.asking = false
		if fault.CodeOf(err) == fault.Conflict {
			if moved, _ := ch.another(ctx, tag); moved {
				return true, nil
			}
		}
		return false, err
	}
	ch.installed = true
	return false, ch.goesOn(ctx, err)
}

// another tells whether there is another plan than the one that the tag names. Where the instance names none, it is
// the generation alone that tells, and another one is somebody else's.
func (ch *change) another(ctx context.Context, tag string) (bool, error) {
	now, err := ch.c.Get(ctx, ch.name)
	if err != nil {
		return false, err
	}
	if now.Doc.Generation != ch.own {
		return false, elsewhere(ch.name, now.Doc.Generation, ch.own)
	}
	return tag != "" && now.ETag != "" && now.ETag != tag, nil
}

// goesOn adds to an interruption what it does not end.
func (ch *change) goesOn(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return fault.From(err).WithHint("the operator goes on; look again: zae addon status %s", ch.name)
}

// after is what follows an accepted install.
func (ch *change) after(ctx context.Context) error {
	if ch.flags.wait {
		if err := ch.follow(ctx); err != nil {
			return err
		}
	}
	if ch.flags.output != "" {
		got, err := ch.c.Get(ctx, ch.name)
		if err != nil {
			return ch.goesOn(ctx, err)
		}
		return ch.a.document(ch.flags.output, got.Raw)
	}
	if !ch.flags.wait {
		ch.a.out.printf("%s is being installed\n", ch.name)
		ch.a.err.printf("to see how far it is: zae addon status %s\n", ch.name)
		ch.tellUndo()
	}
	return nil
}

// existing reads an addon; nil when there is none of that name.
func existing(ctx context.Context, c *client.Client, name string) (*apitype.AddonChart, error) {
	got, err := c.Get(ctx, name)
	if fault.CodeOf(err) == fault.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &got.Doc, nil
}
