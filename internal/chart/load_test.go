package chart

import (
	"archive/tar"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"zaentrum.io/zae/internal/fault"
)

func TestLoad(t *testing.T) {
	sub := tgz(t, map[string]string{
		"Chart.yaml":     "apiVersion: v2\nname: packed\nversion: 2.0.0\n",
		"values.yaml":    "big: 10737418240\n",
		"crds/deep.yaml": "x",
	})
	a := archiveOf(tgz(t, map[string]string{
		"Chart.yaml": `apiVersion: v2
name: example
version: 1.2.0
appVersion: 4
description: An example
type: application
annotations: {zaentrum.io/addon: "true"}
dependencies:
- {name: packed, version: 2.x, alias: renamed}
- {name: folder, version: ">=1.0.0"}
`,
		"values.yaml":               "\ufeffn: 10737418240\nf: 1.5\nlist: [1]\n",
		"values.schema.json":        `{"type":"object"}`,
		"crds/a.yaml":               "x",
		"crds/README.md":            "x",
		"templates/a.yaml":          "x",
		"charts/packed-2.0.0.tgz":   string(sub),
		"charts/folder/Chart.yaml":  "apiVersion: v1\nname: folder\nversion: 1.0.0\n",
		"charts/folder/values.yaml": "x: 1\n",
		"charts/folder/crds/b.txt":  "x",
		"charts/_ignored/x":         "x",
		"charts/.ignored":           "x",
		"charts/a.prov":             "x",
	}))
	c, err := Load(a)
	if err != nil {
		t.Fatal(err)
	}
	got := *c
	got.helm, got.weight = nil, 0
	want := Chart{
		Name: "example", Version: "1.2.0", AppVersion: "4", Description: "An example", APIVersion: "v2", Type: "application",
		Annotations: map[string]string{"zaentrum.io/addon": "true"},
		Digest:      a.Digest,
		Schema:      []byte(`{"type":"object"}`),
		Defaults:    map[string]any{"n": int64(10737418240), "f": 1.5, "list": []any{int64(1)}},
		Subcharts:   []string{"folder", "packed", "renamed"},
		CRDs:        []string{"charts/folder/crds/b.txt", "charts/packed-2.0.0.tgz/crds/deep.yaml", "crds/README.md", "crds/a.yaml"},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(Chart{})); d != "" {
		t.Error(d)
	}
	var subs []string
	for _, d := range c.Helm().Dependencies() {
		subs = append(subs, d.Name())
		for k, v := range d.Values {
			if _, ok := v.(int64); !ok {
				t.Errorf("%s.%s is a %T", d.Name(), k, v)
			}
		}
	}
	if d := cmp.Diff([]string{"folder", "packed"}, subs); d != "" {
		t.Error(d)
	}
	if f := c.Facts(); f.Name != "example" || f.Digest != a.Digest || f.Annotations["zaentrum.io/addon"] != "true" {
		t.Errorf("facts: %+v", f)
	}
}

