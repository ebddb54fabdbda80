package engine_test

import (
	"testing"

	"zaentrum.io/zae/internal/worker"
	"zaentrum.io/zae/internal/workertest"
)

func TestMain(m *testing.M) { workertest.Main(m) }

func newPool(tb testing.TB) *worker.Pool {
	tb.Helper()
	return workertest.Pool(tb, worker.Options{})
}
