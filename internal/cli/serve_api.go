package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/portal"
	"zaentrum.io/zae/internal/registry"
)

// drain is how long a stopped API may take to finish the requests under way.
const drain = 10 * time.Second

func newServeAPI(a *app) *cobra.Command {
	var (
		kubeconfig, listen, metrics, database, traces string
		elect                                         bool
		resolve                                       map[string]string
		o                                             portal.Options
	)
	cmd := &cobra.Command{
		Use:   "serve-api",
		Short: "run the API of chart addons and the registry",
		Long: `Run the API, which answers the calls of the command line, of scripts and of the settings page, and
registers every Ready addon from its primary's manifest. Outside a cluster it serves, and says that
chart addons are not available.`,
		Example: `  zae serve-api --namespace zaentrum --database /var/lib/zae/registry.db \
    --issuer https://media.example.org/auth/realms/zaentrum`,
		Args: exactly(),
		RunE: runE(func(ctx context.Context, _ []string) error {
			config, err := a.clusterConfig(kubeconfig)
			if err != nil {
				return err
			}
			if config != nil && o.Namespace == "" {
				return fault.New(fault.Usage, "--namespace is missing").WithHint("name the platform's namespace")
			}
			o.Log = a.serverLog()
			if o.Tracing, err = a.tracing(ctx, traces, "zae-api", o.Log); err != nil {
				return err
			}
			defer o.Tracing.Close()
			if o.Auth.Issuer == "" {
				o.Log.Warn("no issuer is configured: nobody can sign in")
			}
			for name, addr := range resolve {
				o.Log.Warn("development only: a Service is reached elsewhere", "service", name, "address", addr)
			}
			o.Resolve = resolve
			if config != nil {
				o.Deny = apiServerAddresses(ctx, config, a.env("KUBERNETES_SERVICE_HOST"))
				if o.Client, err = portalClient(config); err != nil {
					return err
				}
				if elect {
					o.Election = &portal.Election{Identity: replicaName()}
				}
			}
			store, err := registry.Open(ctx, database)
			if err != nil {
				return err
			}
			o.Registry = store
			err = serveAPI(ctx, o, listen, metrics)
			return ended(ctx, errors.Join(err, store.Close()))
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Namespace, "namespace", "", "`NAMESPACE` of the platform")
	flags.StringVar(&kubeconfig, "kubeconfig", "", "`FILE` that says how to reach the cluster (or KUBECONFIG; inside a cluster, its own service account)")
	flags.StringVar(&listen, "listen", ":8080", "`ADDRESS` to serve on")
	flags.StringVar(&metrics, "metrics-addr", "", "`ADDRESS` to serve /metrics on, and no longer on --listen")
	flags.BoolVar(&elect, "leader-elect", true, "let one of several replicas register addons")
	flags.DurationVar(&o.Audit.Age, "audit-age", 365*24*time.Hour, "`TIME` after which entries of the audit are forgotten")
	flags.IntVar(&o.Audit.Entries, "audit-entries", 100_000, "`NUMBER` of entries of the audit that are kept")
	flags.StringVar(&database, "database", "registry.db", "SQLite `FILE` of the registry, or postgres://USER@HOST:5432/NAME; its password is better kept in PGPASSWORD")
	flags.StringVar(&o.Auth.Issuer, "issuer", "", "OpenID issuer `URL` whose tokens are accepted")
	flags.StringVar(&o.Auth.ClientID, "client-id", "zae", "`CLIENT` that the command line signs in with")
	flags.StringSliceVar(&o.Auth.Clients, "admin-clients", []string{"zae", "zaentrum-web"}, "`CLIENTS` on whose tokens the admin role counts")
	flags.StringSliceVar(&o.Auth.ServiceAccounts, "service-accounts", nil, "`CLIENTS` of service accounts that may be admins")
	flags.StringVar(&o.Auth.AdminRole, "admin-role", "zaentrum-admin", "`ROLE` of an admin")
	flags.StringVar(&o.Auth.RoleClaim, "role-claim", "realm_access.roles", "dotted `PATH` of the claim that lists roles")
	flags.StringVar(&o.Auth.Audience, "audience", "", "`AUDIENCE` that tokens must be for; empty for any")
	flags.StringVar(&o.PublicOrigin, "public-origin", "", "`URL` at which the portal is seen")
	flags.StringSliceVar(&o.PlatformServices, "platform-services", []string{"portal-api", "kafka", "keycloak", "postgres"}, "`NAMES` of the platform's own Services, which no addon may take")
	flags.Float64Var(&o.WritesPerSecond, "writes-per-second", 10, "`NUMBER` of writes that one caller may make a second")
	flags.IntVar(&o.WriteBurst, "write-burst", 50, "`NUMBER` of writes that one caller may make at once")
	flags.IntVar(&o.Streams, "event-streams", 512, "`NUMBER` of event streams that may be open at once")
	flags.IntVar(&o.StreamsPerCaller, "event-streams-per-caller", 32, "`NUMBER` of event streams that one caller may have open")
	flags.StringVar(&traces, "otlp-endpoint", "", tracesUsage)
	flags.StringToStringVar(&resolve, "resolve", nil, "development only: `NAME=HOST:PORT`, where the Service of that name is reached")
	return cmd
}

// apiServerAddresses tells the addresses of the cluster's own API server, which no app is reached at: those of its Service,
// and of the host that this process talks to. They are looked up once, since neither moves while a pod runs.
func apiServerAddresses(ctx context.Context, config *rest.Config, serviceHost string) func(netip.Addr) (string, bool) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	known := map[netip.Addr]bool{}
	host := config.Host
	if u, err := url.Parse(config.Host); err == nil && u.Hostname() != "" {
		host = u.Hostname()
	}
	for _, name := range []string{serviceHost, host} {
		if name == "" {
			continue
		}
		addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
		if err != nil {
			continue // a host that is not found is reached by nobody
		}
		for _, addr := range addrs {
			known[addr.Unmap()] = true
		}
	}
	return func(a netip.Addr) (string, bool) { return "the cluster's API server", known[a] }
}

// replicaName is a name that no other replica has, also not the one that ran in this place before.
func replicaName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "zae-api"
	}
	return host + "-" + strings.ToLower(rand.Text()[:8])
}

