package telemetry

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"zaentrum.io/zae/api/v1alpha1"
)

// phases are all there can be; none is that of an addon that was not reconciled yet.
var phases = []v1alpha1.Phase{
	noPhase, v1alpha1.PhasePlanned, v1alpha1.PhasePlanFailed, v1alpha1.PhaseInstalling, v1alpha1.PhaseReady,
	v1alpha1.PhaseDegraded, v1alpha1.PhaseFailed,
}

const noPhase v1alpha1.Phase = "None"

// refusedByCluster stands, where rules are counted, for what no guardrail judged.
const refusedByCluster = "cluster"

// listTimeout bounds how long a scrape waits for the caches.
const listTimeout = time.Second

var (
	leading      = prometheus.NewDesc("zae_operator_leading", "1 for an operator that works in a namespace, 0 for one that stands by; of all namespaces when it is empty.", []string{"namespace"}, nil)
	lacking      = prometheus.NewDesc("zae_operator_rights_lacking", "Rights that an operator lacks in a namespace and that addons cannot be kept without.", []string{"namespace"}, nil)
	addonPhase   = prometheus.NewDesc("zae_addon_phase", "1 for the phase that an addon is in.", []string{"namespace", "name", "phase"}, nil)
	addonPhases  = prometheus.NewDesc("zae_addons", "Addons, by phase.", []string{"phase"}, nil)
	violations   = prometheus.NewDesc("zae_plan_violations", "Violations in current plans, by rule; those of rule cluster are what the cluster itself does not accept.", []string{"rule"}, nil)
	valuesErrors = prometheus.NewDesc("zae_plan_values_errors", "Values errors in current plans.", nil, nil)
)

// Addons are those of a namespace, or of all when it is empty. They are read when metrics are asked for, so that nothing is
// kept that could differ from them: of an operator that leads, and only of one. They may be shared, and are not changed.
type Addons struct {
	Namespace string
	Leading   func() bool
	// Lacking is how many rights are missing there, whether it leads or not.
	Lacking func() int
	List    func(context.Context) ([]v1alpha1.ZaentrumAddon, error)
}

// Watch adds addons to what metrics tell of.
func (t *Operator) Watch(from Addons) {
	t.addons.mu.Lock()
	defer t.addons.mu.Unlock()
	t.addons.from = append(t.addons.from, from)
}

// addons are the metrics of addons.
type addons struct {
	mu   sync.Mutex
	from []Addons
}

func (a *addons) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{leading, lacking, addonPhase, addonPhases, violations, valuesErrors} {
		ch <- d
	}
}

func (a *addons) Collect(ch chan<- prometheus.Metric) {
	a.mu.Lock()
	from := slices.Clone(a.from)
	a.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), listTimeout)
	defer cancel()
	sum := &sums{phases: map[v1alpha1.Phase]int{}, rules: map[string]int{}}
	read := false
	for _, f := range from {
		ch <- sample(lacking, prometheus.GaugeValue, float64(f.Lacking()), f.Namespace)
		if !f.Leading() {
			ch <- sample(leading, prometheus.GaugeValue, 0, f.Namespace)
			continue
		}
		ch <- sample(leading, prometheus.GaugeValue, 1, f.Namespace)
		list, err := f.List(ctx)
		if err != nil { // the caches are not filled yet
			continue
		}
		read = true
		for i := range list {
			phase := sum.add(&list[i])
			ch <- sample(addonPhase, prometheus.GaugeValue, 1, list[i].Namespace, list[i].Name, string(phase))
		}
	}
	if read {
		sum.collect(ch)
	}
}

// sums are over all addons.
type sums struct {
	phases       map[v1alpha1.Phase]int
	rules        map[string]int
	valuesErrors int
}

func (s *sums) add(a *v1alpha1.ZaentrumAddon) v1alpha1.Phase {
	phase := a.Status.Phase
	if phase == "" {
		phase = noPhase
	}
	s.phases[phase]++
	p := a.Status.Plan
	if p == nil {
		return phase
	}
	s.valuesErrors += len(p.ValuesErrors)
	others := len(p.Violations) // those that are no findings are the cluster's
	for _, f := range p.Findings {
		if f.Level == v1alpha1.FindingRefuses {
			s.rules[f.ID]++
			others--
		}
	}
	if others > 0 {
		s.rules[refusedByCluster] += others
	}
	return phase
}

func (s *sums) collect(ch chan<- prometheus.Metric) {
	for _, phase := range phases {
		ch <- sample(addonPhases, prometheus.GaugeValue, float64(s.phases[phase]), string(phase))
	}
	for rule, n := range s.rules {
		ch <- sample(violations, prometheus.GaugeValue, float64(n), rule)
	}
	ch <- sample(valuesErrors, prometheus.GaugeValue, float64(s.valuesErrors))
}
