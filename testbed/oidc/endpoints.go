package oidc

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/zitadel/oidc/v3/pkg/op"

	zoidc "github.com/zitadel/oidc/v3/pkg/oidc"
)

// The provider's paths. Clients learn the first ones from the discovery document; people see the others.
const (
	authorizePath  = "/authorize"
	tokenPath      = "/token"
	deviceAuthPath = "/device_authorization"
	userinfoPath   = "/userinfo"
	revokePath     = "/revoke"
	introspectPath = "/introspect"
	endSessionPath = "/end_session"
	keysPath       = "/keys"
	loginPath      = "/login"
	devicePath     = "/device"
)

// Paths for scripts, see [PostForm].
const (
	// TestbedTokenPath takes user and client, and answers with an access token as text.
	TestbedTokenPath = "/testbed/token"
	// TestbedDevicePath takes user_code, user and action (approve or deny): the verification page's form.
	TestbedDevicePath = devicePath
)

// maxForm is the size of a request, in bytes, that is read.
const maxForm = 1 << 20

// note is what the log says about a request beside its path: never anything that was sent, unless it is known.
type note struct {
	client, grant, user string
	err                 error
}

func (p *Provider) handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, h := range map[string]func(http.ResponseWriter, *http.Request) note{
		"GET " + zoidc.DiscoveryEndpoint: p.discovery,
		"GET " + keysPath:                p.jwks,
		authorizePath:                    p.authorize,
		"GET " + loginPath:               p.loginPage,
		"POST " + loginPath:              p.login,
		"POST " + deviceAuthPath:         p.deviceAuthorization,
		"GET " + devicePath:              p.devicePage,
		"POST " + devicePath:             p.deviceAnswer,
		"POST " + tokenPath:              p.token,
		userinfoPath:                     p.userinfo,
		"POST " + revokePath:             p.revoke,
		"POST " + introspectPath:         p.introspect,
		endSessionPath:                   p.endSession,
		"POST " + TestbedTokenPath:       p.testbedToken,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, maxForm)
			p.log(r, h(w, r))
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A page of any origin may sign users in, as the realm's clients say.
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("Cache-Control", "no-store")
		if r.Method == http.MethodOptions {
			w.Header().Set("Access-Control-Allow-Methods", "GET, POST")
			w.Header().Set("Access-Control-Allow-Headers", "Authorization, Content-Type, DPoP")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func (p *Provider) log(r *http.Request, n note) {
	line := p.o.Now().UTC().Format(time.RFC3339) + " " + r.Method + " " + r.URL.Path
	for _, f := range [][2]string{{"client", n.client}, {"grant", n.grant}, {"user", n.user}} {
		if f[1] != "" {
			line += " " + f[0] + "=" + f[1]
		}
	}
	var oe *zoidc.Error
	if errors.As(n.err, &oe) {
		line += fmt.Sprintf(" error=%s %q", oe.ErrorType, oe.Description)
	} else if n.err != nil {
		line += " failed"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintln(p.o.Log, line)
}

func (p *Provider) discovery(w http.ResponseWriter, r *http.Request) note {
	writeJSON(w, http.StatusOK, &zoidc.DiscoveryConfiguration{
		Issuer:                                    p.issuer,
		AuthorizationEndpoint:                     p.issuer + authorizePath,
		TokenEndpoint:                             p.issuer + tokenPath,
		DeviceAuthorizationEndpoint:               p.issuer + deviceAuthPath,
		UserinfoEndpoint:                          p.issuer + userinfoPath,
		RevocationEndpoint:                        p.issuer + revokePath,
		IntrospectionEndpoint:                     p.issuer + introspectPath,
		EndSessionEndpoint:                        p.issuer + endSessionPath,
		JwksURI:                                   p.issuer + keysPath,
		ScopesSupported:                           []string{zoidc.ScopeOpenID, zoidc.ScopeProfile, zoidc.ScopeEmail, zoidc.ScopeOfflineAccess},
		ResponseTypesSupported:                    []string{string(zoidc.ResponseTypeCode)},
		ResponseModesSupported:                    []string{string(zoidc.ResponseModeQuery), string(zoidc.ResponseModeFragment)},
		GrantTypesSupported:                       []zoidc.GrantType{zoidc.GrantTypeCode, zoidc.GrantTypeRefreshToken, zoidc.GrantTypeDeviceCode, zoidc.GrantTypeClientCredentials},
		SubjectTypesSupported:                     []string{"public"},
		IDTokenSigningAlgValuesSupported:          []string{"RS256"},
		TokenEndpointAuthMethodsSupported:         []zoidc.AuthMethod{zoidc.AuthMethodNone, zoidc.AuthMethodBasic, zoidc.AuthMethodPost},
		RevocationEndpointAuthMethodsSupported:    []zoidc.AuthMethod{zoidc.AuthMethodNone, zoidc.AuthMethodBasic, zoidc.AuthMethodPost},
		IntrospectionEndpointAuthMethodsSupported: []zoidc.AuthMethod{zoidc.AuthMethodBasic, zoidc.AuthMethodPost},
		CodeChallengeMethodsSupported:             []zoidc.CodeChallengeMethod{zoidc.CodeChallengeMethodS256},
		ClaimsSupported:                           []string{"iss", "sub", "aud", "exp", "iat", "auth_time", "nonce", "azp", "sid", "preferred_username", "name", "email", "email_verified"},
	})
	return note{}
}

func (p *Provider) jwks(w http.ResponseWriter, r *http.Request) note {
	writeJSON(w, http.StatusOK, p.publicKeys())
	return note{}
}

// authorize checks an authorization request and sends the person to the login page.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) note {
	req, err := op.ParseAuthorizeRequest(r, p.decoder)
	if err != nil {
		return p.page(w, http.StatusBadRequest, "Sign in", "The request cannot be read.", note{err: err})
	}
	c, ok := p.clients[req.ClientID]
	if !ok {
		return p.page(w, http.StatusBadRequest, "Sign in", "There is no such client.", note{err: zoidc.ErrInvalidClient()})
	}
	n := note{client: c.ID}
	if err := checkRedirect(c, req.RedirectURI); err != nil {
		n.err = err
		return p.page(w, http.StatusBadRequest, "Sign in", "The client may not send you there.", n)
	}
	if err := checkAuthorize(c, req); err != nil {
		n.err = err
		http.Redirect(w, r, p.back(req, url.Values{
			"error": {string(err.ErrorType)}, "error_description": {err.Description},
		}), http.StatusFound)
		return n
	}
	id := random()
	p.mu.Lock()
	p.logins[id] = &login{client: c, request: req}
	p.mu.Unlock()
	http.Redirect(w, r, loginPath+"?"+url.Values{"id": {id}}.Encode(), http.StatusFound)
	return n
}

// checkRedirect says whether a client may send a person to an address.
func checkRedirect(c Client, uri string) error {
	// Patterns are compared with the text: a port could be a password, and what follows it the real host.
	if u, err := url.Parse(uri); err != nil || u.User != nil || u.Fragment != "" {
		return zoidc.ErrInvalidRequestRedirectURI()
	}
	return op.ValidateAuthReqRedirectURI(libraryClient{c}, uri, zoidc.ResponseTypeCode)
}

// checkAuthorize finds what is wrong with a request whose redirect URI is right.
func checkAuthorize(c Client, req *zoidc.AuthRequest) *zoidc.Error {
	switch {
	case req.ResponseType != zoidc.ResponseTypeCode:
		return &zoidc.Error{ErrorType: "unsupported_response_type", Description: "only code"}
	case !c.may(zoidc.GrantTypeCode):
		return zoidc.ErrUnauthorizedClient().WithDescription("the client may not use the code flow")
	case req.RequestParam != "":
		return zoidc.ErrRequestNotSupported()
	case !slices.Contains(req.Scopes, zoidc.ScopeOpenID):
		return zoidc.ErrInvalidScope().WithDescription("openid is missing")
	case slices.Contains(req.Prompt, zoidc.PromptNone):
		return zoidc.ErrLoginRequired()
	case req.CodeChallenge == "" && c.Secret == "":
		return zoidc.ErrInvalidRequest().WithDescription("a public client has to send a code_challenge")
	case req.CodeChallenge != "" && req.CodeChallengeMethod != zoidc.CodeChallengeMethodS256:
		return zoidc.ErrInvalidRequest().WithDescription("code_challenge_method has to be S256")
	}
	return nil
}

// back is the client's redirect URI with an answer.
func (p *Provider) back(req *zoidc.AuthRequest, answer url.Values) string {
	answer.Set("iss", p.issuer) // RFC 9207
	if req.State != "" {
		answer.Set("state", req.State)
	}
	u, err := url.Parse(req.RedirectURI)
	if err != nil {
		return p.issuer // cannot be: it was compared with the registered ones
	}
	if req.ResponseMode == zoidc.ResponseModeFragment {
		u.Fragment = ""
		return u.String() + "#" + answer.Encode()
	}
	q := u.Query()
	for k, v := range answer {
		q[k] = v
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// login is the form's answer: id and user.
func (p *Provider) login(w http.ResponseWriter, r *http.Request) note {
	u, ok := p.users[r.PostFormValue("user")]
	p.mu.Lock()
	defer func() { p.mu.Unlock() }()
	id := r.PostFormValue("id")
	l := p.logins[id]
	if l == nil || !ok {
		return p.page(w, http.StatusBadRequest, "Sign in", "This sign-in is not known any more, or there is no such user.", note{err: errUserCode})
	}
	n := note{client: l.client.ID, user: u.Name}
	delete(p.logins, id)
	c := random()
	p.codes[c] = &code{
		session:  p.begin(l.client, u, l.request.Scopes, l.request.Nonce),
		redirect: l.request.RedirectURI,
		expires:  p.o.Now().Add(codeLifetime),
	}
	if l.request.CodeChallenge != "" {
		p.codes[c].challenge = &zoidc.CodeChallenge{Challenge: l.request.CodeChallenge, Method: l.request.CodeChallengeMethod}
	}
	http.Redirect(w, r, p.back(l.request, url.Values{"code": {c}, "session_state": {p.codes[c].session.id}}), http.StatusFound)
	return n
}

// client authenticates the client of a request to the token, device, revocation or introspection endpoint.
func (p *Provider) client(r *http.Request) (Client, *zoidc.Error) {
	if err := r.ParseForm(); err != nil {
		return Client{}, zoidc.ErrInvalidRequest().WithDescription("the form cannot be read")
	}
	id, secret := r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
	if basicID, basicSecret, ok := r.BasicAuth(); ok {
		// RFC 6749, 2.3.1: both are form-encoded first.
		var err1, err2 error
		basicID, err1 = url.QueryUnescape(basicID)
		basicSecret, err2 = url.QueryUnescape(basicSecret)
		if err1 != nil || err2 != nil || secret != "" || (id != "" && id != basicID) {
			return Client{}, zoidc.ErrInvalidRequest().WithDescription("one way to authenticate, please")
		}
		id, secret = basicID, basicSecret
	}
	c, ok := p.clients[id]
	if !ok || subtle.ConstantTimeCompare([]byte(c.Secret), []byte(secret)) != 1 {
		return Client{}, zoidc.ErrInvalidClient().WithDescription("no such client, or a wrong secret")
	}
	return c, nil
}

// deviceAuthorization begins the device grant; RFC 8628, with PKCE as Keycloak has it.
func (p *Provider) deviceAuthorization(w http.ResponseWriter, r *http.Request) note {
	c, oe := p.client(r)
	if oe != nil {
		return p.fail(w, note{err: oe})
	}
	n := note{client: c.ID}
	if !c.may(zoidc.GrantTypeDeviceCode) {
		n.err = zoidc.ErrUnauthorizedClient().WithDescription("the client may not use the device grant")
		return p.fail(w, n)
	}
	d := &device{client: c, scopes: strings.Fields(r.PostForm.Get("scope")), expires: p.o.Now().Add(p.o.DeviceLifetime)}
	if challenge := r.PostForm.Get("code_challenge"); challenge != "" {
		d.challenge = &zoidc.CodeChallenge{Challenge: challenge, Method: zoidc.CodeChallengeMethod(r.PostForm.Get("code_challenge_method"))}
		if d.challenge.Method != zoidc.CodeChallengeMethodS256 {
			n.err = zoidc.ErrInvalidRequest().WithDescription("code_challenge_method has to be S256")
			return p.fail(w, n)
		}
	}
	userCode, err := newUserCode()
	if err != nil {
		n.err = zoidc.ErrServerError()
		return p.fail(w, n)
	}
	d.userCode = userCode
	deviceCode := random()
	p.mu.Lock()
	for code, d := range p.devices {
		if !p.o.Now().Before(d.expires.Add(p.o.DeviceLifetime)) {
			delete(p.devices, code) // long forgotten
		}
	}
	p.devices[deviceCode] = d
	p.mu.Unlock()
	writeJSON(w, http.StatusOK, &zoidc.DeviceAuthorizationResponse{
		DeviceCode:              deviceCode,
		UserCode:                userCode,
		VerificationURI:         p.issuer + devicePath,
		VerificationURIComplete: p.issuer + devicePath + "?user_code=" + url.QueryEscape(userCode),
		ExpiresIn:               int(p.o.DeviceLifetime / time.Second),
		Interval:                int((p.o.DeviceInterval + time.Second - 1) / time.Second),
	})
	return n
}

// token is the token endpoint.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) note {
	c, oe := p.client(r)
	if oe != nil {
		return p.fail(w, note{err: oe})
	}
	n := note{client: c.ID}
	grant := zoidc.GrantType(r.PostForm.Get("grant_type"))
	exchange, ok := map[zoidc.GrantType]func(Client, url.Values) (*session, *zoidc.Error){
		zoidc.GrantTypeCode:              p.exchangeCode,
		zoidc.GrantTypeRefreshToken:      p.exchangeRefresh,
		zoidc.GrantTypeDeviceCode:        p.exchangeDevice,
		zoidc.GrantTypeClientCredentials: p.exchangeCredentials,
	}[grant]
	if !ok {
		n.err = zoidc.ErrUnsupportedGrantType().WithDescription("grant_type is missing or not supported")
		return p.fail(w, n)
	}
	n.grant = string(grant)
	if !c.may(grant) {
		n.err = zoidc.ErrUnauthorizedClient().WithDescription("the client may not use this grant")
		return p.fail(w, n)
	}
	p.mu.Lock()
	s, oe := exchange(c, r.PostForm)
	var answer *zoidc.AccessTokenResponse
	if oe == nil {
		answer, oe = p.tokens(s, grant)
	}
	p.mu.Unlock()
	if oe != nil {
		n.err = oe
		return p.fail(w, n)
	}
	n.user = s.user.Name
	w.Header().Set("Pragma", "no-cache")
	writeJSON(w, http.StatusOK, answer)
	return n
}

// tokens are the answer of the token endpoint. The caller holds mu.
func (p *Provider) tokens(s *session, grant zoidc.GrantType) (*zoidc.AccessTokenResponse, *zoidc.Error) {
	access, expires, err := p.accessToken(s)
	if err != nil {
		return nil, zoidc.ErrServerError().WithParent(err)
	}
	answer := &zoidc.AccessTokenResponse{
		AccessToken: access,
		TokenType:   zoidc.BearerToken,
		ExpiresIn:   uint64(expires.Sub(p.o.Now()) / time.Second),
		Scope:       s.scopes,
	}
	if grant == zoidc.GrantTypeClientCredentials {
		return answer, nil
	}
	// As in Keycloak, whoever signs in gets a refresh token, offline_access or not.
	if s.client.may(zoidc.GrantTypeRefreshToken) {
		s.refresh, s.expires = random(), p.o.Now().Add(p.o.RefreshTokenLifetime)
		p.refresh[s.refresh] = s
		answer.RefreshToken = s.refresh
	}
	if slices.Contains(s.scopes, zoidc.ScopeOpenID) {
		if answer.IDToken, err = p.idToken(s, access); err != nil {
			return nil, zoidc.ErrServerError().WithParent(err)
		}
	}
	return answer, nil
}

func (p *Provider) exchangeCode(c Client, form url.Values) (*session, *zoidc.Error) {
	grant := p.codes[form.Get("code")]
	if grant == nil || grant.session.client.ID != c.ID || !p.o.Now().Before(grant.expires) {
		return nil, zoidc.ErrInvalidGrant().WithDescription("the code is not known or has expired")
	}
	if grant.used {
		grant.session.ended = true // RFC 6749, 4.1.2: whoever got the first tokens may be a thief
		return nil, zoidc.ErrInvalidGrant().WithDescription("the code was used before")
	}
	grant.used = true
	if form.Get("redirect_uri") != grant.redirect {
		return nil, zoidc.ErrInvalidGrant().WithDescription("redirect_uri is another one than before")
	}
	if oe := checkVerifier(grant.challenge, form.Get("code_verifier")); oe != nil {
		return nil, oe
	}
	return grant.session, nil
}

func (p *Provider) exchangeRefresh(c Client, form url.Values) (*session, *zoidc.Error) {
	token := form.Get("refresh_token")
	s := p.refresh[token]
	if s == nil || s.client.ID != c.ID {
		return nil, zoidc.ErrInvalidGrant().WithDescription("the refresh token is not known")
	}
	if s.refresh != token {
		if p.o.EndSessionOnReuse {
			s.ended = true
		}
		return nil, zoidc.ErrInvalidGrant().WithDescription("the refresh token was used before")
	}
	if s.ended || !p.o.Now().Before(s.expires) {
		return nil, zoidc.ErrInvalidGrant().WithDescription("the session has ended")
	}
	for _, scope := range strings.Fields(form.Get("scope")) {
		if !slices.Contains(s.scopes, scope) {
			return nil, zoidc.ErrInvalidScope().WithDescription("more than was granted")
		}
	}
	return s, nil
}

func (p *Provider) exchangeDevice(c Client, form url.Values) (*session, *zoidc.Error) {
	deviceCode := form.Get("device_code")
	d := p.devices[deviceCode]
	if d == nil || d.client.ID != c.ID {
		return nil, zoidc.ErrInvalidGrant().WithDescription("the device code is not known or was used before")
	}
	now := p.o.Now()
	early := !d.polled.IsZero() && now.Sub(d.polled) < p.o.DeviceInterval*9/10
	d.polled = now
	if oe := checkVerifier(d.challenge, form.Get("code_verifier")); oe != nil {
		return nil, oe
	}
	switch {
	case !now.Before(d.expires):
		return nil, zoidc.ErrExpiredDeviceCode()
	case early:
		return nil, zoidc.ErrSlowDown()
	case d.denied:
		delete(p.devices, deviceCode)
		return nil, zoidc.ErrAccessDenied()
	case d.user == nil:
		return nil, zoidc.ErrAuthorizationPending()
	}
	delete(p.devices, deviceCode)
	return p.begin(c, *d.user, d.scopes, ""), nil
}

func (p *Provider) exchangeCredentials(c Client, form url.Values) (*session, *zoidc.Error) {
	if c.Secret == "" {
		return nil, zoidc.ErrUnauthorizedClient().WithDescription("a public client has no service account")
	}
	return p.begin(c, c.serviceAccount(), strings.Fields(form.Get("scope")), ""), nil
}

// checkVerifier compares what PKCE sent first with what it sends now.
func checkVerifier(challenge *zoidc.CodeChallenge, verifier string) *zoidc.Error {
	switch {
	case challenge == nil && verifier == "":
		return nil
	case challenge == nil:
		return zoidc.ErrInvalidGrant().WithDescription("a code_verifier without a code_challenge before")
	case !zoidc.VerifyCodeChallenge(challenge, verifier):
		return zoidc.ErrInvalidGrant().WithDescription("the code_verifier is missing or wrong")
	}
	return nil
}

func (p *Provider) userinfo(w http.ResponseWriter, r *http.Request) note {
	s, _, ok := p.sessionOf(bearer(r))
	if !ok {
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		writeJSON(w, http.StatusUnauthorized, map[string]string{"error": "invalid_token"})
		return note{err: errors.New("invalid token")}
	}
	claims := s.user.claims()
	claims["realm_access"] = map[string]any{"roles": s.user.Roles}
	writeJSON(w, http.StatusOK, claims)
	return note{client: s.client.ID, user: s.user.Name}
}

func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") {
		return token
	}
	return ""
}

