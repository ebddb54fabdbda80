package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/lint"
	"zaentrum.io/zae/internal/values"
)

type inputsOptions struct {
	chart    chartFlags
	output   format
	skeleton bool
}

func newAddonInputs(a *app) *cobra.Command {
	var o inputsOptions
	cmd := &cobra.Command{
		Use:   "inputs CHART",
		Short: "list what a chart asks for",
		Long: `List what a chart asks for: the inputs of its values.schema.json, in its order, with their defaults.

` + chartHelp + `

--skeleton writes a values file to start from: what has to be given is there to be filled in,
everything else is a comment, and secret and generated inputs, which do not belong into a file, are
only named.`,
		Example: `  zae addon inputs ./example
  zae addon inputs oci://ghcr.io/example/charts/example:1.2.0 --skeleton > values.yaml`,
		Args: exactly("CHART"),
		RunE: runE(func(ctx context.Context, args []string) error { return a.addonInputs(ctx, args[0], &o) }),
	}
	flags := cmd.Flags()
	o.chart.register(flags)
	flags.BoolVar(&o.skeleton, "skeleton", false, "write a values file to start from")
	flags.VarP(&o.output, "output", "o", "answer with a list, as in the API's documents, in `FORMAT` json or yaml")
	return cmd
}

func (a *app) addonInputs(ctx context.Context, arg string, o *inputsOptions) error {
	if o.skeleton && o.output != "" {
		return fault.New(fault.Usage, "--skeleton and --output exclude each other")
	}
	b, err := a.newBench(&offlineFlags{chart: o.chart})
	if err != nil {
		return err
	}
	defer b.close()
	found, facts, err := b.inspect(ctx, arg)
	if err != nil {
		return err
	}
	if facts.SchemaError != "" {
		return fault.New(fault.Chart, "chart: %s", facts.SchemaError)
	}
	defaults, err := lint.Defaults(found)
	if err != nil {
		return err
	}
	known := chartInputs{name: facts.Facts.Name, version: facts.Facts.Version, inputs: facts.Inputs, defaults: defaults}
	switch {
	case o.output != "":
		return a.inputsDocument(o.output, facts.Inputs)
	case o.skeleton:
		return a.printSkeleton(known)
	case len(known.inputs) == 0:
		a.err.printf("the chart asks for nothing\n")
	default:
		known.print(a.out)
	}
	return nil
}

// inputsDocument prints the inputs as the API's documents have them.
func (a *app) inputsDocument(f format, list []inputs.Input) error {
	out := make([]apitype.Input, len(list))
	for i, in := range list {
		out[i] = apitype.Input{Input: in, Order: i}
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return fault.New(fault.Internal, "the inputs cannot be written as JSON").Because(err)
	}
	return a.plainDocument(f, raw)
}

// chartInputs are what a chart asks for, with what it has itself.
type chartInputs struct {
	name, version string
	inputs        []inputs.Input
	defaults      map[string]any
}

// value is what an input is when nobody gives it; nil for a secret, whatever the chart has.
func (c *chartInputs) value(in inputs.Input) any {
	if in.Secret || in.Generate != "" {
		return nil
	}
	if v, there := c.fromChart(in); there {
		return v
	}
	return in.Default
}

// fromChart is what values.yaml has, or that of a bundled chart.
func (c *chartInputs) fromChart(in inputs.Input) (any, bool) {
	if in.Secret || in.Generate != "" || in.HoldsSecrets || in.Unaddressable {
		return nil, false
	}
	v, there := values.Get(c.defaults, strings.Split(in.Path, "."))
	return v, there && v != nil
}

// mustBeGiven tells whether no installation goes without somebody giving the input.
func (c *chartInputs) mustBeGiven(in inputs.Input) bool {
	v, there := c.fromChart(in)
	empty := v == "" && in.MinLength != "" && in.MinLength != "0"
	return in.Required && in.Generate == "" && (!there || empty)
}

func (c *chartInputs) print(p *printer) {
	var t table
	t.row("INPUT", "TYPE", "REQUIRED", "DEFAULT", "SECRET", "TITLE")
	for _, in := range c.inputs {
		text := "-"
		if v := c.value(in); v != nil {
			text = shownValue(v)
		}
		t.row(in.Path, in.Type, requiredText(in), text, orDash(secrecy(in)), orDash(in.Title))
	}
	t.print(p)
}

