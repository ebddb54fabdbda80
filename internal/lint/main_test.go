package lint_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/lint"
	"zaentrum.io/zae/internal/worker"
)

// TestMain makes the test's own program the worker, as the product's is.
func TestMain(m *testing.M) {
	if args := os.Args[1:]; worker.Requested(args) {
		os.Exit(worker.Serve(args, os.Stdin, os.Stdout))
	}
	flag.Parse()
	code := m.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func newPool(tb testing.TB) *worker.Pool {
	tb.Helper()
	p, err := worker.NewPool(worker.Options{Max: 2})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = p.Close() })
	return p
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

func lines(r *lint.Report) string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s:%d:%d %s %s %s\n", f.File, f.Line, f.Column, f.Severity, f.Rule, f.Text())
	}
	return b.String()
}

func TestTheExamplesAreWithoutFindings(t *testing.T) {
	pool := newPool(t)
	for _, dir := range []string{"example/1.2.0", "example/1.3.0", "tiny"} {
		t.Run(dir, func(t *testing.T) {
			report := check(t, pool, sourceOf(t, "../../examples/"+dir), lint.Options{})
			if got := lines(report); got != "" {
				t.Errorf("findings:\n%s", got)
			}
			t.Log(report.Space)
		})
	}
}
