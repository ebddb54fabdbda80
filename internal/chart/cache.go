package chart

import (
	"container/list"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"sync"
	"time"
)

// maxRecords is how many archives are remembered under one reference and version. A tag moves rarely; a
// plan pinned to the archive before the move must still find it, however often the tag moves after that.
const maxRecords = 32

// record is one archive that a reference and version stood for.
type record struct {
	Archive      string `json:"archive"`
	Manifest     string `json:"manifest,omitempty"`     // OCI: the digest of the manifest that named it
	ETag         string `json:"etag,omitempty"`         // https: what the server calls it
	LastModified string `json:"lastModified,omitempty"` // https: as the server wrote it
}

// matches tells whether digest, of an archive or of a manifest, means this record.
func (r record) matches(digest string) bool { return digest == r.Archive || digest == r.Manifest }

// store keeps archives by digest and records by key, within a bound. Losing anything is allowed; returning
// an archive that is not the one named is not.
type store interface {
	getBlob(digest string) ([]byte, bool)
	putBlob(digest string, data []byte)
	getRecords(id string) []record
	putRecords(id string, recs []record)
	// held is how many archives there are and their size, as of the last change, and how many had to go.
	held() (archives, bytes, evicted int64)
}

func newStore(dir string, bytes int64, now func() time.Time) (store, error) {
	if dir == "" {
		return newMemory(bytes), nil
	}
	return newDisk(dir, bytes, now)
}

// cache is a store by the names the fetcher has for things.
type cache struct {
	mu    sync.Mutex // makes remember one step
	store store
}

// recordsID names the records of a key without containing it: a URL may carry a credential.
func recordsID(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// known are the records under key: the newest first, then about as they were used.
func (c *cache) known(key string) []record { return c.store.getRecords(recordsID(key)) }

// newest is the newest of the records, when its archive is at hand.
func (c *cache) newest(known []record) (record, []byte, bool) {
	if len(known) == 0 {
		return record{}, nil, false
	}
	data, ok := c.blob(known[0].Archive)
	return known[0], data, ok
}

func (c *cache) blob(digest string) ([]byte, bool) { return c.store.getBlob(digest) }

func (c *cache) keep(digest string, data []byte) { c.store.putBlob(digest, data) }

// remember makes rec the newest record under key.
func (c *cache) remember(key string, rec record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := recordsID(key)
	old := c.store.getRecords(id)
	if len(old) > 0 && old[0] == rec {
		return
	}
	recs := []record{rec}
	for _, r := range old {
		if (r.Archive != rec.Archive || r.Manifest != rec.Manifest) && len(recs) < maxRecords {
			recs = append(recs, r)
		}
	}
	c.store.putRecords(id, recs)
}

// use keeps rec, which was asked for by its digest, from being the next to be forgotten. It never becomes the newest:
// that is what the tag stood for last.
func (c *cache) use(key string, rec record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := recordsID(key)
	recs := c.store.getRecords(id)
	at := slices.Index(recs, rec)
	if at < 2 {
		return
	}
	moved := slices.Insert(slices.Delete(slices.Clone(recs), at, at+1), 1, rec)
	c.store.putRecords(id, moved)
}

// memory is a store for a process that keeps nothing.
type memory struct {
	mu    sync.Mutex
	blobs *lru[[]byte]
	recs  *lru[[]record]
}

// maxRecordLists bounds the keys that records are kept for.
const maxRecordLists = 4096

func newMemory(bytes int64) *memory {
	return &memory{blobs: newLRU[[]byte](bytes), recs: newLRU[[]record](maxRecordLists)}
}

func (m *memory) getBlob(digest string) ([]byte, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.blobs.get(digest)
}

func (m *memory) putBlob(digest string, data []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.blobs.put(digest, data, int64(len(data)))
}

func (m *memory) held() (archives, bytes, evicted int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return int64(m.blobs.order.Len()), m.blobs.weight, m.blobs.evicted
}

func (m *memory) getRecords(id string) []record {
	m.mu.Lock()
	defer m.mu.Unlock()
	recs, _ := m.recs.get(id)
	return recs
}

func (m *memory) putRecords(id string, recs []record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.recs.put(id, recs, 1)
}

func (m *memory) dropBlob(digest string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.blobs.remove(digest)
}

func (m *memory) dropRecords(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.recs.remove(id)
}

// lru keeps what was used last, up to a total weight; one thing is kept however heavy it is. It is not safe
// for use by several goroutines.
type lru[T any] struct {
	bound, weight int64
	evicted       int64      // for others
	order         *list.List // of *lruItem[T], used last in front
	items         map[string]*list.Element
}

type lruItem[T any] struct {
	key    string
	value  T
	weight int64
}

func newLRU[T any](bound int64) *lru[T] {
	return &lru[T]{bound: bound, order: list.New(), items: map[string]*list.Element{}}
}

func (l *lru[T]) get(key string) (value T, ok bool) {
	e, ok := l.items[key]
	if !ok {
		return value, false
	}
	l.order.MoveToFront(e)
	return e.Value.(*lruItem[T]).value, true
}

func (l *lru[T]) remove(key string) {
	if e, ok := l.items[key]; ok {
		l.drop(e)
	}
}

func (l *lru[T]) put(key string, value T, weight int64) {
	l.remove(key)
	l.items[key] = l.order.PushFront(&lruItem[T]{key, value, weight})
	l.weight += weight
	for l.weight > l.bound && l.order.Len() > 1 {
		l.drop(l.order.Back())
		l.evicted++
	}
}

func (l *lru[T]) drop(e *list.Element) {
	item := l.order.Remove(e).(*lruItem[T])
	delete(l.items, item.key)
	l.weight -= item.weight
}

func encodeRecords(recs []record) []byte {
	text, err := json.Marshal(recs)
	if err != nil { // strings only
		return nil
	}
	return text
}

// decodeRecords reads what encodeRecords wrote; anything else is no records.
func decodeRecords(text []byte) []record {
	var recs []record
	if json.Unmarshal(text, &recs) != nil || len(recs) > maxRecords {
		return nil
	}
	for _, r := range recs {
		if !digestPattern.MatchString(r.Archive) || checkDigest(r.Manifest) != nil {
			return nil
		}
	}
	return recs
}
