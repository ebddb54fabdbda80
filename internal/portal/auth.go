package portal

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/telemetry"
)

// Auth says whose bearer tokens are believed, and which of them make an admin.
type Auth struct {
	// Issuer is the OpenID issuer; without one nobody is an admin.
	Issuer string
	// ClientID is the client that zae signs in as; discovery tells it. Default zae.
	ClientID string
	// Audience, when set, must be in a token's aud.
	Audience string
	// Clients are those on whose tokens (azp, else client_id) the admin role counts. Default zae and
	// zaentrum-web.
	Clients []string
	// ServiceAccounts are clients that call for themselves, each by its client id or by the sub of its tokens.
	ServiceAccounts []string
	// RoleClaim is the dotted path of the claim that lists roles. Default realm_access.roles.
	RoleClaim string
	// AdminRole is the role of an admin. Default zaentrum-admin.
	AdminRole string
	// Algorithms are the signature algorithms that are accepted, asymmetric ones only. Default RS256, PS256,
	// ES256 and EdDSA.
	Algorithms []string
	// Transport reaches the issuer; nil means the network.
	Transport http.RoundTripper
}

func (a Auth) withDefaults() Auth {
	if a.ClientID == "" {
		a.ClientID = "zae"
	}
	if len(a.Clients) == 0 {
		a.Clients = []string{"zae", "zaentrum-web"}
	}
	if a.RoleClaim == "" {
		a.RoleClaim = "realm_access.roles"
	}
	if a.AdminRole == "" {
		a.AdminRole = "zaentrum-admin"
	}
	if len(a.Algorithms) == 0 {
		a.Algorithms = []string{string(jose.RS256), string(jose.PS256), string(jose.ES256), string(jose.EdDSA)}
	}
	return a
}

// maxToken is the longest bearer token that is looked at.
const maxToken = 32 << 10

// authenticator decides whether a request is an admin's.
type authenticator struct {
	auth       Auth
	algorithms []jose.SignatureAlgorithm
	issuer     *issuer
}

func newAuthenticator(a Auth, now func() time.Time, tracing *telemetry.Tracing) (*authenticator, error) {
	a = a.withDefaults()
	if a.Issuer != "" {
		if u, err := url.Parse(a.Issuer); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return nil, errors.New("portal: the issuer is not an http or https address")
		}
	}
	asymmetric := []jose.SignatureAlgorithm{
		jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
	}
	out := &authenticator{auth: a}
	for _, name := range a.Algorithms {
		if !slices.Contains(asymmetric, jose.SignatureAlgorithm(name)) {
			return nil, fmt.Errorf("portal: signature algorithm %s is not one of %v", name, asymmetric)
		}
		out.algorithms = append(out.algorithms, jose.SignatureAlgorithm(name))
	}
	out.issuer = newIssuer(a, out.algorithms, now, tracing)
	return out, nil
}

func (a *authenticator) close() { a.issuer.close() }

// caller is who a request is from, as a valid bearer says.
type caller struct {
	// subject is the token's sub, and client what it was issued to (azp, else client_id).
	subject, client string
	// name is for people: preferred_username, which its owner may change.
	name string
	// expires is when the bearer is none any more; zero when it does not say.
	expires time.Time
}

// key tells callers apart: one person through one client, or one service account.
func (c caller) key() string { return c.client + "\n" + c.subject }

// requireAdmin is who an admin's request is from (decisions §6). It is a NoBearer fault without a valid token,
// Forbidden when the token is no admin's, and SignIn when the issuer cannot be asked.
func (a *authenticator) requireAdmin(ctx context.Context, r *http.Request) (caller, error) {
	who, claims, err := a.verify(ctx, r)
	if err != nil {
		return caller{}, err
	}
	return who, a.decide(claims)
}

// requireValid is who a request is from, an admin or not. Its faults are those of requireAdmin, without Forbidden.
func (a *authenticator) requireValid(ctx context.Context, r *http.Request) (caller, error) {
	who, _, err := a.verify(ctx, r)
	return who, err
}

