package chart

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// disk is a store that survives restarts: blobs/<hex of the archive's digest> and refs/<id>.json. A file
// appears whole or not at all, and a blob is hashed again whenever it is read, so a torn or altered file is
// a missing one. The modification time is when it was used last.
//
// What cannot be written, because the disk is full, is kept in memory.
type disk struct {
	dir   string
	bytes int64
	now   func() time.Time
	spare *memory
	mu    sync.Mutex // one eviction at a time

	archives, size, evicted atomic.Int64 // after the last one
}

// spareBytes bounds what is kept in memory where a disk is full.
const spareBytes = 32 << 20

const (
	blobsDir   = "blobs"
	refsDir    = "refs"
	tempPrefix = ".tmp-"
)

func newDisk(dir string, bytes int64, now func() time.Time) (*disk, error) {
	d := &disk{dir: dir, bytes: bytes, now: now, spare: newMemory(min(bytes, spareBytes))}
	for _, sub := range []string{blobsDir, refsDir} {
		path := filepath.Join(dir, sub)
		if err := os.MkdirAll(path, 0o700); err != nil {
			return nil, err
		}
		// What a process left behind that was killed while writing.
		left, err := filepath.Glob(filepath.Join(path, tempPrefix+"*"))
		if err != nil {
			return nil, err
		}
		for _, f := range left {
			_ = os.Remove(f) // only wastes space when it stays
		}
	}
	// A cache that cannot be written would be found out at the worst of times: after a restart, with the
	// registry down. One that is only full holds what it has, and may have room again at any time.
	probe := filepath.Join(blobsDir, "probe")
	switch err := d.write(probe, []byte("probe")); {
	case err == nil:
		if err := os.Remove(filepath.Join(dir, probe)); err != nil {
			return nil, err
		}
	case !full(err):
		return nil, fmt.Errorf("not writable: %w", err)
	}
	d.evict("") // the bound may be smaller than last time
	return d, nil
}

// full tells that there is no room, on the disk or in a quota.
func full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

func blobFile(digest string) string {
	return filepath.Join(blobsDir, strings.TrimPrefix(digest, "sha256:"))
}

func recordsFile(id string) string { return filepath.Join(refsDir, id+".json") }

func (d *disk) getBlob(digest string) ([]byte, bool) {
	if !digestPattern.MatchString(digest) {
		return nil, false
	}
	data, ok := d.read(blobFile(digest), maxResponse)
	if ok && digestOf(data) == digest {
		return data, true
	}
	if ok {
		_ = os.Remove(filepath.Join(d.dir, blobFile(digest))) // it is fetched again
	}
	if data, ok = d.spare.getBlob(digest); ok {
		d.putBlob(digest, data) // there may be room again
	}
	return data, ok
}

func (d *disk) putBlob(digest string, data []byte) {
	if !digestPattern.MatchString(digest) {
		return
	}
	if d.write(blobFile(digest), data) != nil {
		d.spare.putBlob(digest, data)
		return
	}
	d.spare.dropBlob(digest)
	d.evict(blobFile(digest))
}

func (d *disk) getRecords(id string) []record {
	if recs := d.spare.getRecords(id); recs != nil { // newer than what is on the disk
		d.putRecords(id, recs)
		return recs
	}
	text, ok := d.read(recordsFile(id), 1<<20)
	if !ok {
		return nil
	}
	return decodeRecords(text)
}

func (d *disk) putRecords(id string, recs []record) {
	if d.write(recordsFile(id), encodeRecords(recs)) != nil {
		d.spare.putRecords(id, recs)
		return
	}
	d.spare.dropRecords(id)
}

// read returns a file's content and marks it as used.
func (d *disk) read(name string, limit int64) ([]byte, bool) {
	path := filepath.Join(d.dir, name)
	f, err := os.Open(path)
	if err != nil {
		return nil, false
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err := errors.Join(err, f.Close()); err != nil || int64(len(data)) > limit {
		return nil, false
	}
	now := d.now()
	_ = os.Chtimes(path, now, now) // at worst it is evicted early
	return data, true
}

func (d *disk) write(name string, data []byte) (err error) {
	path := filepath.Join(d.dir, name)
	f, err := os.CreateTemp(filepath.Dir(path), tempPrefix+"*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	now := d.now()
	if err = os.Chtimes(f.Name(), now, now); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// evict removes the blobs used least recently until the rest fits, but never the one just written, and the
// oldest of too many records.
func (d *disk) evict(keep string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	blobs := d.list(blobsDir)
	var total int64
	for _, b := range blobs {
		total += b.size
	}
	left := int64(len(blobs))
	for _, b := range blobs {
		if total <= d.bytes {
			break
		}
		if b.name != keep && os.Remove(filepath.Join(d.dir, b.name)) == nil {
			total -= b.size
			left--
			d.evicted.Add(1)
		}
	}
	d.archives.Store(left)
	d.size.Store(total)
	refs := d.list(refsDir)
	for _, ref := range refs[:max(0, len(refs)-maxRecordLists)] {
		_ = os.Remove(filepath.Join(d.dir, ref.name))
	}
}

func (d *disk) held() (archives, bytes, evicted int64) {
	return d.archives.Load(), d.size.Load(), d.evicted.Load()
}

type cachedFile struct {
	name string
	size int64
	used time.Time
}

// list are the files below a directory, used least recently first.
func (d *disk) list(sub string) []cachedFile {
	entries, err := os.ReadDir(filepath.Join(d.dir, sub))
	if err != nil {
		return nil
	}
	var files []cachedFile
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || strings.HasPrefix(e.Name(), tempPrefix) {
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			continue
		}
		files = append(files, cachedFile{filepath.Join(sub, e.Name()), info.Size(), info.ModTime()})
	}
	slices.SortFunc(files, func(a, b cachedFile) int {
		return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.name, b.name))
	})
	return files
}
