package portal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/registry"
	"zaentrum.io/zae/internal/telemetry"
	"zaentrum.io/zae/internal/trace"
)

const (
	// auditTimeout bounds keeping one entry, so that a database which hangs holds up no write for long.
	auditTimeout = 5 * time.Second
	// trimEvery is after how many entries what is too old or too much is forgotten.
	trimEvery = 200
	// maxAuditPaths is how many paths one list of an entry has.
	maxAuditPaths = 200
	// maxAuditPage is how many entries one answer has at most, and auditPage how many unless the caller says.
	maxAuditPage, auditPage = 1000, 100
)

// AuditLimits say how much of the audit is kept.
type AuditLimits struct {
	// Age is how long entries are kept; 0 means a year.
	Age time.Duration
	// Entries is how many are kept, roughly; 0 means 100,000.
	Entries int
}

func (l AuditLimits) withDefaults() AuditLimits {
	if l.Age <= 0 {
		l.Age = 365 * 24 * time.Hour
	}
	if l.Entries <= 0 {
		l.Entries = 100_000
	}
	return l
}

// auditor keeps who asked for which write, and what came of it: in the registry, and as a line of the log, neither of which
// needs the other. What is forgotten of old entries is forgotten now and then.
type auditor struct {
	s      *Server
	limits AuditLimits
	routes map[string]route // by the pattern of the mux

	mu    sync.Mutex
	count int
}

// audited is one write on its way through. A nil one is none.
type audited struct {
	entry   registry.AuditEntry
	kept    bool // in the registry
	skipped bool // it is none: a dry run
	changes apitype.AuditChanges
	// values are the plain values before, to tell which change; they are not kept.
	before map[string]any
}

func newAuditor(s *Server, routes []route) *auditor {
	a := &auditor{s: s, limits: s.o.Audit.withDefaults(), routes: map[string]route{}}
	for _, r := range routes {
		a.routes[r.method+" "+r.path] = r
	}
	return a
}

// begin notes that a caller who may write is about to. That is kept before anything is written, so that a process which is
// killed in the middle leaves a trace; a database that is away stops no write.
func (a *auditor) begin(r *http.Request, from caller) *audited {
	n := a.entry(r, from)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), auditTimeout)
	defer cancel()
	id, err := a.s.o.Registry.AddAudit(ctx, n.entry)
	if err != nil {
		a.lost(ctx, n, err)
		return n
	}
	n.entry.ID, n.kept = id, true
	a.trim(ctx)
	return n
}

func (a *auditor) entry(r *http.Request, from caller) *audited {
	addon := r.PathValue("name")
	if !possibleName(addon) {
		addon = ""
	}
	return &audited{entry: registry.AuditEntry{
		At: a.s.now(), Subject: shown(from.subject), Client: shown(from.client), Username: shown(from.name), Verb: cmp.Or(a.routes[r.Pattern].id, shown(r.Pattern)),
		Addon: addon, Outcome: registry.AuditBegun, Trace: trace.From(r.Context()).ID(),
	}}
}

// end notes what came of a write. The line of the log comes first: nothing is in its way.
func (a *auditor) end(r *http.Request, n *audited, replayed bool, err error) {
	e := &n.entry
	e.Status = a.routes[r.Pattern].status
	switch f := fault.From(err); {
	case err == nil && replayed:
		e.Outcome = registry.AuditReplayed
	case err == nil:
		e.Outcome = registry.AuditDone
	default:
		e.Code, e.Status = string(f.Code), f.Code.Means().HTTP
		if own, ok := errors.AsType[*httpFault](err); ok && own.status != 0 {
			e.Status = own.status
		}
		switch {
		case f.Code == fault.Forbidden:
			e.Outcome = registry.AuditForbidden
		case e.Status < http.StatusInternalServerError, f.Code == fault.Unavailable, f.Code == fault.AddonDown:
			e.Outcome = registry.AuditRefused
		default:
			e.Outcome = registry.AuditFailed
		}
	}
	if n.skipped {
		e.Outcome = registry.AuditDryRun
	}
	a.say(r.Context(), n)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), auditTimeout)
	defer cancel()
	raw, failed := json.Marshal(n.changes)
	if failed == nil {
		e.Changes = raw
		if n.kept {
			failed = a.s.o.Registry.EndAudit(ctx, *e)
		} else {
			_, failed = a.s.o.Registry.AddAudit(ctx, *e)
			a.trim(ctx)
		}
	}
	if failed != nil {
		a.lost(ctx, n, failed)
	}
}

