package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/client"
	"zaentrum.io/zae/internal/fault"
)

type upgradeOptions struct {
	goFlags
	given                givenFlags
	ref, version, digest string
}

func newAddonUpgrade(a *app) *cobra.Command {
	var o upgradeOptions
	cmd := &cobra.Command{
		Use:   "upgrade NAME",
		Short: "change an addon's chart, values or secret inputs: plan, ask, install",
		Long: `Change an addon to another version or chart, or its values and secret inputs. Values given here are
laid over those the addon has. What runs keeps running until the new plan is installed.

An upgrade that is not installed is put back to the chart, values, secret inputs and suspension
that were there before. With the version the addon has, what its registry has by now is planned
again.`,
		Example: `  zae addon upgrade example --version 1.3.0 --wait
  zae addon upgrade example --set worker.replicas=3 --unset worker.logLevel --yes
  zae addon upgrade example --set-secret database.url=env:DATABASE_URL --yes`,
		Args: exactly("NAME"),
		RunE: runE(func(ctx context.Context, args []string) error { return a.addonUpgrade(ctx, args[0], &o) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.version, "version", "", "`VERSION` of the chart")
	flags.StringVar(&o.digest, "digest", "", "`DIGEST`, sha256:…, that the chart archive must have")
	flags.StringVar(&o.ref, "chart", "", "another chart, `REF`")
	o.given.register(flags, true)
	o.register(flags, true)
	return cmd
}

func (a *app) addonUpgrade(ctx context.Context, name string, o *upgradeOptions) error {
	if err := checkPresent(name); err != nil {
		return err
	}
	if o.ref != "" { // with the version it may need, before anything is sent
		if _, err := chart.Source(o.ref, o.version, o.digest); err != nil {
			return usage(err)
		}
	}
	asked, err := o.given.understand()
	if err != nil {
		return err
	}
	if asked.nothing() && o.ref == "" && o.version == "" && o.digest == "" {
		return fault.New(fault.Usage, "nothing to change is given").
			WithHint("give --version, --chart, --digest, --set, --unset, --values, --set-secret, --secret-ref or --clear-secret")
	}
	ch, err := a.prepare(ctx, name, &o.goFlags, &o.given)
	if err != nil {
		return err
	}
	defer ch.c.Close()
	got, err := ch.c.Get(ctx, name)
	if err != nil {
		return ch.untouched(err)
	}
	ch.before = &got.Doc
	patch, err := o.patch(ch)
	if err != nil {
		return err
	}
	if err := a.ask(ctx, ch.given); err != nil { // what it fills is in the patch
		return ch.untouched(err)
	}
	return ch.through(ctx, func(ctx context.Context) (*client.Answer[apitype.WriteAnswer], error) {
		return ch.c.Patch(ctx, name, patch)
	})
}

// patch is the change, planned first whatever it is.
func (o *upgradeOptions) patch(ch *change) (apitype.PatchRequest, error) {
	suspend := true
	patch := apitype.PatchRequest{
		SecretValues: ch.given.secrets, SecretRefs: ch.given.refs, ClearSecrets: ch.given.clear, Suspend: &suspend,
	}
	if o.ref != "" || o.version != "" || o.digest != "" {
		ref, version := o.ref, o.version
		if ref == "" {
			ref = ch.before.Chart.Ref
			if version == "" { // only the digest is given
				version = ch.before.Chart.Version
			}
		}
		src, err := chart.Source(ref, version, o.digest)
		if err != nil {
			return patch, usage(err)
		}
		if o.ref != "" {
			patch.Chart = &src.Ref
		}
		if src.Version != "" && src.Version != ch.before.Chart.Version || o.ref != "" {
			patch.Version = &src.Version
		}
		if o.digest != "" {
			patch.Digest = &src.Digest
		}
	}
	ref := ch.before.Chart.Ref
	if patch.Chart != nil {
		ref = *patch.Chart
	}
	if err := ch.given.noPlainSecrets(ch.before, ref); err != nil {
		return patch, err
	}
	if patch.Chart == nil && patch.Version == nil && patch.Digest == nil {
		if err := ch.given.astray(plannedSchema(ch.before), nothingSent); err != nil {
			return patch, err
		}
	}
	if err := ch.clearable(); err != nil {
		return patch, err
	}
	if ch.given.values == nil && len(ch.given.unset) == 0 {
		return patch, nil
	}
	was, err := plainValues(ch.before.Values)
	if err != nil {
		return patch, err
	}
	if was, err = ch.given.without(was, "the plain values of "+ch.name); err != nil {
		return patch, err
	}
	tree := overlay(was, ch.given.values)
	patch.Values = &tree
	return patch, nil
}

// clearable refuses to clear what is no secret input that is set: a slip would leave the one that is meant. One that
// the chart declares may have been cleared before.
func (ch *change) clearable() error {
	schema := plannedSchema(ch.before)
	for _, path := range ch.given.clear {
		if slices.Contains(ch.before.SecretKeys, path) {
			continue
		}
		if in, _ := schema.Input(path); in.Secret {
			ch.a.err.printf("note: %s is not set\n", path)
			continue
		}
		refusal := fault.New(fault.Usage, "--clear-secret %s: no such secret input is set; %s", path, nothingSent)
		switch near := nearPath(path, ch.before.SecretKeys); {
		case near != "":
			return refusal.WithHint("did you mean %s?", near)
		case len(ch.before.SecretKeys) == 0:
			return refusal.WithHint("none is set")
		default:
			return refusal.WithHint("set are %s", some(ch.before.SecretKeys))
		}
	}
	return nil
}
