package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/client"
)

type addOptions struct {
	goFlags
	given                 givenFlags
	name, version, digest string
}

func newAddonAdd(a *app) *cobra.Command {
	var o addOptions
	cmd := &cobra.Command{
		Use:   "add REF",
		Short: "add an addon from a chart: plan, ask, install",
		Long: `Add an addon from a chart: REF is oci://registry/path/chart or an https:// link to a chart archive.
The instance plans it first; the plan is shown, and installed once you agree. A plan that is
refused is never installed. Inputs that are missing are asked for.

A plan that is not installed stays: zae addon install takes it up again, zae addon remove drops it.
An addon that exists already is changed to the chart and the values given here, and put back to
what it was when they are not installed.`,
		Example: `  zae addon add oci://ghcr.io/example/charts/example --version 1.2.0 \
    --set worker.replicas=2 --set-secret database.url
  zae addon add https://example.org/charts/example-1.2.0.tgz --values values.yaml --yes --wait`,
		Args: exactly("REF"),
		RunE: runE(func(ctx context.Context, args []string) error { return a.addonAdd(ctx, args[0], &o) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.version, "version", "", "`VERSION` of the chart; needed for oci:// without a tag")
	flags.StringVar(&o.digest, "digest", "", "`DIGEST`, sha256:…, that the chart archive must have")
	flags.StringVar(&o.name, "name", "", "`NAME` of the addon; by default the last part of REF")
	o.given.register(flags, false)
	o.register(flags, true)
	return cmd
}

func (a *app) addonAdd(ctx context.Context, ref string, o *addOptions) error {
	src, err := chart.Source(ref, o.version, o.digest)
	if err != nil {
		return usage(err)
	}
	name := o.name
	if name == "" {
		if name, err = chart.DefaultName(ref); err != nil {
			return usage(err)
		}
	}
	if err := checkName(name); err != nil {
		return err
	}
	ch, err := a.prepare(ctx, name, &o.goFlags, &o.given)
	if err != nil {
		return err
	}
	defer ch.c.Close()
	if ch.before, err = existing(ctx, ch.c, name); err != nil {
		return ch.untouched(err)
	}
	if ch.before != nil {
		a.err.printf("addon %s exists (%s): this changes it, and replaces its values\n", name,
			strings.Join(nonEmpty(ch.before.Chart.Version, string(ch.before.Phase)), ", "))
	}
	if err := ch.given.noPlainSecrets(ch.before, src.Ref); err != nil {
		return err
	}
	if ch.before != nil && ch.before.Chart.Ref == src.Ref && ch.before.Chart.Version == src.Version {
		if err := ch.given.astray(plannedSchema(ch.before), nothingSent); err != nil {
			return err
		}
	}
	if err := a.ask(ctx, ch.given); err != nil {
		return ch.untouched(err)
	}
	body := apitype.CreateRequest{
		Name: o.name, Chart: src.Ref, Version: src.Version, Digest: src.Digest,
		Values: ch.given.values, SecretValues: ch.given.secrets, SecretRefs: ch.given.refs,
	}
	return ch.through(ctx, func(ctx context.Context) (*client.Answer[apitype.WriteAnswer], error) {
		return ch.c.Create(ctx, body)
	})
}

// prepare checks everything that can be wrong with a command line that changes an addon, then the bearer. It sends
// nothing to the instance, and asks for no secret.
func (a *app) prepare(ctx context.Context, name string, flags *goFlags, typed *givenFlags) (*change, error) {
	if err := flags.check(); err != nil {
		return nil, err
	}
	asked, err := typed.understand()
	if err != nil {
		return nil, err
	}
	a.stdinTaken = asked.stdin
	if err := a.mayWrite(flags.yes); err != nil {
		return nil, err
	}
	if _, err := a.instance(); err != nil {
		return nil, err
	}
	c, err := a.connect(ctx)
	if err != nil {
		return nil, err
	}
	ch := &change{a: a, c: c, name: name, flags: *flags}
	if ch.given, err = a.read(asked); err != nil {
		c.Close()
		return nil, err
	}
	return ch, nil
}
