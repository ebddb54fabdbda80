package guard

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/manifest"
)

func TestTheTableIsComplete(t *testing.T) {
	t.Parallel()
	kebab := regexp.MustCompile(`^[a-z]+(-[a-z]+)+$|^ownership$`)
	seen := map[string]bool{}
	for _, r := range Rules() {
		if !kebab.MatchString(r.ID) || seen[r.ID] {
			t.Errorf("id %q is not kebab-case, or there twice", r.ID)
		}
		seen[r.ID] = true
		if r.Title == "" || r.Why == "" || r.Fix == "" {
			t.Errorf("%s lacks a title, why or fix", r.ID)
		}
		if r.Level != Refuse && r.Level != Warn {
			t.Errorf("%s has no level", r.ID)
		}
		ways := 0
		for _, way := range []bool{r.chart != nil, r.object != nil, r.observed, r.neighbours != nil} {
			if way {
				ways++
			}
		}
		if ways != 1 {
			t.Errorf("%s is decided in %d ways, want 1", r.ID, ways)
		}
		if (r.chart != nil) != slices.Equal(r.Kinds, []string{ChartKind}) {
			t.Errorf("%s: rules about the chart, and only they, have the kind %s", r.ID, ChartKind)
		}
		if found, ok := RuleByID(r.ID); !ok || found.Title != r.Title {
			t.Errorf("%s is not found by its id", r.ID)
		}
	}
	if _, ok := RuleByID("no-such-rule"); ok {
		t.Error("a rule is found by an id that is none")
	}
}

// The rows of the contract's table (§3), as the ids that stand for them. None of them may go.
func TestEveryRowOfTheContractHasItsRules(t *testing.T) {
	t.Parallel()
	for row, ids := range map[string]string{
		"Chart":                  "chart-api-version chart-type chart-addon chart-primary no-crds",
		"Kinds":                  "allowed-kind",
		"Objects":                "own-namespace unique-object reserved-name no-owner-references no-service-account-annotation",
		"Primary":                "primary-service primary-port",
		"Secrets":                "secret-type",
		"Services":               "service-type no-external-address",
		"PersistentVolumeClaims": "no-existing-volume",
		"Pods": "no-host-network no-host-pid no-host-ipc no-host-port no-privileged no-privilege-escalation no-added-capabilities " +
			"no-root-user run-as-non-root default-proc-mount no-selinux-options no-sysctls no-unconfined-apparmor no-host-process " +
			"no-priority-class no-node-name no-control-plane no-tolerate-all",
		"Volumes and references": "no-host-path allowed-volume own-claims own-secrets own-config-maps own-service-account",
		"Ownership":              "ownership",
	} {
		for id := range strings.FieldsSeq(ids) {
			if r, ok := RuleByID(id); !ok || r.Level != Refuse {
				t.Errorf("%s: no rule %s that refuses", row, id)
			}
		}
	}
}

func TestARealisticAddonIsAccepted(t *testing.T) {
	t.Parallel()
	f := exampleFacts(t)
	if found := Check(f); len(found) > 0 {
		t.Errorf("findings: %v", found)
	}
}

// The notices on it are those that it deserves, each once.
func TestARealisticAddonHasItsNotices(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, f := range Notices(exampleFacts(t)) {
		if f.Level != Warn {
			t.Errorf("%s forbids something", f.Rule)
		}
		seen[f.Rule] = true
	}
	for _, id := range []string{"host-aliases", "media-writable", "pinned-digest", "platform-secret", "resource-requests"} {
		if !seen[id] {
			t.Errorf("no notice %s", id)
		}
		delete(seen, id)
	}
	if len(seen) > 0 {
		t.Errorf("also %v", seen)
	}
}

func TestOnlyWhatIsNewIsHeldAgainstNeighbours(t *testing.T) {
	t.Parallel()
	f := goodFacts()
	if got := NewTraffic(f.Objects, nil); len(got) != 2 {
		t.Errorf("of a new addon: %v", got.IDs())
	}
	if got := NewTraffic(f.Objects, f.Objects.Clone()); len(got) != 0 {
		t.Errorf("of what runs: %v", got.IDs())
	}
	changed := f.Objects.Clone()
	changed[0].Tree["spec"].(map[string]any)["selector"] = map[string]any{"app": "app", "x": "y"}
	if got := NewTraffic(changed, f.Objects); len(got) != 1 || got[0].ID().Kind != kindService {
		t.Errorf("of another selector: %v", got.IDs())
	}
	plain := manifest.Set{{Tree: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}}}
	if got := NewTraffic(plain, nil); len(got) != 1 {
		t.Errorf("of a ConfigMap that somebody may wait for: %v", got.IDs())
	}
	if got := NewTraffic(plain, plain.Clone()); len(got) != 0 {
		t.Errorf("of a ConfigMap that is there: %v", got.IDs())
	}
	apart := f.Objects.Clone()
	pod := value{raw: apart[1].Tree}.at("spec", "template", "spec").raw.(map[string]any)
	pod["affinity"] = map[string]any{"podAntiAffinity": map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": []any{
		map[string]any{"topologyKey": "zone", "labelSelector": map[string]any{"matchLabels": map[string]any{"app": "app"}}},
	}}}
	if got := NewTraffic(apart, f.Objects); len(got) != 1 || got[0].ID().Kind != kindDeployment {
		t.Errorf("of a new anti-affinity: %v", got.IDs())
	}
	if got := NewTraffic(apart, apart.Clone()); len(got) != 0 {
		t.Errorf("of an anti-affinity that is there: %v", got.IDs())
	}
}

