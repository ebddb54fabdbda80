package worker_test

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/charttest"
	"zaentrum.io/zae/internal/values"
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

func newPool(tb testing.TB, o worker.Options) *worker.Pool {
	tb.Helper()
	p, err := worker.NewPool(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := p.Close(); err != nil {
			tb.Error(err)
		}
	})
	return p
}

func archive(tb testing.TB, dir string) *chart.Archive {
	tb.Helper()
	data := charttest.Package(tb, dir, filepath.Base(dir))
	sum := sha256.Sum256(data)
	return &chart.Archive{Bytes: data, Digest: "sha256:" + hex.EncodeToString(sum[:])}
}

// canary is the value of the secret input in every test.
const canary = "c4n4ry-value"

func job(tb testing.TB, name string) worker.Job {
	tb.Helper()
	platform, err := values.Platform(values.DefaultPlatform())
	if err != nil {
		tb.Fatal(err)
	}
	return worker.Job{
		Name: name, Namespace: "zaentrum", Platform: platform,
		Spec: map[string]any{"worker": map[string]any{"replicas": int64(2)}},
		From: []values.From{
			{TargetPath: "database.url", Text: "postgres://" + canary},
			{TargetPath: "token", Text: canary},
			{TargetPath: "bytes", Text: "\xff\xfe" + canary},
		},
		Generated: map[string]string{"config.key": "c2V0"},
	}
}
