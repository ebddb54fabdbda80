package capability_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/registry/capability"
)

func TestAWholeManifestIsReadAndUnknownFieldsAreIgnored(t *testing.T) {
	raw, err := os.ReadFile("testdata/full.json")
	if err != nil {
		t.Fatal(err)
	}
	m, err := capability.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	out, err := m.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(out), "futureField") {
		t.Error("an unknown field is kept")
	}
	again, err := capability.Parse(out)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, again); diff != "" {
		t.Errorf("what is stored reads differently:\n%s", diff)
	}
	rows := m.Rows(capability.Place{ProxyURL: "http://example", Workload: "example", PublicOrigin: "https://media.example.org/"})
	got, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/full.rows.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(bytes.TrimSpace(want)), string(got)); diff != "" {
		t.Errorf("rows:\n%s", diff)
	}
}

func TestAManifestIsRefusedWithTheFieldsNamed(t *testing.T) {
	components := func(list string) string { return `{"service":"example","components":[` + list + `]}` }
	many := strings.Repeat(`{"name":"x","workload":"x","role":"optional"},`, 17)
	for name, tc := range map[string]struct{ in, want string }{
		"no service":               {`{}`, "service: is required"},
		"service in capitals":      {`{"service":"Example"}`, "service: must be a DNS-1123 label"},
		"service too long":         {`{"service":"` + strings.Repeat("a", 41) + `"}`, "service: must be"},
		"service of a wrong type":  {`{"service":7}`, "service has the wrong type"},
		"a list":                   {`[]`, "not a JSON object"},
		"no JSON":                  {`{"service":`, "not JSON"},
		"two documents":            {`{"service":"example"} {}`, "not JSON"},
		"not UTF-8":                {"{\"service\":\"\xff\"}", "not UTF-8"},
		"unknown kind":             {`{"service":"example","kind":"plugin"}`, "kind: must be"},
		"proxy key":                {`{"service":"example","proxyKey":"a/b"}`, "proxyKey: must be"},
		"command without a name":   {`{"service":"example","commands":[{"path":"/x"}]}`, "commands[0].name: is required"},
		"command twice":            {`{"service":"example","commands":[{"name":"a","path":"/x"},{"name":"a","path":"/x"}]}`, "commands[1].name: is there twice"},
		"command method":           {`{"service":"example","commands":[{"name":"a","path":"/x","method":"TRACE"}]}`, "commands[0].method: must be"},
		"command path":             {`{"service":"example","commands":[{"name":"a","path":"x"}]}`, "commands[0].path: must start with /"},
		"check path":               {`{"service":"example","checks":[{"name":"a","path":"http://evil"}]}`, "checks[0].path: must start with /"},
		"tile without a key":       {`{"service":"example","ui":{"tiles":[{}]}}`, "ui.tiles[0].key: is required"},
		"tile twice":               {`{"service":"example","ui":{"tiles":[{"key":"a"},{"key":"a"}]}}`, "ui.tiles[1].key: is there twice"},
		"tile of another origin":   {`{"service":"example","ui":{"tiles":[{"key":"a","target":"https://evil"}]}}`, "ui.tiles[0].target: must be a hash route"},
		"tile without scheme":      {`{"service":"example","ui":{"tiles":[{"key":"a","target":"//evil"}]}}`, "ui.tiles[0].target"},
		"tile that runs a script":  {`{"service":"example","ui":{"tiles":[{"key":"a","target":"javascript:alert(1)"}]}}`, "ui.tiles[0].target"},
		"slot without a slot":      {`{"service":"example","ui":{"slots":[{"key":"a"}]}}`, "ui.slots[0].slot: is required"},
		"slot that runs a script":  {`{"service":"example","ui":{"slots":[{"key":"a","slot":"s","url":"javascript:alert(1)"}]}}`, "ui.slots[0].url"},
		"slot with credentials":    {`{"service":"example","ui":{"slots":[{"key":"a","slot":"s","url":"https://u:p@h/"}]}}`, "ui.slots[0].url: must not contain credentials"},
		"space key":                {`{"service":"example","ui":{"space":{"key":"a b"}}}`, "ui.space.key"},
		"no primary component":     {components(`{"name":"a","workload":"a","role":"required"}`), "components: 0 of them are primary"},
		"two primary components":   {components(`{"name":"a","workload":"a","role":"primary"},{"name":"b","workload":"b","role":"primary"}`), "components: 2 of them"},
		"component name twice":     {components(`{"name":"a","workload":"a","role":"primary"},{"name":"a","workload":"b","role":"optional"}`), "components[1].name: is there twice"},
		"workload twice":           {components(`{"name":"a","workload":"a","role":"primary"},{"name":"b","workload":"a","role":"optional"}`), "components[1].workload: is there twice"},
		"component role":           {components(`{"name":"a","workload":"a","role":"main"}`), "components[0].role: must be"},
		"component workload":       {components(`{"name":"a","workload":"a.b","role":"primary"}`), "components[0].workload: must be"},
		"component summary":        {components(`{"name":"a","workload":"a","role":"primary","summary":"` + strings.Repeat("é", 121) + `"}`), "components[0].summary: is longer"},
		"seventeen components":     {components(strings.TrimSuffix(many, ",")), "components: more than 16"},
		"setup without a path":     {`{"service":"example","setup":{}}`, "setup.path: must start with /"},
		"setup path that climbs":   {`{"service":"example","setup":{"path":"/%252e%252e/admin"}}`, "setup.path: must not contain .."},
		"setup section title":      {`{"service":"example","setup":{"path":"/s","sections":[{"key":"a","title":"` + strings.Repeat("x", 61) + `"}]}}`, "setup.sections[0].title: is longer"},
		"setup section target":     {`{"service":"example","setup":{"path":"/s","sections":[{"key":"a","target":"x:y"}]}}`, "setup.sections[0].target"},
		"several problems, sorted": {`{"kind":"x"}`, "kind: must be platform or addon; service: is required"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := capability.Parse([]byte(tc.in))
			if fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestTheLargestManifestIs256KiB(t *testing.T) {
	fill := func(n int) []byte {
		head, tail := `{"service":"example","version":"`, `"}`
		return []byte(head + strings.Repeat("1", n-len(head)-len(tail)) + tail)
	}
	if _, err := capability.Parse(fill(capability.MaxBytes)); err != nil {
		t.Error(err)
	}
	if _, err := capability.Parse(fill(capability.MaxBytes + 1)); err == nil {
		t.Error("one byte more is read")
	}
}

func TestPaths(t *testing.T) {
	for _, good := range []string{"/", "/setup", "/a/b?x=1&y=%20", "/a%2Fb", "/ünï"} {
		if what := capability.PathProblem(good); what != "" {
			t.Errorf("%s: %s", good, what)
		}
	}
	for _, bad := range []string{
		"", "a", "//host", "/a//b", "/..", "/a/../b", "/%2e%2e/", "/%2E./", "/.%2e", "/%252e%252e", "/%25252e.", `/\host`, "/%5chost", "/%2f/host",
		"/a#b", "/a%23b", "/a\nb", "/a%0d%0ab", "/%zz", "http://host/", "/a\u202eb", "/a%00",
	} {
		if capability.PathProblem(bad) == "" {
			t.Errorf("%q passes", bad)
		}
	}
}

func TestAPathThatIsEscapedWithoutEndIsRefusedAtOnce(t *testing.T) {
	if capability.PathProblem("/%"+strings.Repeat("25", 900)) == "" {
		t.Error("escaped 900 times passes")
	}
	if capability.PathProblem("/"+strings.Repeat("a", 4096)) == "" {
		t.Error("4 KiB passes")
	}
}

func TestControlCharactersInTextsAreDropped(t *testing.T) {
	m, err := capability.Parse([]byte("{\"service\":\"example\",\"ui\":{\"app\":{\"title\":\"\\u001b[31mRed\\u202e\\n\"}}}"))
	if err != nil {
		t.Fatal(err)
	}
	if m.UI.App.Title != "[31mRed" {
		t.Errorf("got %q", m.UI.App.Title)
	}
}

func TestAnErrorNeverQuotesTheManifest(t *testing.T) {
	const canary = "c4nary-c4nary"
	for _, in := range []string{
		`{"service":"` + canary + `!"}`, `{"service":"example","kind":"` + canary + `"}`, `{"service":"example","components":[{"name":"` + canary + `_"}]}`,
		`{"service":"example","setup":{"path":"` + canary + `"}}`, `{"service":{"` + canary + `":1}}`, `"` + canary + `"`, `{"` + canary,
	} {
		if _, err := capability.Parse([]byte(in)); err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %v", in, err)
		}
	}
}

func TestATargetStaysInsideTheConsole(t *testing.T) {
	for target, want := range map[string]string{
		"":                        "/portal/app/example",
		"#/a":                     "/portal/app/example/#/a",
		"/a":                      "/portal/app/example/a",
		"/portal/app/example":     "/portal/app/example",
		"/portal/app/example/a":   "/portal/app/example/a",
		"/portal/app/other":       "/portal/app/example/portal/app/other",
		"/portal/app/example-two": "/portal/app/example/portal/app/example-two",
	} {
		m := capability.Manifest{Service: "example", UI: capability.UI{Tiles: []capability.Tile{{Key: "a", Target: target}}}}
		if got := m.Rows(capability.Place{}).Tiles[0].Target; got != want {
			t.Errorf("%q: got %s, want %s", target, got, want)
		}
	}
}

func TestWithoutComponentsThereIsOneImplicitPrimary(t *testing.T) {
	m := capability.Manifest{Service: "example"}
	want := []capability.Component{{Name: "example", Workload: "example-web", Role: capability.RolePrimary}}
	if diff := cmp.Diff(want, m.Parts("example-web")); diff != "" {
		t.Error(diff)
	}
}

func FuzzParse(f *testing.F) {
	full, err := os.ReadFile("testdata/full.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(full)
	f.Add([]byte(`{"service":"example","setup":{"path":"/%2e%2e"}}`))
	f.Add([]byte(`{"service":"example","ui":{"tiles":[{"key":"a","target":"//x"}],"slots":[{"key":"a","slot":"b","url":"HTTPS://h"}]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := capability.Parse(raw)
		if err != nil {
			return
		}
		out, err := m.JSON()
		if err != nil {
			t.Fatal(err)
		}
		again, err := capability.Parse(out)
		if err != nil {
			t.Fatalf("what is stored cannot be read: %v", err)
		}
		second, err := again.JSON()
		if err != nil || !bytes.Equal(out, second) {
			t.Fatalf("reading what is stored changes it: %v", err)
		}
		for _, tile := range m.Rows(capability.Place{}).Tiles {
			if !strings.HasPrefix(tile.Target, "/portal/app/"+m.Service) || strings.Contains(tile.Target, "..") && !strings.Contains(tile.Target, "#") {
				t.Fatalf("target %q leaves the console", tile.Target)
			}
		}
	})
}
