// Package workertest lets the program of a package's tests be the render worker too, as the product's program is,
// and gives tests a pool of such workers. It is never part of the product.
package workertest

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"zaentrum.io/zae/internal/worker"
)

// Serve ends the process as a render worker if it was started to be one. It is the first thing of a TestMain.
func Serve() {
	if args := os.Args[1:]; worker.Requested(args) {
		os.Exit(worker.Serve(args, os.Stdin, os.Stdout))
	}
}

// Main is a TestMain that serves as a render worker, and fails when tests leave goroutines.
func Main(m *testing.M) {
	Serve()
	flag.Parse()
	code := m.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// Pool is a pool that ends with the test.
func Pool(tb testing.TB, o worker.Options) *worker.Pool {
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
