package cli

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
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
	refused   bool  // the last plan shown cannot be installed

	chartChanged bool // another chart or version than the one that ran is installed
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
	if err != nil && ch.wrote && !ch.installed {
		ch.settle(ctx)
	}
	if err != nil {
		return err
	}
	return ch.after(ctx)
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
		ch.show(v)
		ch.chartChanged = ch.before != nil && got.Doc.Chart != ch.before.Chart
		refusal := v.refusal()
		ch.refused = refusal != nil
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
	for _, slip := range v.slips() {
		ch.a.err.printf("note: %s\n", slip)
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

// tellUndo says how to undo what was installed, as far as one command can.
func (ch *change) tellUndo() {
	if ch.before == nil || ch.before.LastAppliedChart == nil {
		ch.a.err.printf("to undo it: zae addon remove %s\n", ch.name)
		return
	}
	args := []string{"zae addon upgrade", ch.name}
	if ch.chartChanged {
		was := ch.before.LastAppliedChart
		args = append(args, "--chart", was.Ref)
		if was.Version != "" {
			args = append(args, "--version", was.Version)
		}
	}
	if ch.given != nil {
		for _, path := range leaves(ch.given.values, nil) {
			was, there := values.Get(ch.before.Values, strings.Split(path, "."))
			if !there {
				return // no flag takes a value out again
			}
			text, err := json.Marshal(was)
			if err != nil || len(text) > 200 {
				return
			}
			args = append(args, "--set", quoted(path+"="+string(text)))
		}
	}
	if len(args) > 2 {
		ch.a.err.printf("to undo it: %s\n", strings.Join(args, " "))
	}
}

// quoted is a word as a shell takes it.
func quoted(word string) string {
	if !strings.ContainsFunc(word, func(r rune) bool {
		return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=./:,@", r)
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// settle leaves things as they were before, as far as that can be done, and says what it did. It works
// on after an interruption, for a bounded time.
func (ch *change) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ch.a.pace.undo)
	defer cancel()
	now, err := ch.c.Get(ctx, ch.name)
	if ch.before == nil {
		ch.leave(now, err)
		return
	}
	if err != nil {
		ch.a.err.printf("could not put %s back: %s\n", ch.name, err)
		ch.tellLook()
		return
	}
	done, err := ch.putBack(ctx, &now.Doc)
	switch {
	case err != nil:
		ch.a.err.printf("could not put %s back: %s\n", ch.name, err)
		ch.tellLook()
	case done:
		ch.a.err.printf("%s was put back to %s; nothing was installed\n", ch.name, beforeText(ch.before))
	}
}

// leave says what became of an addon that was new.
func (ch *change) leave(now *client.Answer[apitype.AddonChart], err error) {
	switch {
	case fault.CodeOf(err) == fault.NotFound:
		ch.a.err.printf("%s was not created\n", ch.name)
	case err != nil:
		ch.a.err.printf("%s may have been created\n", ch.name)
		ch.tellLook()
	case !now.Doc.Suspended:
		ch.a.err.printf("%s is being installed\n", ch.name)
		ch.tellLook()
	default:
		stays, way := "stays planned", "to install it: zae addon install "
		if ch.refused {
			stays, way = "stays as it was asked for", "to change it: zae addon upgrade "
		}
		ch.a.err.printf("%s %s, and nothing of it runs\n", ch.name, stays)
		ch.a.err.printf("%s%s; to drop it: zae addon remove %s\n", way, ch.name, ch.name)
	}
}

func (ch *change) tellLook() {
	ch.a.err.printf("to see what there is: zae addon status %s\n", ch.name)
}

// putBack restores chart, values, secret references and suspension as they were read before the first write, unless somebody
// else changed the addon since. It tells whether it wrote.
func (ch *change) putBack(ctx context.Context, now *apitype.AddonChart) (bool, error) {
	switch {
	case now.Generation == ch.before.Generation && now.Suspended == ch.before.Suspended:
		return false, nil // our write did not happen, or changed nothing
	case ch.asking && !now.Suspended:
		ch.a.err.printf("the install was accepted: %s is being installed\n", ch.name)
		ch.tellLook()
		return false, nil
	case ch.own == 0 && now.Generation == ch.before.Generation+1 && now.Suspended:
		// Not known to be ours, but one step on and suspended, as our write would have left it.
	case now.Generation != ch.own:
		ch.a.err.printf("%s was changed by somebody else meanwhile, and is left as it is\n", ch.name)
		ch.tellLook()
		return false, nil
	}
	_, err := ch.c.Patch(ctx, ch.name, restore(now, ch.before))
	return err == nil, err
}

// restore is the patch that leads from what is now to what was before.
func restore(now, before *apitype.AddonChart) apitype.PatchRequest {
	suspended := before.Suspended
	patch := apitype.PatchRequest{Suspend: &suspended}
	if now.Chart != before.Chart {
		c := before.Chart
		patch.Chart, patch.Digest = &c.Ref, &c.Digest
		if c.Version != "" || now.Chart.Version != "" {
			patch.Version = &c.Version
		}
	}
	if len(now.Values)+len(before.Values) > 0 && !reflect.DeepEqual(now.Values, before.Values) {
		tree := before.Values
		if tree == nil {
			tree = map[string]any{}
		}
		patch.Values = &tree
	}
	// Secret inputs go back by reference: no write ever changes a values Secret, so the one that was read before
	// still holds what it held.
	for _, path := range slices.Sorted(maps.Keys(now.SecretRefs)) {
		was, ok := before.SecretRefs[path]
		switch {
		case !ok:
			patch.ClearSecrets = append(patch.ClearSecrets, path)
		case was != now.SecretRefs[path]:
			patch.SecretRefs = with(patch.SecretRefs, path, was)
		}
	}
	for path, was := range before.SecretRefs {
		if _, ok := now.SecretRefs[path]; !ok {
			patch.SecretRefs = with(patch.SecretRefs, path, was)
		}
	}
	return patch
}

func with(refs map[string]apitype.SecretRef, path string, ref apitype.SecretRef) map[string]apitype.SecretRef {
	if refs == nil {
		refs = map[string]apitype.SecretRef{}
	}
	refs[path] = ref
	return refs
}

func beforeText(before *apitype.AddonChart) string {
	text := strings.Join(nonEmpty(before.Chart.Version), " ")
	if text == "" {
		text = "the chart it had"
	}
	if before.Suspended {
		text += ", suspended"
	}
	return text
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

func (g *given) secretsOrNil() map[string]string {
	if g == nil {
		return nil
	}
	return g.secrets
}
