package inputs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPlainSecrets(t *testing.T) {
	const s = `{"type":"string","writeOnly":true}`
	const pair = `{"properties":{"user":{"type":"string"},"password":` + s + `}}`
	const kinds = `{"properties":{"l":{"type":"array","items":{"properties":{"kind":{"type":"string"},"v":{"type":"string"}},"if":{"required":["kind"],"properties":{"kind":{"const":"secret"}}},"then":{"properties":{"v":{"writeOnly":true}}}}}}}`
	const tree = `{"properties":{"t":{"$ref":"#/definitions/t"}},"definitions":{"t":{"properties":{"key":` + s + `,"sub":{"type":"array","items":{"$ref":"#/definitions/t"}}}}}}`
	for rule, tc := range map[string]struct{ schema, values, want string }{
		"an input":                            {`{"properties":{"d":{"type":"object","properties":{"url":` + s + `}}}}`, `{"d":{"url":"c4n4ry"}}`, "d.url"},
		"an input, given as nothing":          {`{"properties":{"a":` + s + `}}`, `{"a":""}`, "a"},
		"an input, given as null":             {`{"properties":{"a":` + s + `}}`, `{"a":null}`, ""},
		"an input, not given":                 {`{"properties":{"a":` + s + `}}`, `{"b":"x"}`, ""},
		"in a list":                           {`{"properties":{"users":{"type":"array","items":` + pair + `}}}`, `{"users":[{"user":"a","password":"c4n4ry"},{"user":"b"},{"password":null},{"password":"c4n4ry"}]}`, "users[0].password users[3].password"},
		"in a list of lists":                  {`{"properties":{"l":{"items":{"items":` + s + `}}}}`, `{"l":[["c4n4ry"],[],["x","c4n4ry"]]}`, "l[0][0] l[2][0] l[2][1]"},
		"in items by place":                   {`{"properties":{"l":{"items":[true,` + s + `],"additionalItems":` + s + `}}}`, `{"l":["x","c4n4ry","c4n4ry"]}`, "l[1] l[2]"},
		"in a map":                            {`{"properties":{"m":{"type":"object","additionalProperties":` + s + `}}}`, `{"m":{"b":"c4n4ry","a":"c4n4ry"}}`, "m.a m.b"},
		"in a map beside fixed keys":          {`{"properties":{"m":{"properties":{"port":{"type":"integer"}},"additionalProperties":` + s + `}}}`, `{"m":{"port":1,"a":"c4n4ry"}}`, "m.a"},
		"in a map beside a pattern":           {`{"properties":{"m":{"patternProperties":{"^x-":true},"additionalProperties":` + s + `}}}`, `{"m":{"x-a":"x","y":"c4n4ry"}}`, "m.y"},
		"by a pattern":                        {`{"properties":{"m":{"patternProperties":{"_KEY$":` + s + `}}}}`, `{"m":{"A_KEY":"c4n4ry","A_KEY_ID":"x"}}`, "m.A_KEY"},
		"under a name with a dot":             {`{"properties":{"d.t":` + s + `,"e.f":{"type":"object","properties":{"g":` + s + `}}}}`, `{"d.t":"c4n4ry","e.f":{"g":"c4n4ry"}}`, "d.t e.f.g"},
		"at the root":                         {`{"additionalProperties":` + s + `}`, `{"a":"c4n4ry","zaentrum":{"partOf":"x"}}`, "a"},
		"all of a group":                      {`{"properties":{"g":{"type":"object","writeOnly":true,"properties":{"a":{"type":"string"}}}}}`, `{"g":{"a":"c4n4ry","b":{"c":"c4n4ry"}}}`, "g.a g.b.c"},
		"a list that is secret":               {`{"properties":{"l":{"type":"array","writeOnly":true,"items":{"type":"string"}}}}`, `{"l":["c4n4ry"]}`, "l"},
		"by reference":                        {`{"properties":{"l":{"items":{"$ref":"#/definitions/p"}}},"definitions":{"p":{"$ref":"#/definitions/q"},"q":` + pair + `}}`, `{"l":[{"password":"c4n4ry"}]}`, "l[0].password"},
		"in allOf":                            {`{"properties":{"l":{"items":{"allOf":[` + pair + `,{"required":["user"]}]}}}}`, `{"l":[{"password":"c4n4ry"}]}`, "l[0].password"},
		"beside $ref it counts for nothing":   {`{"properties":{"l":{"items":{"$ref":"#/definitions/p","writeOnly":true}}},"definitions":{"p":{"type":"string"}}}`, `{"l":["x"]}`, ""},
		"in definitions it counts for none":   {`{"definitions":{"p":` + s + `},"properties":{"l":{"items":{"type":"string"}}}}`, `{"l":["x"],"p":"x"}`, ""},
		"of alternatives, one by type":        {`{"properties":{"l":{"items":{"oneOf":[{"type":"string"},` + pair + `]}}}}`, `{"l":["x",{"password":"c4n4ry"}]}`, "l[1].password"},
		"of alternatives, the refused is not": {`{"properties":{"l":{"items":{"anyOf":[{"type":"integer","writeOnly":true},{"type":"string"}]}}}}`, `{"l":["x",1]}`, "l[1]"},
		"of alternatives, by required":        {`{"properties":{"l":{"items":{"oneOf":[{"required":["token"],"properties":{"v":` + s + `}},{"required":["v"]}]}}}}`, `{"l":[{"v":"x"},{"token":"y","v":"c4n4ry"}]}`, "l[1].v"},
		"of alternatives, by enum":            {`{"properties":{"l":{"items":{"oneOf":[{"properties":{"k":{"enum":["a","b"]},"v":` + s + `}},true]}}}}`, `{"l":[{"k":"a","v":"c4n4ry"},{"k":"c","v":"x"}]}`, "l[0].v"},
		"by a condition":                      {kinds, `{"l":[{"kind":"secret","v":"c4n4ry"},{"kind":"plain","v":"x"},{"v":"x"}]}`, "l[0].v"},
		"by the other side of a condition":    {`{"properties":{"l":{"items":{"if":{"properties":{"a":{"minimum":3}}},"then":true,"else":{"properties":{"b":` + s + `}}}}}}`, `{"l":[{"a":1,"b":"c4n4ry"}]}`, "l[0].b"},
		"by a dependency":                     {`{"properties":{"l":{"items":{"dependencies":{"a":{"properties":{"b":` + s + `}}}}}}}`, `{"l":[{"a":1,"b":"c4n4ry"},{"b":"x"}]}`, "l[0].b"},
		"a schema that contains itself":       {tree, `{"t":{"key":"c4n4ry","sub":[{"key":"c4n4ry"},{"sub":[{"key":"c4n4ry"}]}]}}`, "t.key t.sub[0].key t.sub[1].sub[0].key"},
		"no secret at all":                    {`{"properties":{"a":{"type":"string"}}}`, `{"a":"x"}`, ""},
		"a key with control characters":       {`{"additionalProperties":` + s + `}`, `{"a\u001b[2Jb":"c4n4ry"}`, "a[2Jb"},
	} {
		t.Run(rule, func(t *testing.T) {
			values := decode(t, tc.values)
			got := parse(t, tc.schema).PlainSecrets(values)
			if d := cmp.Diff(tc.want, strings.Join(got, " ")); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(decode(t, tc.values), values); d != "" {
				t.Errorf("the values changed: %s", d)
			}
			described, err := Describe([]byte(tc.schema))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(got, described.PlainSecrets(values)); d != "" {
				t.Errorf("described only, it tells otherwise: %s", d)
			}
			if strings.Contains(strings.Join(got, " "), "c4n4ry") {
				t.Error("a value is told")
			}
		})
	}
	if got := (*Schema)(nil).PlainSecrets(map[string]any{"a": "x"}); len(got) != 0 {
		t.Errorf("a nil schema has secrets: %v", got)
	}
}

