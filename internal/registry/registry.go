// Package registry keeps what the portal knows about apps: which there are, where they are reached, what
// they show on the launchpad and in slots, and which addon each row belongs to.
//
// All rows of an addon are written and removed in one transaction, replaced and never merged. One key has
// one owner: a row is never taken from another addon or from an app registered by hand. The registry holds
// no secret and no value of an input.
package registry

import (
	"context"
	"time"

	"zaentrum.io/zae/internal/registry/capability"
)

// Source is how an addon came to be installed.
type Source string

// The sources of addons.
const (
	// SourceChart is an addon the operator installs from a chart.
	SourceChart Source = "chart"
	// SourceAddress is an addon installed from its address.
	SourceAddress Source = "address"
)

// Chart is the chart that runs, of a chart addon.
type Chart struct {
	Ref     string
	Version string
	Digest  string
}

// Registration is everything that is registered for one addon.
type Registration struct {
	Source Source
	// Chart is what runs; only with SourceChart.
	Chart Chart
	// Place is where the addon is and where the portal is seen.
	Place    capability.Place
	Manifest *capability.Manifest
	// At is the moment of registration.
	At time.Time
	// MayMove allows an addon from an address to be registered at another one than before.
	MayMove bool
	// DryRun refuses what would be refused, and writes nothing.
	DryRun bool
}

// Addon is an addon's own record.
type Addon struct {
	Key          string
	Source       Source
	Chart        Chart
	Address      string
	Title        string
	Version      string
	Manifest     []byte // JSON
	Components   []capability.Component
	RegisteredAt time.Time
}

// App is an app, with the addon it belongs to; one without an addon was registered by hand.
type App struct {
	capability.App
	Addon string
}

// Failure is why an addon could not be registered the last time it was tried.
type Failure struct {
	Message string
	Since   time.Time
}

// Owner is who a key belongs to.
type Owner string

// The owners of a key.
const (
	OwnedByNobody  Owner = ""
	OwnedByChart   Owner = "a chart addon"
	OwnedByAddress Owner = "an addon installed from an address"
	OwnedByHand    Owner = "an app registered by hand"
	// OwnedByProxy is a key that another addon's app has in the portal proxy.
	OwnedByProxy Owner = "another addon's place in the portal proxy"
)

// Store is the registry. Its methods may be called at the same time.
type Store interface {
	// Register replaces all rows of the addon the manifest names. It is a fault.NameTaken when a key or a
	// workload belongs to something else, or the addon is registered at another address, and then nothing is
	// changed. It clears the addon's failure.
	Register(ctx context.Context, r Registration) error
	// Remove removes all rows of an addon of that source and its failure. It answers the keys of the
	// removed rows, sorted, each with its kind: app/example. There are none when there is no such addon.
	Remove(ctx context.Context, key string, source Source) ([]string, error)
	// Owner tells who a key belongs to.
	Owner(ctx context.Context, key string) (Owner, error)
	// App is the app that a key of the portal proxy leads to: its own key, or the one it has there. It is nil when
	// there is none.
	App(ctx context.Context, key string) (*App, error)
	// Addon is one addon; nil when there is none.
	Addon(ctx context.Context, key string) (*Addon, error)
	// Addons are all addons, sorted by key.
	Addons(ctx context.Context) ([]Addon, error)
	// Sources are the sources of all addons, by key.
	Sources(ctx context.Context) (map[string]Source, error)
	// Apps, Tiles and Slots are all rows of their kind, sorted by key.
	Apps(ctx context.Context) ([]App, error)
	Tiles(ctx context.Context) ([]capability.TileRow, error)
	Slots(ctx context.Context) ([]capability.SlotRow, error)
	// PutApp adds or replaces an app registered by hand. It is a fault.NameTaken when the key belongs to an
	// addon.
	PutApp(ctx context.Context, app capability.App) error
	// Fail keeps why an addon could not be registered. The moment stays as long as the message does.
	Fail(ctx context.Context, key, message string, at time.Time) error
	// Clear forgets an addon's failure.
	Clear(ctx context.Context, key string) error
	// Failure is an addon's failure; nil when there is none.
	Failure(ctx context.Context, key string) (*Failure, error)
	// Failures are all failures, by addon.
	Failures(ctx context.Context) (map[string]Failure, error)
	// BeginRequest begins an attempt at a write, unless another one goes on or has ended well. What has expired is forgotten.
	BeginRequest(ctx context.Context, r Request) (Begun, error)
	// AnswerRequest keeps what an attempt answered.
	AnswerRequest(ctx context.Context, id, attempt string, answer []byte) error
	// LeaveRequest ends an attempt of which nobody knows how far it came: the next one goes on from there.
	LeaveRequest(ctx context.Context, id, attempt string) error
	// ForgetRequest ends an attempt that has changed nothing.
	ForgetRequest(ctx context.Context, id, attempt string) error
	// AddAudit keeps an entry, and answers its id. EndAudit keeps what came of it: what is about the addon, the outcome and
	// the changes.
	AddAudit(ctx context.Context, e AuditEntry) (int64, error)
	EndAudit(ctx context.Context, e AuditEntry) error
	// Audit are entries, the newest first.
	Audit(ctx context.Context, q AuditQuery) ([]AuditEntry, error)
	// TrimAudit forgets entries from before a moment, and all but the newest so many; of the forbidden ones, all but a tenth
	// as many.
	TrimAudit(ctx context.Context, before time.Time, most int) error
	// Ping tells whether the registry can be read.
	Ping(ctx context.Context) error
	// Close ends the use of the registry.
	Close() error
}
