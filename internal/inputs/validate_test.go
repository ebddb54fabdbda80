package inputs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestValidateSaysWhereAndWhichKeyword(t *testing.T) {
	for name, tc := range map[string]struct {
		schema, values string
		want           []string
	}{
		"the contract's schema, nothing given": {contractSchema, `{}`, []string{"config: is required", "database: is required"}},
		"all problems at once, sorted": {contractSchema, `{"database":{},"config":{"key":7},"worker":{"replicas":9,"logLevel":"c4n4ry"}}`, []string{
			"config.key: must be a string, not a number",
			"database.url: is required",
			"worker.logLevel: is none of the values the schema lists (enum)",
			"worker.replicas: must be at most 4",
		}},
		"an empty string is not enough": {contractSchema, `{"database":{"url":""},"config":{"key":""}}`, []string{"database.url: must not be empty"}},
		"keywords of strings": {`{"properties":{"p":{"pattern":"^x$"},"f":{"format":"email"},"c":{"const":"x"},"l":{"minLength":3},"m":{"maxLength":1},"both":{"format":"ipv4","allOf":[{"minLength":100}]}}}`,
			`{"p":"c4n4ry","f":"c4n4ry","c":"c4n4ry","l":"c4","m":"c4n4ry","both":"c4n4ry"}`, []string{
				"both: does not have the format the schema asks for (format)",
				"both: must be at least 100 characters long",
				"c: is not the value the schema fixes (const)",
				"f: does not have the format the schema asks for (format)",
				"l: must be at least 3 characters long",
				"m: must be at most 1 character long",
				"p: does not match the pattern the schema asks for (pattern)",
			}},
		"keywords of numbers": {`{"properties":{"a":{"minimum":5},"b":{"exclusiveMaximum":0.5},"c":{"multipleOf":0.01},"d":{"type":"integer"},"e":{"exclusiveMinimum":2},"f":{"multipleOf":0.1}}}`,
			`{"a":4.5,"b":0.5,"c":0.005,"d":1.5,"e":2,"f":0.3}`, []string{
				"a: must be at least 5", "b: must be less than 0.5", "c: must be a multiple of 0.01",
				"d: must be an integer, not a number", "e: must be more than 2",
			}},
		"integral numbers are integers":  {`{"properties":{"a":{"type":"integer"},"b":{"type":"integer"}}}`, `{"a":2.0,"b":1e3}`, nil},
		"large integers are exact":       {`{"properties":{"a":{"maximum":9007199254740992},"b":{"const":9007199254740993}}}`, `{"a":9007199254740993,"b":9007199254740992}`, []string{"a: must be at most 9007199254740992", "b: is not the value the schema fixes (const)"}},
		"keywords of arrays":             {`{"properties":{"a":{"minItems":1},"b":{"maxItems":1},"c":{"uniqueItems":true},"d":{"contains":{"const":1}},"e":{"items":[true],"additionalItems":false},"f":{"items":{"type":"string"}}}}`, `{"a":[],"b":[1,2],"c":["c4n4ry","c4n4ry"],"d":[2],"e":[1,2],"f":["x",1,{}]}`, []string{"a: must have at least 1 item", "b: must have at most 1 item", "c: has an item twice (uniqueItems)", "d: lacks an item that the schema asks for (contains)", "e: has more items than the schema allows (additionalItems)", "f[1]: must be a string, not a number", "f[2]: must be a string, not an object"}},
		"keywords of objects":            {`{"additionalProperties":false,"properties":{"a":{"minProperties":1},"b":{"propertyNames":{"pattern":"^x"}},"c":{"dependencies":{"p":["q"]}},"d":{"maxProperties":1}}}`, `{"a":{},"b":{"y":1},"c":{"p":1},"d":{"1":1,"2":2},"other":1}`, []string{"a: must have at least 1 key", "b.y: has a name that the schema does not allow (propertyNames)", "c.q: is required because p is given", "d: must have at most 1 key", "other: is not known to the schema (additionalProperties)"}},
		"what is forbidden":              {`{"properties":{"a":false,"b":{"not":{"type":"string"}}}}`, `{"a":1,"b":"c4n4ry"}`, []string{"a: is not allowed", "b: is what the schema rules out (not)"}},
		"allOf is flattened":             {`{"allOf":[{"required":["a"]},{"allOf":[{"required":["b","a"]}]},{"$ref":"#/definitions/x"}],"definitions":{"x":{"required":["c"]}}}`, `{}`, []string{"a: is required", "b: is required", "c: is required"}},
		"if and then":                    {`{"if":{"properties":{"mode":{"const":"x"}},"required":["mode"]},"then":{"required":["url"]},"else":{"required":["n"]}}`, `{"mode":"x"}`, []string{"url: is required"}},
		"alternatives of types":          {`{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"integer"}]}}}`, `{"a":true}`, []string{"a: must be a string or an integer"}},
		"the alternative that was meant": {`{"properties":{"a":{"oneOf":[{"type":"string"},{"type":"object","required":["name"]}]}}}`, `{"a":{}}`, []string{"a.name: is required"}},
		"told apart by a fixed value":    {`{"oneOf":[{"properties":{"kind":{"const":"a"}},"required":["x"]},{"properties":{"kind":{"const":"b"}},"required":["y"]}]}`, `{"kind":"b"}`, []string{"y: is required"}},
		"one of several is required":     {`{"anyOf":[{"required":["b"]},{"required":["a"]}]}`, `{}`, []string{"values: one of a, b is required (anyOf)"}},
		"no alternative":                 {`{"properties":{"a":{"type":"string","oneOf":[{"pattern":"^a"},{"minLength":9}]}}}`, `{"a":"c4n4ry"}`, []string{"a: matches none of the forms the schema allows (oneOf)"}},
		"too many alternatives":          {`{"properties":{"a":{"oneOf":[{"type":"string"},{"minLength":1}]}}}`, `{"a":"c4n4ry"}`, []string{"a: matches more than one of the forms the schema allows (oneOf)"}},
		"beside $ref nothing counts":     {`{"properties":{"a":{"$ref":"#/definitions/s","enum":["x"],"minLength":99,"properties":{"x":false},"if":true,"then":false}},"definitions":{"s":{"type":"string"}}}`, `{"a":"c4n4ry"}`, nil},
		"but what Helm heeds":            {`{"properties":{"a":{"$ref":"#/definitions/s","const":"x"},"b":{"$ref":"#/properties/b/definitions/s","const":"x","definitions":{"s":{"minLength":99}}}},"definitions":{"s":{"type":"string"}}}`, `{"a":"c4n4ry","b":"x"}`, []string{"a: is not the value the schema fixes (const)", "b: must be at least 99 characters long"}},
		"a schema inside itself":         {`{"properties":{"n":{"type":"string"},"c":{"$ref":"#"}}}`, `{"c":{"c":{"c":{"n":1}}}}`, []string{"c.c.c.n: must be a string, not a number"}},
		"another dialect is draft-07":    {`{"$schema":"https://json-schema.org/draft/2020-12/schema","items":[{"type":"string"}],"properties":{"a":{"items":[{"type":"string"}]},"b":{"dependentRequired":{"x":["y"]}}}}`, `{"a":[1],"b":{"x":1}}`, []string{"a[0]: must be a string, not a number"}},
		"a dialect nobody knows":         {`{"$schema":"https://example.org/my-dialect","required":["a"]}`, `{}`, []string{"a: is required"}},
		"the reserved key is left out":   {`{"additionalProperties":false,"properties":{"a":true}}`, `{"a":1,"zaentrum":{"hostname":"x"}}`, nil},
		"the reserved key, declared":     {`{"properties":{"zaentrum":{"required":["nope"]}}}`, `{"zaentrum":{"hostname":"x"}}`, []string{"zaentrum.nope: is required"}},
		"the reserved key, by reference": {`{"allOf":[{"$ref":"#/definitions/r"}],"definitions":{"r":{"properties":{"zaentrum":{"required":["nope"]}}}}}`, `{"zaentrum":{}}`, []string{"zaentrum.nope: is required"}},
		"null is a value":                {`{"properties":{"a":{"type":"string"}}}`, `{"a":null}`, []string{"a: must be a string, not null"}},
		"keys are fit for a line":        {`{"additionalProperties":false}`, `{"a\u001b[31m\nb\u202e":1}`, []string{"a[31mb: is not known to the schema (additionalProperties)"}},
		"long keys are cut":              {`{"additionalProperties":false}`, `{"` + strings.Repeat("k", 5000) + `":1}`, []string{strings.Repeat("k", 79) + "…: is not known to the schema (additionalProperties)"}},
		"no schema allows everything":    {``, `{"a":1}`, nil},
		"false allows nothing":           {`false`, `{}`, []string{"values: is not allowed"}},
		"names with odd characters":      {`{"properties":{"a/b~c%20d":{"properties":{"x":{"type":"string"}}},"r":{"$ref":"#/properties/a~1b~0c%2520d"}}}`, `{"a/b~c%20d":{"x":1},"r":{"x":1}}`, []string{"a/b~c%20d.x: must be a string, not a number", "r.x: must be a string, not a number"}},
	} {
		t.Run(name, func(t *testing.T) {
			values := decode(t, tc.values)
			got := parse(t, tc.schema).Validate(values)
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(decode(t, tc.values), values); d != "" {
				t.Errorf("the values changed: %s", d)
			}
			if strings.Contains(strings.Join(got, "\n"), "c4n4ry") {
				t.Errorf("a message quotes a value: %q", got)
			}
		})
	}
}

func TestValidateTakesEveryGoNumber(t *testing.T) {
	s := parse(t, `{"properties":{"a":{"type":"integer","minimum":3}}}`)
	for _, v := range []any{int(3), int32(3), int64(3), uint32(3), uint64(3), float32(3), float64(3)} {
		if got := s.Validate(map[string]any{"a": v}); got != nil {
			t.Errorf("%T: %q", v, got)
		}
	}
	for _, v := range []any{int64(2), float64(2), 3.5} {
		if got := s.Validate(map[string]any{"a": v}); len(got) != 1 {
			t.Errorf("%T: %q", v, got)
		}
	}
	if got := s.Validate(map[string]any{"a": []string{"x"}}); len(got) != 1 || got[0] != "a: is not a JSON value" {
		t.Errorf("%q", got)
	}
}

func TestANilSchemaAllowsEverything(t *testing.T) {
	var s *Schema
	if s.Validate(map[string]any{"a": 1}) != nil || s.Inputs() != nil || s.Groups() != nil || s.Warnings() != nil || s.DeclaresPlatform() {
		t.Error("a nil schema asks for something")
	}
}
