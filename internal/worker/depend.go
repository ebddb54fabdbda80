package worker

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"zaentrum.io/zae/internal/manifest"
	"zaentrum.io/zae/internal/render"
	"zaentrum.io/zae/internal/values"
)

// Dependence is what of a chart's objects depends on its secret inputs, in whatever way the templates made it: a part
// of a secret, an encoding, a digest. It is found by rendering the chart with other secrets of the same form, and holding
// one against the other. The data of Secrets is left out, and so are texts that a secret stands in as it is, if it is
// long enough to be found there.
//
// It must be kept as the secrets themselves.
type Dependence struct {
	// Texts are the values and keys, each once and sorted: none of them may be shown.
	Texts []string
	// Numbers are those that differ.
	Numbers []int64
	// Others are the other secrets, by path.
	Others map[string]string
	// Blind are the inputs of which no other value renders. Then all texts but those that the templates have are among
	// Texts.
	Blind []string
}

const (
	// maxTries is how many renders may be spent on other secrets.
	maxTries = 24
	// maxDependent and maxDependentText bound what is handed over, in number and bytes.
	maxDependent     = 4096
	maxDependentText = 4096
)

// secretsIn are the secret inputs that have a value, by path.
func (l *loaded) secretsIn(j Job, merged map[string]any) map[string]string {
	paths := map[string]bool{}
	for _, in := range l.schema.Inputs() {
		if in.Secret && !in.Unaddressable {
			paths[in.Path] = true
		}
	}
	for _, f := range j.From {
		if f.Secret && f.TargetPath != "" {
			paths[f.TargetPath] = true
		}
	}
	out := map[string]string{}
	for path := range paths {
		keys, err := values.ParsePath(path)
		if err != nil {
			continue
		}
		v, _ := values.Get(merged, keys)
		if text, ok := v.(string); ok && text != "" {
			out[path] = text
		}
	}
	return out
}

// depends finds what of the set depends on secrets. Until is the processor time at which it has to come to an end.
func (l *loaded) depends(ctx context.Context, in render.Input, set manifest.Set, secrets map[string]string, until time.Duration) *Dependence {
	if len(secrets) == 0 {
		return nil
	}
	t := &twins{loaded: l, in: in, likes: map[string]*likeness{}, until: until}
	for path, text := range secrets {
		t.likes[path] = likenessOf(text)
	}
	other := t.find(ctx)
	out := &Dependence{Others: map[string]string{}}
	c := &contrast{made: map[string]bool{}, plain: map[string]bool{}, numbers: map[int64]bool{}, sources: l.words()}
	for _, path := range slices.Sorted(maps.Keys(secrets)) {
		text := t.likes[path].text()
		if text == secrets[path] {
			out.Blind = append(out.Blind, path)
			continue
		}
		out.Others[path] = text
		for _, part := range t.likes[path].kept() {
			if !strings.Contains(c.sources, part) { // what a template asks for is no secret
				c.kept = append(c.kept, strings.ToLower(part))
			}
		}
	}
	c.ours, c.theirs = replacer(secrets), replacer(out.Others)
	if len(out.Blind) > 0 {
		for _, o := range set {
			c.object(o, nil)
		}
	} else {
		c.sets(set, other)
	}
	out.Texts, out.Numbers = c.found()
	return out
}

// minFound is the shortest secret that those who show texts look for by itself.
const minFound = 4

