package render

import (
	"errors"
	"strings"
	"testing"
)

// costly are what a template can spend time and memory with, which is bounded outside of this process.
var costly = []string{
	"repeat", "until", "seq", "indent", "gen", "crypt", "tpl", "nospace", "wrap", "%", "derive", "htpasswd", "range", "template", "include", "rand", "block",
}

// FuzzSanitiser looks for a way to get a value into an error: by the text of an error, by a template, and by a
// template's file name. Whatever they are, nothing comes out but places, and no place is one that they made up.
func FuzzSanitiser(f *testing.F) {
	places := []string{"", "example/templates/worker.yaml", "example/templates/worker.yaml:1:2", "example/templates/worker.yaml:x", "gotpl:1:1", "example/templates/worker.yaml:99999999:1"}
	for _, prefix := range append([]string{"", "x"}, prefixes...) {
		for _, place := range places {
			f.Add(prefix+place+"): "+canary, "a: b", "worker.yaml")
			f.Add(prefix+place+": executing "+canary, "{{ fail .Values.secret }}", "a.yaml")
		}
	}
	for _, text := range []string{
		"{{ .Values.secret.x }}", "a: {{ .Values.secret }}: b", "{{ tpl .Values.secret . }}", "{{ index .Values.list 3 }}",
		"{{ required .Values.secret nil }}", "{{ include .Values.secret . }}", "{{ .Values.map | toYaml }}\n- x", "{{ template \"x\" .Values.secret }}",
		"{{ range .Values.list }}{{ .x }}{{ end }}", "{{ fromYaml .Values.secret }}", "{{ .Files.Get .Values.secret }}", "{{ printf \"%d\" .Values.secret }}: {{ .Values.secret }}: x",
		"{{ semver .Values.secret }}", "{{ .Values.secret | toDate \"x\" | date \"y\" }}", "{{ regexMatch .Values.secret \"(\" }}", "{{ mustRegexMatch \"(\" .Values.secret }}", "{{ set .Values.secret \"a\" 1 }}",
		"{{ lookup .Values.secret \"\" \"\" \"\" }}", "{{ get .Values.secret \"x\" }}", "{{ mustFromJson .Values.secret }}", "{{ genSignedCert .Values.secret nil nil 1 nil }}", "{{ merge .Values.map .Values.secret }}",
		"{{ mustToJson . }}: x: y", "{{ call .Values.secret }}", "{{ slice .Values.secret 99 }}", "{{ len .Values.missing }}{{ .Values.secret }}", "{{ htpasswd .Values.secret \"\\x00\" }}", "{{ derivePassword 1 \"long\" .Values.secret .Values.secret .Values.secret.x }}",
		"{{ if }}", "{{", "{{ define \"x\" }}", "kind: List\nitems: {{ .Values.secret }}", "{{ .Values.secret }}: 1\n{{ .Values.secret }}: 2", "- {{ .Values.secret }}",
	} {
		f.Add("", text, "a.yaml")
	}
	for _, name := range []string{"a: b.yaml", "a:1:1): z.yaml", "a\u202e.yaml", "execution error at (b:1:1)", "sub/a.yaml", "a)", "a:1", "a:1:1", "a:9:9): " + "x", "template: a.yaml", "_a.tpl", "a\nb"} {
		f.Add("execution error at (example/templates/"+name+":1:1): "+canary, "{{ fail .Values.secret }}", name)
		f.Add("parse error at ("+name+"): "+canary, "a: {{ .Values.secret }}: b", name)
	}
	f.Fuzz(func(t *testing.T, failure, text, name string) {
		for _, c := range costly {
			if strings.Contains(text, c) && !strings.HasPrefix(text, "{{ "+c) {
				return
			}
		}
		if strings.Contains(text+name, canary) || len(text) > 2000 || len(name) > 200 {
			return
		}
		c := tryChart(t, exampleChart("templates/"+name, text))
		if c == nil {
			return
		}
		h := c.Helm()
		checkPlace(t, where(errors.New(failure), h), templates(h))
		given := map[string]any{"secret": canary, "list": []any{canary, map[string]any{"x": canary}}, "map": map[string]any{"a": canary, "b": map[string]any{canary: canary}}}
		_, errs := Render(t.Context(), inputOf(c, given))
		for _, e := range errs {
			if strings.Contains(e, canary) {
				t.Errorf("%q in %q: %q", text, name, e)
			}
			if strings.HasPrefix(e, "template error") {
				checkPlace(t, e, templates(h))
			}
		}
	})
}

// checkPlace: the error is "template error" alone, or with the name of a template that there is and a few digits.
func checkPlace(t *testing.T, e string, names []string) {
	t.Helper()
	rest, ok := strings.CutPrefix(e, "template error")
	if !ok {
		t.Errorf("%q is no template error", e)
	}
	if rest == "" {
		return
	}
	rest = strings.TrimPrefix(strings.TrimPrefix(rest, " at "), " in ")
	for _, name := range names {
		position, ok := strings.CutPrefix(rest, printable(name))
		if ok && len(position) <= len(":1234567:1234567") && strings.Trim(position, ":0123456789") == "" {
			return
		}
	}
	t.Errorf("%q is no place among %q", e, names)
}
