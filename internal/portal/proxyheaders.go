package portal

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"zaentrum.io/zae/internal/portal/apppath"
	"zaentrum.io/zae/internal/registry/capability"
)

// consolePolicy is what a console may load and do: everything of the portal's origin, styles written into pages, and
// nothing from elsewhere. Only the portal's own pages may frame it. An addon's own policy holds besides, and can only
// narrow it.
const consolePolicy = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; " +
	"media-src 'self' blob:; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'self'"

// answerPolicy is for what an app answers to a call: data, which is never a page.
const answerPolicy = "default-src 'none'; sandbox; frame-ancestors 'none'"

// hostileRequestHeaders say who calls, and from where, to programs behind a proxy that they trust. None is passed on from
// outside; those that are true are set anew.
func hostileRequestHeader(name string) bool {
	lower := strings.ToLower(name)
	for _, prefix := range []string{
		"x-forwarded-", "x-real-", "x-original-", "x-rewrite-", "x-remote-", "x-auth-request-", "x-webauth-", "x-envoy-", "x-client-",
		"x-cluster-client-", "x-ssl-", "x-zaentrum-", "remote-", "cf-connecting-", "true-client-", "x-http-method",
		"x-accel-", "x-sendfile-",
	} {
		if strings.HasPrefix(lower, prefix) {
			return true
		}
	}
	switch lower {
	case "forwarded", "via", "x-host", "x-user", "x-method-override", "proxy", "proxy-authorization", "te", "http2-settings":
		return true
	}
	// Behind CGI and its kind an underscore is a dash.
	return strings.ContainsRune(lower, '_')
}

// droppedAnswerHeaders would act on the whole origin of the portal, or on its pages, and not on the app alone.
var droppedAnswerHeaders = []string{
	"Accept-Ch", "Activate-Storage-Access", "Alt-Svc", "Clear-Site-Data", "Critical-Ch", "Expect-Ct", "Nel", "No-Vary-Search",
	"Origin-Agent-Cluster", "Origin-Trial", "Permissions-Policy", "Public-Key-Pins", "Refresh", "Report-To", "Reporting-Endpoints",
	"Service-Worker-Allowed", "Service-Worker-Navigation-Preload", "Set-Login", "Speculation-Rules", "Strict-Transport-Security",
	"Supports-Loading-Mode", "Trailer", "Use-As-Dictionary",
	// Ours, for every answer.
	"Cross-Origin-Embedder-Policy", "Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy", "Referrer-Policy",
	"X-Content-Type-Options", "X-Frame-Options", "X-Permitted-Cross-Domain-Policies", "X-Xss-Protection", "Traceparent", "Traceresponse",
}

