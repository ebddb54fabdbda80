package portal

import (
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/lru"

	"zaentrum.io/zae/internal/fault"
)

// maxCallers is how many callers' rates are remembered: those that wrote last.
const maxCallers = 4096

// rates bounds how often each caller writes.
type rates struct {
	limit rate.Limit
	burst int
	now   func() time.Time

	mu      sync.Mutex
	callers *lru.Cache // caller.key → *rate.Limiter
}

func newRates(perSecond float64, burst int, now func() time.Time) *rates {
	return &rates{limit: rate.Limit(perSecond), burst: burst, now: now, callers: lru.New(maxCallers)}
}

// take counts a write, or refuses it with the time after which there is room for it.
func (l *rates) take(from caller) error {
	now := l.now()
	wait := l.of(from.key()).ReserveN(now, 1)
	after := wait.DelayFrom(now)
	if after <= 0 {
		return nil
	}
	wait.CancelAt(now) // a write that is refused counts for nothing
	return later(fault.New(fault.RateLimited, "more writes than one caller may make").
		WithHint("a caller may make %d at once, and %g a second from then on", l.burst, float64(l.limit)), after)
}

func (l *rates) of(key string) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.callers.Get(key); ok {
		if limiter, ok := known.(*rate.Limiter); ok {
			return limiter
		}
	}
	limiter := rate.NewLimiter(l.limit, l.burst)
	l.callers.Add(key, limiter)
	return limiter
}

// writes tells whether a method changes something.
func writes(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	default:
		return true
	}
}
