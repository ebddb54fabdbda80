package worker_test

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"testing"

	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/charttest"
	"zaentrum.io/zae/internal/values"
	"zaentrum.io/zae/internal/worker"
	"zaentrum.io/zae/internal/workertest"
)

func TestMain(m *testing.M) { workertest.Main(m) }

func newPool(tb testing.TB, o worker.Options) *worker.Pool {
	tb.Helper()
	return workertest.Pool(tb, o)
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
