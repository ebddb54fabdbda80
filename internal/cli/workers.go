package cli

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/worker"
)

// minRenderMemory is what a render worker needs for itself and an ordinary chart.
const minRenderMemory = 64 << 20

// newWorkers makes the pool of processes that charts are rendered in.
func newWorkers(memory string, n int) (*worker.Pool, error) {
	size, err := resource.ParseQuantity(memory)
	if err != nil || size.Value() < minRenderMemory {
		return nil, fault.New(fault.Usage, "--render-memory is not a size such as 384Mi, of at least 64Mi")
	}
	if n < 1 {
		return nil, fault.New(fault.Usage, "--render-workers is not a number from 1")
	}
	return worker.NewPool(worker.Options{Max: n, Limits: worker.Limits{Memory: size.Value()}})
}
