package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chartutil"

	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/values"
)

// bundled are files of a chart that bundles db, which bundles deep; db is there a second time as replica.
func bundled(files ...string) map[string]string {
	m := exampleChart(
		"charts/db/Chart.yaml", "apiVersion: v2\nname: db\nversion: 1.0.0\n",
		"charts/db/values.yaml", "port: 5432\nexports: {x: {fromDB: yes}}\n",
		"charts/db/charts/deep/Chart.yaml", "apiVersion: v2\nname: deep\nversion: 1.0.0\n",
	)
	m["Chart.yaml"] = "apiVersion: v2\nname: example\nversion: 1.0.0\ndependencies:\n" +
		"- {name: db, version: 1.x, condition: db.enabled, import-values: [x]}\n" +
		"- {name: db, version: 1.x, alias: replica, condition: replica.enabled}\n"
	for i := 0; i+1 < len(files); i += 2 {
		m[files[i]] = files[i+1]
	}
	return m
}

// TestSchemasOfBundledChartsCount: the verdict is Helm's, and says where.
func TestSchemasOfBundledChartsCount(t *testing.T) {
	const db = "charts/db/values.schema.json"
	for rule, tc := range map[string]struct {
		files map[string]string
		given map[string]any
		want  []string
	}{
		"no schema":                          {bundled(), nil, nil},
		"a bundled chart's own default":      {bundled(db, `{"required":["port"],"properties":{"port":{"type":"integer"}}}`), nil, nil},
		"a required value":                   {bundled(db, `{"required":["name"]}`), nil, []string{"db.name: is required", "replica.name: is required"}},
		"a chart that is switched off":       {bundled(db, `{"required":["name"]}`), map[string]any{"replica": map[string]any{"enabled": false}}, []string{"db.name: is required"}},
		"a value that is given":              {bundled(db, `{"properties":{"port":{"maximum":10}}}`), map[string]any{"db": map[string]any{"port": int64(11)}, "replica": map[string]any{"port": int64(1)}}, []string{"db.port: must be at most 10"}},
		"a chart inside a bundled chart":     {bundled("charts/db/charts/deep/values.schema.json", `{"required":["a"]}`), map[string]any{"replica": map[string]any{"enabled": false}}, []string{"db.deep.a: is required"}},
		"the values as a whole":              {bundled(db, `{"minProperties":9}`), map[string]any{"replica": map[string]any{"enabled": false}}, []string{"db: must have at least 9 keys"}},
		"globals are among a bundled's own":  {bundled(db, `{"additionalProperties":false,"properties":{"port":true,"exports":true,"deep":true}}`), map[string]any{"global": map[string]any{"a": canary}, "replica": map[string]any{"enabled": false}}, []string{"db.global: is not known to the schema (additionalProperties)"}},
		"a schema that is none":              {bundled(db, `{"type":"`+canary+`"}`), nil, []string{"charts/db/values.schema.json #/type: matches none of the forms the schema allows (anyOf): not a draft-07 schema", "charts/replica/values.schema.json #/type: matches none of the forms the schema allows (anyOf): not a draft-07 schema"}},
		"the chart's own, with defaults":     {bundled("values.schema.json", `{"properties":{"db":{"required":["port"]},"fromDB":{"type":"boolean"}},"required":["db","fromDB"]}`), nil, nil},
		"the chart's own, with a default of": {bundled("values.schema.json", `{"properties":{"db":{"properties":{"port":{"maximum":10}}}}}`), nil, []string{"db.port: must be at most 10"}},
		"both":                               {bundled("values.schema.json", `{"required":["zz"]}`, db, `{"required":["name"]}`), map[string]any{"replica": map[string]any{"enabled": false}}, []string{"db.name: is required", "zz: is required"}},
		"something else than an object":      {bundled(), map[string]any{"db": canary}, []string{"values: db must be an object: it holds the values of a bundled chart"}},
	} {
		t.Run(rule, func(t *testing.T) {
			silenceHelm(t)
			c := chartOf(t, tc.files)
			schema, err := inputs.Parse(c.Schema)
			if err != nil {
				t.Fatal(err)
			}
			in := inputOf(c, tc.given)
			before := values.CloneTree(in.Values)
			if d := cmp.Diff(tc.want, Validate(in, schema)); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(before, in.Values); d != "" {
				t.Errorf("the values changed: %s", d)
			}
			h := cloneChart(c.Helm())
			given := values.CloneTree(tc.given)
			given["zaentrum"] = platform
			err = chartutil.ProcessDependenciesWithMerge(h, given)
			if err == nil {
				_, err = chartutil.ToRenderValuesWithSchemaValidation(h, given, chartutil.ReleaseOptions{}, capabilities(), false)
			}
			if (err == nil) != (len(tc.want) == 0) {
				t.Errorf("Helm says %v", err)
			}
		})
	}
}
