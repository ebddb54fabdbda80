package worker

import (
	"sync"

	"zaentrum.io/zae/internal/chart"
)

// maxLoaded bounds the unpacked size of the charts that are kept loaded in one process.
const maxLoaded = 48 << 20

// charts keeps loaded charts by the digest of their archive. The zero value is empty.
type charts struct {
	mu     sync.Mutex
	held   map[string]*loaded
	weight int64
}

// get is the chart, if it is at hand.
func (c *charts) get(digest string) (*loaded, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, ok := c.held[digest]
	return l, ok
}

// of is the chart, loaded now if it is not at hand. A chart that cannot be loaded is not remembered.
func (c *charts) of(a *chart.Archive) (*loaded, error) {
	if l, ok := c.get(a.Digest); ok {
		return l, nil
	}
	l, err := load(a)
	if err != nil || a.Digest == "" {
		return l, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// At the bound all are forgotten: each costs one loading, and nothing is kept count of.
	if weight := l.chart.Weight(); c.held == nil || c.weight+weight > maxLoaded {
		c.held, c.weight = map[string]*loaded{}, 0
	}
	c.held[a.Digest] = l
	c.weight += l.chart.Weight()
	return l, nil
}
