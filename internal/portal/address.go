package portal

import (
	"context"
	"net/http"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/registry"
	"zaentrum.io/zae/internal/registry/capability"
)

// addressRoutes are the calls for addons that somebody else runs, which are registered from their address.
func (s *Server) addressRoutes() []route {
	add := route{
		method: "POST", path: apitype.PathAddons, id: "addAddon", who: admin, status: http.StatusAccepted,
		in: bodyType[apitype.AddressRequest](), out: bodyType[apitype.AddressAnswer](),
		summary: "Registers an addon from its address, or reads its manifest again; a dry run is answered 200.",
		also:    map[int]string{http.StatusOK: "A dry run: what would be registered."},
		codes:   []fault.Code{fault.NameTaken, fault.Manifest, fault.AddonDown, fault.AddonFailed, fault.Conflict},
	}
	add.handler = func(w http.ResponseWriter, r *http.Request) {
		out, err := answer(s, add.who, w, r, s.addAddress)
		switch {
		case err != nil:
			drain(r)
			s.problem(w, r, err)
		case out.DryRun:
			writeJSON(w, http.StatusOK, "application/json", out)
		default:
			writeJSON(w, add.status, "application/json", out)
		}
	}
	return []route{add, endpoint(s, route{
		method: "DELETE", path: apitype.PathAddons + "/{name}", id: "removeAddon", who: admin, status: http.StatusOK,
		summary: "Removes an addon that was registered from its address; what runs there is left alone.",
		codes:   []fault.Code{fault.NameTaken},
	}, s.removeAddress)}
}

// addAddress answers POST /api/portal/addons.
func (s *Server) addAddress(c *call, in apitype.AddressRequest) (apitype.AddressAnswer, error) {
	var nothing apitype.AddressAnswer
	if in.DryRun {
		c.audit.skip()
	}
	address, err := capability.ParseAddress(in.ProxyURL, s.o.Namespace)
	if err != nil {
		return nothing, err
	}
	if address.Namespace == "" {
		if err := s.notThePlatforms("proxyUrl: Service", address.Service); err != nil {
			return nothing, err
		}
	}
	if in.Space != "" && !capability.IsKey(in.Space) {
		return nothing, invalid("space must be letters, digits, '-', '_' and '.'")
	}
	manifest, err := s.fetch.manifest(c.mayWait, address.URL())
	if err != nil {
		return nothing, ofAddress(err)
	}
	c.audit.about(manifest.Service)
	if err := s.addressFree(c.mayWait, manifest, address); err != nil {
		return nothing, err
	}
	r := registry.Registration{
		Source: registry.SourceAddress, Manifest: manifest, At: s.now(), MayMove: in.ReplaceAddress, DryRun: in.DryRun,
		Place: capability.Place{ProxyURL: address.URL(), Workload: address.Workload(), PublicOrigin: s.o.PublicOrigin},
	}
	if in.Space != "" {
		if r.Place.Space, err = s.space(c.mayWait, manifest, in.Space); err != nil {
			return nothing, err
		}
	}
	before, err := s.o.Registry.Addon(c.mayWait, manifest.Service)
	if err != nil {
		return nothing, err
	}
	was := ""
	if before != nil {
		was = before.Address
	}
	c.audit.moved(was, was)
	if err := s.o.Registry.Register(c.mustEnd, r); err != nil {
		return nothing, err
	}
	if !in.DryRun {
		c.audit.moved(was, address.URL())
	}
	out := addressAnswer(r, before != nil)
	if in.DryRun {
		return out, nil
	}
	// A chart addon of that name may have been made meanwhile. It was there first, or does not know of this one.
	if before == nil {
		if err := s.noChartAddon(c.mustEnd, manifest.Service); err != nil {
			if _, undone := s.o.Registry.Remove(c.mustEnd, manifest.Service, registry.SourceAddress); undone != nil {
				return nothing, undone
			}
			return nothing, err
		}
	}
	return out, nil
}

func addressAnswer(r registry.Registration, replaced bool) apitype.AddressAnswer {
	rows := r.Manifest.Rows(r.Place)
	out := apitype.AddressAnswer{
		Name: rows.App.Key, Address: r.Place.ProxyURL, Version: r.Manifest.Version, DryRun: r.DryRun, Replaced: replaced,
		App:   wireApp(registry.App{App: rows.App, Addon: rows.App.Key}),
		Tiles: []apitype.Tile{}, Slots: []apitype.Slot{}, Components: []apitype.PartOfAddress{},
	}
	for _, t := range rows.Tiles {
		out.Tiles = append(out.Tiles, wireTile(t))
	}
	for _, row := range rows.Slots {
		out.Slots = append(out.Slots, wireSlot(row))
	}
	for _, p := range rows.Components {
		out.Components = append(out.Components, apitype.PartOfAddress(p))
	}
	return out
}

