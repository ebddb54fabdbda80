package lint

import (
	"encoding/base32"
	"encoding/base64"
	"fmt"
	"strings"

	"zaentrum.io/zae/internal/inputs"
)

// What templates take a text for is seen at the functions that they hand it to. Of a text that is something else some of
// these fail, and others answer with the words of their error, or with nothing.

// parsed is a text that a template takes for something.
type parsed struct {
	path     []string // in the outermost chart's values
	function string
	file     string
	at       position
}

// form is what a text may have to be.
type form struct {
	name string
	bad  string // a text that is surely none
	fix  string
}

// The forms of texts.
var (
	base64Form = form{"base64", "no base64: at all", `Add "pattern": "^[A-Za-z0-9+/]+={0,2}$" to the input; or ask for the text itself, and encode it.`}
	base32Form = form{"base32", "no base32: at all", `Add "pattern": "^[A-Z2-7]+=*$" to the input.`}
	yamlForm   = form{"YAML", "{no YAML: [", `Declare the input as what is in it, an object or a list, instead of a text.`}
	jsonForm   = form{"JSON", "{no JSON: [", `Declare the input as what is in it, an object or a list, instead of a text.`}
	numberForm = form{"a number", "no number", `Declare the input as an integer or number, or add "pattern": "^[0-9]+$" to it.`}
	dateForm   = form{"a date", "no date", `Add a "pattern" to the input, or "format": "date" if that is how it is written.`}
	semverForm = form{"a version", "no version", `Add "format": "semver" or a "pattern" to the input.`}
	urlForm    = form{"an address", "http://[no address", `Add "format": "uri" to the input.`}
)

// parsing are the functions that take a text for something, by what for: their last argument, or any for allArguments.
var parsing = map[string]form{
	"b64dec": base64Form, "buildCustomCert": base64Form, "b32dec": base32Form,
	"fromYaml": yamlForm, "fromYamlArray": yamlForm, "fromJson": jsonForm, "fromJsonArray": jsonForm, "mustFromJson": jsonForm,
	"atoi": numberForm, "int": numberForm, "int64": numberForm, "float64": numberForm, "toDecimal": numberForm,
	"toDate": dateForm, "mustToDate": dateForm, "semver": semverForm, "semverCompare": semverForm, "urlParse": urlForm,
}

var allArguments = map[string]bool{"buildCustomCert": true, "semverCompare": true}

// passing are the functions that answer with their last argument, a little changed.
var passing = map[string]bool{
	"trim": true, "trimAll": true, "trimPrefix": true, "trimSuffix": true, "nospace": true, "toString": true, "replace": true, "lower": true, "upper": true,
}

// parses notes what a function takes its arguments for.
func (w *walker) parses(name string, args []argument) {
	if _, ok := parsing[name]; !ok || len(args) == 0 {
		return
	}
	if !allArguments[name] {
		args = args[len(args)-1:]
	}
	for _, a := range args {
		for _, p := range a.places {
			for _, path := range p.paths() {
				key := "parsed\x00" + name + "\x00" + strings.Join(path, "\x00") + "\x00" + w.src.File
				if !w.seen[key] {
					w.seen[key] = true
					w.parsed = append(w.parsed, parsed{path, name, w.src.File, w.position(a.node)})
				}
			}
		}
	}
}

// forms are what templates take texts for, by path.
func (r *reads) forms() map[string]string {
	out := map[string]string{}
	for _, p := range r.parsed {
		if path := strings.Join(p.path, "."); out[path] == "" {
			out[path] = p.function
		}
	}
	return out
}

// parsedText is a text that a function takes, and that is found again where it goes.
func (m maker) parsedText(function, path string) string {
	s := m.sentinel(path)
	switch parsing[function] {
	case base64Form:
		return base64.StdEncoding.EncodeToString([]byte(s))
	case base32Form:
		return base32.StdEncoding.EncodeToString([]byte(s))
	case yamlForm, jsonForm:
		if strings.HasSuffix(function, "Array") {
			return `["` + s + `"]`
		}
		return `{"zae": "` + s + `"}`
	case numberForm:
		return "1"
	case dateForm:
		return "2021-01-02"
	case semverForm:
		return "1.2.3"
	default:
		return "https://" + strings.ToLower(s) + ".example.org"
	}
}

// unnarrowed tells of texts that a template takes for something, and of which the schema takes any.
func (s *subject) unnarrowed() {
	m := maker{schema: s.schema}
	told := map[string]bool{}
	for _, p := range s.reads.parsed {
		path := strings.Join(p.path, ".")
		in, ok := s.schema.Input(path)
		if !ok || in.Type != inputs.TypeString || in.Enum != nil || in.Unaddressable || in.Generate != "" {
			continue
		}
		f := parsing[p.function]
		if told[path+f.name] || !m.accepts(in, fit(f.bad, in)) {
			continue
		}
		told[path+f.name] = true
		one := Finding{
			Rule: "text-not-narrowed", File: p.file, Path: path, Fix: f.fix,
			Message: fmt.Sprintf("%s: %s takes it for %s, and the schema takes any text", path, p.function, f.name),
		}
		if n := s.document.property(p.path); n != nil && n.fields["contentEncoding"] != nil {
			one.Message += ", whatever contentEncoding says"
		}
		s.add(one, p.at)
	}
}
