// Package session signs a person in with OpenID Connect and keeps the sessions: device grant with PKCE,
// a file that only its owner reads, and renewal before a token expires.
//
// Tokens go to the issuer's own endpoints and nowhere else. It must never print or log a token, put one
// or an issuer's raw answer into an error, or ask a person anything itself: it hands out what to show.
package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"zaentrum.io/zae/internal/fault"
)

const (
	maxAnswer   = 1 << 20
	callTimeout = 30 * time.Second
)

// Web is how an issuer is reached.
type Web struct {
	// Transport defaults to one made for the purpose.
	Transport http.RoundTripper
	// Safe tells whether tokens may be sent to an address; nil means https only.
	Safe func(*url.URL) bool
	// Timeout of one call; 30 s when zero.
	Timeout time.Duration
	// Debug is told of each call: its request line, status and time, never a header or body.
	Debug func(line string)
}

// client follows no redirect: a token request that is sent on is a token that is given away. Its calls end
// with ctx, whatever context the library that makes them gives them.
func (w Web) client(ctx context.Context) *http.Client {
	if w.Transport == nil {
		w.Transport = http.DefaultTransport
	}
	if w.Timeout <= 0 {
		w.Timeout = callTimeout
	}
	return &http.Client{
		Transport: guarded{ctx: ctx, w: w},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
}

// guarded refuses unsafe addresses, and bounds calls in time and answers in size, whichever library makes
// the call. An answer is read as a whole, because not every library closes it.
type guarded struct {
	ctx context.Context //nolint:containedctx // it outlives no call of the client it is made for
	w   Web
}

var errUnsafe = errors.New("not https")

func (g guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	if !g.w.safe(r.URL) {
		return nil, errUnsafe
	}
	ctx, cancel := context.WithTimeout(r.Context(), g.w.Timeout)
	defer cancel()
	defer context.AfterFunc(g.ctx, cancel)()
	start := time.Now()
	res, err := g.w.Transport.RoundTrip(r.Clone(ctx))
	if g.w.Debug != nil {
		status := "no answer"
		if err == nil {
			status = fmt.Sprint(res.StatusCode)
		}
		g.w.Debug(fmt.Sprintf("%s %s %s %s", r.Method, r.URL.Redacted(), status, time.Since(start).Round(time.Millisecond)))
	}
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err := errors.Join(err, res.Body.Close()); err != nil {
		return nil, err
	}
	res.Body = io.NopCloser(bytes.NewReader(text))
	return res, nil
}

func (w Web) safe(u *url.URL) bool {
	if w.Safe == nil {
		return u.Scheme == "https"
	}
	return w.Safe(u)
}

// Provider is an issuer whose endpoints are known.
type Provider struct {
	issuer string
	config oauth2.Config
	revoke string
	web    Web
}

// metadata is the part of an issuer's discovery document that is read (OpenID Connect Discovery §3).
type metadata struct {
	Issuer     string   `json:"issuer"`
	Token      string   `json:"token_endpoint"`
	Device     string   `json:"device_authorization_endpoint"`
	Revocation string   `json:"revocation_endpoint"`
	Scopes     []string `json:"scopes_supported"`
}

// Discover reads an issuer's endpoints. They and the issuer must be addresses that tokens may go to.
func Discover(ctx context.Context, w Web, issuer, clientID string) (*Provider, error) {
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fault.New(fault.Unreachable, "the instance names an issuer that is no address to sign in at")
	}
	if !w.safe(u) {
		return nil, fault.New(fault.Unreachable, "the issuer %s is not https: tokens would travel in the clear", issuer).
			WithHint("serve the issuer over https, or set ZAE_TOKEN")
	}
	if clientID == "" {
		return nil, fault.New(fault.Unreachable, "the instance names no client to sign in as")
	}
	doc, err := fetchMetadata(ctx, w, issuer)
	if err != nil {
		return nil, err
	}
	if doc.Issuer != issuer {
		return nil, fault.New(fault.Unreachable, "%s calls itself by another name than the instance does: tokens could be of somebody else", issuer)
	}
	for _, endpoint := range []string{doc.Token, doc.Device, doc.Revocation} {
		if endpoint == "" {
			continue
		}
		if e, err := url.Parse(endpoint); err != nil || e.Host == "" || !w.safe(e) {
			return nil, fault.New(fault.Unreachable, "the issuer %s names an endpoint that is not https", issuer)
		}
	}
	if doc.Token == "" {
		return nil, fault.New(fault.Unreachable, "the issuer %s names no token endpoint", issuer)
	}
	scopes := []string{"openid"}
	if slices.Contains(doc.Scopes, "offline_access") {
		scopes = append(scopes, "offline_access") // most issuers give a refresh token only for it
	}
	return &Provider{
		issuer: issuer, revoke: doc.Revocation, web: w,
		config: oauth2.Config{
			ClientID: clientID,
			Scopes:   scopes,
			Endpoint: oauth2.Endpoint{
				TokenURL: doc.Token, DeviceAuthURL: doc.Device,
				AuthStyle: oauth2.AuthStyleInParams, // a public client has no secret, and probing sends a code twice
			},
		},
	}, nil
}

