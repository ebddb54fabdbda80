package guard

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apply"
	"zaentrum.io/zae/internal/clustertest"
	"zaentrum.io/zae/internal/manifest"
)

var thorough = flag.Bool("thorough", false, "change everything into every awkward value, rather than into some of them")

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(clustertest.Run(m))
}

// judge asks the API server what it accepts, in a namespace of its own.
type judge struct {
	t         *testing.T
	client    client.Client
	namespace string
}

func newJudge(t *testing.T) *judge {
	t.Helper()
	c, err := client.New(clustertest.Config(t), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &judge{t, c, clustertest.Namespace(t, c)}
}

// refuses tells why the cluster does not accept an object as the operator would apply it; empty when it does.
func (j *judge) refuses(ctx context.Context, o manifest.Object) (string, error) {
	marks := apply.Marks{
		Owner:          apply.Owner{APIVersion: "zaentrum.io/v1alpha1", Kind: "ZaentrumAddon", Namespace: j.namespace, Name: "app", UID: "u"},
		Labels:         map[string]string{v1alpha1.LabelAddon: "app"},
		ComponentLabel: v1alpha1.LabelComponent, PodLabel: v1alpha1.LabelAddon,
	}
	u := apply.Decorate(manifest.Set{o}, marks)[0].Unstructured()
	err := j.client.Patch(ctx, u, client.Apply, client.DryRunAll, client.FieldOwner("guard"), client.ForceOwnership) //nolint:staticcheck // the objects are trees
	switch {
	case err == nil:
		return "", nil
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsForbidden(err), apierrors.IsRequestEntityTooLargeError(err),
		apierrors.IsInternalError(err): // which is what it says of what it cannot even read
		return err.Error(), nil
	}
	return "", err
}

// verdict is what was said of one object.
type verdict struct {
	name    string
	object  manifest.Object
	cluster string    // why the cluster refuses it
	guards  []Finding // what of these rules refuses it
}

// hear asks the cluster about every object.
func (j *judge) hear(verdicts []verdict) {
	j.t.Helper()
	group, ctx := errgroup.WithContext(j.t.Context())
	group.SetLimit(8)
	for i := range verdicts {
		group.Go(func() error {
			v := &verdicts[i]
			var err error
			v.cluster, err = j.refuses(ctx, v.object)
			switch {
			case err != nil && len(v.guards) > 0: // API servers have been seen to fall over an object
				v.cluster = err.Error()
			case err != nil:
				return fmt.Errorf("%s: %w", v.name, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		j.t.Fatal(err)
	}
}

// Each fixture about valid objects is judged by the cluster, too: object by object they agree.
func TestTheClusterAgreesWithTheFixtures(t *testing.T) {
	j := newJudge(t)
	var verdicts []verdict
	for _, i := range fixtures(t) {
		if i.rule != validity {
			continue
		}
		for _, o := range i.facts.Objects {
			f := i.facts
			f.Objects = manifest.Set{o}
			f.NotRendered = true
			v := verdict{name: i.name + " " + o.ID().String(), object: o}
			for _, found := range Check(f) {
				if found.Rule == validity {
					v.guards = append(v.guards, found)
				}
			}
			verdicts = append(verdicts, v)
		}
	}
	j.hear(verdicts)
	refused := 0
	for _, v := range verdicts {
		if v.cluster != "" {
			refused++
		}
		switch {
		case v.cluster != "" && len(v.guards) == 0:
			t.Errorf("%s: is accepted, and the cluster refuses it: %s", v.name, v.cluster)
		case v.cluster == "" && len(v.guards) > 0:
			t.Errorf("%s: is refused, and the cluster accepts it: %v", v.name, v.guards)
		}
	}
	t.Logf("%d objects, of which the cluster refuses %d", len(verdicts), refused)
}

// fullFacts are an addon with every kind and most fields.
func fullFacts(t testing.TB) Facts {
	t.Helper()
	f := goodFacts()
	f.Objects = nil
	for _, d := range decodeFile(t, "testdata/accept/full.yaml") {
		f.Objects = append(f.Objects, manifest.Object{Source: "templates/full.yaml", Tree: d.(map[string]any)})
	}
	f.Chart.Annotations["zaentrum.io/primary"] = "full"
	return f
}

// TestTheClusterAgreesOnWhatIsChanged changes one thing at a time about an addon with most of the fields there are:
// whatever the cluster then refuses is refused here, and nothing is refused as invalid that it accepts.
func TestTheClusterAgreesOnWhatIsChanged(t *testing.T) {
	j := newJudge(t)
	j.agreesOnChanges(fullFacts(t))
	if *thorough {
		j.agreesOnChanges(exampleFacts(t))
	}
}

func (j *judge) agreesOnChanges(full Facts) {
	t := j.t
	t.Helper()
	if found := Check(full); len(found) > 0 {
		t.Fatalf("findings: %v", found)
	}
	// The others are there by name only, so that looking at one does not mean looking at all.
	var names manifest.Set
	for _, o := range full.Objects {
		names = append(names, manifest.Object{Tree: map[string]any{
			"apiVersion": o.Tree["apiVersion"], "kind": o.Tree["kind"], "metadata": map[string]any{"name": o.ID().Name},
		}})
	}
	var verdicts []verdict
	for n, o := range full.Objects {
		verdicts = append(verdicts, verdict{name: o.ID().String(), object: o})
		for _, change := range changes(o.Tree) {
			changed := o.Clone()
			change.do(changed.Tree)
			f := full
			f.Objects = slices.Clone(names)
			f.Objects[n] = changed
			v := verdict{name: o.ID().String() + " " + change.name, object: changed}
			for _, found := range Refused(Check(f)) {
				if found.Kind == o.ID().Kind && found.Name == o.ID().Name {
					v.guards = append(v.guards, found)
				}
			}
			verdicts = append(verdicts, v)
		}
	}
	j.hear(verdicts)
	refused, missed, wrong := 0, 0, 0
	for _, v := range verdicts {
		if v.cluster != "" {
			refused++
		}
		ours := slices.ContainsFunc(v.guards, func(f Finding) bool { return f.Rule == validity })
		switch {
		case v.cluster != "" && len(v.guards) == 0:
			missed++
			t.Errorf("accepted, and the cluster refuses it: %s: %s", v.name, v.cluster)
		case v.cluster == "" && ours:
			wrong++
			t.Errorf("refused, and the cluster accepts it: %s: %v", v.name, v.guards)
		}
	}
	t.Logf("%d objects: the cluster refuses %d, missed %d, refused without ground %d", len(verdicts), refused, missed, wrong)
}

// change is one thing done to a tree.
type change struct {
	name string
	do   func(tree map[string]any)
}

// changes are single changes: a field left out, a value replaced by an awkward one of its type, a list emptied or with
// its first entry twice. Each value is replaced by the first two awkward ones and by two of the others in turn.
func changes(tree map[string]any) []change {
	var out []change
	turn := 0
	some := func(n int) []int {
		var which []int
		for i := range n {
			if *thorough || i < 2 || (i-2)%((n-2)/2) == turn%((n-2)/2) {
				which = append(which, i)
			}
		}
		turn++
		return which
	}
	var visit func(path string, at func(root any) (get any, set func(any)), v any)
	add := func(path, what string, at func(any) (any, func(any)), to func(old any) any) {
		out = append(out, change{path + " " + what, func(tree map[string]any) {
			old, set := at(tree)
			set(to(old))
		}})
	}
	visit = func(path string, at func(any) (any, func(any)), v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				field := path + "." + k
				if slices.Contains([]string{".apiVersion", ".kind", ".metadata.name"}, field) {
					continue // what the object is called by in a request
				}
				in := func(root any) (any, func(any)) {
					m, _ := at(root)
					of := m.(map[string]any)
					return of[k], func(n any) { of[k] = n }
				}
				if field != ".metadata" {
					out = append(out, change{field + " left out", func(tree map[string]any) {
						m, _ := at(tree)
						delete(m.(map[string]any), k)
					}})
				}
				visit(field, in, v[k])
			}
			if path != "" && path != ".metadata" {
				add(path, "emptied", at, func(any) any { return map[string]any{} })
			}
		case []any:
			for i := range v {
				visit(fmt.Sprintf("%s[%d]", path, i), func(root any) (any, func(any)) {
					l, _ := at(root)
					of := l.([]any)
					return of[i], func(n any) { of[i] = n }
				}, v[i])
			}
			add(path, "emptied", at, func(any) any { return []any{} })
			add(path, "with its first entry twice", at, func(old any) any { return append(slices.Clone(old.([]any)), old.([]any)[0]) })
		case string:
			awkward := []string{"", "A b", "ä=", "a/b", "-", "..", "/x", "Never", "OnFailure", "Exists", "Localhost", "1", "300%", "-1Gi", strings.Repeat("a", 300), "\t"}
			for _, i := range some(len(awkward)) {
				if to := awkward[i]; to != v {
					add(path, fmt.Sprintf("= %.8q", to), at, func(any) any { return to })
				}
			}
		case int64:
			awkward := []int64{0, -1, 1, 61, 70000, 1<<31 - 1}
			for _, i := range some(len(awkward)) {
				if to := awkward[i]; to != v {
					add(path, fmt.Sprintf("= %d", to), at, func(any) any { return to })
				}
			}
		case bool:
			add(path, "the other way", at, func(any) any { return !v })
		}
	}
	visit("", func(root any) (any, func(any)) { return root, nil }, tree)
	return out
}
