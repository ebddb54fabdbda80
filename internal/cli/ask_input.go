package cli

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"zaentrum.io/zae/internal/inputs"
)

// newQuestion asks for an input.
func newQuestion(in inputs.Input) question {
	label := in.Path
	if in.Title != "" {
		label = in.Title + " (" + in.Path + ")"
	}
	if in.Secret {
		label += ", not shown"
	}
	return question{label: "  " + label + ":", help: explain(in), secret: in.Secret, judge: judge(in)}
}

func explain(in inputs.Input) string {
	return strings.Join(append(nonEmpty(in.Description), limitsText(in)...), "; ")
}

// askValue asks for an input that is no secret.
func (a *app) askValue(ctx context.Context, in inputs.Input, q question) (any, error) {
	if values := choices(in); len(values) > 0 {
		var options []string
		for _, v := range values {
			options = append(options, optionText(v))
		}
		i, err := a.prompts().choose(ctx, q, options)
		if err != nil {
			return nil, err
		}
		return values[i], nil
	}
	text, err := a.prompts().text(ctx, q)
	if err != nil {
		return nil, err
	}
	return typed(in, text)
}

// choices are the values of which an input has one, when they can be listed.
func choices(in inputs.Input) []any {
	if len(in.Enum) == 0 && in.Type == inputs.TypeBoolean {
		return []any{true, false}
	}
	return in.Enum
}

func optionText(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	return shownValue(v)
}

// typed reads an answer as the type the input has: a string stays a string, whatever it looks like.
func typed(in inputs.Input, text string) (any, error) {
	if in.Type == inputs.TypeString {
		return text, nil
	}
	return jsonOrText(text)
}

// answerKey is where a judge puts an answer.
const answerKey = "answer"

// judge tells at once what the operator's validator would tell later, as far as the input's own limits go.
// What other inputs have to do with it, only the plan knows.
func judge(in inputs.Input) func(string) error {
	schema := limits(in)
	return func(text string) error {
		if text == "" {
			return errRequired
		}
		value, err := typed(in, text)
		if err != nil {
			return errors.New("it cannot be held in JSON")
		}
		found := schema.Validate(map[string]any{answerKey: value})
		if len(found) == 0 {
			return nil
		}
		_, what, _ := strings.Cut(found[0], ": ")
		return errors.New("it " + what)
	}
}

// limits is the schema of a document with the input alone, under answerKey. Limits that make no schema
// allow everything: the operator judges again.
func limits(in inputs.Input) *inputs.Schema {
	own := map[string]any{}
	switch in.Type {
	case inputs.TypeString, inputs.TypeInteger, inputs.TypeNumber, inputs.TypeBoolean:
		own["type"] = in.Type
	}
	for keyword, text := range map[string]string{"format": in.Format, "pattern": in.Pattern} {
		if text != "" {
			own[keyword] = text
		}
	}
	for keyword, n := range map[string]json.Number{
		"minLength": in.MinLength, "maxLength": in.MaxLength, "minimum": in.Minimum, "maximum": in.Maximum,
		"exclusiveMinimum": in.ExclusiveMinimum, "exclusiveMaximum": in.ExclusiveMaximum, "multipleOf": in.MultipleOf,
	} {
		if n != "" {
			own[keyword] = n
		}
	}
	if len(in.Enum) > 0 {
		own["enum"] = in.Enum
	}
	text, err := json.Marshal(map[string]any{"type": "object", "properties": map[string]any{answerKey: own}})
	if err != nil {
		return nil
	}
	schema, err := inputs.Parse(text)
	if err != nil {
		return nil
	}
	return schema
}
