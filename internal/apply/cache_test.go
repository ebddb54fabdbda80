package apply_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apply"
)

// labelled is a real cache of the labelled objects in the bench's namespace, as the operator has it.
func labelled(t *testing.T, b *bench, config *rest.Config) cache.Cache {
	t.Helper()
	has, err := labels.NewRequirement(v1alpha1.LabelAddon, selection.Exists, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := cache.New(config, cache.Options{
		DefaultNamespaces:    map[string]cache.Config{b.owner.Namespace: {}},
		DefaultLabelSelector: labels.NewSelector().Add(*has),
		DefaultTransform:     apply.Compact(v1alpha1.ReservedPrefix),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		if err := c.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		done.Wait()
	})
	for _, k := range kinds {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(k)
		if _, err := c.GetInformer(b.ctx, u); err != nil {
			t.Fatal(err)
		}
	}
	if !c.WaitForCacheSync(b.ctx) {
		t.Fatal("no sync")
	}
	return c
}

func TestAnIdleRoundSendsNoRequest(t *testing.T) {
	b := newBench(t)
	b.cluster.Cache = labelled(t, b, apiServer(t))
	b.mustApply(example)
	// The first rounds may ask about objects that the cache has not seen yet; they must not write.
	b.requests.reset()
	for range 100 {
		b.mustApply(example)
		if len(b.requests.all()) == 0 {
			break
		}
		if w := b.requests.writes(); len(w) > 0 {
			t.Fatalf("a lagging cache makes writes: %q", w)
		}
		b.requests.reset()
		time.Sleep(20 * time.Millisecond)
	}
	for name, c := range map[string]func(){
		"in a running process": func() {},
		"after a restart": func() {
			fresh := b.restarted(b.cluster.Client)
			fresh.Cache = b.cluster.Cache
			b.cluster = fresh
		},
	} {
		t.Run(name, func(t *testing.T) {
			c()
			b.requests.reset()
			r := b.mustApply(example)
			b.prune(example)
			if got := b.requests.all(); len(got) > 0 {
				t.Errorf("sent %q", got)
			}
			if d := cmp.Diff(everything, names(r.Unchanged)); d != "" {
				t.Error(d)
			}
		})
	}
}

// frozen is a cache that stopped seeing anything.
type frozen struct {
	client.Reader
	mu    sync.Mutex
	lists map[string]*unstructured.UnstructuredList
}

func (f *frozen) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	u := list.(*unstructured.UnstructuredList)
	if old, ok := f.lists[u.GetKind()]; ok {
		old.DeepCopyInto(u)
		return nil
	}
	if err := f.Reader.List(ctx, list, opts...); err != nil {
		return err
	}
	f.lists[u.GetKind()] = u.DeepCopy()
	return nil
}

func TestALaggingCacheMakesNoSecondWrite(t *testing.T) {
	b := newBench(t)
	live := b.cluster.Cache
	freeze := func() { b.cluster.Cache = &frozen{Reader: live, lists: map[string]*unstructured.UnstructuredList{}} }
	noWrite := func(t *testing.T, text string) {
		t.Helper()
		b.requests.reset()
		b.mustApply(text)
		if w := b.requests.writes(); len(w) > 0 {
			t.Errorf("wrote %q", w)
		}
	}
	newer := strings.NewReplacer("example:1", "example:2", "postgres://c4n4ry", "new").Replace(example)

	t.Run("of what was created", func(t *testing.T) {
		freeze()
		b.observe(nil)
		b.mustApply(example)
		noWrite(t, example)
	})
	t.Run("of what was changed", func(t *testing.T) {
		freeze()
		b.observe(nil)
		b.mustApply(newer)
		noWrite(t, newer)
		// What others did after that is seen once the cache sees it, and not covered by what we remember.
		b.cluster.Cache = live
		b.patch(b.get("v1", "ConfigMap", "config"), `{"data":{"a":"theirs"}}`)
		if got := names(b.mustApply(newer).Applied); fmt.Sprint(got) != "[ConfigMap/config]" {
			t.Errorf("applied %v", got)
		}
	})
	t.Run("of what was pruned", func(t *testing.T) {
		freeze()
		b.observe(nil)
		docs := strings.Split(newer, "---\n")
		kept := strings.Join(docs[1:3], "---\n")
		if got := b.prune(kept); len(got) != 5 {
			t.Errorf("pruned %v", got)
		}
		b.requests.reset()
		if got := b.prune(kept); len(got) > 0 || len(b.requests.all()) > 0 {
			t.Errorf("pruned %v again: %q", got, b.requests.all())
		}
		b.patch(b.get("v1", "PersistentVolumeClaim", "data"), `{"metadata":{"finalizers":null}}`)
		b.mustApply(newer) // and is created again when it is wanted again
		b.get("v1", "Service", "example")
		b.cluster.Cache = live
		noWrite(t, newer)
	})
}
