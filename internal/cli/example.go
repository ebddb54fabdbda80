package cli

import (
	"slices"
	"strings"

	"zaentrum.io/zae/internal/inputs"
	"zaentrum.io/zae/internal/lint"
	"zaentrum.io/zae/internal/values"
)

// howToGive are the flags that give an input, fit to be copied, and what may stand in them.
func (v *planView) howToGive(in inputs.Input) string {
	if in.Secret {
		return "give --set-secret " + in.Path + " (prompt), " + safeWays
	}
	_, plain := values.Get(v.doc.Values, strings.Split(in.Path, "."))
	if in.Generate != "" && !plain && !slices.Contains(v.doc.SecretKeys, in.Path) {
		return "the schema refuses what " + in.Generate + " generates for " + in.Path + ": the chart's author has to change one or the other"
	}
	flags := v.flagFor(in)
	limits := strings.Join(limitsText(in), ", ")
	if strings.HasSuffix(flags[1], "="+noExample) && in.Pattern != "" {
		limits += ", matching " + in.Pattern
	}
	return "give " + commandLine(flags[0], flags[1:]...) + " (" + limits + ")"
}

// noExample stands where no value could be made up.
const noExample = "VALUE"

// flagFor is the flag that gives an input, with a value that the schema takes.
func (v *planView) flagFor(in inputs.Input) []string {
	if in.Secret {
		return []string{"--set-secret", in.Path}
	}
	if v.judged == nil { // what could be described can be compiled, or the plan says why not
		v.judged, _ = inputs.Parse(v.text)
	}
	value, ok := lint.Example(v.judged, in)
	if !ok {
		return []string{"--set", in.Path + "=" + noExample}
	}
	return []string{"--set", in.Path + "=" + valueText(value)}
}

// limitsText is what an input takes, its type first.
func limitsText(in inputs.Input) []string {
	out := []string{in.Type}
	if len(in.Enum) > 0 {
		all := make([]string, len(in.Enum))
		for i, e := range in.Enum {
			all[i] = shownValue(e)
		}
		out = append(out, "one of "+strings.Join(all, ", "))
	}
	if in.Minimum != "" {
		out = append(out, "at least "+in.Minimum.String())
	}
	if in.Maximum != "" {
		out = append(out, "at most "+in.Maximum.String())
	}
	return out
}
