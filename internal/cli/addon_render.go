package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/manifest"
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
		Long: `Print a chart's objects as the operator would apply them, in the order it would: with its labels, its pod defaults and
the values checksum, and without what only a cluster knows, the owner reference and the digest over all.

` + chartHelp + `

The data of Secrets is masked, and a secret input is not shown where it appears in another object.
--show-secrets shows both, on a terminal and into a file only. Generated inputs have placeholders.
Nothing is printed while there are values errors. Exit status: 0 printed; 1 refused; 2 wrong usage.`,
		Example: `  zae addon render ./example --set-secret database.url=env:DATABASE_URL
  zae addon render ./example --values values.yaml --show-secrets --output manifests.yaml`,
		Args: exactly("CHART"),
		RunE: runE(func(ctx context.Context, args []string) error { return a.addonRender(ctx, args[0], &o) }),
	}
	o.register(cmd.Flags())
	cmd.Flags().BoolVar(&o.show, "show-secrets", false, "show secrets: on a terminal, or into a file")
	cmd.Flags().StringVar(&o.output, "output", "", "write the objects to a `FILE`")
	return cmd
}

func (a *app) addonRender(ctx context.Context, arg string, o *renderOptions) error {
	if err := a.checkOutput(o); err != nil {
		return err
	}
	c, checked, done, err := a.checkedChart(ctx, arg, &o.offlineFlags)
	if err != nil {
		return err
	}
	defer done()
	refusal := explained(c.view(checked).refusal(), checked.Findings)
	if len(checked.ValuesErrors) > 0 {
		return refusal
	}
	m := &masker{hidden: a.out.hidden, show: o.show}
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
	if m.elsewhere > 0 {
		a.err.printf("note: %s outside of Secrets had a secret input in it, shown as [secret]\n", count(m.elsewhere, "text"))
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

// mask stands for a value in a Secret. It is not base64, so that what is masked cannot be applied by mistake.
const mask = "[masked]"

// masker writes objects without secrets, and counts where it found some.
type masker struct {
	hidden             *redactor
	show               bool
	secrets, elsewhere int
}

// documents writes a set as YAML documents, each with the template it comes from.
func (m *masker) documents(set manifest.Set) (string, error) {
	var out strings.Builder
	for _, o := range set.Clone() {
		tree := any(o.Tree)
		if !m.show {
			if strings.EqualFold(o.ID().Kind, "Secret") { // whatever its version: what is refused is shown, too
				m.maskData(o.Tree)
			}
			tree = m.hide(tree)
		}
		text, err := yamlText(tree)
		if err != nil {
			return "", err
		}
		out.WriteString("---\n# Source: " + m.hidden.hide(printable(o.Source)) + "\n" + text)
	}
	return out.String(), nil
}

func (m *masker) maskData(tree map[string]any) {
	found := false
	for _, field := range []string{"data", "stringData"} {
		if v, there := tree[field]; there {
			tree[field] = masked(v)
			found = true
		}
	}
	if found {
		m.secrets++
	}
}

// masked is a value with its keys, and nothing else of it.
func masked(v any) any {
	tree, ok := v.(map[string]any)
	if !ok {
		return mask
	}
	for k, item := range tree {
		tree[k] = masked(item)
	}
	return tree
}

// hide takes secrets out of texts, keys and numbers.
func (m *masker) hide(v any) any {
	text := func(s string) string {
		h := m.hidden.hide(s)
		if h != s {
			m.elsewhere++
		}
		return h
	}
	switch v := v.(type) {
	case string:
		return text(v)
	case int64:
		if s := strconv.FormatInt(v, 10); text(s) != s {
			return hiddenText
		}
		return v
	case float64:
		for _, form := range []byte("fg") {
			if s := strconv.FormatFloat(v, form, -1, 64); text(s) != s {
				return hiddenText
			}
		}
		return v
	case []any:
		for i := range v {
			v[i] = m.hide(v[i])
		}
		return v
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, item := range v {
			out[text(k)] = m.hide(item)
		}
		return out
	default:
		return v
	}
}
