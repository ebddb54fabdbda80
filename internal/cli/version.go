package cli

import (
	"context"
	"encoding/json"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Version is the version of the program where the linker is told one (-X); else the module's is used.
var Version string

type buildInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// build is what the linker wrote into the program.
func build() buildInfo {
	b := buildInfo{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if Version != "" {
		b.Version = Version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; Version == "" && v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Commit = s.Value
		}
	}
	return b
}

func newVersion(a *app) *cobra.Command {
	var out format
	cmd := &cobra.Command{
		Use:   "version",
		Short: "show the version of this program",
		Long:  `Show the version of this program: its commit, the Go it was built with, and its platform.`,
		Example: `  zae version
  zae version -o json`,
		Args: exactly(),
		RunE: runE(func(context.Context, []string) error {
			b := build()
			if out != "" {
				raw, err := json.Marshal(b)
				if err != nil {
					return err
				}
				return a.document(out, raw)
			}
			a.out.printf("zae %s", b.Version)
			if b.Commit != "" {
				a.out.printf(" (%.12s)", b.Commit)
			}
			a.out.printf(" %s %s\n", b.Go, b.Platform)
			return nil
		}),
	}
	out.register(cmd.Flags())
	return cmd
}
