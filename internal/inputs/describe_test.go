package inputs

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// joined is n parts with commas between them.
func joined(n int, format func(i int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = format(i)
	}
	return strings.Join(parts, ",")
}

// TestDescribingIsBounded reads schemas that are made to cost as much as they can, as the API does in its own
// process.
func TestDescribingIsBounded(t *testing.T) {
	const (
		maxTime   = 10 * time.Second // far more than measured, and far less than without the bounds
		maxMemory = 256 << 20        // allocated altogether, most of it garbage at once
		maxAnswer = 16 << 20         // as JSON
	)
	text := strings.Repeat("x", 100_000)
	all := `"all":{"allOf":[` + joined(2400, func(int) string { return `{}` }) + `]}`
	for name, schema := range map[string]string{
		"many properties of many schemas":  `{"definitions":{` + all + `},"properties":{` + joined(2400, func(i int) string { return fmt.Sprintf(`"p%d":{"$ref":"#/definitions/all"}`, i) }) + `}}`,
		"a long default, repeated":         `{"definitions":{"d":{"type":"string","default":"` + text + `"}},"properties":{` + joined(3500, func(i int) string { return fmt.Sprintf(`"p%d":{"$ref":"#/definitions/d"}`, i) }) + `}}`,
		"a long title, repeated":           `{"definitions":{"d":{"type":"string","title":"` + text + `"}},"properties":{` + joined(3500, func(i int) string { return fmt.Sprintf(`"p%d":{"$ref":"#/definitions/d"}`, i) }) + `}}`,
		"a long enum, repeated":            `{"definitions":{"d":{"enum":[` + joined(20_000, func(i int) string { return fmt.Sprint(i) }) + `]}},"properties":{` + joined(4000, func(i int) string { return fmt.Sprintf(`"p%d":{"$ref":"#/definitions/d"}`, i) }) + `}}`,
		"two long enums":                   `{"properties":{"a":{"allOf":[{"enum":[` + joined(20_000, func(i int) string { return fmt.Sprint(i) }) + `]},{"enum":[` + joined(20_000, func(i int) string { return fmt.Sprint(i + 10_000) }) + `]}]}}}`,
		"a long name, repeated":            `{"definitions":{"d":{"properties":{"` + text + `":{"type":"string"}}}},"properties":{` + joined(4000, func(i int) string { return fmt.Sprintf(`"p%d":{"$ref":"#/definitions/d"}`, i) }) + `}}`,
		"a long name, required everywhere": `{"definitions":{"d":{"required":[` + joined(10_000, func(i int) string { return fmt.Sprintf(`"%d"`, i) }) + `],"properties":{"a":{"type":"string"}}}},"properties":{` + joined(3000, func(i int) string { return fmt.Sprintf(`"p%d":{"$ref":"#/definitions/d"}`, i) }) + `}}`,
		"many conditions": `{"definitions":{"t":{"required":[` + joined(5000, func(i int) string { return fmt.Sprintf(`"p%d"`, i) }) + `]}},"properties":{` + joined(1000, func(i int) string { return fmt.Sprintf(`"p%d":{}`, i) }) + `},"dependencies":{` +
			joined(2500, func(i int) string { return fmt.Sprintf(`"p%d":{"$ref":"#/definitions/t"}`, i) }) + `}}`,
		"conditions without end": `{"definitions":{"t":{"properties":{"a":{"$ref":"#/definitions/t"},"b":{"$ref":"#/definitions/t"},"c":{"$ref":"#/definitions/t"}},"required":["a"]}},"if":{"required":["a"]},"then":{"$ref":"#/definitions/t"}}`,
		"an if without end":      `{"definitions":{"t":{"properties":{"a":{"$ref":"#/definitions/t"}}}},"if":{"$ref":"#/definitions/t"},"then":{"required":["a"]}}`,
		"a tree that doubles": `{"definitions":{` + joined(40, func(i int) string {
			return fmt.Sprintf(`"d%d":{"properties":{"a":{"$ref":"#/definitions/d%d"},"b":{"$ref":"#/definitions/d%d"}}}`, i, i+1, i+1)
		}) + `,"d40":{"type":"string"}},"$ref":"#/definitions/d0"}`,
		"alternatives in alternatives": `{"definitions":{"s":{"anyOf":[` + joined(1500, func(i int) string { return fmt.Sprintf(`{"properties":{"x%d":{}}}`, i) }) + `]}},"properties":{` + joined(400, func(i int) string {
			return fmt.Sprintf(`"p%d":{"properties":{"a":{}},"allOf":[{"$ref":"#/definitions/s"}]}`, i)
		}) + `}}`,
		"long groups":          `{"properties":{"` + strings.Repeat("g", maxGroupPath) + `":{"properties":{` + joined(4900, func(i int) string { return fmt.Sprintf(`"%d":{}`, i) }) + `}}}}`,
		"as deep as it may be": strings.Repeat(`{"properties":{"a":`, 99) + `{}` + strings.Repeat(`}}`, 99),
		"deeper":               strings.Repeat(`{"properties":{"a":`, 12_000) + `{}` + strings.Repeat(`}}`, 12_000),
		"lists in lists":       `{"default":` + strings.Repeat(`[`, 120_000) + strings.Repeat(`]`, 120_000) + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			if len(schema) > MaxSchemaBytes {
				t.Fatalf("%d bytes are no schema", len(schema))
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			s, err := Describe([]byte(schema))
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			allocated := after.TotalAlloc - before.TotalAlloc
			answer, jsonErr := json.Marshal(s.Inputs())
			if jsonErr != nil {
				t.Fatal(jsonErr)
			}
			t.Logf("%v, %d KiB, %d inputs, %d KiB of JSON, %v", took, allocated>>10, len(s.Inputs()), len(answer)>>10, err)
			if took > maxTime || allocated > maxMemory || len(answer) > maxAnswer {
				t.Error("out of bounds")
			}
		})
	}
}

func TestDescribeSaysWhatParseSays(t *testing.T) {
	for _, schema := range []string{contractSchema, ``, `true`, `{"properties":{"a":{"pattern":"^x","default":1,"writeOnly":true}}}`} {
		described, err := Describe([]byte(schema))
		if err != nil {
			t.Fatal(err)
		}
		want, got := parse(t, schema), described
		if fmt.Sprint(want.Inputs(), want.Groups(), want.Warnings(), want.DeclaresPlatform()) != fmt.Sprint(got.Inputs(), got.Groups(), got.Warnings(), got.DeclaresPlatform()) {
			t.Errorf("%s is described otherwise", schema)
		}
		if found := got.Validate(map[string]any{"a": 1}); found != nil {
			t.Errorf("%q", found)
		}
	}
	if _, err := Describe([]byte(`{"$ref":"http://example.org/"}`)); err == nil {
		t.Error("a reference to elsewhere is accepted")
	}
}
