package apitype

// Readiness is the answer to GET /readyz for those who accept application/json: 200 when ready, else 503.
type Readiness struct {
	Ready bool `json:"ready"`
	// Checks are by what is depended upon: database, cluster and issuer. Only the database decides about Ready.
	Checks map[string]Check `json:"checks"`
	// Development names settings in use that are for development only.
	Development []string `json:"development,omitempty"`
}

// Check is how something is that portal-api depends on.
type Check struct {
	OK   bool   `json:"ok"`
	Note string `json:"note,omitempty"`
}
