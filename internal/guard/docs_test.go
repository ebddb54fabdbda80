package guard

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/pod-security-admission/api"

	"zaentrum.io/zae/internal/apply"
	"zaentrum.io/zae/internal/manifest"
)

var update = flag.Bool("update", false, "write the tables of docs/guardrails.md anew")

// documented holds a part of docs/guardrails.md, between two marks, against what it should be.
func documented(t *testing.T, part, want string) {
	t.Helper()
	const file = "../../docs/guardrails.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+part+": begin -->\n", "<!-- "+part+": end -->\n"
	head, rest, ok := strings.Cut(string(text), begin)
	is, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("no marks of %s", part)
	}
	switch {
	case is == want:
	case *update:
		if err := os.WriteFile(file, []byte(head+begin+want+end+tail), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is not the table of %s: go test ./internal/guard -run Documented -update", file, part)
	}
}

func TestDocumentedRules(t *testing.T) {
	var b strings.Builder
	for _, section := range []struct {
		title string
		has   func(Rule) bool
	}{
		{"Of the contract", func(r Rule) bool { return r.Level == Refuse && !r.Ours }},
		{"Ours", func(r Rule) bool { return r.Level == Refuse && r.Ours }},
		{"Warnings", func(r Rule) bool { return r.Level == Warn }},
	} {
		fmt.Fprintf(&b, "### %s\n\n| Rule | What must hold | Looks at | Why |\n|---|---|---|---|\n", section.title)
		for _, r := range Rules() {
			if section.has(r) {
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.ID, r.Title, or(strings.Join(r.Kinds, ", "), "every object"), r.Why)
			}
		}
		b.WriteString("\n")
	}
	documented(t, "rules", b.String())
}

// TestDocumentedRestrictions finds out what the profile restricted would still refuse of what these rules accept,
// as the operator applies it.
func TestDocumentedRestrictions(t *testing.T) {
	p := newProfiles(t)
	fixtures := podFixtures(t)
	names := slices.Sorted(maps.Keys(fixtures))
	counts := map[string]int{}
	accepted, restricted := 0, 0
	judge := func(pod map[string]any) {
		if len(ourRefusals(pod)) > 0 {
			return
		}
		accepted++
		set := apply.Decorate(asTemplate(kindJob, pod).Objects, apply.Marks{Owner: apply.Owner{Namespace: "zaentrum", Name: "app"}})
		job, _ := set.Find(manifest.ID{APIVersion: "batch/v1", Kind: kindJob, Name: "app"})
		typed, ok := typedPod(t, value{raw: job.Tree}.at("spec", "template").raw.(map[string]any))
		if !ok {
			t.Fatal("no pod")
		}
		why := p.refuses(api.LevelRestricted, typed.ObjectMeta, typed.Spec)
		if len(why) > 0 {
			restricted++
		}
		for _, r := range why {
			counts[r]++
		}
		if left := p.refuses(api.LevelBaseline, typed.ObjectMeta, typed.Spec); len(left) > 0 {
			t.Errorf("as applied, baseline refuses it for %v", left)
		}
	}
	for _, name := range names {
		judge(fixtures[name])
	}
	passing := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.Contains(name, "/pass/") })
	r, all := rand.New(rand.NewPCG(37, 3)), mutations()
	for range 2000 {
		pod := manifest.Object{Tree: fixtures[passing[r.IntN(len(passing))]]}.Clone().Tree
		for range 1 + r.IntN(2) {
			all[r.IntN(len(all))](r, pod)
		}
		judge(pod)
	}
	var b strings.Builder
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&b, "- %s\n", reason)
	}
	t.Logf("%d pods accepted; restricted refuses %d of them as they are applied: %v", accepted, restricted, counts)
	documented(t, "restricted", b.String())
}
