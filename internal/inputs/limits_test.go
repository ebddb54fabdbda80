package inputs

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// nested is {"x":{"x":…}}.
func nested(levels int) map[string]any {
	m := map[string]any{}
	for range levels {
		m = map[string]any{"x": m}
	}
	return m
}

// What does not end fails by the time limit of the test run.
func TestHostileSchemasEnd(t *testing.T) {
	t.Parallel()
	join := func(n int, format func(i int) string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = format(i)
		}
		return strings.Join(parts, ",")
	}
	long := strings.Repeat("a", 1<<20)
	for name, tc := range map[string]struct {
		schema string
		values map[string]any
	}{
		"doubling on one value": {
			`{"definitions":{` + join(90, func(i int) string {
				return fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/definitions/d%d"},{"$ref":"#/definitions/d%d"}]}`, i, i+1, i+1)
			}) + `,"d90":{"type":"string"}},"properties":{"x":{"$ref":"#/definitions/d0"}}}`,
			map[string]any{"x": "c4n4ry"},
		},
		"doubling with each level": {
			`{"patternProperties":{"x":{"$ref":"#"},"^x":{"$ref":"#"}}}`, nested(100),
		},
		"doubling with each level, where only the verdict matters": {
			`{"not":{"$ref":"#/definitions/n"},"definitions":{"n":{"minProperties":1,"patternProperties":{"x":{"$ref":"#/definitions/n"},"^x":{"$ref":"#/definitions/n"}}}}}`, nested(100),
		},
		"many alternatives on many items": {
			`{"items":{},"properties":{"x":{"items":{"anyOf":[` + join(2000, func(int) string { return `{"type":"null"}` }) + `]}}}}`,
			map[string]any{"x": texts(20_000)},
		},
		"a large pattern on a long text": {
			`{"properties":{"x":{"pattern":"^((a|b|ab){1,40}){1,40}$"}}}`, map[string]any{"x": long},
		},
		"many patterns": {
			`{"properties":{` + join(4900, func(i int) string { return fmt.Sprintf(`"p%d":{"pattern":"x{900}"}`, i) }) + `}}`, nil,
		},
		"as many schemas as there may be": {
			`{"properties":{` + join(4990, func(i int) string { return fmt.Sprintf(`"p%d":{}`, i) }) + `}}`, map[string]any{"x": 1},
		},
		"many references to odd places": {
			`{"x":[` + join(2000, func(int) string { return `true` }) + `],"items":[` + join(2000, func(i int) string { return fmt.Sprintf(`{"$ref":"#/x/%d"}`, i) }) + `]}`, map[string]any{},
		},
		"many $id": {
			`{"definitions":{` + join(2000, func(i int) string { return fmt.Sprintf(`"p%d":{"$id":"http://h/%d"}`, i, i) }) + `}}`, map[string]any{},
		},
		"a form without end": {
			`{"definitions":{` + join(40, func(i int) string {
				return fmt.Sprintf(`"d%d":{"properties":{"a":{"$ref":"#/definitions/d%d"},"b":{"$ref":"#/definitions/d%d"}}}`, i, i+1, i+1)
			}) + `,"d40":{"type":"string"}},"$ref":"#/definitions/d0"}`, map[string]any{},
		},
		"values as deep as Go holds": {`{"properties":{"x":{"$ref":"#"}}}`, nested(100_000)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			s, err := Parse([]byte(tc.schema))
			parsed := time.Since(start)
			if err == nil {
				s.meter.budget /= 20 // what does not end does not end with more
				got := s.Validate(tc.values)
				if strings.Contains(strings.Join(got, ""), "c4n4ry") {
					t.Errorf("quotes a value: %q", got)
				}
				if len(s.Inputs()) > 20_000 {
					t.Errorf("%d inputs", len(s.Inputs()))
				}
				t.Logf("parse %v, all %v: %.200q", parsed, time.Since(start), got)
			} else {
				t.Logf("parse %v: %v", parsed, err)
			}
		})
	}
}

func texts(n int) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = "c4n4ry"
	}
	return out
}

func TestASchemaServesSeveralAtOnce(t *testing.T) {
	t.Parallel()
	s := parse(t, contractSchema)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 50 {
				if got := s.Validate(map[string]any{"database": map[string]any{"url": "x"}, "config": map[string]any{"key": "k"}, "worker": map[string]any{"replicas": int64(i)}}); (len(got) == 0) != (i <= 4) {
					t.Errorf("%d: %q", i, got)
				}
			}
		})
	}
	wg.Wait()
}

