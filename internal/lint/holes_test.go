package lint_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

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

// data is a ConfigMap with lines of data.
func data(name string, lines ...string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\ndata:\n  " + strings.Join(lines, "\n  ") + "\n"
}

// deployment is one with some lines in its container's spec, and in its own.
func deployment(spec string, container ...string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: more\nspec:\n" + spec +
		"  selector:\n    matchLabels: {app: more}\n  template:\n    metadata:\n      labels: {app: more}\n    spec:\n      containers:\n        - name: more\n          image: ghcr.io/example/more:1\n          " +
		strings.Join(container, "\n          ") + "\n"
}

// TestWhatAuthorsAreToldOf: of each chart exactly these findings, but for inputs that nothing reads.
func TestWhatAuthorsAreToldOf(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	const (
		more     = "templates/more.yaml"
		schema   = "values.schema.json"
		given    = "values.yaml"
		secret   = `"p": {"type": "string", "writeOnly": true, "minLength": 1}`
		required = `, "required": ["p"]`
		requests = "resources: {requests: {cpu: 10m, memory: 16Mi}}"
		named    = `{"type": "object", "properties": {"kind": {"enum": ["a", "b"]}, "live": {"type": "boolean"}, "id": {"type": "string", "pattern": "^[a-z0-9]+$"}}}`
	)
	inner := func(files map[string]string) map[string]string {
		files["Chart.yaml"] = tinyChart("dependencies:\n- {name: inner, version: 1.0.0}\n")
		files["charts/inner/Chart.yaml"] = "apiVersion: v2\nname: inner\nversion: 1.0.0\n"
		return files
	}
	for name, tc := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"a short secret": {map[string]string{schema: schemaOf(`"p": {"type": "string", "writeOnly": true, "pattern": "^[0-9]{4}$"}`, required), more: data("pins", "pin: {{ .Values.p | quote }}")},
			[]string{"templates/more.yaml:6:3 error secret-leak ConfigMap/pins: data.pin: p is seen outside of a Secret's data"}},
		"a secret of six": {map[string]string{schema: schemaOf(`"p": {"type": "string", "writeOnly": true, "minLength": 1, "maxLength": 6}`, required), more: data("pins", `pin: {{ printf "pin %s" .Values.p | quote }}`)},
			[]string{"templates/more.yaml:6:3 error secret-leak ConfigMap/pins: data.pin: p is seen outside of a Secret's data"}},
		"fields made of a secret": {map[string]string{schema: schemaOf(secret, required), more: data("sums", "a: {{ .Values.p | sha1sum }}", "b: {{ .Values.p | b32enc }}", "c: {{ .Values.p | quote }}", "d: {{ .Values.p | sha512sum }}")},
			[]string{
				"templates/more.yaml:6:3 warning secret-derived ConfigMap/sums: data.a: changes with a secret input",
				"templates/more.yaml:7:3 warning secret-derived ConfigMap/sums: data.b: changes with a secret input",
				"templates/more.yaml:8:3 error secret-leak ConfigMap/sums: data.c: p is seen outside of a Secret's data",
				"templates/more.yaml:9:3 warning secret-derived ConfigMap/sums: data.d: changes with a secret input",
			}},
		"a name made of a secret": {map[string]string{schema: schemaOf(secret, required), more: "apiVersion: v1\nkind: Secret\nmetadata:\n  name: key-{{ .Values.p | sha1sum | trunc 8 }}\nstringData:\n  a: b\n"},
			[]string{"templates/more.yaml:4:3 warning secret-derived Secret/key-NUMBER: metadata.name: changes with a secret input"}},
		"a bundled chart's secret default": {inner(map[string]string{
			schema:                     schemaOf(`"inner": {"type": "object", "properties": {"auth": {"type": "object", "properties": {` + secret + `}}}}`),
			"charts/inner/values.yaml": "auth:\n  p: changeit\n",
		}), []string{"charts/inner/values.yaml:2:3 error secret-default inner.auth.p: a secret input has a value here"}},
		"a bundled chart's secret default, taken out": {inner(map[string]string{
			schema:                     schemaOf(`"inner": {"type": "object", "properties": {"auth": {"type": "object", "properties": {` + secret + `}}}}`),
			"charts/inner/values.yaml": "auth:\n  p: changeit\n", given: "inner:\n  auth:\n    p: null\n",
		}), nil},
		"an array at the root":   {map[string]string{schema: `{"type": "array"}`}, []string{"values.schema.json:1:1 error schema-invalid the schema refuses any values: they are always an object"}},
		"a schema that is false": {map[string]string{schema: `false`}, []string{"values.schema.json:1:1 error schema-invalid the schema refuses any values: they are always an object"}},
		"an empty text":          {map[string]string{schema: schemaOf(`"mode": {"type": "string"}`), given: "mode: a\n", more: pod(`not .Values.mode`)}, []string{behindPod + ` (with mode="")`}},
		"a zero":                 {map[string]string{schema: schemaOf(`"size": {"type": "integer"}`), given: "size: 1\n", more: pod(`not .Values.size`)}, []string{behindPod + ` (with size=0)`}},
		"an enum in a list": {map[string]string{schema: schemaOf(`"list": {"type": "array", "items": ` + named + `}`), more: `{{ range .Values.list }}{{ if eq .kind "b" }}
---
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": {{ .id | quote }}}}
{{ end }}{{ end }}`}, []string{"templates/more.yaml:3:1 error allowed-kind Pod/…:  (with list[].kind=b)"}},
		"a switch in a list": {map[string]string{schema: schemaOf(`"list": {"type": "array", "items": {"type": "object", "required": ["live"], "properties": {"live": {"type": "boolean"}}}}`), more: `{{ range $i, $_ := .Values.list }}{{ if not .live }}
---
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "behind-{{ $i }}"}}
{{ end }}{{ end }}`}, []string{"templates/more.yaml:3:1 error allowed-kind Pod/behind-NUMBER:  (with list[].live=false)"}},
		"a text of a list": {map[string]string{schema: schemaOf(`"list": {"type": "array", "items": {"enum": ["a", "z"]}}`), given: "list: [a]\n", more: pod(`has "z" .Values.list`)}, []string{behindPod + " (with list[]=z)"}},
		"a switch in a map": {map[string]string{schema: schemaOf(`"map": {"type": "object", "additionalProperties": ` + named + `}`), more: `{{ range $key, $_ := .Values.map }}{{ if not (.live | default false) }}
---
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "behind-{{ $key }}"}}
{{ end }}{{ end }}`}, []string{"templates/more.yaml:3:1 error allowed-kind Pod/behind-zae0:  (first with map.* without live; in 2 renders)"}},
		"an optional part of a list": {map[string]string{schema: schemaOf(`"env": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string", "pattern": "^[A-Z]+$"}, "value": {"type": "string"}}}}`), more: deployment("", requests, "env: {{ toJson .Values.env }}")},
			[]string{"templates/more.yaml:16:11 error valid-object Deployment/more: spec.template.spec.containers[0].env[0].name (with env[] without name)"}},
		"no requests": {map[string]string{more: deployment("", "args: [a]")}, []string{"templates/more.yaml:13:9 warning resource-requests Deployment/more: spec.template.spec.containers[0].resources"}},
		"a headless primary without a probe": {map[string]string{"templates/tiny.yaml": strings.ReplaceAll(deployment("", requests), "more", "tiny") + "---\n" +
			"apiVersion: v1\nkind: Service\nmetadata:\n  name: tiny\nspec:\n  clusterIP: None\n  selector: {app: tiny}\n  ports: [{port: 80}]\n"}, []string{
			"templates/tiny.yaml:12:7 warning primary-readiness Deployment/tiny: spec.template.spec.containers",
			"templates/tiny.yaml:22:3 warning primary-reachable Service/tiny: spec.clusterIP",
		}},
		"a quantity by its name": {map[string]string{schema: schemaOf(`"cpu": {"type": "string", "minLength": 1}`), given: "cpu: 10m\n", more: deployment("", "resources: {requests: {cpu: {{ .Values.cpu | quote }}}}")},
			[]string{"templates/more.yaml:15:34 warning text-not-narrowed Deployment/more: spec.template.spec.containers[0].resources.requests.cpu: cpu: the schema takes any text, and with one, the field is refused: wrong type, must be a quantity"}},
		"a quantity by another name": {map[string]string{schema: schemaOf(`"amount": {"type": "string", "minLength": 1}`), given: "amount: 10m\n", more: deployment("", "resources: {requests: {cpu: {{ .Values.amount | quote }}}}")},
			[]string{"templates/more.yaml:15:34 warning text-not-narrowed Deployment/more: spec.template.spec.containers[0].resources.requests.cpu: amount: the schema takes any text, and with one, the field is refused: wrong type, must be a quantity"}},
		"values as a map": {map[string]string{schema: schemaOf(`"g": {"type": "object", "properties": {"x": {"type": "string"}}}`), given: "g: {x: \"\"}\n", more: data("all", `a: {{ dig "g" "x" "" .Values.AsMap | quote }}`)}, nil},
		"a name in a list": {map[string]string{schema: schemaOf(`"list": {"type": "array", "items": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}}`), more: "{{ range .Values.list }}\n---\n" + data(`{{ printf "one-%s" .id | quote }}`, "a: b") + "{{ end }}"},
			[]string{"templates/more.yaml:6:3 warning text-not-narrowed ConfigMap/one-…: metadata.name: list[0].id: the schema takes any text, and with one, the field is refused: not a valid name for a ConfigMap"}},
		"a fraction": {map[string]string{schema: schemaOf(`"count": {"type": "number", "minimum": 0, "maximum": 5}`), given: "count: 1\n", more: deployment("  replicas: {{ .Values.count }}\n", requests)},
			[]string{"templates/more.yaml:6:3 warning number-unbounded Deployment/more: spec.replicas: count: the schema takes a fraction, and with one, the field is refused: wrong type, must be a whole number of 32 bits"}},
		"a secret's default in the schema": {map[string]string{schema: schemaOf(`"p": {"type": "string", "writeOnly": true, "minLength": 1,
"default": "changeit"}`)},
			[]string{"values.schema.json:2:1 error secret-default p: a secret input has a default here"}},
		"a secret in the default of its group": {map[string]string{schema: schemaOf(`"g": {"type": "object", "default": {"p": "changeit"}, "properties": {` + secret + `}}`)},
			[]string{"values.schema.json:1:113 error secret-default g.p: a secret input has a default here"}},
		"a secret's empty default in the schema": {map[string]string{schema: schemaOf(`"p": {"type": "string", "writeOnly": true, "default": ""}`)}, nil},
		"a file with secrets that are no texts": {map[string]string{schema: schemaOf(secret + `, "q": {"type": "string", "writeOnly": true}, "r": {"type": "string", "writeOnly": true}`), "ci/a-values.yaml": "p: 5\nq: [a]\nr: true\n"},
			[]string{
				"ci/a-values.yaml:1:1 error ci-refused p: must be a string, not a number",
				"ci/a-values.yaml:2:1 error ci-refused q: must be a string, not an array",
				"ci/a-values.yaml:3:1 error ci-refused r: must be a string, not a boolean",
			}},
		"a file with a secret that is null":           {map[string]string{schema: schemaOf(secret, required), "ci/a-values.yaml": "p: null\n"}, []string{"ci/a-values.yaml:1:1 error ci-refused p: must be a string, not null"}},
		"a file without a required input":             {map[string]string{schema: schemaOf(secret+`, "count": {"type": "integer"}`, `, "required": ["p", "count"]`), "ci/a-values.yaml": "p: something\n"}, []string{"ci/a-values.yaml:0:0 error ci-refused count: is required"}},
		"a file without secrets and generated inputs": {map[string]string{schema: schemaOf(`"g": {"type": "object", "required": ["p", "k"], "properties": {`+secret+`, "k": {"type": "string", "x-zaentrum-generate": "random-hex-32"}}}, "count": {"type": "integer"}`, `, "required": ["g", "count"]`), "ci/a-values.yaml": "count: 1\n"}, nil},
		"a primary that is called as the addon": {map[string]string{"templates/tiny.yaml": "apiVersion: v1\nkind: Service\nmetadata:\n  name: {{ .Release.Name }}\nspec:\n  selector: {app: more}\n  ports: [{port: 80}]\n", more: deployment("", requests, "readinessProbe: {tcpSocket: {port: 80}}")},
			[]string{"templates/tiny.yaml:4:3 warning name-changes Service/tiny: metadata.name: the primary's name changes with the addon's: of an addon that is called otherwise than the chart, the plan is refused"}},
		"images that are none": {map[string]string{more: strings.ReplaceAll(deployment("", requests), "ghcr.io/example/more:1", `"GHCR.io/X Y:::"`) + "---\n" + strings.NewReplacer("ghcr.io/example/more:1", `"x@sha256:zz"`, "name: more", "name: other").Replace(deployment("", requests))},
			[]string{
				"templates/more.yaml:14:11 error image-not-pinned Deployment/more: spec.template.spec.containers[0].image: no image has such a name: it is [HOST/]PATH in lower case, with :TAG, or @sha256: and 64 digits",
				"templates/more.yaml:30:11 error image-not-pinned Deployment/other: spec.template.spec.containers[0].image: no image has such a name: it is [HOST/]PATH in lower case, with :TAG, or @sha256: and 64 digits",
			}},
		"images of all forms": {map[string]string{more: strings.ReplaceAll(deployment("", requests), "ghcr.io/example/more:1", "REG.example.org:5000/a/b-c__d.e:v1_2-x@sha256:"+strings.Repeat("0a", 32)) + "---\n" + strings.NewReplacer("ghcr.io/example/more:1", `"busybox:1"`, "name: more", "name: other").Replace(deployment("", requests))}, nil},
		"what is in no order": {map[string]string{schema: schemaOf(`"m": {"type": "object", "minProperties": 1, "additionalProperties": {"enum": ["y", "z"]}}`), given: "m: {a: z}\n", more: data("sets",
			"a: {{ dict \"a\" 1 \"b\" 2 | keys | first | quote }}", "b: {{ join \",\" (values .Values.m) | quote }}", "c: {{ $all := keys .Values.m }}{{ index $all 0 | quote }}", "{{ range keys .Values.m }}", "m-{{ . }}: x", "{{ end }}",
			"d: |", "{{- range $i, $_ := keys .Values.m }}", "  - {{ $i }}", "{{- end }}", "e: {{ include \"more\" (keys .Values.m) | quote }}") + `{{ define "more" }}{{ . | sortAlpha | join "," }}{{ end }}`},
			[]string{
				"templates/more.yaml:6:28 error not-deterministic keys gives another order each time (line 6)",
				"templates/more.yaml:7:19 error not-deterministic values gives another order each time (line 7)",
				"templates/more.yaml:8:17 error not-deterministic keys gives another order each time (line 8)",
				"templates/more.yaml:9:12 warning not-deterministic keys gives another order each time (line 9)",
				"templates/more.yaml:13:23 error not-deterministic keys gives another order each time (line 13)",
				"templates/more.yaml:16:25 warning not-deterministic keys gives another order each time (line 16)",
			}},
		"what is put in order": {map[string]string{schema: schemaOf(`"m": {"type": "object", "minProperties": 1, "additionalProperties": {"enum": ["y", "z"]}}`), given: "m: {a: z}\n", more: data("sets",
			"a: {{ keys .Values.m | sortAlpha | first | quote }}", "b: {{ len (values .Values.m) | quote }}", "c: {{ $all := keys .Values.m }}{{ index (sortAlpha $all) 0 | quote }}", "{{ if keys .Values.m }}", "d: {{ has \"a\" (keys .Values.m) | quote }}", "{{ end }}",
			"{{- $sorted := keys .Values.m | uniq | sortAlpha }}{{ range $sorted }}", "e-{{ . }}: x", "{{ end }}")}, nil},
		"encodings called checksums": {map[string]string{schema: schemaOf(secret, required), more: "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: sums\n  annotations:\n" +
			"    checksum/a: {{ printf \"%x\" .Values.p | quote }}\n    checksum/b: {{ printf \"%x\" .Values.p | trunc 8 | quote }}\n    checksum/c: {{ .Values.p | sha1sum }}\n" +
			"    checksum/d: {{ .Values.p | adler32sum | quote }}\n    config-hash: {{ .Values.p | b32enc | trunc 12 | quote }}\n    hash: {{ .Values.p | sha512sum | trunc 10 | quote }}\n"},
			[]string{
				"templates/more.yaml:6:5 warning secret-derived ConfigMap/sums: metadata.annotations[checksum/a]: changes with a secret input",
				"templates/more.yaml:7:5 warning secret-derived ConfigMap/sums: metadata.annotations[checksum/b]: changes with a secret input",
				"templates/more.yaml:10:5 warning secret-derived ConfigMap/sums: metadata.annotations.config-hash: changes with a secret input",
			}},
		"keys made of a secret": {map[string]string{schema: schemaOf(secret, required), more: data("sums", "{{ .Values.p | sha1sum | trunc 5 }}: x")},
			[]string{"templates/more.yaml:5:1 warning secret-derived ConfigMap/sums: data: what is in it depends on a secret input"}},
		"keys of a Secret made of one": {map[string]string{schema: schemaOf(secret, required), more: strings.Replace(data("sums", "{{ .Values.p | sha1sum | trunc 5 | quote }}: eA=="), "ConfigMap", "Secret", 1)},
			[]string{"templates/more.yaml:5:1 warning secret-derived Secret/sums: data: what is in it depends on a secret input"}},
		"an object that a secret decides on": {map[string]string{schema: schemaOf(secret, required), more: "{{ if gt (len .Values.p) 24 }}\n" + data("sums", "a: b") + "{{ end }}"},
			[]string{"templates/more.yaml:5:3 warning secret-derived ConfigMap/sums: metadata.name: is rendered, or not, depending on a secret input"}},
		"an item that a secret decides on": {map[string]string{schema: schemaOf(secret, required), more: deployment("", requests, "args:", "- a", "{{ if gt (len .Values.p) 24 }}- b{{ end }}")},
			[]string{"templates/more.yaml:16:11 warning secret-derived Deployment/more: spec.template.spec.containers[0].args: what is in it depends on a secret input"}},
		"the platform's block in values.yaml": {map[string]string{given: "a: b\nzaentrum:\n  hostname: here\n"}, []string{"values.yaml:2:1 warning undeclared-default zaentrum: the platform's own block, of which a chart has none"}},
		"capitals in the name":                {map[string]string{"Chart.yaml": strings.Replace(tinyChart(""), "name: tiny", "name: Tiny", 1)}, []string{"Chart.yaml:2:1 warning addon-name the chart's name has capitals: the addon is called tiny"}},
		"a schema that is no JSON":            {map[string]string{schema: "{\n\n\"type\": }"}, []string{"values.schema.json:3:1 error schema-invalid values.schema.json line 3: not valid JSON"}},
		"a key of the schema twice":           {map[string]string{schema: "{\n\"type\": \"object\",\n\"type\": \"object\"}"}, []string{"values.schema.json:3:1 error schema-invalid values.schema.json line 3: type is there twice"}},
		"another namespace": {map[string]string{more: data("places", "a: foo.default.svc.cluster.local", "b: https://foo.other.svc:8080/x", "c: kubernetes.default.svc", "d: foo.{{ .Values.zaentrum.namespace }}.svc")},
			[]string{
				"templates/more.yaml:6:3 warning hard-coded-platform ConfigMap/places: data.a: an address in the namespace default is written into the chart",
				"templates/more.yaml:7:3 warning hard-coded-platform ConfigMap/places: data.b: an address in the namespace other is written into the chart",
			}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, _ := scan(t, pool, tc.files, lint.Options{})
			var got []string
			for _, line := range strings.Split(strings.TrimSpace(found), "\n") {
				if line != "" && !strings.Contains(line, " input-unused ") {
					got = append(got, numbersIn.ReplaceAllString(line, "-NUMBER:"))
				}
			}
			slices.Sort(got)
			slices.Sort(tc.want)
			if !slices.Equal(got, tc.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}

var numbersIn = regexp.MustCompile(`-(?:[0-9]|[0-9a-f]{8}):`)

// TestVersionsAreComparedWithWhatBothTake: what is off by default is looked at, too.
func TestVersionsAreComparedWithWhatBothTake(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	const claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: spare\nspec:\n  accessModes: [ReadWriteOnce]\n  resources: {requests: {storage: 1Gi}}\n"
	behind := func(text string) string { return "{{ if .Values.live }}\n" + text + "{{ end }}\n" }
	schema, values := schemaOf(`"live": {"type": "boolean"}`), "live: false\n"
	group := func(required string) string {
		return schemaOf(`"db": {"type": "object", "properties": {"host": {"type": "string", "minLength": 1}, "user": {"type": "string", "minLength": 1}}` + required + `}`)
	}
	asked := func(more string) string { return schemaOf(`"a": {"type": "string"`+more+`}`, `, "required": ["a"]`) }
	for name, tc := range map[string]struct {
		before, after map[string]string
		want          string
	}{
		"a claim that is gone": {
			map[string]string{"values.schema.json": schema, "values.yaml": values, "templates/more.yaml": behind(claim)},
			map[string]string{"values.schema.json": schema, "values.yaml": values, "templates/more.yaml": behind("")},
			"warning claim-deleted PersistentVolumeClaim/spare: the claim of the version before is not rendered any more (with live=true)",
		},
		"a selector": {
			map[string]string{"values.schema.json": schema, "values.yaml": values, "templates/more.yaml": behind(deployment("", "args: [a]"))},
			map[string]string{"values.schema.json": schema, "values.yaml": values, "templates/more.yaml": behind(strings.ReplaceAll(deployment("", "args: [a]"), "{app: more}", "{app: other}"))},
			"error immutable-field Deployment/more: spec.selector: is another one than in the version before, and cannot be changed (with live=true)",
		},
		"another chart": {
			map[string]string{"Chart.yaml": strings.Replace(tinyChart(""), "name: tiny", "name: other", 1)}, nil,
			"warning version-not-raised the chart that it is compared with has another name: other",
		},
		"required in a group": {
			map[string]string{"values.schema.json": group("")},
			map[string]string{"values.schema.json": group(`, "required": ["user"]`)},
			"warning input-newly-required db.user: was not required before",
		},
		"a default that is gone": {
			map[string]string{"values.schema.json": asked(""), "values.yaml": "a: x\n"},
			map[string]string{"values.schema.json": asked(""), "values.yaml": "{}\n"},
			"warning input-newly-required a: did not have to be given before, since the chart had a value of its own",
		},
		"an empty default that is one no more": {
			map[string]string{"values.schema.json": asked(""), "values.yaml": "a: \"\"\n"},
			map[string]string{"values.schema.json": asked(`, "minLength": 1`), "values.yaml": "a: \"\"\n"},
			"warning input-newly-required a: did not have to be given before, since the chart had a value of its own",
		},
		"an empty default that never was one": {
			map[string]string{"values.schema.json": asked(`, "minLength": 1`), "values.yaml": "a: \"\"\n"},
			map[string]string{"values.schema.json": asked(`, "minLength": 2`), "values.yaml": "a: \"\"\n"},
			"",
		},
		"required in a new group": {
			map[string]string{"values.schema.json": schemaOf("")},
			map[string]string{"values.schema.json": group(`, "required": ["user"]`)},
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, _ := scan(t, pool, tc.after, lint.Options{Against: withFiles(t, "tiny", tc.before)})
			if tc.want != "" && !strings.Contains(found, tc.want+"\n") || tc.want == "" && strings.Contains(found, "input-newly-required") {
				t.Errorf("no %q:\n%s", tc.want, found)
			}
		})
	}
}

// TestAnEnumOfThousandsIsBounded: what is left out is said, and whoever stops waiting is let go.
func TestAnEnumOfThousandsIsBounded(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	members := make([]string, 20_000)
	for i := range members {
		members[i] = strconv.Itoa(i)
	}
	files := map[string]string{"values.schema.json": schemaOf(`"a": {"enum": [` + strings.Join(members, ", ") + `]}`), "templates/more.yaml": data("all", "a: {{ .Values.a | quote }}")}
	start := time.Now()
	_, space := scan(t, pool, files, lint.Options{MaxRenders: 1})
	if took := time.Since(start); took > 30*time.Second { // each member held against each other takes minutes
		t.Errorf("took %s", took)
	}
	if !strings.HasSuffix(space, "20000 values and pairs of values are left out (--max-renders)") {
		t.Error(space)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lint.Check(ctx, lint.Source{Archive: withFiles(t, "tiny", files)}, lint.Options{Worker: pool}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
