package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/chart"
	"zaentrum.io/zae/internal/engine"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/manifest"
	"zaentrum.io/zae/internal/values"
	"zaentrum.io/zae/internal/worker"
)

// chartHelp says what CHART may be.
const chartHelp = `CHART is a chart's directory, a chart archive (.tgz), or a reference: oci://registry/path/chart or an
https:// link to an archive. Only a reference is fetched, anonymously; nothing else here uses the
network, and nothing a cluster or an instance.`

// chartFlags say more about a CHART argument.
type chartFlags struct {
	version, digest string
	loopback        []string
}

func (c *chartFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&c.version, "version", "", "`VERSION` of the chart; needed for oci:// without a tag")
	flags.StringVar(&c.digest, "digest", "", "`DIGEST`, sha256:…, that the chart archive must have")
	registerLoopback(flags, &c.loopback)
}

func registerLoopback(flags *pflag.FlagSet, loopback *[]string) {
	flags.StringSliceVar(loopback, "allow-loopback-registry", nil, "development only: `HOST:PORT` of a registry on a loopback address, over plain http")
}

// isReference tells a reference from a path.
func isReference(arg string) bool { return strings.Contains(arg, "://") }

// archive is what a CHART argument stands for: a directory is packed, an archive read, a reference fetched.
func (a *app) archive(ctx context.Context, arg string, c *chartFlags) (*chart.Archive, error) {
	if isReference(arg) {
		return a.fetch(ctx, arg, c)
	}
	if c.version != "" {
		return nil, fault.New(fault.Usage, "--version is for oci:// references: a directory or archive has one version")
	}
	if _, err := chart.Source("oci://registry/chart:1", "", c.digest); err != nil {
		return nil, usage(err)
	}
	found, err := chart.ReadLocal(arg)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, noChart(arg)
	case err != nil:
		return nil, err
	case c.digest != "" && c.digest != found.Digest:
		return nil, fault.New(fault.Digest, "chart %s is not %s (archive %s)", arg, c.digest, found.Digest)
	}
	return found, nil
}

func (a *app) fetch(ctx context.Context, arg string, c *chartFlags) (*chart.Archive, error) {
	src, err := chart.Source(arg, c.version, c.digest)
	if err != nil {
		return nil, usage(err)
	}
	f, err := chart.NewFetcher(chart.FetcherOptions{AllowLoopback: c.loopback})
	if err != nil {
		return nil, usage(fault.New(fault.Usage, "%s", err).WithHint("see --allow-loopback-registry"))
	}
	defer func() { _ = f.Close() }() // ends what is under way; there is nothing to lose
	return f.Fetch(ctx, src)
}

// offlineFlags are the flags of commands that do what the operator does, without a cluster.
type offlineFlags struct {
	chart          chartFlags
	given          givenFlags
	platform, name string

	verbatim bool // a template's error is told with the chart's own words, where no secret is given
}

func (o *offlineFlags) register(flags *pflag.FlagSet) {
	o.chart.register(flags)
	flags.StringVar(&o.name, "name", "", "`NAME` of the addon; by default the chart's")
	flags.StringVar(&o.platform, "platform", "", "the platform: `FILE` with one Zaentrum document; by default one in namespace zaentrum with every default")
	o.given.registerInputs(flags)
	o.given.registerUnset(flags, "what --values give")
}

// bench is where charts are worked on as the operator does, without a cluster. Close it.
type bench struct {
	a        *app
	flags    *offlineFlags
	pool     *worker.Pool
	given    *given
	platform *v1alpha1.Zaentrum
}

// newBench reads what the flags name. Faults of what was typed are Usage.
func (a *app) newBench(o *offlineFlags) (*bench, error) {
	asked, err := o.given.understand()
	if err != nil {
		return nil, err
	}
	a.stdinTaken = asked.stdin
	if o.name != "" {
		if err := checkName(o.name); err != nil {
			return nil, err
		}
	}
	platform := values.DefaultPlatform()
	if o.platform != "" {
		if platform, err = a.platformFile(o.platform); err != nil {
			return nil, err
		}
	}
	g, err := a.read(asked)
	if err != nil {
		return nil, err
	}
	if len(g.unset) > 0 {
		if g.filed, err = g.without(g.filed, "what --values give"); err != nil {
			return nil, err
		}
		g.values, g.set = nil, nil
		g.layer(asked.set)
	}
	pool, err := newWorkers(defaultRenderMemory, 1)
	if err != nil {
		return nil, err
	}
	return &bench{a: a, flags: o, pool: pool, given: g, platform: platform}, nil
}

// defaultRenderMemory is what the operator gives a chart by default.
const defaultRenderMemory = "384Mi"

func (b *bench) close() { _ = b.pool.Close() }