func TestCheckChangesNothing(t *testing.T) {
	t.Parallel()
	f := exampleFacts(t)
	before := f.Objects.Clone()
	Check(f)
	if d := cmp.Diff(before, f.Objects); d != "" {
		t.Errorf("objects changed:\n%s", d)
	}
}

// Everything is reported, the chart first, then the objects as they were given, each in the table's order.
func TestFindingsAreCompleteAndInOrder(t *testing.T) {
	t.Parallel()
	f := Facts{Addon: "app", Namespace: "zaentrum", Chart: ChartFacts{CRDs: []string{"crds/a.yaml"}}}
	for _, o := range decodeText(t, `
apiVersion: batch/v1
kind: Job
metadata: {name: zaentrum-addon-z, namespace: other}
spec: {template: {spec: {hostPID: true, hostNetwork: true, volumes: [{name: a, hostPath: {path: /}}], containers: [{name: a, image: x}]}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: a, namespace: other}
---
apiVersion: v1
kind: Secret
metadata: {name: b}
type: x
`) {
		f.Objects = append(f.Objects, manifest.Object{Source: "templates/all.yaml", Tree: o.(map[string]any)})
	}
	var got []string
	for _, found := range append(Check(f), Notices(f)...) {
		got = append(got, found.Rule+" "+found.Kind)
	}
	want := []string{
		"chart-api-version Chart", "chart-addon Chart", "chart-primary Chart", "no-crds Chart",
		"own-namespace Job", "reserved-name Job", "valid-object Job", "no-host-network Job", "no-host-pid Job", "no-host-path Job",
		"allowed-kind Role", "own-namespace Role",
		"secret-type Secret",
		"pinned-digest Job", "resource-requests Job",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("findings (-want +got):\n%s", d)
	}
	if again := Check(f); !reflect.DeepEqual(again, Check(f)) {
		t.Error("two runs differ")
	}
}

func TestFindingText(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]Finding{
		"Deployment/example-worker: hostPath volume not allowed (spec.template.spec.volumes[1])": {
			Kind: "Deployment", Name: "example-worker", What: "hostPath volume not allowed", Path: "spec.template.spec.volumes[1]",
		},
		"Chart: apiVersion must be v2": {Kind: ChartKind, What: "apiVersion must be v2"},
		"(no kind)/(no name): no kind": {What: "no kind"},
		"Secret/a: rendered twice":     {Kind: "Secret", Name: "a", What: "rendered twice"},
		"Chart/mine: kind not allowed": {Kind: ChartKind, Name: "mine", What: "kind not allowed"},
	} {
		if got := f.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestFindingsCarryTheirSource(t *testing.T) {
	t.Parallel()
	f := goodFacts()
	f.Objects[1].Tree["kind"] = "DaemonSet"
	found := Check(f)
	i := slices.IndexFunc(found, func(f Finding) bool { return f.Rule == "allowed-kind" })
	if i < 0 || found[i].Source != "templates/app.yaml" {
		t.Errorf("findings: %+v", found)
	}
}

func TestRefusedLeavesWarningsOut(t *testing.T) {
	t.Parallel()
	found := []Finding{{Rule: "a", Level: Warn}, {Rule: "b", Level: Refuse}, {Rule: "c", Level: Warn}, {Rule: "d", Level: Refuse}}
	got := Refused(found)
	if len(got) != 2 || got[0].Rule != "b" || got[1].Rule != "d" {
		t.Errorf("got %v", got)
	}
}

// A chart can put what it likes into names, kinds and keys: terminal escapes, text without end.
func TestTextFromChartsIsMadeFitToBeShown(t *testing.T) {
	t.Parallel()
	hostile := "x\x1b[2J\u202e\r\n\x00\u200b" + strings.Repeat("é", 1000)
	f := goodFacts()
	f.Chart.CRDs = []string{hostile}
	f.Chart.Annotations[v1alpha1.ChartAnnotationPrimary] = hostile
	f.Objects = append(f.Objects,
		manifest.Object{Source: hostile, Tree: map[string]any{
			"apiVersion": hostile, "kind": hostile, "metadata": map[string]any{"name": hostile},
		}},
		manifest.Object{Tree: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": "a", "labels": map[string]any{hostile: int64(1)}},
			hostile:    "x",
		}},
	)
	f.Objects[1].Tree["spec"].(map[string]any)["template"].(map[string]any)["spec"] = map[string]any{
		"serviceAccountName": hostile,
		"volumes":            []any{map[string]any{"name": "a", hostile: map[string]any{}}},
		"imagePullSecrets":   []any{map[string]any{"name": hostile}},
	}
	found := append(append(Check(f), Notices(f)...), CheckOwnership([]manifest.ID{{Kind: hostile, Name: hostile}})...)
	if len(found) < 8 {
		t.Errorf("only %d findings", len(found))
	}
	for _, f := range found {
		checkShown(t, f)
	}
}

