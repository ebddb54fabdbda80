package cli

import (
	"context"

	"github.com/spf13/cobra"

	"zaentrum.io/zae/internal/registry"
)

func newRegistry(a *app) *cobra.Command {
	cmd := group(&cobra.Command{
		Use:     "registry COMMAND",
		Short:   "look after the database of zae serve-api",
		Long:    `Look after the database in which zae serve-api keeps the registry.`,
		Example: `  zae registry copy /var/lib/zae/registry.db backup.db`,
	})
	cmd.AddCommand(newRegistryCopy(a))
	return cmd
}

func newRegistryCopy(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "copy FROM TO",
		Short: "copy the registry into another, empty database",
		Long: `Copy the registry into another, empty database: a backup, or the way from SQLite to PostgreSQL and
back. Each is the path of an SQLite file, or postgres://USER@HOST:5432/NAME; passwords are better
kept in PGPASSWORD or PGPASSFILE. FROM may be in use, and is copied as it is at one moment.`,
		Example: `  zae registry copy /var/lib/zae/registry.db backup.db
  zae registry copy /var/lib/zae/registry.db postgres://zae@db:5432/zae`,
		Args: exactly("FROM", "TO"),
		RunE: runE(func(ctx context.Context, args []string) error {
			rows, err := registry.Copy(ctx, args[0], args[1])
			if err != nil {
				return err
			}
			a.err.printf("copied %d rows\n", rows)
			return nil
		}),
	}
}
