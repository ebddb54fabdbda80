package portal

import (
	"encoding/json"
	"strings"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
	schema "zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/values"
)

// chartInputs are what the planned chart asks for, with the plan's word on where each value comes from; nil when
// the plan has no schema that can be read. The schema is a chart's and may be made to harm: it is only described.
func chartInputs(plan *v1alpha1.Plan) []apitype.Input {
	list, ok := describe(plan)
	if !ok {
		return nil
	}
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

func describe(plan *v1alpha1.Plan) ([]schema.Input, bool) {
	if plan == nil || plan.ValuesSchema == "" {
		return nil, false
	}
	s, err := schema.Describe([]byte(plan.ValuesSchema))
	if err != nil {
		return nil, false
	}
	return s.Inputs(), true
}

// noPlainSecrets refuses values that put a secret input among the plain ones, as far as the plan of the addon as
// it is tells which inputs are secret. A request for another chart is not judged by the plan of this one, and
// what stands there already is not judged again: the operator says so in every plan.
func noPlainSecrets(a *v1alpha1.ZaentrumAddon, ref string, tree map[string]any) error {
	if ref != a.Spec.Chart.Ref || a.Status.ObservedGeneration < a.Generation {
		return nil
	}
	list, _ := describe(a.Status.Plan)
	for _, in := range list {
		if !in.Secret || in.Unaddressable {
			continue
		}
		path := strings.Split(in.Path, ".")
		if now, there := values.Get(tree, path); there && !stands(a, path, now) {
			return invalid("values: %s is a secret input and must not stand among the plain values", in.Path).
				WithHint("take it out of values and send it in secretValues, or name a Secret of the addon in secretRefs")
		}
	}
	return nil
}

// stands tells whether the addon has this value at the path already.
func stands(a *v1alpha1.ZaentrumAddon, path []string, v any) bool {
	if a.Spec.Values == nil {
		return false
	}
	tree, err := plain(json.RawMessage(a.Spec.Values.Raw))
	if err != nil {
		return false
	}
	object, _ := tree.(map[string]any)
	was, there := values.Get(object, path)
	if !there {
		return false
	}
	before, errBefore := json.Marshal(was)
	now, errNow := json.Marshal(v)
	return errBefore == nil && errNow == nil && string(before) == string(now)
}
