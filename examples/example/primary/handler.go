package main

import (
	"bytes"
	"encoding/json"
	"html/template"
	"net/http"
	"os"
	"path/filepath"
)

// Options say what the primary is and has.
type Options struct {
	Service, Version string
	DatabaseURL      string // secret
	ConfigKey        string // secret
	Data             string // directory; empty for none
}

// Manifest is the addon's capability document.
type Manifest struct {
	Service    string      `json:"service"`
	Kind       string      `json:"kind"`
	Version    string      `json:"version"`
	Commands   []Command   `json:"commands"`
	Checks     []Check     `json:"checks"`
	Topics     []string    `json:"topics"`
	UI         UI          `json:"ui"`
	Components []Component `json:"components"`
	Setup      Setup       `json:"setup"`
}

// Command is something that zae can call.
type Command struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
	Method  string `json:"method"`
	Path    string `json:"path"`
	Role    string `json:"role"`
}

// Check is an address that answers 200 when all is well.
type Check struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// UI is what the portal shows.
type UI struct {
	App     App  `json:"app"`
	Console bool `json:"console"`
}

// App is how the addon introduces itself.
type App struct {
	Title       string `json:"title"`
	Description string `json:"description"`
	Icon        string `json:"icon"`
}

// Component is a part of the addon; Workload names its Deployment.
type Component struct {
	Name     string   `json:"name"`
	Workload string   `json:"workload"`
	Role     string   `json:"role"`
	Summary  string   `json:"summary"`
	Topics   []string `json:"topics,omitempty"`
}

// Setup says where the setup status is and what it is about.
type Setup struct {
	Path     string    `json:"path"`
	Sections []Section `json:"sections"`
}

// Section is a step of the setup.
type Section struct {
	Key         string `json:"key"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
	Target      string `json:"target"`
	Ord         int    `json:"ord"`
}

// Status is the answer of the setup status endpoint.
type Status struct {
	State    string          `json:"state"`
	Sections []SectionStatus `json:"sections"`
}

// SectionStatus is the state of one section; Summary is plain text and never holds a secret.
type SectionStatus struct {
	Key     string `json:"key"`
	State   string `json:"state"`
	Summary string `json:"summary"`
}

// States of a section and of the whole.
const (
	stateReady      = "ready"
	stateDegraded   = "degraded"
	stateNeedsSetup = "needs-setup"
)

const (
	manifestPath = "/.well-known/zaentrum-capability.json"
	setupPath    = "/api/setup"
)

// NewHandler serves the manifest, the setup status, the console and a health check.
func NewHandler(o Options) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+manifestPath, func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, manifest(o)) })
	mux.HandleFunc("GET "+setupPath, func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, status(o)) })
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ok\n"))
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { writeConsole(w, o) })
	return headers(mux)
}

// headers keeps the console to itself: no foreign script, style or form.
func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

func manifest(o Options) Manifest {
	m := Manifest{
		Service:  o.Service,
		Kind:     "addon",
		Version:  o.Version,
		Commands: []Command{{Name: "setup", Summary: "show what is left to set up", Method: http.MethodGet, Path: setupPath, Role: "zaentrum-admin"}},
		Checks:   []Check{{Name: "health", Path: "/healthz"}},
		Topics:   []string{},
		UI: UI{
			App:     App{Title: o.Service, Description: "An example addon with a worker", Icon: "puzzle"},
			Console: true,
		},
		Components: []Component{
			{Name: "primary", Workload: o.Service, Role: "primary", Summary: "manifest, console and API"},
		},
		Setup: Setup{Path: setupPath, Sections: []Section{
			{Key: "database", Title: "Database", Description: "Where the addon keeps its records", Required: true, Target: "#/database", Ord: 1},
			{Key: "encryption", Title: "Encryption", Description: "The key that settings are encrypted with", Required: true, Target: "#/encryption", Ord: 2},
			{Key: "storage", Title: "Storage", Description: "Where the addon keeps its files", Target: "#/storage", Ord: 3},
		}},
	}
	if o.Service == "example" {
		m.Topics = []string{"example.item.done"}
		m.Components = append(m.Components, Component{
			Name: "worker", Workload: "example-worker", Role: "required",
			Summary: "works through what the primary accepts", Topics: m.Topics,
		})
	}
	return m
}

func status(o Options) Status {
	s := Status{State: stateReady}
	add := func(key, state, summary string) {
		s.Sections = append(s.Sections, SectionStatus{key, state, summary})
		if state == stateNeedsSetup || (state == stateDegraded && s.State == stateReady) {
			s.State = state
		}
	}
	switch {
	case o.DatabaseURL == "":
		add("database", stateNeedsSetup, "no connection URL is given")
	case !validDatabase(o.DatabaseURL):
		add("database", stateNeedsSetup, "the connection URL is not a postgres:// address")
	default:
		add("database", stateReady, "a connection URL is given")
	}
	if o.ConfigKey == "" {
		add("encryption", stateNeedsSetup, "no encryption key is given")
	} else {
		add("encryption", stateReady, "an encryption key is given")
	}
	switch {
	case o.Data == "":
		add("storage", stateReady, "nothing is kept on disk")
	case !writable(o.Data):
		add("storage", stateDegraded, "the data directory cannot be written to")
	default:
		add("storage", stateReady, "the data directory can be written to")
	}
	return s
}

func writable(dir string) bool {
	f, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return false
	}
	_ = f.Close()
	return os.Remove(filepath.Clean(f.Name())) == nil
}

func writeJSON(w http.ResponseWriter, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(text, '\n'))
}

func writeConsole(w http.ResponseWriter, o Options) {
	var page bytes.Buffer
	err := console.Execute(&page, struct {
		Options
		Status   Status
		Sections []Section
	}{o, status(o), manifest(o).Setup.Sections})
	if err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(page.Bytes())
}

// console is one page without scripts, so that it works under any path the portal serves it at.
var console = template.Must(template.New("console").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Service}}</title>
<style>
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 40rem; margin: 2rem auto; padding: 0 1rem }
dt { font-weight: 600; margin-top: 1rem }
dd { margin: 0 }
</style>
</head>
<body>
<main>
<h1>{{.Service}} <small>{{.Version}}</small></h1>
<p>Setup: <strong>{{.Status.State}}</strong></p>
<dl>
{{- range $i, $section := .Sections}}
{{- with index $.Status.Sections $i}}
<dt id="/{{.Key}}">{{$section.Title}}</dt>
<dd>{{.Summary}} ({{.State}})</dd>
{{- end}}
{{- end}}
</dl>
</main>
</body>
</html>
`))
