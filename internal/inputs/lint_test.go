package inputs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWarnings(t *testing.T) {
	for name, tc := range map[string]struct {
		schema string
		want   []string // places
	}{
		"the contract's schema":       {contractSchema, nil},
		"draft-07 in another writing": {`{"$schema":"https://json-schema.org/draft-07/schema"}`, nil},
		"another dialect":             {`{"$schema":"https://json-schema.org/draft/2020-12/schema"}`, []string{"#/$schema"}},
		"a closed root":               {`{"additionalProperties":false,"properties":{"a":true}}`, []string{"#/additionalProperties"}},
		"a closed root that knows":    {`{"additionalProperties":false,"properties":{"zaentrum":true}}`, nil},
		"marks beside $ref": {`{"properties":{"a":{"$ref":"#/definitions/s","writeOnly":true},"b":{"$ref":"#/definitions/s","x-zaentrum-generate":"random-hex-32"}},"definitions":{"s":{"type":"string"}}}`,
			[]string{"#/properties/a/writeOnly", "#/properties/b/x-zaentrum-generate"}},
		"a secret number":              {`{"properties":{"pin":{"type":"integer","writeOnly":true}}}`, []string{"pin"}},
		"secrets in a list":            {`{"properties":{"l":{"type":"array","items":{"type":"string","writeOnly":true}}}}`, []string{"l"}},
		"a key with a dot":             {`{"properties":{"a.b":{"type":"string"}}}`, []string{"a.b"}},
		"a secret with an endless key": {`{"properties":{"` + strings.Repeat("k", 251) + `":{"type":"string","writeOnly":true}}}`, []string{strings.Repeat("k", 251)}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, w := range parse(t, tc.schema).Warnings() {
				got = append(got, w.Place)
				if w.What == "" || w.Fix == "" || !strings.HasPrefix(w.String(), w.Place+": ") {
					t.Errorf("%+v", w)
				}
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}