// portalClient reads from the cluster, not from a cache: what it reads decides what is written.
func portalClient(config *rest.Config) (client.WithWatch, error) {
	scheme, err := portal.Scheme()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{} // a warning may quote a value
	config.QPS = -1                           // the API server's own fairness decides
	return client.NewWithWatch(config, client.Options{Scheme: scheme})
}

// serveAPI serves until ctx ends, then finishes the requests under way. Streams and WebSockets are ended at once: they would
// go on for as long as their readers like.
func serveAPI(ctx context.Context, o portal.Options, listen, metrics string) error {
	o.MetricsElsewhere = metrics != ""
	server, err := portal.New(o)
	if err != nil {
		return err
	}
	defer server.Close()
	listener, err := listenOn(ctx, "--listen", listen)
	if err != nil {
		return err
	}
	servers := map[*http.Server]net.Listener{server.HTTPServer(listen): listener}
	log := o.Log
	if flags := server.Development(); len(flags) > 0 {
		log = log.With("development", flags)
		log.Warn("development settings are on: never use them where others sign in")
	}
	log.Info("serving", "address", listener.Addr().String())
	if metrics != "" {
		listener, err := listenOn(ctx, "--metrics-addr", metrics)
		if err != nil {
			return err
		}
		servers[server.MetricsServer()] = listener
		log.Info("serving metrics", "address", listener.Addr().String())
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return ended(ctx, server.Run(ctx)) })
	for httpServer, listener := range servers {
		group.Go(func() error {
			if err := httpServer.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		})
		group.Go(func() error {
			<-ctx.Done()
			finish, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
			defer cancel()
			if err := httpServer.Shutdown(finish); err != nil {
				o.Log.Warn("requests under way are cut off: they took too long")
				return httpServer.Close()
			}
			return nil
		})
	}
	return group.Wait()
}

func listenOn(ctx context.Context, flag, address string) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fault.New(fault.Usage, "%s %s: %s", flag, address, strings.TrimPrefix(err.Error(), "listen tcp: ")).Because(err)
	}
	return listener, nil
}
