package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart/loader"

	"zaentrum.io/zae/internal/fault"
)

// tree writes files below a new directory.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const packable = "apiVersion: v2\nname: example\nversion: 1.2.0\n"

func packed(t testing.TB, dir string) []byte {
	t.Helper()
	data, err := Pack(dir)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// entries are the names in an archive, in order.
func entries(t testing.TB, archive []byte) (names []string, headers []*tar.Header) {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	if !zip.ModTime.IsZero() || zip.Name != "" || len(zip.Extra) > 0 {
		t.Errorf("the gzip header tells %+v", zip.Header)
	}
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names, headers
		}
		if err != nil {
			t.Fatal(err)
		}
		names, headers = append(names, h.Name), append(headers, h)
	}
}

func TestTheSameFilesAreTheSameBytes(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"Chart.yaml": packable, "values.yaml": "a: 1\n", "templates/b.yaml": "b", "templates/a.yaml": "a", "templates/a/z.yaml": "z",
		"files/" + strings.Repeat("long/", 40) + "name": "x", "files/ünï": "y", ".helmignore": "none\n",
	}
	one, two := tree(t, files), tree(t, files)
	past := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := os.Chtimes(filepath.Join(two, "values.yaml"), past, past); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(two, "templates/a.yaml"), 0o755); err != nil {
		t.Fatal(err)
	}
	first, second := packed(t, one), packed(t, two)
	if !bytes.Equal(first, second) {
		t.Error("they differ")
	}
	names, headers := entries(t, first)
	if !slices.IsSorted(names) || len(names) != len(files) || !slices.Contains(names, "example/Chart.yaml") {
		t.Errorf("got %q", names)
	}
	for _, h := range headers {
		if h.ModTime.Unix() != 0 || h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" || h.Mode != 0o644 {
			t.Errorf("%s tells %+v", h.Name, h)
		}
	}
}

// What Helm leaves out of a chart is left out, and nothing else.
func TestHelmignoreIsAsHelmHasIt(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{
		"Chart.yaml": packable, ".helmignore": "# what stays here\nci/\n*.tgz\n/notes.md\nfiles/*.txt\n",
		"ci/values.yaml": "a: 1", "old-1.0.0.tgz": "x", "notes.md": "n", "files/notes.md": "n", "files/a.txt": "a", "files/b.bin": "b",
		"templates/.hidden.yaml": "h", "templates/a.yaml": "a: 1", "README.md": "r", "values.yaml": "x: 1", "values.schema.json": "{}",
	})
	helm, err := loader.LoadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, f := range helm.Raw {
		want = append(want, "example/"+f.Name)
	}
	slices.Sort(want)
	got, _ := entries(t, packed(t, dir))
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if slices.Contains(got, "example/ci/values.yaml") || slices.Contains(got, "example/templates/.hidden.yaml") {
		t.Errorf("got %q", got)
	}
}

// What was packed is loaded as the directory is.
func TestAPackedChartIsTheChart(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"../../examples/example/1.3.0", "../../examples/tiny"} {
		a, err := ReadLocal(dir)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Load(a)
		if err != nil {
			t.Fatal(err)
		}
		want, err := LoadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		facts := got.Facts()
		facts.Digest = ""
		if d := cmp.Diff(want.Facts(), facts); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff(want.Helm().Templates, got.Helm().Templates); d != "" {
			t.Error(d)
		}
		if _, err := loader.LoadArchive(bytes.NewReader(a.Bytes)); err != nil {
			t.Errorf("Helm cannot load it: %v", err)
		}
		if d := cmp.Diff(want.Defaults, got.Defaults); d != "" {
			t.Error(d)
		}
		if name, err := a.FileName(); err != nil || name != got.Name+"-"+got.Version+".tgz" {
			t.Errorf("%s, %v", name, err)
		}
	}
}

