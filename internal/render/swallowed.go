package render

import (
	"encoding/base64"
	"slices"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
)

// Some of Helm's functions answer with the text of their error instead of failing, which then stands in an
// object as if it were the value, and may quote it. These are the words by which such a text is known, and the
// functions that answer so.
var swallowedErrors = []struct{ words, functions string }{
	{"illegal base64 data at input byte", "b64dec"},
	{"illegal base32 data at input byte", "b32dec"},
	{"error converting YAML to JSON", "fromYaml or fromYamlArray"},
	{"error unmarshaling JSON", "fromYaml, fromJson or fromJsonArray"},
	{"json: cannot unmarshal", "fromJson or fromJsonArray"},
	{"unexpected end of JSON input", "fromJson or fromJsonArray"},
	{"looking for beginning of", "fromJson or fromJsonArray"},
}

// swallowed finds errors that were rendered, by file, unless the chart or a value has those words itself.
func swallowed(files map[string]string, h *helmchart.Chart, values map[string]any) []string {
	var out []string
	told := map[string]bool{}
	for _, e := range swallowedErrors {
		said, forms := false, encoded(e.words)
		for name, text := range files {
			says := func(form string) bool { return strings.Contains(text, form) }
			if told[name] || strings.HasSuffix(name, notesSuffix) || !slices.ContainsFunc(forms, says) {
				continue
			}
			if !said && (chartSays(h, e.words) || treeSays(values, e.words)) {
				break
			}
			said, told[name] = true, true
			out = append(out, printable(strings.TrimPrefix(name, h.Name()+"/"))+": an error of "+e.functions+
				" was rendered in place of a value: a value is not what the template takes it for")
		}
	}
	slices.Sort(out)
	return out
}

// encoded are the words as they are, and inside base64 at each of the three alignments, as in a Secret's data.
func encoded(words string) []string {
	forms := []string{words}
	for pad := range 3 {
		text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", pad) + words))
		forms = append(forms, text[4:len(text)-4])
	}
	return forms
}

func chartSays(h *helmchart.Chart, words string) bool {
	for _, list := range [][]*helmchart.File{h.Templates, h.Files} {
		for _, f := range list {
			if strings.Contains(string(f.Data), words) {
				return true
			}
		}
	}
	return slices.ContainsFunc(h.Dependencies(), func(sub *helmchart.Chart) bool { return chartSays(sub, words) })
}

func treeSays(v any, words string) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, words)
	case []any:
		return slices.ContainsFunc(v, func(item any) bool { return treeSays(item, words) })
	case map[string]any:
		for k, item := range v {
			if strings.Contains(k, words) || treeSays(item, words) {
				return true
			}
		}
	}
	return false
}
