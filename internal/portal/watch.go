package portal

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/api/v1alpha1"
)

// addonWatch is the one watch on the addons of the namespace that a replica has. Registration and all event streams
// share it. It connects again by itself, and what changed meanwhile is told then.
type addonWatch struct {
	cache.SharedIndexInformer
	s *Server
	// connected tells that the last attempt to watch got through.
	connected atomic.Bool

	mu     sync.Mutex
	silent bool // the watch fails, and that has been said
}

func newAddonWatch(s *Server) (*addonWatch, error) {
	w := &addonWatch{s: s}
	c, namespace := s.o.Client, client.InNamespace(s.o.Namespace)
	w.SharedIndexInformer = cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list := &v1alpha1.ZaentrumAddonList{}
			return list, c.List(ctx, list, namespace, &client.ListOptions{Raw: &o})
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			events, err := c.Watch(ctx, &v1alpha1.ZaentrumAddonList{}, namespace, &client.ListOptions{Raw: &o})
			w.connected.Store(err == nil)
			return events, err
		},
	}, &v1alpha1.ZaentrumAddon{}, 0, cache.Indexers{})
	if err := w.SetWatchErrorHandlerWithContext(w.failed); err != nil {
		return nil, fmt.Errorf("watch addons: %w", err)
	}
	if err := w.SetTransform(slim); err != nil {
		return nil, fmt.Errorf("watch addons: %w", err)
	}
	return w, nil
}

// slim leaves out of an addon what nobody reads, on its way into memory.
func slim(object any) (any, error) {
	if a, ok := object.(*v1alpha1.ZaentrumAddon); ok {
		a.ManagedFields = nil
		delete(a.Annotations, corev1.LastAppliedConfigAnnotation)
	}
	return object, nil
}

// current tells whether what is known is what the API server has, but for a moment.
func (w *addonWatch) current() bool { return w.HasSynced() && w.connected.Load() }

// get is an addon's resource as it was last seen; nil when there is none.
func (w *addonWatch) get(name string) (*v1alpha1.ZaentrumAddon, error) {
	object, ok, err := w.GetStore().GetByKey(w.s.o.Namespace + "/" + name)
	if err != nil || !ok {
		return nil, err
	}
	addon, ok := object.(*v1alpha1.ZaentrumAddon)
	if !ok {
		return nil, fmt.Errorf("addon %s is a %T", name, object)
	}
	return addon, nil
}

// failed says once that addons cannot be watched; the informer tries again by itself. The API server's own text stays
// out of the log.
func (w *addonWatch) failed(_ context.Context, _ *cache.Reflector, err error) {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return // the ordinary end of a watch
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.silent {
		w.silent = true
		w.s.log.Warn("addons cannot be watched", "reason", clusterFault(err, "watch addons").Error())
	}
}

// watching says that the first list is complete.
func (w *addonWatch) watching() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.silent = false
	w.s.log.Info("watching addons", "namespace", w.s.o.Namespace)
}
