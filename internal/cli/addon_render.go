package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"zaentrum.io/zae/internal/fault"
)

type renderOptions struct {
	offlineFlags
	show   bool
	output string
}

func newAddonRender(a *app) *cobra.Command {
	var o renderOptions
	cmd := &cobra.Command{
		Use:   "render CHART",
		Short: "print a chart's objects as the operator would apply them",
		Long: `Print a chart's objects as the operator would apply them, in the order it would: with its labels, its
pod defaults and the values checksum, and without what only a cluster knows, the owner reference and
the digest over all.

` + chartHelp + `

The data of Secrets is masked, and so is all that depends on a secret input in other objects.
--show-secrets shows both, on a terminal and into a file only. Generated inputs have placeholders.
Nothing is printed while there are values errors. Where a template fails, its words are told when no
secret can be in them.

Exit status: 0 printed; 1 refused; 2 wrong usage.`,
		Example: `  zae addon render ./example --set-secret database.url=env:DATABASE_URL
  zae addon render ./example --set-secret database.url=@url.txt \
    --show-secrets --output manifests.yaml`,
		Args: exactly("CHART"),
		RunE: runE(func(ctx context.Context, args []string) error { return a.addonRender(ctx, args[0], &o) }),
	}
	o.register(cmd.Flags())
	cmd.Flags().BoolVar(&o.show, "show-secrets", false, "show secrets: on a terminal, or into a file")
	cmd.Flags().StringVar(&o.output, "output", "", "write the objects to `FILE`")
	return cmd
}

func (a *app) addonRender(ctx context.Context, arg string, o *renderOptions) error {
	if err := a.checkOutput(o); err != nil {
		return err
	}
	o.verbatim = true
	c, checked, done, err := a.checkedChart(ctx, arg, &o.offlineFlags)
	if err != nil {
		return err
	}
	defer done()
	if err := c.words(ctx, checked); err != nil {
		return err
	}
	refusal := explained(c.view(checked).refusal(), checked.Findings)
	if len(checked.ValuesErrors) > 0 {
		return refusal
	}
	m := &masker{hidden: a.out.hidden.given(), show: o.show}
	var blind []string
	if !o.show {
		if m.twins, blind, err = c.twins(ctx, checked.Dependence); err != nil {
			return err
		}
		m.blind = len(blind) > 0
	}
	text, err := m.documents(c.wanted(checked))
	if err != nil {
		return err
	}
	if err := a.deliver(o, text); err != nil {
		return err
	}
	c.tellPlaceholders()
	if m.secrets > 0 {
		a.err.printf("note: the data of %s is masked; --show-secrets shows it\n", count(m.secrets, "Secret"))
	}
	switch {
	case m.blind:
		a.err.printf("note: the chart renders with no other value of %s, so that nothing can be told from it: everything else is masked, too\n", some(blind))
	case m.elsewhere > 0:
		verb := "depend"
		if m.elsewhere == 1 {
			verb += "s"
		}
		a.err.printf("note: %s outside of Secrets %s on a secret input, shown as [secret]\n", count(m.elsewhere, "text"), verb)
	}
	return refusal
}

// checkOutput refuses secrets on their way to another program, and files that are none, before anything is read.
func (a *app) checkOutput(o *renderOptions) error {
	if o.output != "" {
		info, err := os.Stat(o.output)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return fault.New(fault.Usage, "--output %s cannot be written", o.output).Because(err)
		case !info.Mode().IsRegular():
			return fault.New(fault.Usage, "--output %s is no regular file", o.output)
		}
		return nil
	}
	if o.show && !regularOrTerminal(a.p.Stdout) {
		return fault.New(fault.Usage, "--show-secrets would hand secrets to another program: standard output is neither a terminal nor a file").
			WithHint("give --output FILE, or leave --show-secrets out")
	}
	return nil
}

func (a *app) deliver(o *renderOptions, text string) error {
	if o.output == "" {
		a.out.raw(text)
		return nil
	}
	mode := fs.FileMode(0o644)
	if o.show {
		mode = 0o600
	}
	if err := writeWhole(o.output, []byte(text), mode); err != nil {
		return fault.New(fault.Usage, "--output %s cannot be written", o.output).Because(err)
	}
	a.err.printf("written to %s\n", o.output)
	return nil
}

// writeWhole makes a file of this content and these rights, in place of one that is there, or leaves everything as it is.
func writeWhole(name string, data []byte, mode fs.FileMode) error {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".zae-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
