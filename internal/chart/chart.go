package chart

import (
	"maps"
	"sync"

	helmchart "helm.sh/helm/v3/pkg/chart"

	"zaentrum.io/zae/api/v1alpha1"
)

// Chart is a loaded chart. Loading the same archive again may return the same Chart, so it and everything
// it leads to must not be changed.
type Chart struct {
	Name        string
	Version     string
	AppVersion  string
	Description string
	APIVersion  string
	Type        string // empty means application
	Annotations map[string]string
	// Digest is sha256:… of the archive; empty for a chart from a directory.
	Digest string
	// Schema is values.schema.json; nil when there is none.
	Schema []byte
	// Defaults are values.yaml: map[string]any, []any, string, bool, int64, float64 and nil. Never nil.
	Defaults map[string]any
	// Subcharts are the top-level keys under which bundled charts get their values, sorted: their names, or
	// the aliases Chart.yaml gives them.
	Subcharts []string
	// CRDs are the paths of everything in a crds directory of the chart or of a bundled one, sorted.
	CRDs []string

	helm   *helmchart.Chart
	weight int64 // bytes it holds, roughly
}

// Facts are what a plan says about the chart.
func (c *Chart) Facts() v1alpha1.PlanChart {
	return v1alpha1.PlanChart{
		Name:        c.Name,
		Version:     c.Version,
		AppVersion:  c.AppVersion,
		Description: c.Description,
		Digest:      c.Digest,
		Annotations: maps.Clone(c.Annotations),
	}
}

// Helm is the chart as Helm has it, with values decoded as Defaults are and bundled charts in name order.
// It is for package render only: nothing else may know Helm. It must not be changed: work on a copy.
func (c *Chart) Helm() *helmchart.Chart { return c.helm }

// Weight is how many bytes the chart holds, roughly.
func (c *Chart) Weight() int64 { return c.weight }

// parsedBytes bounds what a parsedCache holds, by the size of the unpacked charts.
const parsedBytes = 64 << 20

// parsedCache keeps loaded charts by the digest of their archive.
type parsedCache struct {
	mu     sync.Mutex
	charts *lru[*Chart]
}

func newParsedCache(bytes int64) *parsedCache { return &parsedCache{charts: newLRU[*Chart](bytes)} }

func (p *parsedCache) get(digest string) (*Chart, bool) {
	if p == nil {
		return nil, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.charts.get(digest)
}

func (p *parsedCache) put(c *Chart) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.charts.put(c.Digest, c, c.weight)
}
