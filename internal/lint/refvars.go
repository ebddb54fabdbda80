package lint

import (
	"slices"
	"strings"
)

// variables looks for variables that a value refers to and that are not there: the text stays as it is.
func (c *referring) variables() {
	for _, container := range c.containers() {
		env := container.at("env").items()
		all, known := c.fromWhole(container)
		if !known {
			continue
		}
		before := map[string]bool{}
		for name := range all {
			before[name] = true
		}
		for _, e := range env {
			all[e.at("name").text()] = true
		}
		for _, e := range env {
			for _, name := range variablesIn(e.at("value").text()) {
				if !before[name] && (all[name] || !c.byService(name)) {
					c.tell("missing-variable", e.at("value"), "refers to %s, which is not defined before it: it stays $(…)", c.written(name, "a variable"))
				}
			}
			before[e.at("name").text()] = true
		}
		for _, part := range slices.Concat(container.at("command").items(), container.at("args").items()) {
			for _, name := range variablesIn(part.text()) {
				// A script has brackets of its own.
				if !all[name] && !c.byService(name) && !strings.ContainsAny(part.text(), " \n\t;") {
					c.tell("missing-variable", part, "refers to %s, which the container does not have: it stays $(…)", c.written(name, "a variable"))
				}
			}
		}
		for _, m := range container.at("volumeMounts").items() {
			for _, name := range variablesIn(m.at("subPathExpr").text()) {
				if !all[name] {
					c.severe("missing-variable", m.at("subPathExpr"), Error, "refers to %s, which the container does not have: it does not start", c.written(name, "a variable"))
				}
			}
		}
	}
}

// fromWhole are the variables that a container takes from whole objects; known is false when one of these is not
// the chart's.
func (c *referring) fromWhole(container spot) (names map[string]bool, known bool) {
	names = map[string]bool{}
	for _, from := range container.at("envFrom").items() {
		for kind, ref := range map[string]spot{"Secret": from.at("secretRef"), "ConfigMap": from.at("configMapRef")} {
			if ref.raw == nil {
				continue
			}
			keys, rendered := c.keys[kind+"/"+ref.at("name").text()]
			if !rendered {
				return nil, false
			}
			for key := range keys {
				names[from.at("prefix").text()+key] = true
			}
		}
	}
	return names, true
}

// variablesIn are the names in $(NAME), as far as they look like those of variables. $$ stands for a dollar.
func variablesIn(text string) []string {
	var out []string
	for {
		i := strings.IndexByte(text, '$')
		if i < 0 || i+1 == len(text) {
			return out
		}
		text = text[i+1:]
		switch text[0] {
		case '$':
			text = text[1:]
		case '(':
			name, rest, closed := strings.Cut(text[1:], ")")
			if !closed {
				return out
			}
			if name != "" && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == "" {
				out = append(out, name)
			}
			text = rest
		}
	}
}

// byService tells whether a variable is one that the kubelet makes of Services in the namespace.
func (c *referring) byService(name string) bool {
	if c.pod.at("enableServiceLinks").raw == false {
		return strings.HasPrefix(name, "KUBERNETES_")
	}
	for _, part := range []string{"_SERVICE_HOST", "_SERVICE_PORT", "_PORT"} {
		if before, after, found := strings.Cut(name, part); found && before != "" && (after == "" || after[0] == '_') {
			return true
		}
	}
	return false
}
