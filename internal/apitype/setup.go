package apitype

// States of a setup checklist and of its sections.
const (
	SetupReady      = "ready"
	SetupDegraded   = "degraded"
	SetupNeedsSetup = "needs-setup"
	// SetupUnknown is the state of what the addon did not tell, or not in a way that can be understood.
	SetupUnknown = "unknown"
)

// Setup is the answer to GET /api/portal/addons/{name}/setup: what is left to do before the addon is useful.
type Setup struct {
	Name string `json:"name"`
	// State is the addon's own word for all of it: ready, degraded, needs-setup or unknown.
	State string `json:"state"`
	// Note says why the addon's state is not known; empty when it is.
	Note string `json:"note,omitempty"`
	// Sections are those of the addon's manifest, in its order; of a manifest without any, those that the addon told.
	Sections []SetupSection `json:"sections"`
}

// SetupSection is one entry of the checklist.
type SetupSection struct {
	Key         string `json:"key"`
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required"`
	// Target is where the section is worked on: a path on the portal's origin.
	Target string `json:"target"`
	State  string `json:"state"`
	// Summary is plain text of at most 300 characters, in the addon's words.
	Summary string `json:"summary,omitempty"`
}
