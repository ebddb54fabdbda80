package portal

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/registry"
)

var update = flag.Bool("update", false, "write docs/openapi.yaml anew")

const openAPIFile = "../../docs/openapi.yaml"

// TestOpenAPIIsMadeOfTheRoutes holds docs/openapi.yaml, which is what is served, against the table of routes and the types.
func TestOpenAPIIsMadeOfTheRoutes(t *testing.T) {
	t.Parallel()
	store, err := registry.Open(t.Context(), registry.InMemory)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	s, err := New(Options{Registry: store})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d := newDescriber(t)
	got, err := yaml.Marshal(d.document(s.routes()))
	if err != nil {
		t.Fatal(err)
	}
	holds(t, openAPIFile, func(string) string { return string(got) })
	holds(t, "../../docs/api.md", func(text string) string {
		const begin, end = "<!-- codes: begin -->\n", "<!-- codes: end -->\n"
		before, rest, found := strings.Cut(text, begin)
		_, after, ends := strings.Cut(rest, end)
		if !found || !ends {
			t.Fatal("docs/api.md has no place for the table of codes")
		}
		return before + begin + tableOfCodes(s.routes()) + end + after
	})
}

// holds compares a file with what it should be, and with -update writes that.
func holds(t *testing.T, file string, want func(there string) string) {
	t.Helper()
	there, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	wanted := want(string(there))
	if *update {
		if err := os.WriteFile(file, []byte(wanted), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
		return
	}
	if string(there) != wanted {
		t.Errorf("%s is not current: go test ./internal/portal -run TestOpenAPI -update", file)
	}
}

// tableOfCodes are the problems that calls answer.
func tableOfCodes(routes []route) string {
	var all []fault.Code
	for _, r := range routes {
		all = append(all, r.problems()...)
	}
	slices.SortFunc(all, func(a, b fault.Code) int {
		return cmp.Or(cmp.Compare(a.Means().HTTP, b.Means().HTTP), cmp.Compare(a, b))
	})
	out := "| status | code | title | try again |\n|---|---|---|---|\n"
	for _, code := range slices.Compact(all) {
		again := ""
		if code.Means().Retry {
			again = "may help"
		}
		out += fmt.Sprintf("| %d | `%s` | %s | %s |\n", code.Means().HTTP, code, code.Means().Title, again)
	}
	return out
}

// describer makes the OpenAPI document.
type describer struct {
	t       *testing.T
	reflect *jsonschema.Reflector
	schemas map[string]any
	names   map[string]reflect.Type
}

func newDescriber(t *testing.T) *describer {
	t.Helper()
	d := &describer{t: t, schemas: map[string]any{}, names: map[string]reflect.Type{}}
	d.reflect = &jsonschema.Reflector{Anonymous: true, Mapper: d.special, Namer: d.name}
	for _, dir := range []string{"../apitype", "../inputs", "../../api/v1alpha1"} {
		if err := d.reflect.AddGoComments("zaentrum.io/zae/internal/portal", dir, jsonschema.WithFullComment()); err != nil {
			t.Fatal(err)
		}
	}
	// What the generator of CRDs reads is not for readers.
	for key, text := range d.reflect.CommentMap {
		text, _, _ = strings.Cut(text, "\n+")
		if strings.HasPrefix(text, "+") {
			text = ""
		}
		d.reflect.CommentMap[key] = strings.Join(strings.Fields(text), " ")
	}
	return d
}

// name is a type's name among the schemas; two types cannot share one.
func (d *describer) name(t reflect.Type) string {
	if t.Name() == "" {
		return "" // no type of its own
	}
	if other, taken := d.names[t.Name()]; taken && other != t {
		d.t.Errorf("two types are named %s: %s and %s", t.Name(), other, t)
	}
	d.names[t.Name()] = t
	return t.Name()
}

// special are the types that JSON has in another shape than Go.
func (d *describer) special(t reflect.Type) *jsonschema.Schema {
	enum := func(values ...any) *jsonschema.Schema { return &jsonschema.Schema{Type: "string", Enum: values} }
	switch t {
	case reflect.TypeFor[json.Number]():
		return &jsonschema.Schema{Type: "number"}
	case reflect.TypeFor[metav1.Time]():
		return &jsonschema.Schema{Type: "string", Format: "date-time"}
	case reflect.TypeFor[v1alpha1.Phase]():
		s := enum("", string(v1alpha1.PhasePlanned), string(v1alpha1.PhasePlanFailed), string(v1alpha1.PhaseInstalling),
			string(v1alpha1.PhaseReady), string(v1alpha1.PhaseDegraded), string(v1alpha1.PhaseFailed))
		s.Description = "Empty before the first reconcile."
		return s
	case reflect.TypeFor[apitype.EndReason]():
		return enum(string(apitype.EndShutdown), string(apitype.EndExpired), string(apitype.EndSlow))
	}
	return nil
}

// ref is a reference to the schema of a type, which it adds. What a caller sends has no unknown fields; what is answered may
// get more.
func (d *describer) ref(t reflect.Type, sent bool) map[string]any {
	d.reflect.AllowAdditionalProperties = !sent
	raw, err := json.Marshal(d.reflect.ReflectFromType(t))
	if err != nil {
		d.t.Fatal(err)
	}
	var root struct {
		Ref  string         `json:"$ref"`
		Defs map[string]any `json:"$defs"`
	}
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(raw), "#/$defs/", "#/components/schemas/")), &root); err != nil {
		d.t.Fatal(err)
	}
	for name, schema := range root.Defs {
		if _, there := d.schemas[name]; there && !sent {
			continue // what is both sent and answered is as strict as what is sent
		}
		d.schemas[name] = schema
	}
	return map[string]any{"$ref": root.Ref}
}

