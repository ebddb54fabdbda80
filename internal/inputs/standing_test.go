package inputs

import (
	"strings"
	"testing"
)

func TestStanding(t *testing.T) {
	const group = `{"properties":{"g":{"type":"object","properties":{"a":{"type":"string"},"m":{"type":"object"},"h":{"type":"object","properties":{"b":{"type":"string"}},"additionalProperties":true}}},"zaentrum":{"type":"object"},"no":false}}`
	for rule, tc := range map[string]struct {
		schema, path string
		want         Standing
	}{
		"an input":                                {group, "g.a", OfInput},
		"a group":                                 {group, "g", OfGroup},
		"a map is one input":                      {group, "g.m", OfInput},
		"inside a map":                            {group, "g.m.x.y", InsideInput},
		"a slip in a group":                       {group, "g.aa", Undeclared},
		"below a string":                          {group, "g.a.x", Undeclared},
		"beside the groups":                       {group, "a", Undeclared},
		"a group that takes more":                 {group, "g.h.c.d", Allowed},
		"its inputs are declared":                 {group, "g.h.b", OfInput},
		"another group is not it":                 {group, "h.c", Undeclared},
		"the platform's own":                      {group, "zaentrum.hostname", Undeclared},
		"what is forbidden":                       {group, "no", Undeclared},
		"a root that takes more":                  {`{"properties":{"a":{}},"additionalProperties":{"type":"string"}}`, "b", Allowed},
		"a pattern takes more":                    {`{"properties":{"a":{}},"patternProperties":{"^x-":{}}}`, "x-b", Allowed},
		"one schema of several that is closed":    {`{"properties":{"a":{}},"additionalProperties":true,"allOf":[{"additionalProperties":false}]}`, "b", Undeclared},
		"more in the root is not more in a group": {`{"properties":{"g":{"type":"object","properties":{"a":{"type":"string"}}}},"additionalProperties":true}`, "g.b", Undeclared},
		"only in an alternative":                  {`{"properties":{"a":{}},"anyOf":[{"properties":{"b":{"type":"string"}}}]}`, "b", OfInput},
		"by reference":                            {`{"properties":{"g":{"$ref":"#/definitions/g"}},"definitions":{"g":{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":true}}}`, "g.b", Allowed},
		"no inputs at all":                        {`{}`, "a.b", Allowed},
		"a key with a dot is another":             {`{"properties":{"a.b":{"type":"string"}}}`, "a.b", Undeclared},
	} {
		t.Run(rule, func(t *testing.T) {
			for how, read := range map[string]func([]byte) (*Schema, error){"Parse": Parse, "Describe": Describe} {
				s, err := read([]byte(tc.schema))
				if err != nil {
					t.Fatal(err)
				}
				if got := s.Standing(strings.Split(tc.path, ".")); got != tc.want {
					t.Errorf("%s: got %d, want %d", how, got, tc.want)
				}
			}
		})
	}
	if (*Schema)(nil).Standing([]string{"a"}) != Allowed {
		t.Error("no schema forbids something")
	}
}
