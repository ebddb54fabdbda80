package capability_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

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

func TestWhatIsAtALimitPasses(t *testing.T) {
	var components, sections []string
	for i := range 16 {
		role := "optional"
		if i == 0 {
			role = "primary"
		}
		components = append(components, fmt.Sprintf(`{"name":"c%d","workload":"w%d","role":%q,"summary":%q}`, i, i, role, strings.Repeat("é", 120)))
		sections = append(sections, fmt.Sprintf(`{"key":"s%d","title":%q,"target":"#/s"}`, i, strings.Repeat("é", 60)))
	}
	text := `{"service":"` + strings.Repeat("a", 40) + `","kind":"platform","components":[` + strings.Join(components, ",") + `],
		"setup":{"path":"/setup?x=1","sections":[` + strings.Join(sections, ",") + `]}}`
	if _, err := capability.Parse([]byte(text)); err != nil {
		t.Error(err)
	}
	more := strings.Replace(text, `"sections":[`, `"sections":[{"key":"more"},`, 1)
	if _, err := capability.Parse([]byte(more)); err == nil || !strings.Contains(err.Error(), "setup.sections: more than 16") {
		t.Errorf("got %v", err)
	}
}

func TestFieldNamesAreTakenToTheLetter(t *testing.T) {
	m, err := capability.Parse([]byte(`{"service":"example","SERVICE":"other","Kind":"nonsense","ui":{"Tiles":[{"target":"https://evil"}],"TILES":7},"Components":[{}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if m.Service != "example" || m.Kind != "" || len(m.UI.Tiles) != 0 || len(m.Components) != 0 {
		t.Errorf("%+v", m)
	}
	if _, err := capability.Parse([]byte(`{"Service":"example"}`)); err == nil || !strings.Contains(err.Error(), "service: is required") {
		t.Errorf("got %v", err)
	}
}

func TestOddDocumentsAreRefused(t *testing.T) {
	for name, in := range map[string]string{
		"null":                                `null`,
		"nothing":                             ``,
		"a number":                            `7`,
		"a byte order mark":                   "\ufeff" + `{"service":"example"}`,
		"deep":                                `{"service":"example","x":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`,
		"half":                                `{"service":"example"`,
		"an order that is no whole number":    `{"service":"example","ui":{"tiles":[{"key":"a","ord":1.5}]}}`,
		"an order that is too large":          `{"service":"example","ui":{"tiles":[{"key":"a","ord":1e30}]}}`,
		"a list with null":                    `{"service":"example","components":[null]}`,
		"a list that is none":                 `{"service":"example","components":{}}`,
		"a service that ends in a line break": `{"service":"example\n"}`,
		"a service with a zero":               `{"service":"exa\u0000mple"}`,
		"a half character":                    `{"service":"example","proxyKey":"a\ud800"}`,
	} {
		if m, err := capability.Parse([]byte(in)); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}

func TestASlotsAddressIsAPathOrAnHTTPAddress(t *testing.T) {
	slot := func(address string) error {
		raw, err := json.Marshal(map[string]any{"service": "example", "ui": map[string]any{"slots": []any{map[string]any{"key": "a", "slot": "s", "url": address}}}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = capability.Parse(raw)
		return err
	}
	for _, good := range []string{"", "/", "/a?b#c", "https://docs.example.org/a?b#c", "http://h", "HTTPS://h/"} {
		if err := slot(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{
		"a", "?x", "#x", "//h", "/a//b", "/../a", "/%2e%2e/a", `/\h`, `https:\\h`, "https:", "https:///a", "https:a", "ftp://h", "data:text/html,x", "JavaScript:alert(1)", " javascript:x",
		"java\tscript:x", "vbscript:x", "blob:https://h/x", "file:///etc/passwd", "https://u@h", "http://h\n/", "https://h/\u202e", "/a#\u0000", "\u0001https://h",
	} {
		if err := slot(bad); err == nil {
			t.Errorf("%q passes", bad)
		}
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
	f.Add([]byte(`{"service":"example","components":[{"name":"a","workload":"b","role":"primary","summary":"x"}],"commands":[{"name":"a","path":"/a"}],"checks":[{"name":"a","path":"/b"}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := capability.Parse(raw)
		if err != nil {
			if fault.CodeOf(err) != fault.Invalid {
				t.Fatal(err)
			}
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
		holdsTheRules(t, m)
	})
}

// holdsTheRules checks a manifest that passed against the rules, in another way than the product does.
func holdsTheRules(t *testing.T, m *capability.Manifest) {
	t.Helper()
	label := regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	if !label.MatchString(m.Service) || len(m.Service) > 40 || m.ProxyKey != "" && !label.MatchString(m.ProxyKey) {
		t.Fatalf("names %q, %q", m.Service, m.ProxyKey)
	}
	// path leads nowhere else, however often it is decoded.
	path := func(p string) {
		for range 10 {
			u, err := url.Parse("http://service" + p)
			if err != nil || u.Host != "service" || !strings.HasPrefix(p, "/") || strings.HasPrefix(p, "//") || strings.ContainsAny(p, "\\#\r\n") {
				t.Fatalf("path %q", p)
			}
			if slices.Contains(strings.FieldsFunc(p, func(r rune) bool { return r == '/' || r == '?' }), "..") {
				t.Fatalf("path %q climbs", p)
			}
			decoded, err := url.PathUnescape(p)
			if err != nil || decoded == p {
				return
			}
			p = decoded
		}
	}
	for _, c := range m.Commands {
		path(c.Path)
	}
	for _, c := range m.Checks {
		path(c.Path)
	}
	if m.Setup != nil {
		path(m.Setup.Path)
		if len(m.Setup.Sections) > 16 {
			t.Fatal("too many sections")
		}
	}
	primaries, workloads := 0, map[string]bool{}
	for _, c := range m.Components {
		if workloads[c.Workload] || !label.MatchString(c.Workload) || !label.MatchString(c.Name) || utf8.RuneCountInString(c.Summary) > 120 {
			t.Fatalf("component %+v", c)
		}
		if workloads[c.Workload] = true; c.Role == capability.RolePrimary {
			primaries++
		}
	}
	if len(m.Components) > 16 || len(m.Components) > 0 && primaries != 1 {
		t.Fatalf("%d components, %d primary", len(m.Components), primaries)
	}
	rows := m.Rows(capability.Place{PublicOrigin: "https://media.example.org"})
	keys := map[string]bool{}
	for _, tile := range rows.Tiles {
		// As a browser that is on the portal resolves it.
		base, _ := url.Parse("https://media.example.org/portal/")
		target, err := base.Parse(tile.Target)
		if err != nil || target.Host != "media.example.org" || target.Scheme != "https" || target.Path != "/portal/app/"+m.Service && !strings.HasPrefix(target.Path, "/portal/app/"+m.Service+"/") {
			t.Fatalf("target %q leaves the console", tile.Target)
		}
		if keys[tile.Key] || !strings.HasPrefix(tile.Key, "addon."+m.Service) {
			t.Fatalf("tile key %q", tile.Key)
		}
		keys[tile.Key] = true
	}
	for _, slot := range rows.Slots {
		if u, err := url.Parse(slot.URL); slot.URL != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil) {
			t.Fatalf("slot address %q", slot.URL)
		}
	}
	for _, text := range []string{rows.App.Title, rows.App.Description, m.Version} {
		if strings.ContainsFunc(text, unicode.IsControl) {
			t.Fatalf("text %q", text)
		}
	}
}