// platformFile reads one Zaentrum document.
func (a *app) platformFile(name string) (*v1alpha1.Zaentrum, error) {
	bad := func(format string, args ...any) error {
		return fault.New(fault.Usage, "the platform file "+printable(name)+" "+format, args...).
			WithHint("it holds one document: apiVersion %s, kind %s, metadata.namespace", v1alpha1.GroupVersion, v1alpha1.KindZaentrum)
	}
	if name == "-" {
		return nil, fault.New(fault.Usage, "--platform needs a file: stdin is for inputs")
	}
	text, err := a.readFile(name, maxGiven)
	if err != nil {
		return nil, bad("%s", whyUnread(err))
	}
	docs, err := manifest.Decode(text)
	var place *manifest.DecodeError
	switch {
	case errors.As(err, &place):
		return nil, bad("cannot be used: %s", place)
	case err != nil:
		return nil, bad("is not valid YAML")
	case len(docs) != 1:
		return nil, bad("holds %d documents instead of one", len(docs))
	}
	tree, _ := docs[0].(map[string]any)
	if id := (manifest.Object{Tree: tree}).ID(); id.APIVersion != v1alpha1.GroupVersion.String() || id.Kind != v1alpha1.KindZaentrum {
		return nil, bad("holds no %s of %s", v1alpha1.KindZaentrum, v1alpha1.GroupVersion)
	}
	raw, err := json.Marshal(tree)
	if err != nil {
		return nil, bad("cannot be held in JSON")
	}
	var z v1alpha1.Zaentrum
	if err := json.Unmarshal(raw, &z); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) && wrong.Field != "" {
			return nil, bad("has a value of the wrong type at %s", wrong.Field)
		}
		return nil, bad("has a value of the wrong type")
	}
	switch {
	case z.Namespace == "":
		return nil, bad("has no metadata.namespace")
	case len(validation.IsDNS1123Label(z.Namespace)) > 0:
		return nil, bad("has a metadata.namespace that is no name of one")
	case z.Spec.Hostname != "" && len(validation.IsDNS1123Subdomain(z.Spec.Hostname)) > 0:
		return nil, bad("has a spec.hostname that is none")
	}
	strict := json.NewDecoder(bytes.NewReader(raw))
	strict.DisallowUnknownFields()
	if err := strict.Decode(new(v1alpha1.Zaentrum)); err != nil {
		if _, field, ok := strings.Cut(err.Error(), "unknown field "); ok {
			a.err.printf("note: the platform file %s has the field %s, which no chart sees\n", name, strings.Trim(field, `"`))
		}
	}
	return &z, nil
}

// offlineChart is one chart on the bench.
type offlineChart struct {
	*bench
	archive *chart.Archive
	facts   *worker.Chart
	schema  *inputs.Schema // nil when it cannot be used
	engine  *engine.Engine
	request engine.Request
	// placeholders stand for generated inputs, by path; known once it was checked.
	placeholders map[string]string
}

// checkChart refuses what can be no chart, before anybody is asked for a secret.
func checkChart(arg string, o *offlineFlags) error {
	if !isReference(arg) {
		if _, err := os.Stat(arg); errors.Is(err, fs.ErrNotExist) {
			return noChart(arg)
		}
		return nil
	}
	_, err := chart.Source(arg, o.chart.version, o.chart.digest)
	if err == nil && o.name == "" {
		_, err = chart.DefaultName(arg)
	}
	return usage(err)
}

func noChart(arg string) error {
	return fault.New(fault.Usage, "there is no chart %s: no such file or directory", arg).
		WithHint("give a chart's directory, a .tgz archive, or oci://registry/path/chart")
}

// open puts the chart that an argument stands for on the bench.
func (b *bench) open(ctx context.Context, arg string) (*offlineChart, error) {
	found, facts, err := b.inspect(ctx, arg)
	if err != nil {
		return nil, err
	}
	c := &offlineChart{bench: b, archive: found, facts: facts}
	if facts.SchemaError == "" {
		c.schema, _ = inputs.Describe(facts.Schema) // the worker has read it
	}
	if err := b.given.astray(c.schema, "nothing was rendered"); err != nil {
		return nil, err
	}
	if err := b.a.ask(ctx, b.given); err != nil {
		return nil, err
	}
	for _, secret := range b.given.secrets {
		b.a.err.hidden.addForms(secret)
	}
	c.engine = &engine.Engine{Fetch: held{found}, Worker: b.pool}
	name := b.flags.name
	if name == "" {
		if name, err = c.defaultName(arg); err != nil {
			return nil, err
		}
	}
	c.request = engine.Request{
		Name: name, Namespace: b.platform.Namespace, Platform: b.platform,
		Chart: v1alpha1.ChartSource{Ref: shownReference(arg), Version: c.facts.Facts.Version},
		Spec:  b.given.values, Generated: c.placeholder,
		Verbatim: b.flags.verbatim && len(b.given.secrets) == 0,
	}
	for _, path := range slices.Sorted(maps.Keys(b.given.secrets)) {
		c.request.From = append(c.request.From, values.From{TargetPath: path, Text: b.given.secrets[path], Secret: true})
	}
	return c, nil
}

