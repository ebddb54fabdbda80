package lint_test

import (
	"strings"
	"testing"

	"zaentrum.io/zae/internal/lint"
)

// tinyChart is the Chart.yaml of the tiny example with dependencies.
func tinyChart(dependencies string) string {
	return "apiVersion: v2\nname: tiny\nversion: 1.0.0\nappVersion: \"1\"\nannotations:\n  zaentrum.io/addon: \"true\"\n  zaentrum.io/primary: tiny\n" + dependencies
}

// settings is a ConfigMap with what a template renders for each line.
func settings(lines ...string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Chart.Name }}-settings\ndata:\n  text: |-\n    x\n    " + strings.Join(lines, "\n    ") + "\n"
}

// TestWhatIsReadIsNoFinding: of inputs and values, only those are told of that nothing reads, or that are nowhere.
func TestWhatIsReadIsNoFinding(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	inner := func(files map[string]string) map[string]string {
		out := map[string]string{"charts/inner/Chart.yaml": "apiVersion: v2\nname: inner\nversion: 1.0.0\n"}
		for name, text := range files {
			out[name] = text
		}
		if out["Chart.yaml"] == "" {
			out["Chart.yaml"] = tinyChart("dependencies:\n- {name: inner, version: 1.0.0}\n")
		}
		return out
	}
	schema := func(properties string) string {
		return `{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {` + properties + `}}`
	}
	object := func(name, properties string) string {
		return `"` + name + `": {"type": "object", "properties": {` + properties + `}}`
	}
	const (
		enabled = `"enabled": {"type": "boolean"}`
		port    = `"port": {"type": "integer"}`
	)
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"a condition": {inner(map[string]string{
			"Chart.yaml":         tinyChart("dependencies:\n- {name: inner, version: 1.0.0, condition: \"inner.enabled,inner.on\"}\n"),
			"values.schema.json": schema(object("inner", enabled+`, "spare": {"type": "boolean"}`)),
		}), "input-unused inner.spare"},
		"a condition of a chart in a chart": {inner(map[string]string{
			"charts/inner/Chart.yaml":             "apiVersion: v2\nname: inner\nversion: 1.0.0\ndependencies:\n- {name: leaf, version: 1.0.0, condition: leaf.enabled}\n",
			"charts/inner/charts/leaf/Chart.yaml": "apiVersion: v2\nname: leaf\nversion: 1.0.0\n",
			"values.schema.json":                  schema(object("inner", object("leaf", enabled)) + "," + object("leaf", enabled)),
		}), "input-unused leaf.enabled"},
		"a tag": {inner(map[string]string{
			"Chart.yaml":         tinyChart("dependencies:\n- {name: inner, version: 1.0.0, tags: [front]}\n"),
			"values.schema.json": schema(object("tags", `"front": {"type": "boolean"}, "back": {"type": "boolean"}`)),
		}), "input-unused tags.back"},
		"values of a bundled chart": {inner(map[string]string{
			"charts/inner/templates/x.yaml": settings("{{ .Values.port }}{{ .Values.global.host }}"),
			"values.schema.json":            schema(object("inner", port+","+object("global", `"host": {"type": "string"}`)) + "," + object("global", `"host": {"type": "string"}, "port": {"type": "integer"}`)),
		}), "input-unused global.port"},
		"all values of a bundled chart": {inner(map[string]string{
			"charts/inner/templates/x.yaml": settings("{{ .Values | toJson }}"),
			"values.schema.json":            schema(object("inner", port) + "," + object("global", `"host": {"type": "string"}`) + "," + port),
		}), "input-unused port"},
		"a bundled chart under other names": {inner(map[string]string{
			"Chart.yaml":                    tinyChart("dependencies:\n- {name: inner, version: 1.0.0, alias: first}\n- {name: inner, version: 1.0.0, alias: second}\n"),
			"charts/inner/templates/x.yaml": settings("{{ .Values.port }}"),
			"values.schema.json":            schema(object("first", port) + "," + object("second", port) + "," + object("inner", port)),
		}), "input-unused inner.port"},
		"imported values": {inner(map[string]string{
			"Chart.yaml":               tinyChart("dependencies:\n- name: inner\n  version: 1.0.0\n  import-values:\n  - data\n  - {child: parts.db, parent: database}\n"),
			"charts/inner/values.yaml": "exports: {data: {size: 1}}\nparts: {db: {port: 5432}}\n",
			"templates/x.yaml":         settings("{{ .Values.size }}{{ .Values.database.port }}{{ .Values.database.prt }}"),
			"values.schema.json":       schema(""),
		}), "undeclared-value database.prt"},
		"a default of a bundled chart": {inner(map[string]string{
			"charts/inner/values.yaml":      "port: 80\nsize: 1\n",
			"charts/inner/templates/x.yaml": settings("{{ .Values.port }}{{ .Values.size }}"),
			"values.schema.json":            schema(object("inner", `"port": {"type": "integer", "default": 80}, "size": {"type": "integer", "default": 2}`)),
		}), "default-differs inner.size"},
		"a library": {inner(map[string]string{
			"charts/inner/Chart.yaml":         "apiVersion: v2\nname: inner\nversion: 1.0.0\ntype: library\n",
			"charts/inner/templates/_lib.tpl": "{{ define \"lib\" }}{{ default \"x\" .Values.nameOverride }}{{ .Values.mode }}{{ .Values.mood }}{{ end }}",
			"templates/x.yaml":                settings("{{ include \"lib\" . }}"),
			"values.schema.json":              schema(`"mode": {"type": "string"}`),
		}), "undeclared-value mood"},
		"tested without a schema": {map[string]string{
			"templates/x.yaml": settings("{{ default 1 .Values.a }}{{ if .Values.b }}{{ .Values.b.c }}{{ end }}{{ with .Values.d }}{{ .e }}{{ end }}{{ if and .Values.f (gt .Values.f.g 1) }}{{ end }}{{ dig \"i\" 1 (.Values.h | default dict) }}{{ .Values.plain }}"),
		}, "no-schema  ; undeclared-value plain"},
		"tested with a schema": {map[string]string{
			"templates/x.yaml": settings("{{ default 1 .Values.a }}{{ .Values.b | default 1 }}"), "values.schema.json": schema(`"a": {"type": "string"}`),
		}, "undeclared-value b"},
		"what the template makes": {map[string]string{
			"templates/x.yaml": settings("{{ $m := merge (dict \"x\" 1) .Values.a }}{{ $m.x }}{{ $m.yy }}{{ $m.z }}{{ $_ := set .Values.a \"w\" 1 }}{{ .Values.a.w }}{{ $_ := mergeOverwrite .Values.c (dict \"v\" 1) }}{{ .Values.c.v }}" +
				"{{ (coalesce .Values.d .Values.a).yy }}{{ (pick .Values.a \"yy\").yy }}{{ (first (list .Values.a)).yy }}{{ index .Values.e 0 }}{{ pluck \"yy\" .Values.a .Values.f | first }}{{ tpl .Values.g (dict) }}"),
			"values.schema.json": schema(object("a", `"yy": {"type": "integer"}`) + `, "c": {"type": "object"}, "d": {"type": "object", "properties": {}}, "e": {"type": "array"}, "f": {"type": "object"}, "g": {"type": "string", "default": ""}`),
			"values.yaml":        "a: {yy: 1}\nc: {}\nd: {}\ne: [1]\nf: {}\ng: \"\"\n",
		}, "undeclared-value a.z"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report := check(t, pool, lint.Source{Label: "tiny", Archive: withFiles(t, "tiny", c.files)}, lint.Options{MaxRenders: 1})
			var got []string
			for _, f := range report.Findings {
				switch f.Rule {
				case "input-unused", "undeclared-value", "default-differs", "no-schema":
					got = append(got, f.Rule+" "+f.Path)
				case "undeclared-default":
				default:
					t.Errorf("%+v", f)
				}
			}
			if strings.Join(got, " ; ") != c.want {
				t.Errorf("got  %s\nwant %s", strings.Join(got, " ; "), c.want)
			}
		})
	}
}

// TestMadeUpNamesAreNotTold: a name that is made of an input has a made-up value in it.
func TestMadeUpNamesAreNotTold(t *testing.T) {
	t.Parallel()
	report := check(t, newPool(t), lint.Source{Label: "tiny", Archive: withFiles(t, "tiny", map[string]string{
		"values.schema.json": `{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "required": ["name"], "properties": {"name": {"type": "string", "minLength": 1}}}`,
		"templates/x.yaml":   "apiVersion: v1\nkind: Secret\nmetadata:\n  name: x-{{ .Values.name }}\ntype: none\n",
	})}, lint.Options{})
	all := lines(report)
	if sentinels.MatchString(all) || !strings.Contains(all, "Secret/x-…: metadata.name") {
		t.Error(all)
	}
}
