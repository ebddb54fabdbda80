package oidc

import (
	"slices"
	"strings"
	"time"

	"github.com/zitadel/oidc/v3/pkg/op"

	zoidc "github.com/zitadel/oidc/v3/pkg/oidc"
)

// User is somebody who can sign in.
type User struct {
	Name     string // preferred_username
	Subject  string // sub; empty: derived from the name
	Email    string
	FullName string
	Roles    []string // realm_access.roles
}

func (u User) claims() map[string]any {
	claims := map[string]any{"sub": u.Subject, "preferred_username": u.Name}
	if u.Email != "" {
		claims["email"], claims["email_verified"] = u.Email, true
	}
	if u.FullName != "" {
		claims["name"] = u.FullName
	}
	return claims
}

// DefaultUsers are an admin and a viewer.
func DefaultUsers() []User {
	return []User{
		{Name: "admin", Email: "admin@zaentrum.test", FullName: "Ada Admin", Roles: []string{"zaentrum-admin", "user"}},
		{Name: "viewer", Email: "viewer@zaentrum.test", FullName: "Vera Viewer", Roles: []string{"user"}},
	}
}

// Client is a program that signs users in.
type Client struct {
	ID string
	// Secret makes the client confidential. A public one has to use PKCE.
	Secret string
	// Grants are what it may use at the token endpoint.
	Grants []zoidc.GrantType
	// RedirectURIs are exact, but for the port of a loopback address, which is free. * and ** stand for a part of a URI
	// and for any number of them.
	RedirectURIs []string
	// Roles are those of its service account, for client credentials.
	Roles []string
}

// CISecret is the secret of the client ci.
const CISecret = "ci-secret"

// DefaultClients are the platform's: a command line (zae), a web page (zaentrum-web), a player whose tokens must not
// count as an admin's (media-player), and a machine (ci).
func DefaultClients() []Client {
	loopback := []string{"http://127.0.0.1:*/**", "http://localhost:*/**", "http://127.0.0.1/**", "http://localhost/**"}
	return []Client{{
		ID:           "zae",
		Grants:       []zoidc.GrantType{zoidc.GrantTypeCode, zoidc.GrantTypeDeviceCode, zoidc.GrantTypeRefreshToken},
		RedirectURIs: loopback,
	}, {
		ID:           "zaentrum-web",
		Grants:       []zoidc.GrantType{zoidc.GrantTypeCode, zoidc.GrantTypeRefreshToken},
		RedirectURIs: append([]string{"http*://zaentrum.localhost/**", "http*://zaentrum.localhost:*/**"}, loopback...),
	}, {
		ID:           "media-player",
		Grants:       []zoidc.GrantType{zoidc.GrantTypeCode, zoidc.GrantTypeDeviceCode, zoidc.GrantTypeRefreshToken},
		RedirectURIs: loopback,
	}, {
		ID:     "ci",
		Secret: CISecret,
		Grants: []zoidc.GrantType{zoidc.GrantTypeClientCredentials},
		Roles:  []string{"zaentrum-admin"},
	}}
}

// serviceAccount is the user a client is for itself, named as in Keycloak.
func (c Client) serviceAccount() User {
	name := "service-account-" + strings.ToLower(c.ID)
	return User{Name: name, Subject: subject(name), Roles: c.Roles}
}

func (c Client) may(g zoidc.GrantType) bool { return slices.Contains(c.Grants, g) }

// libraryClient is a Client as the library's checks want it.
type libraryClient struct{ c Client }

var _ op.HasRedirectGlobs = libraryClient{}

func (l libraryClient) GetID() string                        { return l.c.ID }
func (l libraryClient) RedirectURIs() []string               { return l.c.RedirectURIs }
func (l libraryClient) RedirectURIGlobs() []string           { return l.c.RedirectURIs }
func (l libraryClient) PostLogoutRedirectURIs() []string     { return l.c.RedirectURIs }
func (l libraryClient) PostLogoutRedirectURIGlobs() []string { return l.c.RedirectURIs }
func (l libraryClient) ResponseTypes() []zoidc.ResponseType {
	return []zoidc.ResponseType{zoidc.ResponseTypeCode}
}
func (l libraryClient) GrantTypes() []zoidc.GrantType       { return l.c.Grants }
func (l libraryClient) LoginURL(id string) string           { return loginPath + "?id=" + id }
func (l libraryClient) AccessTokenType() op.AccessTokenType { return op.AccessTokenTypeJWT }
func (l libraryClient) IDTokenLifetime() time.Duration      { return 0 }
func (l libraryClient) DevMode() bool                       { return true } // plain http
func (l libraryClient) IsScopeAllowed(string) bool          { return true }
func (l libraryClient) IDTokenUserinfoClaimsAssertion() bool {
	return true
}
func (l libraryClient) ClockSkew() time.Duration { return 0 }
func (l libraryClient) RestrictAdditionalIdTokenScopes() func([]string) []string { //nolint:revive // op.Client's name
	return func(s []string) []string { return s }
}
func (l libraryClient) RestrictAdditionalAccessTokenScopes() func([]string) []string {
	return func(s []string) []string { return s }
}
func (l libraryClient) ApplicationType() op.ApplicationType {
	if l.c.Secret != "" {
		return op.ApplicationTypeWeb
	}
	return op.ApplicationTypeUserAgent
}
func (l libraryClient) AuthMethod() zoidc.AuthMethod {
	if l.c.Secret != "" {
		return zoidc.AuthMethodBasic
	}
	return zoidc.AuthMethodNone
}
