package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/manifest"
	"zaentrum.io/zae/internal/render"
	"zaentrum.io/zae/internal/values"
)

// Chart is what is known of a chart without its values and templates. It may be shared and must not be
// changed.
type Chart struct {
	Facts      v1alpha1.PlanChart
	APIVersion string
	Type       string
	// CRDs are the paths of everything in a crds directory of the chart or of a bundled one, sorted.
	CRDs []string
	// Schema is values.schema.json; nil when there is none and when it is too large to be read.
	Schema []byte
	// SchemaError, when not empty, is why the schema cannot be used.
	SchemaError string
	// Inputs are what the schema asks for, in document order.
	Inputs []inputs.Input
	// SchemaWarnings are for the chart's author.
	SchemaWarnings []inputs.Warning
}

// Job is what to render a chart with.
type Job struct {
	Name      string // of the addon, which is the release
	Namespace string
	Spec      map[string]any
	From      []values.From
	Generated map[string]string
	Platform  map[string]any
	// ValidateOnly leaves rendering out.
	ValidateOnly bool
	// Verbatim has template errors end with the chart's own words; see render.Input.
	Verbatim bool
	// Dependence asks for what depends on secrets, too.
	Dependence bool
	// Texts asks for what the templates render instead of the objects: also where that is no YAML.
	Texts bool
}

// Result is what rendering came to.
type Result struct {
	// Checksum is of the merged values.
	Checksum string
	// Inputs tell where the value of each input comes from.
	Inputs []v1alpha1.PlanInput
	// ValuesErrors are sorted, and each is there once; none of them carries a value.
	ValuesErrors []string
	// Objects are as the chart wrote them; none when there are ValuesErrors.
	Objects manifest.Set
	// Texts are what the templates render, when that was asked for.
	Texts []render.Text
	// Warnings are what the chart renders otherwise each time, when that was looked for.
	Warnings []string
	// Leaks are secret inputs that the chart puts where everybody reads them.
	Leaks []string
	// Dependence is what depends on secrets; nil when there are none, and when it was not asked for.
	Dependence *Dependence
}

// Overrun says that a chart needs more than it may have, and its worker was ended.
type Overrun struct {
	// What it needed too much of, for people.
	What string
	// Bound is the same as one word, out of Bounds.
	Bound string
	// Again tells that another try may go better: the machine, not the chart, may have been slow.
	Again bool

	stray bool // something else than the job may have been the end of the process
}

// Bounds are what a chart can need too much of: the time it took, processor time, memory, depth of recursion; a
// crash for no known reason; and the system that ended the process.
var Bounds = []string{boundTime, boundProcessor, boundMemory, boundRecursion, boundCrash, boundKilled}

const (
	boundTime      = "time"
	boundProcessor = "processor"
	boundMemory    = "memory"
	boundRecursion = "recursion"
	boundCrash     = "crash"
	boundKilled    = "killed"
)

// Error is the finding.
func (o *Overrun) Error() string { return o.What }

// The most that a chart may render: objects, and values in all of them together.
const (
	MaxObjects = 500
	MaxNodes   = 100_000
)

// loaded is a chart with its schema compiled.
type loaded struct {
	chart     *chart.Chart
	schema    *inputs.Schema // nil when it cannot be used
	schemaErr error
	found     sync.Once
	all       map[string]any // what defaults has found
}

// defaults are the values that are there when nobody gives any, those of bundled charts too.
func (l *loaded) defaults() map[string]any {
	l.found.Do(func() { l.all = render.Defaults(l.chart) })
	return l.all
}

func load(a *chart.Archive) (*loaded, error) {
	c, err := chart.Load(a)
	if err != nil {
		return nil, err
	}
	l := &loaded{chart: c}
	l.schema, l.schemaErr = inputs.Parse(c.Schema)
	return l, nil
}

func (l *loaded) describe() *Chart {
	c := l.chart
	out := &Chart{Facts: shortened(c.Facts()), APIVersion: c.APIVersion, Type: c.Type, CRDs: c.CRDs}
	if len(out.CRDs) > maxListed {
		out.CRDs = out.CRDs[:maxListed]
	}
	if len(c.Schema) <= inputs.MaxSchemaBytes {
		out.Schema = c.Schema
	}
	if l.schemaErr != nil {
		out.SchemaError = l.schemaErr.Error()
		return out
	}
	out.Inputs = l.schema.Inputs()
	out.SchemaWarnings = l.schema.Warnings()
	return out
}

// What is handed over of a chart's own texts, which may be as long as the chart: no plan shows more.
const (
	maxText   = 8 << 10
	maxListed = 256
)

// shortened are the facts with no text longer than anybody reads.
func shortened(f v1alpha1.PlanChart) v1alpha1.PlanChart {
	for _, t := range []*string{&f.Name, &f.Version, &f.AppVersion, &f.Description} {
		*t = short(*t)
	}
	kept := make(map[string]string, min(len(f.Annotations), maxListed))
	for _, key := range slices.Sorted(maps.Keys(f.Annotations)) {
		if ours := strings.HasPrefix(key, v1alpha1.GroupVersion.Group+"/"); ours || len(kept) < maxListed && len(key) <= maxText {
			kept[key] = short(f.Annotations[key])
		}
	}
	f.Annotations = kept
	return f
}

func short(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}

