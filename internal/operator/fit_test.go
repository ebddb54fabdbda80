package operator

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"zaentrum.io/zae/api/v1alpha1"
)

func TestAStatusFitsAndSaysWhatWasLeftOut(t *testing.T) {
	s := &v1alpha1.ZaentrumAddonStatus{Message: "planned", Plan: &v1alpha1.Plan{ValuesSchema: strings.Repeat("s", 200<<10)}}
	for i := range 5000 {
		ref := v1alpha1.ObjectRef{Kind: "ConfigMap", Name: fmt.Sprintf("cm-%d-%s", i, strings.Repeat("x", 60))}
		s.Plan.Objects = append(s.Plan.Objects, ref)
		s.Plan.Changes.Added = append(s.Plan.Changes.Added, ref)
		s.Plan.Violations = append(s.Plan.Violations, ref.String()+": not allowed")
	}
	fit(s)
	if n := size(s); n > maxStatusBytes {
		t.Fatalf("%d bytes", n)
	}
	shown := len(s.Plan.Violations) - 1
	if want := fmt.Sprintf("… and %d more", 5000-shown); s.Plan.Violations[shown] != want {
		t.Errorf("%q, want %q", s.Plan.Violations[shown], want)
	}
	left := 5000 - len(s.Plan.Objects) + 5000 - len(s.Plan.Changes.Added)
	if want := fmt.Sprintf("left out: %d entries of lists", left); !strings.Contains(s.Message, want) {
		t.Errorf("%q does not say %q", s.Message, want)
	}
	if s.Plan.ValuesSchema == "" {
		t.Error("the schema was dropped though the lists could be cut")
	}
}

func TestAChartsOwnTextsDoNotHideThePlan(t *testing.T) {
	s := &v1alpha1.ZaentrumAddonStatus{Plan: &v1alpha1.Plan{
		Chart: v1alpha1.PlanChart{
			Description: strings.Repeat("d", 600<<10),
			Annotations: map[string]string{"other": strings.Repeat("z", 600<<10), v1alpha1.ChartAnnotationPrimary: "example", "title": "a\x1b[31mb\u009bc"},
		},
		Violations: []string{"a", "b", "c"},
		Objects:    []v1alpha1.ObjectRef{{Kind: "Service", Name: "example"}, {Kind: "Job", Name: "x"}},
	}}
	(&secrets{}).clean(s)
	fit(s)
	if len(s.Plan.Violations) != 3 || len(s.Plan.Objects) != 2 || s.Plan.Chart.Annotations[v1alpha1.ChartAnnotationPrimary] != "example" {
		t.Errorf("%d violations, %d objects, annotations %d", len(s.Plan.Violations), len(s.Plan.Objects), len(s.Plan.Chart.Annotations))
	}
	if got := s.Plan.Chart.Annotations["title"]; got != "a[31mbc" {
		t.Errorf("control characters: %q", got)
	}
	if n := size(s); n > 20<<10 {
		t.Errorf("%d bytes", n)
	}
}

func TestSecretsAreFoundInEveryForm(t *testing.T) {
	const secret = "P4ss/word+\"x\nsecond line"
	known := &secrets{}
	known.add(secret)
	known.addTree(map[string]any{"a": []any{"hidden-in-a-list"}})
	for _, text := range []string{
		secret, "see p4ss/word+\"x here", "second line", "UDRzcy93b3JkKyJ4CnNlY29uZCBsaW5l",
		"P4ss%2Fword%2B%22x%0Asecond+line", `P4ss/word+\"x\nsecond line`, "hidden-in-a-list", "P4ss/word+\"x second line",
	} {
		s := &v1alpha1.ZaentrumAddonStatus{Message: text, Conditions: []metav1.Condition{{Message: text}}}
		known.clean(s)
		for _, part := range []string{"word", "second", "UDRz", "hidden"} {
			if strings.Contains(s.Message+s.Conditions[0].Message, part) {
				t.Errorf("%q became %q", text, s.Message)
			}
		}
	}
	s := &v1alpha1.ZaentrumAddonStatus{Message: "nothing to hide"}
	known.clean(s)
	if s.Message != "nothing to hide" {
		t.Errorf("%q", s.Message)
	}
}

