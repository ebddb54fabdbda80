package chart

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/ignore"
	"sigs.k8s.io/yaml"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/manifest"
)

// Load loads a chart from its archive, within the limits: 10 MiB packed, 20 MiB unpacked with everything
// bundled in it, and plain files below one folder only. Faults are of the code Chart and say where, not what.
//
// The result may be shared with other callers: see Chart.
func Load(a *Archive) (*Chart, error) {
	if c, ok := a.parsed.get(a.Digest); ok {
		return c, nil
	}
	if len(a.Bytes) > maxArchive {
		return nil, fault.New(fault.Chart, "a chart archive of %s is over the limit of %s", size(int64(len(a.Bytes))), size(maxArchive))
	}
	b := newBudget()
	files, err := unpack(a.Bytes, "", b)
	if err != nil {
		return nil, err
	}
	c, err := load(files, b)
	if err != nil {
		return nil, err
	}
	c.Digest = a.Digest
	if digestOf(a.Bytes) == a.Digest { // nobody's mistake may poison what others get
		a.parsed.put(c)
	}
	return c, nil
}

// LoadDir loads a chart from a directory on this machine, within the same limits. Files that .helmignore
// names are left out; links are not followed.
func LoadDir(dir string) (*Chart, error) {
	b := newBudget()
	files, err := walk(dir, b)
	if err != nil {
		return nil, err
	}
	return load(files, b)
}

func walk(dir string, b *budget) ([]file, error) {
	rules := ignore.Empty()
	if f, err := os.Open(filepath.Join(dir, ignore.HelmIgnore)); err == nil {
		parsed, err := ignore.Parse(f)
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, fault.New(fault.Chart, "chart %s: .helmignore cannot be read", printable(dir)).Because(err)
		}
		rules = parsed
	}
	rules.AddDefaults()
	var files []file
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return fault.New(fault.Chart, "chart %s cannot be read", printable(dir)).Because(err)
		}
		if name == "." {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return fault.New(fault.Chart, "chart %s: %s cannot be read", printable(dir), printable(name)).Because(err)
		}
		if rules.Ignore(name, info) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if err := b.entry(); err != nil {
			return err
		}
		switch {
		case d.IsDir():
			if d.Name() == crdsDir {
				files = append(files, file{name: name + "/"})
			}
			return nil
		case !info.Mode().IsRegular():
			return fault.New(fault.Chart, "chart %s: %s is neither a file nor a folder", printable(dir), printable(name)).
				WithHint("links are not followed: put a copy in its place")
		}
		if err := b.take(info.Size()); err != nil {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			return fault.New(fault.Chart, "chart %s: %s cannot be read", printable(dir), printable(name)).Because(err)
		}
		files = append(files, file{name, []byte(strings.TrimPrefix(string(data), string(utf8BOM)))})
		return nil
	})
	return files, err
}

func load(files []file, b *budget) (*Chart, error) {
	l := &loading{budget: b}
	h, err := l.chart(files, "", 0)
	if err != nil {
		return nil, err
	}
	m := h.Metadata
	if err := checkKubeVersion(m.KubeVersion); err != nil {
		return nil, err
	}
	slices.Sort(l.crds)
	c := &Chart{
		Name:        m.Name,
		Version:     m.Version,
		AppVersion:  m.AppVersion,
		Description: m.Description,
		APIVersion:  m.APIVersion,
		Type:        m.Type,
		Annotations: m.Annotations,
		Schema:      h.Schema,
		Defaults:    h.Values,
		Subcharts:   valueKeys(h),
		CRDs:        l.crds,
		helm:        h,
		weight:      maxUnpacked - b.bytes,
	}
	return c, nil
}

// KubeVersion is the Kubernetes version that charts see and are checked against, whatever the cluster's is, so
// that a chart is the same everywhere.
const KubeVersion = "v1.37.0"

// checkKubeVersion refuses a chart that is not for KubeVersion, as Helm does. Like Helm, it is asked about the
// outermost chart only: a bundled one may be off, or may name a range that its vendor no longer keeps.
func checkKubeVersion(constraint string) error {
	if constraint == "" || chartutil.IsCompatibleRange(constraint, KubeVersion) {
		return nil
	}
	return unusable("", "Chart.yaml: kubeVersion: the chart requires %s, which Kubernetes %s is not", printable(constraint), KubeVersion).
		WithHint("take a version of the chart that is for Kubernetes %s", KubeVersion)
}

