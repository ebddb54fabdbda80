package portal

import (
	"encoding/json"
	"maps"
	"slices"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
	schema "zaentrum.io/zae/internal/inputs"
)

// chartInputs are what the planned chart asks for, with the plan's word on where each value comes from; nil when
// the plan has no schema that can be read. The schema is a chart's and may be made to harm: it is only described.
func chartInputs(plan *v1alpha1.Plan) []apitype.Input {
	described := describe(plan)
	if described == nil {
		return nil
	}
	list := described.Inputs()
	states := make(map[string]v1alpha1.InputState, len(plan.Inputs))
	for _, in := range plan.Inputs {
		states[in.Path] = in.State
	}
	out := make([]apitype.Input, len(list))
	for i, in := range list {
		out[i] = apitype.Input{Input: in, Order: i, State: states[in.Path]}
	}
	return out
}

// describe is the schema of the planned chart; nil when there is none that can be read.
func describe(plan *v1alpha1.Plan) *schema.Schema {
	if plan == nil || plan.ValuesSchema == "" {
		return nil
	}
	s, err := schema.Describe([]byte(plan.ValuesSchema))
	if err != nil {
		return nil
	}
	return s
}

// noPlainSecrets refuses values that put a secret among the plain ones, as far as the plan of the addon as it is
// tells what is secret. A request for another chart is not judged by the plan of this one, and what stands there
// already is not judged again: the operator says so in every plan.
func noPlainSecrets(a *v1alpha1.ZaentrumAddon, ref string, tree map[string]any) error {
	if ref != a.Spec.Chart.Ref || a.Status.ObservedGeneration < a.Generation {
		return nil
	}
	s := describe(a.Status.Plan)
	found := s.PlainSecretValues(tree)
	if len(found) == 0 {
		return nil
	}
	stands := s.PlainSecretValues(specValues(a))
	for _, path := range slices.Sorted(maps.Keys(found)) {
		if was, there := stands[path]; there && same(was, found[path]) {
			continue
		}
		refusal := invalid("values: %s is a secret input and must not stand among the plain values", path)
		if in, known := s.Input(path); !known || in.Unaddressable {
			return refusal.WithHint("take it out of values: the chart has it where no secret input can be given")
		}
		return refusal.WithHint("take it out of values and send it in secretValues, or name a Secret of the addon in secretRefs")
	}
	return nil
}

// specValues are the plain values that the addon has.
func specValues(a *v1alpha1.ZaentrumAddon) map[string]any {
	if a.Spec.Values == nil {
		return nil
	}
	tree, err := plain(json.RawMessage(a.Spec.Values.Raw))
	if err != nil {
		return nil
	}
	object, _ := tree.(map[string]any)
	return object
}

// same tells whether two values are the same as JSON.
func same(was, now any) bool {
	before, errBefore := json.Marshal(was)
	after, errNow := json.Marshal(now)
	return errBefore == nil && errNow == nil && string(before) == string(after)
}
