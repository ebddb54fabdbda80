package lint

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"

	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/manifest"
	"zaentrum.io/zae/internal/values"
	"zaentrum.io/zae/internal/worker"
)

// extra renders what must be given once more: for another platform, and as another version.
func (l *linter) extra(ctx context.Context, base *worker.Result, g given, platform map[string]any) error {
	// The row that rendered may not be the first: the same one is taken again.
	again := func(a *chart.Archive, g given, platform map[string]any, number int) (manifest.Set, error) {
		result, err := l.one(ctx, a, g, platform, number)
		if err != nil || result == nil {
			return nil, err
		}
		return result.Objects, nil
	}
	set, err := again(l.src.Archive, g, otherPlatform(), elsewhere)
	if err != nil {
		return err
	}
	l.guard(set, set == nil, elsewhere, otherPlatform())
	l.references(set, otherPlatform(), elsewhere)
	l.portable(set)
	bumped, err := l.otherVersion()
	if err != nil || bumped == nil {
		return err
	}
	if set, err = again(bumped, g, platform, static); err != nil {
		return err
	}
	l.steady(base.Objects, set)
	return nil
}

// calledOtherwise renders an addon of another name than the chart's: the primary Service is still the one that the chart
// names.
func (l *linter) calledOtherwise(ctx context.Context, base *worker.Result, g given, platform map[string]any) error {
	primary := l.primary()
	named := func(set manifest.Set) (manifest.Object, bool) {
		for _, o := range setOf(set, "Service") {
			if o.ID().Name == primary {
				return o, true
			}
		}
		return manifest.Object{}, false
	}
	service, there := named(base.Objects)
	if l.spare() < 1 || !there || !strings.Contains(l.text[service.Source], "elease") && !l.helpersReadRelease() {
		return nil // nothing depends on the name
	}
	job := g.job("zs-other-name", platform)
	result, err := l.o.Worker.Render(ctx, l.src.Archive, job)
	l.out.Renders++
	var over *worker.Overrun
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &over):
		return nil
	case err != nil:
		return err
	}
	if _, there = named(result.Objects); !there && len(result.ValuesErrors) == 0 {
		l.finding("name-changes", service, "metadata.name", "the primary's name changes with the addon's: of an addon that is called otherwise than the chart, the plan is refused", static)
	}
	return nil
}

// helpersReadRelease tells whether a named template may say the addon's name.
func (l *linter) helpersReadRelease() bool {
	for name, text := range l.text {
		if (strings.HasSuffix(name, ".tpl") || strings.Contains(name, "/_")) && strings.Contains(text, "elease") {
			return true
		}
	}
	return false
}

// otherSecrets are the same values with other secrets, of another length where the schema lets them.
func (l *linter) otherSecrets(g given) given {
	m := l.space.made
	m.salt, m.long, m.variant = "second", true, 1
	out := given{spec: g.spec, generated: map[string]string{}, secrets: map[string]string{}}
	others := map[string]string{} // by what they were
	for path, text := range g.secrets {
		other := m.sentinel(path)
		if in, ok := l.space.schema.Input(path); ok {
			if _, generated := g.generated[path]; generated {
				other = m.generated(in)
				out.generated[path] = other
			} else if v, ok := m.value(in); ok {
				other, _ = v.(string)
			}
		}
		out.secrets[path], others[text] = other, other
	}
	for _, from := range g.from {
		if from.TargetPath != "" {
			from.Text = out.secrets[from.TargetPath]
		}
		from.Document, _ = swapped(from.Document, func(text string) string {
			if other, ok := others[text]; ok {
				return other
			}
			return text
		}).(map[string]any)
		out.from = append(out.from, from)
	}
	return out
}

// swapped is a value with other texts in it.
func swapped(v any, other func(string) string) any {
	switch v := v.(type) {
	case string:
		return other(v)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = swapped(item, other)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[key] = swapped(item, other)
		}
		return out
	default:
		return v
	}
}

// The facts of a platform with every default. None of them is another platform's.
var (
	realmURL    = regexp.MustCompile(`https?://[^/\s"']+/(?:[^\s"']*/)?realms/[^\s"']+`)
	brokerText  = regexp.MustCompile(`(^|[\s,/"'=])kafka(?:-[a-z0-9-]+)?(?:\.[a-z0-9.-]+)?:90[0-9]{2}\b`)
	hostText    = regexp.MustCompile(`\b(?:[a-z0-9-]+\.)*zaentrum\.localhost\b|\bmedia\.example\.org\b`)
	serviceText = regexp.MustCompile(`\b[a-z0-9-]+\.zaentrum(?:\.svc(?:\.cluster\.local)?)?(?:[:/]|$)`)
	// clusterText is the address of a Service in any namespace.
	clusterText = regexp.MustCompile(`\b([a-z0-9-]+)\.([a-z0-9-]+)\.svc(?:\.cluster\.local)?\b`)
)

