package engine

import (
	"sync"

	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/inputs"
)

// schemas remembers the compiled schemas of charts by their digest: compiling one costs about as much as
// rendering a small chart, and a chart is looked at again and again. The zero value is empty.
type schemas struct {
	mu   sync.Mutex
	held map[string]compiled
}

type compiled struct {
	schema *inputs.Schema
	err    error
}

// maxSchemas bounds what is remembered. At the bound all is forgotten, which costs one compilation each.
const maxSchemas = 64

// of is the chart's schema, or why it cannot be used.
func (s *schemas) of(c *chart.Chart) (*inputs.Schema, error) {
	if c.Digest == "" { // a directory, which may change
		return inputs.Parse(c.Schema)
	}
	s.mu.Lock()
	got, ok := s.held[c.Digest]
	s.mu.Unlock()
	if ok {
		return got.schema, got.err
	}
	schema, err := inputs.Parse(c.Schema)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil || len(s.held) >= maxSchemas {
		s.held = make(map[string]compiled, maxSchemas)
	}
	s.held[c.Digest] = compiled{schema, err}
	return schema, err
}
