package cli

import (
	"context"
	"maps"
	"slices"
	"strings"

	"zaentrum.io/zae/internal/engine"
	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/lint"
	"zaentrum.io/zae/internal/manifest"
	"zaentrum.io/zae/internal/values"
	"zaentrum.io/zae/internal/worker"
)

// twin is what the chart renders with the same values and other secrets.
type twin struct {
	set    manifest.Set
	hidden *redactor // knows the twin's secrets
	errors []string  // instead of a set
}

// twins renders the chart with other secrets: made of nothing but the schema, and alike in form, for charts that take a
// secret apart or look at how it begins. blind are the inputs of which no other value renders.
func (c *offlineChart) twins(ctx context.Context, d *worker.Dependence) (found []*twin, blind []string, _ error) {
	if d == nil {
		return nil, nil, nil
	}
	free, err := c.twin(ctx, c.schemaSecrets(), false)
	if err != nil {
		return nil, nil, err
	}
	if free != nil && len(free.errors) == 0 {
		found = append(found, free)
	} else {
		blind = d.Blind
	}
	if len(d.Others) == 0 {
		return found, blind, nil
	}
	alike, err := c.twin(ctx, d.Others, false)
	if err != nil {
		return nil, nil, err
	}
	if alike != nil && len(alike.errors) == 0 {
		found = append(found, alike)
	}
	return found, blind, nil
}

// schemaSecrets are other secrets that the schema accepts; nil where there are none for one of the inputs.
func (c *offlineChart) schemaSecrets() map[string]string {
	judged, _ := inputs.Parse(c.facts.Schema) // the worker has read it
	out := map[string]string{}
	for path, secret := range c.secrets() {
		in, known := judged.Input(path)
		if !known {
			in = inputs.Input{Path: path, Type: inputs.TypeString}
		}
		text, _ := lint.Other(judged, in, "another")
		if text == "" || text == secret {
			return nil
		}
		out[path] = text
	}
	return out
}

// secrets are the values of these inputs.
func (c *offlineChart) secrets() map[string]string {
	out := maps.Clone(c.given.secrets)
	if out == nil {
		out = map[string]string{}
	}
	for path, text := range c.placeholders {
		if in, _ := c.schema.Input(path); in.Secret {
			out[path] = text
		}
	}
	return out
}

// twin renders with other values of these inputs. It is nil where there are none.
func (c *offlineChart) twin(ctx context.Context, others map[string]string, verbatim bool) (*twin, error) {
	if len(others) == 0 {
		return nil, nil
	}
	t := &twin{hidden: new(redactor)}
	secrets := c.secrets()
	maps.Copy(secrets, others)
	for _, text := range secrets {
		t.hidden.addForms(text)
	}
	request := c.request
	request.From, request.Verbatim = nil, verbatim
	for _, path := range slices.Sorted(maps.Keys(c.given.secrets)) {
		request.From = append(request.From, values.From{TargetPath: path, Text: secrets[path], Secret: true})
	}
	request.Generated = func(_ context.Context, wanted []inputs.Input) (map[string]string, error) {
		out := make(map[string]string, len(wanted))
		for _, in := range wanted {
			out[in.Path] = c.placeholders[in.Path]
			if in.Secret {
				out[in.Path] = secrets[in.Path]
			}
		}
		return out, nil
	}
	checked, err := c.engine.Check(ctx, request)
	if err != nil {
		return nil, err
	}
	if t.errors = checked.ValuesErrors; len(t.errors) == 0 {
		t.set = c.wanted(checked)
	}
	return t, nil
}

// words are errors of templates with the chart's own words, where no secret can be in them: there is none, or there are
// others, made up, in its place, with which the chart fails at the same place. Other errors are as they are.
func (c *offlineChart) words(ctx context.Context, checked *engine.Checked) error {
	failed := slices.ContainsFunc(checked.ValuesErrors, isTemplateError)
	if !failed || len(c.given.secrets) == 0 { // it was verbatim in the first place
		return nil
	}
	t, err := c.twin(ctx, c.schemaSecrets(), true)
	if t == nil || err != nil {
		return err
	}
	for i, text := range checked.ValuesErrors {
		for _, theirs := range t.errors {
			if isTemplateError(text) && strings.HasPrefix(theirs, text+": ") {
				checked.ValuesErrors[i] = t.hidden.hide(theirs)
			}
		}
	}
	return nil
}

// isTemplateError tells an error of which the chart's own words may be kept back.
func isTemplateError(text string) bool { return strings.HasPrefix(text, "template error") }
