package engine_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"zaentrum.io/zae/internal/worker"
)

// TestMain makes the test's own program the render worker, as the product's is.
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
	p, err := worker.NewPool(worker.Options{})
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