var inPath = regexp.MustCompile(`\{([^}]+)\}`)

func (d *describer) document(routes []route) map[string]any {
	paths := map[string]any{}
	ids := map[string]bool{}
	for _, r := range routes {
		if r.summary == "" || !strings.HasSuffix(r.summary, ".") || r.id == "" || ids[r.id] || r.status == 0 || r.handler == nil {
			d.t.Errorf("%s %s lacks an id of its own, a status, a handler or a sentence that says what it does", r.method, r.path)
		}
		ids[r.id] = true
		item, _ := paths[r.path].(map[string]any)
		if item == nil {
			item = map[string]any{}
			paths[r.path] = item
		}
		item[strings.ToLower(r.method)] = d.operation(r)
	}
	d.ref(reflect.TypeFor[apitype.Problem](), false)
	d.ref(reflect.TypeFor[apitype.Deleted](), false)
	d.ref(reflect.TypeFor[apitype.StreamEnd](), false)
	return map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{
			"title": "portal-api", "version": "1",
			"summary": "Chart addons of a zaentrum platform, and the registry of apps.",
			"description": "Calls to apps themselves, /api/portal/apps/{key}/… with any method, are forwarded and are not described here. " +
				"See docs/api.md for events, idempotency and limits.",
			"license": map[string]any{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"servers": []any{map[string]any{"url": "/", "description": "The instance."}},
		"paths":   paths,
		"components": map[string]any{
			"schemas": d.schemas,
			"securitySchemes": map[string]any{"bearer": map[string]any{
				"type": "http", "scheme": "bearer", "bearerFormat": "JWT", "description": "An access token of the instance's issuer; see discover.",
			}},
		},
	}
}

func (d *describer) operation(r route) map[string]any {
	op := map[string]any{"operationId": r.id, "summary": r.summary, "responses": d.responses(r), "security": []any{}}
	if r.detail != "" {
		op["description"] = r.detail
	}
	switch r.who {
	case anybody:
	case signedIn:
		op["security"] = []any{map[string]any{"bearer": []any{}}}
		op["x-access"] = "any valid token"
	default:
		op["security"] = []any{map[string]any{"bearer": []any{}}}
		op["x-access"] = "an admin's token"
	}
	var params []any
	param := func(in, name, about string, required bool) {
		p := map[string]any{"in": in, "name": name, "schema": map[string]any{"type": "string"}, "description": about}
		if required {
			p["required"] = true
		}
		params = append(params, p)
	}
	for _, m := range inPath.FindAllStringSubmatch(r.path, -1) {
		param("path", m[1], "The addon.", true)
	}
	for _, q := range r.query {
		param("query", q.name, q.about, false)
	}
	for _, h := range r.header {
		param("header", h.name, h.about, false)
	}
	if r.once() {
		param("header", apitype.HeaderIdempotencyKey, "Stands for this request and no other: sent again with it, the request happens once.", false)
	}
	if params != nil {
		op["parameters"] = params
	}
	if r.in != nil {
		op["requestBody"] = map[string]any{
			"required": r.in != reflect.TypeFor[apitype.InstallRequest](),
			"content":  map[string]any{"application/json": map[string]any{"schema": d.ref(r.in, true)}},
		}
	}
	return op
}

// mediaOnly is a media type without its parameters.
func mediaOnly(media string) string {
	only, _, _ := strings.Cut(media, ";")
	return only
}

func (d *describer) responses(r route) map[string]any {
	out := map[string]any{}
	headers := map[string]any{}
	header := func(to map[string]any, name, about string) {
		to[name] = map[string]any{"schema": map[string]any{"type": "string"}, "description": about}
	}
	for _, h := range r.tells {
		header(headers, h.name, h.about)
	}
	if r.once() {
		header(headers, apitype.HeaderReplayed, "true when the answer is of an earlier request with the same key.")
	}
	answer := func(about string) map[string]any {
		media := cmp.Or(r.media, "application/json")
		schema := map[string]any{}
		switch {
		case r.out != nil:
			schema = d.ref(r.out, false)
		case media == apitype.EventStreamType:
			schema = map[string]any{
				"type": "string",
				"description": "Server-sent events. addon has an AddonChart, deleted a Deleted and end a StreamEnd as data; " +
					"the latter two are the last of a stream.",
			}
		case strings.HasPrefix(media, "text/"), media == mediaYAML:
			schema["type"] = "string"
		default:
			schema["type"] = "object"
		}
		content := map[string]any{mediaOnly(media): map[string]any{"schema": schema}}
		if r.out != nil && r.media != "" { // in JSON too
			content = map[string]any{
				mediaOnly(media): map[string]any{"schema": map[string]any{"type": "string"}}, "application/json": map[string]any{"schema": schema},
			}
		}
		a := map[string]any{"description": about, "content": content}
		if len(headers) > 0 {
			a["headers"] = headers
		}
		return a
	}
	out[strconv.Itoa(r.status)] = answer(cmp.Or(map[int]string{
		http.StatusAccepted: "Written; the operator goes on from here.",
	}[r.status], "Done."))
	for status, about := range r.also {
		if status == http.StatusNotModified {
			out[strconv.Itoa(status)] = map[string]any{"description": about, "headers": headers}
			continue
		}
		out[strconv.Itoa(status)] = answer(about)
	}
	byStatus := map[int][]string{}
	for _, code := range r.problems() {
		byStatus[code.Means().HTTP] = append(byStatus[code.Means().HTTP], string(code))
	}
	for _, status := range slices.Sorted(maps.Keys(byStatus)) {
		out[strconv.Itoa(status)] = d.problem(status, byStatus[status], header)
	}
	return out
}

func (d *describer) problem(status int, codes []string, header func(map[string]any, string, string)) map[string]any {
	var means []string
	for _, code := range codes {
		means = append(means, fmt.Sprintf("%s: %s", code, fault.Code(code).Means().Title))
	}
	p := map[string]any{
		"description": strings.Join(means, "; "),
		"content": map[string]any{apitype.ProblemType: map[string]any{"schema": map[string]any{
			"allOf":      []any{map[string]any{"$ref": "#/components/schemas/Problem"}},
			"properties": map[string]any{"code": map[string]any{"enum": codes}, "status": map[string]any{"const": status}},
		}}},
	}
	headers := map[string]any{}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		header(headers, "WWW-Authenticate", "How to get in (RFC 6750).")
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusConflict:
		header(headers, "Retry-After", "Seconds after which the same call may succeed.")
	}
	if len(headers) > 0 {
		p["headers"] = headers
	}
	return p
}
