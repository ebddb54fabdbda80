package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"zaentrum.io/zae/internal/fault"
)

// commands are the constructors of the top-level commands, in no order: help sorts them. A command of
// another file, such as serve-operator, is one more line here.
func commands() []func(*app) *cobra.Command {
	return []func(*app) *cobra.Command{
		newAddon,
		newServeAPI,
		newServeOperator,
		newRegistry,
		newLogin,
		newLogout,
		newVersion,
	}
}

func newRoot(a *app) *cobra.Command {
	root := group(&cobra.Command{
		Use:   "zae COMMAND",
		Short: "install and look after addons of a zaentrum platform",
		Long: `zae talks to a zaentrum platform: it adds, upgrades and removes addons from their charts, and shows
the plan of every change before it is made.

The instance is given with --url, ZAE_URL or url in the config file; the bearer is ZAE_TOKEN, else
the session that zae login stored.

Exit status: 0 done; 1 refused, failed, declined or not ready in time; 2 wrong usage; 3 not offered;
4 the instance did not answer as one; 5 not signed in or not allowed; 130 and 143 interrupted.`,
		Example: `  zae login --url https://media.example.org
  zae addon add oci://ghcr.io/example/charts/example --version 1.2.0 --set-secret database.url
  zae addon list`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRun: func(*cobra.Command, []string) {
			a.start()
		},
	})
	root.SetIn(a.p.Stdin)
	root.SetOut(a.p.Stdout)
	root.SetErr(a.p.Stderr)
	root.SetFlagErrorFunc(flagFault)
	flags := root.PersistentFlags()
	flags.StringVar(&a.flags.url, "url", "", "`URL` of the instance, such as https://media.example.org (or ZAE_URL)")
	flags.BoolVar(&a.flags.debug, "debug", false, "show each request's line, status, time and trace")
	flags.BoolVar(&a.flags.noColor, "no-color", false, "no colours and no moving lines (or NO_COLOR)")
	for _, make := range commands() {
		root.AddCommand(make(a))
	}
	helpTexts(root)
	return root
}

// group makes a command that only has commands under it. Alone it shows its help; an unknown command is
// a usage fault with the nearest one.
func group(cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	cmd.DisableFlagsInUseLine = true
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		f := fault.New(fault.Usage, "%s has no command %q", cmd.CommandPath(), args[0])
		var names []string
		for _, c := range cmd.Commands() {
			names = append(names, c.Name())
		}
		if near := nearest(args[0], names); near != "" {
			return f.WithHint("did you mean %s %s?", cmd.CommandPath(), near)
		}
		return f.WithHint("see: %s --help", cmd.CommandPath())
	}
	return cmd
}

// exactly takes these arguments and no others.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return fault.New(fault.Usage, "%s is missing", strings.Join(names[len(args):], " and "))
		case len(args) > len(names):
			return fault.New(fault.Usage, "unexpected argument %q", args[len(names)])
		default:
			return nil
		}
	}
}

// flagFault says what is wrong with a flag. A value is not repeated: it may be a secret in the wrong place.
func flagFault(cmd *cobra.Command, err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		name := unknown.GetSpecifiedName()
		dashes := "--"
		if unknown.GetSpecifiedShortnames() != "" {
			dashes = "-"
		}
		f := fault.New(fault.Usage, "unknown flag %s%s", dashes, name)
		var known []string
		cmd.Flags().VisitAll(func(fl *pflag.Flag) { known = append(known, fl.Name) })
		if near := nearest(name, known); near != "" && dashes == "--" {
			return f.WithHint("did you mean --%s?", near)
		}
		return f.WithHint("see: %s --help", cmd.CommandPath())
	}
	var bad *pflag.InvalidValueError
	if errors.As(err, &bad) {
		return fault.New(fault.Usage, "--%s is not %s", bad.GetFlag().Name, expected(bad.GetFlag())).Because(err)
	}
	var lone *pflag.ValueRequiredError
	if errors.As(err, &lone) {
		return fault.New(fault.Usage, "%s needs a value", flagName(lone.GetSpecifiedName())).Because(err)
	}
	return fault.New(fault.Usage, "a flag that cannot be read").Because(err).WithHint("see: %s --help", cmd.CommandPath())
}

func flagName(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

func expected(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "duration":
		return "a duration such as 90s or 10m"
	case "bool":
		return "true or false"
	case "format":
		return "json or yaml"
	case "json, yaml or markdown", lintFormats:
		return f.Value.Type()
	default:
		return "a " + f.Value.Type()
	}
}

// asUsage turns what cobra itself refuses into a usage fault.
func asUsage(err error) error {
	var f *fault.Fault
	if errors.As(err, &f) {
		return err
	}
	return fault.New(fault.Usage, "%s", strings.SplitN(err.Error(), "\n", 2)[0]).Because(err)
}

// nearest is the candidate that a typing slip away from word, or empty.
func nearest(word string, candidates []string) string {
	best, bestAt := "", 3 // farther apart than two slips is another word
	for _, c := range candidates {
		if d := distance(strings.ToLower(word), strings.ToLower(c)); d < bestAt && d < max(len(c), len(word)) {
			best, bestAt = c, d
		}
	}
	return best
}

// distance counts the letters to insert, delete or replace (Levenshtein). Long words are not compared.
func distance(a, b string) int {
	if len(a) > 128 || len(b) > 128 {
		return len(a) + len(b)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}

// format is the value of -o.
type format string

func (f *format) String() string { return string(*f) }
func (f *format) Type() string   { return "format" }
func (f *format) Set(v string) error {
	if v != "json" && v != "yaml" {
		return fmt.Errorf("not json or yaml")
	}
	*f = format(v)
	return nil
}

func (f *format) register(flags *pflag.FlagSet) {
	flags.VarP(f, "output", "o", "answer with the API's document in `FORMAT` json or yaml")
}

// run is a command's body with its context.
func runE(do func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error { return do(cmd.Context(), args) }
}
