// Command zae installs and looks after addons of a zaentrum platform.
package main

import (
	"os"
	"time"

	"zaentrum.io/zae/internal/cli"
)

func main() {
	os.Exit(cli.Main(cli.Process{
		Args:      os.Args[1:],
		Env:       os.LookupEnv,
		Stdin:     os.Stdin,
		Stdout:    os.Stdout,
		Stderr:    os.Stderr,
		ConfigDir: os.UserConfigDir,
		CacheDir:  os.UserCacheDir,
		Now:       time.Now,
	}))
}