// verify is who a request is from, with all that the token says of them.
func (a *authenticator) verify(ctx context.Context, r *http.Request) (caller, map[string]any, error) {
	raw, err := bearer(r)
	if err != nil {
		return caller{}, nil, err
	}
	if a.auth.Issuer == "" {
		return caller{}, nil, issuerFault("no issuer is configured, so nobody can sign in")
	}
	// A token that is none must not make anybody ask the issuer.
	if _, err := jose.ParseSignedCompact(raw, a.algorithms); err != nil {
		return caller{}, nil, invalidToken("the bearer is not a signed token of an accepted algorithm")
	}
	token, claims, err := a.issuer.verify(ctx, raw)
	if err != nil {
		return caller{}, nil, err
	}
	// Where the issuer tells token types apart, only an access token is a bearer.
	switch kind, _ := claims["typ"].(string); strings.ToLower(kind) {
	case "id", "refresh", "offline", "logout":
		return caller{}, nil, invalidToken("the bearer is not an access token")
	}
	return caller{
		subject: token.Subject, client: issuedTo(claims), name: text(claims, "preferred_username"), expires: token.Expiry,
	}, claims, nil
}

// issuedTo is the client that a token was issued to.
func issuedTo(claims map[string]any) string {
	if client := text(claims, "azp"); client != "" {
		return client
	}
	return text(claims, "client_id")
}

// bearer is the token of a request.
func bearer(r *http.Request) (string, error) {
	headers := r.Header.Values("Authorization")
	if len(headers) == 0 {
		return "", unauthorized(`Bearer realm="zaentrum"`, "a bearer token is needed")
	}
	scheme, raw, _ := strings.Cut(headers[0], " ")
	raw = strings.TrimSpace(raw)
	if len(headers) > 1 || !strings.EqualFold(scheme, "Bearer") || raw == "" || len(raw) > maxToken {
		return "", invalidToken("the Authorization header is not one bearer token")
	}
	return raw, nil
}

// decide tells whether the claims of a valid token are an admin's.
func (a *authenticator) decide(claims map[string]any) error {
	client := issuedTo(claims)
	if !slices.Contains(a.auth.Clients, client) && !a.serviceAccount(claims, client) {
		return forbidden("the token was issued to a client that may not administer")
	}
	if !slices.Contains(roles(claims, a.auth.RoleClaim), a.auth.AdminRole) {
		return forbidden("the token has no admin role")
	}
	return nil
}

// serviceAccount tells whether a token is that of a configured service account: a client calling for itself.
// The client's id alone is not enough, for a person may have signed in through that client.
func (a *authenticator) serviceAccount(claims map[string]any, client string) bool {
	subject, user := text(claims, "sub"), text(claims, "preferred_username")
	for _, account := range a.auth.ServiceAccounts {
		if account == "" {
			continue
		}
		if account == subject || account == client && strings.EqualFold(user, "service-account-"+client) {
			return true
		}
	}
	return false
}

func text(claims map[string]any, name string) string {
	s, _ := claims[name].(string)
	return s
}

// roles are the strings at a dotted path; a claim whose very name is the path comes first.
func roles(claims map[string]any, path string) (all []string) {
	at, ok := claims[path]
	if !ok {
		at = claims
		for segment := range strings.SplitSeq(path, ".") {
			object, ok := at.(map[string]any)
			if !ok {
				return nil
			}
			at = object[segment]
		}
	}
	list, ok := at.([]any)
	if !ok {
		list = []any{at}
	}
	for _, item := range list {
		if role, ok := item.(string); ok {
			all = append(all, role)
		}
	}
	return all
}

func unauthorized(challenge, what string) error {
	return &httpFault{
		Fault:  fault.New(fault.NoBearer, "%s", what).WithHint("sign in again: zae login"),
		header: http.Header{"Www-Authenticate": {challenge}},
	}
}

func invalidToken(what string) error {
	return unauthorized(fmt.Sprintf(`Bearer realm="zaentrum", error="invalid_token", error_description=%q`, what), what)
}

func forbidden(what string) error {
	return &httpFault{
		Fault: fault.New(fault.Forbidden, "%s", what).WithHint("sign in as an admin, through zae or the portal"),
		header: http.Header{"Www-Authenticate": {
			fmt.Sprintf(`Bearer realm="zaentrum", error="insufficient_scope", error_description=%q`, what),
		}},
	}
}

// issuerFault says that nobody can tell whether a token is good: the caller may be an admin, so 401 would
// send them away for nothing.
func issuerFault(what string) error {
	return fault.New(fault.SignIn, "%s", what)
}
