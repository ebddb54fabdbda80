package portal

import (
	"fmt"
	"testing"
	"time"
)

func TestRatesOfManyCallersTakeBoundedMemory(t *testing.T) {
	t.Parallel()
	l := newRates(1, 1, time.Now)
	for i := range 3 * maxCallers {
		if err := l.take(caller{subject: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if n := l.callers.Len(); n != maxCallers {
		t.Errorf("%d callers are remembered", n)
	}
	if err := l.take(caller{subject: fmt.Sprint(3*maxCallers - 1)}); err == nil {
		t.Error("who wrote last is forgotten")
	}
}
