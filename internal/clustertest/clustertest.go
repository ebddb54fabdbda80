// Package clustertest gives the tests of a package one API server with its etcd. No controller runs beside it:
// nothing rolls out, and nothing is collected. It is never part of the product.
package clustertest

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

var server struct {
	sync.Once
	env    *envtest.Environment
	config *rest.Config
	err    error
}

// Config is how to reach the API server, which is started for the first test that asks, without a bound on the rate of
// requests. A test that asks is skipped with -short.
func Config(tb testing.TB) *rest.Config {
	tb.Helper()
	if testing.Short() {
		tb.Skip("needs an API server: left out with -short")
	}
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		tb.Fatal("needs an API server: run through make test, or set KUBEBUILDER_ASSETS to a directory with etcd and kube-apiserver")
	}
	server.Do(func() {
		server.env = &envtest.Environment{ControlPlaneStartTimeout: 2 * time.Minute, ControlPlaneStopTimeout: time.Minute}
		server.config, server.err = server.env.Start()
	})
	if server.err != nil {
		tb.Fatal(server.err)
	}
	config := rest.CopyConfig(server.config)
	config.QPS, config.Burst = -1, -1
	config.WarningHandler = rest.NoWarnings{}
	return config
}

// Namespace makes one for a test.
func Namespace(tb testing.TB, c client.Client) string {
	tb.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := c.Create(tb.Context(), ns); err != nil {
		tb.Fatal(err)
	}
	return ns.Name
}

// Run runs the tests, stops the API server if there is one, and answers with the exit status. It is for a TestMain.
func Run(m *testing.M) int {
	code := m.Run()
	if server.config != nil {
		if err := server.env.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the API server:", err)
			code = max(code, 1)
		}
	}
	return code
}
