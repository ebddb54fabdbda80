// Package initchart is the chart that an author starts from: a small addon that keeps the contract, plans without a
// violation, with no warning but that its image has no digest, and passes Helm's own checks, as files that are built in.
package initchart

import (
	"embed"
	"io/fs"
	"strings"
)

//go:embed all:chart
var chart embed.FS

// stand is where the addon's name goes. In YAML it is quoted everywhere: a name may read as a number or a boolean.
const stand = "@NAME@"

// File is one file of the chart.
type File struct {
	Name string // with slashes, inside the chart
	Text string
}

// Files are the files of a chart of this name, in name order. The name must be an addon's.
func Files(name string) ([]File, error) {
	root, err := fs.Sub(chart, "chart")
	if err != nil {
		return nil, err
	}
	var out []File
	err = fs.WalkDir(root, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(root, file)
		if err != nil {
			return err
		}
		out = append(out, File{file, strings.ReplaceAll(string(text), stand, name)})
		return nil
	})
	return out, err
}
