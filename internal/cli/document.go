package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"zaentrum.io/zae/internal/fault"
)

// document prints the API's own document, and nothing else, to standard output.
func (a *app) document(f format, raw json.RawMessage) error {
	var text bytes.Buffer
	if err := json.Indent(&text, raw, "", "  "); err != nil {
		return fault.New(fault.Internal, "the answer cannot be written as JSON").Because(err)
	}
	if f == "yaml" {
		out, err := yaml.JSONToYAML(text.Bytes())
		if err != nil {
			return fault.New(fault.Internal, "the answer cannot be written as YAML").Because(err)
		}
		a.out.raw(string(out))
		return nil
	}
	a.out.raw(escaped(text.String()) + "\n")
	return nil
}

// escaped writes characters that steer a terminal, and that JSON allows bare in its strings, as \u.
func escaped(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && steers(r) }) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if r != '\n' && steers(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
