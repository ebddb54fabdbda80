package lint

import (
	"strings"
	"testing"

	"zaentrum.io/zae/internal/render"
)

// TestATextIsHeldAgainstWhatWasGiven: what a template renders of one text is compared with what it renders of another
// one, field by field. The templates stand here as what they make of a text.
func TestATextIsHeldAgainstWhatWasGiven(t *testing.T) {
	t.Parallel()
	one := slot{path: "a", text: "Zs0123456789abcdefQx", input: "a"}
	const head = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n  annotations:\n    checksum: SUM\ndata:\n"
	quoted := func(text string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text) + `"`
	}
	indented := func(text string) string { return strings.ReplaceAll(text, "\n", "\n    ") }
	plain := func(text string) string { return text }
	for name, tc := range map[string]struct {
		line string // with TEXT where the text comes out
		made func(string) string
		bad  []int // the classes that do not come out
	}{
		"plain":                  {"  A: TEXT\n", plain, []int{anyClass, typeClass, plainClass, lineClass}},
		"plain, among others":    {"  A: http://TEXT/x\n", plain, []int{anyClass, plainClass, lineClass}},
		"in a flow list":         {"  A: '[]'\n  B: &b [x, TEXT]\n", plain, []int{anyClass, typeClass, plainClass, lineClass}},
		"in double quotes":       {"  A: \"TEXT\"\n", plain, []int{anyClass, quoteClass, lineClass}},
		"in single quotes":       {"  A: 'TEXT'\n", plain, []int{anyClass, quoteClass, lineClass}},
		"quoted":                 {"  A: TEXT\n", quoted, nil},
		"quoted twice in a line": {"  A: [TEXT, TEXT]\n", quoted, nil},
		"in a block":             {"  A: |\n    x = TEXT\n    y\n", plain, []int{anyClass, lineClass}},
		"in a block, indented":   {"  A: |-\n    TEXT\n  B: c\n", indented, nil},
		"a key":                  {"  TEXT: a\n", plain, []int{anyClass, plainClass, lineClass}},
		"in a comment":           {"  A: b # TEXT\n", plain, nil},
		"made into another one":  {"  A: TEXT\n", func(text string) string { return strings.NewReplacer(":", "", "#", "", "\n", "").Replace(text) + "x" }, nil},
		"left out if it is odd": {"  A: TEXT\n  B: c\n", func(text string) string {
			if text == one.text {
				return text
			}
			return "odd"
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var bad []int
			for n, c := range classes {
				text := c.texts[0]
				before := strings.ReplaceAll(head+tc.line, "TEXT", tc.made(one.text))
				after := strings.ReplaceAll(strings.ReplaceAll(head+tc.line, "TEXT", tc.made(text)), "SUM", "SUN")
				found := differ(render.Text{File: "templates/x.yaml", Text: before}, after, []slot{one}, map[string]string{one.text: text})
				if len(found) > 0 {
					bad = append(bad, n)
					if o := found[0]; o.object != "ConfigMap/x" || !strings.HasPrefix(o.path, "data") || o.file != "templates/x.yaml" {
						t.Errorf("%+v", o)
					}
				}
			}
			if len(bad) != len(tc.bad) {
				t.Fatalf("classes %d", bad)
			}
			for i := range bad {
				if bad[i] != tc.bad[i] {
					t.Fatalf("classes %d", bad)
				}
			}
		})
	}
}

func TestASecretInDataIsEncoded(t *testing.T) {
	t.Parallel()
	one := slot{path: "a", text: "Zs0123456789abcdefQx", input: "a", secret: true}
	const text = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: x\n"
	for name, tc := range map[string]struct {
		more string
		want bool
	}{
		"data":       {"data:\n  a: \"TEXT\"\n", true},
		"stringData": {"stringData:\n  a: TEXT\n", false},
	} {
		before := strings.ReplaceAll(text+tc.more, "TEXT", one.text)
		found := differ(render.Text{Text: before}, strings.ReplaceAll(text+tc.more, "TEXT", "yes-no"), []slot{one}, map[string]string{one.text: "yes-no"})
		if got := len(found) == 1 && found[0].encoded; got != tc.want {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

// TestLinesAreFoundAgain: what is around a text may change with it.
func TestLinesAreFoundAgain(t *testing.T) {
	t.Parallel()
	changes := func(line string) int { return strings.Index(line, "TEXT") }
	for name, tc := range map[string]struct{ before, after, want string }{
		"as it was":         {"a\nb: TEXT\nc\n", "a\nb: x\nc\n", "b: x"},
		"over two lines":    {"a\nb: TEXT\nc\n", "a\nb: x\ny\nc\n", "b: x|y"},
		"another sum":       {"a: 1\nd\nb: TEXT\nc\n", "a: 2\nd\nb: x\nc\n", "b: x"},
		"more lines before": {"a\nb: TEXT\nc\n", "e\nf\na\nb: x\nc\n", "b: x"},
		"not there":         {"a\nb: TEXT\nc\n", "a\nc\n", ""},
		"the last line":     {"a\nb: TEXT", "a\nb: x", "b: x"},
	} {
		got := align(strings.Split(tc.before, "\n"), strings.Split(tc.after, "\n"), changes)
		all := ""
		for _, lines := range got {
			all += strings.Join(lines, "|")
		}
		if all != tc.want {
			t.Errorf("%s: %q", name, all)
		}
	}
}
