package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"zaentrum.io/zae/internal/session"
)

func newLogout(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "logout",
		Short: "forget the stored session of an instance",
		Long:  `Forget the stored session of an instance. The issuer is told, so that it ends there as well.`,
		Example: `  zae logout
  zae logout --url https://media.example.org`,
		Args: exactly(),
		RunE: runE(func(ctx context.Context, _ []string) error { return a.logout(ctx) }),
	}
}

// tellIssuer bounds how long the issuer is waited for: the session is forgotten in any case.
const tellIssuer = 10 * time.Second

func (a *app) logout(ctx context.Context) error {
	i, err := a.instance()
	if err != nil {
		return err
	}
	b, err := a.bearers()
	if err != nil {
		return err
	}
	gone, err := b.Store.Forget(ctx, i.String())
	if err != nil {
		return err
	}
	if len(gone) == 0 {
		a.err.printf("there was no session of %s\n", i)
		return nil
	}
	for _, s := range gone {
		if err := a.revoke(ctx, b, s); err != nil {
			a.err.printf("note: the session is forgotten here, and the issuer could not be told: %s\n", err)
		}
	}
	a.err.printf("signed out of %s\n", i)
	return nil
}

func (a *app) revoke(ctx context.Context, b session.Bearers, s session.Session) error {
	ctx, cancel := context.WithTimeout(ctx, tellIssuer)
	defer cancel()
	p, err := session.Discover(ctx, b.Web, s.Issuer, s.ClientID)
	if err != nil {
		return err
	}
	return p.Revoke(ctx, s)
}
