package session

import (
	"context"
	"errors"
	"time"

	"golang.org/x/oauth2"

	"zaentrum.io/zae/internal/fault"
)

// leeway is how long before its expiry a token is renewed: longer than a call takes. A token that lives
// for a few minutes or less is renewed in the last quarter of its life, not for each call.
const leeway = 30 * time.Second

// Bearers hands out the bearer of stored sessions and renews them.
type Bearers struct {
	Store *Store
	Web   Web
	Now   func() time.Time
}

// From is the session that a sign-in's tokens make.
func (b Bearers) From(instance, issuer, clientID string, t *oauth2.Token) Session {
	return Session{
		Instance: instance, Issuer: issuer, ClientID: clientID,
		AccessToken: t.AccessToken, RefreshToken: t.RefreshToken, Expiry: t.Expiry, Obtained: b.Now().UTC(), SignedIn: b.Now().UTC(),
	}
}

// lead is how long before its expiry the session's token is renewed.
func (s Session) lead() time.Duration {
	if s.Obtained.IsZero() {
		return leeway
	}
	return min(leeway, s.Expiry.Sub(s.Obtained)/4)
}

// Bearer is a token of the instance's session that does not expire at once. It renews under the store's
// lock and reads the store again first: two processes that use one rotating refresh token log each
// other out. Absent and ended sessions are fault.NoBearer.
func (b Bearers) Bearer(ctx context.Context, instance string) (string, error) {
	one, ok, err := b.Store.Of(instance)
	if err != nil {
		return "", err
	}
	if !ok {
		return "", fault.New(fault.NoBearer, "not signed in to %s", instance).WithHint("%s", signIn(instance))
	}
	if b.fresh(one, one.lead()) {
		return one.AccessToken, nil
	}
	// A renewal that has been sent must be kept even when this command is interrupted meanwhile: the
	// refresh token it used is spent.
	steady, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	var token string
	err = b.Store.locked(ctx, func() error {
		token, err = b.renew(steady, instance)
		return err
	})
	if err != nil {
		return "", err
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	return token, nil
}

// renew runs under the store's lock.
func (b Bearers) renew(ctx context.Context, instance string) (string, error) {
	doc, err := b.Store.read()
	if err != nil {
		return "", err
	}
	one, ok := newest(doc, instance)
	switch {
	case !ok:
		return "", fault.New(fault.NoBearer, "not signed in to %s", instance).WithHint("%s", signIn(instance))
	case b.fresh(one, one.lead()): // another process was faster
		return one.AccessToken, nil
	case one.RefreshToken == "":
		if b.fresh(one, 0) {
			return one.AccessToken, nil
		}
		return "", ended(instance)
	}
	token, err := b.trade(ctx, one)
	if err != nil {
		return b.without(ctx, one, err)
	}
	next := b.From(one.Instance, one.Issuer, one.ClientID, token)
	next.SignedIn = one.SignedIn
	if next.RefreshToken == "" {
		next.RefreshToken = one.RefreshToken // the issuer does not rotate
	}
	if err := b.Store.replace(next); err != nil {
		return "", err
	}
	return next.AccessToken, nil
}

func (b Bearers) trade(ctx context.Context, one Session) (*oauth2.Token, error) {
	p, err := Discover(ctx, b.Web, one.Issuer, one.ClientID)
	if err != nil {
		return nil, err
	}
	token, err := p.refresh(ctx, one)
	if err != nil {
		var re *oauth2.RetrieveError
		if errors.As(err, &re) && re.ErrorCode == "invalid_grant" {
			return nil, ended(one.Instance).Because(err)
		}
		return nil, p.refused(ctx, "renew the session", err)
	}
	return token, nil
}

// without decides what a failed renewal means: a session the issuer ended is removed; a token that still
// has a moment is used when the issuer is away.
func (b Bearers) without(ctx context.Context, one Session, err error) (string, error) {
	if fault.CodeOf(err) == fault.NoBearer {
		return "", errors.Join(err, b.Store.drop(one))
	}
	if ctx.Err() == nil && b.fresh(one, 0) {
		return one.AccessToken, nil
	}
	return "", err
}

func (b Bearers) fresh(s Session, ahead time.Duration) bool {
	return s.AccessToken != "" && (s.Expiry.IsZero() || b.Now().Add(ahead).Before(s.Expiry))
}

func ended(instance string) *fault.Fault {
	return fault.New(fault.NoBearer, "the session of %s has ended", instance).WithHint("%s", signIn(instance))
}

func signIn(instance string) string { return "zae login --url " + instance }
