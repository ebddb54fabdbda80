package lint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/api/resource"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/manifest"
	"zaentrum.io/zae/internal/render"
	"zaentrum.io/zae/internal/values"
	"zaentrum.io/zae/internal/worker"
)

// versionBefore reads the version before.
func (l *linter) versionBefore(ctx context.Context) (*space, error) {
	before, err := l.o.Worker.Inspect(ctx, l.o.Against)
	if err != nil {
		return nil, fmt.Errorf("the version before: %w", err)
	}
	l.raised(before.Facts)
	if before.SchemaError != "" {
		return nil, fault.New(fault.Chart, "the version before has a schema that cannot be used: %s", before.SchemaError)
	}
	loaded, err := chart.Load(l.o.Against)
	if err != nil {
		return nil, fmt.Errorf("the version before: %w", err)
	}
	schema, err := inputs.Parse(before.Schema)
	if err != nil {
		return nil, fmt.Errorf("the version before: %w", err)
	}
	return newSpace(schema, loaded, render.Defaults(loaded), readsOf(render.Sources(loaded)).forms(), func() bool { return ctx.Err() != nil }), nil
}

// raised compares the versions of charts that differ.
func (l *linter) raised(before v1alpha1.PlanChart) {
	if was, now := strings.ToLower(before.Name), strings.ToLower(l.chart.Facts.Name); was != now {
		at := l.inYAML(chartFile, "name")
		l.f.add(Finding{
			Rule: "version-not-raised", File: chartFile, Line: at.line, Column: at.column,
			Message: "the chart that it is compared with has another name: " + before.Name,
			Fix:     "Compare with a version of the same chart; under another name it is another addon.",
		}, static)
		return
	}
	now, err1 := semver.NewVersion(l.chart.Facts.Version)
	was, err2 := semver.NewVersion(before.Version)
	if err1 != nil || err2 != nil || now.GreaterThan(was) || l.chart.Facts.Digest == before.Digest {
		return
	}
	one := Finding{Rule: "version-not-raised", File: chartFile, Message: "the version is not higher than that of the version before, and the content is another one"}
	for i, line := range strings.Split(l.text[chartFile], "\n") {
		if strings.HasPrefix(line, "version:") {
			one.Line, one.Column = i+1, 1
		}
	}
	l.f.add(one, static)
}

// maxCompared is in how many sets of values two versions are compared at most.
const maxCompared = 25

// objectsBefore compares what both versions render: with what must be given, and with what else the version before lets
// be given, as far as this one takes it too.
func (l *linter) objectsBefore(ctx context.Context, base *worker.Result, platform map[string]any) error {
	rows, _ := l.before.rows(maxCompared)
	for i, r := range rows {
		if i > 0 && (l.o.MaxRenders <= extraRenders || l.spare() < 2+probesOfOne || l.over >= maxOverruns) {
			break
		}
		if err := l.compare(ctx, r, i, base, platform); err != nil {
			return err
		}
	}
	return nil
}

// compare compares what both versions render with one set of values of the version before.
func (l *linter) compare(ctx context.Context, r row, number int, base *worker.Result, platform map[string]any) error {
	same := row{picks: make([]int, len(l.space.params)), narrows: true, rendered: true}
	for i, pick := range r.picks {
		if pick > 0 {
			same.also = append(same.also, l.before.params[i].choices[pick])
		}
	}
	now := l.space.give(same)
	if number > 0 && len(l.space.problems(now)) > 0 {
		return nil
	}
	g := l.before.give(r)
	result, err := l.o.Worker.Render(ctx, l.o.Against, g.job(l.name(), platform))
	l.out.Renders++
	var over *worker.Overrun
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &over):
		return fault.New(fault.Overrun, "rendering the version before was stopped: %s", over.What)
	case err != nil:
		return err
	case len(result.ValuesErrors) > 0 && number > 0:
		return nil
	case len(result.ValuesErrors) > 0:
		l.f.add(Finding{Rule: "not-rendered", File: chartFile, Message: "the version before cannot be rendered with values that were made up, so objects are not compared"}, static)
		return nil
	}
	if number > 0 {
		var problems []string
		if base, problems, err = l.try(ctx, now, platform, false); err != nil || len(problems) > 0 {
			return err
		}
		l.rows = append(l.rows, same)
		l.narrowed++
		number = len(l.rows) - 1
	}
	l.objectsAgainst(result.Objects, base.Objects, number)
	return nil
}

