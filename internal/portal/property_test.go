package portal_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"zaentrum.io/zae/internal/portal"
)

var (
	propertySeed = flag.Uint64("property.seed", 1, "what random requests are made from")
	propertyRuns = flag.Int("property.runs", 150, "how many random requests each call gets")
)

// maker makes random requests of the OpenAPI document.
type maker struct {
	*rand.Rand
	schemas map[string]any
	// tame has it make what is likely to be taken.
	tame bool
}

// likely are texts that make sense, by the name of the field.
var likely = map[string][]string{
	"chart": {exampleRef, exampleRef, exampleRef + ":1.2.0"}, "version": {"1.2.0", "1.3.0"}, "digest": {digestA}, "name": {"example", "other"},
	"key": {"k", "database.url"}, "proxyUrl": {"http://my-addon", "http://other:8080"}, "space": {"own", "media"},
}

// paths are those of inputs that make sense.
var paths = []string{"database.url", "worker.replicas", "config.key", "a.b.c"}

// texts are those that a random text is likely to be: what the API takes, and what it must not stumble over.
var texts = []string{
	"", " ", "example", "a.b", "a..b", ".", "zaentrum", "zaentrum.x", "1.2.0", "v1", "latest", exampleRef, exampleRef + ":1.2.0",
	"oci://", "https://charts.example.org/a-1.0.0.tgz", "http://example.org/a.tgz", "file:///etc/passwd", "oci://u:p@h/c",
	digestA, "sha256:", "zaentrum-addon-example-values", "zaentrum-addon-other-x", "postgres", "http://my-addon", "http://10.0.0.1",
	"http://my-addon:99999", "..", "../../x", "%2e%2e", "\x00", "\u2028", "é", "🙂", "\ufeff", "{{ .Values }}", "${HOME}", "' OR 1=1 --",
	"<script>", strings.Repeat("x", 300), strings.Repeat("a.", 200) + "b", "true", "null", "-1", "1e999", "A_B", "a/b", `"`, `\`,
}

func (m *maker) text() string {
	if m.IntN(8) == 0 {
		var b strings.Builder
		for range m.IntN(20) {
			b.WriteRune(rune(m.IntN(0x3000)))
		}
		return b.String()
	}
	return texts[m.IntN(len(texts))]
}

// anything is any JSON value; secret values are among its texts.
func (m *maker) anything(depth int) any {
	switch n := m.IntN(9); {
	case n == 0:
		return nil
	case n == 1:
		return m.IntN(2) == 0
	case n == 2:
		return m.Int64() - 1<<62
	case n == 3:
		return m.NormFloat64() * 1e9
	case n == 4 && depth > 0:
		list := []any{}
		for range m.IntN(4) {
			list = append(list, m.anything(depth-1))
		}
		return list
	case n <= 6 && depth > 0:
		object := map[string]any{}
		for range m.IntN(4) {
			object[m.text()] = m.anything(depth - 1)
		}
		return object
	case n == 7:
		return canary + m.text()
	}
	return m.text()
}

// value is a value of a schema, now and then one of none.
func (m *maker) value(schema map[string]any, depth int) any {
	if !m.tame && m.IntN(12) == 0 {
		return m.anything(2)
	}
	if ref, ok := schema["$ref"].(string); ok {
		named, _ := m.schemas[strings.TrimPrefix(ref, "#/components/schemas/")].(map[string]any)
		return m.value(named, depth)
	}
	kind, _ := schema["type"].(string)
	if kinds, ok := schema["type"].([]any); ok && len(kinds) > 0 {
		kind, _ = kinds[m.IntN(len(kinds))].(string)
	}
	switch kind {
	case "string":
		if values, ok := schema["enum"].([]any); ok && m.IntN(4) > 0 {
			return values[m.IntN(len(values))]
		}
		return m.text()
	case "boolean":
		return m.IntN(2) == 0
	case "integer":
		return m.IntN(5)
	case "number":
		return m.Float64()
	case "null":
		return nil
	case "array":
		items, _ := schema["items"].(map[string]any)
		list := []any{}
		for range m.IntN(3) {
			list = append(list, m.value(items, depth-1))
		}
		return list
	case "object":
		return m.object(schema, depth)
	}
	return m.anything(2)
}

func (m *maker) object(schema map[string]any, depth int) any {
	out := map[string]any{}
	properties, _ := schema["properties"].(map[string]any)
	required := fmt.Sprint(schema["required"])
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if m.IntN(2) == 0 && (!strings.Contains(required, name) || m.IntN(10) > 0) {
			continue
		}
		property, _ := properties[name].(map[string]any)
		if m.tame && property["type"] == "string" && likely[name] != nil {
			out[name] = likely[name][m.IntN(len(likely[name]))]
			continue
		}
		out[name] = m.value(property, depth-1)
	}
	if more, ok := schema["additionalProperties"].(map[string]any); ok {
		for range m.IntN(3) {
			v := m.value(more, depth-1)
			if text, ok := v.(string); ok && m.IntN(2) == 0 {
				v = canary + text
			}
			if m.tame {
				out[paths[m.IntN(len(paths))]] = v
				continue
			}
			out[m.text()] = v
		}
	} else if properties == nil {
		if m.tame {
			return map[string]any{"worker": map[string]any{"replicas": m.IntN(5)}, "list": []any{m.anything(1)}}
		}
		return m.anything(3)
	} else if !m.tame && m.IntN(12) == 0 {
		out[m.text()] = m.anything(1)
	}
	return out
}

// broken is a body with a fault in its text.
func (m *maker) broken(body string) string {
	if m.tame || m.IntN(8) > 0 || body == "" {
		return body
	}
	at := m.IntN(len(body))
	switch m.IntN(4) {
	case 0:
		return body[:at]
	case 1:
		return body[:at] + m.text() + body[at:]
	case 2:
		return body + body
	}
	return strings.Replace(body, `":`, `":1,"x":`, 1)
}

// TestRandomRequestsAreAnswered makes requests out of the OpenAPI document, right ones and wrong ones. None is answered with
// a fault of portal-api's own, none that is refused writes anything, and every answer is as documented and without a secret
// value; the bench looks at that.
func TestRandomRequestsAreAnswered(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docs/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]struct {
			RequestBody struct {
				Content map[string]struct {
					Schema map[string]any `json:"schema"`
				} `json:"content"`
			} `json:"requestBody"`
		} `json:"paths"`
		Components struct {
			Schemas map[string]any `json:"schemas"`
		} `json:"components"`
	}
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, func(o *portal.Options) { o.WritesPerSecond, o.WriteBurst = 1e6, 1e6 })
	m := &maker{Rand: rand.New(rand.NewPCG(*propertySeed, 0)), schemas: doc.Components.Schemas} //nolint:gosec // the same each time
	statuses, calls := map[int]int{}, 0
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(doc.Paths[path])) {
			method := strings.ToUpper(method)
			if method == http.MethodGet {
				continue
			}
			schema := doc.Paths[path][strings.ToLower(method)].RequestBody.Content["application/json"].Schema
			calls++
			for range *propertyRuns {
				body := ""
				m.tame = m.IntN(2) == 0
				if schema != nil {
					text, err := json.Marshal(m.value(schema, 4))
					b.must(err)
					body = m.broken(string(text))
				}
				at := strings.ReplaceAll(path, "{name}", []string{"example", "example", "other", "A_B", "x--", strings.Repeat("n", 60)}[m.IntN(6)])
				if method == http.MethodDelete && m.IntN(2) == 0 {
					at += "?keepValues=" + []string{"true", "false", "", "1"}[m.IntN(4)]
				}
				b.wire.take()
				r := b.do(method, at, body)
				statuses[r.status]++
				writes := b.wire.take()
				if r.status >= 400 && len(writes) > 0 {
					t.Errorf("%s %s %q is refused and wrote %v: %s", method, at, body, writes, r)
				}
				var p struct{ Code string }
				_ = json.Unmarshal(r.body, &p)
				if r.status >= 500 && !strings.HasPrefix(p.Code, "addon-") || p.Code == "internal" {
					t.Errorf("%s %s %q: %s", method, at, body, r)
				}
			}
		}
	}
	t.Logf("%d calls, answers by status: %v (-property.seed %d)", calls, statuses, *propertySeed)
	if calls < 5 || statuses[202] < 20 || statuses[400] < 100 {
		t.Errorf("%d calls were tried, with answers %v: too few to tell anything", calls, statuses)
	}
}