// No finding quotes a value: only kinds, names of objects and paths.
func TestFindingsQuoteNoValue(t *testing.T) {
	t.Parallel()
	const canary = "c4n4ry"
	for _, i := range fixtures(t) {
		f := i.facts
		f.Objects = f.Objects.Clone()
		for _, o := range f.Objects {
			for k, v := range o.Tree {
				if k != "apiVersion" && k != "kind" {
					o.Tree[k] = plant(v, canary)
				}
			}
		}
		for _, found := range append(Check(f), Notices(f)...) {
			if strings.Contains(found.String(), canary) {
				t.Errorf("%s: %s", i.name, found)
			}
		}
	}
}

// plant replaces all strings but those that name objects.
func plant(v any, canary string) any {
	switch v := v.(type) {
	case string:
		return canary
	case []any:
		for i, e := range v {
			v[i] = plant(e, canary)
		}
	case map[string]any:
		for k, e := range v {
			switch k {
			case "name", "secretName", "claimName", "serviceAccountName", "serviceAccount":
			default:
				v[k] = plant(e, canary)
			}
		}
	}
	return v
}

// Anything in an addon turned into something of another type is refused, wherever it stands.
func TestValuesOfOtherTypesPassNowhere(t *testing.T) {
	t.Parallel()
	f := exampleFacts(t)
	for n := range f.Objects {
		tree := f.Objects[n].Tree
		walk(tree, tree["kind"].(string), func(path string, set func(any), old any) {
			var other any = []any{"x"}
			if _, list := old.([]any); list {
				other = map[string]any{"x": "y"}
			}
			set(other)
			if len(Refused(Check(f))) == 0 {
				t.Errorf("%s of another type is not refused", path)
			}
			set(old)
		})
	}
	if found := Check(f); len(found) > 0 {
		t.Errorf("the addon was not put back: %v", found)
	}
}

// walk visits everything below v.
func walk(v any, path string, visit func(path string, set func(any), old any)) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			visit(path+"."+k, func(n any) { v[k] = n }, e)
			walk(e, path+"."+k, visit)
		}
	case []any:
		for i, e := range v {
			visit(path+"[]", func(n any) { v[i] = n }, e)
			walk(e, path+"[]", visit)
		}
	}
}

func FuzzCheck(f *testing.F) {
	for _, file := range []string{"testdata/accept/example.yaml"} {
		for _, doc := range decodeFile(f, file) {
			text, err := json.Marshal(doc)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	for _, seed := range []string{
		"{kind: Job, spec: {template: [x]}}", "kind: 1", "[]", "metadata: []", "{kind: Deployment, apiVersion: apps/v1, spec: {template: {spec: {containers: [null, {env: x}]}}}}",
		"{kind: Secret, apiVersion: v1, metadata: {name: a, labels: [1]}, data: {a: null}}", "x: &a {y: *a}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		docs, err := manifest.Decode(text)
		if err != nil {
			return
		}
		facts := goodFacts()
		for _, d := range docs {
			tree, _ := d.(map[string]any)
			facts.Objects = append(facts.Objects, manifest.Object{Tree: tree})
		}
		found := append(Check(facts), Notices(facts)...)
		if !reflect.DeepEqual(found, append(Check(facts), Notices(facts)...)) {
			t.Error("two runs differ")
		}
		for _, f := range found {
			checkShown(t, f)
		}
	})
}

func checkShown(t *testing.T, f Finding) {
	t.Helper()
	for _, s := range []string{f.Kind, f.Name, f.Path, f.What, f.Source, f.String()} {
		if i := strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%s: control characters in %q", f.Rule, s)
		}
		if !utf8.ValidString(s) {
			t.Errorf("%s: not UTF-8: %q", f.Rule, s)
		}
	}
	if n := utf8.RuneCountInString(f.Name) + utf8.RuneCountInString(f.Kind) + utf8.RuneCountInString(f.What); n > 800 {
		t.Errorf("%s: %d characters", f.Rule, n)
	}
}

func exampleFacts(t testing.TB) Facts {
	t.Helper()
	f := goodFacts()
	f.Addon = "example"
	f.Chart.Annotations[v1alpha1.ChartAnnotationPrimary] = "example"
	f.MediaClaim, f.EventsTLSSecret, f.ImagePullSecrets = "media", "events-tls", []string{"regcred"}
	f.Objects = nil
	for _, d := range decodeFile(t, "testdata/accept/example.yaml") {
		f.Objects = append(f.Objects, manifest.Object{Source: "templates/all.yaml", Tree: d.(map[string]any)})
	}
	return f
}

func decodeText(t testing.TB, text string) []any {
	t.Helper()
	docs, err := manifest.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return docs
}
