package cli

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/client"
	"zaentrum.io/zae/internal/fault"
)

type removeOptions struct {
	goFlags
	keep bool
}

func newAddonRemove(a *app) *cobra.Command {
	var o removeOptions
	cmd := &cobra.Command{
		Use:     "remove NAME",
		Aliases: []string{"rm"},
		Short:   "remove an addon and everything it created",
		Long: `Remove an addon: every object its chart created, its registry rows and, unless they are kept, its
secret inputs and generated values. Data that was encrypted with a generated value cannot be read
without it. The command that adds the addon again is told.`,
		Example: `  zae addon remove example --keep-values
  zae addon remove example --yes`,
		Args: exactly("NAME"),
		RunE: runE(func(ctx context.Context, args []string) error { return a.addonRemove(ctx, args[0], &o) }),
	}
	cmd.Flags().BoolVar(&o.keep, "keep-values", false, "keep secret inputs and generated values for a later addon of this name")
	o.register(cmd.Flags(), false)
	return cmd
}

func (a *app) addonRemove(ctx context.Context, name string, o *removeOptions) error {
	if err := checkPresent(name); err != nil {
		return err
	}
	ch, err := a.prepare(ctx, name, &o.goFlags, &givenFlags{})
	if err != nil {
		return err
	}
	defer ch.c.Close()
	before, err := existing(ctx, ch.c, name)
	if err != nil {
		return err
	}
	if !o.yes {
		a.showLoss(name, before, o.keep)
		if err := a.confirm(ctx, "Remove "+name+"?"); err != nil {
			a.err.printf("%s stays as it is; nothing was removed\n", name)
			return err
		}
	}
	steady, cancel := a.steady(ctx)
	gone, err := ch.c.Delete(steady, name, o.keep)
	cancel()
	if err != nil {
		if unsure(err) {
			a.err.printf("%s may be on its way out\n", name)
			ch.tellLook()
		}
		return err
	}
	if gone.Doc.Resource {
		if err := a.waitGone(ctx, ch.c, name, o); err != nil {
			return err
		}
	}
	if o.output != "" {
		return a.document(o.output, gone.Raw)
	}
	a.showGone(&gone.Doc, before)
	if before != nil {
		a.tellReturn(before, gone.Doc.KeptValues)
	}
	return nil
}

// showLoss lists what would go. Rows can be left of an addon whose resource is gone.
func (a *app) showLoss(name string, doc *apitype.AddonChart, keep bool) {
	if doc == nil {
		a.err.printf("there is no resource of %s; removing it deletes its registry rows, if there are any\n", name)
		return
	}
	a.err.printf("removing %s deletes:\n", strings.Join(nonEmpty(doc.Name, doc.Chart.Version), " "))
	t := table{indent: "  "}
	applied := doc.LastAppliedChart != nil || !doc.Suspended
	if doc.Plan != nil && applied {
		added := doc.Plan.Changes.Added
		objects := slices.Clone(doc.Plan.Objects)
		if doc.Suspended { // a plan that is not installed: what it would add is not there
			objects = slices.DeleteFunc(objects, func(o v1alpha1.ObjectRef) bool { return slices.Contains(added, o) })
			objects = append(objects, doc.Plan.Changes.Removed...)
		}
		for _, o := range objects {
			note := ""
			if o.Kind == "PersistentVolumeClaim" {
				note = "its data may go with it"
			}
			t.row(o, note)
		}
	}
	switch {
	case keep:
		t.row("nothing of its secret inputs and generated values: they are kept")
	case len(doc.SecretKeys) > 0:
		t.row("secret inputs", strings.Join(doc.SecretKeys, ", "))
		t.row("generated values", "data encrypted with them cannot be read afterwards")
	default:
		t.row("generated values", "data encrypted with them cannot be read afterwards")
	}
	t.row("registry rows", "app, tiles and slots")
	t.print(a.err)
}

// waitGone waits until the resource is gone, with everything that holds it.
func (a *app) waitGone(ctx context.Context, c *client.Client, name string, o *removeOptions) error {
	err := a.poll(ctx, o.timeout, func(ctx context.Context) (bool, error) {
		_, err := c.Get(ctx, name)
		if fault.CodeOf(err) == fault.NotFound {
			return true, nil
		}
		return false, err
	})
	switch {
	case errors.Is(err, errTooLate):
		return fault.New(fault.NotReady, "%s is being removed, and is not gone after %s", name, o.timeout).
			WithHint("look again: zae addon status %s", name)
	case err != nil && ctx.Err() != nil:
		return fault.From(err).WithHint("the removal goes on; look again: zae addon status %s", name)
	default:
		return err
	}
}

