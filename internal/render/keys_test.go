package render

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"zaentrum.io/zae/internal/values"
)

// TestKeysAreWhatIsWritten: a key that YAML 1.1 reads as a boolean, a number or null is the text that stands there,
// in values.yaml, in a values document (--values, valuesFrom) and in JSON (the API) alike, so that each can lay a
// value over the other's.
func TestKeysAreWhatIsWritten(t *testing.T) {
	keys := []string{"on", "off", "y", "n", "yes", "no", "Yes", "NO", "true", "False", "null", "~", "1", "0x10", "1.5", "1e3", "2001-01-01", ".inf"}
	var yaml strings.Builder
	tree := map[string]any{}
	for _, key := range keys {
		yaml.WriteString(key + ": default\n")
		tree[key] = "default"
	}
	c := chartOf(t, exampleChart("values.yaml", yaml.String(), "templates/a.yaml", "kind: ConfigMap\nmetadata: {name: a}\ndata:\n"+
		"{{- range $key, $value := omit .Values \"zaentrum\" \"global\" }}\n  {{ $key | quote }}: {{ $value }}\n{{- end }}\n"))
	if d := cmp.Diff(tree, c.Defaults); d != "" {
		t.Errorf("values.yaml: %s", d)
	}
	document, err := values.Decode([]byte(yaml.String()))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(tree, document); d != "" {
		t.Errorf("a values document: %s", d)
	}
	// As the API stores them.
	given := map[string]any{}
	for _, key := range keys {
		given[key] = "given"
	}
	text, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	if document, err = values.Decode(text); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(given, document); d != "" {
		t.Errorf("JSON: %s", d)
	}
	objects := mustRender(t, inputOf(c, document))
	if d := cmp.Diff(given, objects[0].Tree["data"]); d != "" {
		t.Errorf("rendered: %s", d)
	}
	// Null deletes each of them, whoever says so.
	for _, key := range keys {
		given[key] = nil
	}
	if objects = mustRender(t, inputOf(c, given)); objects[0].Tree["data"] != nil {
		t.Errorf("deleted: %v", objects[0].Tree["data"])
	}
}
