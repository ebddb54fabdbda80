package cli

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/operator"
	"zaentrum.io/zae/internal/telemetry"
)

func newServeOperator(a *app) *cobra.Command {
	var (
		kubeconfig, cacheDir, cacheSize string
		renderMemory                    string
		renderWorkers                   int
		proxy, traces                   string
		loopback                        []string
		o                               operator.Options
	)
	cmd := &cobra.Command{
		Use:   "serve-operator",
		Short: "run the operator of ZaentrumAddon resources",
		Long: `Run the operator, which watches ZaentrumAddon resources and brings each to what it says: it fetches
the chart, renders it, checks it against the guardrails, writes the plan, and, unless the resource is
suspended, applies it and keeps it as rendered. Several replicas may run; one of them works.`,
		Example: `  zae serve-operator --watch-namespace zaentrum --cache-dir /var/cache/zae`,
		Args:    exactly(),
		RunE: runE(func(ctx context.Context, _ []string) error {
			config, err := a.clusterConfig(kubeconfig)
			if err != nil {
				return err
			}
			if config == nil {
				return fault.New(fault.Usage, "there is no cluster to work on").
					WithHint("give --kubeconfig or KUBECONFIG, or run inside a cluster")
			}
			if o.Namespaces, err = watched(o); err != nil {
				return err
			}
			size, err := resource.ParseQuantity(cacheSize)
			if err != nil || size.Value() <= 0 {
				return fault.New(fault.Usage, "--cache-size is not a size such as 512Mi")
			}
			if cacheDir == "" {
				if cacheDir, err = a.p.CacheDir(); err != nil {
					return fault.New(fault.Usage, "there is no directory for the cache: %s", err).WithHint("give --cache-dir")
				}
				cacheDir = filepath.Join(cacheDir, "zae", "charts")
			}
			o.Log = a.serverLog()
			for _, registry := range loopback {
				o.Log.Warn("development only: a registry on a loopback address is allowed, over plain http", "registry", registry)
			}
			guard := operator.NewAPIServerGuard(ctx, config, a.env("KUBERNETES_SERVICE_HOST"), o.Log)
			defer looking(ctx, guard)()
			fetcher, err := chart.NewFetcher(chart.FetcherOptions{
				CacheDir: cacheDir, CacheBytes: size.Value(), AllowLoopback: loopback,
				Deny: guard.Deny, Proxy: proxy,
			})
			if err != nil {
				return fault.New(fault.Usage, "%s", err).WithHint("see --cache-dir, --fetch-proxy and --allow-loopback-registry")
			}
			defer func() { _ = fetcher.Close() }() // ends what is under way; there is nothing to lose
			pool, err := newWorkers(renderMemory, renderWorkers)
			if err != nil {
				return err
			}
			defer func() { _ = pool.Close() }()
			tracing, err := a.tracing(ctx, traces, "zae-operator", o.Log)
			if err != nil {
				return err
			}
			defer tracing.Close()
			o.Telemetry, err = telemetry.NewOperator(telemetry.OperatorOptions{
				Registerer: metrics.Registry, Tracing: tracing, Chart: fetcher.Stats, Worker: pool.Stats,
			})
			if err != nil {
				return err
			}
			o.Config, o.Fetcher, o.Worker = config, fetcher, pool
			return ended(ctx, operator.Run(ctx, o))
		}),
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&o.Namespaces, "watch-namespace", nil, "`NAMESPACES` to work in, each under a lease of its own; none for all, under one")
	flags.StringVar(&kubeconfig, "kubeconfig", "", "`FILE` that says how to reach the cluster (or KUBECONFIG; inside a cluster, its own service account)")
	flags.StringVar(&cacheDir, "cache-dir", "", "`DIR` for chart archives, which survive a restart there")
	flags.StringVar(&cacheSize, "cache-size", "512Mi", "`SIZE` that the archives kept may have together")
	flags.BoolVar(&o.LeaderElection, "leader-elect", true, "let one of several replicas work in a namespace")
	flags.StringVar(&o.LeaderElectionNamespace, "leader-elect-namespace", "", "`NAMESPACE` of the lease, where all namespaces are watched")
	flags.StringVar(&o.MetricsAddr, "metrics-addr", ":8080", "`ADDRESS` for metrics; 0 for none")
	flags.StringVar(&o.ProbeAddr, "probe-addr", ":8081", "`ADDRESS` for /healthz and /readyz; 0 for none")
	flags.StringVar(&traces, "otlp-endpoint", "", tracesUsage)
	flags.DurationVar(&o.Resync, "resync", 5*time.Minute, "longest `DURATION` that an addon goes without a look")
	flags.IntVar(&o.Workers, "workers", 8, "`N` addons worked on at the same time in each of the namespaces")
	flags.IntVar(&renderWorkers, "render-workers", 2, "`N` charts rendered at the same time, each in a process of its own")
	flags.StringVar(&renderMemory, "render-memory", "384Mi", "`SIZE` of the memory that rendering one chart may take")
	flags.StringVar(&proxy, "fetch-proxy", "", "`URL` of a proxy that charts are fetched through, which must then refuse the cluster's own addresses itself")
	flags.StringSliceVar(&loopback, "allow-loopback-registry", nil, "development only: `HOST:PORT` of a registry on a loopback address, over plain http")
	return cmd
}

// watched are the namespaces to work in, each once, or what is wrong with them.
func watched(o operator.Options) ([]string, error) {
	for _, namespace := range o.Namespaces {
		if msgs := content.IsDNS1123Label(namespace); len(msgs) > 0 {
			return nil, fault.New(fault.Usage, "--watch-namespace: %q is not the name of a namespace", namespace)
		}
	}
	switch all := len(o.Namespaces) == 0; {
	case all && o.LeaderElection && o.LeaderElectionNamespace == "":
		return nil, fault.New(fault.Usage, "leader election needs a namespace").
			WithHint("give --watch-namespace, --leader-elect-namespace, or --leader-elect=false")
	case !all && o.LeaderElectionNamespace != "":
		return nil, fault.New(fault.Usage, "--leader-elect-namespace is for when all namespaces are watched").
			WithHint("with --watch-namespace the lease is in that namespace, so that no two operators work in it")
	}
	return slices.Compact(slices.Sorted(slices.Values(o.Namespaces))), nil
}

// apiServerRefresh is how often the API server's addresses are looked up; it moves rarely.
const apiServerRefresh = 5 * time.Minute

// looking keeps a guard up to date until what it returns is called, which waits for it.
func looking(ctx context.Context, guard *operator.APIServerGuard) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { guard.Run(ctx, apiServerRefresh) })
	return func() {
		cancel()
		running.Wait()
	}
}