func TestWhatCannotBeFetchedIsNotPacked(t *testing.T) {
	t.Parallel()
	noise := make([]byte, maxArchive+1)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		files  map[string]string
		change func(dir string) error
		want   []string
	}{
		"a link": {nil, func(dir string) error { return os.Symlink("/etc/passwd", filepath.Join(dir, "templates")) },
			[]string{"templates is neither a file nor a folder", "put a copy in its place"}},
		"a link to a folder": {nil, func(dir string) error { return os.Symlink(dir, filepath.Join(dir, "charts")) },
			[]string{"charts is neither a file nor a folder"}},
		"a pipe": {nil, func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600) },
			[]string{"pipe is neither a file nor a folder"}},
		"a name of another system": {map[string]string{`templates\a.yaml`: ""}, nil, []string{"has a path of another system"}},
		"a control character":      {map[string]string{"files/a\x1bb": ""}, nil, []string{`"files/a\x1bb" has control characters in its path`}},
		"too large packed":         {map[string]string{"noise": string(noise)}, nil, []string{"over the limit of 10 MiB", "leave out of the chart what it does not need"}},
		"too large unpacked":       {map[string]string{"zeros": strings.Repeat("\x00", maxUnpacked)}, nil, []string{"over the limit of 20 MiB"}},
		"no description":           {nil, func(dir string) error { return os.Remove(filepath.Join(dir, "Chart.yaml")) }, []string{"Chart.yaml is missing", "zae addon init"}},
		"a broken description":     {map[string]string{"Chart.yaml": "name: [hunter2"}, nil, []string{"Chart.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{"Chart.yaml": packable}
			for k, v := range tc.files {
				files[k] = v
			}
			dir := tree(t, files)
			if tc.change != nil {
				if err := tc.change(dir); err != nil {
					t.Fatal(err)
				}
			}
			_, err := Pack(dir)
			f := fault.From(err)
			if f == nil || f.Code != fault.Chart {
				t.Fatalf("got %v", err)
			}
			for _, want := range tc.want {
				if !strings.Contains(f.Message+"\n"+f.Hint, want) {
					t.Errorf("got %s (%s), want %s", f.Message, f.Hint, want)
				}
			}
			if strings.Contains(f.Message, "hunter2") {
				t.Errorf("quotes the file: %s", f.Message)
			}
		})
	}
}

func TestAStrangeNameIsJudgedByLoading(t *testing.T) {
	t.Parallel()
	for _, name := range []string{`"../up"`, `""`, "a/b", `"a\tb"`} {
		a, err := ReadLocal(tree(t, map[string]string{"Chart.yaml": "apiVersion: v2\nversion: 1.0.0\nname: " + name + "\n"}))
		if err != nil {
			t.Fatal(err)
		}
		if names, _ := entries(t, a.Bytes); !slices.Equal(names, []string{"chart/Chart.yaml"}) {
			t.Errorf("%s: got %q", name, names)
		}
		if _, err := a.FileName(); err == nil && name != `"a\tb"` { // Helm makes a space of it
			t.Errorf("%s: makes a file name", name)
		}
	}
}

func TestWhatIsNotThereIsSaidToBeSo(t *testing.T) {
	t.Parallel()
	if _, err := ReadLocal(filepath.Join(t.TempDir(), "gone")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	dir := tree(t, map[string]string{"file.tgz": "no archive"})
	a, err := ReadLocal(filepath.Join(dir, "file.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.FileName(); fault.CodeOf(err) != fault.Chart {
		t.Errorf("got %v", err)
	}
}

// An empty crds folder is a violation in a directory as in an archive.
func TestAnEmptyFolderOfCRDsIsPacked(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{"Chart.yaml": packable})
	if err := os.Mkdir(filepath.Join(dir, "crds"), 0o700); err != nil {
		t.Fatal(err)
	}
	a, err := ReadLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Load(a)
	if err != nil || !slices.Equal(c.CRDs, []string{"crds/"}) {
		t.Errorf("got %v, %v", c, err)
	}
}