func TestLoadRefuses(t *testing.T) {
	const canary = "c4n4ry"
	meta := chartYAML
	with := func(kv ...string) []byte {
		files := map[string]string{"Chart.yaml": meta}
		for i := 0; i < len(kv); i += 2 {
			files[kv[i]] = kv[i+1]
		}
		return tgz(t, files)
	}
	entry := func(h tar.Header) []byte {
		return pack(t, []tar.Header{{Name: "example/Chart.yaml", Typeflag: tar.TypeReg}, h}, func(h tar.Header) string {
			if strings.HasSuffix(h.Name, "Chart.yaml") {
				return meta
			}
			return "x"
		})
	}
	half := strings.Repeat("0", maxUnpacked/2)
	nest := string(with())
	for range maxNesting + 1 {
		nest = string(with("charts/example.tgz", nest))
	}
	var many []tar.Header
	for range maxEntries + 1 {
		many = append(many, tar.Header{Name: "example/d/", Typeflag: tar.TypeDir})
	}
	var headers []tar.Header
	for range 60 {
		headers = append(headers, tar.Header{Name: "example/d/", Typeflag: tar.TypeDir, PAXRecords: map[string]string{"ZAE.x": strings.Repeat("x", 1000<<10)}})
	}
	for rule, tc := range map[string]struct {
		archive []byte
		says    string
	}{
		"no gzip":                              {[]byte(canary), "not a complete gzipped tar"},
		"a cut archive":                        {with()[:60], "not a complete gzipped tar"},
		"no Chart.yaml":                        {tgz(t, map[string]string{"values.yaml": "a: 1"}), "Chart.yaml is missing"},
		"a symbolic link":                      {entry(tar.Header{Name: "example/l", Linkname: "/etc/passwd", Typeflag: tar.TypeSymlink}), "example/l is neither a file nor a folder"},
		"a hard link":                          {entry(tar.Header{Name: "example/l", Linkname: "example/Chart.yaml", Typeflag: tar.TypeLink}), "neither a file nor a folder"},
		"a device":                             {entry(tar.Header{Name: "example/l", Typeflag: tar.TypeChar}), "neither a file nor a folder"},
		"a pipe":                               {entry(tar.Header{Name: "example/l", Typeflag: tar.TypeFifo}), "neither a file nor a folder"},
		"an absolute path":                     {entry(tar.Header{Name: "/example/x", Typeflag: tar.TypeReg}), "absolute"},
		"a path that leads out":                {entry(tar.Header{Name: "example/../../x", Typeflag: tar.TypeReg}), "leads out"},
		"a folder that leads out":              {entry(tar.Header{Name: "example/../", Typeflag: tar.TypeDir}), "leads out"},
		"a path with backslashes":              {entry(tar.Header{Name: `example\x`, Typeflag: tar.TypeReg}), "another system"},
		"a drive":                              {entry(tar.Header{Name: "c:/x", Typeflag: tar.TypeReg}), "another system"},
		"control characters in a path":         {entry(tar.Header{Name: "example/\x1b[31mx", Typeflag: tar.TypeReg}), `"example/\x1b[31mx" has control`},
		"a path beside the folder":             {entry(tar.Header{Name: "x", Typeflag: tar.TypeReg}), "not below"},
		"a file twice":                         {entry(tar.Header{Name: "other/Chart.yaml", Typeflag: tar.TypeReg}), "is there twice"},
		"a very long path":                     {entry(tar.Header{Name: "example/" + strings.Repeat("a", 600), Typeflag: tar.TypeReg}), "608 bytes, over the limit of 512"},
		"more than 20 MiB":                     {with("a", half, "b", half), "at least 20.0 MiB (20971564 bytes) is over the limit of 20 MiB"},
		"more than 20 MiB with what is nested": {with("a", half, "charts/s.tgz", string(with("b", half))), "20 MiB"},
		"more than 20 MiB with what is nested in what is nested": {
			with("charts/s.tgz", string(with("charts/t.tgz", string(with("b", half)), "a", half))), "20 MiB",
		},
		"a link in what is nested": {
			with("charts/s.tgz", string(entry(tar.Header{Name: "example/l", Linkname: "/etc/passwd", Typeflag: tar.TypeSymlink}))),
			"charts/s.tgz: example/l is neither a file nor a folder",
		},
		"another kubeVersion":                  {with("Chart.yaml", meta+"kubeVersion: \">=1.20.0 <1.30.0\"\n"), "Chart.yaml: kubeVersion: the chart requires >=1.20.0 <1.30.0, which Kubernetes v1.37.0 is not"},
		"a kubeVersion that is none":           {with("Chart.yaml", meta+"kubeVersion: any\n"), "the chart requires any, which"},
		"too many entries":                     {pack(t, many, nil), "at least 5001 entries is over the limit of 5000"},
		"headers without end":                  {pack(t, headers, nil), "20 MiB"},
		"charts nested without end":            {[]byte(nest), "9 deep, over the limit of 8"},
		"a bundled archive that is none":       {with("charts/s.tgz", canary), "charts/s.tgz is not a complete gzipped tar"},
		"a bundled folder without Chart.yaml":  {with("charts/s/x", canary), "charts/s: Chart.yaml is missing"},
		"a file among the bundled charts":      {with("charts/README.md", canary), "charts/README.md: Chart.yaml is missing"},
		"a missing dependency":                 {with("Chart.yaml", meta+"dependencies:\n- {name: db, version: 1.x}\n- {name: q, version: 2.x}\n"), "missing from charts/: db 1.x, q 2.x"},
		"a dependency in another version":      {with("Chart.yaml", meta+"dependencies:\n- {name: db, version: 2.x}\n", "charts/db/Chart.yaml", "apiVersion: v2\nname: db\nversion: 1.0.0\n"), "missing from charts/: db 2.x"},
		"a missing dependency of a dependency": {with("charts/db/Chart.yaml", "apiVersion: v2\nname: db\nversion: 1.0.0\ndependencies:\n- {name: q, version: 2.x}\n"), "charts/db: missing from charts/: q 2.x"},
		"a missing dependency of the old kind": {with("requirements.yaml", "dependencies:\n- {name: q, version: 2.x}\n"), "missing from charts/: q 2.x"},
		"a duplicate key in values":            {with("values.yaml", "a: 1\nb: "+canary+"\na: "+canary+"\n"), "values.yaml: line 3: duplicate key"},
		"values that are no YAML":              {with("values.yaml", "a: "+canary+"\n\t- b\n"), "values.yaml: line 2"},
		"values that are no mapping":           {with("values.yaml", "- "+canary+"\n"), "values.yaml: not a mapping"},
		"values of two documents":              {with("values.yaml", "a: 1\n---\nb: "+canary+"\n"), "values.yaml: more than one"},
		"bad values in a bundled chart":        {with("charts/s.tgz", string(with("values.yaml", "a: &"+canary+"\na: 1"))), "charts/s.tgz/values.yaml: line 2"},
		"a bad Chart.yaml":                     {with("Chart.yaml", "name: ["+canary), "Chart.yaml: line"},
		"a duplicate key in Chart.yaml":        {with("Chart.yaml", meta+"name: "+canary+"\n"), "Chart.yaml: line 4: duplicate"},
		"a Chart.yaml of wrong types":          {with("Chart.yaml", meta+"dependencies: "+canary+"\n"), "Chart.yaml: dependencies: a value of the wrong type"},
		"a Chart.yaml without a name":          {with("Chart.yaml", "apiVersion: v2\nversion: 1.0.0\n"), "name is required"},
		"a version that is none":               {with("Chart.yaml", "apiVersion: v2\nname: x\nversion: one\n"), "version"},
		"a null dependency":                    {with("Chart.yaml", meta+"dependencies: [null]\n"), "must not contain empty"},
	} {
		t.Run(rule, func(t *testing.T) {
			_, err := Load(archiveOf(tc.archive))
			wantFault(t, err, fault.Chart, tc.says)
			if f := fault.From(err); strings.Contains(f.Message+f.Hint, canary) {
				t.Errorf("the fault quotes the chart: %v", f)
			}
		})
	}
	t.Run("more than 10 MiB packed", func(t *testing.T) {
		_, err := Load(&Archive{Bytes: make([]byte, maxArchive+1)})
		wantFault(t, err, fault.Chart, "10485761 bytes", "10 MiB")
	})
}

