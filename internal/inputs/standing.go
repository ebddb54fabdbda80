package inputs

import (
	"slices"

	"zaentrum.io/zae/api/v1alpha1"
)

// Standing is what a schema says of a path in the values.
type Standing int

const (
	// Undeclared says that the schema has inputs, and nothing of it leads there.
	Undeclared Standing = iota
	// Allowed says that nothing is declared there, and the schema says that there may be more than it declares
	// (additionalProperties, patternProperties), or it declares no input at all.
	Allowed
	// OfGroup is an object that inputs are in.
	OfGroup
	// OfInput is an input.
	OfInput
	// InsideInput is part of a TypeJSON input.
	InsideInput
)

// Standing tells what the schema says of the path. Whether a value is valid there, Validate tells: most schemas let
// pass what they do not declare.
func (s *Schema) Standing(path []string) Standing {
	if s == nil || len(s.inputs) == 0 {
		return Allowed
	}
	if len(path) > 0 && path[0] == v1alpha1.PlatformKey {
		return Undeclared
	}
	deepest := 0 // how far along the path groups lead
	for i := range s.inputs {
		switch at := s.details[i].path; {
		case slices.Equal(at, path):
			return OfInput
		case len(at) < len(path) && slices.Equal(at, path[:len(at)]):
			if s.inputs[i].Type == TypeJSON {
				return InsideInput
			}
			return Undeclared
		case len(at) > len(path) && slices.Equal(at[:len(path)], path):
			return OfGroup
		default:
			common := 0
			for common < len(at)-1 && common < len(path) && at[common] == path[common] {
				common++
			}
			deepest = max(deepest, common)
		}
	}
	if s.loose[ruleKey(path[:deepest])] {
		return Allowed
	}
	return Undeclared
}

// loose tells whether the object's schemas say that there may be other properties than those they name. One that
// says nothing about it says no: its author had these in mind.
func (v view) loose() bool {
	out := false
	for _, s := range v {
		switch extra := s.src.field("additionalProperties"); {
		case extra == nil:
		case extra.kind == kindBool && !extra.truth:
			return false
		default:
			out = true
		}
		out = out || len(s.kids["patternProperties"]) > 0
	}
	return out
}
