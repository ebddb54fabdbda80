package oidc

import (
	"html/template"
	"maps"
	"net/http"
	"slices"
)

// The pages are plain forms: a test fills them in with a POST, a browser with a click.
var pages = template.Must(template.New("").Parse(`
{{define "head"}}<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{{.}}</title></head>
<body>
<h1>{{.}}</h1>{{end}}

{{define "message"}}{{template "head" .Title}}
<p role="status">{{.Text}}</p>
</body></html>
{{end}}

{{define "login"}}{{template "head" "Sign in"}}
<p>{{.Client}} wants to know who you are.</p>
<form method="post" action="/login">
<input type="hidden" name="id" value="{{.ID}}">
{{range .Users}}<p><button name="user" value="{{.}}">Sign in as {{.}}</button></p>
{{end}}</form>
</body></html>
{{end}}

{{define "device"}}{{template "head" "Connect a device"}}
<form method="post" action="/device">
<p><label>Code the device shows: <input name="user_code" value="{{.Code}}" autocomplete="off" required></label></p>
<p><label>You are: <select name="user">{{range .Users}}<option>{{.}}</option>{{end}}</select></label></p>
<p><button name="action" value="approve">Approve</button> <button name="action" value="deny">Deny</button></p>
</form>
</body></html>
{{end}}`))

func (p *Provider) render(w http.ResponseWriter, status int, name string, data any) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	// Other pages must not show these in a frame and have them clicked.
	w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	w.WriteHeader(status)
	_ = pages.ExecuteTemplate(w, name, data) // the browser is gone, or it works
}

// page shows a message.
func (p *Provider) page(w http.ResponseWriter, status int, title, text string, n note) note {
	p.render(w, status, "message", struct{ Title, Text string }{title, text})
	return n
}

func (p *Provider) userNames() []string { return slices.Sorted(maps.Keys(p.users)) }

func (p *Provider) loginPage(w http.ResponseWriter, r *http.Request) note {
	id := r.FormValue("id")
	p.mu.Lock()
	l := p.logins[id]
	p.mu.Unlock()
	if l == nil {
		return p.page(w, http.StatusNotFound, "Sign in", "This sign-in is not known any more.", note{})
	}
	p.render(w, http.StatusOK, "login", struct {
		ID, Client string
		Users      []string
	}{id, l.client.ID, p.userNames()})
	return note{client: l.client.ID}
}

func (p *Provider) devicePage(w http.ResponseWriter, r *http.Request) note {
	p.render(w, http.StatusOK, "device", struct {
		Code  string
		Users []string
	}{r.FormValue("user_code"), p.userNames()})
	return note{}
}

func (p *Provider) deviceAnswer(w http.ResponseWriter, r *http.Request) note {
	userCode, user := r.PostFormValue("user_code"), r.PostFormValue("user")
	var err error
	text := "The device is connected. You can close this page."
	switch r.PostFormValue("action") {
	case "deny":
		text = "The device was refused."
		err = p.DenyDevice(userCode)
	default:
		err = p.ApproveDevice(userCode, user)
	}
	if err != nil {
		return p.page(w, http.StatusBadRequest, "Connect a device", "Nothing was connected: "+err.Error()+".", note{err: err})
	}
	return p.page(w, http.StatusOK, "Connect a device", text, note{user: user})
}
