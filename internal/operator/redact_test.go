package operator

import (
	"encoding/base64"
	"encoding/hex"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"zaentrum.io/zae/api/v1alpha1"
)

// notRedacted are the texts of a status in which secret values are not looked for, and why.
var notRedacted = map[string]string{
	"Phase":                        "one of our own words",
	"Conditions.Type":              "one of our own words",
	"Conditions.Status":            "one of our own words",
	"Conditions.Reason":            "one of our own words",
	"Plan.Inputs.State":            "one of our own words",
	"Jobs.State":                   "one of our own words",
	"Jobs.Run":                     "a digest; compared with others",
	"Plan.Findings.ID":             "one of our own words",
	"Plan.Findings.Level":          "one of our own words",
	"Plan.Findings.Title":          "one of our own words",
	"Reviewed.Ref":                 "what the spec said; compared with it",
	"Reviewed.Version":             "what the spec said; compared with it",
	"Reviewed.Digest":              "a digest; compared with others",
	"LastAppliedChart.Ref":         "what the spec says, beside it; compared with it",
	"LastAppliedChart.Version":     "what the spec says, beside it; compared with it",
	"LastAppliedChart.Digest":      "a digest; compared with others",
	"Plan.Chart.Requested.Ref":     "what the spec says, beside it; compared with it",
	"Plan.Chart.Requested.Version": "what the spec says, beside it; compared with it",
	"Plan.Chart.Requested.Digest":  "a digest; compared with others",
	"Plan.Chart.Digest":            "a digest; compared with others",
	"Plan.Chart.Name":              "stands in the archive for everybody to read",
	"Plan.Chart.Version":           "stands in the archive for everybody to read",
	"Plan.Chart.AppVersion":        "stands in the archive for everybody to read",
	"Plan.Chart.Description":       "stands in the archive for everybody to read",
	"Plan.Chart.Annotations":       "stands in the archive for everybody to read; names the primary",
	"Plan.ValuesSchema":            "stands in the archive for everybody to read; a document that has to stay one",
	"Plan.Inputs.Path":             "stands in the archive's schema; compared with it",
}

// A text that is added to the status is redacted, or an exception with a reason.
func TestNoTextOfAStatusHoldsASecret(t *testing.T) {
	const secret = "c4n4ry-value"
	known := &secrets{}
	known.add(secret)
	s := &v1alpha1.ZaentrumAddonStatus{}
	fill(reflect.ValueOf(s).Elem(), "see c4n4ry-\x01value and "+secret)
	known.clean(s)
	seen := map[string]bool{}
	walk(reflect.ValueOf(s).Elem(), "", func(path, text string) {
		seen[path] = true
		shows := strings.Contains(text, "c4n4ry")
		switch _, exempt := notRedacted[path]; {
		case shows && !exempt:
			t.Errorf("%s holds the secret: %q", path, text)
		case !shows && exempt:
			t.Errorf("%s is redacted, and should not be: %s", path, notRedacted[path])
		case !exempt && !strings.Contains(text, redacted):
			t.Errorf("%s was not filled: %q", path, text)
		}
	})
	for path := range notRedacted {
		if !seen[path] {
			t.Errorf("%s is an exception and no text of the status", path)
		}
	}
	if len(seen) < 40 {
		t.Errorf("only %d texts were found", len(seen))
	}
}

// fill puts one of everything into a value, and the text into every text.
func fill(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), text)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, text)
		fill(value, text)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[metav1.Time]() {
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), text)
		}
	}
}

// walk visits every text in a value, with the names of the fields that lead to it.
func walk(v reflect.Value, path string, visit func(path, text string)) {
	switch v.Kind() {
	case reflect.String:
		visit(path, v.String())
	case reflect.Pointer:
		walk(v.Elem(), path, visit)
	case reflect.Slice:
		for i := range v.Len() {
			walk(v.Index(i), path, visit)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			walk(key, path, visit)
			walk(v.MapIndex(key), path, visit)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[metav1.Time]() {
			return
		}
		for i := range v.NumField() {
			walk(v.Field(i), strings.TrimPrefix(path+"."+v.Type().Field(i).Name, "."), visit)
		}
	}
}

// A value is found in the shapes that a chart can put it into at no cost, and where a text was cut inside it.
func TestSecretsAreFoundInEveryShape(t *testing.T) {
	const value = "s3cret-And/Quite=long"
	known := &secrets{plain: "example"}
	known.add(value, "example", "Service")
	known.addTree(map[string]any{"pin": int64(8675309), "port": int64(5432), "list": []any{"in-a-list"}})
	r := known.redactor()
	for _, text := range []string{
		value, strings.ToUpper(value), strings.ToLower(value), "x" + value + "y", "cm-8675309", "in-a-list", "see IN-A-LIST",
		"s3cret-And%2FQuite%3Dlong", hex.EncodeToString([]byte(value)),
		base64.StdEncoding.EncodeToString([]byte(value)), base64.RawURLEncoding.EncodeToString([]byte(value)),
		base64.StdEncoding.EncodeToString([]byte("user:" + value + "@host")),
		"s3cret-And/\x07Quite=long",
		"env[PPP" + value[:12] + "…]", strings.ToUpper(value[:9]) + "…", "a… " + value[:7] + "… and more…",
	} {
		got := r.clean(text)
		if !strings.Contains(got, redacted) || strings.Contains(strings.ToLower(got), "s3cret") || strings.Contains(got, "8675309") {
			t.Errorf("%q becomes %q", text, got)
		}
	}
	for _, text := range []string{"example", "Deployment/example is waiting…", "port 5432", "s3c…", "nothing…", "…"} {
		if got := r.clean(text); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
	s := &v1alpha1.ZaentrumAddonStatus{Plan: &v1alpha1.Plan{Objects: []v1alpha1.ObjectRef{{Kind: "Service", Name: "Service"}}}}
	known.clean(s)
	if got := s.Plan.Objects[0]; got.Kind != "Service" || got.Name != redacted {
		t.Errorf("a kind is no secret, a name may be: %+v", got)
	}
}

// Large values, and many, are looked for in time and memory that have a bound.
func TestLookingForLargeSecretsIsBounded(t *testing.T) {
	for name, value := range map[string]string{
		"one long line":    strings.Repeat("x", 1<<20),
		"many short lines": strings.Repeat("line\n", 200_000),
	} {
		known := &secrets{}
		for range 64 {
			known.add(value)
		}
		var r *redactor
		allocated := testing.AllocsPerRun(1, func() { r = known.redactor() })
		size := 0
		for _, f := range r.forms {
			size += len(f)
		}
		if size > 1<<20 || allocated > 20_000 {
			t.Errorf("%s: %d bytes of %d forms, %.0f allocations", name, size, len(r.forms), allocated)
		}
		if got := r.clean("at " + value[:3000]); !strings.Contains(got, redacted) && name == "many short lines" {
			t.Errorf("%s: not found", name)
		}
	}
}
