package inputs

import (
	"zaentrum.io/zae/api/v1alpha1"
)

// States says for each input, in document order, where its value comes from. defaults is the chart's
// values.yaml; given looks up what spec.values and spec.valuesFrom together have at a path, a null as nil and
// true. Neither is changed.
//
// A null takes the chart's default away and gives nothing. An empty string is a value, but for a generated
// input, where it gives way to the generated one (decisions §3). What is given in place of an object around a
// generated input stands in its way: nothing is generated then. Missing is an input that is required where it
// stands, or by a condition that RequiredWhen says, as far as the values here tell; Validate is what counts.
func (s *Schema) States(defaults map[string]any, given func(path []string) (any, bool)) []v1alpha1.PlanInput {
	if s == nil {
		return nil
	}
	l := lookup{defaults, given}
	out := make([]v1alpha1.PlanInput, len(s.inputs))
	for i, in := range s.inputs {
		out[i] = v1alpha1.PlanInput{Path: in.Path, State: l.state(in, s.details[i])}
	}
	return out
}

type lookup struct {
	defaults map[string]any
	given    func(path []string) (any, bool)
}

func (l lookup) state(in Input, d detail) v1alpha1.InputState {
	v, gives := l.given(d.path)
	if gives && v != nil && (in.Generate == "" || v != "") {
		return v1alpha1.InputSet
	}
	if in.Generate != "" && !l.blocked(d.path) {
		return v1alpha1.InputGenerated
	}
	chart, there := l.chart(d.path)
	required := in.Required || (in.RequiredInGroup && !in.Conditional && l.present(d.path[:len(d.path)-1]))
	for _, c := range d.when {
		required = required || c.holds(l.value)
	}
	empty := chart == "" && in.MinLength != "" && in.MinLength != "0"
	switch {
	case there && (!required || !empty):
		return v1alpha1.InputFromChart
	case required:
		return v1alpha1.InputMissing
	case in.Default != nil:
		return v1alpha1.InputDefault
	default:
		return v1alpha1.InputUnset
	}
}

// blocked tells whether something given that is no object stands in the way to a path, so that a generated value
// cannot be put there; values.Layers judges the same.
func (l lookup) blocked(path []string) bool {
	for i := 1; i < len(path); i++ {
		v, gives := l.given(path[:i])
		if !gives || v == nil || v == "" {
			return false
		}
		if _, isObject := v.(map[string]any); !isObject {
			return true
		}
	}
	return false
}

// chart is what the chart's own values have at a path, unless what is given takes it away: by a null, or by
// something else in place of an object around it.
func (l lookup) chart(path []string) (any, bool) {
	var at any = l.defaults
	for i, key := range path {
		m, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		if at, ok = m[key]; !ok {
			return nil, false
		}
		if over, gives := l.given(path[:i+1]); gives {
			if _, isObject := over.(map[string]any); !isObject && (i+1 < len(path) || over == nil) {
				return nil, false
			}
		}
	}
	return at, at != nil
}

// value is what the values have at a path, generated ones aside.
func (l lookup) value(path []string) (any, bool) {
	if v, gives := l.given(path); gives {
		return v, v != nil
	}
	return l.chart(path)
}

// present tells whether there is an object at a path; the root always is.
func (l lookup) present(path []string) bool {
	if len(path) == 0 {
		return true
	}
	v, there := l.value(path)
	_, isObject := v.(map[string]any)
	return there && isObject
}
