package apitype

// AddressRequest is the body of POST /api/portal/addons, which adds an addon from its address, or reads its manifest again.
type AddressRequest struct {
	// ProxyURL is where the addon is: a Service inside the cluster, as http://my-addon, http://my-addon:8080 or
	// http://my-addon.its-namespace.svc.
	ProxyURL string `json:"proxyUrl"`
	// DryRun true answers what would be registered, or refuses what would be refused, and writes nothing.
	DryRun bool `json:"dryRun,omitempty"`
	// Space is the key of the launchpad's section that the addon's tiles go into, whatever its manifest says.
	Space string `json:"space,omitempty"`
	// ReplaceAddress true moves an addon that is registered at another address.
	ReplaceAddress bool `json:"replaceAddress,omitempty"`
}

// AddressAnswer is the answer to POST /api/portal/addons: 202, or 200 to a dry run. It has the rows that were made, or
// would be.
type AddressAnswer struct {
	Name string `json:"name"`
	// Address is the one form in which the address is kept.
	Address string `json:"address"`
	Version string `json:"version,omitempty"`
	DryRun  bool   `json:"dryRun"`
	// Replaced tells whether the addon was registered before.
	Replaced   bool            `json:"replaced"`
	App        App             `json:"app"`
	Tiles      []Tile          `json:"tiles"`
	Slots      []Slot          `json:"slots"`
	Components []PartOfAddress `json:"components"`
}

// PartOfAddress is one component of an addon, as its manifest has it.
type PartOfAddress struct {
	Name     string `json:"name"`
	Workload string `json:"workload"`
	// Role is primary, required or optional.
	Role    string   `json:"role"`
	Summary string   `json:"summary,omitempty"`
	Topics  []string `json:"topics,omitempty"`
}