// huge is a status as the worst chart would have it: nothing in it is short, and there is much of everything.
func huge(r *rand.Rand, counts ...int) *v1alpha1.ZaentrumAddonStatus {
	long := func(n int) string { // of characters that need many bytes in JSON, at times
		return strings.Repeat([]string{"x", "<", "é", `"`}[r.IntN(4)], n)
	}
	many := func() int { return counts[r.IntN(len(counts))] }
	name := func(i int) string { return fmt.Sprintf("%d-%s", i, long(250)) }
	texts := func(n, length int) []string {
		var out []string
		for i := range n {
			out = append(out, fmt.Sprintf("%d %s", i, long(length)))
		}
		return out
	}
	refs := func() []v1alpha1.ObjectRef {
		var out []v1alpha1.ObjectRef
		for i := range many() {
			out = append(out, v1alpha1.ObjectRef{Kind: "ConfigMap", Name: name(i)})
		}
		return out
	}
	p := &v1alpha1.Plan{
		Chart: v1alpha1.PlanChart{
			Name: long(1000), Version: long(1000), AppVersion: long(5000), Description: long(100000), Annotations: map[string]string{},
			Digest: "sha256:" + strings.Repeat("a", 64), Requested: &v1alpha1.AppliedChart{Ref: "oci://" + strings.Repeat("a", 2000)},
		},
		ValuesSchema: strings.Repeat([]string{"s", "<"}[r.IntN(2)], []int{0, 100 << 10, 256 << 10}[r.IntN(3)]),
		ValuesErrors: texts(many(), 300), Violations: texts(many(), 300), Effects: texts(many(), 300), Warnings: texts(many(), 300),
		Objects: refs(),
		Changes: v1alpha1.Changes{Added: refs(), Removed: refs()},
	}
	for i := range r.IntN(100) {
		p.Chart.Annotations[fmt.Sprintf("%d%s", i, long(r.IntN(3000)))] = long(r.IntN(100000))
	}
	for _, contract := range []string{v1alpha1.ChartAnnotationPrimary, v1alpha1.ChartAnnotationTitle, v1alpha1.ChartAnnotationIcon} {
		p.Chart.Annotations[contract] = long(5000)
	}
	for i := range many() {
		p.Inputs = append(p.Inputs, v1alpha1.PlanInput{Path: name(i) + long(400), State: v1alpha1.InputSet})
	}
	for i := range many() {
		p.Findings = append(p.Findings, v1alpha1.Finding{ID: "r", Level: v1alpha1.FindingRefuses, Object: v1alpha1.ObjectRef{Kind: "ConfigMap", Name: name(i)}, Path: long(300), Title: "t"})
	}
	for i := range many() {
		w := v1alpha1.Workload{Kind: "Deployment", Name: name(i)}
		if i < 1 {
			w.Images = texts(many(), 300)
			w.Ports = make([]int32, many())
		}
		p.Workloads = append(p.Workloads, w)
	}
	for i := range many() {
		m := v1alpha1.ModifiedObject{Kind: "ConfigMap", Name: name(i)}
		if i < 50 {
			m.Fields = append(texts(39, 512), "… and 1234 more")
		}
		p.Changes.Modified = append(p.Changes.Modified, m)
	}
	for i := range many() {
		p.Changes.Images = append(p.Changes.Images, v1alpha1.ImageChange{Kind: "Deployment", Name: name(i), Container: long(63), From: long(250), To: long(250)})
	}
	s := &v1alpha1.ZaentrumAddonStatus{Phase: v1alpha1.PhaseFailed, Message: long(5000), Plan: p}
	for i := range many() {
		s.Components = append(s.Components, v1alpha1.Component{Name: name(i), Kind: "Deployment", Reason: long(300)})
	}
	for i := range min(many(), 500) { // which is how many objects a chart may have
		s.Jobs = append(s.Jobs, v1alpha1.JobRun{
			Name: fmt.Sprintf("%d-%s", i, strings.Repeat("x", 250)), State: v1alpha1.JobComplete, Reason: long(300), Run: strings.Repeat("f", 32),
			StartTime: &metav1.Time{}, FinishTime: &metav1.Time{}, Deleted: true,
		})
	}
	for _, kind := range []string{v1alpha1.ConditionPlanned, v1alpha1.ConditionReady} {
		s.Conditions = append(s.Conditions, metav1.Condition{Type: kind, Reason: reasonViolations, Message: long(40000)})
	}
	if r.IntN(10) == 0 {
		s.Plan = nil
	}
	return s
}

