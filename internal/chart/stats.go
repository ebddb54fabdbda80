package chart

import "sync"

// Stats count what a Fetcher did since it was made. A fetch that several callers waited for counts once.
type Stats struct {
	// Fetches by what came of them: Cached were at hand, and pinned by their digest, so that nobody was asked.
	// Revalidated were at hand, and the registry said that they are current. Stale were at hand, and the registry
	// did not answer.
	Cached, Revalidated, Downloaded, Stale, Failed int64
	// DownloadedBytes is the size of the archives that were Downloaded.
	DownloadedBytes int64

	// Archives is how many the cache holds now, and Bytes their size; Evicted is how many were removed for others.
	Archives, Bytes int64
	Evicted         int64
}

// Stats answers at once: nothing is looked up for it.
func (f *Fetcher) Stats() Stats {
	f.stats.mu.Lock()
	s := f.stats.so
	f.stats.mu.Unlock()
	s.Archives, s.Bytes, s.Evicted = f.cache.store.held()
	return s
}

// origin is what came of a fetch.
type origin int

const (
	failed origin = iota
	cached
	revalidated
	downloaded
	stale
)

type counts struct {
	mu sync.Mutex
	so Stats
}

func (c *counts) count(how origin, a *Archive) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch how {
	case cached:
		c.so.Cached++
	case revalidated:
		c.so.Revalidated++
	case downloaded:
		c.so.Downloaded++
		c.so.DownloadedBytes += int64(len(a.Bytes))
	case stale:
		c.so.Stale++
	default:
		c.so.Failed++
	}
}
