package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/fault"
	"zaentrum.io/zae/internal/values"
)

// maxGiven bounds a values file and a secret: a request body may hold 1 MiB.
const maxGiven = 1 << 20

// safeWays are how a secret input can be given.
const safeWays = "=@FILE, =env:NAME or =- for stdin"

// givenFlags are the flags that set inputs, as typed.
type givenFlags struct {
	values, set   []string
	unset         []string
	secrets, refs []string
	clear         []string
}

// registerInputs adds the flags that every command with inputs has.
func (g *givenFlags) registerInputs(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&g.values, "values", "f", nil, "values from `FILE`, YAML or JSON, - for stdin; may be repeated, later files win")
	flags.StringArrayVar(&g.set, "set", nil, "set `PATH=VALUE`, such as worker.replicas=2: JSON when it parses as JSON, else text; wins over --values")
	flags.StringArrayVar(&g.secrets, "set-secret", nil, "set the secret input `PATH`: asked for unseen, or PATH"+safeWays)
}

func (g *givenFlags) registerUnset(flags *pflag.FlagSet, from string) {
	flags.StringArrayVar(&g.unset, "unset", nil, "take `PATH` out of "+from+"; --set comes after it")
}

// register adds the flags of commands that give inputs to an instance, and of those that change what it has.
func (g *givenFlags) register(flags *pflag.FlagSet, change bool) {
	g.registerInputs(flags)
	flags.StringArrayVar(&g.refs, "secret-ref", nil, "read a secret input from a kept values Secret: `PATH=SECRET[/KEY]`")
	if change {
		g.registerUnset(flags, "the values the addon has")
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
	unset   [][]string
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
	return len(a.files)+len(a.set)+len(a.unset)+len(a.secrets)+len(a.refs)+len(a.clear) == 0
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
	for _, text := range g.unset {
		path, err := inputPath("--unset", text)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(out.set, func(a assignment) bool { return slices.Equal(a.path, path) }) {
			return nil, fault.New(fault.Usage, "%s is given by --unset and by --set", text).WithHint("give it once")
		}
		out.unset = append(out.unset, path)
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
	values  map[string]any // of --values and --set together; nil when neither is given
	filed   map[string]any // of --values alone
	set     map[string]any // of --set alone
	unset   [][]string
	secrets map[string]string
	refs    map[string]apitype.SecretRef
	clear   []string
	unasked []string // secret inputs that the person is still to be asked for
}

// read reads files, variables and standard input. What the person has to be asked for waits until it is known to be
// of use; see ask.
func (a *app) read(ask *asked) (*given, error) {
	g := &given{secrets: map[string]string{}, refs: ask.refs, clear: ask.clear, unset: ask.unset}
	for _, name := range ask.files {
		doc, err := a.valuesFile(name)
		if err != nil {
			return nil, err
		}
		g.filed = overlay(g.filed, doc)
	}
	g.layer(ask.set)
	for _, s := range ask.secrets {
		if _, also := values.Get(g.values, strings.Split(s.path, ".")); also {
			return nil, fault.New(fault.Usage, "%s is given by --set-secret and by --values", s.path).
				WithHint("leave the secret input out of the values file")
		}
	}
	for _, s := range ask.secrets {
		if s.kind == "ask" {
			if !a.person() {
				return nil, fault.New(fault.Usage, "--set-secret %s: there is no terminal to ask on; %s", s.path, nothingSent).
					WithHint("give --set-secret %s%s", s.path, safeWays)
			}
			g.unasked = append(g.unasked, s.path)
			continue
		}
		text, err := a.secret(s)
		if err != nil {
			return nil, err
		}
		g.secrets[s.path] = text
	}
	return g, nil
}

// ask asks the person for what is still missing of what the flags give.
func (a *app) ask(ctx context.Context, g *given) error {
	for _, path := range g.unasked {
		text, err := a.askSecret(ctx, question{label: path + " (not shown):"})
		if err == nil {
			err = notEmpty(path, text)
		}
		if err != nil {
			return err
		}
		g.secrets[path] = text
	}
	g.unasked = nil
	return nil
}

func notEmpty(path, secret string) error {
	if secret != "" {
		return nil
	}
	return fault.New(fault.Usage, "--set-secret %s: the secret is empty; %s", path, nothingSent).
		WithHint("to clear it: zae addon upgrade NAME --clear-secret %s", path)
}

// layer lays what --set gives over what --values do.
func (g *given) layer(set []assignment) {
	if g.filed != nil {
		g.values = values.CloneTree(g.filed)
	}
	for _, s := range set {
		for _, tree := range []*map[string]any{&g.values, &g.set} {
			if *tree == nil {
				*tree = map[string]any{}
			}
			values.Set(*tree, s.path, values.Clone(s.value))
		}
	}
}

// without is a copy of a tree without what --unset names. What is not there cannot be meant.
func (g *given) without(tree map[string]any, whose string) (map[string]any, error) {
	out := values.CloneTree(tree)
	for _, path := range g.unset {
		if values.Delete(out, path) {
			continue
		}
		dotted := values.JoinPath(path)
		refusal := fault.New(fault.Usage, "--unset %s: that is not among %s; nothing was sent", dotted, whose)
		var known []string
		for _, p := range leafPaths(out, nil) {
			known = append(known, values.JoinPath(p))
		}
		switch near := nearPath(dotted, known); {
		case near != "":
			return nil, refusal.WithHint("did you mean %s?", near)
		case len(known) == 0:
			return nil, refusal.WithHint("there are none")
		default:
			return nil, refusal.WithHint("there are %s", some(known))
		}
	}
	return out, nil
}

// noPlainSecrets refuses values that hold a secret input, when the plan of the addon as it is tells which inputs
// of this chart are secret. For a chart that is not planned yet, the plan will say it.
func (g *given) noPlainSecrets(before *apitype.AddonChart, ref string) error {
	if before == nil || before.Chart.Ref != ref {
		return nil
	}
	schema := plannedSchema(before)
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

// secret reads one secret input that nobody is asked for. One line break at the end of a file is the editor's, not the
// secret's.
func (a *app) secret(s source) (string, error) {
	var text string
	switch s.kind {
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
	a.err.hidden.add(text)
	return text, notEmpty(s.path, text)
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