// weight is how much memory a Chart takes, roughly.
func (c *Chart) weight() int {
	n := 1024 + len(c.Schema)
	for k, v := range c.Facts.Annotations {
		n += len(k) + len(v)
	}
	return n + 512*len(c.Inputs) + 128*len(c.SchemaWarnings)
}

func (l *loaded) layers(j Job) values.Layers {
	return values.Layers{
		Defaults: l.chart.Defaults, Subcharts: l.chart.Subcharts,
		Generated: j.Generated, Spec: j.Spec, From: j.From, Platform: j.Platform,
	}
}

// helmLint runs Helm's own lint on the chart, which lies unpacked at root.
func (l *loaded) helmLint(root string, j Job) []render.HelmFinding {
	found := render.HelmLint(root, l.layers(j).Merged(), j.Namespace)
	return found[:min(len(found), maxListed)]
}

// render merges, validates and renders. With twice, it renders two times and says what differs, and once more, with
// other secrets, for what depends on them; for that there is so much processor time, from the beginning.
func (l *loaded) render(ctx context.Context, j Job, twice bool, spend time.Duration) *Result {
	until := processorTime() + spend
	layers := l.layers(j)
	merged := layers.Merged()
	out := &Result{Checksum: values.Checksum(merged)}
	in := render.Input{Chart: l.chart, Name: j.Name, Namespace: j.Namespace, Values: merged, Verbatim: j.Verbatim}
	if l.schemaErr != nil {
		out.ValuesErrors = append(out.ValuesErrors, l.schemaErr.Error())
	} else {
		out.Inputs = l.schema.States(l.defaults(), layers.Lookup())
		out.ValuesErrors = append(l.inPlain(j.Spec), render.Validate(in, l.schema)...)
	}
	switch {
	case len(out.ValuesErrors) > 0 || j.ValidateOnly:
	case j.Texts:
		out.Texts, out.ValuesErrors = render.Texts(ctx, in)
	default:
		l.objects(ctx, in, out, twice)
		if twice && j.Dependence && len(out.ValuesErrors) == 0 {
			out.Dependence = l.depends(ctx, in, out.Objects, l.secretsIn(j, merged), until)
		}
	}
	slices.Sort(out.ValuesErrors)
	out.ValuesErrors = slices.Compact(out.ValuesErrors)
	return out
}

// objects renders, twice if need be, and says what is told of what comes out.
func (l *loaded) objects(ctx context.Context, in render.Input, out *Result, twice bool) {
	out.Objects, out.ValuesErrors = render.Render(ctx, in)
	if problem := tooMuch(out.Objects); problem != "" {
		out.Objects, out.ValuesErrors = nil, []string{problem}
	}
	out.Leaks = leaks(out.Objects, l.schema.Inputs(), in.Values)
	if !twice || len(out.ValuesErrors) > 0 {
		return
	}
	again, errs := render.Render(ctx, in)
	if len(errs) > 0 {
		out.Warnings = append(out.Warnings, "the chart cannot be rendered a second time: "+errs[0])
	} else {
		out.Warnings = append(out.Warnings, render.Differences(out.Objects, again)...)
	}
	out.Warnings = append(out.Warnings, render.TimeDependent(l.chart)...)
}

// tooMuch is why a set is not handed over.
func tooMuch(set manifest.Set) string {
	if n := len(set); n > MaxObjects {
		return fmt.Sprintf("the templates render %d objects, the limit is %d", n, MaxObjects)
	}
	n := 0
	for _, o := range set {
		n += nodes(o.Tree)
	}
	if n > MaxNodes {
		return fmt.Sprintf("the templates render objects with %d fields and items, the limit is %d", n, MaxNodes)
	}
	return ""
}

func nodes(v any) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for _, item := range v {
			n += nodes(item)
		}
	case []any:
		for _, item := range v {
			n += nodes(item)
		}
	}
	return n
}

// inPlain names the secrets that stand among the plain values.
func (l *loaded) inPlain(spec map[string]any) []string {
	var out []string
	for _, path := range l.schema.PlainSecrets(spec) {
		out = append(out, path+": is a secret input and stands in the plain values: take it out of values and give it as a secret")
	}
	return out
}

// Direct does the same work in this process, where a chart can end it. It is what worker processes run, and
// what a benchmark compares them with.
type Direct struct{ charts charts }

// Inspect loads a chart and reads its schema.
func (d *Direct) Inspect(_ context.Context, a *chart.Archive) (*Chart, error) {
	l, err := d.charts.of(a)
	if err != nil {
		return nil, err
	}
	return l.describe(), nil
}

// Render renders a chart once.
func (d *Direct) Render(ctx context.Context, a *chart.Archive, j Job) (*Result, error) {
	l, err := d.charts.of(a)
	if err != nil {
		return nil, err
	}
	return l.render(ctx, j, false, 0), nil
}

// wireFault is a fault as it travels.
type wireFault struct {
	Code    fault.Code
	Message string
	Hint    string
}

func toWire(err error) *wireFault {
	var f *fault.Fault
	if !errors.As(err, &f) { // loading makes faults only; the text of anything else is not known to be clean
		return &wireFault{Code: fault.Chart, Message: "the chart cannot be loaded"}
	}
	return &wireFault{f.Code, f.Message, f.Hint}
}

func (w *wireFault) fault() error {
	f := fault.New(w.Code, "%s", w.Message)
	if w.Hint != "" {
		f = f.WithHint("%s", w.Hint)
	}
	return f
}
