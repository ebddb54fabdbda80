package cli

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/telemetry"
)

// serverLog writes one JSON object per line to stderr, whoever logs in this process. It carries names and reasons, never
// values.
func (a *app) serverLog() *slog.Logger {
	log := telemetry.NewLog(a.p.Stderr, a.flags.debug)
	logger := logr.FromSlogHandler(log.Handler())
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	slog.SetDefault(log) // and with it the standard library's own logger
	return log
}

// tracing sends spans where the flag, or else the environment, says; it is nil where nobody asks for them. Nothing of
// OpenTelemetry is set up then.
func (a *app) tracing(ctx context.Context, endpoint, service string, log *slog.Logger) (*telemetry.Tracing, error) {
	if !telemetry.Asked(endpoint, a.env) {
		return nil, nil
	}
	return telemetry.NewTracing(ctx, telemetry.TracingOptions{Endpoint: endpoint, Service: service, Version: build().Version, Log: log})
}

const tracesUsage = "`URL` of an OpenTelemetry collector that traces are sent to, over HTTP (or OTEL_EXPORTER_OTLP_ENDPOINT)"

// clusterConfig says how to reach the cluster: the file named, else KUBECONFIG's, else, inside a cluster, the
// service account's. It is nil, without an error, outside of a cluster.
func (a *app) clusterConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		kubeconfig = a.env("KUBECONFIG")
	}
	if kubeconfig != "" {
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			return nil, fault.New(fault.Usage, "kubeconfig %s cannot be used: %s", kubeconfig, err).Because(err)
		}
		return config, nil
	}
	if a.env("KUBERNETES_SERVICE_HOST") == "" {
		return nil, nil
	}
	return rest.InClusterConfig()
}

// ended is nil when a server ended because it was asked to: a signal is how servers are stopped.
func ended(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}
