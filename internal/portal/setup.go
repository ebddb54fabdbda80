package portal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/registry"
	"zaentrum.io/zae/internal/registry/capability"
	"zaentrum.io/zae/internal/telemetry"
	"zaentrum.io/zae/internal/trace"
)

const (
	// setupTimeout and maxSetup bound the reading of one addon's checklist.
	setupTimeout = 5 * time.Second
	maxSetup     = 64 << 10
	// maxSetupSections and maxSetupSummary, in characters, bound what is shown of it.
	maxSetupSections = 16
	maxSetupSummary  = 300
)

// setupStatus is the checklist as an addon answers it.
type setupStatus struct {
	State    string `json:"state"`
	Sections []struct {
		Key     string `json:"key"`
		State   string `json:"state"`
		Summary string `json:"summary"`
	} `json:"sections"`
}

// setup answers GET /api/portal/addons/{name}/setup.
func (s *Server) setup(c *call, _ none) (apitype.Setup, error) {
	out := apitype.Setup{Name: c.name, State: apitype.SetupUnknown, Sections: []apitype.SetupSection{}}
	addon, err := s.o.Registry.Addon(c.mayWait, c.name)
	if err != nil {
		return out, err
	}
	if addon == nil {
		return out, fault.New(fault.NotFound, "there is no registered addon %s", c.name).WithHint("zae addon list shows those there are")
	}
	var manifest capability.Manifest
	if err := json.Unmarshal(addon.Manifest, &manifest); err != nil {
		return out, errors.New("the manifest of addon " + addon.Key + " cannot be read")
	}
	if manifest.Setup == nil {
		return out, &httpFault{
			Fault:  fault.New(fault.NotFound, "addon %s has no setup checklist", c.name).WithHint("there is nothing to set up, or its console says so"),
			status: http.StatusNotFound,
		}
	}
	app, err := s.o.Registry.App(c.mayWait, addon.Key)
	if err != nil {
		return out, err
	}
	if app == nil {
		return out, noApp(c.name)
	}
	status, err := s.proxy.setup(c.mayWait, c.request, c.caller.key(), app, manifest.Setup.Path)
	if err != nil {
		out.Note = err.Error()
	}
	out.State, out.Sections = setupState(status.State), setupSections(addon.Key, manifest.Setup.Sections, status)
	return out, nil
}

// setup reads an addon's checklist with the caller's bearer, within bounds. Its errors are in our words.
func (p *proxy) setup(ctx context.Context, r *http.Request, from string, app *registry.App, path string) (status setupStatus, _ error) {
	pass := &passage{way: wayAPI, app: app, base: wayAPI.base(app.Key), origin: p.origin}
	var err error
	if pass.target, err = targetOf(app); err != nil {
		return status, err
	}
	if pass.bearer, err = bearer(r); err != nil {
		return status, err
	}
	leave, err := p.enter(pass, from)
	if err != nil {
		return status, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	here, end := p.s.o.Tracing.Call(trace.From(ctx), "setup")
	pass.trace = here
	// The manifest's rules are the registry's, and are not relied upon.
	if what := capability.PathProblem(path); what != "" {
		return status, fault.New(fault.AddonFailed, "%s is registered with a setup path that is none", named(app))
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(pass.target.String(), "/")+path, nil)
	if err != nil {
		return status, fault.New(fault.AddonFailed, "%s is registered with a setup path that is none", named(app))
	}
	pass.rewriteHeaders(&http.Request{RemoteAddr: r.RemoteAddr}, request.Header)
	request.Header.Set("Accept", "application/json")
	response, err := p.transport.RoundTrip(request) // which follows no redirect
	if err != nil {
		result, err := setupFault(app, pass, request, err)
		end(0, result)
		return status, err
	}
	defer func() { _ = response.Body.Close() }() // nothing of it is needed any more
	status, err = readSetup(app, response)
	result := telemetry.ProxyAnswered
	if err != nil {
		result = telemetry.ProxyFailed
	}
	end(response.StatusCode, result)
	return status, err
}

func setupFault(app *registry.App, pass *passage, request *http.Request, err error) (string, error) {
	if errors.Is(err, context.DeadlineExceeded) {
		return telemetry.ProxyLate, fault.New(fault.AddonFailed, "%s did not answer in time", named(app))
	}
	return addonFault(pass, request, err)
}

// readSetup reads a checklist. What is odd makes all of it unknown: half of one would be taken for the whole.
func readSetup(app *registry.App, response *http.Response) (status setupStatus, _ error) {
	odd := func(what string, args ...any) error {
		return fault.New(fault.AddonFailed, "%s "+what, append([]any{named(app)}, args...)...)
	}
	if response.StatusCode != http.StatusOK {
		return status, odd("answers %d for its setup checklist", response.StatusCode)
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxSetup+1))
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return status, odd("did not answer in time")
	case err != nil:
		return status, odd("broke off its setup checklist")
	case len(raw) > maxSetup:
		return status, odd("answers its setup checklist with more than %d KiB", maxSetup>>10)
	}
	if err := json.Unmarshal(raw, &status); err != nil {
		return setupStatus{}, odd("answers its setup checklist with something else")
	}
	if setupState(status.State) == apitype.SetupUnknown {
		return setupStatus{}, odd("answers its setup checklist with a state that there is not")
	}
	return status, nil
}

// setupState is a state of a checklist, unknown when it is none.
func setupState(state string) string {
	switch state {
	case apitype.SetupReady, apitype.SetupDegraded, apitype.SetupNeedsSetup:
		return state
	}
	return apitype.SetupUnknown
}

// setupSections are the sections that the manifest declares, with what the addon tells of each. Of a manifest without any
// they are those that the addon tells.
func setupSections(addon string, declared []capability.SetupSection, status setupStatus) []apitype.SetupSection {
	declared = slices.Clone(declared)
	if len(declared) == 0 {
		for _, told := range status.Sections {
			if len(declared) < maxSetupSections && capability.IsKey(told.Key) && !slices.ContainsFunc(declared, func(s capability.SetupSection) bool { return s.Key == told.Key }) {
				declared = append(declared, capability.SetupSection{Key: told.Key})
			}
		}
	}
	slices.SortStableFunc(declared, func(a, b capability.SetupSection) int { return cmp.Compare(a.Ord, b.Ord) })
	out := make([]apitype.SetupSection, 0, len(declared))
	for _, d := range declared {
		one := apitype.SetupSection{
			Key: d.Key, Title: cmp.Or(d.Title, d.Key), Description: d.Description, Required: d.Required,
			Target: capability.Target(addon, d.Target), State: apitype.SetupUnknown,
		}
		for _, told := range status.Sections {
			if told.Key == d.Key {
				one.State, one.Summary = setupState(told.State), capability.PlainText(told.Summary, maxSetupSummary)
				break
			}
		}
		out = append(out, one)
	}
	return out
}
