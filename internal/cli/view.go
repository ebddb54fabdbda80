package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/values"
)

// planView is a plan as a person reads it: what the status carries, beside what was there before.
type planView struct {
	doc    *apitype.AddonChart
	before *apitype.AddonChart // nil for a new addon
	given  *given
	text   []byte         // of the schema
	schema *inputs.Schema // nil when it is not known
	judged *inputs.Schema // compiled, once it is needed
	inputs []inputs.Input
	// rendered tells that it is shown by zae addon render.
	rendered bool
	// chartValues tells that the inputs' defaults are what the chart's values.yaml has, and not what its schema
	// suggests.
	chartValues bool
}

func newPlanView(doc, before *apitype.AddonChart, g *given) *planView {
	v := &planView{doc: doc, before: before, given: g}
	// Without one in the plan, the chart has none, or one that cannot be read, which is a values error.
	if doc.Plan != nil && (doc.Plan.ValuesSchema != "" || !doc.Plan.Blocked()) {
		v.text = []byte(doc.Plan.ValuesSchema)
		if s, err := inputs.Describe(v.text); err == nil {
			v.schema, v.inputs = s, s.Inputs()
		}
	}
	return v
}

// print writes the plan, the line with the counts last.
func (v *planView) print(p *printer) {
	v.printHead(p)
	n := v.printObjects(p)
	v.printTold(p)
	v.printInputs(p)
	refused := 0
	if v.doc.Plan != nil {
		refused = len(v.doc.Plan.Violations) + len(v.doc.Plan.ValuesErrors)
	}
	line := fmt.Sprintf("plan: %d add, %d update, ", n["add"], n["update"])
	if n["re-run"] > 0 {
		line += fmt.Sprintf("%d re-run, ", n["re-run"])
	}
	line += fmt.Sprintf("%d delete, %d keep, %d refused", n["delete"], n["keep"], refused)
	p.printf("%s\n", style(strong, line))
}

func (v *planView) printHead(p *printer) {
	version, digest := v.doc.Chart.Version, v.doc.Chart.Digest
	if v.doc.Plan != nil {
		if c := v.doc.Plan.Chart; c.Version != "" {
			version = c.Version
		}
		if c := v.doc.Plan.Chart; c.Digest != "" {
			digest = c.Digest
		}
	}
	if last := v.doc.LastAppliedChart; last != nil && last.Version != "" && last.Version != version {
		version = last.Version + " → " + version
	}
	generation := "" // of a plan without an instance there is none
	if v.doc.Generation > 0 {
		generation = fmt.Sprintf("generation %d", v.doc.Generation)
	}
	parts := nonEmpty(version, generation, shortDigest(digest))
	p.printf("%s  %s\n", style(strong, "Plan for "+v.doc.Name), strings.Join(parts, "   "))
	if v.doc.Plan != nil && v.doc.Plan.Chart.Description != "" {
		p.printf("  %s\n", v.doc.Plan.Chart.Description)
	}
}

// printObjects writes a row per object that comes, changes or goes, and counts every one.
func (v *planView) printObjects(p *printer) map[string]int {
	n := map[string]int{}
	plan := v.doc.Plan
	if plan == nil || len(plan.Objects)+len(plan.Changes.Removed) == 0 {
		return n
	}
	t := table{indent: "  "}
	t.row(style(faint, "op"), style(faint, "object"), style(faint, "because"), style(faint, "waits for"))
	for _, o := range plan.Objects {
		m, modified := modifiedObject(plan.Changes.Modified, o)
		because := strings.Join(append(imageChanges(plan.Changes.Images, o), changedFields(plan.Changes, m)...), ", ")
		switch {
		case slices.Contains(plan.Changes.Added, o):
			n["add"]++
			t.row(style(good, "add"), o, orDash(workloadText(plan.Workloads, o)), waitsFor(o))
		case modified && because == "" && refused(plan, o):
			t.row(style(bad, "refused"), o, "the cluster does not accept the change", "-")
		case !modified && because == "":
			n["keep"]++
		case runsAgain(plan, m, o):
			n["re-run"]++
			t.row(style(changed, "re-run"), o, cmp.Or(because, "values or pod template changed"), waitsFor(o))
		case o.Kind == "Job":
			n["update"]++
			t.row(style(changed, "update"), o, because, "-")
		default:
			n["update"]++
			t.row(style(changed, "update"), o, cmp.Or(because, "values or chart changed"), waitsFor(o))
		}
	}
	for _, o := range plan.Changes.Removed {
		n["delete"]++
		because := "no longer in the chart"
		if o.Kind == "PersistentVolumeClaim" {
			because += ": its data may go with it"
		}
		t.row(style(bad, "delete"), o, because, "gone")
	}
	if n["keep"] > 0 {
		t.row("keep", count(n["keep"], "object"))
	}
	t.print(p)
	return n
}

