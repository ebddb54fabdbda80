// Package oidc is an OpenID provider for tests. It speaks what a Keycloak realm speaks to the clients of a platform:
// authorization code with PKCE, the device grant, refresh with rotation, revocation, client credentials, and signed
// access tokens with realm roles. It asks nobody for a password: whoever reaches it may be anybody. It must never be
// more than a test's.
package oidc

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/op"
	"github.com/zitadel/schema"

	zoidc "github.com/zitadel/oidc/v3/pkg/oidc"

	"zaentrum.io/zae/testbed/internal/server"
)

// Options of a provider. The zero value is complete.
type Options struct {
	// Addr is the loopback address to listen on; empty takes a free port.
	Addr string
	// Log gets one line per request, never with a token, a code or a secret. May be nil.
	Log io.Writer
	// Clients and Users are who may ask and who may log in; nil: [DefaultClients] and [DefaultUsers].
	Clients []Client
	Users   []User
	// Audience is the aud of access tokens; nil: "account", as in Keycloak.
	Audience []string
	// AccessTokenLifetime is 5 minutes when zero.
	AccessTokenLifetime time.Duration
	// RefreshTokenLifetime is 30 minutes from the last use when zero.
	RefreshTokenLifetime time.Duration
	// DeviceLifetime is how long a person has to approve a device; 10 minutes when zero.
	DeviceLifetime time.Duration
	// DeviceInterval is how often a device may ask; 1 second when zero. One that asks more often is told to slow down.
	DeviceInterval time.Duration
	// EndSessionOnReuse ends a session when a refresh token is used a second time. Otherwise the old token is refused,
	// and the new one still holds.
	EndSessionOnReuse bool
	// Now is the clock; nil: the real one.
	Now func() time.Time
}

// codeLifetime is how long an authorization code holds.
const codeLifetime = time.Minute

// Provider is a running OpenID provider. Stopped and started again, it has the same issuer, keys and sessions.
type Provider struct {
	*server.Server

	o       Options
	issuer  string
	clients map[string]Client
	users   map[string]User
	decoder *schema.Decoder

	mu       sync.Mutex
	keys     []jose.JSONWebKey // the last one signs
	logins   map[string]*login
	codes    map[string]*code
	devices  map[string]*device  // by device code
	sessions map[string]*session // by id
	refresh  map[string]*session // by refresh token, used ones too
	revoked  map[string]bool     // ids of access tokens
}

// login is an authorization request that waits for a person.
type login struct {
	client  Client
	request *zoidc.AuthRequest
}

// code is what an authorization code stands for.
type code struct {
	session   *session
	redirect  string
	challenge *zoidc.CodeChallenge
	expires   time.Time
	used      bool
}

// device is a device that waits for a person.
type device struct {
	client    Client
	userCode  string
	scopes    []string
	challenge *zoidc.CodeChallenge
	expires   time.Time
	polled    time.Time
	user      *User // who approved
	denied    bool
}

// session is one sign-in of one user at one client.
type session struct {
	id       string
	client   Client
	user     User
	scopes   []string
	nonce    string
	authTime time.Time
	refresh  string // the one refresh token that holds
	expires  time.Time
	ended    bool
}

