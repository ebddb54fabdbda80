package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/apply"
	"zaentrum.io/zae/internal/engine"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/guard"
	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/lint"
	"zaentrum.io/zae/internal/manifest"
	"zaentrum.io/zae/internal/values"
)

func newAddonPlan(a *app) *cobra.Command {
	var o offlineFlags
	var out planFormat
	cmd := &cobra.Command{
		Use:   "plan CHART",
		Short: "plan a chart without a cluster, as the operator would",
		Long: `Plan a chart as the operator would for an instance that has nothing of it yet: layer the values,
validate, render, check against the guardrails. No cluster and no instance is asked, so that what
only a cluster can refuse is not found.

` + chartHelp + `

Generated inputs have placeholders.

Exit status: 0 the plan could be installed; 1 it is refused; 2 wrong usage.`,
		Example: `  zae addon plan ./example --set-secret database.url=env:DATABASE_URL
  zae addon plan example-1.2.0.tgz --values values.yaml \
    --set-secret database.url=@url.txt -o markdown > plan.md`,
		Args: exactly("CHART"),
		RunE: runE(func(ctx context.Context, args []string) error { return a.addonPlan(ctx, args[0], &o, out) }),
	}
	o.register(cmd.Flags())
	cmd.Flags().VarP(&out, "output", "o", "answer with the plan's document in `FORMAT` json or yaml, or with a summary for a pull request, markdown")
	return cmd
}

// planFormat is the value of -o of a plan.
type planFormat string

func (f *planFormat) String() string { return string(*f) }
func (f *planFormat) Type() string   { return "json, yaml or markdown" }
func (f *planFormat) Set(v string) error {
	if v != "json" && v != "yaml" && v != "markdown" {
		return fmt.Errorf("not json, yaml or markdown")
	}
	*f = planFormat(v)
	return nil
}

func (a *app) addonPlan(ctx context.Context, arg string, o *offlineFlags, out planFormat) error {
	c, checked, done, err := a.checkedChart(ctx, arg, o)
	if err != nil {
		return err
	}
	defer done()
	v := c.view(checked)
	switch out {
	case "json", "yaml":
		err = a.planDocument(format(out), v.doc.Plan)
	case "markdown":
		a.out.raw(markdownPlan(a.out.show, v, checked.Findings))
	default:
		v.print(a.out)
	}
	if err != nil {
		return err
	}
	c.tellPlaceholders()
	c.tellNotes(c.schema)
	return explained(v.refusal(), checked.Findings)
}

// plan is what the operator would plan for an instance that has nothing of the addon. Its warnings are the operator's,
// and then those for the chart's author.
func (c *offlineChart) plan(checked *engine.Checked) *v1alpha1.Plan {
	p := checked.Plan(nil)
	for i := range p.Workloads {
		w := &p.Workloads[i]
		w.Ports = slices.DeleteFunc(w.Ports, func(port int32) bool { return slices.Contains(c.a.out.hidden.numbers, int64(port)) })
	}
	for _, w := range checked.Chart.SchemaWarnings {
		p.Warnings = append(p.Warnings, "values.schema.json: "+w.String()+": "+w.Fix)
	}
	return p
}

// view is the plan as zae addon add shows it.
func (c *offlineChart) view(checked *engine.Checked) *planView {
	p := c.plan(checked)
	doc := &apitype.AddonChart{
		Name: c.request.Name, Suspended: true, Phase: v1alpha1.PhasePlanned, Plan: p, Values: c.request.Spec,
		Chart:      apitype.Chart{Ref: c.request.Chart.Ref, Version: p.Chart.Version, Digest: p.Chart.Digest},
		SecretKeys: slices.Sorted(maps.Keys(c.given.secrets)),
	}
	return &planView{doc: doc, given: c.given, text: c.facts.Schema, schema: c.schema, inputs: c.withDefaults(), chartValues: true, rendered: c.flags.verbatim}
}

