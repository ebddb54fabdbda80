package lint

import (
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/worker"
)

// TestMarksChangeNothing: what marked templates render is, without the marks, what the templates render.
func TestMarksChangeNothing(t *testing.T) {
	t.Parallel()
	dirs, err := filepath.Glob("../../examples/lint/*")
	if err != nil {
		t.Fatal(err)
	}
	dirs = append(dirs, "../../examples/example/1.2.0", "../../examples/example/1.3.0", "../../examples/tiny", "../initchart/chart")
	compared, found := 0, 0
	for _, dir := range dirs {
		archive, err := chart.ReadLocal(dir)
		if err != nil {
			continue
		}
		files, err := chart.Files(archive)
		if err != nil {
			t.Fatal(err)
		}
		var direct worker.Direct
		c, err := direct.Inspect(t.Context(), archive)
		if err != nil || c.SchemaError != "" {
			continue
		}
		loaded, err := chart.Load(archive)
		if err != nil {
			t.Fatal(err)
		}
		space := spaceOf(t, string(c.Schema), loaded.Defaults)
		rows, _ := space.rows(10)
		for _, named := range []bool{true, false} {
			marked, m := markFiles(files, named)
			again, err := chart.Repack(c.Facts.Name, marked)
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range rows {
				job := space.give(row).job(c.Facts.Name, platformKeys())
				job.Texts = true
				plain, err1 := direct.Render(t.Context(), archive, job)
				with, err2 := direct.Render(t.Context(), again, job)
				if err1 != nil || err2 != nil {
					t.Fatal(err1, err2)
				}
				if strings.HasSuffix(dir, "random") || strings.HasSuffix(dir, "clock") {
					continue
				}
				compared++
				for i, text := range plain.Texts {
					read := m.read(with.Texts[i].Text)
					if read.text != text.Text {
						t.Errorf("%s: %s renders otherwise with marks", dir, text.File)
					}
					found += placesIn(read)
				}
			}
		}
	}
	if compared < 100 || found < 2000 {
		t.Errorf("%d renders compared, with %d marks", compared, found)
	}
}

func placesIn(t *markedText) int {
	n := 0
	for _, line := range t.lines {
		n += len(line)
	}
	return n
}

func TestMarksAreTakenOutAgain(t *testing.T) {
	t.Parallel()
	for n := range maxMarks {
		if r := markRune(n); !utf8.ValidRune(r) || r >= firstMark+maxMarks && r < secondMark {
			t.Fatalf("%d is %U", n, r)
		}
	}
	for _, text := range []string{
		"", "a", "a: b\n\n  - c: {{ .d }}\n", "{{- if .a -}}\n  b: c\n{{- end }}\nd: e", "{{ $k }}: v\n\"{{ $k }}\": v\n", "a:\r\n- b\r\n-\r\n",
		"{{ define \"x\" }}\ny: z\nplain\n{{ end }}{ a: b }\n{{ .x }}plain\n", "{{ broken", "ä: ö\n  ü: {{ \"ß\" }}: x\n",
	} {
		for _, named := range []bool{true, false} {
			m := &marks{}
			marked := m.mark("templates/x.yaml", text, named)
			if got := m.read(marked).text; got != text {
				t.Errorf("%q becomes %q", text, got)
			}
			for _, o := range m.places {
				if o.at.line < 1 || o.at.column < 1 {
					t.Errorf("%q: %+v", text, o)
				}
			}
		}
	}
}

func TestTheFirstBrokenLineIsFound(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"a: b\nc: \"d\" e\nf: g\n":                              2,
		"a:\n  b: c\n  d:\n    e: f\n   g: h\ni: j\n":           5,
		"a: [1,\n  2,\n  3]\nb: \"x\n  y\"\nc: 'd' 'e'\nf: 1\n": 6,
		"a: b\n---\nc: |\n  d\ne: {{\n":                         5,
		"a: \"b\n":                                              1,
		"a: b\n\tc: d":                                          2,
	} {
		if got := brokenLine(text); got != want {
			t.Errorf("%q: line %d, not %d", text, got, want)
		}
	}
}

// FuzzPlaces: whatever is rendered, its places are looked for to an end.
func FuzzPlaces(f *testing.F) {
	f.Add("apiVersion: v1\nkind: List\nitems:\n- &a {kind: x, metadata: {name: y, a.b/c: [1, {d: e}]}}\n- *a\n", "metadata[a.b/c][1].d")
	f.Add("a: \"b\nc: d", "a")
	f.Fuzz(func(_ *testing.T, text, path string) {
		brokenLine(text)
		for _, doc := range documents(text) {
			descend(doc, path)
		}
		m := &marks{}
		m.read(m.mark("templates/x.yaml", text, true))
	})
}
