package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/worker"
)

// sample is one value of a metric.
func sample(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, kind, value, labels...)
}

var (
	fetches         = prometheus.NewDesc("zae_chart_fetches_total", "Fetches of charts, by what came of them.", []string{"result"}, nil)
	downloadedBytes = prometheus.NewDesc("zae_chart_downloaded_bytes_total", "Size of the archives that were downloaded.", nil, nil)
	cacheArchives   = prometheus.NewDesc("zae_chart_cache_archives", "Archives in the cache.", nil, nil)
	cacheBytes      = prometheus.NewDesc("zae_chart_cache_bytes", "Size of the archives in the cache.", nil, nil)
	cacheEvictions  = prometheus.NewDesc("zae_chart_cache_evictions_total", "Archives removed from the cache to make room.", nil, nil)
)

// chartStats are the metrics of a chart.Fetcher.
type chartStats struct{ stats func() chart.Stats }

func (c chartStats) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

func (c chartStats) Collect(ch chan<- prometheus.Metric) {
	s := c.stats()
	for result, n := range map[string]int64{
		"cached": s.Cached, "revalidated": s.Revalidated, "downloaded": s.Downloaded, "stale": s.Stale, "failed": s.Failed,
	} {
		ch <- sample(fetches, prometheus.CounterValue, float64(n), result)
	}
	ch <- sample(downloadedBytes, prometheus.CounterValue, float64(s.DownloadedBytes))
	ch <- sample(cacheArchives, prometheus.GaugeValue, float64(s.Archives))
	ch <- sample(cacheBytes, prometheus.GaugeValue, float64(s.Bytes))
	ch <- sample(cacheEvictions, prometheus.CounterValue, float64(s.Evicted))
}

var (
	renderJobs      = prometheus.NewDesc("zae_render_jobs_total", "Jobs that render workers did.", nil, nil)
	renderOverruns  = prometheus.NewDesc("zae_render_overruns_total", "Jobs that needed too much, by bound.", []string{"bound"}, nil)
	renderStarts    = prometheus.NewDesc("zae_render_worker_starts_total", "Processes of render workers that were started.", nil, nil)
	renderProcesses = prometheus.NewDesc("zae_render_worker_processes", "Processes of render workers.", nil, nil)
	renderBusy      = prometheus.NewDesc("zae_render_workers_busy", "Render workers that do a job.", nil, nil)
	renderMax       = prometheus.NewDesc("zae_render_workers_max", "Render workers that may do jobs at the same time.", nil, nil)
	renderWaiting   = prometheus.NewDesc("zae_render_jobs_waiting", "Jobs that wait for a render worker.", nil, nil)
)

// workerStats are the metrics of a worker.Pool.
type workerStats struct{ stats func() worker.Stats }

func (w workerStats) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(w, ch) }

func (w workerStats) Collect(ch chan<- prometheus.Metric) {
	s := w.stats()
	ch <- sample(renderJobs, prometheus.CounterValue, float64(s.Jobs))
	for _, bound := range worker.Bounds {
		ch <- sample(renderOverruns, prometheus.CounterValue, float64(s.Overruns[bound]), bound)
	}
	ch <- sample(renderStarts, prometheus.CounterValue, float64(s.Started))
	ch <- sample(renderProcesses, prometheus.GaugeValue, float64(s.Processes))
	ch <- sample(renderBusy, prometheus.GaugeValue, float64(s.Working))
	ch <- sample(renderMax, prometheus.GaugeValue, float64(s.Max))
	ch <- sample(renderWaiting, prometheus.GaugeValue, float64(s.Waiting))
}
