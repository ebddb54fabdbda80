package plan_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/plan"
)

func TestEffects(t *testing.T) {
	const checksum = "spec.template.metadata.annotations[zaentrum.io/values-checksum]"
	ref := func(kind, name string) v1alpha1.ObjectRef { return v1alpha1.ObjectRef{Kind: kind, Name: name} }
	var many []string
	for i := range 8 {
		many = append(many, fmt.Sprintf("spec.template.spec.containers[c%d].image", i))
	}
	for name, tc := range map[string]struct {
		change plan.Change
		want   []string
	}{
		"a Job that runs again": {
			plan.Change{Ref: ref("Job", "migrate"), Rerun: true, Fields: []string{checksum, "spec.template.spec.containers[migrate].image"}},
			[]string{"Job/migrate runs again: its pod template changes (values checksum, containers[migrate].image)"},
		},
		"a Job that runs again for something else": {
			plan.Change{Ref: ref("Job", "migrate"), Rerun: true, Fields: []string{"spec.completions"}},
			[]string{"Job/migrate runs again: what cannot be changed on a Job changes (spec.completions)"},
		},
		"a Job that runs again, why is not known": {plan.Change{Ref: ref("Job", "migrate"), Rerun: true}, []string{"Job/migrate runs again"}},
		"a Job that is on its way out":            {plan.Change{Ref: ref("Job", "migrate"), Rerun: true, Leaving: true}, []string{"Job/migrate runs again: the one there is being deleted"}},
		"a Job of which only a label changes":     {plan.Change{Ref: ref("Job", "migrate"), Fields: []string{"metadata.labels.l"}}, nil},
		"a Deployment that rolls": {
			plan.Change{Ref: ref("Deployment", "worker"), Fields: []string{"metadata.labels.l", "spec.replicas", "spec.template.metadata.labels.l", "spec.template.spec.containers[worker].env[A].value"}},
			[]string{"Deployment/worker rolls its pods: metadata.labels.l, containers[worker].env[A].value"},
		},
		"a Deployment that rolls for much": {
			plan.Change{Ref: ref("Deployment", "worker"), Fields: many},
			[]string{"Deployment/worker rolls its pods: containers[c0].image, containers[c1].image, containers[c2].image, containers[c3].image, … and 4 more"},
		},
		"a Deployment that is scaled only": {plan.Change{Ref: ref("Deployment", "worker"), Fields: []string{"spec.replicas"}}, nil},
		"a Deployment nobody can tell of":  {plan.Change{Ref: ref("Deployment", "worker"), Unknown: true}, []string{"Deployment/worker may roll its pods: the cluster does not tell beforehand"}},
		"a Job nobody can tell of":         {plan.Change{Ref: ref("Job", "migrate"), Unknown: true}, []string{"Job/migrate may run again: the cluster does not tell beforehand"}},
		"a Deployment on its way out":      {plan.Change{Ref: ref("Deployment", "worker"), Leaving: true}, []string{"Deployment/worker is being deleted, and is created anew once it is gone"}},
		"what is refused":                  {plan.Change{Ref: ref("Deployment", "worker"), Refused: true}, nil},
		"a ConfigMap":                      {plan.Change{Ref: ref("ConfigMap", "c"), Fields: []string{"data.a"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.Plan{}
			plan.Detail(p, []plan.Change{tc.change})
			if d := cmp.Diff(tc.want, p.Effects); d != "" {
				t.Error(d)
			}
			want := []v1alpha1.ModifiedObject{{Kind: tc.change.Ref.Kind, Name: tc.change.Ref.Name, Fields: tc.change.Fields}}
			if d := cmp.Diff(want, p.Changes.Modified); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestAClaimThatGoesTakesItsData(t *testing.T) {
	p := &v1alpha1.Plan{Changes: v1alpha1.Changes{Removed: []v1alpha1.ObjectRef{{Kind: "ConfigMap", Name: "old"}, {Kind: "PersistentVolumeClaim", Name: "data"}}}}
	plan.Detail(p, []plan.Change{{Ref: v1alpha1.ObjectRef{Kind: "Job", Name: "a"}, Rerun: true}})
	want := []string{"Job/a runs again", "PersistentVolumeClaim/data is deleted, and with it, depending on the storage class, its data"}
	if d := cmp.Diff(want, p.Effects); d != "" {
		t.Error(d)
	}
}

func TestFieldsAreCutAndCounted(t *testing.T) {
	fields := make([]string, 100)
	for i := range fields {
		fields[i] = fmt.Sprintf("data.k%03d", i)
	}
	p := &v1alpha1.Plan{}
	plan.Detail(p, []plan.Change{{Ref: v1alpha1.ObjectRef{Kind: "ConfigMap", Name: "c"}, Fields: fields}})
	got := p.Changes.Modified[0].Fields
	if len(got) != plan.MaxFields || got[len(got)-1] != "… and 61 more" || got[len(got)-2] != "data.k038" {
		t.Errorf("%d: %q", len(got), got[len(got)-2:])
	}
	if fields[plan.MaxFields-1] != "data.k039" {
		t.Error("the list given was changed")
	}
}
