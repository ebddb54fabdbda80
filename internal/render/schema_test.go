package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"

	"zaentrum.io/zae/internal/inputs"
)

// moduleDir is where a module of go.mod is unpacked.
func moduleDir(t *testing.T, module string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	dir := strings.TrimSpace(string(out))
	if err != nil || dir == "" {
		t.Fatalf("the module %s is not at hand: %v", module, err)
	}
	return dir
}

const dialect = "http://json-schema.org/draft-07/schema#"

// verdicts are what Helm and what we say of values against a schema: whether both accept them.
func verdicts(t *testing.T, schema any, values map[string]any) (helm, ours bool, why string) {
	t.Helper()
	text, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	helmErr := chartutil.ValidateAgainstSingleSchema(values, text)
	s, err := inputs.Parse(text)
	if err != nil {
		return helmErr == nil, false, fmt.Sprintf("Helm: %v\nours: %v", helmErr, err)
	}
	found := s.Validate(values)
	return helmErr == nil, len(found) == 0, fmt.Sprintf("Helm: %v\nours: %q", helmErr, found)
}

// asValues makes values of an instance, and of its schema one for them: an instance that is no object stands
// under a key.
func asValues(schema, instance any) (any, map[string]any) {
	if values, ok := instance.(map[string]any); ok {
		if m, ok := schema.(map[string]any); ok {
			m["$schema"] = dialect
		}
		return schema, values
	}
	if m, ok := schema.(map[string]any); ok {
		delete(m, "$schema")
	}
	if !holds(schema, "$id") {
		rebase(schema)
	}
	return map[string]any{
		"$schema":     dialect,
		"definitions": map[string]any{"s": schema},
		"properties":  map[string]any{"v": map[string]any{"$ref": "#/definitions/s"}},
	}, map[string]any{"v": instance}
}

// rebase makes references of a document fit its place under #/definitions/s.
func rebase(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			if ref, ok := item.(string); ok && key == "$ref" && (ref == "#" || strings.HasPrefix(ref, "#/")) {
				v[key] = "#/definitions/s" + ref[1:]
			}
			rebase(item)
		}
	case []any:
		for _, item := range v {
			rebase(item)
		}
	}
}

func holds(v any, key string) bool {
	switch v := v.(type) {
	case map[string]any:
		if _, there := v[key]; there {
			return true
		}
		for _, item := range v {
			if holds(item, key) {
				return true
			}
		}
	case []any:
		for _, item := range v {
			if holds(item, key) {
				return true
			}
		}
	}
	return false
}

// leadsOut tells whether a schema refers to another document, which Helm would fetch.
func leadsOut(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			if ref, ok := item.(string); ok && key == "$ref" && !strings.HasPrefix(ref, "#") {
				return true
			}
			if leadsOut(item) {
				return true
			}
		}
	case []any:
		for _, item := range v {
			if leadsOut(item) {
				return true
			}
		}
	}
	return false
}

func clone(t *testing.T, v any) any {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return unmarshal(t, text)
}

func unmarshal(t *testing.T, text []byte) any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(string(text)))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// suite is a file of the JSON Schema test material: schemas with instances.
type suite []struct {
	Description string `json:"description"`
	Schema      any    `json:"schema"`
	Tests       []struct {
		Description string `json:"description"`
		Data        any    `json:"data"`
		Valid       bool   `json:"valid"`
	} `json:"tests"`
}

