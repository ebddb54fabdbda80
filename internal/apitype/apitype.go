// Package apitype is JSON on the wire: what portal-api answers, what the Go client reads and what
// zae -o json prints. Server and client share these types, so they cannot drift apart.
//
// It holds data only. Field names come from the contract (§4) and are never renamed.
package apitype

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/inputs"
)

// Paths of the API.
const (
	PathAddonCharts = "/api/portal/addon-charts"
	PathAddons      = "/api/portal/addons"
	PathSetup       = "/api/portal/addons/{name}/setup"
	PathDiscovery   = "/api/portal/cli/discovery"
	// PathOpenAPI is served with .json and with .yaml.
	PathOpenAPI = "/api/portal/openapi"
	// PathApps is where the proxy forwards to apps: PathApps/<key>/….
	PathApps = "/api/portal/apps"
)

// Headers of writes.
const (
	// HeaderIdempotencyKey names a write, so that it happens once however often it is sent.
	HeaderIdempotencyKey = "Idempotency-Key"
	// HeaderReplayed with the value true says that the answer is of an earlier request with the same key.
	HeaderReplayed = "Idempotent-Replayed"
)

// Availability is the answer to GET /api/portal/addon-charts.
type Availability struct {
	Available bool `json:"available"`
	// Note says why chart addons are not available; empty when they are.
	Note string `json:"note,omitempty"`
}

// SecretRef says where a secret input is read from.
type SecretRef struct {
	Name string `json:"name"`
	// Key defaults to the input's dotted path.
	Key string `json:"key,omitempty"`
}

// CreateRequest is the body of POST /api/portal/addon-charts.
type CreateRequest struct {
	// Name defaults to the one taken from the chart reference.
	Name    string `json:"name,omitempty"`
	Chart   string `json:"chart"`
	Version string `json:"version,omitempty"`
	Digest  string `json:"digest,omitempty"`
	// Values replace those the addon has.
	Values map[string]any `json:"values,omitempty"`
	// SecretValues are added to those already set, by dotted path.
	SecretValues map[string]string    `json:"secretValues,omitempty"`
	SecretRefs   map[string]SecretRef `json:"secretRefs,omitempty"`
}

// PatchRequest is the body of PATCH /api/portal/addon-charts/{name}. A nil field is left as it is.
type PatchRequest struct {
	Chart        *string              `json:"chart,omitempty"`
	Version      *string              `json:"version,omitempty"`
	Digest       *string              `json:"digest,omitempty"`
	Values       *map[string]any      `json:"values,omitempty"`
	SecretValues map[string]string    `json:"secretValues,omitempty"`
	SecretRefs   map[string]SecretRef `json:"secretRefs,omitempty"`
	ClearSecrets []string             `json:"clearSecrets,omitempty"`
	Suspend      *bool                `json:"suspend,omitempty"`
}

// InstallRequest is the body of POST /api/portal/addon-charts/{name}/install, which may be left out.
type InstallRequest struct {
	// Generation is the one whose plan was read: a plan of another one is not installed. Absent, any is.
	Generation *int64 `json:"generation,omitempty"`
}

// Chart is the chart a resource asks for.
type Chart struct {
	Ref     string `json:"ref"`
	Version string `json:"version,omitempty"`
	Digest  string `json:"digest,omitempty"`
}

// WriteAnswer is the answer to every write but DELETE, with status 202. A client waits for the plan of its
// own write by waiting for observedGeneration to reach Generation.
type WriteAnswer struct {
	Name               string `json:"name"`
	Generation         int64  `json:"generation"`
	ObservedGeneration int64  `json:"observedGeneration"`
	Chart              Chart  `json:"chart"`
}

// AddonChart is the answer to GET /api/portal/addon-charts/{name}.
type AddonChart struct {
	Name      string `json:"name"`
	Chart     Chart  `json:"chart"`
	Suspended bool   `json:"suspended"`
	// Deleting tells that the resource is on its way out; every write answers 409.
	Deleting           bool                 `json:"deleting,omitempty"`
	Phase              v1alpha1.Phase       `json:"phase"`
	Message            string               `json:"message,omitempty"`
	Generation         int64                `json:"generation"`
	ObservedGeneration int64                `json:"observedGeneration"`
	Plan               *v1alpha1.Plan       `json:"plan,omitempty"`
	Components         []v1alpha1.Component `json:"components"`
	// Jobs are the last runs of the applied Jobs, by name.
	Jobs             []v1alpha1.JobRun      `json:"jobs"`
	LastAppliedChart *v1alpha1.AppliedChart `json:"lastAppliedChart,omitempty"`
	Values           map[string]any         `json:"values"`
	// Inputs are what the planned chart asks for, in document order; absent when it has no schema, or none that
	// can be read.
	Inputs []Input `json:"inputs,omitzero"`
	// SecretKeys are the paths of the secret inputs that are set, sorted; never their values.
	SecretKeys []string `json:"secretKeys"`
	// SecretRefs say where each of them is read from.
	SecretRefs        map[string]SecretRef `json:"secretRefs"`
	Registered        bool                 `json:"registered"`
	RegistrationError string               `json:"registrationError,omitempty"`
}

// EventStreamType is the media type of GET /api/portal/addon-charts/{name}/events.
const EventStreamType = "text/event-stream"