// refused notes a write that never began: its caller may not, or what it is for is not there. Of those whom nobody knows
// there is only the line of the request, and so of those who write too much: neither may fill the registry.
func (a *auditor) refused(r *http.Request, from caller, err error) {
	switch fault.CodeOf(err) {
	case fault.NoBearer, fault.SignIn, fault.RateLimited:
		return
	}
	if from == (caller{}) {
		return
	}
	a.end(r, a.entry(r, from), false, err)
}

// say writes the line of the log.
func (a *auditor) say(ctx context.Context, n *audited) {
	e := n.entry
	attrs := []slog.Attr{
		slog.String("verb", e.Verb), slog.String(telemetry.KeyAddon, e.Addon), slog.String("subject", e.Subject), slog.String("client", e.Client),
		slog.String("user", e.Username), slog.String("outcome", string(e.Outcome)), slog.Int("status", e.Status), slog.String("code", e.Code),
		slog.String(telemetry.KeyTrace, e.Trace),
	}
	if c := n.changes; c.Before != nil {
		attrs = append(attrs, slog.Any("before", c.Before))
	}
	if c := n.changes; c.After != nil {
		attrs = append(attrs, slog.Any("after", c.After))
	}
	if c := n.changes; len(c.Changed) > 0 {
		attrs = append(attrs, slog.Any("changed", c.Changed))
	}
	a.s.log.LogAttrs(ctx, slog.LevelInfo, "audit", attrs...)
}

// lost says that an entry is only in the log.
func (a *auditor) lost(ctx context.Context, n *audited, err error) {
	a.s.log.ErrorContext(ctx, "an audit entry is not kept", telemetry.KeyTrace, n.entry.Trace, telemetry.KeyError, cmp.Or(registry.Cause(err), err.Error()))
}

// trim forgets what is too old or too much, the first time and then now and then.
func (a *auditor) trim(ctx context.Context) {
	a.mu.Lock()
	due := a.count%trimEvery == 0
	a.count++
	a.mu.Unlock()
	if !due {
		return
	}
	if err := a.s.o.Registry.TrimAudit(ctx, a.s.now().Add(-a.limits.Age), a.limits.Entries); err != nil {
		a.s.log.WarnContext(ctx, "old audit entries are not forgotten", telemetry.KeyError, cmp.Or(registry.Cause(err), err.Error()))
	}
}

// about notes which addon a write is about, once that is known.
func (n *audited) about(addon string) {
	if n != nil {
		n.entry.Addon = addon
	}
}

// skip notes that nothing is going to be written.
func (n *audited) skip() {
	if n != nil {
		n.skipped = true
	}
}

// was notes the resource as it is before the write; nil when there is none.
func (n *audited) was(a *v1alpha1.ZaentrumAddon) {
	if n == nil {
		return
	}
	n.changes.Before, n.before = nil, nil
	if a != nil && a.UID != "" {
		n.changes.Before, n.before = auditState(a), specValues(a)
	}
}

// is notes the resource as it is after the write. The secret inputs that the request has set have other values, whatever
// they had before.
func (n *audited) is(a *v1alpha1.ZaentrumAddon, secrets []string) {
	if n == nil {
		return
	}
	n.changes.After = auditState(a)
	changed := append(differentPaths(n.before, specValues(a)), secrets...)
	if n.changes.Before != nil {
		for _, path := range n.changes.Before.SecretInputs {
			if !slices.Contains(n.changes.After.SecretInputs, path) {
				changed = append(changed, path)
			}
		}
	}
	slices.Sort(changed)
	n.changes.Changed = cutPaths(slices.Compact(changed))
}

// gone notes that the addon is being deleted.
func (n *audited) gone(kept bool) {
	if n != nil && kept {
		n.changes.After = &apitype.AuditState{KeptValues: true}
	}
}

// moved notes the address of an addon before and after; empty is none.
func (n *audited) moved(before, after string) {
	if n == nil {
		return
	}
	state := func(address string) *apitype.AuditState {
		if address == "" {
			return nil
		}
		return &apitype.AuditState{Address: address}
	}
	n.changes.Before, n.changes.After = state(before), state(after)
}

// auditState is a resource without a value.
func auditState(a *v1alpha1.ZaentrumAddon) *apitype.AuditState {
	chart := wireChart(a.Spec.Chart)
	chart.Ref = shownRef(chart.Ref) // the query of a link may be a credential
	return &apitype.AuditState{
		Chart: &chart, Suspended: a.Spec.Suspend, Inputs: cutPaths(leaves(specValues(a))), SecretInputs: cutPaths(secretKeys(a.Spec.ValuesFrom)),
	}
}

