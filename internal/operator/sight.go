package operator

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apply"
)

// sight are the caches. Those that may not be filled hold up neither the start nor a worker for ever, which is
// what caches do by themselves: a reconcile looks first whether it may look.
type sight struct {
	cache.Cache
	access *access

	ready  atomic.Bool // the informers are known
	needed []cache.Informer
	addons cache.Informer // one of those needed
}

// afterEmptyCache is how soon to look whether the caches are filled.
const afterEmptyCache = 100 * time.Millisecond

// newSight is for a manager to make its caches with.
func newSight(access *access) cache.NewCacheFunc {
	return func(config *rest.Config, o cache.Options) (cache.Cache, error) {
		c, err := cache.New(config, o)
		return &sight{Cache: c, access: access}, err
	}
}

// follow makes the informers of everything that is needed to decide anything.
func (s *sight) follow(ctx context.Context) error {
	objects := []client.Object{&v1alpha1.ZaentrumAddon{}, &v1alpha1.Zaentrum{}}
	for _, gvk := range Kinds {
		objects = append(objects, object(gvk))
	}
	for _, o := range objects {
		informer, err := s.Cache.GetInformer(ctx, o, cache.BlockUntilSynced(false))
		if err != nil {
			return err
		}
		s.needed = append(s.needed, informer)
	}
	s.addons = s.needed[0]
	s.ready.Store(true)
	return nil
}

// filled tells whether everything that is needed is there.
func (s *sight) filled() bool {
	if !s.ready.Load() {
		return false
	}
	for _, informer := range s.needed {
		if !informer.HasSynced() {
			return false
		}
	}
	return true
}

// clear tells whether what the caches hold is what the cluster has, but for a moment. If not, and that is for
// lack of a right, it tells which.
func (s *sight) clear() (bool, *apply.Right) {
	filled := s.filled()
	if right, blind := s.access.blind(filled); blind {
		return false, &right
	}
	return filled, nil
}

// WaitForCacheSync waits for the caches, or until it turned out that some may not be filled.
func (s *sight) WaitForCacheSync(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	synced := make(chan bool, 1)
	go func() { synced <- s.Cache.WaitForCacheSync(ctx) }()
	select {
	case ok := <-synced:
		return ok
	case <-s.access.blinded:
		return true
	}
}

// GetInformer answers at once. Its handlers count as told of everything once it turned out that some caches may
// not be filled: then there is something to say about each addon.
func (s *sight) GetInformer(ctx context.Context, o client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	informer, err := s.Cache.GetInformer(ctx, o, append(opts, cache.BlockUntilSynced(false))...)
	if err != nil {
		return nil, err
	}
	return &seen{informer, s.access}, nil
}

type seen struct {
	cache.Informer
	access *access
}

func (i *seen) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, o toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	registration, err := i.Informer.AddEventHandlerWithOptions(h, o)
	if err != nil {
		return nil, err
	}
	return &seenBy{registration, i.access}, nil
}

type seenBy struct {
	toolscache.ResourceEventHandlerRegistration
	access *access
}

func (r *seenBy) HasSynced() bool {
	select {
	case <-r.access.blinded:
		return true
	default:
		return r.ResourceEventHandlerRegistration.HasSynced()
	}
}
