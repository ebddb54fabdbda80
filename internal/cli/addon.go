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
		Short: "add, upgrade and remove addons",
	})
	cmd.AddCommand(
		newAddonAdd(a),
		newAddonExplain(a),
		newAddonInit(a),
		newAddonInputs(a),
		newAddonInstall(a),
		newAddonLint(a),
		newAddonList(a),
		newAddonPackage(a),
		newAddonPlan(a),
		newAddonPush(a),
		newAddonRemove(a),
		newAddonRender(a),
		newAddonStatus(a),
		newAddonUpgrade(a),
	)
	return cmd
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
	flags.BoolVarP(&g.yes, "yes", "y", false, "do not ask; a refused plan is never installed")
	if wait {
		flags.BoolVar(&g.wait, "wait", false, "wait until the addon is Ready and registered")
	}
	flags.DurationVar(&g.timeout, "timeout", defaultTimeout, "how long one wait may take")
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
