package lint

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"zaentrum.io/zae/internal/manifest"
)

// What objects say of each other, and pods of themselves: every guardrail may be content with it, and yet no
// container starts, or nobody reaches it.

// references judges one set of objects.
func (l *linter) references(set manifest.Set, platform map[string]any, number int) {
	r := newRendered(set, platform)
	for _, w := range r.pods {
		c := &referring{linter: l, rendered: r, workload: w, row: number}
		c.keyReferences()
		c.pullSecrets()
		c.mounts()
		c.variables()
		c.probePorts()
		c.claimReferences()
	}
	for _, s := range r.services {
		l.serviceTargets(r, s, number)
	}
	l.sharedClaims(r, number)
}

// referring is one workload at which references are looked at.
type referring struct {
	*linter
	*rendered
	workload
	row int
}

func (c *referring) tell(rule string, at spot, format string, args ...any) {
	c.refers(rule, "", c.Object, at, c.row, format, args...)
}

// severe tells of something that matters more, or less, than its rule does elsewhere.
func (c *referring) severe(rule string, at spot, severity Severity, format string, args ...any) {
	c.refers(rule, severity, c.Object, at, c.row, format, args...)
}

func (l *linter) refers(rule string, severity Severity, o manifest.Object, at spot, row int, format string, args ...any) {
	place := l.locate(o.Source, at.path)
	l.f.add(Finding{
		Rule: rule, Severity: severity, File: o.Source, Line: place.line, Column: place.column,
		Object: o.ID().String(), Path: at.path, Message: fmt.Sprintf(format, args...),
	}, row)
}

// written is a name as findings may say it: only when the chart's own files have it in so many words, since else it
// is a value, or made of one. Otherwise it is what it is called instead.
func (l *linter) written(name, otherwise string) string {
	known, asked := l.words[name]
	if !asked {
		for file, text := range l.text {
			known = known || path.Base(file) == name || isTemplate(file) && strings.Contains(text, name)
		}
		if l.words == nil {
			l.words = map[string]bool{}
		}
		l.words[name] = known
	}
	if name == "" || !known {
		return otherwise
	}
	return name
}

// told is an object as findings about another one name it.
func (l *linter) told(kind, name string) string {
	return kind + "/" + unmade(name)
}

// unmade is a text without values that were made up, which mean nothing to anybody.
func unmade(text string) string { return madeUp.ReplaceAllString(text, "…") }

// madeUp are values that were made up, wherever they are in a text and whatever their case.
var madeUp = regexp.MustCompile(`(?i)zs[0-9a-f]{8,16}(?:qx)?`)

// keyReferences looks for keys that a container's environment or a volume takes, and that are not there.
func (c *referring) keyReferences() {
	for _, container := range c.containers() {
		for _, e := range container.at("env").items() {
			c.keyReference("Secret", e.at("valueFrom", "secretKeyRef"))
			c.keyReference("ConfigMap", e.at("valueFrom", "configMapKeyRef"))
		}
	}
	for _, v := range c.pod.at("volumes").items() {
		c.itemKeys("Secret", v.at("secret"), "secretName")
		c.itemKeys("ConfigMap", v.at("configMap"), "name")
		for _, p := range v.at("projected", "sources").items() {
			c.itemKeys("Secret", p.at("secret"), "name")
			c.itemKeys("ConfigMap", p.at("configMap"), "name")
		}
	}
}

func (c *referring) keyReference(kind string, ref spot) {
	if ref.raw != nil && ref.at("optional").raw != true {
		c.key(kind, ref.at("name").text(), ref.at("key"))
	}
}

func (c *referring) itemKeys(kind string, source spot, name string) {
	if source.at("optional").raw == true {
		return
	}
	for _, item := range source.at("items").items() {
		c.key(kind, source.at(name).text(), item.at("key"))
	}
}

// key tells of a key that an object does not have. Nothing is known of objects that are not rendered: the guardrails
// speak of those.
func (c *referring) key(kind, name string, key spot) {
	keys, known := c.keys[kind+"/"+name]
	if !known || keys[key.text()] || key.text() == "" {
		return
	}
	owner := c.told(kind, name)
	if c.handed[kind+"/"+name] {
		owner = "the platform's Secret for its events"
	}
	c.tell("missing-key", key, "%s has no key %s", owner, c.written(key.text(), "of this name"))
}

// pullSecrets looks for Secrets that no image can be pulled with. The platform's can.
func (c *referring) pullSecrets() {
	for _, e := range c.pod.at("imagePullSecrets").items() {
		name := e.at("name")
		secret, own := c.secrets[name.text()]
		if own && secret.at("type").text() != "kubernetes.io/dockerconfigjson" {
			c.tell("pull-secret-type", name, "%s is not of type kubernetes.io/dockerconfigjson, so nothing is pulled with it", c.told("Secret", name.text()))
		}
	}
}