// revoke ends the session of a refresh token, or one access token; RFC 7009.
func (p *Provider) revoke(w http.ResponseWriter, r *http.Request) note {
	c, oe := p.client(r)
	if oe != nil {
		return p.fail(w, note{err: oe})
	}
	n := note{client: c.ID}
	token := r.PostForm.Get("token")
	access, claims, isAccess := p.sessionOf(token)
	p.mu.Lock()
	defer func() { p.mu.Unlock() }()
	switch s := p.refresh[token]; {
	case s != nil && s.client.ID == c.ID:
		s.ended = true
		n.user = s.user.Name
	case isAccess && access.client.ID == c.ID:
		jti, _ := claims["jti"].(string)
		p.revoked[jti] = true
		n.user = access.user.Name
	case s != nil || isAccess:
		n.err = zoidc.ErrInvalidGrant().WithDescription("the token is another client's")
		return p.fail(w, n)
	}
	w.WriteHeader(http.StatusOK)
	return n
}

func (p *Provider) introspect(w http.ResponseWriter, r *http.Request) note {
	c, oe := p.client(r)
	if oe == nil && c.Secret == "" {
		oe = zoidc.ErrInvalidClient().WithDescription("only for confidential clients")
	}
	if oe != nil {
		return p.fail(w, note{err: oe})
	}
	_, claims, ok := p.sessionOf(r.PostForm.Get("token"))
	if !ok {
		claims = map[string]any{}
	}
	claims["active"] = ok
	writeJSON(w, http.StatusOK, claims)
	return note{client: c.ID}
}

