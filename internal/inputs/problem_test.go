package inputs

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatTheValidatorReadsOtherwiseThanHelm(t *testing.T) {
	for name, tc := range map[string]struct {
		schema, values string
		want           []string
	}{
		"content is not asserted":      {`{"properties":{"a":{"contentEncoding":"base64"},"b":{"contentMediaType":"application/json","contentSchema":{"type":"null"}}}}`, `{"a":"%","b":"%"}`, nil},
		"keywords of other drafts":     {`{"regexProperties":true,"minContains":2,"unevaluatedProperties":false,"dependentRequired":{"(":["b"]},"contains":true}`, `{"(":1}`, nil},
		"a limit beyond any int":       {`{"properties":{"a":{"maxLength":1e300,"maxItems":18446744073709551615}}}`, `{"a":"x"}`, nil},
		"a limit that nothing reaches": {`{"properties":{"a":{"minItems":1e300}}}`, `{"a":[]}`, []string{"a: must have at least 4611686018427387904 items"}},
		"a limit in another writing":   {`{"properties":{"a":{"maxLength":1e0,"minLength":1.0}}}`, `{"a":"xx"}`, []string{"a: must be at most 1 character long"}},
		"one fault does not hide another": {`{"properties":{"a":{"enum":["x"],"minLength":9,"format":"ipv4"}}}`, `{"a":"c4n4ry"}`, []string{
			"a: does not have the format the schema asks for (format)", "a: is none of the values the schema lists (enum)", "a: must be at least 9 characters long"}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, parse(t, tc.schema).Validate(decode(t, tc.values))); d != "" {
				t.Error(d)
			}
		})
	}
	for _, schema := range []string{`{"contentEncoding":1}`, `{"format":1}`, `{"minLength":-1}`, `{"minLength":1.5}`, `{"allOf":[],"format":"ipv4"}`, `{"enum":[]}`} {
		if _, err := Parse([]byte(schema)); err == nil || !strings.Contains(err.Error(), "not a draft-07 schema") {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

func TestKeywordsAreToldFromPropertiesOfTheirName(t *testing.T) {
	for name, tc := range map[string]struct {
		schema, values string
		want           []string
	}{
		"properties named as keywords": {`{"properties":{"properties":{"properties":{"type":{"type":"string"},"not":false,"$ref":{"minLength":2},"0":{"const":1}}}}}`,
			`{"properties":{"type":1,"not":1,"$ref":"x","0":2}}`, []string{"properties.$ref: must be at least 2 characters long", "properties.0: is not the value the schema fixes (const)",
				"properties.not: is not allowed", "properties.type: must be a string, not a number"}},
		"a property named additionalProperties": {`{"properties":{"additionalProperties":false},"additionalProperties":false}`, `{"additionalProperties":1,"b":1}`,
			[]string{"additionalProperties: is not allowed", "b: is not known to the schema (additionalProperties)"}},
		"patterns are known":              {`{"patternProperties":{"^x/~":true},"additionalProperties":false,"properties":{"a":true}}`, `{"x/~1":1,"a":1,"b/c":1}`, []string{"b/c: is not known to the schema (additionalProperties)"}},
		"a schema for further properties": {`{"additionalProperties":{"type":"string","not":{"const":"c4n4ry"}}}`, `{"a":"c4n4ry","b":1}`, []string{"a: is what the schema rules out (not)", "b: must be a string, not a number"}},
		"what then and else say":          {`{"if":{"required":["a"]},"then":false,"else":{"$ref":"#/definitions/f"},"definitions":{"f":false}}`, `{"b":1}`, []string{"values: is not allowed"}},
		"a reference into an alternative": {`{"properties":{"a":{"not":{"type":"string"}},"b":{"$ref":"#/properties/a/not"}}}`, `{"a":"c4n4ry","b":1}`, []string{"a: is what the schema rules out (not)", "b: must be a string, not a number"}},
		"dependencies with odd names":     {`{"dependencies":{"a/b":["x/y","~"],"":["c"]}}`, `{"a/b":1,"":1}`, []string{"c: is required because  is given", "x/y: is required because a/b is given", "~: is required because a/b is given"}},
		"names with a schema":             {`{"propertyNames":{"allOf":[{"minLength":2},{"pattern":"^x"}],"anyOf":[{"const":"xx"},{"const":"xy"}]}}`, `{"a":1,"xx":1}`, []string{"a: has a name that the schema does not allow (propertyNames)"}},
		"no names":                        {`{"propertyNames":false}`, `{"a":1}`, []string{"a: has a name that the schema does not allow (propertyNames)"}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, parse(t, tc.schema).Validate(decode(t, tc.values))); d != "" {
				t.Error(d)
			}
		})
	}
}

