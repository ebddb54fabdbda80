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
)

// twin is what the chart renders with the same values and other secrets.
type twin struct {
	set    manifest.Set
	hidden *redactor // knows the twin's secrets
	errors []string  // instead of a set
}

// otherSecret makes another secret of one; empty where it cannot.
type otherSecret func(path, secret string) string

// ways are how other secrets are made: of nothing but the schema; alike in form, for templates that take a secret
// apart; and alike but for one letter, for those that look at how it begins.
func (c *offlineChart) ways() []otherSecret {
	judged, _ := inputs.Parse(c.facts.Schema) // the worker has read it
	return []otherSecret{
		func(path, _ string) string {
			in, known := judged.Input(path)
			if !known {
				in = inputs.Input{Path: path, Type: inputs.TypeString}
			}
			text, _ := lint.Other(judged, in, "another")
			return text
		},
		func(_, secret string) string { return strings.Map(next, secret) },
		func(_, secret string) string {
			at := strings.LastIndexFunc(secret, func(r rune) bool { return next(r) != r })
			if at < 0 {
				return ""
			}
			return secret[:at] + string(next(rune(secret[at]))) + secret[at+1:]
		},
	}
}

// next is the letter or digit after one, of the same kind.
func next(r rune) rune {
	for _, kind := range []string{"abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"} {
		if at := strings.IndexRune(kind, r); at >= 0 {
			return rune(kind[(at+1)%len(kind)])
		}
	}
	return r
}

// enoughTwins is how many are made: what two others have alike is nothing that a secret makes.
const enoughTwins = 2

// twins renders the chart with other secrets. Where it renders with no other secrets at all, it is tried with one other
// secret at a time. blind are the inputs of which no other value renders.
func (c *offlineChart) twins(ctx context.Context) (found []*twin, blind []string, _ error) {
	paths := c.secretPaths()
	if len(paths) == 0 {
		return nil, nil, nil
	}
	some := func(paths []string, most int) error {
		for _, way := range c.ways() {
			t, err := c.twin(ctx, way, paths, false)
			if err != nil {
				return err
			}
			if t != nil && len(t.errors) == 0 {
				found = append(found, t)
			}
			if len(found) >= most {
				break
			}
		}
		return nil
	}
	if err := some(paths, enoughTwins); err != nil || len(found) > 0 {
		return found, nil, err
	}
	for _, path := range paths {
		before := len(found)
		if err := some([]string{path}, before+1); err != nil {
			return nil, nil, err
		}
		if len(found) == before {
			blind = append(blind, path)
		}
	}
	return found, blind, nil
}

// secretPaths are the inputs that have a value nobody may see: those given as secrets, and those generated.
func (c *offlineChart) secretPaths() []string {
	return slices.Sorted(maps.Keys(c.secrets()))
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

// twin renders with other values of these inputs. It is nil where one has no other value in this way.
func (c *offlineChart) twin(ctx context.Context, way otherSecret, paths []string, verbatim bool) (*twin, error) {
	t := &twin{hidden: new(redactor)}
	secrets := c.secrets()
	for _, path := range paths {
		other := way(path, secrets[path])
		if other == "" || other == secrets[path] {
			return nil, nil
		}
		secrets[path] = other
	}
	for _, text := range secrets {
		t.hidden.addForms(text)
	}
	request := c.request
	request.From, request.Verbatim = nil, verbatim
	for _, path := range slices.Sorted(maps.Keys(c.given.secrets)) {
		request.From = append(request.From, values.From{TargetPath: path, Text: secrets[path]})
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
	t, err := c.twin(ctx, c.ways()[0], c.secretPaths(), true)
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
