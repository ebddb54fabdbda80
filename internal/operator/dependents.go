package operator

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"zaentrum.io/zae/internal/worker"
)

// dependents remembers for each addon what of its objects depends on secrets: by the last render, and by the one before
// it that came to something else, whose objects may run still. A render that fails says nothing, and what runs shows all the
// same. The zero value remembers nothing.
type dependents struct {
	mu   sync.Mutex
	kept map[types.NamespacedName]*dependent
}

type dependent struct{ now, before *worker.Dependence }

// note takes in what a render came to; nil is nothing.
func (d *dependents) note(addon types.NamespacedName, found *worker.Dependence) {
	d.mu.Lock()
	defer d.mu.Unlock()
	was := d.kept[addon]
	if found == nil || was != nil && was.now == found {
		return
	}
	is := &dependent{now: found}
	if was != nil {
		is.before = was.before
		if !slices.Equal(was.now.Texts, found.Texts) || !slices.Equal(was.now.Numbers, found.Numbers) {
			is.before = was.now
		}
	}
	if d.kept == nil {
		d.kept = map[types.NamespacedName]*dependent{}
	}
	d.kept[addon] = is
}

// tell adds what is remembered to what must not show.
func (d *dependents) tell(addon types.NamespacedName, known *secrets) {
	d.mu.Lock()
	defer d.mu.Unlock()
	known.made, known.numbers = nil, nil
	is := d.kept[addon]
	if is == nil {
		return
	}
	for _, found := range []*worker.Dependence{is.now, is.before} {
		if found != nil {
			known.made = append(known.made, found.Texts...)
			known.numbers = append(known.numbers, found.Numbers...)
		}
	}
}

func (d *dependents) forget(addon types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.kept, addon)
}