// printTold writes what the plan would set off, and what it warns of.
func (v *planView) printTold(p *printer) {
	if v.doc.Plan == nil {
		return
	}
	for _, section := range []struct {
		title string
		lines []string
	}{{"Effects", v.doc.Plan.Effects}, {"Warnings", v.doc.Plan.Warnings}} {
		if len(section.lines) > 0 {
			p.printf("%s\n", style(strong, section.title))
		}
		for _, line := range section.lines {
			p.printf("  %s\n", line)
		}
	}
}

func modifiedObject(list []v1alpha1.ModifiedObject, o v1alpha1.ObjectRef) (v1alpha1.ModifiedObject, bool) {
	for _, m := range list {
		if m.Ref() == o {
			return m, true
		}
	}
	return v1alpha1.ModifiedObject{}, false
}

// refused tells whether a violation is about the object.
func refused(plan *v1alpha1.Plan, o v1alpha1.ObjectRef) bool {
	return slices.ContainsFunc(plan.Violations, func(text string) bool { return strings.HasPrefix(text, o.String()+": ") })
}

// runsAgain tells whether the object is a Job that the plan runs again. Where the plan does not tell what
// changes in it, it may.
func runsAgain(plan *v1alpha1.Plan, m v1alpha1.ModifiedObject, o v1alpha1.ObjectRef) bool {
	return o.Kind == "Job" && (len(m.Fields) == 0 || slices.ContainsFunc(plan.Effects, func(text string) bool {
		return strings.HasPrefix(text, o.String()+" runs again")
	}))
}

// shownFields is how many changed fields of an object are shown.
const shownFields = 3

var moreFields = regexp.MustCompile(`^… and (\d+) more$`)

// changedFields are the first fields of an object that change, but for images, which are told with what they
// were, and how many more there are.
func changedFields(changes v1alpha1.Changes, m v1alpha1.ModifiedObject) []string {
	images := len(imageChanges(changes.Images, m.Ref())) > 0
	var out []string
	more := 0
	for _, f := range m.Fields {
		counted := moreFields.FindStringSubmatch(f)
		switch {
		case counted != nil:
			n, _ := strconv.Atoi(counted[1])
			more += n
		case images && strings.HasPrefix(f, "spec.template.spec.") && strings.HasSuffix(f, "].image"):
		case len(out) < shownFields:
			out = append(out, shortField(f))
		default:
			more++
		}
	}
	if more > 0 {
		last := len(out) - 1
		if last < 0 {
			return []string{fmt.Sprintf("%d more fields", more)}
		}
		out[last] += fmt.Sprintf(" and %d more", more)
	}
	return out
}

// shortField is a path without what goes without saying.
func shortField(path string) string {
	if path == "spec.template.metadata.annotations["+v1alpha1.AnnotationValuesChecksum+"]" {
		return "values checksum"
	}
	for _, prefix := range []string{"spec.template.spec.", "spec.template.", "spec."} {
		if short, ok := strings.CutPrefix(path, prefix); ok {
			return short
		}
	}
	return path
}

