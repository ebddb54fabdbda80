package lint

import (
	"slices"
	"strings"

	"zaentrum.io/zae/internal/manifest"
)

// probePorts looks for ports that probes and hooks name and their container does not have. The kubelet looks at no
// other container.
func (c *referring) probePorts() {
	for _, container := range c.containers() {
		handlers := []spot{
			container.at("startupProbe"), container.at("readinessProbe"), container.at("livenessProbe"),
			container.at("lifecycle", "postStart"), container.at("lifecycle", "preStop"),
		}
		for _, h := range handlers {
			for _, how := range []string{"httpGet", "tcpSocket"} {
				port := h.at(how, "port")
				if port.text() != "" && !slices.ContainsFunc(container.at("ports").items(), func(p spot) bool { return p.at("name").text() == port.text() }) {
					c.tell("missing-port", port, "the container has no port %s", c.written(port.text(), "of this name"))
				}
			}
		}
	}
}

// target is where a port of a Service leads.
type target struct {
	name     string // of a container's port; empty for a number
	number   int64
	protocol string
}

func targetOf(port spot) (target, spot) {
	t := target{protocol: protocol(port)}
	switch at := port.at("targetPort"); v := at.raw.(type) {
	case string:
		t.name = v
		return t, at
	case int64:
		t.number = v
		return t, at
	default:
		t.number = port.at("port").number(0)
		return t, port.at("port")
	}
}

func protocol(port spot) string {
	if p := port.at("protocol").text(); p != "" {
		return p
	}
	return "TCP"
}

// finds tells whether one of the containers has the port, and whether they have any.
func (t target) finds(w workload) (found, any bool) {
	for _, c := range w.serving() {
		for _, p := range c.at("ports").items() {
			any = true
			if protocol(p) == t.protocol && (t.name != "" && p.at("name").text() == t.name || t.name == "" && p.at("containerPort").raw == t.number) {
				found = true
			}
		}
	}
	return found, any
}

// serviceTargets looks at where a Service leads: to pods at all, and to ports that they have.
func (l *linter) serviceTargets(r *rendered, s manifest.Object, number int) {
	spec := spotOf(s).at("spec")
	selector := spec.at("selector")
	pods := r.selected(selector.fields())
	if len(pods) == 0 {
		switch {
		case s.ID().Name == l.primary():
			l.refers("service-without-pods", "", s, selector, number, "the primary Service selects none of the chart's pods: it can never be reached")
		case selector.blank():
			l.refers("service-without-pods", Warning, s, selector, number, "the Service selects nothing, and nothing else in an addon says where it leads")
		} // else a guardrail warns
		return
	}
	for _, port := range spec.at("ports").items() {
		t, at := targetOf(port)
		if t.name != "" {
			l.namedTarget(s, pods, t, at, number)
		} else if spec.at("clusterIP").text() != "None" { // there, what clients dial is the pod's port
			l.numberedTarget(s, pods, t, at, number)
		}
	}
}

func (l *linter) namedTarget(s manifest.Object, pods []workload, t target, at spot, number int) {
	if !slices.ContainsFunc(pods, func(w workload) bool { found, _ := t.finds(w); return found }) {
		l.refers("missing-port", "", s, at, number, "no pod that the Service selects has a port %s for %s", l.written(t.name, "of this name"), t.protocol)
	}
}

// numberedTarget goes by what containers declare: that is only information, so that it is hardly right, but may be.
func (l *linter) numberedTarget(s manifest.Object, pods []workload, t target, at spot, number int) {
	var without []string
	declared := false
	for _, w := range pods {
		found, any := t.finds(w)
		declared = declared || any
		if !found {
			without = append(without, l.told(w.ID().Kind, w.ID().Name))
		}
	}
	if !declared || len(without) == 0 {
		return
	}
	if len(without) == len(pods) {
		l.refers("port-differs", "", s, at, number, "the containers of %s declare other ports than this one (%s)", strings.Join(without, ", "), t.protocol)
		return
	}
	l.refers("port-differs", "", s, at, number, "the Service also selects pods of %s, which do not declare this port (%s)", strings.Join(without, ", "), t.protocol)
}