// inputsAgainst compares what the two versions ask for.
func (l *linter) inputsAgainst(s *subject) {
	before, refused := l.before.schema, l.before.problems(given{})
	// answered tells whether the version before had a value of its own, so that nobody had to give one.
	answered := func(path string) bool {
		v, ok := values.Get(l.before.defaults, strings.Split(path, "."))
		return ok && v != nil && !slices.ContainsFunc(refused, func(p string) bool { return strings.HasPrefix(p, path+":") })
	}
	for _, in := range before.Inputs() {
		if _, there := s.schema.Input(in.Path); !there && !in.Unaddressable && !s.declares(strings.Split(in.Path, ".")) {
			l.f.add(Finding{Rule: "input-removed", File: l.schemaOrChart(), Path: in.Path, Message: in.Path + ": was an input of the version before"}, static)
		}
	}
	for _, in := range s.schema.Inputs() {
		was, there := before.Input(in.Path)
		if !must(in) || in.Generate != "" || there && must(was) && !answered(in.Path) || in.Unaddressable || !in.Required && !hasGroup(before, in.Path) {
			continue
		}
		if v, ok := values.Get(s.chart.Defaults, strings.Split(in.Path, ".")); ok && v != nil && v != "" {
			continue
		}
		one := Finding{Rule: "input-newly-required", File: schemaFile, Path: in.Path, Message: in.Path + ": was not required before"}
		if there && must(was) {
			one.Message = in.Path + ": did not have to be given before, since the chart had a value of its own"
		}
		if in.Secret {
			one.Fix = "Do not require it, and let the templates do without it; or let the operator generate it: " +
				`"x-zaentrum-generate": "random-base64-32". A default in values.yaml would be the same secret everywhere.`
		}
		s.add(one, s.placeOf(in))
	}
}

// must tells whether an input has to be given, if only in a group that is there.
func must(in inputs.Input) bool { return in.Required || in.RequiredInGroup && !in.Conditional }

// hasGroup tells whether there is an input in the group of one.
func hasGroup(schema *inputs.Schema, path string) bool {
	group := path[:strings.LastIndexByte(path, '.')+1]
	return group != "" && slices.ContainsFunc(schema.Inputs(), func(in inputs.Input) bool { return strings.HasPrefix(in.Path, group) })
}

// schemaOrChart is the file that declares inputs, or should.
func (l *linter) schemaOrChart() string {
	if l.text[schemaFile] == "" {
		return chartFile
	}
	return schemaFile
}

// fixed are the fields that the cluster does not let change, by kind.
var fixed = map[string][]string{
	"Deployment":            {"spec.selector"},
	"Secret":                {"type"},
	"PersistentVolumeClaim": {"spec.storageClassName", "spec.accessModes", "spec.volumeMode", "spec.selector", "spec.volumeName"},
}

// assumed is what a field is when it is left out.
var assumed = map[string]any{"type": "Opaque", "spec.volumeMode": "Filesystem"}

func (l *linter) objectsAgainst(before, after manifest.Set, number int) {
	for _, old := range before {
		id := old.ID()
		now, there := after.Find(id)
		if !there {
			if id.Kind == "PersistentVolumeClaim" {
				l.f.add(Finding{Rule: "claim-deleted", Object: id.String(), Message: "the claim of the version before is not rendered any more"}, number)
			}
			continue
		}
		for _, path := range fixed[id.Kind] {
			if !sameValue(field(old, path), field(now, path)) {
				l.finding("immutable-field", now, path, "is another one than in the version before, and cannot be changed", number)
			}
		}
		switch id.Kind {
		case "Secret", "ConfigMap":
			l.frozen(old, now, number)
		case "Service":
			if (field(old, "spec.clusterIP") == "None") != (field(now, "spec.clusterIP") == "None") {
				l.finding("immutable-field", now, "spec.clusterIP", "is another one than in the version before, and cannot be changed", number)
			}
		case "PersistentVolumeClaim":
			l.shrunk(old, now, number)
		}
	}
}

func field(o manifest.Object, path string) any {
	v, _ := values.Get(o.Tree, strings.Split(path, "."))
	if v == nil {
		return assumed[path]
	}
	return v
}

// frozen tells of an immutable Secret or ConfigMap that changes.
func (l *linter) frozen(old, now manifest.Object, number int) {
	if old.Tree["immutable"] != true {
		return
	}
	if now.Tree["immutable"] != true {
		l.finding("immutable-field", now, "immutable", "cannot be taken back", number)
	}
	for _, part := range []string{"data", "stringData", "binaryData"} {
		if !sameValue(old.Tree[part], now.Tree[part]) {
			l.finding("immutable-field", now, part, "is another one than in the version before, which is immutable", number)
		}
	}
}

// shrunk tells of a claim that is smaller than before.
func (l *linter) shrunk(old, now manifest.Object, number int) {
	const path = "spec.resources.requests.storage"
	was, err1 := quantity(field(old, path))
	is, err2 := quantity(field(now, path))
	if err1 == nil && err2 == nil && is.Cmp(was) < 0 {
		l.finding("immutable-field", now, path, "is smaller than in the version before; a claim never shrinks", number)
	}
}

func quantity(v any) (resource.Quantity, error) {
	text, ok := v.(string)
	if !ok {
		text = label(v)
	}
	return resource.ParseQuantity(text)
}
