package portal_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/portal"
)

// lists counts the requests that list addons, but for those of the watch.
func (b *bench) lists() *atomic.Int64 {
	n := &atomic.Int64{}
	b.wire.intercept(func(r *http.Request) *http.Response {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/zaentrumaddons") && !r.URL.Query().Has("watch") {
			n.Add(1)
		}
		return nil
	})
	return n
}

func (b *bench) listed() []string {
	b.t.Helper()
	var all apitype.Addons
	b.answer(http.MethodGet, apitype.PathAddons, nil, http.StatusOK, &all)
	names := []string{}
	for _, a := range all.Addons {
		names = append(names, a.Name)
	}
	return names
}

// watches waits until the list is answered from the watch.
func (b *bench) listsFromTheWatch() {
	b.t.Helper()
	asked := b.lists()
	b.eventually("the list comes from the watch", func() error {
		before := asked.Load()
		b.listed()
		if asked.Load() != before {
			return fmt.Errorf("the API server was asked")
		}
		return nil
	})
}

func TestTheListComesFromTheWatch(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.commit("one", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
	if got := b.listed(); !slices.Equal(got, []string{"one"}) { // nothing is watched yet
		t.Errorf("got %v", got)
	}
	stop := b.run()
	b.listsFromTheWatch()
	asked := b.lists()
	b.commit("two", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
	b.operate("two", planned)
	b.eventually("the list shows what others did", func() error {
		var all apitype.Addons
		b.answer(http.MethodGet, apitype.PathAddons, nil, http.StatusOK, &all)
		if len(all.Addons) != 2 || all.Addons[1].Phase != v1alpha1.PhasePlanned {
			return fmt.Errorf("got %+v", all.Addons)
		}
		return nil
	})
	if n := asked.Load(); n > 0 {
		t.Errorf("the API server was asked %d times", n)
	}
	stop()
	if got := b.listed(); len(got) != 2 {
		t.Errorf("when nothing is watched any more: %v", got)
	}
}

// A watch lags; what this replica wrote itself is in the list at once.
func TestWhoWritesThenListsFindsWhatWasWritten(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *portal.Options) { o.WriteBurst = 1000 })
	b.run()
	b.listsFromTheWatch()
	for i := range 20 {
		name := fmt.Sprintf("addon-%d", i)
		b.answer(http.MethodPost, apitype.PathAddonCharts, apitype.CreateRequest{Name: name, Chart: exampleRef, Version: "1.2.0"}, http.StatusAccepted, &apitype.WriteAnswer{})
		if got := b.listed(); !slices.Contains(got, name) {
			t.Fatalf("%s is not in %v", name, got)
		}
		b.answer(http.MethodDelete, chartPath(name), nil, http.StatusOK, &apitype.DeleteAnswer{})
		if got := b.listed(); slices.Contains(got, name) {
			t.Fatalf("%s is still in %v", name, got)
		}
	}
}

// While the API server cannot be reached, nothing is shown that may be out of date.
func TestTheListFailsWhileTheClusterIsAway(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.commit("one", v1alpha1.ZaentrumAddonSpec{Chart: exampleChart()})
	b.run()
	b.listsFromTheWatch()
	b.wire.intercept(func(*http.Request) *http.Response {
		return failure(http.StatusInternalServerError, metav1.StatusReasonInternalError)
	})
	b.wire.cut()
	b.eventually("the list fails", func() error {
		if r := b.do(http.MethodGet, apitype.PathAddons, nil); r.status != http.StatusBadGateway {
			return fmt.Errorf("got %s", r)
		}
		return nil
	})
	b.wire.intercept(nil)
	b.eventually("the list is back", func() error {
		if r := b.do(http.MethodGet, apitype.PathAddons, nil); r.status != http.StatusOK {
			return fmt.Errorf("got %s", r)
		}
		return nil
	})
	b.listsFromTheWatch()
}
