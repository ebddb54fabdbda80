package portal_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"sigs.k8s.io/yaml"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
)

// contract holds what a server does against docs/openapi.yaml: each answer that any test of this package gets.
var contract struct {
	sync.Once
	sync.Mutex
	doc   libopenapi.Document
	judge validator.Validator
	// paths are the calls: path → method → status.
	paths map[string]map[string]struct {
		Responses map[string]any `json:"responses"`
	}
	err error
}

func loadContract() error {
	contract.Do(func() {
		contract.err = func() error {
			raw, err := os.ReadFile("../../docs/openapi.yaml")
			if err != nil {
				return err
			}
			var paths struct {
				Paths map[string]map[string]struct {
					Responses map[string]any `json:"responses"`
				} `json:"paths"`
			}
			if err := yaml.Unmarshal(raw, &paths); err != nil {
				return err
			}
			contract.paths = paths.Paths
			if contract.doc, err = libopenapi.NewDocument(raw); err != nil {
				return err
			}
			var errs []error
			contract.judge, errs = validator.NewValidator(contract.doc)
			if len(errs) > 0 {
				return errs[0]
			}
			return nil
		}()
	})
	return contract.err
}

// asDocumented checks an answer against the document. What is at no address of it, and a method that an address does not
// take, are not described.
func (b *bench) asDocumented(request *http.Request, body []byte, r reply) {
	b.t.Helper()
	b.must(loadContract())
	path := documentedPath(request.URL.Path)
	call, there := contract.paths[path][strings.ToLower(request.Method)]
	if !there || b.url != b.front || r.status == http.StatusMethodNotAllowed {
		return
	}
	if _, there := call.Responses[fmt.Sprint(r.status)]; !there {
		b.t.Errorf("%s %s answers %d, which is not documented: %s", request.Method, path, r.status, r.body)
		return
	}
	if len(r.body) == 0 {
		return // there is nothing to look at: 304
	}
	contract.Lock()
	defer contract.Unlock()
	response := &http.Response{StatusCode: r.status, Header: r.header, Body: io.NopCloser(bytes.NewReader(r.body))}
	if ok, errs := contract.judge.ValidateHttpResponse(request, response); !ok {
		for _, e := range errs {
			b.t.Errorf("%s %s answers %d otherwise than documented: %s (%s) %v\n%s", request.Method, path, r.status, e.Message, e.Reason, e.SchemaValidationErrors, r.body)
		}
	}
	if r.status >= 300 {
		return
	}
	// What is taken must be what the document lets callers send.
	again := request.Clone(b.t.Context())
	again.Body = io.NopCloser(bytes.NewReader(body))
	if ok, errs := contract.judge.ValidateHttpRequest(again); !ok {
		for _, e := range errs {
			b.t.Errorf("%s %s takes what is not documented: %s (%s) %v\n%s", request.Method, path, e.Message, e.Reason, e.SchemaValidationErrors, body)
		}
	}
}

// documentedPath is the address as the document has it.
func documentedPath(path string) string {
	if _, there := contract.paths[path]; there {
		return path
	}
	for documented := range contract.paths {
		before, after, pattern := strings.Cut(documented, "{name}")
		name, fits := strings.CutPrefix(path, before)
		name, end := strings.CutSuffix(name, after)
		if pattern && fits && end && name != "" && !strings.Contains(name, "/") {
			return documented
		}
	}
	return ""
}

func TestTheOpenAPIDocumentIsValid(t *testing.T) {
	t.Parallel()
	if err := loadContract(); err != nil {
		t.Fatal(err)
	}
	if v := contract.doc.GetSpecInfo().Version; v != "3.1.0" {
		t.Errorf("version %s", v)
	}
	contract.Lock()
	defer contract.Unlock()
	if ok, errs := contract.judge.ValidateDocument(); !ok {
		for _, e := range errs {
			t.Errorf("%s: %s %v", e.Message, e.Reason, e.SchemaValidationErrors)
		}
	}
}

