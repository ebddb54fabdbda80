package lint_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/guard"
	"zaentrum.io/zae/internal/lint"
	"zaentrum.io/zae/internal/worker"
	"zaentrum.io/zae/internal/workertest"
)

const examples = "../../examples/"

func TestTheExamplesAreWithoutFindings(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	for _, dir := range []string{"example/1.2.0", "example/1.3.0", "tiny"} {
		if got := lines(check(t, pool, sourceOf(t, examples+dir), lint.Options{})); got != "" {
			t.Errorf("%s:\n%s", dir, got)
		}
	}
	before := sourceOf(t, examples+"example/1.2.0").Archive
	if got := lines(check(t, pool, sourceOf(t, examples+"example/1.3.0"), lint.Options{Against: before})); got != "" {
		t.Errorf("against the version before:\n%s", got)
	}
}

// faulty are the charts with something to be told of, one kind each.
func faulty(tb testing.TB) []string {
	tb.Helper()
	found, err := filepath.Glob(examples + "lint/*/Chart.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	var dirs []string
	for _, f := range found {
		dirs = append(dirs, filepath.Dir(f))
	}
	slices.Sort(dirs)
	return dirs
}

func TestFaultyChartsHaveExactlyTheirFindings(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	dirs := faulty(t)
	if len(dirs) < 20 {
		t.Fatalf("%d charts", len(dirs))
	}
	var got strings.Builder
	for _, dir := range dirs {
		report := check(t, pool, sourceOf(t, dir), lint.Options{})
		fmt.Fprintf(&got, "# %s (%s, %d ignored)\n%s\n", filepath.Base(dir), report.Space, report.Ignored, lines(report))
	}
	golden(t, "faulty.txt", got.String())
}

func TestAnUpgradeIsHeldAgainstTheVersionBefore(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	before := sourceOf(t, examples+"lint/upgrade/1.0.0")
	if got := lines(check(t, pool, before, lint.Options{})); got != "" {
		t.Errorf("before:\n%s", got)
	}
	after := sourceOf(t, examples+"lint/upgrade/2.0.0")
	report := check(t, pool, after, lint.Options{Against: before.Archive})
	all := lines(report)
	for _, f := range report.Findings {
		if f.Rule == "input-newly-required" && f.Path == "password" && !strings.HasPrefix(f.Fix, "Do not require it") {
			t.Errorf("a secret is led to a default: %s", f.Fix)
		}
	}
	golden(t, "against.txt", all)
	golden(t, "back.txt", lines(check(t, pool, before, lint.Options{Against: after.Archive})))
	if once := lines(check(t, pool, after, lint.Options{Against: before.Archive, MaxRenders: 1})); once != all {
		t.Errorf("with one render:\n%s", once)
	}
	broken := sourceOf(t, examples+"lint/asks-for-more")
	if got := lines(check(t, pool, broken, lint.Options{Against: before.Archive})); !strings.Contains(got, "input-removed") {
		t.Errorf("of a chart that does not render:\n%s", got)
	}
	if _, err := lint.Check(t.Context(), after, lint.Options{Worker: pool, Against: sourceOf(t, examples+"lint/remote-schema").Archive}); fault.From(err) == nil || fault.From(err).Code != fault.Chart {
		t.Errorf("against a chart that is none: %v", err)
	}
}

// TestEveryRuleIsShown keeps the table and the charts together: each rule for authors has a chart that breaks it.
func TestEveryRuleIsShown(t *testing.T) {
	t.Parallel()
	var shown []byte
	for _, name := range []string{"faulty.txt", "against.txt", "back.txt", "helm-charts.txt"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		shown = append(shown, text...)
	}
	for _, r := range lint.Rules() {
		if !bytes.Contains(shown, []byte(" "+r.ID+" ")) {
			t.Errorf("no chart breaks %s", r.ID)
		}
	}
}

func TestRulesAreWhole(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	kebab := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	for _, r := range lint.Catalogue() {
		switch {
		case seen[r.ID]:
			t.Errorf("%s is there twice", r.ID)
		case !kebab.MatchString(r.ID), r.Title == "", r.Why == "", r.Fix == "":
			t.Errorf("%s lacks something", r.ID)
		case r.Severity != lint.Error && r.Severity != lint.Warning && r.Severity != lint.Info:
			t.Errorf("%s: severity %q", r.ID, r.Severity)
		}
		seen[r.ID] = true
		if got, ok := lint.RuleByID(r.ID); !ok || got != r {
			t.Errorf("%s is not found", r.ID)
		}
	}
	if len(seen) != len(guard.Rules())+len(lint.Rules()) {
		t.Errorf("%d rules", len(seen))
	}
	if _, ok := lint.RuleByID("no-such-rule"); ok {
		t.Error("a rule that is not there is found")
	}
}

func TestDocumentedRulesAreTheTables(t *testing.T) {
	t.Parallel()
	file := "../../docs/rules.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- rules: begin -->\n", "<!-- rules: end -->\n"
	head, rest, ok := strings.Cut(string(text), begin)
	old, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("the marks are missing")
	}
	if *update {
		if err := os.WriteFile(file, []byte(head+begin+lint.Markdown()+end+tail), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if old != lint.Markdown() {
		t.Error("docs/rules.md is not current: go test ./internal/lint -run Documented -update")
	}
}

// sentinels are the values that are made up, whatever their case.
var sentinels = regexp.MustCompile(`(?i)zs[0-9a-f]{16}`)

func TestNoReportHoldsAValueOrATemplate(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	dirs := append(faulty(t), examples+"hostile/secret-in-names", examples+"hostile/secret-in-yaml", examples+"hostile/fail-secret", examples+"hostile/fail-location")
	for _, dir := range dirs {
		report := check(t, pool, sourceOf(t, dir), lint.Options{})
		var all bytes.Buffer
		for _, write := range []func() error{
			func() error { return lint.WriteJSON(&all, []*lint.Report{report}) },
			func() error { return lint.WriteSARIF(&all, "1", []*lint.Report{report}) },
			func() error {
				return lint.WriteJUnit(&all, []*lint.Report{report}, func(lint.Finding) bool { return true })
			},
			func() error { return lint.WriteGitHub(&all, []*lint.Report{report}) },
		} {
			if err := write(); err != nil {
				t.Fatal(err)
			}
		}
		if found := sentinels.FindString(all.String()); found != "" {
			t.Errorf("%s: a made-up value in the report: %s", dir, found)
		}
		for _, part := range []string{"{{", "}}", ".Values", "an address is needed", "changeit"} {
			if strings.Contains(all.String(), part) && !strings.Contains(strings.Join(ruleTexts(), "\n"), part) {
				t.Errorf("%s: %q in the report", dir, part)
			}
		}
	}
}

func ruleTexts() []string {
	var out []string
	for _, r := range lint.Catalogue() {
		out = append(out, r.Title, r.Why, r.Fix)
	}
	return out
}

func TestTheBoundOnRendersIsKeptAndSaid(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	src := sourceOf(t, examples+"lint/behind-pair")
	for most, want := range map[int]struct {
		renders int
		said    bool
	}{1: {1, true}, 6: {6, true}, 200: {10, false}} {
		var seen int
		report := check(t, pool, src, lint.Options{MaxRenders: most, Progress: func(done, all int) {
			seen++
			if done > all || done != seen {
				t.Errorf("progress %d of %d", done, all)
			}
		}})
		if report.Renders != want.renders || seen != report.Renders {
			t.Errorf("with %d: %d renders, %d told", most, report.Renders, seen)
		}
		if said := strings.Contains(report.Space, "are left out (--max-renders)"); said != want.said {
			t.Errorf("with %d: %s", most, report.Space)
		}
	}
}

func TestAnUnreadableChartIsAFinding(t *testing.T) {
	t.Parallel()
	archive, err := chart.NewArchive([]byte("no archive"))
	if err != nil {
		t.Fatal(err)
	}
	report := check(t, newPool(t), lint.Source{Label: "x.tgz", Archive: archive}, lint.Options{})
	if len(report.Findings) != 1 || report.Findings[0].Rule != "chart-unreadable" {
		t.Errorf("%+v", report.Findings)
	}
}

func TestTheEndOfTheContextIsAnError(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	renders := 0
	_, err := lint.Check(ctx, sourceOf(t, examples+"example/1.2.0"), lint.Options{Worker: newPool(t), Progress: func(int, int) {
		if renders++; renders == 2 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || renders > 3 {
		t.Errorf("got %v after %d renders", err, renders)
	}
}

func TestAChartThatNeedsTooMuchIsNotRenderedForEver(t *testing.T) {
	t.Parallel()
	files, err := chart.Files(sourceOf(t, examples+"hostile/memory").Archive)
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, chart.File{Name: "values.schema.json", Data: []byte(`{"properties": {"mode": {"enum": ["a", "b", "c", "d", "e", "f"]}}}`)})
	archive, err := chart.Repack("memory", files)
	if err != nil {
		t.Fatal(err)
	}
	pool := workertest.Pool(t, worker.Options{Limits: worker.Limits{Wall: time.Minute}}) // memory decides, not a slow machine
	report := check(t, pool, lint.Source{Label: "memory", Archive: archive}, lint.Options{})
	if report.Renders != 2 || !strings.Contains(report.Space, "5 values and pairs of values are left out") {
		t.Errorf("%s", report.Space)
	}
	if n := len(report.Findings); n != 2 || report.Count(lint.Error) != 1 { // that, and an input that nothing reads
		t.Errorf("findings:\n%s", lines(report))
	}
}

// TestHelmsLintIsBounded: it renders under another release name, so a chart may keep its harm for it.
func TestHelmsLintIsBounded(t *testing.T) {
	t.Parallel()
	files, err := chart.Files(sourceOf(t, examples+"tiny").Archive)
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, chart.File{
		Name: "templates/harm.yaml", Data: []byte(`{{ if eq .Release.Name "test-release" }}{{ repeat 2000000000 "x" | len }}{{ end }}`),
	})
	archive, err := chart.Repack("tiny", files)
	if err != nil {
		t.Fatal(err)
	}
	pool := workertest.Pool(t, worker.Options{Limits: worker.Limits{Wall: time.Minute}})
	report := check(t, pool, lint.Source{Label: "harm", Archive: archive}, lint.Options{})
	if got := lines(report); got != "Chart.yaml:0:0 warning helm-lint helm lint was stopped: it needs more memory than it may have\n" {
		t.Errorf("got %q", got)
	}
}

func TestReportsInJSONAreDocuments(t *testing.T) {
	t.Parallel()
	report := check(t, newPool(t), sourceOf(t, examples+"lint/behind-enum"), lint.Options{})
	var out bytes.Buffer
	if err := lint.WriteJSON(&out, []*lint.Report{report}); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Charts []struct {
			Name     string
			Findings []struct {
				Rule, Severity, File, Object, Message, Fix string
				Line, Column                               int
				With                                       []string
			}
		}
	}
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	f := doc.Charts[0].Findings[0]
	if f.Rule != "no-host-network" || f.Severity != "error" || f.Line != 20 || f.Column != 7 || !slices.Equal(f.With, []string{"mode=host"}) || f.Fix == "" {
		t.Errorf("%+v", f)
	}
}

// TestAnExceptionIsNeededUntilAllWasLookedAt: what was not rendered, or not compared, may need it.
func TestAnExceptionIsNeededUntilAllWasLookedAt(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	const entry = "ignore:\n- {rule: hook, reason: x}\n- {rule: input-removed, file: ./values.schema.json, reason: x}\n"
	unused := func(src lint.Source, o lint.Options) string {
		src.Extra = map[string][]byte{lint.ExceptionsFile: []byte(entry)}
		var out []string
		for _, f := range check(t, pool, src, o).Findings {
			if f.Rule == "ignore-unused" {
				out = append(out, f.Path)
			}
		}
		return strings.Join(out, " ")
	}
	upgrade, before := sourceOf(t, examples+"lint/upgrade/2.0.0"), sourceOf(t, examples+"lint/upgrade/1.0.0").Archive
	for want, got := range map[string]string{
		"hook":               unused(upgrade, lint.Options{Against: before}),
		"hook and no other":  unused(upgrade, lint.Options{}) + " and no other",
		"":                   unused(upgrade, lint.Options{MaxRenders: 1}),
		"nothing is told of": unused(sourceOf(t, examples+"lint/unreadable"), lint.Options{}) + "nothing is told of",
	} {
		if got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}
