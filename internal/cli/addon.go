package cli

import (
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/fault"
)

func newAddon(a *app) *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "addon COMMAND",
		Short: "add, upgrade and remove addons, and write their charts",
		Long: `Add, upgrade and remove the addons of an instance, and write, check and publish their charts, which
needs no instance.`,
		Example: `  zae addon add oci://ghcr.io/example/charts/example --version 1.2.0 --set-secret database.url
  zae addon status example`,
	})
	cmd.AddGroup(&cobra.Group{ID: forAdmins, Title: "Addons of an instance"}, &cobra.Group{ID: forAuthors, Title: "Charts, without an instance"})
	grouped(cmd, forAdmins,
		newAddonAdd(a),
		newAddonInstall(a),
		newAddonList(a),
		newAddonRemove(a),
		newAddonStatus(a),
		newAddonUpgrade(a),
	)
	grouped(cmd, forAuthors,
		newAddonExplain(a),
		newAddonInit(a),
		newAddonInputs(a),
		newAddonLint(a),
		newAddonPackage(a),
		newAddonPlan(a),
		newAddonPush(a),
		newAddonRender(a),
	)
	return cmd
}

// The groups that help shows the commands in.
const (
	forAdmins  = "admins"
	forAuthors = "authors"
)

func grouped(cmd *cobra.Command, id string, commands ...*cobra.Command) {
	for _, c := range commands {
		c.GroupID = id
	}
	cmd.AddCommand(commands...)
}

const defaultTimeout = 10 * time.Minute

// goFlags are the flags of commands that change an addon.
type goFlags struct {
	yes     bool
	wait    bool
	timeout time.Duration
	output  format
}

func (g *goFlags) register(flags *pflag.FlagSet, wait bool) {
	flags.BoolVarP(&g.yes, "yes", "y", false, "do not ask")
	if wait {
		flags.Lookup("yes").Usage += "; a refused plan is never installed"
		flags.BoolVar(&g.wait, "wait", false, "wait until the addon is Ready and registered")
	}
	flags.DurationVar(&g.timeout, "timeout", defaultTimeout, "`DURATION` that one wait may take, such as 90s")
	g.output.register(flags)
}

func (g *goFlags) check() error {
	if g.timeout <= 0 {
		return fault.New(fault.Usage, "--timeout must be more than nothing")
	}
	return nil
}

// usage turns a fault about what was typed into a usage fault, so that it ends with exit 2.
func usage(err error) error {
	if err == nil {
		return nil
	}
	f := *fault.From(err)
	f.Code = fault.Usage
	return &f
}

// checkName refuses what cannot be the name of a new addon.
func checkName(name string) error { return usage(chart.CheckName(name)) }

// checkPresent refuses what cannot be the name of any resource. It takes more than checkName does: a
// committed resource with a name that no addon may have can still be looked at and removed.
func checkPresent(name string) error {
	if name == "" || len(name) > 253 || strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.'
	}) {
		return fault.New(fault.Usage, "that is no name of an addon").WithHint("see: zae addon list")
	}
	return nil
}
