package cli

import (
	"context"

	"github.com/spf13/cobra"

	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/fault"
)

type pushOptions struct {
	loopback []string
	output   format
}

func newAddonPush(a *app) *cobra.Command {
	var o pushOptions
	cmd := &cobra.Command{
		Use:   "push CHART oci://REGISTRY/PATH",
		Short: "publish a chart in an OCI registry",
		Long: `Publish a chart in an OCI registry, as Helm stores it: below PATH, under the chart's name, its version
being the tag. CHART is an archive or a chart's directory, which is packaged first.

The credentials are those of docker's configuration for that registry (docker login); only https is
spoken. Instances fetch charts anonymously: the repository has to be public for them. A version that
was published keeps its content: raise version in Chart.yaml with every change.`,
		Example: `  zae addon push example-1.2.0.tgz oci://ghcr.io/example/charts`,
		Args:    exactly("CHART", "oci://REGISTRY/PATH"),
		RunE:    runE(func(ctx context.Context, args []string) error { return a.addonPush(ctx, args[0], args[1], &o) }),
	}
	registerLoopback(cmd.Flags(), &o.loopback)
	cmd.Flags().VarP(&o.output, "output", "o", "answer with a document in `FORMAT` json or yaml")
	return cmd
}

func (a *app) addonPush(ctx context.Context, arg, to string, o *pushOptions) error {
	if isReference(arg) {
		return fault.New(fault.Usage, "CHART is an archive or a directory here").WithHint("zae addon push CHART oci://registry/path")
	}
	if ref, err := chart.ParseReference(to); err != nil {
		return usage(err)
	} else if ref.Scheme != chart.SchemeOCI {
		return fault.New(fault.Usage, "a chart is pushed to oci://registry/path")
	}
	found, err := a.loadable(ctx, arg)
	if err != nil {
		return err
	}
	pushed, err := chart.Push(ctx, found, to, chart.PushOptions{AllowLoopback: o.loopback})
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case fault.CodeOf(err) == fault.Invalid:
		return usage(err)
	case err != nil:
		return err
	}
	if pushed.Replaced != "" {
		a.err.printf("note: this version was published before with other content, manifest %s; instances that have it report a tag that moved\n", pushed.Replaced)
	}
	return a.answer(o.output, []fact{{"reference", pushed.Reference}, {"manifest", pushed.Manifest}, {"digest", pushed.Archive}})
}
