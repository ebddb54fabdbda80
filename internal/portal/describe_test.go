package portal_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
)

const inputsSchema = `{"required":["database"],"properties":{
	"database":{"type":"object","title":"Database","required":["url"],"properties":{"url":{"type":"string","title":"Connection URL","writeOnly":true}}},
	"tls":{"type":"object","properties":{"enabled":{"type":"boolean","default":false},"secret":{"type":"string"}},
		"if":{"properties":{"enabled":{"const":true}},"required":["enabled"]},"then":{"required":["secret"]}},
	"list":{"type":"array"}}}`

// described says that the operator has planned the resource as it is, with the schema.
func described(schema string, states ...v1alpha1.PlanInput) func(*v1alpha1.ZaentrumAddon) {
	return func(a *v1alpha1.ZaentrumAddon) {
		planned(a)
		a.Status.Plan.ValuesSchema, a.Status.Plan.Inputs = schema, states
	}
}

func TestGetDescribesTheInputsWithTheirStates(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
	b.operate("example", described(inputsSchema,
		v1alpha1.PlanInput{Path: "database.url", State: v1alpha1.InputMissing}, v1alpha1.PlanInput{Path: "tls.enabled", State: v1alpha1.InputFromChart},
		v1alpha1.PlanInput{Path: "tls.secret", State: v1alpha1.InputUnset}, v1alpha1.PlanInput{Path: "gone", State: v1alpha1.InputSet}))
	var got map[string]any
	b.answer(http.MethodGet, chartPath("example"), nil, http.StatusOK, &got)
	want := []any{
		map[string]any{"path": "database.url", "group": "database", "type": "string", "title": "Connection URL", "required": true, "requiredInGroup": true, "secret": true, "order": 0.0, "state": "missing"},
		map[string]any{"path": "tls.enabled", "group": "tls", "type": "boolean", "default": false, "required": false, "requiredInGroup": false, "secret": false, "order": 1.0, "state": "chart"},
		map[string]any{"path": "tls.secret", "group": "tls", "type": "string", "required": false, "requiredInGroup": false, "requiredWhen": "when tls.enabled is true", "secret": false, "order": 2.0, "state": "unset"},
		map[string]any{"path": "list", "type": "json", "required": false, "requiredInGroup": false, "secret": false, "order": 3.0},
	}
	if d := cmp.Diff(want, got["inputs"]); d != "" {
		t.Error(d)
	}
}

func TestInputsAreAbsentWithoutASchemaThatCanBeRead(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		schema string
		want   bool
	}{
		"no schema":                   {"", false},
		"no JSON":                     {"{", false},
		"a reference to elsewhere":    {`{"$ref":"http://example.org/"}`, false},
		"one that takes long to read": {`{"definitions":{"a":{"allOf":[` + strings.TrimSuffix(strings.Repeat("{},", 2000), ",") + `]}},"properties":{` + strings.TrimSuffix(strings.Repeat(`"p":{"$ref":"#/definitions/a"},`, 1), ",") + `,"q":{"allOf":[` + strings.TrimSuffix(strings.Repeat(`{"$ref":"#/definitions/a"},`, 2900), ",") + `]}}}`, true},
		"one that asks for nothing":   {`{}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
			b.operate("example", described(tc.schema))
			var got map[string]any
			b.answer(http.MethodGet, chartPath("example"), nil, http.StatusOK, &got)
			if _, there := got["inputs"]; there != tc.want {
				t.Errorf("inputs: %v", got["inputs"])
			}
		})
	}
}

func TestASecretAmongPlainValuesIsRefusedOnceThePlanTells(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart(), Suspend: true})
	b.operate("example", described(inputsSchema))
	before := b.state()
	const values = `"values":{"database":{"url":"` + canary + `"}}`
	for method, body := range map[string]string{
		http.MethodPatch: `{` + values + `,"suspend":false}`,
		http.MethodPost:  `{"chart":"` + exampleRef + `","version":"1.2.0","name":"example",` + values + `,"secretValues":{"config.key":"x"}}`,
	} {
		path := chartPath("example")
		if method == http.MethodPost {
			path = apitype.PathAddonCharts
		}
		p := b.refused(method, path, body, http.StatusBadRequest, "invalid")
		if !strings.Contains(p.Detail, "database.url is a secret input") || !strings.Contains(p.Hint, "secretValues") || strings.Contains(p.Detail+p.Hint, canary) {
			t.Errorf("%s: %+v", method, p)
		}
	}
	if after := b.state(); after != before {
		t.Errorf("something was written:\n%s\n%s", before, after)
	}

	// What the plan says nothing of passes: other paths, another chart, a plan of an earlier generation.
	var out apitype.WriteAnswer
	b.answer(http.MethodPatch, chartPath("example"), `{"values":{"database":{"host":"x"}}}`, http.StatusAccepted, &out)
	b.answer(http.MethodPatch, chartPath("example"), `{`+values+`}`, http.StatusAccepted, &out)
	// What stands there already can be sent back, as putting back an upgrade does.
	b.operate("example", described(inputsSchema))
	b.answer(http.MethodPatch, chartPath("example"), `{"values":{"database":{"url":"`+canary+`"},"list":[]}}`, http.StatusAccepted, &out)
	b.operate("example", described(inputsSchema))
	b.refused(http.MethodPatch, chartPath("example"), `{"values":{"database":{"url":"other"}}}`, http.StatusBadRequest, "invalid")
	b.answer(http.MethodPatch, chartPath("example"), `{"chart":"oci://charts.example.org/charts/other","version":"1.0.0","values":{"database":{"url":"other"}}}`, http.StatusAccepted, &out)
}

func TestAPlanThatCannotBeReadRefusesNoValues(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart(), Values: &runtime.RawExtension{Raw: []byte(`{"a":1}`)}})
	b.operate("example", described(`{"$ref":"#/nowhere"}`))
	var out apitype.WriteAnswer
	b.answer(http.MethodPatch, chartPath("example"), `{"values":{"database":{"url":"x"}}}`, http.StatusAccepted, &out)
}

func TestASecretInAListOrAMapAmongPlainValuesIsRefusedToo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.commit("example", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart(), Suspend: true,
		Values: &runtime.RawExtension{Raw: []byte(`{"users":[{"password":"` + canary + `"}]}`)}})
	plan := described(`{"properties":{"users":{"items":{"properties":{"password":{"type":"string","writeOnly":true}}}},
		"m":{"additionalProperties":{"writeOnly":true}},"d.t":{"type":"string","writeOnly":true}}}`)
	b.operate("example", plan)
	for values, path := range map[string]string{
		`{"users":[{"name":"x"},{"password":"` + canary + `"}]}`: "users[1].password",
		`{"m":{"a":"` + canary + `"}}`:                           "m.a",
		`{"d.t":"` + canary + `"}`:                               "d.t",
	} {
		p := b.refused(http.MethodPatch, chartPath("example"), `{"values":`+values+`}`, http.StatusBadRequest, "invalid")
		if !strings.Contains(p.Detail, path+" is a secret input") || !strings.Contains(p.Hint, "no secret input can be given") || strings.Contains(p.Detail+p.Hint, canary) {
			t.Errorf("%s: %+v", path, p)
		}
	}
	var out apitype.WriteAnswer
	b.answer(http.MethodPatch, chartPath("example"), `{"values":{"users":[{"password":"`+canary+`","name":"x"}],"m":{"a":null}}}`, http.StatusAccepted, &out)
}
