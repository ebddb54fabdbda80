package cli

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/fault"
)

type packageOptions struct {
	dir    string
	output format
}

func newAddonPackage(a *app) *cobra.Command {
	var o packageOptions
	cmd := &cobra.Command{
		Use:   "package CHART_DIR",
		Short: "make a chart archive of a directory",
		Long: `Make a chart archive, <name>-<version>.tgz, of a chart's directory, without what .helmignore names.
The same files are the same bytes: the archive tells no time, owner or right. It is what zae addon
plan and render look at, and is held to the limits that fetching has. An archive of that name that
is there already is replaced.`,
		Example: `  zae addon package ./example
  zae addon package ./example -d dist`,
		Args: exactly("CHART_DIR"),
		RunE: runE(func(ctx context.Context, args []string) error { return a.addonPackage(ctx, args[0], &o) }),
	}
	cmd.Flags().StringVarP(&o.dir, "destination", "d", ".", "write the archive to the directory `DIR`")
	cmd.Flags().VarP(&o.output, "output", "o", "answer with a document in `FORMAT` json or yaml")
	return cmd
}

func (a *app) addonPackage(ctx context.Context, dir string, o *packageOptions) error {
	switch info, err := os.Stat(dir); {
	case err != nil:
		return fault.New(fault.Usage, "there is no chart %s: no such directory", dir).WithHint("zae addon init NAME makes one").Because(err)
	case !info.IsDir():
		return fault.New(fault.Usage, "%s is no directory", dir).WithHint("give the directory that Chart.yaml is in")
	}
	found, err := a.loadable(ctx, dir)
	if err != nil {
		return err
	}
	name, err := found.FileName()
	if err != nil {
		return err
	}
	path := filepath.Join(o.dir, name)
	if err := os.MkdirAll(o.dir, 0o755); err != nil { //nolint:gosec // an archive is for everybody to read
		return fault.New(fault.Usage, "%s cannot be made", o.dir).Because(err)
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fault.New(fault.Usage, "%s is there already, and no file", path)
	}
	if err := writeWhole(path, found.Bytes, 0o644); err != nil {
		return fault.New(fault.Usage, "%s cannot be written", path).Because(err)
	}
	return a.answer(o.output, []fact{{"archive", path}, {"digest", found.Digest}})
}

// loadable is the archive of a chart on this machine that can be loaded: what is published is no broken one.
func (a *app) loadable(ctx context.Context, name string) (*chart.Archive, error) {
	b, err := a.newBench(&offlineFlags{})
	if err != nil {
		return nil, err
	}
	defer b.close()
	found, _, err := b.inspect(ctx, name)
	return found, err
}

// fact is one line of an answer.
type fact struct{ name, value string }

// answer prints facts, as lines or as a document.
func (a *app) answer(f format, facts []fact) error {
	if f == "" {
		var t table
		for _, one := range facts {
			t.row(one.name, one.value)
		}
		t.print(a.out)
		return nil
	}
	doc := make(map[string]string, len(facts))
	for _, one := range facts {
		doc[one.name] = one.value
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		return fault.New(fault.Internal, "the answer cannot be written as JSON").Because(err)
	}
	return a.plainDocument(f, raw)
}
