package cli

import (
	"context"

	"github.com/spf13/cobra"

	"zaentrum.io/zae/internal/fault"
)

func newAddonInstall(a *app) *cobra.Command {
	var o goFlags
	cmd := &cobra.Command{
		Use:   "install NAME",
		Short: "install the plan of an addon that was only planned",
		Long:  `Install the plan of an addon that was only planned: it is shown again, and installed once you agree.`,
		Example: `  zae addon install example --wait
  zae addon install example --yes`,
		Args: exactly("NAME"),
		RunE: runE(func(ctx context.Context, args []string) error { return a.addonInstall(ctx, args[0], &o) }),
	}
	o.register(cmd.Flags(), true)
	return cmd
}

func (a *app) addonInstall(ctx context.Context, name string, o *goFlags) error {
	if err := checkPresent(name); err != nil {
		return err
	}
	ch, err := a.prepare(ctx, name, o, &givenFlags{})
	if err != nil {
		return err
	}
	defer ch.c.Close()
	got, err := ch.c.Get(ctx, name)
	if err != nil {
		return ch.untouched(err)
	}
	ch.before, ch.own = &got.Doc, got.Doc.Generation
	if !got.Doc.Suspended {
		a.err.printf("%s is not suspended: its plan is installed already\n", name)
		return ch.after(ctx)
	}
	err = ch.decide(ctx)
	switch {
	case err == nil:
		return ch.after(ctx)
	case ch.installed:
	case ch.asking:
		a.err.printf("the install may have been accepted\n")
		ch.tellLook()
	case givenUp(err), fault.CodeOf(err) == fault.PlanBlocked, fault.CodeOf(err) == fault.NotReady:
		if ch.planned == nil {
			ch.planned = ch.before
		}
		ch.tellPlanned(ch.planned, nil)
	}
	return err
}