func TestTheOpenAPIDocumentIsServed(t *testing.T) {
	t.Parallel()
	b := newLoneBench(t)
	nobody := func(r *http.Request) { r.Header.Del("Authorization") }
	there, err := os.ReadFile("../../docs/openapi.yaml")
	b.must(err)
	if r := b.do(http.MethodGet, apitype.PathOpenAPI+".yaml", nil, nobody); r.status != http.StatusOK || !bytes.Equal(r.body, there) ||
		r.header.Get("Content-Type") != "application/yaml" {
		t.Errorf("got %d, %s, %d bytes", r.status, r.header.Get("Content-Type"), len(r.body))
	}
	r := b.do(http.MethodGet, apitype.PathOpenAPI+".json", nil, nobody)
	var served, documented any
	b.must(json.Unmarshal(r.body, &served))
	b.must(yaml.Unmarshal(there, &documented))
	if r.header.Get("Content-Type") != "application/json" || fmt.Sprint(served) != fmt.Sprint(documented) {
		t.Errorf("got %s", r)
	}
}

// TestTheContractsCalls makes the calls of the contract's §4 in its own words, and holds requests and answers against the
// document (asDocumented does).
func TestTheContractsCalls(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	fields := func(r reply) []string {
		t.Helper()
		var doc map[string]any
		b.must(json.Unmarshal(r.body, &doc))
		return slices.Sorted(maps.Keys(doc))
	}
	must := func(r reply, status int, wanted ...string) {
		t.Helper()
		if r.status != status {
			t.Fatalf("got %s", r)
		}
		for _, field := range wanted {
			if !slices.Contains(fields(r), field) {
				t.Errorf("no %s in %s", field, r)
			}
		}
	}
	write := []string{"name", "generation", "observedGeneration", "chart"}
	must(b.do(http.MethodGet, "/api/portal/addon-charts", nil), 200, "available")
	// The body of the contract's example, to the letter.
	r := b.do(http.MethodPost, "/api/portal/addon-charts", `{"chart":"oci://ghcr.io/example/charts/example","version":"1.2.0",
       "values":{"worker":{"replicas":2}},
       "secretValues":{"database.url":"postgres://…"}}`)
	must(r, 202, write...)
	if !strings.HasPrefix(string(r.body), `{"name":"example","generation":1,"observedGeneration":0,"chart":{`) {
		t.Errorf("the example is answered %s", r)
	}
	must(b.do(http.MethodPost, "/api/portal/addon-charts/example/install", nil), 409, "code")
	b.operate("example", planned)
	must(b.do(http.MethodGet, "/api/portal/addon-charts/example", nil), 200, "name", "chart", "suspended", "phase", "generation",
		"observedGeneration", "plan", "components", "values", "secretKeys", "secretRefs", "registered")
	must(b.do(http.MethodPost, "/api/portal/addon-charts/example/install", nil), 202, write...)
	must(b.do(http.MethodPatch, "/api/portal/addon-charts/example", `{"version":"1.3.0","chart":"oci://ghcr.io/example/charts/example",
		"digest":"`+digestA+`","values":{"worker":{"replicas":1}},"secretValues":{"config.key":"`+canary+`"},
		"secretRefs":{"a.b":{"name":"zaentrum-addon-example-values","key":"k"}},"clearSecrets":["database.url"],"suspend":true}`), 202, write...)
	must(b.do(http.MethodGet, "/api/portal/addons", nil), 200, "addons")
	must(b.do(http.MethodDelete, "/api/portal/addon-charts/example?keepValues=true", nil), 200, "name", "resource", "keptValues", "removed")
	must(b.do(http.MethodPatch, "/api/portal/addon-charts/example", `{"suspend":true}`), 409, "code") // its finalizer holds it
	must(b.do(http.MethodGet, "/api/portal/cli/discovery", nil), 200, "capabilityVersion", "services")
	if a := b.addon("example"); a.Annotations[v1alpha1.AnnotationKeepValues] != "true" {
		t.Errorf("got %v", a.Annotations)
	}
	// Everything that is documented is there, and everything that is there is documented.
	for path, methods := range contract.paths {
		for method := range methods {
			at := strings.ReplaceAll(path, "{name}", "No_Name")
			if r := b.do(strings.ToUpper(method), at, nil, func(r *http.Request) { r.Header.Del("Authorization") }); r.status == http.StatusMethodNotAllowed ||
				strings.Contains(string(r.body), "there is nothing at this address") {
				t.Errorf("%s %s is documented, and not there: %s", method, path, r)
			}
		}
	}
}
