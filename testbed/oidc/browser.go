package oidc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Authorize does what a person and a browser do with an authorization URL: it opens it, signs in as user, and returns
// the redirect URI the client is called back with. Nothing is sent to the client.
func Authorize(ctx context.Context, authorizationURL, user string) (callback string, err error) {
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	location := func(req *http.Request, err error) (*url.URL, error) {
		if err != nil {
			return nil, err
		}
		resp, err := client.Do(req)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusFound {
			return nil, fmt.Errorf("sign in as %s: %s", user, resp.Status)
		}
		return resp.Location()
	}
	login, err := location(http.NewRequestWithContext(ctx, http.MethodGet, authorizationURL, nil))
	if err != nil {
		return "", err
	}
	id := login.Query().Get("id")
	if login.Path != loginPath || id == "" {
		return login.String(), nil // an error for the client
	}
	login.RawQuery = ""
	req, err := formRequest(ctx, login.String(), url.Values{"id": {id}, "user": {user}})
	back, err := location(req, err)
	if err != nil {
		return "", err
	}
	return back.String(), nil
}

// PostForm posts a form to the provider of an issuer and returns the answer's text: for programs that have no Provider
// at hand, with [TestbedTokenPath] or [TestbedDevicePath].
func PostForm(ctx context.Context, issuer, path string, form url.Values) (string, error) {
	req, err := formRequest(ctx, strings.TrimSuffix(issuer, "/")+path, form)
	if err != nil {
		return "", err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxForm))
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		if path == TestbedTokenPath {
			return "", errors.New(strings.TrimSpace(string(body)))
		}
		return "", fmt.Errorf("the provider answered %s", resp.Status)
	}
	return strings.TrimSpace(string(body)), nil
}

func formRequest(ctx context.Context, url string, form url.Values) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return req, nil
}
