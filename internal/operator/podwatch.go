package operator

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apply"
)

// podWatch keeps the pods of addons at hand, as far as the operator may see them, and wakes an addon when one of its
// pods says more than its Deployment or Job does. It is a source of the addons' controller, which waits for it at its
// start, and not one of the manager's caches, which are not filled without all rights: without the right to list and
// watch pods there are none, and what runs is judged by Deployments and Jobs alone.
type podWatch struct {
	client corev1client.PodsGetter
	access *access

	seen    atomic.Pointer[toolscache.SharedIndexInformer] // nil: no pods can be seen
	decided chan struct{}                                  // closed once it is known whether any can be
	decide  sync.Once
	running sync.WaitGroup
}

// afterNoRight is how soon to see whether a right that was missing is there.
const afterNoRight = 5 * time.Second

func newPodWatch(config *rest.Config, client *http.Client, access *access) (*podWatch, error) {
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	c, err := corev1client.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	return &podWatch{client: c, access: access, decided: make(chan struct{})}, nil
}

// of are an addon's pods as they were seen last. They must not be changed.
func (w *podWatch) of(namespace, addon string) []*corev1.Pod {
	informer := w.seen.Load()
	if informer == nil {
		return nil
	}
	items, err := (*informer).GetIndexer().ByIndex(indexPodAddon, namespace+"/"+addon)
	if err != nil {
		return nil // there is such an index
	}
	pods := make([]*corev1.Pod, 0, len(items))
	for _, item := range items {
		if p, ok := item.(*corev1.Pod); ok {
			pods = append(pods, p)
		}
	}
	return pods
}

const indexPodAddon = "addon"

func podAddon(item any) ([]string, error) {
	p, ok := item.(*corev1.Pod)
	if !ok {
		return nil, nil
	}
	return []string{p.Namespace + "/" + p.Labels[v1alpha1.LabelAddon]}, nil
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Start begins to watch, until ctx ends.
func (w *podWatch) Start(ctx context.Context, q queue) error {
	w.running.Go(func() { w.run(ctx, q) })
	return nil
}

// WaitForSync waits until it is known which pods there are, or that they cannot be seen.
func (w *podWatch) WaitForSync(ctx context.Context) error {
	select {
	case <-w.decided:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wait waits for what Start began, after its context has ended.
func (w *podWatch) wait() { w.running.Wait() }

func (w *podWatch) run(ctx context.Context, q queue) {
	ticker := time.NewTicker(afterNoRight)
	defer ticker.Stop()
	for {
		w.watch(ctx, q)
		if ctx.Err() == nil {
			w.blind(q)
		}
		// Whether the right is still missing is asked by what knows of all rights, not here.
		for again := false; !again; {
			select {
			case <-ticker.C:
				again = !w.access.misses("pods")
			case <-ctx.Done():
				return
			}
		}
	}
}

// watch watches until ctx ends or the right to do so turns out to be missing.
func (w *podWatch) watch(ctx context.Context, q queue) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	informer := toolscache.NewSharedIndexInformerWithOptions(w.listWatch(), &corev1.Pod{}, toolscache.SharedIndexInformerOptions{
		Indexers: toolscache.Indexers{indexPodAddon: podAddon},
	})
	// Neither of these fails before the informer runs.
	_ = informer.SetTransform(slim)
	_ = informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *toolscache.Reflector, err error) {
		switch {
		case apierrors.IsForbidden(err):
			stop()
		case ctx.Err() == nil:
			toolscache.DefaultWatchErrorHandler(ctx, r, err)
		}
	})
	_, _ = informer.AddEventHandler(podEvents(q))
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	if toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		w.seen.Store(&informer)
		wakeAll(q, informer) // what was told before was told of pods that were not to be had yet
		w.decide.Do(func() { close(w.decided) })
	}
	running.Wait()
}

// blind is when pods cannot be seen, any more or at all.
func (w *podWatch) blind(q queue) {
	if before := w.seen.Swap(nil); before != nil {
		wakeAll(q, *before)
	}
	w.decide.Do(func() { close(w.decided) })
}

func (w *podWatch) listWatch() toolscache.ListerWatcher {
	pods := w.client.Pods(w.access.watched)
	only := func(o metav1.ListOptions) metav1.ListOptions {
		o.LabelSelector = v1alpha1.LabelAddon
		return o
	}
	return toolscache.ToListWatcherWithWatchListSemantics(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return pods.List(ctx, only(o))
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return pods.Watch(ctx, only(o))
		},
	}, w.client)
}

// slim leaves of a pod only what is needed, on its way into memory.
func slim(item any) (any, error) {
	if p, ok := item.(*corev1.Pod); ok {
		return apply.SlimPod(p), nil
	}
	return item, nil
}

// podEvents wake an addon when there is something new in how one of its pods does.
func podEvents(q queue) toolscache.ResourceEventHandler {
	pod := func(item any) *corev1.Pod {
		if last, ok := item.(toolscache.DeletedFinalStateUnknown); ok {
			item = last.Obj
		}
		p, _ := item.(*corev1.Pod)
		return p
	}
	tell := func(before, after *corev1.Pod) {
		if !apply.PodChanged(before, after) {
			return
		}
		if after != nil {
			wake(q, after)
		} else {
			wake(q, before)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(item any) { tell(nil, pod(item)) },
		UpdateFunc: func(before, after any) { tell(pod(before), pod(after)) },
		DeleteFunc: func(item any) { tell(pod(item), nil) },
	}
}

// wakeAll wakes the addons whose pods say anything.
func wakeAll(q queue, informer toolscache.SharedIndexInformer) {
	for _, item := range informer.GetStore().List() {
		if p, ok := item.(*corev1.Pod); ok && apply.PodChanged(p, nil) {
			wake(q, p)
		}
	}
}

func wake(q queue, p *corev1.Pod) {
	q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: p.Namespace, Name: p.Labels[v1alpha1.LabelAddon]}})
}
