package portal

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/api/v1alpha1"
)

// own remembers the last write of this replica to each resource until the watch has seen it, so that whoever writes and
// then lists finds what was written. The zero value remembers nothing.
type own struct {
	mu   sync.Mutex
	last map[string]wrote
}

// wrote is a resource as it was after a write, or that it was deleted.
type wrote struct {
	uid     types.UID
	version string
	deleted bool
}

func (o *own) note(object client.Object, deleted bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last == nil {
		o.last = map[string]wrote{}
	}
	o.last[object.GetName()] = wrote{object.GetUID(), object.GetResourceVersion(), deleted}
}

// unseen are the names whose last write the watch has not seen yet; what it has seen is forgotten.
func (o *own) unseen(watched *addonWatch) ([]string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var names []string
	for name, last := range o.last {
		now, err := watched.get(name)
		if err != nil {
			return nil, err
		}
		if last.seen(now) {
			delete(o.last, name)
		} else {
			names = append(names, name)
		}
	}
	return names, nil
}

// seen tells whether a resource as it is known is as new as the write.
func (w wrote) seen(now *v1alpha1.ZaentrumAddon) bool {
	if w.deleted {
		return now == nil || now.UID != w.uid || now.DeletionTimestamp != nil
	}
	if now == nil {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(now.ResourceVersion, w.version)
	return err == nil && order >= 0
}

// list is every addon of the namespace, in no order. The answers must not be changed. They come from this replica's
// watch, which may lag behind other replicas' writes by a moment and never behind its own; where nothing is watched, or
// the API server cannot be reached, the API server is asked.
func (s *Server) list(ctx context.Context) ([]*v1alpha1.ZaentrumAddon, error) {
	watched := s.watched.Load()
	if watched == nil || !watched.current() {
		return s.listLive(ctx)
	}
	unseen, err := s.own.unseen(watched)
	if err != nil {
		return nil, err
	}
	live := map[string]*v1alpha1.ZaentrumAddon{} // nil for one that is gone
	for _, name := range unseen {
		a := &v1alpha1.ZaentrumAddon{}
		err := s.o.Client.Get(ctx, client.ObjectKey{Namespace: s.o.Namespace, Name: name}, a)
		switch {
		case err == nil:
			live[name] = a
		case apierrors.IsNotFound(err) && !kindMissing(err):
			live[name] = nil
		default:
			return nil, s.refusal(ctx, err, "list chart addons")
		}
	}
	var out []*v1alpha1.ZaentrumAddon
	for _, object := range watched.GetStore().List() {
		a, ok := object.(*v1alpha1.ZaentrumAddon)
		if !ok {
			continue
		}
		if _, newer := live[a.Name]; !newer {
			out = append(out, a)
		}
	}
	for _, a := range live {
		if a != nil {
			out = append(out, a)
		}
	}
	return out, nil
}

func (s *Server) listLive(ctx context.Context) ([]*v1alpha1.ZaentrumAddon, error) {
	var all v1alpha1.ZaentrumAddonList
	if err := s.o.Client.List(ctx, &all, client.InNamespace(s.o.Namespace)); err != nil {
		return nil, s.refusal(ctx, err, "list chart addons")
	}
	out := make([]*v1alpha1.ZaentrumAddon, len(all.Items))
	for i := range all.Items {
		out[i] = &all.Items[i]
	}
	return out, nil
}
