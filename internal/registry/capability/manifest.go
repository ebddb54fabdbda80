// Package capability reads an addon's manifest, the capability document that its primary Service serves,
// and says which registry rows it makes.
//
// It is pure: it fetches nothing and stores nothing. A manifest is written by the addon, so everything in
// it is hostile until checked here: what passes holds no address outside the addon and no control
// characters. Errors name the field, never its content.
package capability

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	kjson "sigs.k8s.io/json"

	"zaentrum.io/zae/internal/fault"
)

// WellKnownPath is where an addon's primary serves its manifest.
const WellKnownPath = "/.well-known/zaentrum-capability.json"

// MaxBytes is the size of the largest manifest that is read.
const MaxBytes = 256 << 10

// Kinds of service.
const (
	KindPlatform = "platform"
	KindAddon    = "addon"
)

// Manifest is what a service says about itself. Unknown fields are ignored.
type Manifest struct {
	// Service is the addon's name.
	Service string `json:"service"`
	Kind    string `json:"kind,omitempty"`
	Version string `json:"version,omitempty"`
	// ProxyKey is the key for the portal proxy when it differs from Service.
	ProxyKey   string      `json:"proxyKey,omitempty"`
	Commands   []Command   `json:"commands,omitempty"`
	Checks     []Check     `json:"checks,omitempty"`
	Topics     []string    `json:"topics,omitempty"`
	UI         UI          `json:"ui,omitzero"`
	Components []Component `json:"components,omitempty"`
	Setup      *Setup      `json:"setup,omitempty"`
}

// Command is something the service does when asked.
type Command struct {
	Name    string `json:"name"`
	Summary string `json:"summary,omitempty"`
	Method  string `json:"method,omitempty"`
	// Path is relative to the service.
	Path string `json:"path,omitempty"`
	Role string `json:"role,omitempty"`
}

// Check is a health check the service offers.
type Check struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// UI is what the service shows in the portal.
type UI struct {
	App AppInfo `json:"app,omitzero"`
	// Console true asks for one tile that opens the hosted console.
	Console bool   `json:"console,omitempty"`
	Space   *Space `json:"space,omitempty"`
	// Tiles replace the single console tile.
	Tiles []Tile `json:"tiles,omitempty"`
	Slots []Slot `json:"slots,omitempty"`
}

// AppInfo is how the service is shown.
type AppInfo struct {
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Icon        string `json:"icon,omitempty"`
}

// Space is a launchpad section of the service's own.
type Space struct {
	Key   string `json:"key"`
	Title string `json:"title,omitempty"`
	Ord   int    `json:"ord,omitempty"`
}

// Tile is one tile on the launchpad.
type Tile struct {
	Key         string `json:"key"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Icon        string `json:"icon,omitempty"`
	// Target is a hash route or a path inside the console; empty opens the console.
	Target string `json:"target,omitempty"`
	Ord    int    `json:"ord,omitempty"`
}

// Slot is an entry the service puts into a named place of another user interface.
type Slot struct {
	Key   string `json:"key"`
	Slot  string `json:"slot"`
	Kind  string `json:"kind,omitempty"`
	Label string `json:"label,omitempty"`
	Icon  string `json:"icon,omitempty"`
	// URL is a path on the public origin, or an http or https address.
	URL string `json:"url,omitempty"`
	Ord int    `json:"ord,omitempty"`
}

// Roles of a component.
const (
	RolePrimary  = "primary"
	RoleRequired = "required"
	RoleOptional = "optional"
)

// Component is one part of the addon: a Deployment and the Service of the same name.
type Component struct {
	Name     string   `json:"name"`
	Workload string   `json:"workload"`
	Role     string   `json:"role"`
	Summary  string   `json:"summary,omitempty"`
	Topics   []string `json:"topics,omitempty"`
}

// Setup is the checklist an admin works through before the addon is useful.
type Setup struct {
	Path     string         `json:"path"`
	Sections []SetupSection `json:"sections,omitempty"`
}

// SetupSection is one entry of the checklist.
type SetupSection struct {
	Key         string `json:"key"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
	Target      string `json:"target,omitempty"`
	Ord         int    `json:"ord,omitempty"`
}

// Parse reads a manifest and checks all of it. The error names every field that is wrong, sorted, and is a
// fault.Invalid; it never quotes the manifest. Control characters in texts are dropped.
func Parse(raw []byte) (*Manifest, error) {
	if len(raw) > MaxBytes {
		return nil, fault.New(fault.Invalid, "manifest is larger than %d KiB", MaxBytes>>10)
	}
	if !utf8.Valid(raw) {
		return nil, fault.New(fault.Invalid, "manifest is not UTF-8 text")
	}
	var m Manifest
	// Names to the letter: SERVICE is an unknown field, and does not stand for service.
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &m); err != nil {
		return nil, decodeFault(err)
	}
	m.clean()
	if problems := m.problems(); len(problems) > 0 {
		return nil, fault.New(fault.Invalid, "manifest: %s", strings.Join(problems, "; "))
	}
	return &m, nil
}

// decodeFault says where a document is not a manifest, without the library's text, which may quote it.
func decodeFault(err error) error {
	if typed, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if typed.Field == "" {
			return fault.New(fault.Invalid, "manifest is not a JSON object")
		}
		return fault.New(fault.Invalid, "manifest: %s has the wrong type", typed.Field)
	}
	if is, at := kjson.SyntaxErrorOffset(err); is {
		return fault.New(fault.Invalid, "manifest is not JSON: wrong at byte %d", at)
	}
	return fault.New(fault.Invalid, "manifest is not JSON")
}

// clean drops control characters from all texts that people will see, so that none of them can steer a
// terminal or reorder a line.
func (m *Manifest) clean() {
	texts := []*string{&m.Version, &m.UI.App.Title, &m.UI.App.Description, &m.UI.App.Icon}
	for i := range m.Commands {
		c := &m.Commands[i]
		texts = append(texts, &c.Name, &c.Summary, &c.Role)
	}
	for i := range m.Checks {
		texts = append(texts, &m.Checks[i].Name)
	}
	for i := range m.Topics {
		texts = append(texts, &m.Topics[i])
	}
	if s := m.UI.Space; s != nil {
		texts = append(texts, &s.Title)
	}
	for i := range m.UI.Tiles {
		t := &m.UI.Tiles[i]
		texts = append(texts, &t.Title, &t.Description, &t.Icon)
	}
	for i := range m.UI.Slots {
		s := &m.UI.Slots[i]
		texts = append(texts, &s.Slot, &s.Kind, &s.Label, &s.Icon)
	}
	for i := range m.Components {
		c := &m.Components[i]
		texts = append(texts, &c.Summary)
		for j := range c.Topics {
			texts = append(texts, &c.Topics[j])
		}
	}
	if m.Setup != nil {
		for i := range m.Setup.Sections {
			s := &m.Setup.Sections[i]
			texts = append(texts, &s.Title, &s.Description)
		}
	}
	for _, t := range texts {
		*t = strings.Map(func(r rune) rune {
			if unprintable(r) {
				return -1
			}
			return r
		}, *t)
	}
}

// JSON is the manifest as it is stored: known fields only, in a fixed order.
func (m *Manifest) JSON() ([]byte, error) {
	out, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("manifest of %s: %w", m.Service, err)
	}
	return out, nil
}

// Parts are the addon's components. A manifest without any has one, implicit: the primary at workload.
func (m *Manifest) Parts(workload string) []Component {
	if len(m.Components) > 0 {
		return slices.Clone(m.Components)
	}
	return []Component{{Name: m.Service, Workload: workload, Role: RolePrimary}}
}