func TestNothingIsEverFetched(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte("true"))
	}))
	defer srv.Close()
	for name, schema := range map[string]string{
		"$ref":                       `{"$ref":"URL/s"}`,
		"$ref below a base":          `{"$id":"URL/","properties":{"a":{"$ref":"s"}}}`,
		"$ref by its own base":       `{"$id":"URL/","properties":{"a":{"$ref":"URL/#/definitions/x"}},"definitions":{"x":true}}`,
		"$ref in an odd place":       `{"properties":{"a":{"$ref":"#/x"}},"x":{"items":{"$ref":"URL/s"}}}`,
		"$ref beside $ref's sibling": `{"properties":{"a":{"$ref":"#/definitions/b","items":{"$ref":"URL/s"}}},"definitions":{"b":true}}`,
		"the dialect":                `{"$schema":"URL/s"}`,
		"a dialect below":            `{"properties":{"a":{"$id":"URL/a","$schema":"URL/s"}}}`,
		"names":                      `{"propertyNames":{"$ref":"URL/s"}}`,
		"our own keyword":            `{"zae-propertyNames":"URL/s","format":"zae-1-1"}`,
		"data that looks like one":   `{"enum":[{"$ref":"URL/s"}],"default":{"$ref":"URL/s"},"const":{"$ref":"URL/s"},"unknown":{"$ref":"URL/s"}}`,
		"newer keywords":             `{"$recursiveRef":"URL/s","$dynamicRef":"URL/s","unevaluatedProperties":{"$ref":"URL/s"},"$defs":{"a":{"$ref":"URL/s"}}}`,
		"a file":                     `{"properties":{"a":{"$ref":"file:///etc/hostname"}}}`,
		"a meta-schema":              `{"properties":{"a":{"$ref":"http://json-schema.org/draft-07/schema#"}}}`,
	} {
		s, err := Parse([]byte(strings.ReplaceAll(schema, "URL", srv.URL)))
		if err == nil {
			s.Validate(map[string]any{"a": map[string]any{"b": []any{"c"}}})
		}
		if n := asked.Load(); n > 0 {
			t.Errorf("%s: the server was asked", name)
			asked.Store(0)
		}
	}
}

// FuzzSchema: no text makes reading, describing or validating panic or quote a value, and describing agrees with
// parsing.
func FuzzSchema(f *testing.F) {
	for _, s := range []string{contractSchema, `true`, `{"$ref":"#"}`, `{"$id":"#a","items":[{"$ref":"#a"}]}`, `{"dependencies":{"a":["b"],"c":{"required":["d"]}}}`,
		`{"propertyNames":{"propertyNames":{"$ref":"#/propertyNames"}}}`, `{"if":true,"then":{"not":{}},"else":false}`, `{"definitions":{"a/b":{"$ref":"#/definitions/a~1b/x"}}}`,
		`{"format":"zae-1-1","zae-propertyNames":"http://x/"}`, `{"allOf":{},"format":"email","contains":true}`, `{"enum":[{"$ref":"http://x"}],"minimum":1e400}`} {
		f.Add([]byte(s), []byte(`{"a":{"b":["c4n4ry",1,null]},"database":{"url":"c4n4ry"},"worker":{"replicas":-1}}`))
	}
	f.Fuzz(func(t *testing.T, schema, values []byte) {
		const canary = "c4n4ry"
		described, describeErr := Describe(schema)
		s, err := Parse(schema)
		if err != nil {
			return
		}
		if describeErr != nil {
			t.Fatalf("parsed but not described: %v", describeErr)
		}
		if len(s.Inputs()) != len(described.Inputs()) || len(s.States(nil, func([]string) (any, bool) { return nil, false })) != len(s.Inputs()) {
			t.Error("described otherwise than parsed")
		}
		var v map[string]any
		if json.Unmarshal(values, &v) != nil || strings.Contains(string(schema), canary) {
			return
		}
		for _, line := range s.Validate(keysOnly(v, canary).(map[string]any)) {
			if strings.Contains(line, canary) {
				t.Errorf("quotes a value: %q", line)
			}
		}
	})
}

// keysOnly makes every string in v the canary, and leaves out keys that hold it.
func keysOnly(v any, canary string) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, item := range v {
			if !strings.Contains(key, canary) {
				out[key] = keysOnly(item, canary)
			}
		}
		return out
	case []any:
		for i := range v {
			v[i] = keysOnly(v[i], canary)
		}
		return v
	case string:
		return canary
	default:
		return v
	}
}
