package lint_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"zaentrum.io/zae/internal/lint"
)

const helmModule = "helm.sh/helm/v3"

// command runs to its end and answers how long it took; what it prints is dropped.
func command(b *testing.B, dir string, args ...string) time.Duration {
	b.Helper()
	c := exec.CommandContext(b.Context(), args[0], args[1:]...)
	c.Dir = dir
	start := time.Now()
	out, err := c.CombinedOutput()
	if err != nil {
		b.Fatalf("%v: %v\n%s", args, err, out)
	}
	return time.Since(start)
}

// programs builds zae, and helm from its module, as they would be shipped.
func programs(b *testing.B) (zae, helm string) {
	b.Helper()
	dir := b.TempDir()
	zae, helm = filepath.Join(dir, "zae"), filepath.Join(dir, "helm")
	build := []string{"go", "build", "-trimpath", "-ldflags", "-s -w", "-o"}
	command(b, "../..", append(slices.Clone(build), zae, "./cmd/zae")...)
	out, err := exec.CommandContext(b.Context(), "go", "list", "-m", "-f", "{{.Version}}", helmModule).Output()
	if err != nil {
		b.Fatal(err)
	}
	version := string(out[:len(out)-1])
	module := b.TempDir() // helm's command needs modules that this one does not
	if err := os.WriteFile(filepath.Join(module, "go.mod"), []byte("module bench\n\ngo 1.26\n\nrequire "+helmModule+" "+version+"\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	command(b, module, "go", "get", helmModule+"/cmd/helm@"+version)
	command(b, module, append(slices.Clone(build), helm, helmModule+"/cmd/helm")...)
	return zae, helm
}

// BenchmarkLintProcess is the whole of zae addon lint, from its start to its end, beside helm lint and helm template:
// the median of the runs of each, one after the other, so that the machine's speed counts for both.
func BenchmarkLintProcess(b *testing.B) {
	zae, helm := programs(b)
	const chart = examples + "example/1.2.0"
	values := chart + "/ci/values.yaml"
	var helms, ones, alls []time.Duration
	for b.Loop() {
		helms = append(helms, command(b, "", helm, "lint", chart, "-f", values)+command(b, "", helm, "template", "example", chart, "-f", values))
		ones = append(ones, command(b, "", zae, "addon", "lint", chart, "--max-renders", "1"))
		alls = append(alls, command(b, "", zae, "addon", "lint", chart))
	}
	b.ReportMetric(float64(median(helms).Microseconds())/1000, "ms-helm")
	b.ReportMetric(float64(median(ones).Microseconds())/1000, "ms-one-render")
	b.ReportMetric(float64(median(alls).Microseconds())/1000, "ms-all")
	b.ReportMetric(float64(median(ones))/float64(median(helms)), "ratio-one-render")
	b.ReportMetric(float64(median(alls))/float64(median(helms)), "ratio-all")
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// BenchmarkRenders is lint in this process: with one render, and what each further one costs.
func BenchmarkRenders(b *testing.B) {
	src := sourceOf(b, examples+"example/1.2.0")
	warm := sourceOf(b, examples+"tiny")
	var took [2]time.Duration
	renders := 0
	for b.Loop() {
		for i, most := range []int{1, lint.DefaultMaxRenders} {
			// A new pool, since a pool remembers what it has rendered.
			pool := newPool(b)
			check(b, pool, warm, lint.Options{MaxRenders: 1}) // the worker's start is not measured
			start := time.Now()
			report := check(b, pool, src, lint.Options{MaxRenders: most})
			took[i] += time.Since(start)
			if most > 1 {
				renders += report.Renders - 1
			}
		}
	}
	b.ReportMetric(float64(took[0].Microseconds())/1000/float64(b.N), "ms-one-render")
	b.ReportMetric(float64((took[1]-took[0]).Microseconds())/1000/float64(renders), "ms-per-further-render")
}
