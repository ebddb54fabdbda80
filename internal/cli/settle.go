package cli

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"

	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/client"
	"zaentrum.io/zae/internal/fault"
)

// Whatever ends a command early, the person is told what there is now and how to go on, or how to be rid of it.

// untouched is for an end before anything was sent: a prompt that was given up, an interruption.
func (ch *change) untouched(err error) error {
	if err != nil && givenUp(err) {
		ch.a.err.printf("nothing was sent, and nothing of %s is changed\n", ch.name)
	}
	return err
}

// givenUp tells whether it was the person who ended it.
func givenUp(err error) bool {
	switch fault.CodeOf(err) {
	case fault.Declined, fault.Interrupted, fault.Terminated:
		return true
	default:
		return false
	}
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
	var done bool
	if err == nil {
		done, err = ch.putBack(ctx, &now.Doc)
	}
	switch {
	case err != nil:
		ch.a.err.printf("could not put %s back: %s\n", ch.name, err)
		ch.tellLook()
		if undo := ch.undoCommand(); undo != "" {
			ch.a.err.printf("to put it back by hand: %s\n", undo)
		}
	case done:
		ch.a.err.printf("%s was put back to %s; nothing was installed\n", ch.name, beforeText(ch.before))
		ch.tellAsBefore()
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
		ch.tellPlanned(&now.Doc, ch.given)
	}
}

// tellPlanned says what there is of an addon that is suspended, and how to go on. g is what was given for it just now,
// nil for nothing.
func (ch *change) tellPlanned(doc *apitype.AddonChart, g *given) {
	runs := "nothing of it runs"
	if doc.LastAppliedChart != nil {
		runs = "what runs keeps running"
	}
	switch amends := ch.amends(doc, g); {
	case !doc.PlanCurrent():
		ch.a.err.printf("%s is there and not planned yet, and %s\n", ch.name, runs)
		ch.a.err.printf("to install it once it is planned: zae addon install %s; %s\n", ch.name, ch.drop(doc))
	case amends != "":
		ch.a.err.printf("%s stays as it was asked for, and %s\n", ch.name, runs)
		ch.a.err.printf("%s; %s\n", amends, ch.drop(doc))
	default:
		ch.a.err.printf("%s stays planned, and %s\n", ch.name, runs)
		ch.a.err.printf("to install it: zae addon install %s; %s\n", ch.name, ch.drop(doc))
	}
}

// amends is how to make a plan that can be installed of one that cannot; empty when it can.
func (ch *change) amends(doc *apitype.AddonChart, g *given) string {
	v := newPlanView(doc, nil, g)
	switch wrong := g.strays(v.schema); {
	case len(wrong) > 0:
		return "to put it right: " + commandLine("zae addon upgrade", append([]string{ch.name}, g.corrections(wrong, v.schema)...)...)
	case v.refusal() == nil:
		return ""
	case v.onlyMissing():
		args := []string{ch.name}
		for _, in := range v.missingInputs() {
			args = append(args, v.flagFor(in)...)
		}
		return "to give what is missing: " + commandLine("zae addon upgrade", args...)
	default:
		return "to change it: zae addon upgrade " + ch.name + ", with --version, --chart, --set or another flag"
	}
}

// drop is how to be rid of what is planned.
func (ch *change) drop(doc *apitype.AddonChart) string {
	runs := doc.LastAppliedChart
	switch {
	case runs == nil:
		return "to drop it: zae addon remove " + ch.name
	case !otherChart(doc, runs):
		return "to ask for something else: zae addon upgrade " + ch.name + ", with --set, --unset or another flag"
	case runs.Ref != doc.Chart.Ref && hasQuery(runs.Ref):
		return "to go back to what runs: zae addon upgrade " + ch.name + ", with --chart and the link it had"
	default:
		return "to go back to what runs: " + commandLine("zae addon upgrade", append([]string{ch.name}, chartFlagsOf(doc.Chart.Ref, runs)...)...)
	}
}

// tellAsBefore says how to go on with an addon that is as it was before the command.
func (ch *change) tellAsBefore() {
	if ch.before.Suspended {
		ch.tellPlanned(ch.before, nil)
		return
	}
	ch.a.err.printf("it goes on as before; to try again, give the command again\n")
}

func (ch *change) tellLook() {
	ch.a.err.printf("to see what there is: zae addon status %s\n", ch.name)
}

// putBack restores chart, values, secret references and suspension as they were read before the first write, unless somebody
// else changed the addon since. It tells whether it wrote.
func (ch *change) putBack(ctx context.Context, now *apitype.AddonChart) (bool, error) {
	switch {
	case now.Generation == ch.before.Generation && now.Suspended == ch.before.Suspended:
		// Our write did not happen, or changed nothing.
		ch.a.err.printf("%s is as it was, %s; nothing was installed\n", ch.name, beforeText(ch.before))
		ch.tellAsBefore()
		return false, nil
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