func TestLoadAcceptsWhatTarWrites(t *testing.T) {
	for rule, h := range map[string]tar.Header{
		"folders":               {Name: "example/templates/", Typeflag: tar.TypeDir},
		"the folder itself":     {Name: "example/", Typeflag: tar.TypeDir},
		"a global header":       {Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "x"}},
		"a dot in a path":       {Name: "example/./x", Typeflag: tar.TypeReg},
		"an odd but plain name": {Name: "example/templates/ä b.yaml", Typeflag: tar.TypeReg},
	} {
		t.Run(rule, func(t *testing.T) {
			data := pack(t, []tar.Header{h, {Name: "example/Chart.yaml", Typeflag: tar.TypeReg}}, func(tar.Header) string { return chartYAML })
			if _, err := Load(archiveOf(data)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAnEmptyCRDFolderIsOne(t *testing.T) {
	data := pack(t, []tar.Header{
		{Name: "example/Chart.yaml", Typeflag: tar.TypeReg},
		{Name: "example/crds/", Typeflag: tar.TypeDir},
		{Name: "example/charts/s/Chart.yaml", Typeflag: tar.TypeReg},
		{Name: "example/charts/s/crds/", Typeflag: tar.TypeDir},
		{Name: "example/charts/s/crds/x.yaml", Typeflag: tar.TypeReg},
	}, func(tar.Header) string { return chartYAML })
	c, err := Load(archiveOf(data))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"charts/s/crds/x.yaml", "crds/"}, c.CRDs); d != "" {
		t.Error(d)
	}
}

func TestDependenciesWithoutAVersionAreFoundByName(t *testing.T) {
	_, err := Load(archiveOf(tgz(t, map[string]string{
		"Chart.yaml":           chartYAML + "dependencies:\n- name: db\n",
		"charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n",
	})))
	if err != nil {
		t.Error(err)
	}
}

func TestLoadDir(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("Chart.yaml", chartYAML)
	write("values.yaml", "\ufeffa: 1\n")
	write(".helmignore", "ignored/\n*.bak\n")
	write("ignored/charts/x", "x")
	write("values.yaml.bak", "x")
	write("templates/.hidden.yaml", "x")
	write("templates/a.yaml", "x")
	write("crds/a.yaml", "x")
	c, err := LoadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Helm().Templates) != 1 || c.Defaults["a"] != int64(1) || c.Digest != "" || cmp.Diff([]string{"crds/a.yaml"}, c.CRDs) != "" {
		t.Errorf("got %+v", c)
	}

	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "templates", "l.yaml")); err != nil {
		t.Fatal(err)
	}
	_, err = LoadDir(dir)
	wantFault(t, err, fault.Chart, "templates/l.yaml is neither a file nor a folder")
	_, err = LoadDir(filepath.Join(dir, "absent"))
	wantFault(t, err, fault.Chart, "cannot be read")
}

