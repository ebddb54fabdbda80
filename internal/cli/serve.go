package cli

import (
	"context"
	"log/slog"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"zaentrum.io/zae/internal/fault"
)

// serverLog writes one JSON object per line to stderr. It carries names and reasons, never values.
func (a *app) serverLog() *slog.Logger {
	level := slog.LevelInfo
	if a.flags.debug {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewJSONHandler(a.p.Stderr, &slog.HandlerOptions{Level: level}))
}

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
