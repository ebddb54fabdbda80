package portal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/registry"
)

// addons answers GET /api/portal/addons: chart addons next to those installed from an address. Where chart
// addons cannot be managed, those that were registered are listed as the registry knows them.
func (s *Server) addons(c *call, _ none) (apitype.Addons, error) {
	out := apitype.Addons{Addons: []apitype.Addon{}}
	note, err := s.available.get(c.mayWait)
	if err != nil {
		return out, err
	}
	var inCluster []*v1alpha1.ZaentrumAddon
	if note == "" {
		if inCluster, err = s.list(c.mayWait); err != nil {
			return out, err
		}
	}
	registered, failures, err := s.registered(c.mayWait)
	if err != nil {
		return out, err
	}
	for _, a := range inCluster {
		known, ok := registered[a.Name]
		one := apitype.Addon{
			Name: a.Name,
			Chart: &apitype.AddonListChart{
				Ref: a.Spec.Chart.Ref, Version: a.Spec.Chart.Version, Digest: a.Spec.Chart.Digest, LastApplied: a.Status.LastAppliedChart,
			},
			Phase: a.Status.Phase, Suspended: a.Spec.Suspend,
			RegistrationError: failures[a.Name].Message, Components: components(a.Status.Components),
		}
		if ok && known.Source == registry.SourceChart {
			one.Registered, one.Title = true, known.Title
			delete(registered, a.Name)
		} else if a.Status.Plan != nil {
			one.Title = a.Status.Plan.Chart.Annotations[v1alpha1.ChartAnnotationTitle]
		}
		out.Addons = append(out.Addons, one)
	}
	for _, a := range registered {
		one := apitype.Addon{Name: a.Key, Title: a.Title, Registered: true, Address: a.Address, Components: components(nil)}
		if a.Source == registry.SourceChart {
			if note == "" {
				continue // its resource is gone, and its rows are about to follow
			}
			one.Chart = &apitype.AddonListChart{Ref: a.Chart.Ref, Version: a.Chart.Version, Digest: a.Chart.Digest}
		}
		out.Addons = append(out.Addons, one)
	}
	slices.SortFunc(out.Addons, func(a, b apitype.Addon) int {
		// A chart addon whose name an address addon has comes second: it is the one that is not registered.
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(b.Address, a.Address))
	})
	return out, nil
}

func (s *Server) registered(ctx context.Context) (map[string]registry.Addon, map[string]registry.Failure, error) {
	all, err := s.o.Registry.Addons(ctx)
	if err != nil {
		return nil, nil, err
	}
	byKey := make(map[string]registry.Addon, len(all))
	for _, a := range all {
		byKey[a.Key] = a
	}
	failures, err := s.o.Registry.Failures(ctx)
	return byKey, failures, err
}

// discovery answers GET /api/portal/cli/discovery. It needs no bearer: it is how zae learns where to get one.
func (s *Server) discovery(c *call, _ none) (apitype.Discovery, error) {
	out := apitype.Discovery{CapabilityVersion: 1, Services: []map[string]any{}}
	if a := s.auth.auth; a.Issuer != "" {
		out.Auth = &apitype.DiscoveryAuth{Issuer: a.Issuer, ClientID: a.ClientID}
	}
	all, err := s.o.Registry.Addons(c.mayWait)
	if err != nil {
		return out, err
	}
	for _, a := range all {
		var doc map[string]any
		if err := json.Unmarshal(a.Manifest, &doc); err != nil {
			return out, errors.New("the manifest of addon " + a.Key + " cannot be read")
		}
		out.Services = append(out.Services, doc)
	}
	return out, nil
}