// Whatever the chart, the status can be written, and says what it leaves out.
func TestEveryStatusFits(t *testing.T) {
	for seed := range uint64(6) {
		counts := []int{0, 3, 300, 300, 300, 20000}
		if seed == 0 {
			counts = []int{20000}
		}
		s := huge(rand.New(rand.NewPCG(seed, 1)), counts...)
		(&secrets{}).clean(s)
		before := s.DeepCopy()
		fit(s)
		if n := size(s); n > maxStatusBytes || n >= 512<<10 {
			t.Fatalf("seed %d: %d bytes", seed, n)
		}
		left, texts := lost(reflect.ValueOf(before).Elem(), reflect.ValueOf(s).Elem(), "")
		want := ""
		if before.Plan != nil && before.Plan.ValuesSchema != "" && s.Plan.ValuesSchema == "" {
			want = "the schema"
		}
		if left > 0 {
			want = strings.TrimPrefix(want+fmt.Sprintf(", %d entries of lists", left), ", ")
		}
		if want != "" && !strings.HasSuffix(s.Message, "left out: "+want+")") || want == "" && strings.Contains(s.Message, "left out") {
			t.Fatalf("seed %d: %d entries are gone, want %q in %q", seed, left, want, s.Message[max(0, len(s.Message)-100):])
		}
		for _, problem := range texts {
			t.Errorf("seed %d: %s", seed, problem)
		}
		if len(s.Jobs) != len(before.Jobs) {
			t.Errorf("seed %d: %d of %d Jobs would run again", seed, len(before.Jobs)-len(s.Jobs), len(before.Jobs))
		}
		if s.Plan != nil && s.Plan.Chart.Annotations[v1alpha1.ChartAnnotationPrimary] == "" {
			t.Errorf("seed %d: the primary is gone", seed)
		}
		again := s.DeepCopy()
		fit(again)
		if !reflect.DeepEqual(again, s) {
			t.Errorf("seed %d: a status that fits is cut", seed)
		}
	}
}

// lost counts the entries of lists that a cut status does not have any more, but for lists of text, which have
// to say so themselves: it returns those that do not.
func lost(whole, cut reflect.Value, path string) (int, []string) {
	n, problems := 0, []string(nil)
	add := func(m int, more []string) { n, problems = n+m, append(problems, more...) }
	switch whole.Kind() {
	case reflect.Pointer:
		if !whole.IsNil() {
			return lost(whole.Elem(), cut.Elem(), path)
		}
	case reflect.Struct:
		if whole.Type() == reflect.TypeFor[metav1.Time]() {
			break
		}
		for i := range whole.NumField() {
			add(lost(whole.Field(i), cut.Field(i), path+"."+whole.Type().Field(i).Name))
		}
	case reflect.Slice:
		textual := whole.Type().Elem().Kind() == reflect.String && !strings.HasSuffix(path, ".Images")
		if w, c := whole.Len(), cut.Len(); w > c || textual && w > 0 && w == c && whole.Index(w-1).String() != cut.Index(c-1).String() {
			gone := w - c + 1
			if textual {
				if had := 0; strings.HasPrefix(whole.Index(w-1).String(), "… and ") {
					_, _ = fmt.Sscanf(whole.Index(w-1).String(), "… and %d more", &had)
					gone += had - 1
				}
				if got, want := cut.Index(c-1).String(), fmt.Sprintf("… and %d more", gone); got != want {
					problems = append(problems, fmt.Sprintf("%s ends with %q, want %q", path, got, want))
				}
			} else {
				n += w - c
			}
		}
		for i := range cut.Len() {
			add(lost(whole.Index(i), cut.Index(i), path))
		}
	}
	return n, problems
}