func requiredText(in inputs.Input) string {
	switch {
	case in.Required:
		return "yes"
	case in.RequiredWhen != "":
		return in.RequiredWhen
	case in.RequiredInGroup && in.Group != "" && !in.Conditional:
		return "with " + in.Group
	default:
		return "no"
	}
}

// printSkeleton writes a values file: "## " explains, "# " is a line to be uncommented.
func (a *app) printSkeleton(c chartInputs) error {
	s := &skeleton{chart: &c}
	s.explain(0, fmt.Sprintf("Values of %s %s. A line behind # may stay out: it has the chart's own value, or the one it suggests; null is none.", c.name, c.version))
	var apart []string
	root := &branch{}
	for _, in := range c.inputs {
		switch {
		case in.Secret && in.Generate != "":
			apart = append(apart, in.Path+": generated, unless given: --set-secret "+in.Path)
		case in.Secret:
			apart = append(apart, in.Path+": secret, not for a file: --set-secret "+in.Path)
		case in.Generate != "":
			apart = append(apart, in.Path+": generated, unless given")
		case in.Unaddressable:
			apart = append(apart, in.Path+": has a key with a dot in it, or an empty one; write it by hand")
		default:
			root.put(strings.Split(in.Path, "."), in)
		}
	}
	for _, line := range apart {
		s.explain(0, line)
	}
	if err := s.write(root, 0); err != nil {
		return err
	}
	a.out.raw(s.out.String())
	return nil
}

// branch is a group of inputs, or one input.
type branch struct {
	key   string
	input *inputs.Input
	kids  []*branch
}

func (b *branch) put(path []string, in inputs.Input) {
	if len(path) == 0 {
		b.input = &in
		return
	}
	at := slices.IndexFunc(b.kids, func(k *branch) bool { return k.key == path[0] })
	if at < 0 {
		at = len(b.kids)
		b.kids = append(b.kids, &branch{key: path[0]})
	}
	b.kids[at].put(path[1:], in)
}

type skeleton struct {
	chart *chartInputs
	out   strings.Builder
}

func (s *skeleton) explain(depth int, text string) {
	s.out.WriteString(strings.Repeat("  ", depth) + "## " + printable(text) + "\n")
}

// live tells whether something below a branch has to be filled in. A group of comments alone must be one too: its bare
// key would be a null, which takes the chart's values away.
func (s *skeleton) live(b *branch) bool {
	if b.input != nil {
		return s.chart.mustBeGiven(*b.input)
	}
	return slices.ContainsFunc(b.kids, s.live)
}

func (s *skeleton) write(b *branch, depth int) error {
	for _, kid := range b.kids {
		if depth == 0 {
			s.out.WriteString("\n")
		}
		if kid.input != nil {
			s.describe(*kid.input, depth)
		}
		mark := ""
		if !s.live(kid) {
			mark = "# "
		}
		tree := map[string]any{kid.key: map[string]any{}}
		if kid.input != nil {
			v, err := values.Normalize(s.chart.value(*kid.input))
			if err != nil {
				return fault.New(fault.Chart, "chart: the default of %s cannot be written", kid.input.Path)
			}
			tree[kid.key] = v
		}
		text, err := yamlText(tree)
		if err != nil {
			return err
		}
		if kid.input == nil {
			text = strings.TrimSuffix(text, " {}\n") + "\n"
		}
		for line := range strings.Lines(text) {
			s.out.WriteString(strings.TrimRight(strings.Repeat("  ", depth)+mark+line, " \n") + "\n")
		}
		if kid.input == nil {
			if err := s.write(kid, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// describe says what an input is, above it.
func (s *skeleton) describe(in inputs.Input, depth int) {
	for _, text := range nonEmpty(in.Title, in.Description) {
		s.explain(depth, text)
	}
	var facts []string
	switch {
	case s.chart.mustBeGiven(in):
		facts = append(facts, "has to be given")
	case in.RequiredWhen != "":
		facts = append(facts, "required "+in.RequiredWhen)
	}
	if in.HoldsSecrets {
		facts = append(facts, "parts of it are secret and not for a file")
	}
	limits := limitsText(in)
	s.explain(depth, strings.Join(slices.Concat(limits[:1], facts, limits[1:]), ", "))
}
