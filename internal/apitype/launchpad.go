package apitype

// Paths of what the launchpad reads.
const (
	PathTiles = "/api/portal/tiles"
	PathSlots = "/api/portal/slots"
)

// Apps is the answer to GET /api/portal/apps: all registered apps, by key.
type Apps struct {
	Apps []App `json:"apps"`
}

// App is a registered app as the portal shows it. Where it is inside the cluster is not told.
type App struct {
	Key string `json:"key"`
	// Addon is the addon that the app belongs to; absent for an app registered by hand.
	Addon string `json:"addon,omitempty"`
	// ProxyKey is the app's key in the portal proxy: /api/portal/apps/<proxyKey>/….
	ProxyKey string `json:"proxyKey"`
	// BaseURL is where the portal shows the app's console, a path on the portal's origin.
	BaseURL     string `json:"baseUrl"`
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
	Icon        string `json:"icon,omitempty"`
}

// Tiles is the answer to GET /api/portal/tiles: all tiles, in the order in which the launchpad shows them: by their
// space's ord and key, their own ord, and their key. The launchpad's own space, which has no key, is of ord 0.
type Tiles struct {
	Tiles []Tile `json:"tiles"`
}

// Tile is one tile on the launchpad.
type Tile struct {
	Key         string `json:"key"`
	App         string `json:"app"`
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
	Icon        string `json:"icon,omitempty"`
	// Target is a path on the portal's origin.
	Target string `json:"target"`
	// Space is the section that the tile is in; absent for the launchpad's own.
	Space *Space `json:"space,omitempty"`
	Ord   int    `json:"ord"`
}

// Space is a section of the launchpad.
type Space struct {
	Key   string `json:"key"`
	Title string `json:"title,omitempty"`
	Ord   int    `json:"ord"`
}

// Slots is the answer to GET /api/portal/slots: the rows of one slot, or of all, by slot, ord and key.
type Slots struct {
	Slots []Slot `json:"slots"`
}

// Slot is an entry in a named place of another user interface.
type Slot struct {
	Key   string `json:"key"`
	App   string `json:"app"`
	Slot  string `json:"slot"`
	Kind  string `json:"kind,omitempty"`
	Label string `json:"label,omitempty"`
	Icon  string `json:"icon,omitempty"`
	// URL is absolute where the instance knows its public origin.
	URL string `json:"url,omitempty"`
	Ord int    `json:"ord"`
}
