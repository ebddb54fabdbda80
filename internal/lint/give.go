package lint

import (
	"encoding/json"
	"slices"
	"strings"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/values"
)

// given are the values of a row, secrets apart.
type given struct {
	spec      map[string]any
	from      []values.From
	generated map[string]string
	secrets   map[string]string // by path, as they are looked for
	missing   []string          // inputs that no value could be made up for
}

// give makes the values of a row, with everything that must be there.
func (s *space) give(r row) given {
	g := s.filled(values.CloneTree(r.tree), r, r.file == "")
	if r.file == "" || len(s.problems(g)) == 0 {
		return g
	}
	return s.filled(values.CloneTree(r.tree), r, true) // the file may leave alternatives open
}

// filled gives what a row picks, and then what is missing.
func (s *space) filled(spec map[string]any, r row, picked bool) given {
	delete(spec, v1alpha1.PlatformKey)
	var nulls []string
	for _, a := range s.picked(r) {
		if _, there := values.Get(spec, a.path); !picked || there && r.file != "" {
			continue
		}
		values.Set(spec, a.path, values.Clone(a.value))
		if a.value == nil {
			nulls = append(nulls, strings.Join(a.path, "."))
		}
	}
	var missing []string
	add := func(in inputs.Input) bool {
		if in.Unaddressable || in.Generate != "" || slices.Contains(missing, in.Path) || slices.Contains(nulls, in.Path) {
			return false
		}
		v, ok := s.made.value(in)
		if !ok {
			missing = append(missing, in.Path)
			return false
		}
		values.Set(spec, strings.Split(in.Path, "."), v)
		return true
	}
	lookup := func(path []string) (any, bool) { return values.Get(spec, path) }
	for range 4 { // a value may make others necessary
		added := false
		for _, state := range s.schema.States(s.defaults, lookup) {
			if in, ok := s.schema.Input(state.Path); ok && state.State == v1alpha1.InputMissing && add(in) {
				added = true
			}
		}
		if !added {
			break
		}
	}
	g := s.part(spec)
	for range 4 { // conditions that cannot be said are found out
		added := false
		for _, problem := range s.problems(g) {
			path, what, _ := strings.Cut(problem, ": ")
			if in, ok := s.schema.Input(path); ok && strings.HasPrefix(what, "is required") && add(in) {
				added = true
			}
		}
		if !added {
			break
		}
		g = s.part(spec)
	}
	g.missing = missing
	return g
}

// picked is what a row gives besides what must be given.
func (s *space) picked(r row) []assign {
	out := slices.Clone(s.repairs)
	for i, pick := range r.picks {
		out = append(out, s.params[i].choices[pick].set...)
	}
	for _, c := range r.also {
		out = append(out, c.set...)
	}
	return out
}

// part takes the secrets out of plain values, and makes up generated ones.
func (s *space) part(spec map[string]any) given {
	g := given{spec: values.CloneTree(spec), generated: map[string]string{}, secrets: map[string]string{}}
	for _, in := range s.schema.Inputs() {
		if in.Unaddressable {
			continue
		}
		path := strings.Split(in.Path, ".")
		v, there := values.Get(g.spec, path)
		there = there && v != nil
		switch {
		case in.Generate != "" && (!there || v == ""):
			values.Delete(g.spec, path)
			g.generated[in.Path] = s.made.generated(in)
			g.secrets[in.Path] = g.generated[in.Path]
		case there && (in.Secret || in.Generate != ""):
			text, ok := v.(string)
			if !ok {
				text = label(v)
			}
			values.Delete(g.spec, path)
			g.from = append(g.from, values.From{TargetPath: in.Path, Text: text})
			g.secrets[in.Path] = text
		case there && in.HoldsSecrets:
			document := map[string]any{}
			values.Set(document, path, v)
			values.Delete(g.spec, path)
			g.from = append(g.from, values.From{Document: document})
			for at, secret := range s.schema.PlainSecretValues(document) {
				if text, ok := secret.(string); ok {
					g.secrets[at] = text
				}
			}
		}
	}
	return g
}

// key is the same for the same values.
func (g given) key() string {
	text, err := json.Marshal([]any{g.spec, g.from, g.generated})
	if err != nil {
		return ""
	}
	return string(text)
}

// problems are what the schema has against values, as they are laid over the chart's own.
func (s *space) problems(g given) []string {
	if s.tired {
		return nil
	}
	layers := values.Layers{Defaults: s.defaults, Subcharts: s.subcharts, Generated: g.generated, Spec: g.spec, From: g.from}
	out := s.schema.Validate(layers.Merged())
	s.tired = slices.ContainsFunc(out, func(p string) bool { return strings.HasSuffix(p, "takes too long") })
	return out
}
