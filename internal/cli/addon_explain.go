package cli

import (
	"context"

	"github.com/spf13/cobra"

	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/lint"
)

func newAddonExplain(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "explain [RULE]",
		Short: "say what a rule is for, and the way out",
		Long: `Say what a rule is for, and the way out: of the guardrails, which the operator judges by, and of what
zae addon lint tells authors. Without a rule, list them all.`,
		Example: `  zae addon explain no-host-path
  zae addon explain`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var ids []string
			for _, r := range lint.Catalogue() {
				ids = append(ids, r.ID+"\t"+r.Title)
			}
			return ids, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: runE(func(_ context.Context, args []string) error {
			if len(args) == 0 {
				a.listRules()
				return nil
			}
			return a.explain(args[0])
		}),
	}
}

func (a *app) listRules() {
	var t table
	t.row("RULE", "SEVERITY", "WHAT MUST HOLD")
	for _, r := range lint.Catalogue() {
		t.row(r.ID, severityText(r.Severity), r.Title)
	}
	t.print(a.out)
}

func (a *app) explain(id string) error {
	r, ok := lint.RuleByID(id)
	if !ok {
		f := fault.New(fault.Usage, "there is no rule %q", printable(id))
		var ids []string
		for _, r := range lint.Catalogue() {
			ids = append(ids, r.ID)
		}
		if near := nearest(id, ids); near != "" {
			return f.WithHint("did you mean %s?", near)
		}
		return f.WithHint("zae addon explain lists all rules")
	}
	a.out.printf("%s  %s\n", style(strong, r.ID), severityText(r.Severity))
	a.out.printf("%s\n\nwhy  %s\nfix  %s\n", r.Title, r.Why, r.Fix)
	switch {
	case r.Notice:
		a.out.printf("\nThis is a notice: plans tell it to the admin who reads them, and lint tells nobody.\n")
		return nil
	case r.Guardrail && r.Fixed:
		a.out.printf("\nThis is a guardrail: the operator refuses the plan.\n")
	case r.Guardrail:
		a.out.printf("\nThis is a guardrail that warns: the operator says so in the plan, and refuses nothing.\n")
	}
	if !r.Fixed {
		a.out.printf("\nTo leave it as it is, with a reason, in %s of the chart's directory:\n  ignore:\n    - rule: %s\n      reason: why this is right here\n", lint.ExceptionsFile, r.ID)
	}
	return nil
}

func severityText(s lint.Severity) styled {
	switch s {
	case lint.Error:
		return style(bad, string(s))
	case lint.Warning:
		return style(changed, string(s))
	default:
		return style(faint, string(s))
	}
}