// replacer takes secrets out of texts, the longest first.
func replacer(secrets map[string]string) *strings.Replacer {
	texts := slices.Collect(maps.Values(secrets))
	slices.SortFunc(texts, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	var pairs []string
	for _, text := range texts {
		if len(text) >= minFound {
			pairs = append(pairs, text, "\x00")
		}
	}
	return strings.NewReplacer(pairs...)
}

// words are the chart's own: of its templates, schema and values.yaml.
func (l *loaded) words() string {
	var out strings.Builder
	for _, s := range render.Sources(l.chart) {
		out.WriteString(s.Text + "\n")
	}
	out.Write(l.chart.Schema)
	fmt.Fprintln(&out, l.chart.Defaults)
	return out.String()
}

// twins look for other secrets with which a chart renders as well.
type twins struct {
	*loaded
	in    render.Input
	likes map[string]*likeness
	until time.Duration
	tries int
	set   manifest.Set // of the last try that rendered
}

// find changes the secrets as far as the chart renders, and is what it renders then. A chart may check them: for the
// beginning of one, or a pattern. So what cannot be changed is halved, and halved again.
func (t *twins) find(ctx context.Context) manifest.Set {
	paths := slices.Sorted(maps.Keys(t.likes))
	for _, path := range paths {
		t.likes[path].change(t.likes[path].changeable(), true)
	}
	if t.renders(ctx) {
		return t.set
	}
	for _, path := range paths {
		t.likes[path].change(t.likes[path].changeable(), false)
	}
	for _, path := range paths {
		t.halve(ctx, t.likes[path], t.likes[path].changeable())
	}
	return t.set
}

func (t *twins) halve(ctx context.Context, l *likeness, places []int) {
	if len(places) == 0 {
		return
	}
	l.change(places, true)
	if t.renders(ctx) {
		return
	}
	l.change(places, false)
	if len(places) < minKept {
		return
	}
	// The end first: what is checked of a secret is how it begins, and tries may run out.
	t.halve(ctx, l, places[len(places)/2:])
	t.halve(ctx, l, places[:len(places)/2])
}

func (t *twins) renders(ctx context.Context) bool {
	if t.tries++; t.tries > maxTries || processorTime() > t.until {
		return false
	}
	in := t.in
	in.Values = values.CloneTree(t.in.Values)
	for path, l := range t.likes {
		keys, _ := values.ParsePath(path)
		values.Set(in.Values, keys, l.text())
	}
	if len(render.Validate(in, t.schema)) > 0 {
		return false
	}
	set, errs := render.Render(ctx, in)
	if len(errs) > 0 || tooMuch(set) != "" {
		return false
	}
	t.set = set
	return true
}

// contrast collects what two sets have otherwise.
type contrast struct {
	sources string   // what the chart itself says
	kept    []string // parts of secrets that both sets have, in lower case

	ours, theirs *strings.Replacer // take the secrets of each out

	made, plain map[string]bool
	numbers     map[int64]bool
}

func (c *contrast) sets(set, other manifest.Set) {
	pairs := map[int]manifest.Object{}
	taken := map[int]bool{}
	for _, same := range []func(i, j int) bool{
		func(i, j int) bool {
			return c.ours.Replace(set[i].ID().String()) == c.theirs.Replace(other[j].ID().String()) && set[i].Source == other[j].Source
		},
		func(i, j int) bool { return set[i].ID().Kind == other[j].ID().Kind && set[i].Source == other[j].Source },
		func(i, j int) bool { return set[i].Source == other[j].Source },
	} {
		next := 0 // both are in the same order, but for what secrets make of it
		for i := range set {
			if _, done := pairs[i]; done {
				continue
			}
			for n := range other {
				j := (next + n) % len(other)
				if !taken[j] && same(i, j) {
					pairs[i], taken[j], next = other[j], true, j+1
					break
				}
			}
		}
	}
	for i := range set {
		if o, ok := pairs[i]; ok {
			c.object(set[i], o.Tree)
		} else {
			c.object(set[i], nil)
		}
	}
}

// object holds an object against another one; against nothing, all of it differs.
func (c *contrast) object(o manifest.Object, other map[string]any) {
	tree := o.Tree
	if strings.EqualFold(o.ID().Kind, "Secret") {
		tree = maps.Clone(tree)
		for _, field := range []string{"data", "stringData"} {
			if data, ok := tree[field].(map[string]any); ok {
				tree[field] = keysOf(data)
			}
			if data, ok := other[field].(map[string]any); ok {
				other = maps.Clone(other)
				other[field] = keysOf(data)
			}
		}
	}
	if other == nil {
		c.all(tree)
		return
	}
	c.compare(tree, other)
}

// keysOf is a mapping without what stands under its keys.
func keysOf(tree map[string]any) map[string]any {
	out := make(map[string]any, len(tree))
	for k := range tree {
		out[k] = nil
	}
	return out
}

func (c *contrast) compare(v, other any) {
	switch v := v.(type) {
	case map[string]any:
		theirs, ok := other.(map[string]any)
		if !ok {
			c.all(v)
			return
		}
		byKey := make(map[string]any, len(theirs))
		for k, item := range theirs {
			byKey[c.theirs.Replace(k)] = item
		}
		for k, item := range v {
			if o, found := byKey[c.ours.Replace(k)]; found {
				c.same(k)
				c.compare(item, o)
			} else {
				c.text(k)
				c.all(item)
			}
		}
	case []any:
		theirs, ok := other.([]any)
		if !ok || len(theirs) != len(v) {
			c.all(v)
			return
		}
		for i := range v {
			c.compare(v[i], theirs[i])
		}
	case string:
		if text, ok := other.(string); ok && c.ours.Replace(v) == c.theirs.Replace(text) {
			c.same(v)
		} else {
			c.made[v] = true
		}
	case int64:
		if other != any(v) {
			c.numbers[v] = true
		}
	}
}

// same is a text that both have.
func (c *contrast) same(text string) {
	lower := strings.ToLower(c.ours.Replace(text))
	if slices.ContainsFunc(c.kept, func(part string) bool { return strings.Contains(lower, part) }) {
		c.made[text] = true
		return
	}
	c.plain[text] = true
}

// all is a value of which nothing is known.
func (c *contrast) all(v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, item := range v {
			c.text(k)
			c.all(item)
		}
	case []any:
		for _, item := range v {
			c.all(item)
		}
	case string:
		c.text(v)
	case int64:
		if !c.said(strconv.FormatInt(v, 10)) {
			c.numbers[v] = true
		}
	}
}

// text is one of which nothing is known, but that the chart may say it itself.
func (c *contrast) text(text string) {
	if !c.said(text) {
		c.made[text] = true
	}
}

// said tells whether a text stands in the chart's own files, as a word.
func (c *contrast) said(text string) bool {
	letter := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	for rest := c.sources; text != ""; {
		before, after, found := strings.Cut(rest, text)
		if !found {
			return false
		}
		last, _ := utf8.DecodeLastRuneInString(before)
		first, _ := utf8.DecodeRuneInString(after)
		if !letter(last) && !letter(first) {
			return true
		}
		rest = after
	}
	return true
}

// found is what is handed over: what differs and stands nowhere else.
func (c *contrast) found() (texts []string, numbers []int64) {
	for text := range c.made {
		if text != "" && !c.plain[text] && !slices.Contains(kinds, text) {
			texts = append(texts, bounded(text))
			if shown := shown(text); shown != text && shown != "" { // as findings show it
				texts = append(texts, bounded(shown))
			}
		}
	}
	slices.Sort(texts)
	texts = slices.Compact(texts)
	return texts[:min(len(texts), maxDependent)], slices.Sorted(maps.Keys(c.numbers))
}

func shown(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, text)
}

func bounded(text string) string {
	if len(text) <= maxDependentText {
		return text
	}
	return strings.ToValidUTF8(text[:maxDependentText], "")
}

// kinds are words that every plan has.
var kinds = []string{"ServiceAccount", "Secret", "ConfigMap", "PersistentVolumeClaim", "Service", "Deployment", "Job"}