// What does not end fails by the time limit of the test run.
func TestPlainSecretsOfHostileSchemasEnd(t *testing.T) {
	t.Parallel()
	list := func(n int, format func(i int) string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = format(i)
		}
		return strings.Join(parts, ",")
	}
	const secret = `{"type":"string","writeOnly":true}`
	deep := func(levels, wide int) map[string]any {
		leaves := map[string]any{}
		for i := range wide {
			leaves[fmt.Sprint("k", i)] = "c4n4ry"
		}
		m := leaves
		for range levels {
			m = map[string]any{strings.Repeat("x", 4000): m}
		}
		return m
	}
	many := make([]any, 20_000)
	for i := range many {
		many[i] = map[string]any{"a": "c4n4ry", "x": int64(1)}
	}
	for name, tc := range map[string]struct {
		schema string
		values map[string]any
	}{
		"itself twice with each level": {`{"patternProperties":{"x":{"$ref":"#"},"^x":{"$ref":"#"}},"properties":{"s":` + secret + `}}`, deep(150, 10)},
		"doubling on one value": {`{"definitions":{` + list(40, func(i int) string {
			return fmt.Sprintf(`"d%d":{"anyOf":[{"$ref":"#/definitions/d%d"},{"allOf":[{"$ref":"#/definitions/d%d"}]}]}`, i, i+1, i+1)
		}) + `,"d40":` + secret + `},"properties":{"l":{"items":{"$ref":"#/definitions/d0"}}}}`, map[string]any{"l": many}},
		"conditions inside conditions": {`{"definitions":{` + list(30, func(i int) string {
			return fmt.Sprintf(`"d%d":{"properties":{"x":{"allOf":[%s]}}}`, i, list(20, func(int) string { return fmt.Sprintf(`{"$ref":"#/definitions/d%d"}`, i+1) }))
		}) + `,"d30":` + secret + `},"properties":{"l":{"items":{"anyOf":[{"$ref":"#/definitions/d0"}]}}}}`, map[string]any{"l": []any{nested(40), nested(40)}}},
		"long keys around many secrets": {`{"writeOnly":true}`, deep(150, 20_000)},
		"many secrets":                  {`{"properties":{"l":{"items":{"additionalProperties":` + secret + `}}}}`, map[string]any{"l": many}},
		"many large patterns":           {`{"properties":{"l":{"items":{"patternProperties":{` + list(2000, func(i int) string { return fmt.Sprintf(`"(x{500}|%d)*$":%s`, i, secret) }) + `}}}}}`, map[string]any{"l": many}},
		"a pattern on a long name":      {`{"patternProperties":{"((a|b|ab){1,40}){1,40}$":` + secret + `}}`, map[string]any{strings.Repeat("ab", 400_000): "c4n4ry"}},
		"values without end":            {`{"additionalProperties":{"$ref":"#"},"writeOnly":true}`, nested(100_000)},
		"a large enum":                  {`{"properties":{"l":{"items":{"anyOf":[{"enum":[` + list(20_000, func(i int) string { return fmt.Sprint(`"`, i, `"`) }) + `]},` + `{"properties":{"a":` + secret + `}}]}}}}`, map[string]any{"l": many}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Describe([]byte(tc.schema))
			if err != nil {
				t.Fatal(err)
			}
			found := s.PlainSecrets(tc.values)
			if len(found) > maxPlain+maxInputs {
				t.Errorf("%d are told", len(found))
			}
			for _, path := range found {
				if len(path) > 4*maxShownPlace {
					t.Fatalf("a path of %d bytes", len(path))
				}
			}
		})
	}
}