// ofAddress is what an addon's own failure means to whoever wants to register it.
func ofAddress(err error) error {
	f := fault.From(err)
	switch f.Code {
	case fault.Unreachable:
		return fault.New(fault.AddonDown, "%s", f.Message).Because(err).WithHint("see whether the Service has pods that are ready, and serves its manifest")
	case fault.Invalid:
		return fault.New(fault.Manifest, "%s", f.Message).Because(err)
	}
	return err
}

// notThePlatforms refuses a name that one of the platform's own Services has.
func (s *Server) notThePlatforms(what, name string) error {
	if slices.Contains(s.o.PlatformServices, name) {
		return fault.New(fault.NameTaken, "%s %s is a platform service", what, name)
	}
	return nil
}

// addressFree refuses a manifest whose names are the platform's or a chart addon's. What is registered, the registry
// refuses itself.
func (s *Server) addressFree(ctx context.Context, m *capability.Manifest, address capability.Address) error {
	if err := s.manifestFree(m, address.Workload()); err != nil {
		return err
	}
	if err := s.noChartAddon(ctx, m.Service); err != nil {
		return err
	}
	if !s.managesCharts(ctx) {
		return nil
	}
	var all v1alpha1.ZaentrumAddonList
	if err := s.o.Client.List(ctx, &all, client.InNamespace(s.o.Namespace)); err != nil {
		return s.refusal(ctx, err, "list chart addons")
	}
	for _, part := range m.Parts(address.Workload()) {
		for i := range all.Items {
			if runs(&all.Items[i], part.Workload) {
				return workloadTaken(part.Workload, all.Items[i].Name)
			}
		}
	}
	return nil
}

// manifestFree refuses a manifest that takes the name of a platform service, in whatever place.
func (s *Server) manifestFree(m *capability.Manifest, workload string) error {
	if err := s.notThePlatforms("service", m.Service); err != nil {
		return err
	}
	if err := s.notThePlatforms("proxyKey", m.ProxyKey); err != nil {
		return err
	}
	for _, part := range m.Parts(workload) {
		if err := s.notThePlatforms("workload", part.Workload); err != nil {
			return err
		}
	}
	return nil
}

// noChartAddon refuses a name that a chart addon has in the cluster, registered or not.
func (s *Server) noChartAddon(ctx context.Context, name string) error {
	if !s.managesCharts(ctx) {
		return nil
	}
	_, err := s.read(ctx, name)
	switch {
	case fault.CodeOf(err) == fault.NotFound:
		return nil
	case err != nil:
		return err
	}
	return fault.New(fault.NameTaken, "%s belongs to %s", name, registry.OwnedByChart).WithHint("remove that one first: zae addon remove %s", name)
}

// managesCharts tells whether there can be chart addons. Where that cannot be told now, it is assumed, so that the question
// for them fails.
func (s *Server) managesCharts(ctx context.Context) bool {
	if s.o.Client == nil {
		return false
	}
	note, err := s.available.get(ctx)
	return err != nil || note == ""
}

// runs tells whether a workload is one that a chart addon has applied.
func runs(a *v1alpha1.ZaentrumAddon, workload string) bool {
	return slices.ContainsFunc(a.Status.Components, func(c v1alpha1.Component) bool { return c.Name == workload })
}

func workloadTaken(workload, addon string) error {
	return fault.New(fault.NameTaken, "workload %s belongs to addon %s", workload, addon)
}

// space is the launchpad's section of that key: as the manifest has it, else as the other addons in it, else a new one.
func (s *Server) space(ctx context.Context, m *capability.Manifest, key string) (*capability.Space, error) {
	if own := m.UI.Space; own != nil && own.Key == key {
		return own, nil
	}
	tiles, err := s.o.Registry.Tiles(ctx)
	for _, t := range tiles {
		if t.Space.Key == key && t.App != m.Service {
			return &t.Space, err
		}
	}
	return &capability.Space{Key: key, Title: key}, err
}

// removeAddress answers DELETE /api/portal/addons/{name}.
func (s *Server) removeAddress(c *call, _ none) (apitype.DeleteAnswer, error) {
	out := apitype.DeleteAnswer{Name: c.name, Removed: []string{}}
	if err := onlyParameters(c.request); err != nil {
		return out, err
	}
	owner, err := s.o.Registry.Owner(c.mayWait, c.name)
	if err != nil {
		return out, err
	}
	if owner == registry.OwnedByChart {
		return out, fault.New(fault.NameTaken, "%s is %s", c.name, owner).WithHint("remove it as one: zae addon remove %s", c.name)
	}
	there, err := s.o.Registry.Addon(c.mayWait, c.name)
	if err != nil {
		return out, err
	}
	if there != nil {
		c.audit.moved(there.Address, "")
	}
	if out.Removed, err = s.o.Registry.Remove(c.mustEnd, c.name, registry.SourceAddress); err != nil {
		return out, err
	}
	if len(out.Removed) == 0 {
		return out, fault.New(fault.NotFound, "there is no addon %s that was registered from an address", shown(c.name)).
			WithHint("zae addon list shows those there are")
	}
	s.log.Info("addon unregistered", "addon", c.name, "rows", len(out.Removed))
	return out, nil
}
