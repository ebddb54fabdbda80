package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/initchart"
)

func newAddonInit(a *app) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "init NAME",
		Short: "start a new addon chart",
		Long: `Start a new addon chart: a directory with a chart that keeps the addon contract, with a primary, a
Service, a Secret, and inputs of each kind. It plans without violations as it is. NAME is the
addon's name, and the service in its manifest. Nothing is ever overwritten.`,
		Example: `  zae addon init example
  zae addon init example --dir chart`,
		Args: exactly("NAME"),
		RunE: runE(func(_ context.Context, args []string) error { return a.addonInit(args[0], dir) }),
	}
	cmd.Flags().StringVar(&dir, "dir", "", "the chart's directory, `DIR`; by default NAME")
	return cmd
}

func (a *app) addonInit(name, dir string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if strings.HasPrefix(name, v1alpha1.ReservedPrefix) {
		return fault.New(fault.Usage, "names that start with %s are reserved for addon values", v1alpha1.ReservedPrefix)
	}
	if strings.HasPrefix(name+"-", v1alpha1.ReservedPrefix) {
		return fault.New(fault.Usage, "the objects of an addon called %s would start with %s, which is reserved for addon values", name, v1alpha1.ReservedPrefix)
	}
	if name[0] >= '0' && name[0] <= '9' {
		return fault.New(fault.Usage, "%s cannot be the name of a Service, which starts with a letter", name)
	}
	if dir == "" {
		dir = name
	}
	switch there, err := os.ReadDir(dir); {
	case err == nil && len(there) > 0:
		return fault.New(fault.Usage, "%s is there already, and not empty; nothing was written", dir).WithHint("give --dir, or another name")
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fault.New(fault.Usage, "%s is there already, and no directory that can be read; nothing was written", dir).
			WithHint("give --dir, or another name").Because(err)
	}
	files, err := initchart.Files(name)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := writeNew(filepath.Join(dir, filepath.FromSlash(f.Name)), f.Text); err != nil {
			return fault.New(fault.Usage, "%s cannot be written: the chart is not complete", filepath.Join(dir, f.Name)).Because(err)
		}
	}
	a.out.printf("%s\n", dir)
	a.err.printf("to see what it would install: zae addon plan %s\n", dir)
	return nil
}

// writeNew writes a file that must not be there yet.
func writeNew(name, text string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil { //nolint:gosec // a chart is for everybody to read
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // as above
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
