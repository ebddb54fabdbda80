package apitype

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PathAudit is where the audit is read.
const PathAudit = "/api/portal/audit"

// Audit is the answer to GET /api/portal/audit: entries from the newest on.
type Audit struct {
	Entries []AuditEntry `json:"entries"`
	// Next, as the parameter before, asks for the entries that come next; absent when there are none.
	Next int64 `json:"next,omitempty"`
}

// AuditEntry is one write that somebody asked for.
type AuditEntry struct {
	// ID is the entry's place: later ones have higher ones.
	ID   int64       `json:"id"`
	Time metav1.Time `json:"time"`
	// Subject and Client are who asked: the token's sub, and the client that it was issued to. User is what people call them.
	Subject string `json:"subject"`
	Client  string `json:"client"`
	User    string `json:"user,omitempty"`
	// Verb is the call, by its name in the OpenAPI document, and Addon what it was about; absent when that was never known.
	Verb  string `json:"verb"`
	Addon string `json:"addon,omitempty"`
	// Outcome is done, replayed (done before, and answered again), refused (nothing was changed), forbidden (asked for by
	// somebody who may not), dry-run (it was to change nothing), failed (it may have been done in part), or begun (under way,
	// or cut off in the middle).
	Outcome string `json:"outcome"`
	// Code is the problem's, and Status that of the answer.
	Code   string `json:"code,omitempty"`
	Status int    `json:"status,omitempty"`
	Trace  string `json:"trace,omitempty"`
	AuditChanges
}

// AuditChanges are what a write was about, without a value of an input.
type AuditChanges struct {
	// Before is what there was, and After what there is since; absent where there is none, or it was never looked at.
	Before *AuditState `json:"before,omitempty"`
	After  *AuditState `json:"after,omitempty"`
	// Changed are the paths of inputs that came, went or have another value, sorted.
	Changed []string `json:"changed,omitempty"`
}

// AuditState is an addon as the audit has it.
type AuditState struct {
	// Chart is what a chart addon asks for; links without their query.
	Chart     *Chart `json:"chart,omitempty"`
	Suspended bool   `json:"suspended,omitempty"`
	// Inputs are the paths of plain values, and SecretInputs those of secret inputs, sorted; never their values.
	Inputs       []string `json:"inputs,omitempty"`
	SecretInputs []string `json:"secretInputs,omitempty"`
	// KeptValues tells, of an addon that was deleted, that its values Secrets stay.
	KeptValues bool `json:"keptValues,omitempty"`
	// Address is that of an addon that was registered from one.
	Address string `json:"address,omitempty"`
}
