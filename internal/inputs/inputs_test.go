package inputs

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"zaentrum.io/zae/internal/fault"
)

const contractSchema = `{
  "$schema": "http://json-schema.org/draft-07/schema#",
  "type": "object",
  "required": ["database", "config"],
  "properties": {
    "database": {
      "type": "object", "title": "Database", "required": ["url"],
      "properties": {
        "url": {"type": "string", "title": "Connection URL", "description": "postgres://…", "minLength": 1, "writeOnly": true}
      }
    },
    "config": {
      "type": "object", "required": ["key"],
      "properties": {
        "key": {"type": "string", "title": "Settings encryption key", "writeOnly": true, "x-zaentrum-generate": "random-base64-32"}
      }
    },
    "worker": {
      "type": "object", "title": "Worker",
      "properties": {
        "replicas": {"type": "integer", "title": "Replicas", "default": 1, "minimum": 0, "maximum": 4},
        "logLevel": {"type": "string", "title": "Log level", "enum": ["debug", "info", "warn"], "default": "info"}
      }
    }
  }
}`

func parse(t testing.TB, text string) *Schema {
	t.Helper()
	s, err := Parse([]byte(text))
	if err != nil {
		t.Fatalf("%v", err)
	}
	return s
}

func decode(t testing.TB, text string) map[string]any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var m map[string]any
	if err := dec.Decode(&m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestInputsOfTheContractsSchema(t *testing.T) {
	s := parse(t, contractSchema)
	want := []Input{
		{Path: "database.url", Group: "database", Type: "string", Title: "Connection URL", Description: "postgres://…", Required: true, RequiredInGroup: true, Secret: true, MinLength: "1"},
		{Path: "config.key", Group: "config", Type: "string", Title: "Settings encryption key", Required: true, RequiredInGroup: true, Secret: true, Generate: GenerateBase64},
		{Path: "worker.replicas", Group: "worker", Type: "integer", Title: "Replicas", Default: int64(1), Minimum: "0", Maximum: "4"},
		{Path: "worker.logLevel", Group: "worker", Type: "string", Title: "Log level", Default: "info", Enum: []any{"debug", "info", "warn"}},
	}
	if d := cmp.Diff(want, s.Inputs()); d != "" {
		t.Error(d)
	}
	groups := []Group{{Path: "database", Title: "Database", Required: true}, {Path: "config", Required: true}, {Path: "worker", Title: "Worker"}}
	if d := cmp.Diff(groups, s.Groups()); d != "" {
		t.Error(d)
	}
}

// brief is an input in few words: path:type and marks.
func brief(in Input) string {
	out := in.Path + ":" + in.Type
	for _, mark := range []struct {
		on   bool
		text string
	}{
		{in.Required, "!"}, {!in.Required && in.RequiredInGroup, "?"}, {in.Secret, "*"}, {in.HoldsSecrets, "+"},
		{in.Conditional, "~"}, {in.Unaddressable, "#"}, {in.Generate != "", "="},
	} {
		if mark.on {
			out += mark.text
		}
	}
	return out
}

func TestInputs(t *testing.T) {
	for name, tc := range map[string]struct {
		schema string
		want   string // briefs, separated by blanks
	}{
		"no schema asks for nothing":      {``, ""},
		"true asks for nothing":           {`true`, ""},
		"the order is the document's":     {`{"properties":{"z":{"type":"string"},"a":{"type":"string"},"m":{"properties":{"y":{"type":"number"},"b":{"type":"boolean"}}}}}`, "z:string a:string m.y:number m.b:boolean"},
		"arrays and maps are JSON":        {`{"properties":{"l":{"type":"array","items":{"type":"string"}},"m":{"type":"object","additionalProperties":{"type":"string"}},"e":{"type":"object"},"n":{},"t":true}}`, "l:json m:json e:json n:json t:json"},
		"what is forbidden is no input":   {`{"properties":{"f":false,"g":{"type":"object","properties":{"x":false}},"s":{"type":"string"}}}`, "g:json s:string"},
		"alternatives are one JSON input": {`{"properties":{"a":{"oneOf":[{"type":"string"},{"type":"integer"}]},"b":{"anyOf":[{"properties":{"x":{"type":"string"}}}]}}}`, "a:json b:json"},
		"alternatives of one type are it": {`{"properties":{"a":{"type":"string","anyOf":[{"pattern":"^a"},{"pattern":"^b"}]}}}`, "a:string"},
		"several types are JSON":          {`{"properties":{"a":{"type":["string","integer"]},"b":{"type":["string","null"]},"c":{"type":["integer","number"]}}}`, "a:json b:string c:number"},
		"an enum gives the type":          {`{"properties":{"a":{"enum":["x","y"]},"b":{"enum":[1,2]},"c":{"const":true},"d":{"enum":[1,"x"]}}}`, "a:string b:integer c:boolean d:json"},
		"references are followed":         {`{"properties":{"a":{"$ref":"#/definitions/s"},"b":{"$ref":"#n"},"c":{"$ref":"#/$defs/x%20y"},"d":{"$ref":"#/definitions/again"}},"definitions":{"s":{"type":"string","writeOnly":true},"i":{"$id":"#n","type":"integer"},"again":{"$ref":"#/definitions/s"}},"$defs":{"x y":{"type":"boolean"}}}`, "a:string* b:integer c:boolean d:string*"},
		"what stands beside $ref is none": {`{"properties":{"a":{"$ref":"#/definitions/s","writeOnly":true,"type":"integer"}},"definitions":{"s":{"type":"string"}}}`, "a:string"},
		"allOf is merged":                 {`{"allOf":[{"properties":{"b":{"type":"string"}},"required":["b","a"]},{"$ref":"#/definitions/r"}],"properties":{"a":{"type":"string"}},"definitions":{"r":{"properties":{"c":{"type":"string"},"a":{"writeOnly":true}}}}}`, "a:string!* b:string! c:string"},
		"allOf on a value is merged":      {`{"properties":{"a":{"allOf":[{"type":"number"},{"type":"integer"},{"writeOnly":true}]}}}`, "a:integer*"},
		"required needs every group":      {`{"required":["g"],"properties":{"g":{"required":["a"],"properties":{"a":{"type":"string"},"h":{"required":["b"],"properties":{"b":{"type":"string"}}}}}}}`, "g.a:string! g.h.b:string?"},
		"a secret group makes secrets":    {`{"properties":{"g":{"writeOnly":true,"properties":{"a":{"type":"string"}}}}}`, "g.a:string*"},
		"secrets inside JSON are told":    {`{"properties":{"l":{"type":"array","items":{"properties":{"p":{"$ref":"#/definitions/p"}}}},"m":{"type":"array"}},"definitions":{"p":{"type":"string","writeOnly":true}}}`, "l:json+ m:json"},
		"alternatives' properties are told": {`{"properties":{"mode":{"type":"string"},"pw":{"type":"string"}},"if":{"properties":{"mode":{"const":"x"}}},"then":{"required":["url"],"properties":{"url":{"type":"string","writeOnly":true},"pw":{"writeOnly":true}}},"oneOf":[{"properties":{"k":{"type":"integer"}}},{"properties":{"k":{"type":"string"}}}]}`,
			"mode:string pw:string* k:json~ url:string*~"},
		"a schema inside itself ends":         {`{"properties":{"name":{"type":"string"},"child":{"$ref":"#"}}}`, "name:string child:json"},
		"generated inputs":                    {`{"properties":{"k":{"x-zaentrum-generate":"random-hex-32"}}}`, "k:string="},
		"odd names are told":                  {`{"properties":{"a.b":{"type":"string"},"":{"type":"string"},"g":{"properties":{"x.y":{"type":"string"}}}}}`, "a.b:string# :string# g.x.y:string#"},
		"the platform's block is no input":    {`{"properties":{"zaentrum":{"type":"object","properties":{"hostname":{"type":"string"}}},"a":{"type":"string"}}}`, "a:string"},
		"nested $id moves the base":           {`{"properties":{"a":{"$id":"http://other/","properties":{"b":{"$ref":"#/definitions/x"}},"definitions":{"x":{"type":"integer"}}}},"definitions":{"x":{"type":"string"}}}`, "a.b:integer"},
		"another dialect is read as draft-07": {`{"$schema":"https://json-schema.org/draft/2020-12/schema","properties":{"a":{"$ref":"#/definitions/s","writeOnly":true}},"definitions":{"s":{"type":"string"}}}`, "a:string"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, in := range parse(t, tc.schema).Inputs() {
				got = append(got, brief(in))
			}
			if d := cmp.Diff(tc.want, strings.Join(got, " ")); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestDefaultsAndEnumsKeepTheirTypes(t *testing.T) {
	s := parse(t, `{"properties":{
		"i":{"type":"integer","default":10737418240,"enum":[1,10737418240]},
		"n":{"type":"number","default":0.5},
		"e":{"type":"number","default":1e2},
		"huge":{"type":"number","default":1e399},
		"b":{"type":"boolean","default":false},
		"l":{"type":"array","default":[1,"x",{"a":null}]},
		"both":{"allOf":[{"enum":["a","b"]},{"enum":["b","c"]}]},
		"secret":{"type":"string","writeOnly":true,"default":"c4n4ry"}
	}}`)
	want := map[string][2]any{
		"i": {int64(10737418240), []any{int64(1), int64(10737418240)}}, "n": {0.5, []any(nil)}, "e": {int64(100), []any(nil)},
		"huge": {math.MaxFloat64, []any(nil)}, "b": {false, []any(nil)},
		"l": {[]any{int64(1), "x", map[string]any{"a": nil}}, []any(nil)}, "both": {nil, []any{"b"}}, "secret": {nil, []any(nil)},
	}
	got := map[string][2]any{}
	for _, in := range s.Inputs() {
		got[in.Path] = [2]any{in.Default, in.Enum}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if _, err := json.Marshal(s.Inputs()); err != nil {
		t.Error(err)
	}
	if in, ok := s.Input("n"); !ok || in.Type != TypeNumber {
		t.Errorf("%+v", in)
	}
	if _, ok := s.Input("nope"); ok {
		t.Error("an input that is none is found")
	}
}

func TestParseRefuses(t *testing.T) {
	const canary = "c4n4ry"
	deep := strings.Repeat(`{"not":`, 5000) + "true" + strings.Repeat("}", 5000)
	var doubling, chain strings.Builder
	for i := range 300 {
		fmt.Fprintf(&doubling, `"d%d":{"allOf":[{"$ref":"#/definitions/d%d"},{"$ref":"#/definitions/d%d"}]},`, i, i+1, i+1)
	}
	for i := range 3000 {
		fmt.Fprintf(&chain, `"d%d":{"$ref":"#/definitions/d%d"},`, i, i+1)
	}
	for name, tc := range map[string]struct{ schema, want string }{
		"a file":                           {`{"properties":{"a":{"$ref":"file:///etc/passwd"}}}`, "#/properties/a: $ref leads to another document"},
		"an address":                       {`{"$ref":"http://169.254.169.254/latest"}`, "$ref leads to another document"},
		"a relative reference":             {`{"$ref":"other.json#/x"}`, "$ref leads to another document"},
		"an address hidden behind an $id":  {`{"$id":"http://example.org/","items":{"$ref":"x#/y"}}`, "#/items: $ref leads to another document"},
		"a reference without an end":       {`{"$ref":"#/definitions/nope"}`, "$ref leads nowhere"},
		"a name that nobody has":           {`{"$ref":"#nope"}`, "$ref leads nowhere"},
		"a reference to itself":            {`{"properties":{"a":{"$ref":"#/properties/a"}}}`, "$ref leads back to itself"},
		"a reference to a string":          {`{"title":"` + canary + `","items":{"$ref":"#/title"}}`, "no schema"},
		"a reference that is no string":    {`{"items":{"$ref":1}}`, "$ref is not a string"},
		"allOf itself":                     {`{"allOf":[{"$ref":"#"}]}`, "without end"},
		"bad JSON":                         {"{\n\"a\": " + canary + "}", "line 2: not valid JSON"},
		"text after the document":          {`{} {}`, "not valid JSON"},
		"a type that is none":              {`{"properties":{"a":{"type":"` + canary + `"}}}`, "#/properties/a/type"},
		"a bad pattern":                    {`{"properties":{"a":{"pattern":"(` + canary + `"}}}`, "#/properties/a/pattern"},
		"a pattern that explodes":          {`{"pattern":"((x{100}){100}){10}"}`, "pattern"},
		"a list as schema":                 {`[]`, "draft-07"},
		"too deep":                         {deep, "nested deeper than 200 levels"},
		"a number without bound":           {`{"minimum":1e900000}`, "too many digits"},
		"too large":                        {`{"title":"` + strings.Repeat("x", MaxSchemaBytes) + `"}`, "256 KiB"},
		"an unknown generator":             {`{"properties":{"a":{"type":"string","x-zaentrum-generate":"` + canary + `"}}}`, "#/properties/a/x-zaentrum-generate: names no generator"},
		"a generated number":               {`{"properties":{"a":{"type":"integer","x-zaentrum-generate":"random-hex-32"}}}`, "makes a string"},
		"a generated key with a space":     {`{"properties":{"g":{"type":"object","properties":{"my key":{"type":"string","x-zaentrum-generate":"random-hex-32"}}}}}`, "#/properties/g/properties/my key/x-zaentrum-generate: the generated value is kept in a Secret, and g.my key is no key of one: keep property names to letters, digits, _ and -"},
		"a generated key that is no ASCII": {`{"properties":{"ключ":{"type":"string","x-zaentrum-generate":"random-hex-32"}}}`, "ключ is no key of one"},
		"a generated key that is too long": {`{"properties":{"` + strings.Repeat("k", 251) + `":{"type":"string","x-zaentrum-generate":"random-hex-32"}}}`, "and the path to 250 characters"},
		"schemas nested by reference":      {`{` + `"definitions":{` + doubling.String() + `"d300":true},"$ref":"#/definitions/d0"}`, "more than 100 schemas"},
		"more schemas than one can want":   {`{"definitions":{` + strings.TrimSuffix(strings.Repeat(`"x":{},`, 1), ",") + `},"items":[` + strings.TrimSuffix(strings.Repeat(`true,`, 5_001), ",") + `]}`, "more than 5000 schemas"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(tc.schema))
			if err == nil {
				t.Fatal("accepted")
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %q, want %q in it", err, tc.want)
			}
			if fault.CodeOf(err) != fault.Chart {
				t.Errorf("code %s", fault.CodeOf(err))
			}
			if strings.Contains(err.Error(), canary) || strings.Contains(fault.From(err).Hint, canary) {
				t.Errorf("quotes the schema: %v", err)
			}
		})
	}
	parse(t, `{"properties":{"A_z-09":{"type":"object","properties":{"`+strings.Repeat("k", 243)+`":{"type":"string","x-zaentrum-generate":"random-hex-32"}}}}}`)
	parse(t, `{"definitions":{`+chain.String()+`"d3000":{"type":"string"}},"properties":{"a":{"$ref":"#/definitions/d0"}}}`)
}