// inspect reads the chart that an argument stands for, without its values and templates.
func (b *bench) inspect(ctx context.Context, arg string) (*chart.Archive, *worker.Chart, error) {
	found, err := b.a.archive(ctx, arg, &b.flags.chart)
	if err != nil {
		return nil, nil, err
	}
	facts, err := b.pool.Inspect(ctx, found)
	var over *worker.Overrun
	if errors.As(err, &over) {
		err = fault.New(fault.Overrun, "chart %s: reading it was stopped: %s", shownReference(arg), over.What).Because(err)
	}
	return found, facts, err
}

// shownReference is an argument fit to be shown: the query of a link may be a credential.
func shownReference(arg string) string {
	if r, err := chart.ParseReference(arg); err == nil {
		return r.String()
	}
	return arg
}

// defaultName is the addon's name when nobody gives it: of a reference, what settings and zae addon add take;
// of anything else the chart's, under which it is published.
func (c *offlineChart) defaultName(arg string) (string, error) {
	if isReference(arg) {
		name, err := chart.DefaultName(arg)
		return name, usage(err)
	}
	name := strings.ToLower(c.facts.Facts.Name)
	if err := chart.CheckName(name); err != nil {
		return "", fault.New(fault.Chart, "the chart's name %s cannot be an addon's: %s", c.facts.Facts.Name, fault.From(err).Message).
			WithHint("change name in Chart.yaml, or give --name")
	}
	return name, nil
}

// held is the fetcher of the archive that is at hand.
type held struct{ archive *chart.Archive }

// Fetch is the archive, whatever is asked for.
func (h held) Fetch(context.Context, v1alpha1.ChartSource) (*chart.Archive, error) {
	return h.archive, nil
}

// placeholder stands for what the operator would generate: of the same form, no secret, and the same each time.
func (c *offlineChart) placeholder(_ context.Context, wanted []inputs.Input) (map[string]string, error) {
	out := make(map[string]string, len(wanted))
	for _, in := range wanted {
		sum := sha256.Sum256([]byte("placeholder of zae\x00" + in.Path))
		text, err := values.Generate(in.Generate, strings.NewReader(string(sum[:])))
		if err != nil {
			return nil, err
		}
		if in.Secret { // where a placeholder gets out, so would the value
			c.a.err.hidden.addForms(text)
		}
		out[in.Path] = text
	}
	c.placeholders = maps.Clone(out)
	return out, nil
}

// check does what the operator does before it looks at the cluster.
func (c *offlineChart) check(ctx context.Context) (*engine.Checked, error) {
	checked, err := c.engine.Check(ctx, c.request)
	if err == nil {
		c.a.err.hidden.addMade(checked.Dependence)
	}
	return checked, err
}

// addMade adds what the chart makes of secrets, so that no answer has it, and no error.
func (r *redactor) addMade(d *worker.Dependence) {
	if d == nil {
		return
	}
	for _, text := range d.Texts {
		r.made(text)
		r.made(printable(text))
		for _, most := range []int{maxShownName, maxShownKind} { // as findings cut it
			if runes := []rune(text); len(runes) > most {
				r.made(string(runes[:most]))
			}
		}
	}
	r.numbers = append(r.numbers, d.Numbers...)
}

// What findings show at most of a name and of a kind.
const maxShownName, maxShownKind = 253, 63

// tellPlaceholders says for which inputs something else stands here.
func (c *offlineChart) tellPlaceholders() {
	for _, path := range slices.Sorted(maps.Keys(c.placeholders)) {
		c.a.err.printf("note: %s is a placeholder here; the operator generates the value\n", path)
	}
}

// addForms adds a secret in the forms in which a template may write it: as it is, line by line, in lower case,
// quoted, encoded.
func (r *redactor) addForms(secret string) {
	quoted := strconv.Quote(secret)
	forms := []string{
		secret, quoted[1 : len(quoted)-1], printable(secret), base64.StdEncoding.EncodeToString([]byte(secret)),
		base64.URLEncoding.EncodeToString([]byte(secret)), url.QueryEscape(secret), url.PathEscape(secret),
	}
	for _, f := range append(forms, strings.Split(secret, "\n")...) {
		r.add(f)
		r.add(strings.TrimSpace(f))
		r.add(strings.ToLower(f))
	}
}

// regularOrTerminal tells whether what is written to a stream stays with the person.
func regularOrTerminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	if isTerminal(f) {
		return true
	}
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}

// checkedChart opens a chart with what the flags give, and checks it as the operator would. Call done when the chart
// is no longer needed.
func (a *app) checkedChart(ctx context.Context, arg string, o *offlineFlags) (c *offlineChart, checked *engine.Checked, done func(), err error) {
	if err := checkChart(arg, o); err != nil {
		return nil, nil, nil, err
	}
	b, err := a.newBench(o)
	if err != nil {
		return nil, nil, nil, err
	}
	if c, err = b.open(ctx, arg); err == nil {
		checked, err = c.check(ctx)
	}
	if err != nil {
		b.close()
		return nil, nil, nil, err
	}
	return c, checked, b.close, nil
}
