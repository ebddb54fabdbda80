package cli

import (
	"encoding/json"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"zaentrum.io/zae/api/v1alpha1"
	"zaentrum.io/zae/internal/apitype"
	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/values"
)

// Commands that lead back, or to the same again. They are printed only when they can be given as they stand.

// maxCommand bounds a command that is printed: a longer one would be read by nobody, and some terminals cut it.
const maxCommand = 4000

// tellUndo says how to undo what was installed.
func (ch *change) tellUndo() {
	if ch.before == nil || ch.before.LastAppliedChart == nil {
		ch.a.err.printf("to undo it: zae addon remove %s\n", ch.name)
		return
	}
	undo := ch.undoCommand()
	switch {
	case undo == "":
	case strings.Contains(undo, " --secret-ref "):
		// The operator keeps a values Secret that nothing refers to for so long.
		ch.a.err.printf("to undo it, within ten minutes: %s\n", undo)
	default:
		ch.a.err.printf("to undo it: %s\n", undo)
	}
}

// undoCommand leads from what was planned last to what was there before; empty where no one command does.
func (ch *change) undoCommand() string {
	now := ch.planned
	if now == nil {
		return ""
	}
	args := []string{ch.name}
	if was := ch.before.LastAppliedChart; was != nil && otherChart(now, was) {
		if hasQuery(was.Ref) && was.Ref != now.Chart.Ref {
			return ""
		}
		args = append(args, chartFlagsOf(now.Chart.Ref, was)...)
	}
	if len(plainSecrets(ch.before)) > 0 {
		return ""
	}
	plain, ok := valueFlags(now.Values, ch.before.Values, nil)
	if !ok {
		return ""
	}
	args = append(args, plain...)
	for _, path := range slices.Sorted(maps.Keys(now.SecretRefs)) {
		if _, had := ch.before.SecretRefs[path]; !had {
			args = append(args, "--clear-secret", path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(ch.before.SecretRefs)) {
		if was := ch.before.SecretRefs[path]; now.SecretRefs[path] != was {
			args = append(args, "--secret-ref", refText(path, was))
		}
	}
	if text := commandLine("zae addon upgrade", args...); len(args) > 1 && len(text) <= maxCommand {
		return text
	}
	return ""
}

// otherChart tells whether what was planned is another chart than the one that ran, or other content of it.
func otherChart(now *apitype.AddonChart, was *v1alpha1.AppliedChart) bool {
	return now.Chart.Ref != was.Ref || now.Chart.Version != was.Version ||
		now.Plan != nil && was.Digest != "" && now.Plan.Chart.Digest != was.Digest
}

// chartFlagsOf are the flags that ask for exactly the chart that ran, of an addon whose reference is ref now.
func chartFlagsOf(ref string, was *v1alpha1.AppliedChart) []string {
	var args []string
	if was.Ref != ref {
		args = append(args, "--chart", was.Ref)
	}
	if was.Version != "" && strings.HasPrefix(was.Ref, "oci://") {
		args = append(args, "--version", was.Version)
	}
	if was.Digest != "" {
		args = append(args, "--digest", was.Digest)
	}
	return args
}

// hasQuery tells whether a reference has a part that may be a credential, and is never printed.
func hasQuery(ref string) bool {
	u, err := url.Parse(ref)
	return err != nil || u.RawQuery != ""
}

// plainSecrets are the secret inputs among an addon's plain values.
func plainSecrets(doc *apitype.AddonChart) []string {
	if doc.Plan == nil {
		return nil
	}
	schema, _ := inputs.Describe([]byte(doc.Plan.ValuesSchema))
	return schema.PlainSecrets(doc.Values)
}

// valueFlags are the --set and --unset that lead from one tree of values to another. It is false where a key has a
// dot in it or is empty, so that no path leads there.
func valueFlags(from, to map[string]any, at []string) ([]string, bool) {
	var args []string
	keys := slices.Collect(maps.Keys(from))
	keys = slices.AppendSeq(keys, maps.Keys(to))
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		was, had := from[key]
		is, has := to[key]
		if had && has && reflect.DeepEqual(was, is) {
			continue
		}
		path := append(slices.Clone(at), key)
		dotted := values.JoinPath(path)
		if back, err := values.ParsePath(dotted); err != nil || !slices.Equal(back, path) {
			return nil, false
		}
		below, isObject := is.(map[string]any)
		above, _ := was.(map[string]any)
		switch {
		case !has:
			args = append(args, "--unset", dotted)
		case isObject && len(below)+len(above) > 0:
			more, ok := valueFlags(above, below, path)
			if !ok {
				return nil, false
			}
			args = append(args, more...)
		default:
			args = append(args, "--set", dotted+"="+valueText(is))
		}
	}
	return args, true
}

// valueText is a value as --set takes it: text as it is where it is not read as JSON, everything else as JSON.
func valueText(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return "null" // values that came as JSON are JSON
	}
	if text, ok := v.(string); ok {
		if again, err := jsonOrText(text); err == nil && again == any(text) && printable(text) == text {
			return text
		}
	}
	return escaped(string(raw))
}

// refText is a secret reference as --secret-ref takes it.
func refText(path string, ref apitype.SecretRef) string {
	text := path + "=" + ref.Name
	if ref.Key != "" && ref.Key != path {
		text += "/" + ref.Key
	}
	return text
}

// commandLine is a command as a shell takes it.
func commandLine(name string, args ...string) string {
	words := []string{name}
	for _, a := range args {
		words = append(words, quoted(a))
	}
	return strings.Join(words, " ")
}

// quoted is a word as a shell takes it.
func quoted(word string) string {
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool {
		return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=./:,@", r)
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
