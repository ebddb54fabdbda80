package worker

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/manifest"
	"zaentrum.io/zae/internal/values"
)

// minLeak is the shortest secret value that is looked for: shorter ones stand in other texts by accident.
const minLeak = 8

// leaks names the objects that hold the value of a secret input outside of a Secret's data, where everybody
// reads it who may read the object: the first field of each, and never the value.
func leaks(set manifest.Set, in []inputs.Input, merged map[string]any) []string {
	var out []string
	for _, input := range in {
		if !input.Secret || input.Unaddressable {
			continue
		}
		v, _ := values.Get(merged, strings.Split(input.Path, "."))
		secret, _ := v.(string)
		if len(secret) < minLeak {
			continue
		}
		for _, o := range set {
			if field, found := holds(o.Tree, "", secret, o.ID().Kind == "Secret"); found {
				out = append(out, fmt.Sprintf("%s: the secret input %s stands outside of a Secret's data (%s)", o.ID(), input.Path, field))
			}
		}
	}
	return out
}

// holds is the first field, in the order of paths, that has the text in it, as a value or in its name.
func holds(v any, at, secret string, isSecret bool) (string, bool) {
	switch v := v.(type) {
	case string:
		return at, strings.Contains(v, secret)
	case []any:
		for i, item := range v {
			if field, found := holds(item, fmt.Sprintf("%s[%d]", at, i), secret, false); found {
				return field, true
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if isSecret && (key == "data" || key == "stringData") {
				continue
			}
			if strings.Contains(key, secret) {
				return at, true
			}
			path := key
			if at != "" {
				path = at + "." + key
			}
			if field, found := holds(v[key], path, secret, false); found {
				return field, true
			}
		}
	}
	return "", false
}
