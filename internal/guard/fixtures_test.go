package guard

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/manifest"
)

// A fixture file testdata/rules/ID.yaml holds what a rule passes and what it fails, as differences to an
// addon that breaks no rule:
//
//	chart, facts   replace what they name
//	objects        are added; with bare there is nothing else
//	pod            is merged into a pod spec, template into a pod template's metadata, container into a
//	               container: each once in a Deployment and once in a Job, a container also as an init container
//	want           are all findings of the rule, also those of other rules; @ is the place merged into
type instance struct {
	rule, name string
	failing    bool
	facts      Facts
	taken      []manifest.ID
	near       Neighbours
	want       map[string][]string // rule id → findings
}

// got are the findings. Of the notices, and of the rule about valid objects, only those of the rule that the fixture
// is about: most fixtures leave out what has nothing to do with it.
func (i instance) got(rules []Rule) map[string][]string {
	rules = slices.DeleteFunc(slices.Clone(rules), func(r Rule) bool { return (r.Notice || r.ID == validity) && r.ID != i.rule })
	got := map[string][]string{}
	for _, f := range slices.Concat(check(rules, i.facts), checkOwnership(rules, i.taken), checkNeighbours(rules, i.facts.Objects, i.near)) {
		got[f.Rule] = append(got[f.Rule], f.String())
	}
	return got
}

// validity is the id of the rule that asks for what the API server asks for.
const validity = "valid-object"

func TestFixtures(t *testing.T) {
	t.Parallel()
	for _, i := range fixtures(t) {
		t.Run(i.name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(i.want, i.got(Rules())); d != "" {
				t.Errorf("findings (-want +got):\n%s", d)
			}
		})
	}
}

func TestEveryRuleHasPassingAndFailingFixtures(t *testing.T) {
	t.Parallel()
	pass, fail := map[string]int{}, map[string]int{}
	for _, i := range fixtures(t) {
		if i.failing && len(i.want[i.rule]) > 0 {
			fail[i.rule]++
		}
		if !i.failing && len(i.want[i.rule]) == 0 {
			pass[i.rule]++
		}
	}
	for _, r := range Rules() {
		if pass[r.ID] == 0 || fail[r.ID] == 0 {
			t.Errorf("%s has %d passing and %d failing fixtures", r.ID, pass[r.ID], fail[r.ID])
		}
		delete(fail, r.ID)
	}
	for id := range fail {
		t.Errorf("fixtures of %s, which is no rule", id)
	}
}

// TestFixturesFailWithoutTheirRule takes one rule at a time out of the table, and sees its failing fixtures judged
// otherwise. A rule without any is none.
func TestFixturesFailWithoutTheirRule(t *testing.T) {
	t.Parallel()
	all := fixtures(t)
	byRule := map[string][]instance{}
	failing := 0
	for _, i := range all {
		if i.failing {
			byRule[i.rule] = append(byRule[i.rule], i)
			failing++
		}
	}
	rules := Rules()
	for n, r := range rules {
		if len(byRule[r.ID]) == 0 {
			t.Errorf("nothing fails without %s", r.ID)
		}
		without := slices.Concat(rules[:n], rules[n+1:])
		for _, i := range byRule[r.ID] {
			if cmp.Equal(i.want, i.got(without)) {
				t.Errorf("%s is met without the rule", i.name)
			}
		}
	}
	t.Logf("%d rules taken out, one at a time; %d fixtures, of which %d fail", len(rules), len(all), failing)
}

