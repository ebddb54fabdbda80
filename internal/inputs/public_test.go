package inputs

import (
	"strings"
	"testing"
)

// TestSecretDefaultsAreNotPublished: wherever they stand. The rest stays, in its order.
func TestSecretDefaultsAreNotPublished(t *testing.T) {
	t.Parallel()
	for name, schema := range map[string]string{
		"its own":                  `{"properties":{"z":{"type":"string","default":"kept"},"a":{"writeOnly":true,"default":"c4n4ry"}}}`,
		"of an object around":      `{"properties":{"z":{"type":"string","default":"kept"},"g":{"default":{"a":"c4n4ry"},"properties":{"a":{"writeOnly":true}}}}}`,
		"of the root":              `{"default":{"a":"c4n4ry"},"properties":{"z":{"type":"string","default":"kept"},"a":{"writeOnly":true}}}`,
		"below a secret object":    `{"properties":{"z":{"type":"string","default":"kept"},"g":{"writeOnly":true,"properties":{"a":{"type":"string","default":"c4n4ry"}}}}}`,
		"beside":                   `{"properties":{"z":{"type":"string","default":"kept"},"a":{"allOf":[{"writeOnly":true},{"default":"c4n4ry"}]}}}`,
		"declared twice":           `{"properties":{"z":{"type":"string","default":"kept"},"a":{"writeOnly":true}},"allOf":[{"properties":{"a":{"default":"c4n4ry"}}}]}`,
		"of a reference":           `{"properties":{"z":{"type":"string","default":"kept"},"a":{"$ref":"#/definitions/s","default":"c4n4ry"}},"definitions":{"s":{"writeOnly":true,"default":"c4n4ry"}}}`,
		"in a list":                `{"properties":{"z":{"type":"string","default":"kept"},"l":{"type":"array","default":["c4n4ry"],"items":{"writeOnly":true,"default":"c4n4ry"}}}}`,
		"a keyword that is quoted": `{"properties":{"z":{"type":"string","default":"kept"},"a":{"write\u004fnly":true,"default":"c4n4ry"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := WithoutSecretDefaults([]byte(schema))
			if strings.Contains(string(got), "c4n4ry") || !strings.Contains(string(got), `"kept"`) {
				t.Fatalf("%s", got)
			}
			before, err := Parse([]byte(schema))
			if err != nil {
				t.Fatal(err)
			}
			after, err := Parse(got)
			if err != nil {
				t.Fatal(err)
			}
			var was, is []string
			for i, in := range before.Inputs() {
				was, is = append(was, brief(in)), append(is, brief(after.Inputs()[i]))
			}
			if strings.Join(was, " ") != strings.Join(is, " ") {
				t.Errorf("%s, and then %s", was, is)
			}
		})
	}
	for _, same := range []string{"", contractSchema, `{"writeOnly": `, `{"properties":{"default":{"writeOnly":true}}}`, `{"properties": {"a": {"default": "x<y"}}}`} {
		if got := string(WithoutSecretDefaults([]byte(same))); got != same {
			t.Errorf("%s became %s", same, got)
		}
	}
}

// TestAKeyThatIsThereTwiceIsRefused: which of the two counts is each reader's choice, and one may be a writeOnly.
func TestAKeyThatIsThereTwiceIsRefused(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{
		"{\"properties\": {\"a\": {\n\"writeOnly\": true,\n\"writeOnly\": false}}}",
		"{\"properties\": {\"a\": {\n},\n\"a\": {}}}",
		"{\"default\": [{\"a\": 1,\n\n\"a\": 2}]}",
	} {
		for _, read := range []func([]byte) (*Schema, error){Parse, Describe} {
			_, err := read([]byte(schema))
			if err == nil || !strings.Contains(err.Error(), "line 3: ") || !strings.Contains(err.Error(), " is there twice") {
				t.Errorf("%s: %v", schema, err)
			}
		}
	}
}