// The validator leaves empty keys out of locations.
func TestEmptyKeysAreInThePath(t *testing.T) {
	for name, tc := range map[string]struct {
		schema, values string
		want           []string
	}{
		"by property":              {`{"properties":{"":{"type":"string"},"a":{"properties":{"":{"properties":{"b":{"type":"string"}}}}}}}`, `{"":1,"a":{"":{"b":1}}}`, []string{": must be a string, not a number", "a..b: must be a string, not a number"}},
		"by name":                  {`{"propertyNames":{"minLength":1}}`, `{"":1}`, []string{": has a name that the schema does not allow (propertyNames)"}},
		"among others of its name": {`{"additionalProperties":{"properties":{"a":{"type":"string"}}}}`, `{"":{"a":1},"a":true}`, []string{".a: must be a string, not a number"}},
		"in lists":                 {`{"patternProperties":{"":{"items":{"additionalProperties":{"items":[{"type":"string"}]}}}}}`, `{"":[{},{"":[1]}]}`, []string{"[1].[0]: must be a string, not a number"}},
		"an unknown one":           {`{"properties":{"":{"additionalProperties":false}}}`, `{"":{"":1}}`, []string{".: is not known to the schema (additionalProperties)"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := parse(t, tc.schema).Validate(decode(t, tc.values))
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
		})
	}
	s := parse(t, `{"additionalProperties":{"$ref":"#"},"type":"object"}`)
	v := map[string]any{"a": true}
	for range 150 {
		v = map[string]any{"": v, "a": map[string]any{}}
	}
	if got := s.Validate(v); len(got) != 1 || !strings.HasSuffix(got[0], ".a: must be an object, not a boolean") {
		t.Errorf("%q", got)
	}
}

// What the validator writes for a problem is paid for: a message holds the constant, the pattern, the names
// and all locations, none of which is looked at.
func TestHostileMessagesEnd(t *testing.T) {
	t.Parallel()
	many := func(n int, v any) []any { return slices.Repeat([]any{v}, n) }
	names := make([]string, 20_000)
	for i := range names {
		names[i] = fmt.Sprintf(`"p%d"`, i)
	}
	list := strings.Join(names, ",")
	long := strings.Repeat("k", 1<<20)
	deep := strings.Repeat(`{"properties":{"x":`, 95) + `{"properties":{` + strings.Join(names[:4800], `:{"type":"strin"},`) + `:true}}` + strings.Repeat(`}}`, 95)
	for name, tc := range map[string]struct {
		schema string
		values map[string]any
	}{
		"a long constant":            {`{"properties":{"x":{"items":{"const":"` + strings.Repeat("z", 200_000) + `"}}}}`, map[string]any{"x": many(20_000, "c4n4ry")}},
		"a long pattern":             {`{"properties":{"x":{"items":{"pattern":"` + strings.Repeat("z", 9_000) + `"}}}}`, map[string]any{"x": many(20_000, "c4n4ry")}},
		"many names that are absent": {`{"properties":{"x":{"items":{"required":[` + list + `]}}}}`, map[string]any{"x": many(20_000, map[string]any{})}},
		"many that depend":           {`{"properties":{"x":{"items":{"dependencies":{"a":[` + list + `]}}}}}`, map[string]any{"x": many(20_000, map[string]any{"a": nil})}},
		"a long key":                 {`{"additionalProperties":{"items":{"type":"null"}}}`, map[string]any{long: many(20_000, "c4n4ry")}},
		"a long text":                {`{"items":{},"properties":{"x":{"items":{"format":"uri"}}}}`, map[string]any{"x": many(1_000, long)}},
		"long names in the schema":   {`{"properties":{"` + strings.Repeat("n", 100_000) + `":{"properties":{` + strings.Join(names[:4900], `:{"type":"string"},`) + `:true}}}}`, nil},
		"problems at the bottom":     {deep, nil},
		"deep and in place": {`{"definitions":{"d0":{"allOf":[{"$ref":"#/definitions/d1"}]},"d1":{"allOf":[{"anyOf":[{"type":"null"},{"properties":{"x":{"$ref":"#/definitions/d0"}},"required":["y"]}]}]}},"$ref":"#/definitions/d0"}`,
			nested(190)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := Parse([]byte(tc.schema))
			if err != nil {
				t.Logf("%.200v", err)
				return
			}
			s.meter.budget /= 20
			got := s.Validate(tc.values)
			if len(got) == 0 && tc.values != nil {
				t.Error("nothing found")
			}
			if strings.Contains(strings.Join(got, ""), "c4n4ry") {
				t.Errorf("quotes a value: %.200q", got)
			}
			bytes := 0
			for _, in := range s.Inputs() {
				bytes += len(in.Path)
			}
			if bytes > 20<<20 {
				t.Errorf("%d bytes of paths", bytes)
			}
		})
	}
}

// A list as long as an installation may hold is no attack.
func TestLargeValuesAreValidated(t *testing.T) {
	item := map[string]any{"name": "x", "url": "https://example.org/", "port": int64(1), "tags": []any{"a", "b"}, "on": true}
	s := parse(t, `{"properties":{"l":{"type":"array","items":{"$ref":"#/definitions/i"}}},"definitions":{"i":{"type":"object","required":["name","url"],"additionalProperties":false,"properties":{
		"name":{"type":"string","pattern":"^[a-z]+$","minLength":1},"url":{"type":"string","format":"uri"},"port":{"anyOf":[{"type":"integer","maximum":65535},{"type":"null"}]},
		"tags":{"type":"array","uniqueItems":true,"items":{"enum":["a","b"]}},"on":{"type":"boolean"}}}}}`)
	if got := s.Validate(map[string]any{"l": slices.Repeat([]any{item}, 5_000)}); got != nil {
		t.Errorf("%q", got)
	}
}
