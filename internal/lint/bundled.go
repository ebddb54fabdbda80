package lint

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// bundled is a chart below charts/. Helm calls its files by the names of charts, or their aliases; in the archive they
// lie in a directory of some name, or in an archive of their own.
type bundled struct {
	helm, file string // both without a slash at the end
	packed     bool
}

// dependencies are what a Chart.yaml says of bundled charts.
type dependencies struct {
	Name         string
	Dependencies []struct{ Name, Alias string }
}

var packedName = regexp.MustCompile(`^(.+?)-v?[0-9]+\.[0-9]+\.[0-9]+.*\.tgz$`)

// bundles are the charts below the one that lies at dir and that Helm has at helm, with those in them.
func bundles(text map[string]string, helm, dir string) []bundled {
	var own dependencies
	_ = yaml.Unmarshal([]byte(text[path.Join(dir, chartFile)]), &own) // it was loaded before
	var out []bundled
	seen := map[string]bool{}
	for file := range text {
		rest, below := strings.CutPrefix(file, path.Join(dir, "charts")+"/")
		name, inside, folder := strings.Cut(rest, "/")
		at := path.Join(dir, "charts", name)
		if !below || seen[at] {
			continue
		}
		seen[at] = true
		if !folder || inside == "" {
			if m := packedName.FindStringSubmatch(name); m != nil {
				for _, called := range own.calls(m[1]) {
					out = append(out, bundled{path.Join(helm, "charts", called), at, true})
				}
			}
			continue
		}
		var sub dependencies
		_ = yaml.Unmarshal([]byte(text[path.Join(at, chartFile)]), &sub)
		for _, called := range own.calls(cmp.Or(sub.Name, name)) {
			as := path.Join(helm, "charts", called)
			out = append(out, bundled{as, at, false})
			out = append(out, bundles(text, as, at)...)
		}
	}
	slices.SortFunc(out, func(a, b bundled) int { // what is further inside comes first
		return cmp.Or(cmp.Compare(len(b.helm), len(a.helm)), cmp.Compare(a.helm, b.helm), cmp.Compare(a.file, b.file))
	})
	return out
}

// calls are the names by which a bundled chart is called: its own, and its aliases.
func (d *dependencies) calls(name string) []string {
	out := []string{name}
	for _, one := range d.Dependencies {
		if one.Name == name && one.Alias != "" {
			out = append(out, one.Alias)
		}
	}
	return out
}

// realFile is a file as it lies in the archive, unless it is in one of its own.
func (l *linter) realFile(file string) string {
	if _, there := l.text[file]; there {
		return file
	}
	for _, b := range bundles(l.text, "", "") {
		if rest, ok := strings.CutPrefix(file, b.helm+"/"); ok && !b.packed {
			return path.Join(b.file, rest)
		}
	}
	return file
}

// realFiles names files as they lie in the archive.
func (l *linter) realFiles() {
	all := bundles(l.text, "", "")
	for i, f := range l.f.list {
		if _, there := l.text[f.File]; there || !strings.HasPrefix(f.File, "charts/") {
			continue
		}
		for _, b := range all {
			rest, ok := strings.CutPrefix(f.File, b.helm+"/")
			if !ok {
				continue
			}
			if f.source == "" {
				f.source = f.File
			}
			f.File = path.Join(b.file, rest)
			if b.packed {
				where := b.helm + "/" + rest
				if f.Line > 0 {
					where += fmt.Sprintf(":%d", f.Line)
				}
				f.Message += " (in " + where + ")"
				f.File, f.Line, f.Column = b.file, 0, 0
			}
			l.f.replace(i, f)
			break
		}
	}
}
