package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"

	"github.com/spf13/pflag"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/values"
)

// maxGiven bounds a values file and a secret: a request body may hold 1 MiB.
const maxGiven = 1 << 20

// safeWays are how a secret input can be given.
const safeWays = "=@FILE, =env:NAME or =- for stdin"

// givenFlags are the flags that set inputs, as typed.
type givenFlags struct {
	values, set   []string
	secrets, refs []string
	clear         []string
}

func (g *givenFlags) register(flags *pflag.FlagSet, change bool) {
	flags.StringArrayVarP(&g.values, "values", "f", nil, "values from a YAML or JSON `FILE`, - for stdin; may be repeated, later files win")
	flags.StringArrayVar(&g.set, "set", nil, "set `PATH=VALUE`: JSON when it parses as JSON, else text; wins over --values")
	flags.StringArrayVar(&g.secrets, "set-secret", nil, "set the secret input `PATH`: asked for unseen, or PATH"+safeWays)
	flags.StringArrayVar(&g.refs, "secret-ref", nil, "read the secret input `PATH=SECRET[/KEY]` from a kept values Secret")
	if change {
		flags.StringArrayVar(&g.clear, "clear-secret", nil, "clear the secret input `PATH`")
	}
}

// source says where a secret comes from.
type source struct {
	path string
	kind string // ask, file, env, stdin
	name string // of the file or variable
}

// asked is what the flags ask for, understood but not yet read.
type asked struct {
	files   []string
	set     []assignment
	secrets []source
	refs    map[string]apitype.SecretRef
	clear   []string
	stdin   bool
}

type assignment struct {
	path  []string
	value any
}

// nothing tells whether no input is given at all.
func (a *asked) nothing() bool {
	return len(a.files)+len(a.set)+len(a.secrets)+len(a.refs)+len(a.clear) == 0
}

// understand checks everything that can be checked without reading anything.
func (g *givenFlags) understand() (*asked, error) {
	out := &asked{files: g.values, refs: map[string]apitype.SecretRef{}, clear: g.clear}
	stdin := 0
	for _, f := range g.values {
		if f == "-" {
			stdin++
		}
	}
	for _, text := range g.set {
		a, err := parseSet(text)
		if err != nil {
			return nil, err
		}
		out.set = append(out.set, a)
	}
	owner := map[string]string{} // a path may be given by one of the secret flags, once
	claim := func(flag, path string) error {
		if _, err := inputPath(flag, path); err != nil {
			return err
		}
		if other, taken := owner[path]; taken {
			return fault.New(fault.Usage, "%s is given by %s and by %s", path, other, flag).WithHint("give it once")
		}
		owner[path] = flag
		return nil
	}
	for _, text := range g.secrets {
		s, err := parseSecret(text)
		if err != nil {
			return nil, err
		}
		if err := claim("--set-secret", s.path); err != nil {
			return nil, err
		}
		if s.kind == "stdin" {
			stdin++
		}
		out.secrets = append(out.secrets, s)
	}
	for _, text := range g.refs {
		path, ref, err := parseRef(text)
		if err != nil {
			return nil, err
		}
		if err := claim("--secret-ref", path); err != nil {
			return nil, err
		}
		out.refs[path] = ref
	}
	for _, path := range g.clear {
		if err := claim("--clear-secret", path); err != nil {
			return nil, err
		}
	}
	for _, a := range out.set {
		if flag, taken := owner[values.JoinPath(a.path)]; taken {
			return nil, fault.New(fault.Usage, "%s is given by %s and by --set", values.JoinPath(a.path), flag).
				WithHint("give a secret input by %s alone", flag)
		}
	}
	if stdin > 1 {
		return nil, fault.New(fault.Usage, "standard input can be read for one input only")
	}
	out.stdin = stdin == 1
	return out, nil
}

// inputPath checks a dotted path of an input.
func inputPath(flag, dotted string) ([]string, error) {
	path, err := values.ParsePath(dotted)
	if err != nil {
		return nil, fault.New(fault.Usage, "%s: %s", flag, fault.From(err).Message)
	}
	if path[0] == v1alpha1.PlatformKey {
		return nil, reserved(flag)
	}
	return path, nil
}

