package lint_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/lint"
	"zaentrum.io/zae/internal/worker"
	"zaentrum.io/zae/internal/workertest"
)

var update = flag.Bool("update", false, "write what is expected anew")

func TestMain(m *testing.M) { workertest.Main(m) }

func newPool(tb testing.TB) *worker.Pool {
	tb.Helper()
	return workertest.Pool(tb, worker.Options{Max: 2})
}

// sourceOf is a chart's directory as the command line hands it over.
func sourceOf(tb testing.TB, dir string) lint.Source {
	tb.Helper()
	archive, err := chart.ReadLocal(dir)
	if err != nil {
		tb.Fatal(err)
	}
	return lint.Source{Label: filepath.Base(dir), Dir: dir, Archive: archive, Extra: extraOf(tb, dir)}
}

func extraOf(tb testing.TB, dir string) map[string][]byte {
	tb.Helper()
	extra, err := lint.Extra(dir)
	if err != nil {
		tb.Fatal(err)
	}
	return extra
}

func check(tb testing.TB, pool lint.Worker, src lint.Source, o lint.Options) *lint.Report {
	tb.Helper()
	o.Worker = pool
	report, err := lint.Check(tb.Context(), src, o)
	if err != nil {
		tb.Fatal(err)
	}
	return report
}

// lines are the findings of a report. What a guardrail says is its own business: only where and with what is kept.
func lines(r *lint.Report) string {
	var b strings.Builder
	for _, f := range r.Findings {
		text := f.Text()
		if rule, _ := lint.RuleByID(f.Rule); rule.Guardrail {
			f.Message = f.Path
			text = f.Text()
		}
		fmt.Fprintf(&b, "%s:%d:%d %s %s %s\n", f.File, f.Line, f.Column, f.Severity, f.Rule, text)
	}
	return b.String()
}

// golden compares with a file of testdata.
func golden(tb testing.TB, name, got string) {
	tb.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		tb.Errorf("%s (-want +got):\n%s", file, d)
	}
}