// valueKeys are the keys under which the bundled charts get their values.
func valueKeys(h *helmchart.Chart) []string {
	keys := map[string]bool{}
	for _, sub := range h.Dependencies() {
		keys[sub.Name()] = true
	}
	for _, d := range h.Metadata.Dependencies {
		if d.Alias != "" {
			keys[d.Alias] = true
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

// loading is the state of loading one chart with everything bundled in it.
type loading struct {
	budget *budget
	crds   []string
}

// chart assembles one chart of its files. at is where it is inside the outermost one: empty, or a path that
// ends in a slash. Helm reads one chart's own files only: bundled charts and values are read here, for
// their limits and number types.
func (l *loading) chart(files []file, at string, depth int) (*helmchart.Chart, error) {
	if depth > maxNesting {
		return nil, unusable(at, "charts within charts %d deep, over the limit of %d", depth, maxNesting)
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	var own []*loader.BufferedFile
	var meta, values, requirements []byte
	bundled := map[string][]file{}
	for _, f := range files {
		switch rest, inCharts := strings.CutPrefix(f.name, "charts/"); {
		case inCharts && filepath.Ext(f.name) != ".prov":
			name, inside, _ := strings.Cut(rest, "/")
			bundled[name] = append(bundled[name], file{inside, f.data})
		case strings.HasSuffix(f.name, "/"), f.name == "Chart.lock", f.name == "requirements.lock":
			// An empty folder; or what was locked when the chart was packed, which changes nothing now.
		case f.name == "values.yaml":
			values = f.data
		case f.name == "requirements.yaml":
			requirements = f.data
		default:
			if f.name == "Chart.yaml" {
				meta = f.data
			}
			own = append(own, &loader.BufferedFile{Name: f.name, Data: f.data})
		}
	}
	l.crds = append(l.crds, crds(files, at)...)
	if meta == nil {
		return nil, unusable(at, "Chart.yaml is missing")
	}
	about, err := document(at+"Chart.yaml", meta)
	if err != nil {
		return nil, err
	}
	h, err := loader.LoadFiles(own)
	if err != nil {
		return nil, badMetadata(at+"Chart.yaml", err)
	}
	// Helm makes texts of booleans and numbers. Of our own annotations only texts count.
	written, _ := about["annotations"].(map[string]any)
	maps.DeleteFunc(h.Metadata.Annotations, func(k, _ string) bool {
		_, isText := written[k].(string)
		return !isText && strings.HasPrefix(k, v1alpha1.GroupVersion.Group+"/")
	})
	h.Raw = nil // nothing reads it, and it would hold every file twice
	if requirements != nil {
		// Helm reads it for charts of any apiVersion.
		if _, err := document(at+"requirements.yaml", requirements); err != nil {
			return nil, err
		}
		if err := yaml.Unmarshal(requirements, h.Metadata); err != nil {
			return nil, badMetadata(at+"requirements.yaml", err)
		}
		if err := h.Validate(); err != nil {
			return nil, badMetadata(at+"requirements.yaml", err)
		}
	}
	if h.Values, err = document(at+"values.yaml", values); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(bundled)) {
		if strings.HasPrefix(name, "_") || strings.HasPrefix(name, ".") {
			continue
		}
		sub, err := l.bundled(bundled[name], at+"charts/"+name, depth+1)
		if err != nil {
			return nil, err
		}
		h.AddDependency(sub)
	}
	return h, missing(h, at)
}

// crds are the paths of what lies in the crds directory, or of the directory itself when it is empty.
func crds(files []file, at string) []string {
	var paths []string
	for _, f := range files {
		if strings.HasPrefix(f.name, crdsDir+"/") {
			paths = append(paths, at+f.name)
		}
	}
	if len(paths) > 1 { // the directory comes first
		paths = slices.DeleteFunc(paths, func(p string) bool { return p == at+crdsDir+"/" })
	}
	return paths
}

// bundled loads the chart at a path below charts: a folder or an archive.
func (l *loading) bundled(files []file, at string, depth int) (*helmchart.Chart, error) {
	if filepath.Ext(at) == ".tgz" {
		if len(files) != 1 || files[0].name != "" {
			return nil, unusable("", "%s is a folder and not an archive", printable(at))
		}
		var err error
		if files, err = unpack(files[0].data, at+": ", l.budget); err != nil {
			return nil, err
		}
	} else {
		files = slices.DeleteFunc(files, func(f file) bool { return f.name == "" })
	}
	return l.chart(files, at+"/", depth)
}

// document reads a file with one YAML mapping in it. No text is an empty mapping.
func document(path string, text []byte) (map[string]any, error) {
	docs, err := manifest.Decode(text)
	var de *manifest.DecodeError
	switch {
	case errors.As(err, &de):
		return nil, unusable("", "%s: %s", printable(path), de)
	case err != nil:
		return nil, unusable("", "%s: not valid YAML", printable(path))
	case len(docs) == 0:
		return map[string]any{}, nil
	case len(docs) > 1:
		return nil, unusable("", "%s: more than one YAML document", printable(path))
	}
	m, ok := docs[0].(map[string]any)
	if !ok {
		return nil, unusable("", "%s: not a mapping", printable(path))
	}
	return m, nil
}

// badMetadata says what Helm does not like about a chart's description of itself.
func badMetadata(path string, err error) *fault.Fault {
	var ve helmchart.ValidationError
	var te *json.UnmarshalTypeError
	switch {
	case errors.As(err, &ve):
		return unusable("", "%s: %s", printable(path), strings.TrimPrefix(ve.Error(), "validation: "))
	case errors.As(err, &te) && te.Field != "":
		return unusable("", "%s: %s: a value of the wrong type", printable(path), printable(te.Field))
	default:
		return unusable("", "%s: not a valid description of a chart", printable(path))
	}
}

// missing names the dependencies of h that are not bundled with it.
func missing(h *helmchart.Chart, at string) error {
	var names []string
	for _, d := range h.Metadata.Dependencies {
		there := slices.ContainsFunc(h.Dependencies(), func(sub *helmchart.Chart) bool {
			return sub.Name() == d.Name && (d.Version == "" || chartutil.IsCompatibleRange(d.Version, sub.Metadata.Version))
		})
		if !there {
			names = append(names, printable(strings.TrimSpace(d.Name+" "+d.Version)))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return unusable(at, "missing from charts/: %s", strings.Join(names, ", ")).
		WithHint("nothing is downloaded for a chart: run helm dependency build before packaging it")
}

// unusable is a fault of a chart at a place inside it; at is empty, or a path that ends in a slash.
func unusable(at, format string, args ...any) *fault.Fault {
	where := ""
	if at != "" {
		where = printable(strings.TrimSuffix(at, "/")) + ": "
	}
	return fault.New(fault.Chart, "chart: %s%s", where, fmt.Sprintf(format, args...))
}