func fetchMetadata(ctx context.Context, w Web, issuer string) (metadata, error) {
	var doc metadata
	where := strings.TrimSuffix(issuer, "/") + "/.well-known/openid-configuration"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, where, nil)
	if err != nil {
		return doc, fault.New(fault.Unreachable, "the instance names an issuer that is no address to sign in at").Because(err)
	}
	req.Header.Set("Accept", "application/json")
	res, err := w.client(ctx).Do(req)
	if err != nil {
		return doc, unreachable(ctx, issuer, err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return doc, fault.New(fault.Unreachable, "the issuer %s answered status %d when asked for its endpoints", issuer, res.StatusCode)
	}
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return doc, unreachable(ctx, issuer, err)
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return doc, fault.New(fault.Unreachable, "the issuer %s did not answer with its endpoints", issuer).Because(err)
	}
	return doc, nil
}

// Prompt is what a person needs to approve the sign-in on any device.
type Prompt struct {
	URL      string // where to go
	Code     string // what to enter there
	Complete string // the address with the code in it; may be empty
	Expires  time.Time
}

// Device signs in with the device grant and PKCE: it calls show once, then waits until the person has
// approved, refused, or let the code expire.
func (p *Provider) Device(ctx context.Context, show func(Prompt)) (*oauth2.Token, error) {
	if p.config.Endpoint.DeviceAuthURL == "" {
		return nil, fault.New(fault.Unreachable, "the issuer %s offers no sign-in with a device code", p.issuer).
			WithHint("set ZAE_TOKEN to an admin bearer")
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, p.web.client(ctx))
	verifier := oauth2.GenerateVerifier()
	da, err := p.config.DeviceAuth(ctx, oauth2.S256ChallengeOption(verifier))
	if err != nil {
		return nil, p.refused(ctx, "start a sign-in", err)
	}
	if da.UserCode == "" || da.DeviceCode == "" || !webAddress(da.VerificationURI) {
		return nil, fault.New(fault.Unreachable, "the issuer %s answered without a code and an address to enter it at", p.issuer)
	}
	prompt := Prompt{URL: da.VerificationURI, Code: da.UserCode, Expires: da.Expiry}
	if webAddress(da.VerificationURIComplete) {
		prompt.Complete = da.VerificationURIComplete
	}
	show(prompt)
	token, err := p.config.DeviceAccessToken(ctx, da, oauth2.VerifierOption(verifier))
	if err != nil {
		if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			return nil, fault.New(fault.NoBearer, "the code was not used in time").WithHint("run zae login again")
		}
		return nil, p.refused(ctx, "finish the sign-in", err)
	}
	return token, nil
}

func webAddress(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && u.Host != "" && u.User == nil && (u.Scheme == "https" || u.Scheme == "http")
}

// refresh trades the refresh token for new tokens.
func (p *Provider) refresh(ctx context.Context, old Session) (*oauth2.Token, error) {
	ctx = context.WithValue(ctx, oauth2.HTTPClient, p.web.client(ctx))
	// Only the refresh token is given, so that the library cannot decide that the old one still does.
	return p.config.TokenSource(ctx, &oauth2.Token{RefreshToken: old.RefreshToken}).Token()
}

// Revoke tells the issuer that a session is over (RFC 7009). It does nothing where that is not offered.
func (p *Provider) Revoke(ctx context.Context, s Session) error {
	token, hint := s.RefreshToken, "refresh_token"
	if token == "" {
		token, hint = s.AccessToken, "access_token"
	}
	if p.revoke == "" || token == "" {
		return nil
	}
	form := url.Values{"token": {token}, "token_type_hint": {hint}, "client_id": {p.config.ClientID}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.revoke, strings.NewReader(form.Encode()))
	if err != nil {
		return fault.New(fault.Unreachable, "the issuer %s cannot be told", p.issuer).Because(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := p.web.client(ctx).Do(req)
	if err != nil {
		return unreachable(ctx, p.issuer, err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fault.New(fault.Unreachable, "the issuer %s answered status %d when told", p.issuer, res.StatusCode)
	}
	return nil
}

// refused is the fault of a token call that failed. Of an issuer's answer only the error code is shown:
// its text, and the library's, hold the whole body.
func (p *Provider) refused(ctx context.Context, doing string, err error) error {
	var re *oauth2.RetrieveError
	if !errors.As(err, &re) {
		return unreachable(ctx, p.issuer, err)
	}
	switch re.ErrorCode {
	case "access_denied":
		return fault.New(fault.Forbidden, "the sign-in was refused at the issuer").Because(err)
	case "expired_token":
		return fault.New(fault.NoBearer, "the code was not used in time").Because(err).WithHint("run zae login again")
	case "":
		return fault.New(fault.Unreachable, "the issuer %s answered status %d when asked to %s", p.issuer, statusOf(re), doing).Because(err)
	default:
		return fault.New(fault.NoBearer, "the issuer %s refused to %s: %s", p.issuer, doing, errorCode(re.ErrorCode)).Because(err)
	}
}

func statusOf(re *oauth2.RetrieveError) int {
	if re.Response == nil {
		return 0
	}
	return re.Response.StatusCode
}

// errorCode passes on what RFC 6749 allows in an error code as far as it looks like one.
func errorCode(code string) string {
	if len(code) > 64 || strings.ContainsFunc(code, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' && r != '.'
	}) {
		return "an error of its own"
	}
	return code
}

func unreachable(ctx context.Context, issuer string, err error) error {
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return context.Cause(ctx)
	}
	if errors.Is(err, errUnsafe) {
		return fault.New(fault.Unreachable, "the issuer %s leads to an address that is not https", issuer).Because(err)
	}
	why := "no usable answer"
	var ue *url.Error
	if errors.As(err, &ue) {
		why = ue.Err.Error()
		if ue.Timeout() {
			why = "no answer in time"
		}
	}
	return fault.New(fault.Unreachable, "the issuer %s cannot be reached: %s", issuer, why).Because(err)
}
