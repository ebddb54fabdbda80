package portal

import "testing"

func TestAProxiedPathIsTakenApartAsItWasSent(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]struct {
		way       way
		key, rest string
		ok        bool
	}{
		"/api/portal/apps/example/a/b": {wayAPI, "example", "/a/b", true},
		"/api/portal/apps/example/":    {wayAPI, "example", "/", true},
		"/api/portal/apps/example":     {}, // an app itself, not the proxy's
		"/api/portal/apps/":            {},
		"/api/portal/apps//a":          {wayAPI, "", "/a", true},
		"/api/portal/apps/../addons":   {wayAPI, "..", "/addons", true},
		"/api/portal/apps/a%2fb/c":     {wayAPI, "a%2fb", "/c", true},
		"/portal/app/example":          {wayConsole, "example", "", true},
		"/portal/app/example/":         {wayConsole, "example", "/", true},
		"/portal/app/":                 {},
		"/portal/apps/example/":        {},
		"/api/portal/addons":           {},
	} {
		w, key, rest, ok := splitProxied(in)
		if w != want.way && ok || key != want.key || rest != want.rest || ok != want.ok {
			t.Errorf("%s: %v %q %q %v", in, w, key, rest, ok)
		}
	}
}
