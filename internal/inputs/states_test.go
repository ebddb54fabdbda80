package inputs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRequiredWhen(t *testing.T) {
	for rule, tc := range map[string]struct{ schema, want string }{
		"if and then":                     {`{"properties":{"mode":{"type":"string"},"url":{"type":"string"}},"if":{"properties":{"mode":{"const":"external"}},"required":["mode"]},"then":{"required":["url"]}}`, "url: when mode is external"},
		"a nested condition":              {`{"properties":{"tls":{"type":"object","properties":{"enabled":{"type":"boolean"},"secret":{"type":"string"}}}},"if":{"required":["tls"],"properties":{"tls":{"required":["enabled"],"properties":{"enabled":{"const":true}}}}},"then":{"properties":{"tls":{"required":["secret"]}}}}`, "tls.secret: when tls.enabled is true"},
		"a condition inside a group":      {`{"properties":{"tls":{"type":"object","properties":{"enabled":{"type":"boolean"},"secret":{"type":"string"}},"if":{"properties":{"enabled":{"const":true}},"required":["enabled"]},"then":{"required":["secret"]}}}}`, "tls.secret: when tls.enabled is true"},
		"without required":                {`{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"if":{"properties":{"a":{"enum":["x","y"]}}},"then":{"required":["b"]}}`, "b: when a is x or y or not given"},
		"else":                            {`{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"if":{"properties":{"a":{"const":"x"}},"required":["a"]},"else":{"required":["b"]}}`, "b: when a is not x or not given"},
		"dependencies on a name":          {`{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"dependencies":{"a":["b"]}}`, "b: when a is given"},
		"a schema that depends":           {`{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"dependencies":{"a":{"required":["b"]}}}`, "b: when a is given"},
		"if it is given":                  {`{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"if":{"required":["a"]},"then":{"required":["b"]}}`, "b: when a is given"},
		"in allOf":                        {`{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"allOf":[{"if":{"properties":{"a":{"const":1}},"required":["a"]},"then":{"required":["b"]}},{"if":{"properties":{"a":{"const":null}},"required":["a"]},"then":{"required":["b"]}}]}`, "b: when a is 1 or when a is null"},
		"by reference":                    {`{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"if":{"$ref":"#/definitions/i"},"then":{"$ref":"#/definitions/t"},"definitions":{"i":{"properties":{"a":{"const":"x"}},"required":["a"]},"t":{"required":["b"]}}}`, "b: when a is x"},
		"a group that is required":        {`{"properties":{"on":{"type":"boolean"},"g":{"type":"object","required":["x"],"properties":{"x":{"type":"string"},"y":{"type":"string"}}}},"if":{"properties":{"on":{"const":true}},"required":["on"]},"then":{"required":["g"]}}`, "g.x: when on is true"},
		"an input of the alternative":     {`{"properties":{"on":{"type":"boolean"}},"if":{"properties":{"on":{"const":true}},"required":["on"]},"then":{"required":["x"],"properties":{"x":{"type":"string"}}}}`, "x: when on is true"},
		"required anyway":                 {`{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["b"],"dependencies":{"a":["b"]}}`, ""},
		"two properties are not simple":   {`{"properties":{"a":{},"b":{},"c":{}},"if":{"properties":{"a":{"const":1},"b":{"const":2}},"required":["a","b"]},"then":{"required":["c"]}}`, ""},
		"a pattern is not simple":         {`{"properties":{"a":{},"c":{}},"if":{"properties":{"a":{"pattern":"x"}},"required":["a"]},"then":{"required":["c"]}}`, ""},
		"not is not simple":               {`{"properties":{"a":{},"c":{}},"if":{"not":{"required":["a"]}},"then":{"required":["c"]}}`, ""},
		"an object is not simple":         {`{"properties":{"a":{},"c":{}},"if":{"properties":{"a":{"const":{}}},"required":["a"]},"then":{"required":["c"]}}`, ""},
		"half required is not simple":     {`{"properties":{"t":{"type":"object","properties":{"a":{"type":"string"}}},"c":{}},"if":{"properties":{"t":{"properties":{"a":{"const":1}},"required":["a"]}}},"then":{"required":["c"]}}`, ""},
		"many conditions are not simple":  {`{"properties":{"a":{},"b":{},"c":{},"d":{},"e":{}},"dependencies":{"a":["e"],"b":["e"],"c":["e"],"d":["e"]}}`, ""},
		"an alternative is not simple":    {`{"properties":{"a":{},"c":{}},"oneOf":[{"required":["a"]},{"required":["c"]}]}`, ""},
		"text that is made for terminals": {`{"properties":{"a":{},"c":{}},"if":{"properties":{"a":{"const":"\u001bx"}},"required":["a"]},"then":{"required":["c"]}}`, "c: when a is x"},
	} {
		t.Run(rule, func(t *testing.T) {
			var got []string
			for _, in := range parse(t, tc.schema).Inputs() {
				if in.RequiredWhen != "" {
					got = append(got, in.Path+": "+in.RequiredWhen)
				}
			}
			if d := cmp.Diff(tc.want, strings.Join(got, "; ")); d != "" {
				t.Error(d)
			}
		})
	}
}

// at looks a path up in a tree.
func at(tree map[string]any) func([]string) (any, bool) {
	return func(path []string) (any, bool) {
		var v any = tree
		for _, key := range path {
			m, ok := v.(map[string]any)
			if !ok {
				return nil, false
			}
			if v, ok = m[key]; !ok {
				return nil, false
			}
		}
		return v, true
	}
}