func waitsFor(o v1alpha1.ObjectRef) string {
	switch o.Kind {
	case "Deployment":
		return "rollout"
	case "Job":
		return "completion"
	default:
		return "-"
	}
}

func workloadText(all []v1alpha1.Workload, o v1alpha1.ObjectRef) string {
	for _, w := range all {
		if w.Kind != o.Kind || w.Name != o.Name {
			continue
		}
		var parts []string
		for _, image := range w.Images {
			parts = append(parts, "image "+image)
		}
		for _, port := range w.Ports {
			parts = append(parts, fmt.Sprintf("port %d", port))
		}
		return strings.Join(parts, ", ")
	}
	return ""
}

func imageChanges(all []v1alpha1.ImageChange, o v1alpha1.ObjectRef) []string {
	var out []string
	for _, c := range all {
		if c.Kind == o.Kind && c.Name == o.Name {
			from, to := c.From, c.To
			if fr, ft, ok := splitImage(from); ok {
				if tr, tt, ok := splitImage(to); ok && fr == tr {
					from, to = ft, tt
				}
			}
			out = append(out, "image "+from+" → "+to)
		}
	}
	return out
}

// splitImage takes the tag or digest off an image.
func splitImage(image string) (repository, rest string, ok bool) {
	if r, d, found := strings.Cut(image, "@"); found {
		return r, d, true
	}
	i := strings.LastIndexByte(image, ':')
	if i < 0 || strings.Contains(image[i:], "/") {
		return image, "", false
	}
	return image[:i], image[i+1:], true
}

func (v *planView) printInputs(p *printer) {
	if len(v.inputs) == 0 {
		return
	}
	p.printf("%s\n", style(strong, "Inputs"))
	t := table{indent: "  "}
	for _, in := range v.inputs {
		if in.Secret {
			t.row(in.Path, "secret", v.secretState(in))
			continue
		}
		kind := ""
		if in.Generate != "" {
			kind = "generated"
		}
		t.row(in.Path, kind, v.plainState(in))
	}
	t.print(p)
}

// secretState never shows more than that a secret is there.
func (v *planView) secretState(in inputs.Input) any {
	set := slices.Contains(v.doc.SecretKeys, in.Path)
	_, plain := values.Get(v.doc.Values, strings.Split(in.Path, "."))
	now := v.given != nil && v.given.secrets[in.Path] != ""
	switch {
	case set && now:
		return "set now"
	case set:
		return "set"
	case plain:
		return style(changed, "set in the plain values, where anybody who may read them sees it: give --set-secret "+in.Path)
	case in.Generate != "":
		return "generated"
	case v.missing(in):
		return style(bad, "missing")
	default:
		return "not set"
	}
}

// state is where the plan says that an input's value comes from.
func (v *planView) state(path string) v1alpha1.InputState {
	if v.doc.Plan == nil {
		return ""
	}
	for _, in := range v.doc.Plan.Inputs {
		if in.Path == path {
			return in.State
		}
	}
	return ""
}

func (v *planView) plainState(in inputs.Input) any {
	path := strings.Split(in.Path, ".")
	shown := shownValue
	if in.HoldsSecrets {
		shown = func(any) string { return "set" }
	}
	now, given := values.Get(v.doc.Values, path)
	text := "not set"
	switch {
	case slices.Contains(v.doc.SecretKeys, in.Path):
		text = "set, from a Secret"
	case given:
		text = shown(now)
		if in.Default != nil && v.chartValues {
			text += "   (chart: " + shown(in.Default) + ")"
		}
	case v.missing(in):
		return style(bad, "missing")
	case in.Default != nil && v.chartValues:
		text = shown(in.Default) + "   (chart)"
	case v.state(in.Path) == v1alpha1.InputFromChart:
		text = "as the chart has it"
	case v.state(in.Path) == v1alpha1.InputDefault:
		text = "not set   (suggested: " + shown(in.Default) + ")"
	case in.Generate != "":
		text = "generated"
	}
	if v.before == nil {
		return text
	}
	was, wasGiven := values.Get(v.before.Values, path)
	switch {
	case wasGiven && given && shown(was) != shown(now):
		return style(changed, shown(was)+" → "+text)
	case wasGiven && !given:
		return style(changed, shown(was)+" → "+text)
	case !wasGiven && given && len(v.doc.Values) > 0 && v.before.LastAppliedChart != nil:
		return style(changed, text+"   (new)")
	default:
		return text
	}
}

