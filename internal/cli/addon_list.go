package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
)

func newAddonList(a *app) *cobra.Command {
	var out format
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "list addons, from charts and from addresses",
		Long:    `List the addons of the instance, those from charts and those from addresses.`,
		Example: `  zae addon list
  zae addon list -o json`,
		Args: exactly(),
		RunE: runE(func(ctx context.Context, _ []string) error { return a.addonList(ctx, out) }),
	}
	out.register(cmd.Flags())
	return cmd
}

func (a *app) addonList(ctx context.Context, out format) error {
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	got, err := c.List(ctx)
	if err != nil {
		return err
	}
	if out != "" {
		return a.document(out, got.Raw)
	}
	if len(got.Doc.Addons) == 0 {
		a.err.printf("there are no addons; add one: zae addon add oci://registry/path/chart --version X.Y.Z\n")
		return nil
	}
	var t table
	t.row("NAME", "PHASE", "VERSION", "READY", "REGISTERED", "FROM")
	for _, one := range got.Doc.Addons {
		version, from := "-", one.Address
		if c := one.Chart; c != nil {
			from, version = c.Ref, listVersion(c)
		}
		t.row(one.Name, phaseText(one.Phase, one.Suspended), version, readyText(one.Components), registeredText(one.Registered, one.RegistrationError), from)
	}
	t.print(a.out)
	return nil
}

// listVersion is the version asked for, and the one that runs where that is another.
func listVersion(c *apitype.AddonListChart) string {
	wanted := orDash(c.Version)
	if c.LastApplied != nil && c.LastApplied.Version != "" && c.LastApplied.Version != c.Version {
		return fmt.Sprintf("%s (runs %s)", wanted, c.LastApplied.Version)
	}
	return wanted
}

func phaseText(p v1alpha1.Phase, suspended bool) styled {
	text := string(p)
	if text == "" {
		text = "-"
	}
	switch p {
	case v1alpha1.PhaseReady:
		return style(good, text)
	case v1alpha1.PhaseFailed, v1alpha1.PhasePlanFailed:
		return style(bad, text)
	case v1alpha1.PhaseDegraded, v1alpha1.PhaseInstalling:
		return style(changed, text)
	}
	if p == "" && suspended {
		text = "suspended"
	}
	return style(ordinary, text)
}

func readyText(components []v1alpha1.Component) string {
	if len(components) == 0 {
		return "-"
	}
	ready := 0
	for _, c := range components {
		if c.Ready >= c.Desired && c.Reason == "" {
			ready++
		}
	}
	return fmt.Sprintf("%d/%d", ready, len(components))
}

func registeredText(registered bool, why string) string {
	switch {
	case registered:
		return "yes"
	case why != "":
		return "no: " + why
	default:
		return "no"
	}
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