// leaves are the dotted paths of all values that are no objects, and of empty objects, sorted.
func leaves(tree map[string]any) []string {
	var paths []string
	walkLeaves("", tree, func(path string, _ any) { paths = append(paths, path) })
	slices.Sort(paths)
	return paths
}

func walkLeaves(at string, value any, visit func(string, any)) {
	object, ok := value.(map[string]any)
	if !ok || len(object) == 0 {
		if at != "" {
			visit(at, value)
		}
		return
	}
	for key, below := range object {
		path := shown(key)
		if at != "" {
			path = at + "." + path
		}
		walkLeaves(path, below, visit)
	}
}

// differentPaths are the paths of leaves that only one of two trees has, or that differ.
func differentPaths(before, after map[string]any) []string {
	text := func(tree map[string]any) map[string]string {
		out := map[string]string{}
		walkLeaves("", tree, func(path string, value any) {
			raw, _ := json.Marshal(value) // what was read as JSON
			out[path] = string(raw)
		})
		return out
	}
	was, is := text(before), text(after)
	var paths []string
	for path, value := range was {
		if now, there := is[path]; !there || now != value {
			paths = append(paths, path)
		}
	}
	for path := range is {
		if _, there := was[path]; !there {
			paths = append(paths, path)
		}
	}
	return paths
}

// cutPaths bounds a list, and counts what is left out.
func cutPaths(paths []string) []string {
	if len(paths) <= maxAuditPaths {
		return paths
	}
	return append(slices.Clone(paths[:maxAuditPaths]), fmt.Sprintf("and %d more", len(paths)-maxAuditPaths))
}

// auditRoutes are how the audit is read.
func (s *Server) auditRoutes() []route {
	return []route{endpoint(s, route{
		method: "GET", path: apitype.PathAudit, id: "listAudit", who: admin, status: http.StatusOK,
		summary: "Lists the writes that were asked for, from the newest on.",
		query: []parameter{
			{"addon", "The addon that the entries are about; absent, all are listed."},
			{"before", "The id that the entries come before: what next said."},
			{"limit", "How many entries there are at most, from 1 to 1000; 100 unless given."},
		},
		codes: []fault.Code{fault.Malformed},
	}, s.readAudit)}
}

// readAudit answers GET /api/portal/audit.
func (s *Server) readAudit(c *call, _ none) (apitype.Audit, error) {
	out := apitype.Audit{Entries: []apitype.AuditEntry{}}
	if err := onlyParameters(c.request, "addon", "before", "limit"); err != nil {
		return out, err
	}
	query := c.request.URL.Query()
	before, err := positive(query, "before", 0, 1<<53)
	if err != nil {
		return out, err
	}
	limit, err := positive(query, "limit", auditPage, maxAuditPage)
	if err != nil {
		return out, err
	}
	addon := query.Get("addon")
	if query.Has("addon") && !possibleName(addon) {
		return out, malformed("addon is no name of an addon")
	}
	all, err := s.o.Registry.Audit(c.mayWait, registry.AuditQuery{Addon: addon, Before: before, Limit: int(limit) + 1})
	if err != nil {
		return out, err
	}
	if len(all) > int(limit) {
		all = all[:limit]
		out.Next = all[limit-1].ID
	}
	for _, e := range all {
		wire := apitype.AuditEntry{
			ID: e.ID, Time: metav1.NewTime(e.At), Subject: e.Subject, Client: e.Client, User: e.Username, Verb: e.Verb, Addon: e.Addon,
			Outcome: string(e.Outcome), Code: e.Code, Status: e.Status, Trace: e.Trace,
		}
		if err := json.Unmarshal(e.Changes, &wire.AuditChanges); err != nil {
			return out, fmt.Errorf("the changes of audit entry %d cannot be read", e.ID)
		}
		out.Entries = append(out.Entries, wire)
	}
	return out, nil
}

// positive is a parameter that is a whole number from 1 on.
func positive(query map[string][]string, name string, otherwise, most int64) (int64, error) {
	given, ok := query[name]
	if !ok {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(given[0], 10, 64)
	if err != nil || n < 1 || n > most || strconv.FormatInt(n, 10) != given[0] {
		return 0, malformed("%s must be a number from 1 to %d", name, most)
	}
	return n, nil
}
