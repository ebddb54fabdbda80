package lint

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"zaentrum.io/zae/internal/manifest"
)

// shortestSecret is the length from which a value is looked for: shorter ones are everywhere.
const shortestSecret = 8

// needle is a form of a secret that is looked for.
type needle struct{ form, text string }

// needles are the forms of a secret. Letters are compared whatever their case.
func needles(secret string) []needle {
	out := []needle{{"", strings.ToLower(secret)}}
	for _, v := range []string{secret, strings.ToLower(secret), strings.ToUpper(secret)} {
		sum := sha256.Sum256([]byte(v))
		out = append(out, needle{" as its SHA-256", hex.EncodeToString(sum[:])})
		for shift := range 3 {
			// Inside a longer text that is encoded, what is around changes the letters at both ends.
			raw := strings.Repeat("\x00", shift) + v
			encoded := base64.RawStdEncoding.EncodeToString([]byte(raw))
			start := []int{0, 2, 3}[shift]
			end := len(encoded)
			if len(raw)%3 != 0 {
				end--
			}
			if end-start >= shortestSecret {
				core := encoded[start:end]
				out = append(out, needle{" as base64", strings.ToLower(core)})
				if url := strings.NewReplacer("+", "-", "/", "_").Replace(core); url != core {
					out = append(out, needle{" as base64", strings.ToLower(url)})
				}
			}
		}
	}
	return out
}

// leaks looks for secrets outside of the data of Secrets.
func (l *linter) leaks(set manifest.Set, g given, number int) {
	forms := map[string][]needle{}
	for path, secret := range g.secrets {
		if len(secret) >= shortestSecret {
			forms[path] = needles(secret)
			if decoded, err := base64.StdEncoding.DecodeString(secret); err == nil && madeUp.Match(decoded) { // as some templates want it
				forms[path] = append(forms[path], needles(string(decoded))...)
			}
		}
	}
	if len(forms) == 0 {
		return
	}
	paths := slices.Sorted(maps.Keys(forms))
	for _, o := range set {
		for _, leaf := range leaves(o) {
			if leaf.data || len(leaf.text) < shortestSecret {
				continue
			}
			low := strings.ToLower(leaf.text)
			for _, path := range paths {
				for _, n := range forms[path] {
					if strings.Contains(low, n.text) {
						l.finding("secret-leak", hidden(o, n), hiddenText(leaf.path, n), path+" is seen outside of a Secret's data"+n.form, number)
						break
					}
				}
			}
		}
	}
}

// hidden is an object whose name is not told when it is the secret.
func hidden(o manifest.Object, n needle) manifest.Object {
	id := o.ID()
	if !strings.Contains(strings.ToLower(id.Name), n.text) {
		return o
	}
	return manifest.Object{Source: o.Source, Tree: map[string]any{"apiVersion": id.APIVersion, "kind": id.Kind, "metadata": map[string]any{"name": "(made of the secret)"}}}
}

func hiddenText(text string, n needle) string {
	if strings.Contains(strings.ToLower(text), n.text) {
		return "(made of the secret)"
	}
	return text
}
