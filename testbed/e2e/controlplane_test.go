package e2e

import (
	"context"
	"sync"
	"testing"
	"time"

	"zaentrum.io/zae/testbed"
)

// kubelet starts programs of the house again when they end, as a kubelet does, until the test ends.
func (h *house) kubelet(programs ...*testbed.Process) {
	h.Helper()
	ctx, cancel := context.WithCancel(h.ctx)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(200 * time.Millisecond):
			}
			for _, p := range programs {
				if p.Running() {
					continue
				}
				h.Logf("%s ended and is started again", p.Name())
				start, stop := context.WithTimeout(ctx, time.Minute)
				if err := p.Start(start); err != nil && ctx.Err() == nil {
					h.Logf("%v", err) // and again
				}
				stop()
			}
		}
	})
	h.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

// TestFaultControlPlane takes API server and etcd away in the course of adding, upgrading, changing and removing.
func TestFaultControlPlane(t *testing.T) {
	rounds, outage := 1, 6*time.Second
	if chaos() {
		rounds, outage = 5, 30*time.Second
	}
	h := openHouse(t, opening{alone: true, within: time.Duration(rounds) * 10 * time.Minute})
	w := newWorld(h, []string{"plane-a", "plane-b", "plane-c"}, seed(t))
	w.lossy = true // what the API server is killed over is not in its audit log
	h.kubelet(h.Operator, h.API)
	api, etcd := bed.Process("kube-apiserver"), bed.Process("etcd")
	again := func(p *testbed.Process) error {
		ctx, cancel := context.WithTimeout(h.ctx, 2*time.Minute)
		defer cancel()
		return p.Start(ctx)
	}
	var steps int
	for range rounds {
		for _, fault := range []struct {
			name string
			do   func() error
		}{
			{"the API server is killed", func() error {
				if err := api.Kill(); err != nil {
					return err
				}
				return again(api)
			}},
			{"the API server is restarted in order", func() error {
				if err := api.Stop(); err != nil {
					return err
				}
				return again(api)
			}},
			{"etcd is stopped", func() error {
				if err := etcd.Stop(); err != nil {
					return err
				}
				time.Sleep(outage)
				return again(etcd)
			}},
			{"etcd hangs", func() error {
				if err := etcd.Pause(); err != nil {
					return err
				}
				time.Sleep(outage)
				return etcd.Resume()
			}},
			{"the API server hangs", func() error {
				if err := api.Pause(); err != nil {
					return err
				}
				time.Sleep(outage)
				return api.Resume()
			}},
		} {
			start := time.Now()
			var done sync.WaitGroup
			delay := time.Duration(w.random.IntN(1500)) * time.Millisecond
			done.Go(func() {
				time.Sleep(delay)
				if err := fault.do(); err != nil {
					t.Error(err)
				}
			})
			var taken []string
			for _, m := range w.members {
				taken = append(taken, w.step(m))
			}
			done.Wait()
			steps += len(taken)
			w.settle()
			t.Logf("%s, %s after the first of %v: all is well %s later", fault.name, delay, taken, time.Since(start).Round(100*time.Millisecond))
		}
	}
	t.Logf("%d steps: %s", steps, counts(w.steps))
}