func reserved(where string) error {
	return fault.New(fault.Usage, "%s: the key %s is the platform's own and cannot be set", where, v1alpha1.PlatformKey)
}

func parseSet(text string) (assignment, error) {
	dotted, value, ok := strings.Cut(text, "=")
	if !ok {
		return assignment{}, fault.New(fault.Usage, "--set needs PATH=VALUE").WithHint("for example --set worker.replicas=2")
	}
	path, err := inputPath("--set", dotted)
	if err != nil {
		return assignment{}, err
	}
	v, err := jsonOrText(value)
	if err != nil {
		return assignment{}, fault.New(fault.Usage, "--set %s: the value cannot be held in JSON", dotted)
	}
	return assignment{path, v}, nil
}

// jsonOrText is text as JSON when it is JSON as a whole, else the text itself.
func jsonOrText(text string) (any, error) {
	if !json.Valid([]byte(text)) || strings.TrimSpace(text) != text {
		return text, nil
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return values.Normalize(v)
}

// parseSecret reads --set-secret. A secret on the command line itself is refused, and not repeated: it
// would stay in the shell's history and be seen in the list of processes.
func parseSecret(text string) (source, error) {
	path, from, given := strings.Cut(text, "=")
	switch {
	case !given:
		return source{path: path, kind: "ask"}, nil
	case from == "-":
		return source{path: path, kind: "stdin"}, nil
	case strings.HasPrefix(from, "@") && len(from) > 1:
		return source{path: path, kind: "file", name: from[1:]}, nil
	case strings.HasPrefix(from, "env:") && len(from) > len("env:"):
		return source{path: path, kind: "env", name: from[len("env:"):]}, nil
	default:
		return source{}, fault.New(fault.Usage, "--set-secret %s: a secret on the command line would be seen by others; nothing was sent", path).
			WithHint("give --set-secret %s to be asked for it, or %s%s", path, path, safeWays)
	}
}

func parseRef(text string) (string, apitype.SecretRef, error) {
	path, target, ok := strings.Cut(text, "=")
	name, key, hasKey := strings.Cut(target, "/")
	if !ok || name == "" || hasKey && key == "" {
		return "", apitype.SecretRef{}, fault.New(fault.Usage, "--secret-ref needs PATH=SECRET or PATH=SECRET/KEY").
			WithHint("for example --secret-ref database.url=zaentrum-addon-example-values-abcde")
	}
	return path, apitype.SecretRef{Name: name, Key: key}, nil
}

// given is what the flags give, read.
type given struct {
	values  map[string]any // nil when neither --values nor --set is given
	secrets map[string]string
	refs    map[string]apitype.SecretRef
	clear   []string
}

// read reads files, variables, standard input and the person, in this order.
func (a *app) read(ctx context.Context, ask *asked) (*given, error) {
	g := &given{secrets: map[string]string{}, refs: ask.refs, clear: ask.clear}
	for _, name := range ask.files {
		doc, err := a.valuesFile(name)
		if err != nil {
			return nil, err
		}
		g.values = overlay(g.values, doc)
	}
	for _, s := range ask.set {
		if g.values == nil {
			g.values = map[string]any{}
		}
		values.Set(g.values, s.path, s.value)
	}
	for _, s := range ask.secrets {
		if _, also := values.Get(g.values, strings.Split(s.path, ".")); also {
			return nil, fault.New(fault.Usage, "%s is given by --set-secret and by --values", s.path).
				WithHint("leave the secret input out of the values file")
		}
	}
	for _, s := range ask.secrets {
		text, err := a.secret(ctx, s)
		if err != nil {
			return nil, err
		}
		g.secrets[s.path] = text
	}
	return g, nil
}

// noPlainSecrets refuses values that hold a secret input, when the plan of the addon as it is tells which inputs
// of this chart are secret. For a chart that is not planned yet, the plan will say it.
func (g *given) noPlainSecrets(before *apitype.AddonChart, ref string) error {
	if before == nil || before.Plan == nil || before.Chart.Ref != ref || !before.PlanCurrent() {
		return nil
	}
	schema, _ := inputs.Describe([]byte(before.Plan.ValuesSchema)) // of one that cannot be read, the plan says so
	found := schema.PlainSecrets(g.values)
	if len(found) == 0 {
		return nil
	}
	path := found[0]
	refusal := fault.New(fault.Usage, "%s is a secret input, and --set and --values give it as a plain value; nothing was sent", path)
	if in, known := schema.Input(path); !known || in.Unaddressable {
		return refusal.WithHint("leave it out: the chart has it where no secret input can be given")
	}
	return refusal.WithHint("give --set-secret %s%s, and leave it out of --set and --values", path, safeWays)
}

func (a *app) valuesFile(name string) (map[string]any, error) {
	text, err := a.readFile(name, maxGiven)
	if err != nil {
		return nil, fault.New(fault.Usage, "the values file %s %s", shownName(name), whyUnread(err)).Because(err)
	}
	doc, err := values.Decode(text)
	if err != nil {
		return nil, fault.New(fault.Usage, "the values file %s: %s", shownName(name), fault.From(err).Message).Because(err)
	}
	if _, there := doc[v1alpha1.PlatformKey]; there {
		return nil, reserved("the values file " + shownName(name))
	}
	return doc, nil
}

func shownName(name string) string {
	if name == "-" {
		return "on stdin"
	}
	return name
}

func whyUnread(err error) string {
	var pe *fs.PathError
	switch {
	case errors.Is(err, errTooLong):
		return fmt.Sprintf("is larger than %d KiB", maxGiven>>10)
	case errors.As(err, &pe):
		return "cannot be read: " + pe.Err.Error()
	default:
		return "cannot be read"
	}
}

// secret reads one secret input. One line break at the end of a file is the editor's, not the secret's.
func (a *app) secret(ctx context.Context, s source) (string, error) {
	var text string
	switch s.kind {
	case "ask":
		if !a.person() {
			return "", fault.New(fault.Usage, "--set-secret %s: there is no terminal to ask on; nothing was sent", s.path).
				WithHint("give --set-secret %s%s", s.path, safeWays)
		}
		var err error
		if text, err = a.askSecret(ctx, question{label: s.path + " (not shown):"}); err != nil {
			return "", err
		}
	case "env":
		v, ok := a.p.Env(s.name)
		if !ok {
			return "", fault.New(fault.Usage, "--set-secret %s: the variable %s is not set", s.path, s.name)
		}
		text = v
	default:
		name := s.name
		if s.kind == "stdin" {
			name = "-"
		}
		raw, err := a.readFile(name, maxGiven)
		if err != nil {
			return "", fault.New(fault.Usage, "--set-secret %s: the file %s %s", s.path, shownName(name), whyUnread(err)).Because(err)
		}
		raw, _ = bytes.CutSuffix(raw, []byte("\n"))
		raw, _ = bytes.CutSuffix(raw, []byte("\r"))
		text = string(raw)
	}
	if text == "" {
		return "", fault.New(fault.Usage, "--set-secret %s: the secret is empty; nothing was sent", s.path).
			WithHint("to clear it: zae addon upgrade NAME --clear-secret %s", s.path)
	}
	a.err.hidden.add(text)
	return text, nil
}

// overlay lays values over values that were given before: objects key by key, everything else replaces.
// A null stays, because it is what deletes a chart's default.
func overlay(under, over map[string]any) map[string]any {
	out := maps.Clone(under)
	if out == nil {
		out = map[string]any{}
	}
	for k, v := range over {
		below, isObject := out[k].(map[string]any)
		above, ok := v.(map[string]any)
		if ok && isObject {
			out[k] = overlay(below, above)
			continue
		}
		if ok {
			out[k] = overlay(nil, above)
			continue
		}
		out[k] = v
	}
	return out
}

// plainValues turns values as the client reads them (with json.Number) into what the values package works on.
func plainValues(in map[string]any) (map[string]any, error) {
	v, err := values.Normalize(in)
	if err != nil {
		return nil, err
	}
	out, _ := v.(map[string]any)
	if out == nil {
		out = map[string]any{}
	}
	return out, nil
}