func TestLoadingTheSameArchiveAgainIsCheap(t *testing.T) {
	p := newParsedCache(parsedBytes)
	a := archiveOf(example(t, "x"))
	a.parsed = p
	first, err := Load(a)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Load(&Archive{Bytes: a.Bytes, Digest: a.Digest, parsed: p})
	if err != nil || again != first {
		t.Errorf("got %p, want %p (%v)", again, first, err)
	}
	// A digest that is not the bytes' must not be believed by others.
	lie := &Archive{Bytes: example(t, "y"), Digest: digestOf(example(t, "z")), parsed: p}
	if _, err := Load(lie); err != nil {
		t.Fatal(err)
	}
	if _, ok := p.get(lie.Digest); ok {
		t.Error("a chart is kept under a digest that is not its own")
	}
}

func TestKubeVersionsThatMatch(t *testing.T) {
	for _, version := range []string{"", ">=1.25.0", ">=1.25.0-0", "1.x", "~1.37", "^1.30.0", ">= 1.20, < 2", "v1.37.0", "1.19 || >=1.30"} {
		if _, err := Load(archiveOf(tgz(t, map[string]string{"Chart.yaml": chartYAML + "kubeVersion: \"" + version + "\"\n"}))); err != nil {
			t.Errorf("%s: %v", version, err)
		}
	}
	// Helm 3 asks the outermost chart only.
	_, err := Load(archiveOf(tgz(t, map[string]string{
		"Chart.yaml":          chartYAML,
		"charts/s/Chart.yaml": "apiVersion: v2\nname: s\nversion: 1.0.0\nkubeVersion: \"<1.20.0\"\n",
	})))
	if err != nil {
		t.Error("a bundled chart is asked, other than by Helm:", err)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(example(f, "x"))
	f.Add(tgz(f, map[string]string{"Chart.yaml": chartYAML, "charts/s.tgz": string(example(f, "y")), "crds/x": ""}))
	f.Add(pack(f, []tar.Header{{Name: "a/l", Linkname: "b", Typeflag: tar.TypeSymlink}}, nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := Load(archiveOf(data)); err != nil && fault.CodeOf(err) != fault.Chart {
			t.Error(err)
		}
	})
}

// FuzzArchive unpacks anything: what is accepted is within the limits, and unpacks to the same when it is packed
// again.
func FuzzArchive(f *testing.F) {
	one := tar.Header{Name: "a/b", Typeflag: tar.TypeReg}
	twice := func(tar.Header) string { return "x" }
	f.Add(example(f, "x"))
	f.Add(tgz(f, map[string]string{"Chart.yaml": chartYAML, "charts/s.tgz": string(example(f, "y")), "crds/x": "\ufeffy"}))
	f.Add(pack(f, []tar.Header{{Name: "a/l", Linkname: "b", Typeflag: tar.TypeSymlink}}, nil))
	f.Add(pack(f, []tar.Header{{Name: "a/l", Linkname: "a/b", Typeflag: tar.TypeLink}}, nil))
	f.Add(pack(f, []tar.Header{one, one}, twice))
	f.Add(pack(f, []tar.Header{{Name: "a/", Typeflag: tar.TypeDir}, {Name: "a/crds/", Typeflag: tar.TypeDir}, one}, twice))
	f.Add(pack(f, []tar.Header{{Name: "a/../b", Typeflag: tar.TypeReg}}, twice))
	f.Add(pack(f, []tar.Header{{Name: "a/./b//c", Typeflag: tar.TypeReg}}, twice))
	f.Add(pack(f, []tar.Header{{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "x"}}, one}, twice))
	f.Add(example(f, "x")[:40])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		b := newBudget()
		files, err := unpack(data, "", b)
		if err != nil {
			if fault.CodeOf(err) != fault.Chart {
				t.Error(err)
			}
			return
		}
		var total int64
		var headers []tar.Header
		content := map[string]string{}
		for _, file := range files {
			total += int64(len(file.data))
			h := tar.Header{Name: "chart/" + file.name, Typeflag: tar.TypeReg}
			if strings.HasSuffix(file.name, "/") {
				h.Typeflag = tar.TypeDir
			} else if why := refuseName(file.name); why != "" || path.Clean(file.name) != file.name {
				t.Errorf("%q %s", file.name, why)
			}
			if _, twice := content[h.Name]; twice && h.Typeflag == tar.TypeReg {
				t.Errorf("%q is there twice", file.name)
			}
			headers = append(headers, h)
			content[h.Name] = string(file.data)
		}
		if total > maxUnpacked || len(files) > maxEntries || b.bytes < 0 || b.entries < 0 {
			t.Errorf("%d bytes in %d files, of which %d and %d are left", total, len(files), b.bytes, b.entries)
		}
		again, err := unpack(pack(t, headers, func(h tar.Header) string { return content[h.Name] }), "", newBudget())
		if d := cmp.Diff(files, again, cmp.AllowUnexported(file{})); err != nil || d != "" {
			t.Errorf("packed again: %v %s", err, d)
		}
	})
}

// Of our own annotations only texts count: true without quotes is none.
func TestOurAnnotationsAreTexts(t *testing.T) {
	c, err := Load(archiveOf(tgz(t, map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: a\nversion: 1.0.0\nannotations: {zaentrum.io/addon: true, zaentrum.io/primary: \"7\", example.org/n: 1}\n",
	})))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]string{"zaentrum.io/primary": "7", "example.org/n": "1"}, c.Facts().Annotations); d != "" {
		t.Error(d)
	}
}
