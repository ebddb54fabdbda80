package operator

import (
	"fmt"
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
	if want := fmt.Sprintf("%d entries are left out", left); !strings.Contains(s.Message, want) {
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