// endSession is RP-initiated logout. It ends the session the ID token belongs to.
func (p *Provider) endSession(w http.ResponseWriter, r *http.Request) note {
	var n note
	c, known := p.clients[r.FormValue("client_id")]
	if claims, err := p.verify(r.FormValue("id_token_hint")); err == nil {
		sid, _ := claims["sid"].(string)
		p.mu.Lock()
		if s := p.sessions[sid]; s != nil {
			s.ended = true
			c, known = s.client, true
			n.user = s.user.Name
		}
		p.mu.Unlock()
	}
	n.client = c.ID
	if to := r.FormValue("post_logout_redirect_uri"); to != "" && known {
		// The rules for where a person may be sent are those of signing in.
		if n.err = checkRedirect(c, to); n.err != nil {
			return p.page(w, http.StatusBadRequest, "Sign out", "The client may not send you there.", n)
		}
		if u, err := url.Parse(to); err == nil {
			if state := r.FormValue("state"); state != "" {
				q := u.Query()
				q.Set("state", state)
				u.RawQuery = q.Encode()
			}
			http.Redirect(w, r, u.String(), http.StatusFound)
			return n
		}
	}
	return p.page(w, http.StatusOK, "Sign out", "You are signed out.", n)
}

// testbedToken is for scripts that want to be somebody without a flow.
func (p *Provider) testbedToken(w http.ResponseWriter, r *http.Request) note {
	user, client := r.PostFormValue("user"), r.PostFormValue("client")
	token, err := p.Token(user, client)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return note{err: err}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintln(w, token)
	return note{client: client, user: user} // both are known, or there would be no token
}

// fail answers with an OAuth error.
func (p *Provider) fail(w http.ResponseWriter, n note) note {
	status := http.StatusBadRequest
	var oe *zoidc.Error
	if !errors.As(n.err, &oe) {
		oe = zoidc.ErrServerError()
	}
	switch oe.ErrorType {
	case zoidc.InvalidClient:
		status = http.StatusUnauthorized
		w.Header().Set("WWW-Authenticate", "Basic")
	case zoidc.ServerError:
		status = http.StatusInternalServerError
	}
	writeJSON(w, status, oe)
	return n
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client is gone, or it works
}

func scopeString(scopes []string) string { return strings.Join(scopes, " ") }

// plainUserCode is a user code without what people get wrong.
func plainUserCode(s string) string {
	return strings.ToUpper(strings.NewReplacer("-", "", " ", "").Replace(s))
}
