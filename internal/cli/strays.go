package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/values"
)

// stray is a path that a flag gives and the chart does not ask for. A values file may have more than a chart declares,
// as Helm's users are used to, and is only told of.
type stray struct {
	flag, path string
	near       string // the input that may be meant; empty for none
}

// strays are the paths given by --set, --set-secret and --secret-ref that are no inputs of the schema, and are not
// allowed by it in so many words.
func (g *given) strays(schema *inputs.Schema) []stray {
	if g == nil {
		return nil
	}
	var out []stray
	known := inputPaths(schema, false)
	for _, path := range leafPaths(g.set, nil) {
		if schema.Standing(path) == inputs.Undeclared {
			out = append(out, stray{"--set", values.JoinPath(path), nearPath(values.JoinPath(path), known)})
		}
	}
	known = inputPaths(schema, true)
	for _, flag := range []string{"--set-secret", "--secret-ref"} {
		for _, path := range g.secretPaths(flag) {
			switch schema.Standing(strings.Split(path, ".")) {
			case inputs.Undeclared, inputs.OfGroup:
				out = append(out, stray{flag, path, nearPath(path, known)})
			}
		}
	}
	return out
}

// secretPaths are the paths that a flag gives, sorted.
func (g *given) secretPaths(flag string) []string {
	if flag == "--secret-ref" {
		return slices.Sorted(maps.Keys(g.refs))
	}
	paths := append(slices.Collect(maps.Keys(g.secrets)), g.unasked...)
	slices.Sort(paths)
	return paths
}

// inputPaths are the paths of a schema's inputs that a flag can name; of the secret ones alone, if it is for secrets.
func inputPaths(schema *inputs.Schema, secret bool) []string {
	var out []string
	for _, in := range schema.Inputs() {
		if !in.Unaddressable && (in.Secret || !secret) {
			out = append(out, in.Path)
		}
	}
	return out
}

// astray refuses what is given and no input. after says what became of it, such as "nothing was sent".
func (g *given) astray(schema *inputs.Schema, after string) error {
	wrong := g.strays(schema)
	if len(wrong) == 0 {
		return nil
	}
	if len(wrong) == 1 {
		return fault.New(fault.Usage, "%s %s: the chart has no such input; %s", wrong[0].flag, wrong[0].path, after).
			WithHint("%s", wrong[0].way(schema))
	}
	lines := make([]detail, len(wrong))
	for i, s := range wrong {
		lines[i] = detail{what: s.flag + " " + s.path, fix: s.way(schema)}
	}
	return &detailed{fault: fault.New(fault.Usage, "%d paths are no inputs of the chart; %s", len(wrong), after), lines: lines}
}

// nothingSent ends a refusal that comes before the first write.
const nothingSent = "nothing was sent"

// plannedSchema is the schema that the current plan of an addon carries; nil where that is not known.
func plannedSchema(doc *apitype.AddonChart) *inputs.Schema {
	if doc.Plan == nil || !doc.PlanCurrent() {
		return nil
	}
	schema, _ := inputs.Describe([]byte(doc.Plan.ValuesSchema)) // of one that cannot be read, the plan says so
	return schema
}

// shownInputs is how many paths are named in one line.
const shownInputs = 8

// way is what to do about it.
func (s stray) way(schema *inputs.Schema) string {
	secret := s.flag != "--set"
	if in, _ := schema.Input(s.near); in.Secret && !secret {
		return "did you mean the secret input " + s.near + "? give --set-secret " + s.near
	}
	if s.near != "" {
		return "did you mean " + s.near + "?"
	}
	known := inputPaths(schema, secret)
	kind := "its inputs"
	if secret {
		kind = "its secret inputs"
	}
	switch {
	case len(known) == 0 && secret:
		return "it has no secret inputs"
	case secret:
		return kind + ": " + some(known)
	case len(known) == 0:
		return "give --values FILE for what a chart does not declare"
	default:
		return kind + ": " + some(known) + "; --values FILE takes what it does not declare"
	}
}

