package lint_test

import (
	"fmt"
	"strings"
	"testing"

	"zaentrum.io/zae/internal/lint"
)

// schemaOf is a schema with some properties, and more keywords of its root.
func schemaOf(properties string, more ...string) string {
	return `{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {` + properties + `}` + strings.Join(more, "") + `}`
}

// pod is an object that is never allowed, behind a condition.
func pod(condition string) string {
	return "{{ if " + condition + " }}\napiVersion: v1\nkind: Pod\nmetadata:\n  name: behind\n{{ end }}\n"
}

// scan is what is found in the tiny example with more files, without what tells of the inputs' own texts.
func scan(t *testing.T, pool lint.Worker, files map[string]string, o lint.Options) (found, space string) {
	t.Helper()
	report := check(t, pool, lint.Source{Label: "tiny", Archive: withFiles(t, "tiny", files)}, o)
	return lines(report), report.Space
}

const (
	behindPod = "templates/more.yaml:3:1 error allowed-kind Pod/behind: "
	bool5     = `"a": {"type": "boolean"}, "b": {"type": "boolean"}, "c": {"type": "boolean"}, "d": {"type": "boolean"}, "e": {"type": "boolean"}`
	off5      = "a: false\nb: false\nc: false\nd: false\ne: false\n"
)

