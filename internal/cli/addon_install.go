package cli

import (
	"context"

	"github.com/spf13/cobra"
)

func newAddonInstall(a *app) *cobra.Command {
	var o goFlags
	cmd := &cobra.Command{
		Use:   "install NAME",
		Short: "install the plan of an addon that was only planned",
		Args:  exactly("NAME"),
		RunE:  runE(func(ctx context.Context, args []string) error { return a.addonInstall(ctx, args[0], &o) }),
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
		return err
	}
	ch.before, ch.own = &got.Doc, got.Doc.Generation
	if !got.Doc.Suspended {
		a.err.printf("%s is not suspended: its plan is installed already\n", name)
		return ch.after(ctx)
	}
	if err := ch.decide(ctx); err != nil {
		if ch.asking && !ch.installed {
			a.err.printf("the install may have been accepted\n")
			ch.tellLook()
		}
		return err
	}
	return ch.after(ctx)
}