// withDefaults are the inputs with what the chart's values.yaml has as their defaults, or that of a bundled chart, which is
// what counts; a generated value comes before either.
func (c *offlineChart) withDefaults() []inputs.Input {
	defaults, err := lint.Defaults(c.archive)
	if err != nil {
		return c.facts.Inputs // the chart was loaded: it has some
	}
	known := chartInputs{defaults: defaults}
	out := slices.Clone(c.facts.Inputs)
	for i := range out {
		if v, there := known.fromChart(out[i]); there || out[i].Generate != "" {
			out[i].Default = v
		}
	}
	return out
}

// owner stands for the resource, which only a cluster has.
func (c *offlineChart) owner() apply.Owner {
	return apply.Owner{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.KindZaentrumAddon,
		Namespace: c.request.Namespace, Name: c.request.Name,
	}
}

// wanted are the objects as the operator would apply them, in apply order, but for the owner reference, which has the
// resource's UID in it, and the digests that have it in them too.
func (c *offlineChart) wanted(checked *engine.Checked) manifest.Set {
	out := apply.Decorate(checked.Objects, engine.Marks(c.owner(), checked.PartOf, checked.Checksum))
	for _, o := range out {
		disown(o.Tree)
	}
	return out
}

// disown takes away what only a cluster knows.
func disown(tree map[string]any) {
	meta, _ := tree["metadata"].(map[string]any)
	delete(meta, "ownerReferences")
	annotations, _ := meta["annotations"].(map[string]any)
	delete(annotations, v1alpha1.AnnotationApplied)
	delete(annotations, v1alpha1.AnnotationRun)
	if len(annotations) == 0 {
		delete(meta, "annotations")
	}
}

// planDocument prints the plan as the resource's status has it.
func (a *app) planDocument(f format, p *v1alpha1.Plan) error {
	raw, err := json.Marshal(a.cleanPlan(p))
	if err != nil {
		return fault.New(fault.Internal, "the plan cannot be written as JSON").Because(err)
	}
	return a.plainDocument(f, raw)
}

// plainDocument prints a document without anything that could steer a terminal.
func (a *app) plainDocument(f format, raw []byte) error {
	if f != "yaml" {
		return a.document(f, raw)
	}
	var tree any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	err := dec.Decode(&tree)
	if err == nil {
		tree, err = values.Normalize(tree)
	}
	if err != nil {
		return fault.New(fault.Internal, "the answer cannot be written as YAML").Because(err)
	}
	text, err := yamlText(tree)
	if err != nil {
		return err
	}
	a.out.raw(text)
	return nil
}

// cleanPlan is a copy without secret values in what comes from rendering. What the chart says of itself stays: it
// stands in the archive for everybody to read, and a word taken out of it would tell which word is a secret.
func (a *app) cleanPlan(p *v1alpha1.Plan) *v1alpha1.Plan {
	out := p.DeepCopy()
	cleanTexts(reflect.ValueOf(out).Elem(), a.out.show)
	out.Chart, out.ValuesSchema = p.Chart, p.ValuesSchema
	return out
}

// cleanTexts replaces all texts inside a value.
func cleanTexts(v reflect.Value, clean func(string) string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(clean(v.String()))
	case reflect.Pointer:
		if !v.IsNil() {
			cleanTexts(v.Elem(), clean)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			cleanTexts(v.Field(i), clean)
		}
	case reflect.Slice:
		for i := range v.Len() {
			cleanTexts(v.Index(i), clean)
		}
	default: // numbers; the one map is in Chart
	}
}

// tellNotes says what was given beside what the chart declares.
func (c *offlineChart) tellNotes(schema *inputs.Schema) {
	for _, note := range c.given.notes(schema) {
		c.a.err.printf("note: %s\n", note)
	}
}

// explained is a refusal with template and way out under each violation.
func explained(refusal error, findings []guard.Finding) error {
	var d *detailed
	if !errors.As(refusal, &d) {
		return refusal
	}
	for i := range d.lines {
		at := slices.IndexFunc(findings, func(f guard.Finding) bool { return f.String() == d.lines[i].what })
		if at < 0 {
			continue
		}
		rule, _ := guard.RuleByID(findings[at].Rule)
		d.lines[i].fix = strings.Join(nonEmpty(findings[at].Source, rule.Fix), ": ")
	}
	return d
}
