package lint

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/render"
	"zaentrum.io/zae/internal/values"
)

// conditions looks for dependencies that nobody can switch: where none of the values that their conditions name is a
// boolean, Helm passes over them in silence, and the dependency takes part. A value that nobody knows is one that
// nobody is asked for where there is a schema.
func (s *subject) conditions() {
	for _, c := range render.Conditions(s.chart) {
		there, switches := false, false
		for _, path := range c.Paths {
			known, boolean := s.canSwitch(path)
			there, switches = there || known, switches || boolean
		}
		if switches || !there && s.facts.Schema == nil { // then values.yaml may leave it out
			continue
		}
		dotted := strings.Join(c.Paths[0], ".")
		message := "neither the schema nor a values.yaml has " + dotted
		if there {
			message = dotted + " is no boolean"
		}
		s.add(Finding{
			Rule: "condition-without-effect", File: chartFile, Path: dotted,
			Message: fmt.Sprintf("the dependency %s always takes part: %s", c.Name, message),
		}, s.conditionAt(c.Index))
	}
}

// canSwitch tells whether a value is known, and whether it may be a boolean.
func (s *subject) canSwitch(path []string) (known, boolean bool) {
	if v, ok := values.Get(s.defaults, path); ok && v != nil {
		_, boolean = v.(bool)
		known = true
	}
	if s.schema == nil {
		return known, boolean
	}
	if in, ok := s.schema.Input(strings.Join(path, ".")); ok {
		return true, boolean || in.Type == inputs.TypeBoolean || in.Type == inputs.TypeJSON
	}
	return known, boolean || s.facts.Schema != nil && s.declares(path)
}

// conditionAt is where the condition of a dependency stands in Chart.yaml.
func (s *subject) conditionAt(index int) position {
	list := child(newYAMLDoc([]byte(s.files[chartFile])).root, "dependencies")
	if list == nil || list.Kind != yaml.SequenceNode || index >= len(list.Content) {
		return position{}
	}
	if key := keyOf(list.Content[index], "condition"); key != nil {
		return position{key.Line, key.Column}
	}
	return position{}
}
