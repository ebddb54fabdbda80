package portal

import (
	"slices"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
)

// valuesSecrets answers GET /api/portal/addon-charts/{name}/values-secrets. Who may list Secrets may read them, and portal-api
// may not: it tells what the operator wrote into the status, and what the resource itself names (docs/adr/0009).
func (s *Server) valuesSecrets(c *call, _ none) (apitype.ValuesSecrets, error) {
	out := apitype.ValuesSecrets{Name: c.name, Secrets: []apitype.ValuesSecret{}}
	r, err := s.read(c.mayWait, c.name)
	if err != nil {
		return out, err
	}
	byName := map[string]apitype.ValuesSecret{}
	for _, known := range r.addon.Status.ValuesSecrets {
		byName[known.Name] = apitype.ValuesSecret{
			Name: known.Name, Keys: append([]string{}, known.Keys...), CreatedAt: &known.CreatedAt, Kept: known.Kept,
			Generated: known.Generated, Referenced: []string{}, Seen: true,
		}
	}
	for _, source := range r.addon.Spec.ValuesFrom {
		if source.Kind != v1alpha1.ValuesFromSecret {
			continue
		}
		one, known := byName[source.Name]
		if !known {
			one = apitype.ValuesSecret{Name: source.Name, Keys: []string{}, Referenced: []string{}}
		}
		if !one.Seen && !slices.Contains(one.Keys, source.Key()) {
			one.Keys = append(one.Keys, source.Key())
			slices.Sort(one.Keys)
		}
		if source.TargetPath != "" && !slices.Contains(one.Referenced, source.TargetPath) {
			one.Referenced = append(one.Referenced, source.TargetPath)
			slices.Sort(one.Referenced)
		}
		byName[source.Name] = one
	}
	for _, name := range sortedKeys(byName) {
		out.Secrets = append(out.Secrets, byName[name])
	}
	return out, nil
}
