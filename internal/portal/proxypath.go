package portal

import (
	"strings"

	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/registry/capability"
)

// way is one of the two ways to an app: the API, with a bearer, and the console, whose files browsers ask for without.
type way int

const (
	wayAPI way = iota
	wayConsole
)

// base is where a way to an app begins.
func (w way) base(key string) string {
	if w == wayConsole {
		return capability.BaseURL(key)
	}
	return apitype.PathApps + "/" + key
}

// pattern names a way in metrics and logs.
func (w way) pattern() string {
	if w == wayConsole {
		return capability.BaseURL("{key}") + "/{path...}"
	}
	return apitype.PathApps + "/{key}/{path...}"
}

// splitProxied takes the path of a request, as it was sent, apart: the way, the app's key, and the rest with its slash,
// which is empty for a console's address without one. It is false for a path that leads to no app. Neither part is judged.
func splitProxied(path string) (w way, key, rest string, ok bool) {
	for _, w := range []way{wayAPI, wayConsole} {
		after, found := strings.CutPrefix(path, w.base(""))
		if !found {
			continue
		}
		key, rest, slash := strings.Cut(after, "/")
		switch {
		case slash:
			return w, key, "/" + rest, true
		case w == wayConsole && key != "":
			return w, key, "", true
		}
	}
	return 0, "", "", false
}
