package portal

import (
	"cmp"
	"net/http"
	"slices"

	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/registry"
	"zaentrum.io/zae/internal/registry/capability"
)

// launchpadRoutes are what the launchpad reads, whoever is in front of it: it is no admin's. The answers are the same for
// everybody.
func (s *Server) launchpadRoutes() []route {
	return []route{
		conditional(s, route{
			method: "GET", path: apitype.PathApps, id: "listApps", who: signedIn, status: http.StatusOK,
			summary: "Lists all registered apps.",
		}, s.apps),
		conditional(s, route{
			method: "GET", path: apitype.PathTiles, id: "listTiles", who: signedIn, status: http.StatusOK,
			summary: "Lists the tiles of the launchpad, in its order.",
		}, s.tiles),
		conditional(s, route{
			method: "GET", path: apitype.PathSlots, id: "listSlots", who: signedIn, status: http.StatusOK,
			summary: "Lists what apps put into slots of other user interfaces: into one (slot), or into all.",
			query:   []parameter{{"slot", "The name of one slot; absent, the rows of all are listed."}},
		}, s.slots),
	}
}

// apps answers GET /api/portal/apps.
func (s *Server) apps(c *call, _ none) (apitype.Apps, error) {
	out := apitype.Apps{Apps: []apitype.App{}}
	if err := onlyParameters(c.request); err != nil {
		return out, err
	}
	all, err := s.o.Registry.Apps(c.mayWait)
	for _, a := range all {
		out.Apps = append(out.Apps, wireApp(a))
	}
	return out, err
}

func wireApp(a registry.App) apitype.App {
	return apitype.App{
		Key: a.Key, Addon: a.Addon, ProxyKey: a.ProxyKey, BaseURL: a.BaseURL, Title: a.Title, Description: a.Description, Icon: a.Icon,
	}
}

// tiles answers GET /api/portal/tiles.
func (s *Server) tiles(c *call, _ none) (apitype.Tiles, error) {
	out := apitype.Tiles{Tiles: []apitype.Tile{}}
	if err := onlyParameters(c.request); err != nil {
		return out, err
	}
	all, err := s.o.Registry.Tiles(c.mayWait)
	slices.SortFunc(all, func(a, b capability.TileRow) int {
		return cmp.Or(cmp.Compare(a.Space.Ord, b.Space.Ord), cmp.Compare(a.Space.Key, b.Space.Key), cmp.Compare(a.Ord, b.Ord), cmp.Compare(a.Key, b.Key))
	})
	for _, t := range all {
		out.Tiles = append(out.Tiles, wireTile(t))
	}
	return out, err
}

func wireTile(t capability.TileRow) apitype.Tile {
	out := apitype.Tile{Key: t.Key, App: t.App, Title: t.Title, Description: t.Description, Icon: t.Icon, Target: t.Target, Ord: t.Ord}
	if t.Space.Key != "" {
		out.Space = &apitype.Space{Key: t.Space.Key, Title: t.Space.Title, Ord: t.Space.Ord}
	}
	return out
}

// slots answers GET /api/portal/slots?slot=….
func (s *Server) slots(c *call, _ none) (apitype.Slots, error) {
	out := apitype.Slots{Slots: []apitype.Slot{}}
	if err := onlyParameters(c.request, "slot"); err != nil {
		return out, err
	}
	wanted, given := c.request.URL.Query()["slot"]
	if given && wanted[0] == "" {
		return out, malformed("slot is empty").WithHint("name a slot, or leave the parameter out for all of them")
	}
	all, err := s.o.Registry.Slots(c.mayWait)
	slices.SortFunc(all, func(a, b capability.SlotRow) int {
		return cmp.Or(cmp.Compare(a.Slot, b.Slot), cmp.Compare(a.Ord, b.Ord), cmp.Compare(a.Key, b.Key))
	})
	for _, row := range all {
		if !given || row.Slot == wanted[0] {
			out.Slots = append(out.Slots, wireSlot(row))
		}
	}
	return out, err
}

func wireSlot(row capability.SlotRow) apitype.Slot {
	return apitype.Slot{
		Key: row.Key, App: row.App, Slot: row.Slot, Kind: row.Kind, Label: row.Label, Icon: row.Icon, URL: row.URL, Ord: row.Ord,
	}
}

// onlyParameters refuses a query that has another parameter than these, or one of them twice: one that is misspelt would
// be lost silently.
func onlyParameters(r *http.Request, allowed ...string) error {
	query := r.URL.Query()
	for _, name := range sortedKeys(query) {
		switch {
		case !slices.Contains(allowed, name):
			return malformed("unknown parameter %s", shown(name))
		case len(query[name]) > 1:
			return malformed("parameter %s is there twice", name)
		}
	}
	return nil
}