// switchesOf are n booleans, all off, and their schema.
func switchesOf(n int) (values, properties string) {
	var all, off []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"b%d": {"type": "boolean"}`, i))
		off = append(off, fmt.Sprintf("b%d: false\n", i))
	}
	return strings.Join(off, ""), strings.Join(all, ", ")
}

// TestAFindingShowsWithWhatItNeeds: what it is told with is enough, and nothing else is among it.
func TestAFindingShowsWithWhatItNeeds(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	for name, tc := range map[string]struct{ properties, values, condition, want string }{
		"one":            {bool5, off5, ".Values.c", "c=true"},
		"two":            {bool5, off5, "and .Values.c .Values.e", "c=true, e=true"},
		"three":          {`"a": {"type": "boolean"}, "b": {"type": "boolean"}, "c": {"type": "boolean"}`, "a: false\nb: false\nc: false\n", "and .Values.a .Values.b .Values.c", "a=true, b=true, c=true"},
		"two of enums":   {`"a": {"enum": ["p", "q", "r"]}, "b": {"enum": ["p", "q", "r"]}, "c": {"enum": ["p", "q", "r"]}`, "a: p\nb: p\nc: p\n", `and (eq .Values.a "r") (eq .Values.c "q")`, "a=r, c=q"},
		"in two groups":  {`"m": {"type": "object", "properties": {` + bool5 + `}}, "n": {"type": "object", "properties": {` + bool5 + `}}`, "m: {a: false, b: false, c: false, d: false, e: false}\nn: {a: false, b: false, c: false, d: false, e: false}\n", "and .Values.m.b .Values.n.d", "m.b=true, n.d=true"},
		"with one of on": {bool5, "a: true\n" + off5[len("a: false\n"):], "and .Values.a .Values.b", "b=true"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, _ := scan(t, pool, map[string]string{"values.schema.json": schemaOf(tc.properties), "values.yaml": tc.values, "templates/more.yaml": pod(tc.condition)}, lint.Options{})
			with := ""
			for _, line := range strings.Split(found, "\n") {
				if rest, ok := strings.CutPrefix(line, behindPod+" (with "); ok {
					with, _, _ = strings.Cut(strings.TrimSuffix(rest, ")"), "; in ")
				}
			}
			if with != tc.want {
				t.Errorf("with %q, not %q:\n%s", with, tc.want, found)
			}
		})
	}
}

// TestEachValueIsTried: however many inputs there are, and wherever the schema lists what they may be. What is left out
// is said.
func TestEachValueIsTried(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	values70, schema70 := switchesOf(70)
	values400, schema400 := switchesOf(400)
	for name, tc := range map[string]struct{ schema, values, condition, want, said string }{
		"the last of 70":          {schemaOf(schema70), values70, ".Values.b69", " (with b69=true; in 2 renders)", ""},
		"two of 70":               {schemaOf(schema70), values70, "and .Values.b1 .Values.b68", " (with b1=true, b68=true)", ""},
		"the last of 400":         {schemaOf(schema400), values400, ".Values.b399", " (with b399=true)", "values and pairs of values are left out"},
		"const in oneOf":          {schemaOf(`"m": {"type": "string", "oneOf": [{"const": "a"}, {"const": "z"}]}`), "m: a\n", `eq .Values.m "z"`, " (with m=z)", ""},
		"const in anyOf":          {schemaOf(`"m": {"anyOf": [{"const": "a"}, {"const": "z"}]}`), "m: a\n", `eq .Values.m "z"`, " (with m=z)", ""},
		"enum in oneOf":           {schemaOf(`"m": {"type": "string", "oneOf": [{"enum": ["a"]}, {"enum": ["y", "z"]}]}`), "m: a\n", `eq .Values.m "z"`, " (with m=z)", ""},
		"number in anyOf":         {schemaOf(`"m": {"type": "integer", "anyOf": [{"const": 1}, {"const": 7}]}`), "m: 1\n", `eq (int .Values.m) 7`, " (with m=7)", ""},
		"a reference in oneOf":    {schemaOf(`"m": {"oneOf": [{"$ref": "#/definitions/a"}, {"$ref": "#/definitions/z"}]}`, `, "definitions": {"a": {"const": "a"}, "z": {"const": "z"}}`), "m: a\n", `eq .Values.m "z"`, " (with m=z)", ""},
		"a switch without schema": {"", "ingress:\n  enabled: false\n", ".Values.ingress.enabled", " (with ingress.enabled=true)", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{"values.yaml": tc.values, "templates/more.yaml": pod(tc.condition)}
			if tc.schema != "" {
				files["values.schema.json"] = tc.schema
			}
			found, space := scan(t, pool, files, lint.Options{})
			if !strings.Contains(found, behindPod+tc.want+"\n") || !strings.Contains(space, tc.said) {
				t.Errorf("%s\n%s", found, space)
			}
			if tc.schema == "" && !strings.Contains(found, "warning no-schema") {
				t.Errorf("nothing says that little was tried:\n%s", found)
			}
			var renders int
			if _, err := fmt.Sscanf(space, "renders: %d,", &renders); err != nil || renders > lint.DefaultMaxRenders {
				t.Errorf("%s: %v", space, err)
			}
		})
	}
}

// TestRefusedDefaultsAreTold: of the chart's own values and of bundled charts'. What is behind is still tried.
func TestRefusedDefaultsAreTold(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	const flag = `"live": {"type": "boolean"}`
	bundled := func(values, schema string) map[string]string {
		return map[string]string{
			"Chart.yaml": tinyChart("dependencies:\n- {name: inner, version: 1.0.0}\n"), "charts/inner/Chart.yaml": "apiVersion: v2\nname: inner\nversion: 1.0.0\n",
			"charts/inner/values.yaml": values, "charts/inner/values.schema.json": schema,
		}
	}
	for name, tc := range map[string]struct {
		schema, values string
		more           map[string]string
		want           string
	}{
		"a null":             {schemaOf(flag + `, "q": {"type": "string"}`), "live: false\nq:\n", nil, "values.yaml:2:1 error default-refused q: must be a string, not null"},
		"a null in a group":  {schemaOf(flag + `, "g": {"type": "object", "properties": {"q": {"type": "string"}}}`), "live: false\ng:\n  q:\n", nil, "values.yaml:3:3 error default-refused g.q: must be a string, not null"},
		"a blank secret":     {schemaOf(flag + `, "q": {"type": "string", "writeOnly": true}`), "live: false\nq:\n", nil, "values.yaml:2:1 error default-refused q: must be a string, not null"},
		"a group":            {schemaOf(flag + `, "g": {"type": "object", "properties": {"q": {"type": "string"}}}`), "live: false\ng:\n", nil, "values.yaml:2:1 error default-refused g: must be an object, not null"},
		"a number":           {schemaOf(flag + `, "size": {"type": "integer", "maximum": 4}`), "live: false\nsize: 9\n", nil, "values.yaml:2:1 error default-refused size: must be at most 4"},
		"a bundled chart's":  {schemaOf(flag + `, "inner": {"type": "object", "properties": {"q": {"type": "string", "pattern": "^x$"}}}`), "live: false\n", bundled("q: z\n", `{}`), "charts/inner/values.yaml:1:1 error default-refused inner.q: does not match the pattern the schema asks for (pattern)"},
		"by a bundled chart": {schemaOf(flag), "live: false\n", bundled("q: z\n", schemaOf(`"q": {"type": "string", "pattern": "^x$"}`)), "charts/inner/values.yaml:1:1 error default-refused inner.q: does not match the pattern the schema asks for (pattern)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{"values.schema.json": tc.schema, "values.yaml": tc.values, "templates/more.yaml": pod(".Values.live")}
			for file, text := range tc.more {
				files[file] = text
			}
			found, _ := scan(t, pool, files, lint.Options{})
			if !strings.Contains(found, tc.want+"\n") || strings.Count(found, "default-refused") != 1 {
				t.Errorf("no %s:\n%s", tc.want, found)
			}
			if !strings.Contains(found, behindPod+" (with live=true") {
				t.Errorf("what is behind is not seen:\n%s", found)
			}
		})
	}
	must := map[string]string{"values.schema.json": schemaOf(`"q": {"type": "string", "minLength": 1}`, `, "required": ["q"]`), "values.yaml": "q: \"\"\n"}
	if found, _ := scan(t, pool, must, lint.Options{}); strings.Contains(found, "default-refused") {
		t.Errorf("what must be given is told:\n%s", found)
	}
}