func TestStates(t *testing.T) {
	const one = `{"properties":{"a":{"type":"string"}}}`
	const must = `{"required":["a"],"properties":{"a":{"type":"string","minLength":1}}}`
	const generated = `{"required":["a"],"properties":{"a":{"type":"string","x-zaentrum-generate":"random-hex-32"}}}`
	const under = `{"required":["c"],"properties":{"c":{"required":["key"],"properties":{"key":{"type":"string","x-zaentrum-generate":"random-hex-32"}}}}}`
	const group = `{"properties":{"g":{"type":"object","required":["a"],"properties":{"a":{"type":"string"},"b":{"type":"boolean"}}}}}`
	const when = `{"properties":{"on":{"type":"boolean"},"a":{"type":"string"}},"if":{"properties":{"on":{"const":true}},"required":["on"]},"then":{"required":["a"]}}`
	for rule, tc := range map[string]struct{ schema, defaults, given, want string }{
		"given":                                {one, `{"a":"x"}`, `{"a":"y"}`, "a=set"},
		"given as nothing":                     {one, `{}`, `{"a":""}`, "a=set"},
		"given as false":                       {`{"properties":{"a":{"type":"boolean"}}}`, `{"a":true}`, `{"a":false}`, "a=set"},
		"the chart's":                          {one, `{"a":"x"}`, `{}`, "a=chart"},
		"the chart's empty text":               {one, `{"a":""}`, `{}`, "a=chart"},
		"the chart's text that is too short":   {must, `{"a":""}`, `{}`, "a=missing"},
		"the chart's null":                     {one, `{"a":null}`, `{}`, "a=unset"},
		"nobody's":                             {one, `{}`, `{}`, "a=unset"},
		"nobody's, with a default":             {`{"properties":{"a":{"default":1}}}`, `{}`, `{}`, "a=default"},
		"required":                             {must, `{}`, `{}`, "a=missing"},
		"required, with a default":             {`{"required":["a"],"properties":{"a":{"default":1}}}`, `{}`, `{}`, "a=missing"},
		"taken away by null":                   {one, `{"a":"x"}`, `{"a":null}`, "a=unset"},
		"required, taken away by null":         {must, `{"a":"x"}`, `{"a":null}`, "a=missing"},
		"its group taken away by null":         {group, `{"g":{"a":"x"}}`, `{"g":null}`, "g.a=unset g.b=unset"},
		"its group replaced by a text":         {group, `{"g":{"a":"x"}}`, `{"g":"x"}`, "g.a=unset g.b=unset"},
		"generated":                            {generated, `{}`, `{}`, "a=generated"},
		"generated, given":                     {generated, `{}`, `{"a":"x"}`, "a=set"},
		"generated, given as nothing":          {generated, `{}`, `{"a":""}`, "a=generated"},
		"generated, given as null":             {generated, `{}`, `{"a":null}`, "a=generated"},
		"generated over the chart's":           {generated, `{"a":"x"}`, `{}`, "a=generated"},
		"generated under a text":               {under, `{}`, `{"c":"text"}`, "c.key=missing"},
		"generated under a list":               {under, `{}`, `{"c":[]}`, "c.key=missing"},
		"generated under false":                {under, `{}`, `{"c":false}`, "c.key=missing"},
		"generated under nothing":              {under, `{}`, `{"c":""}`, "c.key=generated"},
		"generated under null":                 {under, `{"c":"text"}`, `{"c":null}`, "c.key=generated"},
		"generated under the chart's text":     {under, `{"c":"text"}`, `{}`, "c.key=generated"},
		"generated under an object":            {under, `{}`, `{"c":{"x":1}}`, "c.key=generated"},
		"generated under a text, not required": {`{"properties":{"c":{"properties":{"key":{"type":"string","x-zaentrum-generate":"random-hex-32"}}}}}`, `{"c":{"key":"x"}}`, `{"c":1}`, "c.key=unset"},
		"required in a group that is not":      {group, `{}`, `{}`, "g.a=unset g.b=unset"},
		"required in a group that is given":    {group, `{}`, `{"g":{"b":true}}`, "g.a=missing g.b=set"},
		"required in a group the chart has":    {group, `{"g":{"b":true}}`, `{}`, "g.a=missing g.b=chart"},
		"required by a condition that holds":   {when, `{"on":true}`, `{}`, "on=chart a=missing"},
		"required by a condition that is off":  {when, `{"on":true}`, `{"on":false}`, "on=set a=unset"},
		"a path with a dot in a key":           {`{"properties":{"a.b":{"type":"string"}}}`, `{}`, `{"a.b":"x"}`, "a.b=set"},
		"a list":                               {`{"properties":{"a":{"type":"array"}}}`, `{"a":[]}`, `{}`, "a=chart"},
		"an object that is one input, in part": {`{"properties":{"a":{"type":"object"}}}`, `{"a":{"x":1}}`, `{"a":{"y":1}}`, "a=set"},
	} {
		t.Run(rule, func(t *testing.T) {
			var got []string
			for _, in := range parse(t, tc.schema).States(decode(t, tc.defaults), at(decode(t, tc.given))) {
				got = append(got, in.Path+"="+string(in.State))
			}
			if d := cmp.Diff(tc.want, strings.Join(got, " ")); d != "" {
				t.Error(d)
			}
		})
	}
	if (*Schema)(nil).States(nil, nil) != nil {
		t.Error("a nil schema has inputs")
	}
}