func shownValue(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return cut(string(text), 60)
}

// missing tells whether the plan says that an input has to be given. An input can be missing as part of a
// whole group that is.
func (v *planView) missing(in inputs.Input) bool {
	if v.doc.Plan == nil {
		return false
	}
	for _, e := range v.doc.Plan.ValuesErrors {
		place, what, _ := strings.Cut(e, ": ")
		if !strings.HasPrefix(what, "is required") && what != "must not be empty" {
			continue
		}
		if place == in.Path || in.Required && in.Generate == "" && strings.HasPrefix(in.Path, place+".") {
			return true
		}
	}
	return false
}

// missingInputs are those that only need to be given.
func (v *planView) missingInputs() []inputs.Input {
	var out []inputs.Input
	for _, in := range v.inputs {
		if v.missing(in) {
			out = append(out, in)
		}
	}
	return out
}

// onlyMissing tells whether giving the missing inputs is all that the plan asks for, as far as it tells.
func (v *planView) onlyMissing() bool {
	if v.doc.Plan == nil || len(v.doc.Plan.Violations) > 0 || len(v.missingInputs()) == 0 {
		return false
	}
	for _, e := range v.doc.Plan.ValuesErrors {
		place, _, _ := strings.Cut(e, ": ")
		if !slices.ContainsFunc(v.missingInputs(), func(in inputs.Input) bool {
			return in.Path == place || strings.HasPrefix(in.Path, place+".")
		}) {
			return false
		}
	}
	return true
}

// refusal says why a plan cannot be installed, all of it, with the ways out. It is nil when it can.
func (v *planView) refusal() error {
	plan := v.doc.Plan
	if !plan.Blocked() {
		switch v.doc.Phase {
		case v1alpha1.PhasePlanFailed, v1alpha1.PhaseFailed:
		default:
			if plan != nil {
				return nil
			}
		}
		why := v.doc.Message
		if why == "" {
			why = "the operator gave no reason"
		}
		return planFault("addon %s cannot be planned: %s", v.doc.Name, why)
	}
	var lines []detail
	for _, text := range plan.Violations {
		lines = append(lines, detail{what: text})
	}
	shown := map[string]bool{}
	for _, text := range plan.ValuesErrors {
		place, _, _ := strings.Cut(text, ": ")
		lines = append(lines, detail{what: text, fix: v.hiddenWords(text)})
		for _, in := range v.inputs {
			if shown[in.Path] || in.Path != place && (!v.missing(in) || !strings.HasPrefix(in.Path, place+".")) {
				continue
			}
			shown[in.Path] = true
			lines = append(lines, detail{what: "  " + v.howToGive(in)})
		}
	}
	n := len(plan.Violations) + len(plan.ValuesErrors)
	return &detailed{fault: planFault("the plan is refused (%d)", n), lines: lines}
}

// hiddenWords says, of an error of a template without the chart's own words, why, and how to see them; empty for other
// errors.
func (v *planView) hiddenWords(text string) string {
	const why = "what the chart says there is hidden, for it may quote "
	switch {
	case !isTemplateError(text) || strings.Contains(text, ": "):
		return ""
	case v.rendered:
		return why + "a secret"
	}
	args := []string{shownReference(v.doc.Chart.Ref)}
	if v.doc.Chart.Version != "" && strings.HasPrefix(v.doc.Chart.Ref, "oci://") {
		args = append(args, "--version", v.doc.Chart.Version)
	}
	return why + "values; to see it, with the same inputs: " + commandLine("zae addon render", args...)
}
