package chart

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"sigs.k8s.io/yaml"

	"zaentrum.io/zae/internal/fault"
)

// Pack makes the archive of the chart in a directory: what .helmignore does not name, below one folder with
// the chart's name, in name order, without times, owners and rights, so that the same files are the same bytes.
// Faults are of the code Chart: links and other files that are none, names that fetching would refuse, and what
// is over a limit that fetching has. What is inside the files is judged when the archive is loaded.
func Pack(dir string) ([]byte, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, fault.New(fault.Chart, "chart %s is not a directory that can be read", printable(dir)).Because(err)
	}
	files, err := walk(dir, newBudget())
	if err != nil {
		return nil, err
	}
	meta := slices.IndexFunc(files, func(f file) bool { return f.name == "Chart.yaml" })
	if meta < 0 {
		return nil, fault.New(fault.Chart, "chart %s: Chart.yaml is missing", printable(dir)).
			WithHint("give the directory that Chart.yaml is in; zae addon init NAME makes one")
	}
	folder, err := folderOf(files[meta].data)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(zipped)
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	for _, f := range files {
		name := folder + "/" + f.name
		if why := refuseName(name); why != "" {
			return nil, badEntry("", f.name, why)
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(f.data))}
		if strings.HasSuffix(name, "/") {
			h.Typeflag, h.Mode = tar.TypeDir, 0o755
		}
		if err := archive.WriteHeader(h); err != nil {
			return nil, badEntry("", f.name, "cannot be packed")
		}
		if _, err := archive.Write(f.data); err != nil {
			return nil, badEntry("", f.name, "cannot be packed")
		}
	}
	if err := errors.Join(archive.Close(), zipped.Close()); err != nil {
		return nil, fmt.Errorf("chart %s: %w", printable(dir), err)
	}
	if out.Len() > maxArchive {
		return nil, tooHeavy(out.Len())
	}
	return out.Bytes(), nil
}

func tooHeavy(n int) *fault.Fault {
	return fault.New(fault.Chart, "a chart archive of %s is over the limit of %s", size(int64(n)), size(maxArchive)).WithHint(hintSize)
}

// folderOf is the chart's name, or a stand-in for one that cannot be a folder's: what is wrong with it is said
// when the chart is loaded.
func folderOf(meta []byte) (string, error) {
	tree, err := document("Chart.yaml", meta)
	if err != nil {
		return "", err
	}
	name, _ := tree["name"].(string)
	if name == "" || name == "." || strings.Contains(name, "/") || refuseName(name) != "" {
		return "chart", nil
	}
	return name, nil
}

// NewArchive is an archive that is at hand. The fault is of the code Chart: it is over the limit.
func NewArchive(data []byte) (*Archive, error) {
	if len(data) > maxArchive {
		return nil, tooHeavy(len(data))
	}
	return &Archive{Bytes: data, Digest: digestOf(data)}, nil
}

// ReadLocal is the archive at a path of this machine: packed now when it is a directory, else read. An error
// that there is nothing at the path is an fs.ErrNotExist; all others are faults of the code Chart.
func ReadLocal(name string) (*Archive, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, err
	case err != nil:
		return nil, fault.New(fault.Chart, "chart %s cannot be read", printable(name)).Because(err)
	case info.IsDir():
		data, err := Pack(name)
		if err != nil {
			return nil, err
		}
		return NewArchive(data)
	case !info.Mode().IsRegular():
		return nil, fault.New(fault.Chart, "chart %s is neither a file nor a directory", printable(name))
	case info.Size() > maxArchive:
		return nil, tooHeavy(int(info.Size()))
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fault.New(fault.Chart, "chart %s cannot be read", printable(name)).Because(err)
	}
	return NewArchive(data)
}

// file finds one of the chart's own files.
func (a *Archive) file(name string) ([]byte, error) {
	files, err := unpack(a.Bytes, "", newBudget())
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if f.name == name {
			return f.data, nil
		}
	}
	return nil, nil
}

// metadata is Chart.yaml.
func (a *Archive) metadata() (*helmchart.Metadata, error) {
	text, err := a.file("Chart.yaml")
	if err != nil {
		return nil, err
	}
	if text == nil {
		return nil, unusable("", "Chart.yaml is missing")
	}
	if _, err := document("Chart.yaml", text); err != nil {
		return nil, err
	}
	var m helmchart.Metadata
	if err := yaml.Unmarshal(text, &m); err != nil {
		return nil, badMetadata("Chart.yaml", err)
	}
	if err := m.Validate(); err != nil {
		return nil, badMetadata("Chart.yaml", err)
	}
	return &m, nil
}

// FileName is what the archive is called: <name>-<version>.tgz of its Chart.yaml.
func (a *Archive) FileName() (string, error) {
	m, err := a.metadata()
	if err != nil {
		return "", err
	}
	file := m.Name + "-" + m.Version + ".tgz"
	if path.Base(file) != file || refuseName(file) != "" || strings.HasPrefix(file, ".") {
		return "", unusable("", "Chart.yaml: name and version make no file name")
	}
	return file, nil
}
