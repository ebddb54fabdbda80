package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/manifest"
)

// mask stands for a value in a Secret. It is not base64, so that what is masked cannot be applied by mistake.
const mask = "[masked]"

// masker writes objects without secrets, and counts where it found some.
//
// What depends on a secret, in whatever way a template made it, is found by holding the objects against those of a twin:
// the same chart and values, rendered with other secrets.
type masker struct {
	hidden             *redactor
	show               bool
	twins              []*twin
	blind              bool // there is no twin, and nothing can be told from a secret
	secrets, elsewhere int
}

// documents writes a set as YAML documents, each with the template it comes from.
func (m *masker) documents(set manifest.Set) (string, error) {
	var out strings.Builder
	set = set.Clone()
	if !m.show {
		m.against(set)
	}
	for _, o := range set {
		tree := any(o.Tree)
		if !m.show {
			tree = m.hide(tree)
		}
		text, err := yamlText(tree)
		if err != nil {
			return "", err
		}
		out.WriteString("---\n# Source: " + m.hidden.hide(printable(o.Source)) + "\n" + text)
	}
	return out.String(), nil
}

// against takes out of a set's trees the data of Secrets and whatever the twins have otherwise.
func (m *masker) against(set manifest.Set) {
	for _, o := range set {
		if strings.EqualFold(o.ID().Kind, "Secret") { // whatever its version: what is refused is shown, too
			m.maskData(o.Tree)
		}
	}
	for i := range set {
		if m.blind {
			set[i].Tree = m.unknown(set[i].Tree, true)
		}
		for _, t := range m.twins {
			pair := m.pair(set, t)
			other, found := pair[i]
			if !found {
				known := slices.ContainsFunc(t.set, func(o manifest.Object) bool { return o.ID().Kind == set[i].ID().Kind })
				set[i].Tree = m.unknown(set[i].Tree, known)
				continue
			}
			set[i].Tree, _ = m.differ(set[i].Tree, other.Tree, t).(map[string]any)
		}
	}
}

// pair finds for each object of a set the one of a twin: of the same identity but for the secrets in it, else the next
// of the same kind from the same template.
func (m *masker) pair(set manifest.Set, t *twin) map[int]manifest.Object {
	out := map[int]manifest.Object{}
	taken := map[int]bool{}
	find := func(i int, same func(other manifest.Object) bool) {
		if _, done := out[i]; done {
			return
		}
		for j, other := range t.set {
			if !taken[j] && same(other) {
				out[i], taken[j] = other, true
				return
			}
		}
	}
	for i, o := range set {
		find(i, func(other manifest.Object) bool {
			return m.hidden.hide(o.ID().String()) == t.hidden.hide(other.ID().String())
		})
	}
	for i, o := range set {
		find(i, func(other manifest.Object) bool { return o.Source == other.Source && o.ID().Kind == other.ID().Kind })
	}
	return out
}

// unknown is an object of which nothing is known to be no secret, but what kind it is.
func (m *masker) unknown(tree map[string]any, kind bool) map[string]any {
	out := make(map[string]any, len(tree))
	for k, v := range tree {
		if kind && (k == "kind" || k == "apiVersion") {
			out[k] = v
			continue
		}
		out[k] = m.made(v)
	}
	return out
}

// made stands for something that a secret makes.
func (m *masker) made(v any) string {
	if v == any(mask) {
		return mask
	}
	if v != any(hiddenText) {
		m.elsewhere++
	}
	return hiddenText
}

// differ is a value without what the twin's value has otherwise. Where that is the secret itself, hide takes it out, and
// leaves what is around it.
func (m *masker) differ(v, other any, t *twin) any {
	switch v := v.(type) {
	case map[string]any:
		theirs, ok := other.(map[string]any)
		if !ok {
			return m.made(v)
		}
		return m.differMap(v, theirs, t)
	case []any:
		theirs, ok := other.([]any)
		if !ok || len(theirs) != len(v) {
			return m.made(v)
		}
		for i := range v {
			v[i] = m.differ(v[i], theirs[i], t)
		}
		return v
	case string:
		text, ok := other.(string)
		if v == mask || v == hiddenText || ok && m.hidden.hide(v) == t.hidden.hide(text) {
			return v
		}
		return m.made(v)
	default:
		switch other.(type) {
		case map[string]any, []any:
			return m.made(v)
		}
		if v == other {
			return v
		}
		return m.made(v)
	}
}

func (m *masker) differMap(v, theirs map[string]any, t *twin) map[string]any {
	byKey := make(map[string]any, len(theirs))
	for k, item := range theirs {
		byKey[t.hidden.hide(k)] = item
	}
	out := make(map[string]any, len(v))
	for _, k := range slices.Sorted(maps.Keys(v)) {
		other, found := byKey[m.hidden.hide(k)]
		switch {
		case !found:
			put(out, hiddenText, m.made(v[k]))
		case k == v1alpha1.AnnotationValuesChecksum && v[k] != other:
			out[k] = mask // the operator's, not the chart's: the secret inputs are in it
		default:
			out[k] = m.differ(v[k], other, t)
		}
	}
	return out
}

// put adds an entry without losing one whose key looks the same by now.
func put(tree map[string]any, key string, v any) {
	unique := key
	for n := 2; ; n++ {
		if _, there := tree[unique]; !there {
			tree[unique] = v
			return
		}
		unique = fmt.Sprintf("%s %d", key, n)
	}
}

func (m *masker) maskData(tree map[string]any) {
	found := false
	for _, field := range []string{"data", "stringData"} {
		if v, there := tree[field]; there {
			tree[field] = masked(v)
			found = true
		}
	}
	if found {
		m.secrets++
	}
}

// masked is a value with its keys, and nothing else of it.
func masked(v any) any {
	tree, ok := v.(map[string]any)
	if !ok {
		return mask
	}
	for k, item := range tree {
		tree[k] = masked(item)
	}
	return tree
}

// hide takes secrets out of texts, keys and numbers.
func (m *masker) hide(v any) any {
	text := func(s string) string {
		h := m.hidden.hide(s)
		if h != s {
			m.elsewhere++
		}
		return h
	}
	switch v := v.(type) {
	case string:
		return text(v)
	case int64:
		if s := strconv.FormatInt(v, 10); text(s) != s {
			return hiddenText
		}
		return v
	case float64:
		for _, form := range []byte("fg") {
			if s := strconv.FormatFloat(v, form, -1, 64); text(s) != s {
				return hiddenText
			}
		}
		return v
	case []any:
		for i := range v {
			v[i] = m.hide(v[i])
		}
		return v
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			put(out, text(k), m.hide(v[k]))
		}
		return out
	default:
		return v
	}
}
