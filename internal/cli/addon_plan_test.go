package cli

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/apply"
	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/engine"
	"zaentrum.io/zae/internal/guard"
	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/manifest"
	"zaentrum.io/zae/internal/values"
)

// The objects are those that the operator applies, byte for byte, apart from the owner reference, which has the UID of the
// resource in it, and the digest over all of it.
func TestTheObjectsAreTheOperators(t *testing.T) {
	t.Parallel()
	for name, secrets := range map[string]map[string]string{
		exampleChart: {"database.url": "postgres://c4n4ry"}, "../../examples/tiny": nil, "../../examples/example/1.2.0": {"database.url": "x"},
	} {
		o := &offlineFlags{platform: file(t, "p.yaml", platformText)}
		for path, text := range secrets {
			o.given.secrets = append(o.given.secrets, path+"=@"+file(t, "secret", text))
			o.given.set = []string{"worker.replicas=2"}
		}
		c, err := onBench(t, offlineApp(t), o, name)
		if err != nil {
			t.Fatal(err)
		}
		checked, err := c.check(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := c.wanted(checked)

		// As the operator does it, from the resource of the cluster.
		packed, err := chart.ReadLocal(name)
		if err != nil {
			t.Fatal(err)
		}
		e := &engine.Engine{Fetch: held{packed}, Worker: c.pool}
		request := engine.Request{Name: c.request.Name, Namespace: "home", Platform: c.platform, Generated: c.placeholder}
		for path, text := range secrets {
			request.Spec = map[string]any{"worker": map[string]any{"replicas": int64(2)}}
			request.From = append(request.From, values.From{TargetPath: path, Text: text})
		}
		theirs, err := e.Check(t.Context(), request)
		if err != nil || theirs.Blocked() {
			t.Fatal(theirs, err)
		}
		want := apply.Decorate(theirs.Objects, engine.Marks(apply.Owner{
			APIVersion: "zaentrum.io/v1alpha1", Kind: "ZaentrumAddon", Namespace: "home", Name: c.request.Name, UID: "0b8a0f0e",
		}, theirs.PartOf, theirs.Checksum))
		if len(got) != len(want) || len(got) == 0 {
			t.Fatalf("%d objects, the operator has %d", len(got), len(want))
		}
		for i := range want {
			if refs := want[i].Unstructured().GetOwnerReferences(); len(refs) != 1 {
				t.Fatalf("%s has no owner", want[i].ID())
			}
			disown(want[i].Tree)
			a, _ := json.Marshal(got[i].Tree)
			b, _ := json.Marshal(want[i].Tree)
			if !bytes.Equal(a, b) {
				t.Errorf("%s: %s", name, cmp.Diff(string(b), string(a)))
			}
		}
		// And printed, they are still the same.
		m := &masker{hidden: new(redactor), show: true}
		text, err := m.documents(got)
		if err != nil {
			t.Fatal(err)
		}
		docs, err := manifest.Decode([]byte(text))
		if err != nil || len(docs) != len(want) {
			t.Fatalf("%d documents, %v", len(docs), err)
		}
		for i := range want {
			if d := cmp.Diff(any(want[i].Tree), docs[i]); d != "" {
				t.Error(d)
			}
		}
	}
}

// FuzzYAML: what is written is read again as it was, and steers no terminal.
func FuzzYAML(f *testing.F) {
	for _, s := range []string{"", "a", "yes", "1e3", "0x10", "- a", "a: b", "#", "a\nb", "a\n\n", " a\nb", "\ta\nb", "a\x1b[2J", "\u202eabc", "~", "!!x", "&a", "'", "\"", "\r\n", "|", "1Gi", ".5", "2001-01-01", "=", "<<", "\ufeff", "a \nb"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, key, text string) {
		if !utf8.ValidString(key) || !utf8.ValidString(text) {
			return
		}
		want := map[string]any{"l": []any{text, int64(1), 1.5, nil, true}, "m": map[string]any{key: text}}
		out, err := yamlText(want)
		if err != nil {
			t.Fatal(err)
		}
		if strings.ContainsFunc(out, func(r rune) bool { return r != '\n' && steers(r) }) {
			t.Errorf("steers: %q", out)
		}
		docs, err := manifest.Decode([]byte(out))
		if err != nil || len(docs) != 1 {
			t.Fatalf("%q: %v", out, err)
		}
		if d := cmp.Diff(any(want), docs[0]); d != "" {
			t.Errorf("%q: %s", out, d)
		}
	})
}

var codeCell = regexp.MustCompile(`^<code>([A-Za-z0-9 /,.:-]|[^\x00-\x7f]|&#[0-9]+;)*</code>$`)

// FuzzMarkdown: no text of a chart is read as markup.
func FuzzMarkdown(f *testing.F) {
	for _, s := range []string{"", "a|b", `a\|b`, "`a`", "<img src=x>", "a\nb", "@everyone", "#1", "http://x.org", "WWW.x.org", "**a**", "&amp;", "[a](b)", "</code>", "---"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m := &markdown{show: printable}
		got := m.code(text)
		if got != "-" && !codeCell.MatchString(got) {
			t.Errorf("%q: got %q", text, got)
		}
		if strings.Contains(got, "://") || strings.Contains(strings.ToLower(got), "www.") {
			t.Errorf("%q: a link in %q", text, got)
		}
	})
}

// A chart that writes markup into all its texts changes nothing about the tables.
func TestChartTextBreaksOutOfNoTable(t *testing.T) {
	t.Parallel()
	const evil = "x | y\n| a | b |\n\n# head <script>alert(1)</script> `code` @someone [l](http://evil.example) \\| ![i](http://evil.example/i.png)"
	p := &v1alpha1.Plan{
		Chart:   v1alpha1.PlanChart{Name: evil, Version: evil, Digest: evil},
		Objects: []v1alpha1.ObjectRef{{Kind: evil, Name: evil}}, Warnings: []string{evil}, ValuesErrors: []string{evil}, Violations: []string{evil},
		Workloads: []v1alpha1.Workload{{Kind: evil, Name: evil, Images: []string{evil}}},
		Inputs:    []v1alpha1.PlanInput{{Path: evil, State: v1alpha1.InputUnset}},
	}
	v := &planView{doc: &apitype.AddonChart{Name: evil, Plan: p}, inputs: []inputs.Input{{Path: evil, Type: "string", Title: evil}}}
	got := markdownPlan(printable, v, []guard.Finding{{Rule: "r", Level: guard.Refuse, Kind: evil, Name: evil, What: evil, Source: evil}})
	columns := 0
	for line := range strings.Lines(got) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "| ---"), strings.HasPrefix(line, "|"):
			n := strings.Count(line, "|")
			if columns > 0 && n != columns {
				t.Errorf("a row of %d cells in a table of %d: %s", n-1, columns-1, line)
			}
			columns = n
		default:
			columns = 0
		}
	}
	for _, bad := range []string{"<script", "`", "@someone", "http://", "# head", "[l]", "![", `\|`} {
		if strings.Contains(got, bad) {
			t.Errorf("%s is in %s", bad, got)
		}
	}
	if n := strings.Count(got, "\n#### "); n != 7 {
		t.Errorf("%d headings:\n%s", n, got)
	}
}
