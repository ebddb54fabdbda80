package operator_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	discovery "k8s.io/client-go/kubernetes/typed/discovery/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/internal/operator"
)

func denies(g *operator.APIServerGuard, addr string) bool {
	_, denied := g.Deny(netip.MustParseAddr(addr))
	return denied
}

// behind are the addresses that the API server registered for itself.
func behind(t *testing.T, config *rest.Config) []string {
	t.Helper()
	c, err := discovery.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	slice, err := c.EndpointSlices("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var addrs []string
	for _, e := range slice.Endpoints {
		for _, a := range e.Addresses {
			if !netip.MustParseAddr(a).IsLoopback() { // those the fetcher refuses by itself
				addrs = append(addrs, a)
			}
		}
	}
	if len(addrs) == 0 {
		t.Fatalf("the API server has no endpoint but loopback: %+v", slice.Endpoints)
	}
	return addrs
}

func TestTheAPIServerIsRefusedByEveryAddress(t *testing.T) {
	config := apiServer(t)
	g := operator.NewAPIServerGuard(t.Context(), config, "10.0.0.1", slog.New(slog.DiscardHandler))
	for _, addr := range append(behind(t, config), "10.0.0.1", "::ffff:10.0.0.1") {
		if why, denied := g.Deny(netip.MustParseAddr(addr)); !denied || why != "the cluster's API server" {
			t.Errorf("%s is let through", addr)
		}
	}
	for _, addr := range []string{"10.0.0.2", "127.0.0.1", "198.51.100.7", "::1"} {
		if denies(g, addr) {
			t.Errorf("%s is the API server's", addr)
		}
	}
}

// TestTheConfiguredAPIServerIsRefused needs no cluster: every form that a configuration may name it in.
func TestTheConfiguredAPIServerIsRefused(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context()) // no endpoints are asked for
	cancel()
	for host, addr := range map[string]string{
		"https://10.1.2.3:6443":        "10.1.2.3",
		"https://10.1.2.3":             "10.1.2.3",
		"10.1.2.3:6443":                "10.1.2.3",
		"10.1.2.3":                     "10.1.2.3",
		"https://[fd12::3]:6443":       "fd12::3",
		"[fd12::3]:6443":               "fd12::3",
		"[fd12::3]":                    "fd12::3",
		"https://10.1.2.3:6443/prefix": "10.1.2.3",
	} {
		g := operator.NewAPIServerGuard(ended, &rest.Config{Host: host}, "10.96.0.1", slog.New(slog.DiscardHandler))
		if !denies(g, addr) || !denies(g, "10.96.0.1") {
			t.Errorf("%s is let through", host)
		}
	}
}

// TestWithoutTheRightTheGuardGoesOn gives the operator the shipped right while the guard runs.
func TestWithoutTheRightTheGuardGoesOn(t *testing.T) {
	config := apiServer(t)
	addrs := behind(t, config)
	own := rest.CopyConfig(config)
	own.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:zaentrum:zae-operator"}
	log := &lockedBuffer{}
	g := operator.NewAPIServerGuard(t.Context(), own, "10.0.0.1", slog.New(slog.NewJSONHandler(log, nil)))
	if !denies(g, "10.0.0.1") || denies(g, addrs[0]) {
		t.Errorf("Service %t, endpoint %t", denies(g, "10.0.0.1"), denies(g, addrs[0]))
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { g.Run(ctx, 10*time.Millisecond) })
	defer running.Wait()
	defer stop()
	time.Sleep(200 * time.Millisecond)
	if n := strings.Count(log.String(), "endpoints are not known"); n != 1 || !strings.Contains(log.String(), "Forbidden") {
		t.Errorf("said %d times: %s", n, log)
	}

	c, err := client.New(config, client.Options{Scheme: operator.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	const file = "apiserver-endpoints.yaml"
	role, binding := inFile[rbacv1.Role](t, file, "Role")[0], inFile[rbacv1.RoleBinding](t, file, "RoleBinding")[0]
	for _, o := range []client.Object{&role, &binding} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.Delete(context.Background(), o); err != nil {
				t.Error(err)
			}
		})
	}
	for deadline := time.Now().Add(30 * time.Second); !denies(g, addrs[0]); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("with the right, the endpoints are still let through")
		}
	}
	if n := strings.Count(log.String(), "\n"); n != 1 {
		t.Errorf("%d lines: %s", n, log)
	}
}

// Endpoints are watched: a change counts at once, and while nothing changes nothing is asked.
func TestTheAPIServersEndpointsAreWatched(t *testing.T) {
	config := rest.CopyConfig(apiServer(t))
	var gets, watches atomic.Int64
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Query().Has("watch") {
				watches.Add(1)
			} else {
				gets.Add(1)
			}
			return next.RoundTrip(r)
		})
	})
	g := operator.NewAPIServerGuard(t.Context(), config, "", slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { g.Run(ctx, 10*time.Millisecond) })
	defer running.Wait()
	defer stop()
	for watches.Load() == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	before := gets.Load()
	time.Sleep(500 * time.Millisecond) // fifty ticks
	if n := gets.Load() - before; n > 1 || watches.Load() != 1 {
		t.Errorf("%d reads and %d watches while nothing changed", n, watches.Load())
	}
	if addrs := behind(t, config); !denies(g, addrs[0]) {
		t.Errorf("%s is let through", addrs[0])
	}
}