// droppedAnswerHeader tells whether a header of an answer is not passed on: it acts on more than the app, or tells the
// servers between portal-api and the caller what to do, such as to send a file of theirs instead.
func droppedAnswerHeader(name string) bool {
	if slices.Contains(droppedAnswerHeaders, name) {
		return true
	}
	for _, prefix := range []string{"Access-Control-", "X-Accel-", "X-Sendfile", "X-Lighttpd-", "X-Reproxy-", "Surrogate-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// rewriteHeaders makes the headers of a call to an app: the caller's, without what is not the app's business.
func (p *passage) rewriteHeaders(in *http.Request, out http.Header) {
	for name := range out {
		if hostileRequestHeader(name) {
			delete(out, name)
		}
	}
	out.Del("Authorization")
	if p.bearer != "" {
		out.Set("Authorization", "Bearer "+p.bearer)
	}
	out.Del("Cookie")
	for _, c := range in.Cookies() {
		if name, ours := strings.CutPrefix(c.Name, p.cookiePrefix()); ours && name != "" {
			own := &http.Cookie{Name: name, Value: c.Value, Quoted: c.Quoted}
			if line := own.String(); line != "" {
				if before := out.Get("Cookie"); before != "" {
					line = before + "; " + line
				}
				out.Set("Cookie", line)
			}
		}
	}
	if host, _, err := net.SplitHostPort(in.RemoteAddr); err == nil {
		out.Set("X-Forwarded-For", host)
	}
	out.Set("X-Forwarded-Prefix", p.base)
	if p.origin != nil {
		out.Set("X-Forwarded-Host", p.origin.Host)
		out.Set("X-Forwarded-Proto", p.origin.Scheme)
	}
	if p.protocols != nil {
		out.Del("Sec-Websocket-Protocol")
		if len(p.protocols) > 0 {
			out.Set("Sec-Websocket-Protocol", strings.Join(p.protocols, ", "))
		}
	}
	out.Del("Traceparent")
	out.Del("Tracestate")
	if p.trace.Valid() {
		out.Set("Traceparent", p.trace.String())
	}
}

// cookiePrefix begins the names, in the browser, of the app's own cookies: no other is passed on to it, and none that it
// sets can be taken for the portal's.
func (p *passage) cookiePrefix() string { return "zae." + p.app.Key + "." }

// answerHeaders makes the headers of an app's answer fit for the portal's origin. An error says why the answer cannot be
// passed on at all.
func (p *passage) answerHeaders(res *http.Response) error {
	h := res.Header
	if err := p.rewriteLocation(res); err != nil {
		return err
	}
	p.rewriteCookies(res)
	policies := h.Values("Content-Security-Policy")
	for name := range h {
		if droppedAnswerHeader(name) {
			delete(h, name)
		}
	}
	// A browser asks its user for a password when told to, in the portal's name.
	challenges := slices.DeleteFunc(h.Values("Www-Authenticate"), func(c string) bool {
		scheme, _, _ := strings.Cut(c, " ")
		return !strings.EqualFold(scheme, "Bearer")
	})
	h.Del("Www-Authenticate")
	if len(challenges) > 0 {
		h["Www-Authenticate"] = challenges
	}
	if h.Get("Content-Type") == "" && res.StatusCode >= 200 && res.StatusCode != http.StatusNoContent && res.StatusCode != http.StatusNotModified {
		h.Set("Content-Type", "application/octet-stream") // nobody is to guess
	}
	if p.way == wayAPI {
		h.Set("Content-Security-Policy", answerPolicy)
		h.Del("Cache-Control")
		h.Del("Expires")
		h.Del("Pragma")
		return nil
	}
	h["Content-Security-Policy"] = append([]string{consolePolicy}, policies...)
	h.Set("Cross-Origin-Opener-Policy", "same-origin-allow-popups")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Frame-Options", "SAMEORIGIN")
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-cache")
	}
	return nil
}

// maxCookies is how many cookies one answer may set.
const maxCookies = 16

// rewriteCookies keeps the cookies of an app to the app: under a name of its own, on its own paths, on this host.
func (p *passage) rewriteCookies(res *http.Response) {
	cookies := res.Cookies()
	res.Header.Del("Set-Cookie")
	for _, c := range cookies[:min(len(cookies), maxCookies)] {
		path := p.base + "/"
		switch {
		case strings.HasPrefix(c.Path, path) && apppath.Problem(strings.TrimPrefix(c.Path, p.base)) == "":
			path = c.Path
		case c.Path != "" && c.Path != "/" && apppath.Problem(c.Path) == "":
			path = p.base + c.Path
		}
		own := &http.Cookie{
			Name: p.cookiePrefix() + c.Name, Value: c.Value, Quoted: c.Quoted, Path: path, Expires: c.Expires, MaxAge: c.MaxAge,
			HttpOnly: c.HttpOnly, Secure: c.Secure || p.origin != nil && p.origin.Scheme == "https", SameSite: c.SameSite,
		}
		if own.SameSite != http.SameSiteStrictMode {
			own.SameSite = http.SameSiteLaxMode
		}
		if line := own.String(); line != "" {
			res.Header.Add("Set-Cookie", line)
		}
	}
}

// errElsewhereRefused says that an app redirects to where its callers are not sent.
var errElsewhereRefused = errors.New("redirects to where no caller is sent")

// rewriteLocation makes the address in an answer one of the portal's. Within the app it is rewritten. Elsewhere on the web a
// browser that opened a console may go; a call, which may take its bearer along, may not.
func (p *passage) rewriteLocation(res *http.Response) error {
	given, ok := res.Header["Location"]
	if !ok {
		return nil
	}
	if len(given) == 1 {
		if to, ok := p.location(given[0]); ok {
			res.Header.Set("Location", to)
			return nil
		}
	}
	res.Header.Del("Location")
	if res.StatusCode >= 300 && res.StatusCode < 400 {
		return errElsewhereRefused
	}
	return nil // where a thing was made is not where anybody goes
}

func (p *passage) location(raw string) (string, bool) {
	if strings.ContainsRune(raw, '\\') || strings.ContainsFunc(raw, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }) {
		return "", false
	}
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" || u.User != nil || u.Host == "" && strings.HasPrefix(raw, "//") {
		return "", false
	}
	switch {
	case u.Scheme == "" && u.Host == "", sameHost(u, p.target):
		return p.inside(u)
	case u.Scheme != "" && u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", false
	case p.origin != nil && strings.EqualFold(u.Host, p.origin.Host) && (u.Scheme == "" || u.Scheme == p.origin.Scheme) && p.below(u.EscapedPath()):
		return p.inside(&url.URL{Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery, Fragment: u.Fragment, RawFragment: u.RawFragment})
	}
	return raw, p.way == wayConsole
}

// inside is an address of the app as the portal has it. The app may know where it is, from X-Forwarded-Prefix, or not.
func (p *passage) inside(u *url.URL) (string, bool) {
	path := u.EscapedPath()
	switch {
	case p.below(path):
	case path == "":
		path = p.base + p.rest
	case strings.HasPrefix(path, "/"):
		rest, ok := strings.CutPrefix(path, strings.TrimSuffix(p.target.EscapedPath(), "/"))
		if !ok || rest != "" && rest[0] != '/' {
			return "", false
		}
		path = p.base + rest
	default: // beside the page that answers
		here := &url.URL{Path: "/"}
		if parsed, err := url.Parse(p.rest); err == nil {
			here = parsed
		}
		path = p.base + here.ResolveReference(&url.URL{Path: u.Path, RawPath: u.RawPath}).EscapedPath()
	}
	for _, base := range []string{p.base, p.other} {
		if rest, ok := strings.CutPrefix(path, base); ok && rest != "" && apppath.Problem(rest) != "" {
			return "", false
		}
	}
	out := path
	if u.RawQuery != "" {
		out += "?" + u.RawQuery
	}
	if u.Fragment != "" {
		out += "#" + u.EscapedFragment()
	}
	return out, true
}

// below tells whether a path is one of the app's in the portal.
func (p *passage) below(path string) bool {
	return path == p.base || strings.HasPrefix(path, p.base+"/") || strings.HasPrefix(path, p.other+"/")
}

// otherBase is the other of the two ways to the same app.
func (w way) otherBase(key string) string {
	if w == wayConsole {
		return wayAPI.base(key)
	}
	return capability.BaseURL(key)
}

// sameHost tells whether u is an address of the app's own server.
func sameHost(u, target *url.URL) bool {
	return (u.Scheme == "" || u.Scheme == target.Scheme) && strings.EqualFold(u.Hostname(), target.Hostname()) && portOf(u, target.Scheme) == portOf(target, target.Scheme)
}

func portOf(u *url.URL, scheme string) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case scheme == "https":
		return "443"
	}
	return "80"
}
