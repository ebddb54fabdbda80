package engine_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"zaentrum.io/zae/internal/clustertest"
	"zaentrum.io/zae/internal/worker"
	"zaentrum.io/zae/internal/workertest"
)

func TestMain(m *testing.M) {
	workertest.Serve()
	flag.Parse()
	code := clustertest.Run(m)
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func newPool(tb testing.TB) *worker.Pool {
	tb.Helper()
	return workertest.Pool(tb, worker.Options{})
}
