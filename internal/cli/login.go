package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"zaentrum.io/zae/internal/client"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/session"
)

type loginOptions struct {
	device bool
}

func newLogin(a *app) *cobra.Command {
	var o loginOptions
	cmd := &cobra.Command{
		Use:   "login",
		Short: "sign in to an instance",
		Long: `Sign in to an instance with a device code: open the address shown, on this or any other device, enter
the code and approve. The session is stored in a file that only you can read, and renewed before it
expires. The first instance is the one that later commands without --url talk to.

With ZAE_TOKEN set, signing in is not needed.`,
		Example: `  zae login --url https://media.example.org`,
		Args:    exactly(),
		RunE:    runE(func(ctx context.Context, _ []string) error { return a.login(ctx) }),
	}
	cmd.Flags().BoolVar(&o.device, "device", false, "sign in with a device code, as without this flag")
	return cmd
}

func (a *app) login(ctx context.Context) error {
	if a.token() != "" {
		a.err.printf("signing in is not needed: ZAE_TOKEN is set, and comes before any session\n")
		return nil
	}
	i, err := a.instance()
	if err != nil {
		return err
	}
	b, err := a.bearers()
	if err != nil {
		return err
	}
	auth, err := a.issuer(ctx, i)
	if err != nil {
		return err
	}
	p, err := session.Discover(ctx, b.Web, auth.issuer, auth.client)
	if err != nil {
		return err
	}
	a.err.printf("signing in to %s at %s with a device code\n", i, auth.issuer)
	token, err := p.Device(ctx, a.showCode)
	if err != nil {
		return err
	}
	if err := b.Store.Keep(ctx, b.From(i.String(), auth.issuer, auth.client, token)); err != nil {
		return err
	}
	a.err.printf("%s to %s; the session is in %s\n", style(good, "signed in"), i, b.Store.Path())
	if token.RefreshToken == "" {
		a.err.printf("note: the issuer gave no refresh token: the session ends %s\n", a.when(token.Expiry))
	}
	a.rememberInstance(i)
	return nil
}

type issuerAt struct{ issuer, client string }

// issuer asks the instance where to sign in.
func (a *app) issuer(ctx context.Context, i client.Instance) (issuerAt, error) {
	found, err := a.anonymous(i).Discovery(ctx)
	if err != nil {
		return issuerAt{}, err
	}
	auth := found.Doc.Auth
	if auth == nil || auth.Issuer == "" {
		return issuerAt{}, fault.New(fault.Unavailable, "%s names no issuer to sign in at", i).
			WithHint("set ZAE_TOKEN to an admin bearer")
	}
	return issuerAt{auth.Issuer, auth.ClientID}, nil
}

// showCode shows the device code large enough to be read across a desk.
func (a *app) showCode(p session.Prompt) {
	a.err.printf("\n  open  %s\n  enter %s\n\n", style(strong, p.URL), style(strong, spaced(p.Code)))
	if p.Complete != "" {
		a.err.printf("  or open %s and check that it shows the same code\n\n", p.Complete)
	}
	if !p.Expires.IsZero() {
		a.err.printf("the code ends %s; waiting for the approval …\n", a.when(p.Expires))
	}
}

// spaced sets a code apart letter by letter.
func spaced(code string) string {
	if len(code) > 32 {
		return code
	}
	return strings.Join(strings.Split(printable(code), ""), " ")
}

// when is a time: relative on a terminal, RFC 3339 elsewhere.
func (a *app) when(t time.Time) string {
	if t.IsZero() {
		return "at a time it does not tell"
	}
	if a.err.width == 0 {
		return "at " + t.UTC().Format(time.RFC3339)
	}
	d := t.Sub(a.p.Now()).Round(time.Second)
	if d >= time.Minute {
		d = d.Round(time.Minute)
		return "in " + strings.TrimSuffix(d.String(), "0s")
	}
	return "in " + d.String()
}

// rememberInstance makes the first instance that is signed in to the one that later commands talk to. A
// config file that is there is the person's own; one that cannot be written is no reason to fail.
func (a *app) rememberInstance(i client.Instance) {
	dir, err := a.configDir()
	if err != nil {
		return
	}
	path := filepath.Join(dir, "config.yaml")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return
	}
	_, err = f.WriteString("url: " + i.String() + "\n")
	if err := errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path)
		return
	}
	a.err.printf("commands without --url now talk to %s (%s)\n", i, path)
}
