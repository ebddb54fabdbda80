package operator

import (
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