// The events of GET /api/portal/addon-charts/{name}/events.
const (
	// EventAddon has an AddonChart: the addon as it is now.
	EventAddon = "addon"
	// EventDeleted has a Deleted. It is the last one of a stream.
	EventDeleted = "deleted"
	// EventEnd has a StreamEnd. It is the last one of a stream; the addon is still there.
	EventEnd = "end"
)

// Deleted is the data of the event that says that the addon is gone.
type Deleted struct {
	Name string `json:"name"`
}

// StreamEnd is the data of the event that ends a stream of an addon that is still there. A caller that wants to go on opens
// another one, with the Last-Event-ID of the last event.
type StreamEnd struct {
	Reason EndReason `json:"reason"`
}

// EndReason is why a stream ends.
type EndReason string

// Why streams end.
const (
	// EndShutdown is a server that stops; another one serves, or will.
	EndShutdown EndReason = "shutdown"
	// EndExpired is a bearer whose time is over: sign in again first.
	EndExpired EndReason = "expired"
	// EndSlow is a reader that did not keep up.
	EndSlow EndReason = "slow"
)

// Input is one thing that the planned chart asks for.
type Input struct {
	inputs.Input
	// Order is the input's place in the chart's schema, from 0.
	Order int `json:"order"`
	// State is where its value comes from, as the plan has it; absent when the plan does not tell.
	State v1alpha1.InputState `json:"state,omitempty"`
}

// PlanCurrent tells whether the plan is of the resource's current generation.
func (a *AddonChart) PlanCurrent() bool {
	return a.Generation > 0 && a.ObservedGeneration >= a.Generation
}

// ValuesSecrets is the answer to GET /api/portal/addon-charts/{name}/values-secrets: what secretRefs may name.
type ValuesSecrets struct {
	Name string `json:"name"`
	// Secrets are by name. At most 32 are listed, the newest.
	Secrets []ValuesSecret `json:"secrets"`
}

// ValuesSecret is a values Secret of an addon; never what is in it.
type ValuesSecret struct {
	Name string `json:"name"`
	// Keys are the keys that it is known to have, sorted: dotted paths of inputs.
	Keys []string `json:"keys"`
	// CreatedAt is when it was made, RFC 3339; absent until the operator has seen it.
	CreatedAt *metav1.Time `json:"createdAt,omitempty"`
	// Kept tells that it outlives the addon; such a Secret may be of an addon of this name before.
	Kept bool `json:"kept"`
	// Generated tells that it holds the generated values, which the addon reads by itself.
	Generated bool `json:"generated"`
	// Referenced are the inputs that are read from it, sorted.
	Referenced []string `json:"referenced"`
	// Seen tells that the operator has seen it; one that is referenced and was not seen may not be there.
	Seen bool `json:"seen"`
}

// DeleteAnswer is the answer to DELETE /api/portal/addon-charts/{name}, with status 200.
type DeleteAnswer struct {
	Name string `json:"name"`
	// Resource tells whether there was a ZaentrumAddon that is now being deleted.
	Resource   bool `json:"resource"`
	KeptValues bool `json:"keptValues"`
	// Removed are the keys of the registry rows that were removed.
	Removed []string `json:"removed"`
}

// Addons is the answer to GET /api/portal/addons.
type Addons struct {
	Addons []Addon `json:"addons"`
}

// Addon is one addon in the list: a chart addon, or one installed from an address.
type Addon struct {
	Name  string `json:"name"`
	Title string `json:"title,omitempty"`
	// Chart is set for a chart addon.
	Chart *AddonListChart `json:"chart,omitempty"`
	// Address is set for an addon installed from an address.
	Address           string               `json:"address,omitempty"`
	Phase             v1alpha1.Phase       `json:"phase,omitempty"`
	Suspended         bool                 `json:"suspended"`
	Registered        bool                 `json:"registered"`
	RegistrationError string               `json:"registrationError,omitempty"`
	Components        []v1alpha1.Component `json:"components"`
}

// AddonListChart is a chart addon's chart in the list.
type AddonListChart struct {
	Ref     string `json:"ref"`
	Version string `json:"version,omitempty"`
	Digest  string `json:"digest,omitempty"`
	// LastApplied is what actually runs.
	LastApplied *v1alpha1.AppliedChart `json:"lastApplied,omitempty"`
}

// Discovery is the answer to GET /api/portal/cli/discovery.
type Discovery struct {
	CapabilityVersion int            `json:"capabilityVersion"`
	Auth              *DiscoveryAuth `json:"auth,omitempty"`
	// Services are the manifests of registered addons.
	Services []map[string]any `json:"services"`
}

// DiscoveryAuth says where to sign in.
type DiscoveryAuth struct {
	Issuer   string `json:"issuer"`
	ClientID string `json:"clientId"`
}

// ProblemType is the media type of errors (RFC 9457).
const ProblemType = "application/problem+json"

// Problem is the body of every error.
type Problem struct {
	Type   string `json:"type"` // about:blank
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Code is stable and machine-readable; see package fault.
	Code string `json:"code"`
	// Hint is the way out.
	Hint string `json:"hint,omitempty"`
	// Note is the availability note; only with code unavailable.
	Note string `json:"note,omitempty"`
	// Trace is the id of the trace that the request was part of, as the server's log has it.
	Trace string `json:"trace,omitempty"`
}
