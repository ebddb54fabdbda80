package capability

import "strings"

// Rows are what one manifest becomes in the registry, apart from the addon's own record. The same manifest
// and place make the same rows, in the same order.
type Rows struct {
	App        App
	Tiles      []TileRow
	Slots      []SlotRow
	Components []Component
}

// App is the addon as the portal reaches it.
type App struct {
	Key         string
	ProxyKey    string // the key the portal proxy answers to
	ProxyURL    string // where it forwards to
	BaseURL     string // where the portal shows the console
	Title       string
	Description string
	Icon        string
}

// TileRow is a tile on the launchpad.
type TileRow struct {
	Key         string
	App         string
	Title       string
	Description string
	Icon        string
	Target      string // a path on the portal's origin
	Space       Space  // the zero Space is the launchpad's own
	Ord         int
}

// SlotRow is an entry in a named place of another user interface.
type SlotRow struct {
	Key   string
	App   string
	Slot  string
	Kind  string
	Label string
	Icon  string
	URL   string
	Ord   int
}

// Place is where the addon is and where the portal is seen.
type Place struct {
	// ProxyURL is the addon's address inside the cluster: http://<primary>.
	ProxyURL string
	// Workload is the primary's Deployment and Service.
	Workload string
	// PublicOrigin is the portal's, such as https://media.example.org; empty leaves relative addresses relative.
	PublicOrigin string
	// Space, when set, is the section of the launchpad that the tiles go into, whatever the manifest says.
	Space *Space
}

// BaseURL is where the portal shows an app's console.
func BaseURL(key string) string { return "/portal/app/" + key }

// Rows are the registry rows of m at a place.
func (m *Manifest) Rows(p Place) Rows {
	base := BaseURL(m.Service)
	app := App{
		Key: m.Service, ProxyKey: m.ProxyKey, ProxyURL: p.ProxyURL, BaseURL: base,
		Title: m.UI.App.Title, Description: m.UI.App.Description, Icon: m.UI.App.Icon,
	}
	if app.ProxyKey == "" {
		app.ProxyKey = app.Key
	}
	if app.Title == "" {
		app.Title = m.Service
	}
	var space Space
	switch {
	case p.Space != nil:
		space = *p.Space
	case m.UI.Space != nil:
		space = *m.UI.Space
	}
	rows := Rows{App: app, Components: m.Parts(p.Workload)}
	for _, t := range m.UI.Tiles {
		rows.Tiles = append(rows.Tiles, TileRow{
			Key: "addon." + m.Service + "." + t.Key, App: app.Key, Title: first(t.Title, app.Title),
			Description: t.Description, Icon: first(t.Icon, app.Icon), Target: inside(base, t.Target), Space: space, Ord: t.Ord,
		})
	}
	if m.UI.Console && len(m.UI.Tiles) == 0 {
		rows.Tiles = []TileRow{{
			Key: "addon." + m.Service, App: app.Key, Title: app.Title,
			Description: app.Description, Icon: app.Icon, Target: base, Space: space,
		}}
	}
	for _, s := range m.UI.Slots {
		rows.Slots = append(rows.Slots, SlotRow{
			Key: m.Service + "." + s.Key, App: app.Key, Slot: s.Slot, Kind: s.Kind, Label: s.Label, Icon: s.Icon,
			URL: absolute(p.PublicOrigin, s.URL), Ord: s.Ord,
		})
	}
	return rows
}

// Target is where a target of an app's manifest leads: a path on the portal's origin that cannot leave the app's console.
func Target(app, target string) string { return inside(BaseURL(app), target) }

// inside makes a target a path on the portal's origin that cannot leave the console below base. A target
// that already is one stays.
func inside(base, target string) string {
	switch {
	case target == "":
		return base
	case strings.HasPrefix(target, "#"):
		return base + "/" + target
	case target == base, strings.HasPrefix(target, base+"/"):
		return target
	}
	return base + target
}

func absolute(origin, address string) string {
	if strings.HasPrefix(address, "/") {
		return strings.TrimSuffix(origin, "/") + address
	}
	return address
}

func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