// Serve starts a provider; plain http. It runs until its Stop or Kill, or until ctx is done.
func Serve(ctx context.Context, o Options) (*Provider, error) {
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.Clients == nil {
		o.Clients = DefaultClients()
	}
	if o.Users == nil {
		o.Users = DefaultUsers()
	}
	if o.Audience == nil {
		o.Audience = []string{"account"}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	for d, def := range map[*time.Duration]time.Duration{
		&o.AccessTokenLifetime:  5 * time.Minute,
		&o.RefreshTokenLifetime: 30 * time.Minute,
		&o.DeviceLifetime:       10 * time.Minute,
		&o.DeviceInterval:       time.Second,
	} {
		if *d == 0 {
			*d = def
		}
	}
	p := &Provider{
		o:        o,
		clients:  map[string]Client{},
		users:    map[string]User{},
		decoder:  schema.NewDecoder(),
		logins:   map[string]*login{},
		codes:    map[string]*code{},
		devices:  map[string]*device{},
		sessions: map[string]*session{},
		refresh:  map[string]*session{},
		revoked:  map[string]bool{},
	}
	p.decoder.IgnoreUnknownKeys(true)
	for _, c := range o.Clients {
		p.clients[c.ID] = c
	}
	for _, u := range o.Users {
		if u.Subject == "" {
			u.Subject = subject(u.Name)
		}
		p.users[u.Name] = u
	}
	if err := p.RotateKey(); err != nil {
		return nil, err
	}
	s, err := server.Listen(o.Addr, p.handler())
	if err != nil {
		return nil, fmt.Errorf("openid provider: %w", err)
	}
	p.Server = s
	p.issuer = "http://" + s.Addr()
	context.AfterFunc(ctx, func() { _ = s.Kill() }) // it is gone either way, and nobody waits for it
	return p, nil
}

// Issuer is the provider's issuer; its discovery document is below.
func (p *Provider) Issuer() string { return p.issuer }

// RotateKey signs with a new key from now on. Earlier keys stay published.
func (p *Provider) RotateKey() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = append(p.keys, jose.JSONWebKey{Key: key, KeyID: random()[:8], Algorithm: string(jose.RS256), Use: "sig"})
	return nil
}

// Token is an access token of a user as the provider would issue it to a client. For a confidential client user may be
// empty: its service account.
func (p *Provider) Token(user, clientID string) (string, error) {
	c, ok := p.clients[clientID]
	if !ok {
		return "", fmt.Errorf("no client %q; there are %v", clientID, slices.Sorted(maps.Keys(p.clients)))
	}
	u, ok := p.users[user]
	if !ok && user == "" && c.Secret != "" {
		u, ok = c.serviceAccount(), true
	}
	if !ok {
		return "", fmt.Errorf("no user %q; there are %v", user, slices.Sorted(maps.Keys(p.users)))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.begin(c, u, []string{zoidc.ScopeOpenID, zoidc.ScopeProfile, zoidc.ScopeEmail}, "")
	token, _, err := p.accessToken(s)
	return token, err
}

// Sign makes a token of any claims with the provider's key: for tests of what must be refused.
func (p *Provider) Sign(claims map[string]any) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sign(claims)
}

// Claims are what an access token of that user and client says now, for a test to change before [Provider.Sign].
func (p *Provider) Claims(user, clientID string) (map[string]any, error) {
	token, err := p.Token(user, clientID)
	if err != nil {
		return nil, err
	}
	return p.verify(token)
}

// EndSessions ends every session of a user: refresh tokens no longer hold, and access tokens of them are no longer
// answered at the userinfo endpoint.
func (p *Provider) EndSessions(user string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.sessions {
		if s.user.Name == user {
			s.ended = true
		}
	}
}

// ApproveDevice lets the device that showed userCode in, as a user would in the browser.
func (p *Provider) ApproveDevice(userCode, user string) error {
	u, ok := p.users[user]
	if !ok {
		return fmt.Errorf("no user %q", user)
	}
	return p.answerDevice(userCode, func(d *device) { d.user = &u })
}

// DenyDevice refuses the device that showed userCode.
func (p *Provider) DenyDevice(userCode string) error {
	return p.answerDevice(userCode, func(d *device) { d.denied = true })
}

var errUserCode = errors.New("this code is not known, was used or has expired")

func (p *Provider) answerDevice(userCode string, answer func(*device)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.devices {
		if plainUserCode(d.userCode) == plainUserCode(userCode) && d.user == nil && !d.denied && p.o.Now().Before(d.expires) {
			answer(d)
			return nil
		}
	}
	return errUserCode
}

// begin makes a session. The caller holds mu.
func (p *Provider) begin(c Client, u User, scopes []string, nonce string) *session {
	s := &session{id: random(), client: c, user: u, scopes: scopes, nonce: nonce, authTime: p.o.Now()}
	p.sessions[s.id] = s
	return s
}