// TestVerdictsAreThoseOfHelmOnTheTestMaterial goes through all JSON Schema test material that comes with the
// validators, whatever draft it was written for, as draft-07.
func TestVerdictsAreThoseOfHelmOnTheTestMaterial(t *testing.T) {
	var files, compared, out int
	texts := map[string]bool{}
	for _, version := range []string{"v5", "v6"} {
		dir := filepath.Join(moduleDir(t, "github.com/santhosh-tekuri/jsonschema/"+version), "testdata")
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.Contains(path, string(filepath.Separator)+"tests"+string(filepath.Separator)) {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			var groups suite
			dec := json.NewDecoder(strings.NewReader(string(text)))
			dec.UseNumber()
			if err := dec.Decode(&groups); err != nil {
				return errors.New(path + ": " + err.Error())
			}
			files++
			for _, g := range groups {
				if leadsOut(g.Schema) {
					out++
					continue
				}
				for _, test := range g.Tests {
					schema, values := asValues(clone(t, g.Schema), test.Data)
					helm, ours, why := verdicts(t, schema, values)
					compared++
					if text, ok := test.Data.(string); ok {
						texts[text] = true
					}
					name := fmt.Sprintf("%s: %s: %s", strings.TrimPrefix(path, dir), g.Description, test.Description)
					switch reason := otherVerdicts[name]; {
					case helm != ours && reason == "":
						t.Errorf("%s: Helm %v, ours %v\n%s", name, helm, ours, why)
					case helm == ours && reason != "":
						t.Errorf("%s is judged alike: take it out of the table", name)
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	// Every text of the material against every format.
	judged := 0
	for _, format := range formats {
		for text := range texts {
			schema := map[string]any{"$schema": dialect, "properties": map[string]any{"v": map[string]any{"format": format}}}
			helm, ours, why := verdicts(t, schema, map[string]any{"v": text})
			judged++
			if helm != ours {
				t.Errorf("%s on %q: Helm %v, ours %v\n%s", format, text, helm, ours, why)
			}
		}
	}
	t.Logf("%d files, %d instances compared, %d texts against formats, %d schemas left out that refer to other documents, %d judged otherwise for a reason",
		files, compared, judged, out, len(otherVerdicts))
	if files < 20 || compared < 100 || judged < 1000 {
		t.Error("too little was compared")
	}
}

// otherVerdicts are the instances of the material that are judged otherwise than Helm does, and why. Besides,
// a schema that refers to another document is refused here and fetched by Helm.
var otherVerdicts = map[string]string{
	"/Extra-Test-Suite/tests/draft4/mixed-dialects.json: draft2012: invalid": "a schema inside that names another dialect: all is read as draft-07 here, so that no schema means two things",
}

// formats are those that either validator knows, and one that neither does.
var formats = []string{
	"date-time", "date", "time", "duration", "period", "hostname", "email", "ipv4", "ip-address", "ipv6", "uri", "iri", "uri-reference", "uriref", "iri-reference",
	"uri-template", "json-pointer", "relative-json-pointer", "uuid", "regex", "semver", "idn-email", "idn-hostname", "nobody-knows",
}

// TestSchemasThatAreNoneAreRefusedAsByHelm goes through what the validators know as schemas that are none.
func TestSchemasThatAreNoneAreRefusedAsByHelm(t *testing.T) {
	compared, out := 0, 0
	for _, version := range []string{"v5", "v6"} {
		text, err := os.ReadFile(filepath.Join(moduleDir(t, "github.com/santhosh-tekuri/jsonschema/"+version), "testdata", "invalid_schemas.json"))
		if err != nil {
			t.Fatal(err)
		}
		list, ok := unmarshal(t, text).([]any)
		if !ok {
			t.Fatal("not a list")
		}
		for _, item := range list {
			test, ok := item.(map[string]any)
			if !ok {
				t.Fatal("not an object")
			}
			schema, ok := test["schema"].(map[string]any)
			if !ok || leadsOut(schema) || holds(test, "remotes") {
				out++
				continue
			}
			schema["$schema"] = dialect
			text, err := json.Marshal(schema)
			if err != nil {
				t.Fatal(err)
			}
			helmErr := chartutil.ValidateAgainstSingleSchema(map[string]any{}, text)
			_, err = inputs.Parse(text)
			compared++
			switch reason := otherSchemas[fmt.Sprint(test["description"])]; {
			case (helmErr == nil) != (err == nil) && reason == "":
				t.Errorf("%s %v: %s\nHelm: %v\nours: %v", version, test["description"], text, helmErr, err)
			case (helmErr == nil) == (err == nil) && reason != "":
				t.Errorf("%v is judged alike: take it out of the table", test["description"])
			}
		}
	}
	t.Logf("%d compared, %d left out that refer to other documents, %d judged otherwise for a reason", compared, out, len(otherSchemas))
	if compared < 20 {
		t.Error("too little was compared")
	}
}

// otherSchemas are the schemas that are judged otherwise, and why.
var otherSchemas = map[string]string{}

// schemaDice makes random schemas and values of few names and values, so that they fit now and then.
type schemaDice struct {
	*rand.Rand
	refs  bool
	wrong int // one keyword in so many has any value at all; 0: none
}

func (d schemaDice) pick(options ...any) any { return options[d.IntN(len(options))] }

func (d schemaDice) name() string { return d.pick("a", "b", "c", "d").(string) }

func (d schemaDice) scalar() any {
	return d.pick("", "a", "abc", "a@b.example", "2020-01-01", "10.0.0.1", "P1D", "1.2.3", "https://example.org", "ä", int64(0), int64(1), int64(3), 1.5, -2.0, int64(1)<<53+1, true, false, nil)
}

func (d schemaDice) instance(depth int) any {
	switch n := d.IntN(6); {
	case depth > 0 && n < 3:
		out := map[string]any{}
		for range d.IntN(4) {
			out[d.name()] = d.instance(depth - 1)
		}
		return out
	case depth > 0 && n == 3:
		out := []any{}
		for range d.IntN(4) {
			out = append(out, d.instance(depth-1))
		}
		return out
	default:
		return d.scalar()
	}
}

func (d schemaDice) schema(depth int) any {
	if depth == 0 || d.IntN(12) == 0 {
		return d.pick(true, true, false, map[string]any{"type": d.kind()}, map[string]any{})
	}
	out := map[string]any{}
	for range 1 + d.IntN(4) {
		d.keyword(out, depth-1)
	}
	return out
}

func (d schemaDice) kind() any {
	return d.pick("string", "integer", "number", "boolean", "object", "array", "null", []any{"string", "null"}, []any{"integer", "object"})
}

func (d schemaDice) schemas(depth int) []any {
	var out []any
	for range 1 + d.IntN(3) {
		out = append(out, d.schema(depth))
	}
	return out
}

func (d schemaDice) keyword(out map[string]any, depth int) {
	name := d.pick("type", "enum", "const", "required", "properties", "properties", "properties", "additionalProperties", "patternProperties", "propertyNames",
		"dependencies", "items", "additionalItems", "contains", "uniqueItems", "minItems", "maxItems", "minLength", "maxLength", "pattern", "format",
		"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minProperties", "maxProperties", "allOf", "anyOf", "oneOf", "not",
		"if", "then", "else", "$ref", "title", "writeOnly", "default", "contentEncoding", "unknown").(string)
	if d.wrong > 0 && d.IntN(d.wrong) == 0 && (name != "$ref" || d.refs) {
		out[name] = d.instance(2)
		return
	}
	switch name {
	case "type":
		out[name] = d.kind()
	case "enum":
		list := []any{d.instance(1)}
		for other := d.instance(1); len(list) < 3; other = d.instance(2) {
			if !strings.Contains(fmt.Sprint(list), fmt.Sprint(other)) {
				list = append(list, other)
			} else {
				break
			}
		}
		out[name] = list
	case "const", "default":
		out[name] = d.instance(1)
	case "required":
		out[name] = []any{d.name()}
	case "properties", "definitions":
		m := map[string]any{}
		for range 1 + d.IntN(3) {
			m[d.name()] = d.schema(depth)
		}
		out[name] = m
	case "patternProperties":
		out[name] = map[string]any{d.pick("^a", "b|c", "").(string): d.schema(depth)}
	case "dependencies":
		out[name] = map[string]any{d.name(): d.pick([]any{d.name()}, d.schema(depth))}
	case "items":
		out[name] = d.pick(d.schema(depth), d.schemas(depth))
	case "uniqueItems", "writeOnly":
		out[name] = d.IntN(2) == 0
	case "minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties":
		out[name] = d.IntN(4)
	case "pattern":
		out[name] = d.pick("^a", "b", "^$", `\d`, `^\p{L}+$`)
	case "format":
		out[name] = d.pick("email", "date", "ipv4", "uri", "duration", "hostname", "regex", "semver", "nobody-knows")
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		out[name] = d.pick(0, 1, 1.5, 3, int64(1)<<53)
	case "multipleOf":
		out[name] = d.pick(1, 0.5, 3)
	case "allOf", "anyOf", "oneOf":
		out[name] = d.schemas(depth)
	case "$ref":
		if d.refs {
			out[name] = "#/definitions/" + d.name()
		}
	case "title":
		out[name] = "a title"
	case "contentEncoding":
		out[name] = "base64"
	case "unknown":
		out["x-"+d.name()] = d.instance(1)
	default: // those that hold one schema
		out[name] = d.schema(depth)
	}
}

// TestVerdictsAreThoseOfHelm holds random schemas and values against Helm's own validation.
func TestVerdictsAreThoseOfHelm(t *testing.T) {
	var accepted, refused, endless int
	for seed := range uint64(800) {
		d := schemaDice{Rand: rand.New(rand.NewPCG(seed, 7)), refs: seed%2 == 0}
		if seed%3 == 0 {
			d.wrong = 20
		}
		schema, ok := d.schema(3).(map[string]any)
		if !ok {
			continue
		}
		definitions := map[string]any{}
		for _, name := range []string{"a", "b", "c", "d"} {
			definitions[name] = schemaDice{d.Rand, d.refs && d.IntN(4) == 0, d.wrong}.schema(2)
		}
		schema["definitions"], schema["$schema"] = definitions, dialect
		text, err := json.Marshal(schema)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := inputs.Parse(text); err != nil && (strings.Contains(err.Error(), "without end") || strings.Contains(err.Error(), "back to itself")) {
			endless++
			continue
		}
		for range 3 {
			values, ok := d.instance(3).(map[string]any)
			if !ok {
				values = map[string]any{d.name(): d.scalar()}
			}
			helm, ours, why := verdicts(t, schema, values)
			if helm != ours {
				given, _ := json.Marshal(values)
				t.Fatalf("seed %d: Helm %v, ours %v\n%s\n%s\n%s", seed, helm, ours, text, given, why)
			}
			if helm {
				accepted++
			} else {
				refused++
			}
		}
	}
	t.Logf("%d accepted and %d refused by both, %d schemas left out that apply to one value without end", accepted, refused, endless)
	if accepted < 800 || refused < 800 {
		t.Error("the dice are loaded")
	}
}