func (a *app) showGone(doc *apitype.DeleteAnswer, before *apitype.AddonChart) {
	var t table
	t.row("removed", "addon "+doc.Name)
	for _, row := range doc.Removed {
		t.row("removed", row)
	}
	if doc.KeptValues {
		rows := keptRows(before)
		for _, r := range rows {
			t.row("kept", "Secret/"+r.name, strings.Join(r.paths, ", "))
		}
		if len(rows) == 0 {
			t.row("kept", "secret inputs and generated values, if there were any")
		}
	}
	t.print(a.out)
}

// keptSecret is a Secret that stays, with the inputs that are in it.
type keptSecret struct {
	name  string
	paths []string
}

// keptRows are the Secrets that are kept with an addon's values: those it reads, and the one of generated inputs.
func keptRows(doc *apitype.AddonChart) []keptSecret {
	if doc == nil {
		return nil
	}
	in := map[string][]string{}
	for _, path := range slices.Sorted(maps.Keys(doc.SecretRefs)) {
		name := doc.SecretRefs[path].Name
		in[name] = append(in[name], path)
	}
	if doc.Plan != nil {
		name := v1alpha1.GeneratedSecretName(doc.Name)
		for _, input := range doc.Plan.Inputs {
			if input.State == v1alpha1.InputGenerated {
				in[name] = append(in[name], input.Path)
			}
		}
	}
	var out []keptSecret
	for _, name := range slices.Sorted(maps.Keys(in)) {
		out = append(out, keptSecret{name, in[name]})
	}
	return out
}

// tellReturn says how to have it back: with the very command where that can be given as it stands.
func (a *app) tellReturn(doc *apitype.AddonChart, kept bool) {
	args := []string{doc.Chart.Ref}
	if hasQuery(doc.Chart.Ref) {
		args[0] = shownReference(doc.Chart.Ref)
	}
	if doc.Chart.Version != "" && strings.HasPrefix(doc.Chart.Ref, "oci://") {
		args = append(args, "--version", doc.Chart.Version)
	}
	if doc.Chart.Digest != "" {
		args = append(args, "--digest", doc.Chart.Digest)
	}
	args = append(args, "--name", doc.Name)
	var missing []string
	if hasQuery(doc.Chart.Ref) {
		missing = append(missing, "the query of the link")
	}
	plain, apart := returningValues(doc)
	args = append(args, plain...)
	for _, path := range slices.Sorted(maps.Keys(doc.SecretRefs)) {
		if kept {
			args = append(args, "--secret-ref", refText(path, doc.SecretRefs[path]))
		} else {
			args = append(args, "--set-secret", path)
		}
	}
	again := "to add it again"
	if kept {
		again = "to add it again with what is kept"
	}
	a.err.printf("%s: %s\n", again, commandLine("zae addon add", args...))
	switch {
	case apart != "":
		a.err.printf("with its plain values in values.yaml:\n")
		a.err.raw(apart)
	case len(doc.Values) > 0 && plain == nil:
		missing = append(missing, "its plain values, which have a secret among them")
	}
	if len(missing) > 0 {
		a.err.printf("to be given besides, since it is not shown: %s\n", strings.Join(missing, "; "))
	}
}

// returningValues are the flags that give an addon's plain values again, and, where they are too much for flags, the
// file that these name. There are none where a secret is among the values.
func returningValues(doc *apitype.AddonChart) (flags []string, file string) {
	if len(doc.Values) == 0 || len(plainSecrets(doc)) > 0 {
		return nil, ""
	}
	flags, ok := valueFlags(nil, doc.Values, nil)
	if ok && len(commandLine("", flags...)) <= maxCommand {
		return flags, ""
	}
	tree, err := plainValues(doc.Values)
	if err != nil {
		return nil, ""
	}
	text, err := yamlText(tree)
	if err != nil {
		return nil, ""
	}
	return []string{"--values", "values.yaml"}, text
}
