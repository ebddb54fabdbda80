package lint

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"zaentrum.io/zae/internal/fault"
)

// maxExtra bounds a file that is not packed, in bytes.
const maxExtra = 1 << 20

// Extra reads the files of a chart's directory that are for lint and need not be packed: ci/*values.yaml and
// .zaelint.yaml. Links are not followed.
func Extra(dir string) (map[string][]byte, error) {
	names, err := filepath.Glob(filepath.Join(escapeGlob(dir), "ci", "*values.yaml"))
	if err != nil {
		return nil, fault.New(fault.Chart, "the directory ci of the chart cannot be read").Because(err)
	}
	out := map[string][]byte{}
	for _, name := range append(names, filepath.Join(dir, ExceptionsFile)) {
		info, err := os.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		inside := filepath.Base(name)
		if inside != ExceptionsFile {
			inside = path.Join("ci", inside)
		}
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxExtra {
			return nil, fault.New(fault.Chart, "%s is no file of at most 1 MiB", inside).Because(err)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fault.New(fault.Chart, "%s cannot be read", inside).Because(err)
		}
		out[inside] = text
	}
	return out, nil
}

func escapeGlob(dir string) string {
	var out []rune
	for _, r := range dir {
		if r == '*' || r == '?' || r == '[' || r == '\\' {
			out = append(out, '\\')
		}
		out = append(out, r)
	}
	return string(out)
}