// some are the first texts of a list, and how many more there are.
func some(list []string) string {
	if len(list) <= shownInputs {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:shownInputs], ", "), len(list)-shownInputs)
}

// corrections are the flags of an upgrade that take back what is no input, and give the input that is meant.
func (g *given) corrections(wrong []stray, schema *inputs.Schema) []string {
	var args []string
	for _, s := range wrong {
		in, _ := schema.Input(s.near)
		switch s.flag {
		case "--set":
			args = append(args, "--unset", s.path)
			if in.Secret {
				args = append(args, "--set-secret", s.near)
				continue
			}
			if v, ok := values.Get(g.set, strings.Split(s.path, ".")); ok && s.near != "" {
				if text := valueText(v); len(text) <= 200 {
					args = append(args, "--set", s.near+"="+text)
				}
			}
		case "--secret-ref":
			args = append(args, "--clear-secret", s.path)
			if s.near != "" {
				ref := g.refs[s.path]
				args = append(args, "--secret-ref", refText(s.near, apitype.SecretRef{Name: ref.Name, Key: cmp.Or(ref.Key, s.path)}))
			}
		default:
			args = append(args, "--clear-secret", s.path)
			if s.near != "" {
				args = append(args, "--set-secret", s.near)
			}
		}
	}
	return args
}

// notes tell of what is given beside what the chart declares, and allowed.
func (g *given) notes(schema *inputs.Schema) []string {
	if g == nil || schema == nil {
		return nil
	}
	var out, more []string
	known := inputPaths(schema, false)
	for _, path := range leafPaths(g.filed, nil) {
		dotted := values.JoinPath(path)
		standing := schema.Standing(path)
		near := nearPath(dotted, known)
		switch {
		case standing == inputs.Undeclared && near != "":
			out = append(out, dotted+" is no input of the chart; did you mean "+near+"?")
		case standing == inputs.Undeclared, standing == inputs.Allowed:
			more = append(more, dotted)
		}
	}
	for _, path := range leafPaths(g.set, nil) {
		if schema.Standing(path) == inputs.Allowed {
			more = append(more, values.JoinPath(path))
		}
	}
	for _, flag := range []string{"--set-secret", "--secret-ref"} {
		for _, path := range g.secretPaths(flag) {
			switch schema.Standing(strings.Split(path, ".")) {
			case inputs.Allowed:
				more = append(more, path)
			case inputs.OfInput:
				if in, _ := schema.Input(path); !in.Secret && !in.HoldsSecrets {
					out = append(out, path+" is no secret input; it is kept in a Secret all the same, as text")
				}
			}
		}
	}
	slices.Sort(more)
	switch more = slices.Compact(more); {
	case len(more) == 0:
	case len(schema.Inputs()) == 0:
		out = append(out, "the chart declares no inputs, and may not read "+some(more))
	default:
		out = append(out, "the chart does not declare "+some(more)+", and does not forbid it")
	}
	return out
}

// nearPath is the path that a typing slip leads away from a dotted path, or the only one that ends with its last key, or
// nearly; empty for none.
func nearPath(path string, known []string) string {
	if near := nearest(path, known); near != "" {
		return near
	}
	last := func(p string) string { return p[strings.LastIndexByte(p, '.')+1:] }
	slips := 0 // in short keys they make another word
	if len(last(path)) >= 5 {
		slips = 2
	}
	found := ""
	for _, k := range known {
		if distance(strings.ToLower(last(path)), strings.ToLower(last(k))) > slips {
			continue
		}
		if found != "" {
			return ""
		}
		found = k
	}
	return found
}

// leafPaths are the paths of everything in a tree that is no object, or an empty one, sorted as they are written.
func leafPaths(tree map[string]any, at []string) [][]string {
	var out [][]string
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		path := append(slices.Clone(at), key)
		if below, ok := tree[key].(map[string]any); ok && len(below) > 0 {
			out = append(out, leafPaths(below, path)...)
			continue
		}
		out = append(out, path)
	}
	return out
}
