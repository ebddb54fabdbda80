package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"path"
	"strings"
)

// File is one file of a chart as it was packed, by its path inside the chart.
type File struct {
	Name string
	Data []byte
}

// Files are the files of an archive in its order, within Load's limits. Archives bundled in it are files like
// any other. Faults are those of Load.
func Files(a *Archive) ([]File, error) {
	if len(a.Bytes) > maxArchive {
		return nil, tooLarge(int64(len(a.Bytes)))
	}
	files, err := unpack(a.Bytes, "", newBudget())
	if err != nil {
		return nil, err
	}
	var out []File
	for _, f := range files {
		if !strings.HasSuffix(f.name, "/") { // an empty crds directory
			out = append(out, File{Name: f.name, Data: f.data})
		}
	}
	return out, nil
}

// Repack makes an archive of files, below one folder and without times: the same for the same files.
func Repack(folder string, files []File) (*Archive, error) {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Name: path.Join(folder, f.Name), Mode: 0o644, Size: int64(len(f.Data))}); err != nil {
			return nil, fmt.Errorf("chart archive: %w", err)
		}
		if _, err := w.Write(f.Data); err != nil {
			return nil, fmt.Errorf("chart archive: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("chart archive: %w", err)
	}
	if err := zipped.Close(); err != nil {
		return nil, fmt.Errorf("chart archive: %w", err)
	}
	return &Archive{Bytes: out.Bytes(), Digest: digestOf(out.Bytes())}, nil
}
