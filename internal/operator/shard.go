package operator

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// shard is the operator of one namespace, or of all. It has its own caches, rights and Lease, so that what is
// missing in one namespace is missing in no other, and so that of several processes each may lead some.
type shard struct {
	namespace string // empty for all
	options   Options
	manager   ctrl.Manager
	access    *access
	reviews   reviews
	lead      *lead // nil without an election
}

func newShard(o Options, namespace string) (*shard, error) {
	home := namespace
	if namespace == metav1.NamespaceAll {
		home = o.LeaderElectionNamespace
	}
	log := o.Log
	if len(o.Namespaces) > 1 {
		log = log.With("shard", namespace)
	}
	s := &shard{namespace: namespace, options: o, access: newAccess(namespace, home, o.LeaderElection, log, o.Now)}
	cluster := rest.CopyConfig(o.Config)
	cluster.WarningHandler = rest.NoWarnings{} // a warning may quote what a chart rendered
	cluster.QPS = -1                           // the API server's own fairness decides, not a limit here that delays plans
	asking, err := authorization.NewForConfig(cluster)
	if err != nil {
		return nil, err
	}
	s.reviews = asking.SelfSubjectAccessReviews()
	cluster.Wrap(s.access.wrap)
	anyName := o.AnyName || len(o.Namespaces) > 1
	var lock resourcelock.Interface
	if o.LeaderElection {
		if s.lead, err = newLead(cluster, home); err != nil {
			return nil, err
		}
		lock = s.lead.lock
		cluster.Wrap(s.lead.fence.wrap)
	}
	s.manager, err = ctrl.NewManager(cluster, ctrl.Options{
		Scheme:                        Scheme(),
		Logger:                        logr.FromSlogHandler(log.Handler()),
		NewCache:                      newSight(s.access),
		Cache:                         cacheOptions(namespace),
		Client:                        client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		LeaderElection:                o.LeaderElection,
		LeaderElectionID:              LeaderElectionID,
		LeaderElectionNamespace:       home,
		LeaderElectionReleaseOnCancel: true, // Run's caller exits when Run returns
		LeaseDuration:                 ptr.To(leaseDuration),
		RenewDeadline:                 ptr.To(renewDeadline),
		RetryPeriod:                   ptr.To(renewPeriod),
		Metrics:                       server.Options{BindAddress: o.MetricsAddr},
		HealthProbeBindAddress:        "0", // see serveProbes
		Controller:                    config.Controller{SkipNameValidation: &anyName},

		LeaderElectionResourceLockInterface: lock,
	})
	return s, err
}

// run works until the context ends.
func (s *shard) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	wait, err := setup(ctx, s.manager, s.options, s.namespace)
	if err != nil {
		return err
	}
	observe(s.manager, s.namespace, s.access, s.options.Telemetry)
	if s.lead != nil {
		defer s.lead.tell()()
	}
	var asking sync.WaitGroup
	asking.Go(func() { s.access.run(ctx, s.reviews) })
	defer func() {
		stop()
		asking.Wait()
		wait()
	}()
	return s.manager.Start(ctx)
}

// problems are why the shard does not do its work, in order; none when it does, or would if it led.
func (s *shard) problems() []string {
	problems := s.access.problems()
	if c, ok := s.manager.GetCache().(*sight); ok && !c.filled() {
		problems = append(problems, "caches are not filled yet")
	}
	if len(s.options.Namespaces) > 1 {
		for i := range problems {
			problems[i] = fmt.Sprintf("namespace %s: %s", s.namespace, problems[i])
		}
	}
	return problems
}