// portable looks for facts of a default platform in what is rendered for another one.
func (l *linter) portable(set manifest.Set) {
	claims := map[string]bool{}
	for _, o := range setOf(set, "PersistentVolumeClaim") {
		claims[o.ID().Name] = true
	}
	for _, o := range set {
		if namespace, ok := values.Get(o.Tree, []string{"metadata", "namespace"}); ok && namespace != "zs-other" {
			l.platformFact(o, "metadata.namespace", "the namespace is written into the chart: leave it out, or take .Values.zaentrum.namespace")
		}
		for _, leaf := range leaves(o) {
			switch {
			case leaf.data && o.ID().Kind == "Secret" && strings.HasPrefix(leaf.path, "data"):
			case strings.HasSuffix(leaf.path, ".image"):
			case strings.HasSuffix(leaf.path, "claimName") && leaf.text == "media" && !claims["media"]:
				l.platformFact(o, leaf.path, "the media claim's name is written into the chart: take .Values.zaentrum.media.claimName")
			case realmURL.MatchString(leaf.text):
				l.platformFact(o, leaf.path, "an issuer is written into the chart: take .Values.zaentrum.issuer")
			case hostText.MatchString(leaf.text):
				l.platformFact(o, leaf.path, "a hostname is written into the chart: take .Values.zaentrum.hostname")
			case brokerText.MatchString(leaf.text):
				l.platformFact(o, leaf.path, "an address of brokers is written into the chart: take .Values.zaentrum.events.brokers")
			case serviceText.MatchString(leaf.text):
				l.platformFact(o, leaf.path, "an address in the namespace zaentrum is written into the chart: take .Values.zaentrum.namespace, or the Service's name alone")
			case inNamespace(leaf.text) != "":
				l.platformFact(o, leaf.path, "an address in the namespace "+inNamespace(leaf.text)+" is written into the chart: take .Values.zaentrum.namespace, or the Service's name alone; let an admin give what is in another namespace")
			case strings.HasPrefix(leaf.text, "stube."):
				l.platformFact(o, leaf.path, "the prefix of topics is written into the chart: take .Values.zaentrum.events.topicPrefix")
			}
		}
	}
}

// inNamespace is a namespace that an address in a text names, if it is another one than the platform's, and not that of
// the cluster's own API.
func inNamespace(text string) string {
	for _, m := range clusterText.FindAllStringSubmatch(text, -1) {
		if m[2] != "zs-other" && m[1]+"."+m[2] != "kubernetes.default" && !madeUp.MatchString(m[2]) {
			return m[2]
		}
	}
	return ""
}

func (l *linter) platformFact(o manifest.Object, path, message string) {
	what, fix, _ := strings.Cut(message, ": ")
	one := Finding{Rule: "hard-coded-platform", File: o.Source, Object: o.ID().String(), Path: path, Message: what, Fix: strings.ToUpper(fix[:1]) + fix[1:] + "."}
	at := l.locate(o.Source, path)
	one.Line, one.Column = at.line, at.column
	l.f.add(one, static)
}

var (
	versionLine    = regexp.MustCompile(`(?m)^version:.*$`)
	appVersionLine = regexp.MustCompile(`(?m)^appVersion:.*$`)
)

// otherVersion is the same chart as another version; nil when Chart.yaml says its version in some other way.
func (l *linter) otherVersion() (*chart.Archive, error) {
	files := slices.Clone(l.files)
	i := slices.IndexFunc(files, func(f chart.File) bool { return f.Name == chartFile })
	if i < 0 || len(versionLine.FindAll(files[i].Data, 2)) != 1 {
		return nil, nil
	}
	text := versionLine.ReplaceAll(files[i].Data, []byte("version: 987.65.43"))
	files[i].Data = appVersionLine.ReplaceAll(text, []byte(`appVersion: "987.65.44"`))
	return chart.Repack(l.name(), files)
}

// steady compares two versions of one chart that differ in nothing but their numbers.
func (l *linter) steady(a, b manifest.Set) {
	if b == nil {
		return
	}
	for _, o := range a {
		other, ok := b.Find(o.ID())
		if !ok {
			l.finding("name-changes", o, "metadata.name", "the name changes with the version or app version", 0)
			continue
		}
		path := []string{"spec", "selector"}
		if kind := o.ID().Kind; kind != "Deployment" && kind != "Service" {
			continue
		}
		before, _ := values.Get(o.Tree, path)
		after, _ := values.Get(other.Tree, path)
		if sameValue(before, after) {
			continue
		}
		message := "the selector changes with the version or app version"
		if o.ID().Kind == "Service" {
			message += ": pods of the version before are cut off during a rollout"
		}
		l.finding("selector-changes", o, "spec.selector", message, 0)
	}
}
