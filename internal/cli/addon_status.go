package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
)

func newAddonStatus(a *app) *cobra.Command {
	var out format
	cmd := &cobra.Command{
		Use:   "status NAME",
		Short: "show an addon's plan and progress",
		Long: `Show an addon: what it is asked to be, what runs, its plan and why it is refused, its components and
whether it is registered.`,
		Example: `  zae addon status example
  zae addon status example -o yaml`,
		Args: exactly("NAME"),
		RunE: runE(func(ctx context.Context, args []string) error { return a.addonStatus(ctx, args[0], out) }),
	}
	out.register(cmd.Flags())
	return cmd
}

func (a *app) addonStatus(ctx context.Context, name string, out format) error {
	if err := checkPresent(name); err != nil {
		return err
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	got, err := c.Get(ctx, name)
	if err != nil {
		return err
	}
	if out != "" {
		return a.document(out, got.Raw)
	}
	a.showStatus(&got.Doc)
	return nil
}

func (a *app) showStatus(doc *apitype.AddonChart) {
	var t table
	t.row("addon", doc.Name)
	t.row("phase", phaseText(doc.Phase, doc.Suspended))
	if doc.Message != "" {
		t.row("message", doc.Message)
	}
	t.row("chart", chartText(doc.Chart))
	if r := doc.LastAppliedChart; r != nil {
		t.row("runs", strings.TrimSpace(r.Version+" "+shortDigest(r.Digest)))
	} else {
		t.row("runs", "nothing yet")
	}
	t.row("plan", planText(doc))
	t.row("registered", registeredText(doc.Registered, doc.RegistrationError))
	if len(doc.SecretKeys) > 0 {
		t.row("secrets set", strings.Join(doc.SecretKeys, ", "))
	}
	t.print(a.out)
	if len(doc.Components) > 0 {
		a.out.printf("\n")
		var t table
		t.row("COMPONENT", "READY", "REASON")
		for _, c := range doc.Components {
			t.row(c.Name, fmt.Sprintf("%d/%d", c.Ready, c.Desired), orDash(c.Reason))
		}
		t.print(a.out)
	}
	a.printJobs(doc.Jobs)
	if doc.Plan != nil && doc.PlanCurrent() {
		v := newPlanView(doc, nil, nil)
		c := doc.Plan.Changes
		if doc.Suspended && len(c.Added)+len(c.Removed)+len(c.Images)+len(c.Modified) > 0 {
			a.out.printf("\n")
			v.printObjects(a.out)
		}
		v.printTold(a.out)
		var why *detailed
		if errors.As(v.refusal(), &why) {
			a.out.printf("\nthe plan is refused:\n")
			why.print(a.out)
		}
	}
	if doc.Suspended && doc.Phase == v1alpha1.PhasePlanned {
		a.err.printf("to install the plan: zae addon install %s\n", doc.Name)
	}
}

func chartText(c apitype.Chart) string {
	return strings.Join(nonEmpty(c.Ref, c.Version, shortDigest(c.Digest)), " ")
}

func planText(doc *apitype.AddonChart) string {
	switch {
	case !doc.PlanCurrent():
		return fmt.Sprintf("being made for generation %d", doc.Generation)
	case doc.Plan == nil:
		return "none"
	case doc.Plan.Blocked():
		return fmt.Sprintf("refused, generation %d", doc.Generation)
	case doc.Suspended:
		return fmt.Sprintf("can be installed, generation %d", doc.Generation)
	default:
		return fmt.Sprintf("applied, generation %d", doc.Generation)
	}
}

// shortDigest is enough of a digest to tell it from another.
func shortDigest(digest string) string {
	kind, hex, ok := strings.Cut(digest, ":")
	if !ok || len(hex) < 12 {
		return digest
	}
	return kind + ":" + hex[:8] + "…" + hex[len(hex)-4:]
}

func nonEmpty(texts ...string) []string {
	var out []string
	for _, t := range texts {
		if t != "" {
			out = append(out, t)
		}
	}
	return out
}
