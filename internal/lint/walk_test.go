package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/render"
)

// TestWhatTemplatesReadIsFollowed: what is read is known, and what is not read is, too. Each template reads a.b, or
// all of a or everything; "a.c" is read only where the case says so.
func TestWhatTemplatesReadIsFollowed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text string
		c    bool // a.c is read, too
	}{
		"a path":                   {`{{ .Values.a.b }}`, false},
		"from the root":            {`{{ range list 1 2 }}{{ $.Values.a.b }}{{ end }}`, false},
		"in a pipe":                {`{{ .Values.a.b | default "x" | quote }}`, false},
		"with":                     {`{{ with .Values.a }}{{ .b }}{{ end }}`, false},
		"with and all of it":       {`{{ with .Values.a }}{{ toYaml . }}{{ end }}`, true},
		"with else":                {`{{ with .Values.x }}{{ .c }}{{ else }}{{ .Values.a.b }}{{ end }}`, false},
		"a variable":               {`{{ $a := .Values.a }}{{ $a.b }}`, false},
		"a variable set inside":    {`{{ $a := .Values.x }}{{ if .Values.y }}{{ $a = .Values.a }}{{ end }}{{ $a.b }}`, false},
		"range over it":            {`{{ range $k, $v := .Values.a }}{{ $k }}{{ end }}`, true},
		"include":                  {`{{ define "t" }}{{ .Values.a.b }}{{ end }}{{ include "t" . }}`, false},
		"include with a part":      {`{{ define "t" }}{{ .b }}{{ end }}{{ include "t" .Values.a }}`, false},
		"include with a dict":      {`{{ define "t" }}{{ .top.Values.a.b }}{{ end }}{{ include "t" (dict "top" $ "x" 1) }}`, false},
		"include with a dict of a": {`{{ define "t" }}{{ .it.b }}{{ end }}{{ include "t" (dict "it" .Values.a) }}`, false},
		"template":                 {`{{ define "t" }}{{ .b }}{{ end }}{{ template "t" .Values.a }}`, false},
		"itself again":             {`{{ define "t" }}{{ .Values.a.b }}{{ if .x }}{{ include "t" . }}{{ end }}{{ end }}{{ include "t" . }}`, false},
		"index":                    {`{{ index .Values "a" "b" }}`, false},
		"index by something":       {`{{ index .Values.a .Values.key }}`, true},
		"get":                      {`{{ get .Values.a "b" }}`, false},
		"dig":                      {`{{ dig "a" "b" "x" .Values }}`, false},
		"hasKey":                   {`{{ if hasKey .Values.a "b" }}x{{ end }}`, false},
		"required":                 {`{{ required "x" .Values.a.b }}`, false},
		"in parentheses":           {`{{ (.Values.a).b }}`, false},
		"a merge":                  {`{{ (merge (dict) .Values.a).b }}`, false},
		"tpl of what is written":   {`{{ tpl "{{ .Values.a.b }}" . }}`, false},
		"tpl of a value":           {`{{ tpl .Values.x . }}`, true},
		"everything":               {`{{ toYaml .Values }}`, true},
		"a name that is made":      {`{{ include (printf "%s" .Values.x) . }}`, true},
		"nothing that parses":      {`{{ if }}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := readsOf([]render.Source{{File: "templates/x.yaml", Text: tc.text}})
			if !r.reads([]string{"a", "b"}) {
				t.Errorf("a.b is not read: %+v", r.list)
			}
			if got := r.reads([]string{"a", "c"}); got != tc.c {
				t.Errorf("a.c is read: %v, %+v", got, r.list)
			}
		})
	}
}

func TestPartialsAreReadWhereTheyAreCalled(t *testing.T) {
	t.Parallel()
	helpers := render.Source{File: "templates/_h.tpl", Partial: true, Text: `{{ define "t" }}{{ .Values.a }}{{ end }}{{ define "u" }}{{ .Values.b }}{{ end }}`}
	r := readsOf([]render.Source{helpers, {File: "templates/x.yaml", Text: "x:\n  y: {{ include \"t\" . }}"}})
	if !r.reads([]string{"a"}) || r.reads([]string{"b"}) {
		t.Errorf("%+v", r.list)
	}
	if at := r.list[0]; at.file != "templates/_h.tpl" || at.at != (position{1, 20}) {
		t.Errorf("%+v", at)
	}
}

func TestBundledChartsReadBelowTheirKey(t *testing.T) {
	t.Parallel()
	r := readsOf([]render.Source{{File: "charts/s/templates/x.yaml", Values: []string{"s"}, Text: `{{ .Values.a }}{{ .Values.global.g }}`}})
	for path, want := range map[string]bool{"s.a": true, "a": false, "global.g": true, "s.global.g": true, "s.global.h": false} {
		if got := r.reads(strings.Split(path, ".")); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

func TestWhatGrowsWithoutEndIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"lists in lists": `{{ $x := list . .Values.a }}` + strings.Repeat(`{{ $x = dict "a" $x "b" $x }}`, 60) + `{{ $x }}`,
		"calls in calls": `{{ define "t" }}{{ include "t" (dict "a" . "b" .) }}{{ end }}{{ include "t" . }}`,
		"deep":           strings.Repeat(`{{ if .Values.x }}`, maxActions+1) + strings.Repeat(`{{ end }}`, maxActions+1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if r := readsOf([]render.Source{{File: "templates/x.yaml", Text: text}}); !r.all {
				t.Error("was followed to the end")
			}
		})
	}
}

// spaceOf is what a schema lets be given over a chart's own values.
func spaceOf(t *testing.T, schema string, defaults map[string]any) *space {
	t.Helper()
	return newSpace(schemaOf(t, schema), &chart.Chart{Schema: []byte(schema), Defaults: defaults}, defaults, nil, nil)
}

func schemaOf(t *testing.T, schema string) *inputs.Schema {
	t.Helper()
	s, err := inputs.Parse([]byte(schema))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestEveryPairOfValuesIsThere: with room enough, any two values of two inputs are in one row, each value by itself
// comes before, and the first row gives nothing.
func TestEveryPairOfValuesIsThere(t *testing.T) {
	t.Parallel()
	s := spaceOf(t, `{"properties": {
		"a": {"enum": ["x", "y", "z"]}, "b": {"type": "boolean"}, "c": {"type": "integer", "minimum": 1, "maximum": 5},
		"d": {"type": "string"}, "e": {"type": "number", "exclusiveMinimum": 0}, "f": {"enum": [1, 2]}}}`, map[string]any{"b": true})
	sizes := []int{4, 2, 3, 2, 2, 3}
	if len(s.params) != len(sizes) {
		t.Fatalf("%d params", len(s.params))
	}
	rows, more := s.rows(1000)
	if more != 0 {
		t.Errorf("%d pairs are left", more)
	}
	seen := map[string]bool{}
	for _, r := range rows {
		for i := range r.picks {
			for j := range i {
				seen[fmt.Sprint(i, r.picks[i], j, r.picks[j])] = true
			}
		}
	}
	want := 0
	for i := range sizes {
		if len(s.params[i].choices) != sizes[i] {
			t.Errorf("%s: %d choices", s.params[i].input.Path, len(s.params[i].choices))
		}
		for j := range i {
			want += sizes[i] * sizes[j]
		}
	}
	if len(seen) != want {
		t.Errorf("%d of %d pairs", len(seen), want)
	}
	if all := 4 * 2 * 3 * 2 * 2 * 3; len(rows) > all/8 {
		t.Errorf("%d rows of %d", len(rows), all)
	}
	if slices.Max(rows[0].picks) != 0 {
		t.Error("the first row gives something")
	}
	few, more := s.rows(4)
	if len(few) != 4 || more == 0 {
		t.Errorf("%d rows, %d left", len(few), more)
	}
}

// TestEachAlternativeIsARow: what the schema asks for on a condition is given, each alternative by itself, and no row is
// one that the schema refuses.
func TestEachAlternativeIsARow(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		schema string
		rows   []string
	}{
		"one of": {`{"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"a": {"enum": ["x"]}, "b": {"type": "string"}}}`, []string{"", "b given"}},
		"one of in a group": {`{"required": ["g"], "properties": {"g": {"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}, "b": {"type": "string"}},
			"oneOf": [{"required": ["a"], "properties": {"b": false}}, {"required": ["b"], "properties": {"a": false}}]}}}`, []string{"", "g.b given"}},
		"any of": {`{"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}`,
			[]string{"", "b given", "b given"}},
		"a kind that is told by a constant": {`{"required": ["kind"], "properties": {"kind": {"type": "string"}}, "oneOf": [
			{"properties": {"kind": {"const": "plain"}}}, {"required": ["path"], "properties": {"kind": {"const": "file"}, "path": {"type": "string"}}}]}`,
			[]string{"", "kind=file, path given", "path given"}},
		"a condition": {`{"properties": {"a": {"type": "string"}}, "if": {"properties": {"a": {"const": "on"}}, "required": ["a"]}, "then": {"required": ["b"], "properties": {"b": {"type": "integer", "minimum": 2}}}}`,
			[]string{"", "a=on, b given", "a given", "b=2", "a=on, b given, a given, b=2"}},
		"a condition that cannot be said": {`{"properties": {"a": {"type": "boolean"}, "b": {"type": "string", "minLength": 2}}, "if": {"not": {"properties": {"a": {"const": false}}}}, "then": {"required": ["b"]}}`,
			[]string{"", "a=false", "a=true", "b given", "a=false, b given"}},
		"null":          {`{"properties": {"a": {"type": ["string", "null"], "minLength": 1}}}`, []string{"", "a given", "a=null"}},
		"several types": {`{"properties": {"a": {"type": ["string", "integer", "array"], "items": {"type": "string"}}}}`, []string{"", "a as a text", "a as a number", "a given", "a=[]"}},
		"what is in a list": {`{"required": ["a"], "properties": {"a": {"type": "array", "items": {"type": "object", "required": ["n"], "properties": {"n": {"type": "string"}}}}}}`,
			[]string{"", "a=[]"}},
		"a map of anything":         {`{"properties": {"a": {"type": "object"}}}`, []string{"", "a={}"}},
		"a null that is in the way": {`{"required": ["a"], "properties": {"a": {"type": ["string", "null"]}}}`, []string{"", "a=null"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := spaceOf(t, tc.schema, nil)
			rows, more := s.rows(1000)
			var got []string
			for _, r := range rows {
				got = append(got, strings.Join(s.says(r), ", "))
				if problems := s.problems(s.give(r)); len(problems) > 0 {
					t.Errorf("%v: %q", got[len(got)-1], problems)
				}
			}
			if !slices.Equal(got, tc.rows) || more != 0 {
				t.Errorf("%q, %d more", got, more)
			}
		})
	}
}

func TestSecretsInListsAreGivenAsSecrets(t *testing.T) {
	t.Parallel()
	s := spaceOf(t, `{"required": ["users"], "properties": {"users": {"type": "array", "items": {"type": "object", "required": ["name", "password"],
		"properties": {"name": {"type": "string"}, "password": {"type": "string", "writeOnly": true}}}}}}`, nil)
	rows, _ := s.rows(1)
	g := s.give(rows[0])
	if len(g.spec) > 0 || len(g.from) != 1 || g.from[0].Document == nil || len(g.secrets) != 2 || g.secrets["users[1].password"] == "" {
		t.Errorf("%+v", g)
	}
	l := &linter{space: s}
	other := l.otherSecrets(g)
	for path, text := range g.secrets {
		if other.secrets[path] == text || len(other.secrets[path]) == len(text) {
			t.Errorf("%s is the same", path)
		}
		if swappedText := fmt.Sprint(other.from[0].Document); strings.Contains(swappedText, text) || !strings.Contains(swappedText, other.secrets[path]) {
			t.Errorf("%s", swappedText)
		}
	}
}

// TestAFindingSaysWhatOneOfItsRendersSays: whoever gives just that sees it.
func TestAFindingSaysWhatOneOfItsRendersSays(t *testing.T) {
	t.Parallel()
	s := spaceOf(t, `{"properties": {"a": {"enum": ["x", "y"]}, "b": {"type": "boolean"}}}`, nil)
	rows := []row{{picks: []int{0, 0}}, {picks: []int{1, 0}}, {picks: []int{1, 2}}, {picks: []int{2, 2}}, {picks: []int{0, 0}, file: "ci/values.yaml"}}
	for want, at := range map[string][]int{"": {0, 1}, "a=x": {1, 2}, "first a=x b=true": {2, 3}, "a=x b=true": {2}, "ci/values.yaml": {4}, "first a=x": {1, 3}} {
		with, first := s.shows(rows, at)
		if first {
			with = append([]string{"first"}, with...)
		}
		if got := strings.Join(with, " "); got != want {
			t.Errorf("%v: %q, not %q", at, got, want)
		}
	}
	if got, _ := s.shows(rows, []int{static}); got != nil {
		t.Errorf("static: %q", got)
	}
	for want, at := range map[string][]int{"b=true": {2, 3}, "a=x b=true": {2}, "": {0, 2}} {
		if got := strings.Join(s.common(rows, at), " "); got != want {
			t.Errorf("%v have %q in common, not %q", at, got, want)
		}
	}
}

func TestMadeUpValuesAreAccepted(t *testing.T) {
	t.Parallel()
	for name, schema := range map[string]string{
		"plain":     `{"type": "string"}`,
		"long":      `{"type": "string", "minLength": 100}`,
		"short":     `{"type": "string", "maxLength": 3}`,
		"a pattern": `{"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}(-x)?$"}`,
		"choices":   `{"type": "string", "pattern": "^(alpha|beta)$"}`,
		"uri":       `{"type": "string", "format": "uri"}`,
		"email":     `{"type": "string", "format": "email"}`,
		"hostname":  `{"type": "string", "format": "hostname"}`,
		"ipv4":      `{"type": "string", "format": "ipv4"}`,
		"date-time": `{"type": "string", "format": "date-time"}`,
		"uuid":      `{"type": "string", "format": "uuid"}`,
		"integer":   `{"type": "integer", "minimum": 7, "multipleOf": 5}`,
		"exclusive": `{"type": "integer", "exclusiveMinimum": 6, "maximum": 7}`,
		"number":    `{"type": "number", "exclusiveMaximum": -3}`,
		"list":      `{"type": "array", "minItems": 1}`,
		"const":     `{"const": "only this"}`,
		"both":      `{"type": ["string", "null"], "minLength": 2}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := schemaOf(t, `{"required": ["a"], "properties": {"a": `+schema+`}}`)
			in, _ := s.Input("a")
			m := maker{schema: s}
			v, ok := m.value(in)
			if !ok {
				t.Fatalf("nothing for %s", schema)
			}
			if got := s.Validate(map[string]any{"a": v}); got != nil {
				t.Errorf("%v: %q", v, got)
			}
		})
	}
}

func TestSecretsAreFoundInTheirForms(t *testing.T) {
	t.Parallel()
	secret := maker{salt: "first"}.sentinel("a.b")
	if !regexp.MustCompile(`^Zs[0-9a-f]{16}Qx$`).MatchString(secret) {
		t.Fatal(secret)
	}
	for _, form := range encodings(secret) {
		low := strings.ToLower(form)
		if !slices.ContainsFunc(needles(secret), func(n needle) bool { return strings.Contains(low, n.text) }) {
			t.Errorf("%s is not found", form)
		}
	}
	for _, other := range []string{maker{salt: "second"}.sentinel("a.b"), maker{salt: "first"}.sentinel("a.c"), "nothing of the kind"} {
		low := strings.ToLower(other)
		if slices.ContainsFunc(needles(secret), func(n needle) bool { return strings.Contains(low, n.text) }) {
			t.Errorf("%s is found", other)
		}
	}
}
