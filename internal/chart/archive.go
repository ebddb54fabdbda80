package chart

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"zaentrum.io/zae/internal/fault"
)

const (
	maxArchive  = maxResponse // bytes packed (decisions §8)
	maxUnpacked = 20 << 20    // bytes unpacked, bundled archives included (decisions §8)
	maxEntries  = 5000        // entries, bundled archives included
	maxNesting  = 8           // charts within charts
	maxPath     = 512         // bytes of one entry's name
)

// file is one file of a chart, by its path inside the chart.
type file struct {
	name string
	data []byte
}

// budget is what is left of the limits while a chart is unpacked, with everything bundled in it.
type budget struct {
	bytes   int64
	entries int
	raw     int64 // headers and padding included, generously, or an archive of nothing but headers never ends
}

const maxRaw = 2*maxUnpacked + maxEntries*1024

func newBudget() *budget {
	return &budget{bytes: maxUnpacked, entries: maxEntries, raw: maxRaw}
}

func (b *budget) entry() error {
	if b.entries--; b.entries < 0 {
		return fault.New(fault.Chart, "a chart archive of at least %d entries is over the limit of %d", maxEntries-b.entries, maxEntries)
	}
	return nil
}

func (b *budget) take(n int64) error {
	if b.bytes -= n; b.bytes < 0 {
		return tooLarge(maxUnpacked - b.bytes)
	}
	return nil
}

func tooLarge(unpacked int64) *fault.Fault {
	return fault.New(fault.Chart, "a chart archive that unpacks to at least %s is over the limit of %s", size(unpacked), size(maxUnpacked)).WithHint(hintSize)
}

// unpack reads a chart archive: a gzipped tar with everything below one folder, whatever its name. at says
// where the archive is inside the chart, for errors.
//
// Only files and folders are taken, with plain relative names, each once. Directories are dropped, apart
// from empty ones called crds, which are returned as a file without a name after the slash, since having one
// is refused.
func unpack(archive []byte, at string, b *budget) ([]file, error) {
	zip, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, broken(at)
	}
	raw := &io.LimitedReader{R: zip, N: b.raw}
	defer func() { b.raw = raw.N }()
	tr := tar.NewReader(raw)
	var files []file
	seen := map[string]bool{}
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) && raw.N > 0 {
			return files, nil
		}
		if err != nil {
			if raw.N <= 0 {
				return nil, tooLarge(maxRaw)
			}
			return nil, broken(at)
		}
		if err := b.entry(); err != nil {
			return nil, err
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		if h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir {
			return nil, badEntry(at, h.Name, "is neither a file nor a folder")
		}
		name, err := entryName(at, h.Name, h.Typeflag == tar.TypeDir)
		if err != nil {
			return nil, err
		}
		if h.Typeflag == tar.TypeDir {
			if name == crdsDir || strings.HasSuffix(name, "/"+crdsDir) {
				files = append(files, file{name: name + "/"})
			}
			continue
		}
		if seen[name] {
			return nil, badEntry(at, h.Name, "is there twice")
		}
		seen[name] = true
		if h.Size > b.bytes {
			return nil, b.take(h.Size)
		}
		data, err := io.ReadAll(io.LimitReader(tr, h.Size))
		if err != nil || int64(len(data)) != h.Size {
			return nil, broken(at)
		}
		if err := b.take(h.Size); err != nil {
			return nil, err
		}
		files = append(files, file{name, bytes.TrimPrefix(data, utf8BOM)})
	}
}

var utf8BOM = []byte{0xEF, 0xBB, 0xBF}

const crdsDir = "crds"

// entryName is the name inside the chart of an archive's entry.
func entryName(at, name string, dir bool) (string, error) {
	if dir {
		name = strings.TrimSuffix(name, "/")
	}
	if why := refuseName(name); why != "" {
		return "", badEntry(at, name, why)
	}
	_, inside, ok := strings.Cut(name, "/")
	if dir && !ok {
		return "", nil // the folder around the chart
	}
	if !ok || inside == "" {
		return "", badEntry(at, name, "is not below the chart's folder")
	}
	return path.Clean(inside), nil
}

// refuseName says why a path cannot be one inside a chart.
func refuseName(name string) string {
	switch {
	case name == "":
		return "has no name"
	case len(name) > maxPath:
		return fmt.Sprintf("has a path of %d bytes, over the limit of %d", len(name), maxPath)
	case strings.HasPrefix(name, "/"):
		return "has an absolute path"
	case strings.Contains(name, `\`), len(name) > 1 && name[1] == ':':
		return "has a path of another system"
	case !utf8.ValidString(name), strings.ContainsFunc(name, unicode.IsControl):
		return "has control characters in its path"
	}
	for _, segment := range strings.Split(name, "/") {
		if segment == ".." {
			return "has a path that leads out of the chart"
		}
	}
	return ""
}

func badEntry(at, name, why string) *fault.Fault {
	return fault.New(fault.Chart, "chart archive: %s%s %s", at, printable(name), why)
}

func broken(at string) *fault.Fault {
	return fault.New(fault.Chart, "chart archive: %s is not a complete gzipped tar", cmp.Or(strings.TrimSuffix(at, ": "), "the file")).
		WithHint("pack the chart with helm package")
}

// printable is a name from a chart, fit for a terminal.
func printable(name string) string {
	const most = 120
	if len(name) > most {
		name = name[:most] + "…"
	}
	q := strconv.Quote(name)
	if q == `"`+name+`"` {
		return name
	}
	return q
}
