package operator

import (
	"context"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"zaentrum.io/zae/api/v1alpha1"
)

// ending sees when the namespace that an operator works in is deleted. The cluster waits five seconds, and deletes
// what is in it then, in no order: with the addons go the operator's rights and, where it runs in there, the operator.
// A finalizer that is not off by then would hold up the namespace for ever.
//
// The nil ending is for an operator of all namespaces, whose rights are its own.
type ending struct {
	namespace  string
	namespaces corev1client.CoreV1Interface
	addons     client.Reader
	begun      atomic.Bool
	wake       chan event.GenericEvent
}

func newEnding(mgr ctrl.Manager, namespace string) (*ending, error) {
	if namespace == "" {
		return nil, nil
	}
	c, err := corev1client.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	e := &ending{namespace: namespace, namespaces: c, addons: mgr.GetClient(), wake: make(chan event.GenericEvent)}
	return e, mgr.Add(e)
}

// has tells whether the namespace is being deleted.
func (e *ending) has() bool { return e != nil && e.begun.Load() }

// source wakes the addons that the operator has its finalizer on.
func (e *ending) source() source.Source {
	return source.Channel(e.wake, &handler.EnqueueRequestForObject{})
}

// Start watches until the context ends.
func (e *ending) Start(ctx context.Context) error {
	for ctx.Err() == nil {
		pause := askAgain
		if err := e.follow(ctx); apierrors.IsForbidden(err) { // which is told where all denials are
			pause = askAgainMost
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}

// follow watches until the API server ends the watch.
func (e *ending) follow(ctx context.Context) error {
	// Not a watch of namespaces with a selector, which takes a right to all of them. This one takes a right that a Role
	// in the namespace can give.
	watch, err := e.namespaces.RESTClient().Get().AbsPath("/api/v1/watch/namespaces", e.namespace).Watch(ctx)
	if err != nil {
		return err
	}
	defer watch.Stop()
	for seen := range watch.ResultChan() {
		if ns, ok := seen.Object.(*corev1.Namespace); ok && ns.DeletionTimestamp != nil && !e.begun.Swap(true) {
			if err := e.tell(ctx); err != nil {
				e.begun.Store(false) // the next event, or watch, tells them
				return err
			}
		}
	}
	return nil
}

func (e *ending) tell(ctx context.Context) error {
	var list v1alpha1.ZaentrumAddonList
	if err := e.addons.List(ctx, &list, client.InNamespace(e.namespace)); err != nil {
		return err
	}
	for i := range list.Items {
		select {
		case e.wake <- event.GenericEvent{Object: &list.Items[i]}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