func fixtures(t *testing.T) []instance {
	t.Helper()
	files, err := filepath.Glob("testdata/rules/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []instance
	for _, file := range files {
		rule := strings.TrimSuffix(filepath.Base(file), ".yaml")
		docs := decodeFile(t, file)
		if len(docs) != 1 {
			t.Fatalf("%s: %d documents, want 1", file, len(docs))
		}
		for _, section := range []string{"pass", "fail"} {
			for _, c := range (value{raw: docs[0]}).at(section).items() {
				all = append(all, expand(t, rule, section == "fail", c)...)
			}
		}
	}
	return all
}

// expand turns one case of a fixture file into the instances it stands for.
func expand(t *testing.T, rule string, failing bool, c value) []instance {
	t.Helper()
	for _, k := range c.keys() {
		if !slices.Contains([]string{"case", "chart", "facts", "objects", "bare", "pod", "template", "container", "taken", "neighbours", "want", "also"}, k) {
			t.Fatalf("%s: unknown key %s in a fixture", rule, k)
		}
	}
	name := rule + "/" + c.at("case").text()
	if failing == (len(c.at("want").items()) == 0) {
		t.Fatalf("%s: a failing case wants findings, a passing one none", name)
	}
	facts := goodFacts()
	overrideFacts(t, &facts, c)
	if c.at("bare").raw == true {
		facts.Objects = nil
	}
	for _, o := range c.at("objects").items() {
		facts.Objects = append(facts.Objects, manifest.Object{Source: "templates/x.yaml", Tree: o.raw.(map[string]any)})
	}
	base := instance{rule: rule, name: name, failing: failing, facts: facts}
	for _, id := range c.at("taken").items() {
		base.taken = append(base.taken, manifest.ID{APIVersion: id.at("apiVersion").text(), Kind: id.at("kind").text(), Name: id.at("name").text()})
	}

	base.near.Services = neighbours(c.at("neighbours", "services"))
	base.near.Workloads = neighbours(c.at("neighbours", "workloads"))

	var out []instance
	add := func(variant, kind, place string, workload map[string]any) {
		i := base
		if variant != "" {
			i.name += "/" + variant
		}
		prefix := ""
		if workload != nil {
			prefix = kind + "/app: "
			i.facts.Objects = slices.Clone(i.facts.Objects)
			i.facts.Objects[1] = manifest.Object{Source: "templates/x.yaml", Tree: workload}
		}
		i.want = map[string][]string{}
		collect := func(id string, wants []value) {
			for _, w := range wants {
				i.want[id] = append(i.want[id], strings.ReplaceAll(prefix+w.text(), "@", place))
			}
		}
		collect(rule, c.at("want").items())
		for _, id := range c.at("also").keys() {
			collect(id, c.at("also", id).items())
		}
		out = append(out, i)
	}
	merged := func(kind string, into []string, key string) map[string]any {
		w := goodWorkload(kind)
		target := value{raw: w}.at(into...).raw.(map[string]any)
		maps.Copy(target, c.at(key).raw.(map[string]any))
		return w
	}
	for _, kind := range []string{kindDeployment, kindJob} {
		if c.at("pod").raw != nil {
			add(kind, kind, "spec.template.spec", merged(kind, []string{"spec", "template", "spec"}, "pod"))
		}
		if c.at("template").raw != nil {
			add(kind, kind, "spec.template.metadata", merged(kind, []string{"spec", "template", "metadata"}, "template"))
		}
		if c.at("container").raw != nil {
			for _, list := range []string{"containers", "initContainers"} {
				w := goodWorkload(kind)
				pod := value{raw: w}.at("spec", "template", "spec").raw.(map[string]any)
				container := maps.Clone(c.at("container").raw.(map[string]any))
				container["name"] = "judged"
				pod[list] = []any{container}
				add(kind+"/"+list, kind, "spec.template.spec."+list+"[0]", w)
			}
		}
	}
	if len(out) == 0 {
		add("", "", "", nil)
	}
	return out
}

func overrideFacts(t *testing.T, f *Facts, c value) {
	t.Helper()
	chart := c.at("chart")
	for _, k := range chart.keys() {
		v := chart.at(k)
		switch k {
		case "apiVersion":
			f.Chart.APIVersion = v.text()
		case "type":
			f.Chart.Type = v.text()
		case "annotations":
			f.Chart.Annotations = map[string]string{}
			for _, a := range v.keys() {
				f.Chart.Annotations[a] = v.at(a).text()
			}
		case "crds":
			f.Chart.CRDs = texts(v)
		default:
			t.Fatalf("unknown key chart.%s in a fixture", k)
		}
	}
	for _, k := range c.at("facts").keys() {
		v := c.at("facts", k)
		switch k {
		case "mediaClaim":
			f.MediaClaim = v.text()
		case "eventsTLSSecret":
			f.EventsTLSSecret = v.text()
		case "imagePullSecrets":
			f.ImagePullSecrets = texts(v)
		default:
			t.Fatalf("unknown key facts.%s in a fixture", k)
		}
	}
}

// goodFacts are an addon that breaks no rule. The workload is its second object.
func goodFacts() Facts {
	return Facts{
		Addon: "app", Namespace: "zaentrum",
		Chart: ChartFacts{APIVersion: "v2", Type: "application", Annotations: map[string]string{
			v1alpha1.ChartAnnotationAddon: "true", v1alpha1.ChartAnnotationPrimary: "app",
		}},
		Objects: manifest.Set{
			{Source: "templates/service.yaml", Tree: map[string]any{
				"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "app"},
				"spec": map[string]any{"selector": map[string]any{"app": "app"}, "ports": []any{map[string]any{"port": int64(80)}}},
			}},
			{Source: "templates/app.yaml", Tree: goodWorkload(kindDeployment)},
		},
	}
}

func goodWorkload(kind string) map[string]any {
	pod := map[string]any{
		"containers": []any{map[string]any{
			"name": "app", "image": "ghcr.io/example/app:1@sha256:0000000000000000000000000000000000000000000000000000000000000000", "readinessProbe": map[string]any{"tcpSocket": map[string]any{"port": int64(80)}},
			"resources": map[string]any{"requests": map[string]any{"cpu": "1m"}},
		}},
	}
	labels := map[string]any{"app": "app"}
	spec := map[string]any{"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": pod}}
	if kind == kindDeployment {
		spec["selector"] = map[string]any{"matchLabels": labels}
	} else {
		pod["restartPolicy"] = "Never"
	}
	return map[string]any{"apiVersion": allowedVersion(kind), "kind": kind, "metadata": map[string]any{"name": "app"}, "spec": spec}
}

func neighbours(list value) []Neighbour {
	var out []Neighbour
	for _, e := range list.items() {
		n := Neighbour{Kind: e.at("kind").text(), Name: e.at("name").text(), Labels: texted(e.at("labels"))}
		for _, r := range e.at("refers").items() {
			n.Refers = append(n.Refers, [2]string(texts(r)))
		}
		out = append(out, n)
	}
	return out
}

func texts(list value) []string {
	var out []string
	for _, e := range list.items() {
		out = append(out, e.text())
	}
	return out
}

func decodeFile(t testing.TB, file string) []any {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	docs, err := manifest.Decode(text)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return docs
}