// accessToken signs an access token of a session. The caller holds mu.
func (p *Provider) accessToken(s *session) (token string, expires time.Time, err error) {
	now := p.o.Now()
	expires = now.Add(p.o.AccessTokenLifetime)
	claims := p.claims(s, "Bearer", expires)
	claims["aud"] = zoidc.Audience(p.o.Audience)
	if len(p.o.Audience) == 1 {
		claims["aud"] = p.o.Audience[0] // as Keycloak has it
	}
	claims["client_id"] = s.client.ID
	claims["scope"] = scopeString(s.scopes)
	claims["realm_access"] = map[string]any{"roles": s.user.Roles}
	token, err = p.sign(claims)
	return token, expires, err
}

// idToken signs an ID token that belongs to an access token. The caller holds mu.
func (p *Provider) idToken(s *session, accessToken string) (string, error) {
	claims := p.claims(s, "ID", p.o.Now().Add(p.o.AccessTokenLifetime))
	claims["aud"] = s.client.ID
	claims["auth_time"] = s.authTime.Unix()
	if s.nonce != "" {
		claims["nonce"] = s.nonce
	}
	hash, err := zoidc.ClaimHash(accessToken, jose.RS256)
	if err != nil {
		return "", err
	}
	claims["at_hash"] = hash
	return p.sign(claims)
}

// claims are those both kinds of token have.
func (p *Provider) claims(s *session, typ string, expires time.Time) map[string]any {
	claims := s.user.claims()
	maps.Copy(claims, map[string]any{
		"iss": p.issuer,
		"azp": s.client.ID,
		"exp": expires.Unix(),
		"iat": p.o.Now().Unix(),
		"jti": random(),
		"sid": s.id,
		"typ": typ,
	})
	return claims
}

func (p *Provider) sign(claims map[string]any) (string, error) {
	signer, err := jose.NewSigner(
		jose.SigningKey{Algorithm: jose.RS256, Key: p.keys[len(p.keys)-1]},
		(&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", err
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	jws, err := signer.Sign(payload)
	if err != nil {
		return "", err
	}
	return jws.CompactSerialize()
}

// verify returns the claims of a token this provider signed and that has not expired.
func (p *Provider) verify(token string) (map[string]any, error) {
	jws, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.RS256})
	if err != nil {
		return nil, errors.New("not a signed token")
	}
	payload, err := jws.Verify(p.publicKeys())
	if err != nil {
		return nil, errors.New("signed by somebody else")
	}
	var claims map[string]any
	if err := json.Unmarshal(payload, &claims); err != nil {
		return nil, err
	}
	if exp, _ := claims["exp"].(float64); claims["iss"] != p.issuer || !p.o.Now().Before(time.Unix(int64(exp), 0)) {
		return nil, errors.New("expired, or of another issuer")
	}
	return claims, nil
}

// sessionOf is the session an access token belongs to, while both hold.
func (p *Provider) sessionOf(token string) (*session, map[string]any, bool) {
	claims, err := p.verify(token)
	if err != nil || claims["typ"] != "Bearer" {
		return nil, nil, false
	}
	sid, _ := claims["sid"].(string)
	jti, _ := claims["jti"].(string)
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.sessions[sid]
	return s, claims, s != nil && !s.ended && !p.revoked[jti]
}

func (p *Provider) publicKeys() jose.JSONWebKeySet {
	p.mu.Lock()
	defer p.mu.Unlock()
	var set jose.JSONWebKeySet
	for _, k := range p.keys {
		set.Keys = append(set.Keys, k.Public())
	}
	return set
}

// random is a name nobody guesses.
func random() string {
	b := make([]byte, 24)
	rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// subject makes an identifier that is always the same for a name, and does not look like it: a name mistaken for a
// subject should show.
func subject(name string) string {
	sum := sha256.Sum256([]byte("testbed user " + name))
	h := hex.EncodeToString(sum[:16])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// newUserCode is a code a person can type.
func newUserCode() (string, error) {
	c := op.UserCodeBase20
	return op.NewUserCode([]rune(c.CharSet), c.CharAmount, c.DashInterval)
}
